"""Mechanisms of pairs: whichever are cut, the same motion as with the tree that was given before."""

from __future__ import annotations

from dataclasses import replace

import hypothesis
import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

import everyday
import kinetree as kt
from closed_mechanisms import DRIVES, closed_mechanisms, library_state, motion
from kinetree import loops
from kinetree.formats.toml import read_toml_text
from kinetree.formulations.closed_system import closed_equations
from pairs_of_mechanisms import TEXT, Motion, both
from strategies import examples
from tolerance import assert_close

SLOW = ("stewart", "three_rrr", "five_bar", "parallelogram", "slider_crank", "gear_train")


def agree(mine: Motion, theirs: Motion, seed: int) -> None:
    """Compare poses, twists and twist rates of all bodies with those of the mechanism made of pairs."""
    mechanism, q = mine.mechanism, mine.q
    assert_close(theirs.poses(), mine.poses(), 1e-12, "poses")  # measured: 1.6e-14
    rng = np.random.default_rng(seed)
    qd = motion(mechanism, q, seed)[0]
    twists = mine.twists(qd)
    qd2, size = theirs.speeds(twists), max(1.0, np.abs(twists).max())
    assert_close(theirs.twists(qd2), twists, 1e-10 * size, "twists")
    pushes = dict(zip(mine.frames, rng.normal(size=(len(mine.frames), 6)), strict=True))
    expected = mine.twist_rates(qd, pushes)
    bound = 1e-10 * max(1.0, np.abs(expected).max())
    assert_close(theirs.twist_rates(qd2, pushes), expected, bound, "twist rates")  # measured: 5e-12, relative


def regular(mechanism, q) -> bool:
    """Return whether the rank of the loops is clear: no singular value near the limit between zero and not.

    The referee divides equations by their size, so that it needs one that is above rounding.
    """
    J = closed_equations(mechanism, q).J
    if not J.size:
        return True
    sizes = np.linalg.svd(J, compute_uv=False)
    return sizes.max() > 1e-9 and not ((sizes > 1e-11 * sizes.max()) & (sizes < 1e-3 * sizes.max())).any()


@examples(24)
@given(closed_mechanisms(), st.integers(0, 2**32 - 1))
def test_random_mechanisms_move_as_before(drawn, seed):
    """Let the pairs of a random closed mechanism be cut anew, and find the same motion under the same wrenches."""
    mechanism, q = drawn
    mine, theirs, _ = both(mechanism, q, seed)
    hypothesis.assume(regular(mechanism, q) and regular(theirs.mechanism, theirs.q))
    agree(mine, theirs, seed)


@pytest.mark.parametrize("name", everyday.some(everyday.without(list(DRIVES), SLOW)))
def test_library_mechanisms_move_as_before(name):
    """Cut the closed mechanisms of the library anew, away from their start, and find the same motion."""
    old, q, _, _ = library_state(name)
    bare = replace(
        old.mechanism,
        joints=tuple(replace(j, limits=kt.Limits(), damping=(), friction=(), armature=()) for j in old.joints),
        forces=(),
    )
    mine, theirs, system = both(bare, q, 3)
    agree(mine, theirs, 3)
    new, at = system.mechanism, theirs.q
    qd = theirs.speeds(mine.twists(motion(bare, q, 3)[0]))
    expected = closed_equations(new, at, qd).acceleration(np.zeros(new.nv))
    found = system.forward_dynamics(at, qd, np.zeros(new.nv))
    assert_close(found, expected, 1e-10 * max(1.0, np.abs(expected).max()), "compiled accelerations")
    count = sum(len(loops.labels(x)) for x in system.mechanism.loops)
    assert count <= sum(len(loops.labels(x)) for x in bare.loops)


@pytest.mark.slow
def test_a_platform_without_a_joint_of_its_own():
    """Carry the platform of the Stewart mechanism on one of its legs: five balls are cut, not six."""
    old, q, _, _ = library_state("stewart")
    bare = replace(old.mechanism, joints=tuple(replace(j, limits=kt.Limits()) for j in old.joints))
    mine, theirs, system = both(bare, q, 4, without=["platform"])
    agree(mine, theirs, 4)
    assert [x.name for x in system.mechanism.loops] == ["ball2", "ball3", "ball4", "ball5", "ball6"]
    assert system.nv == 18 + 3


@pytest.mark.parametrize("cut", ["crank", "coupler", "rocker", "loop"])
def test_any_pair_of_a_ring_may_be_cut(cut):
    """Cut every pair of the four-bar in turn, by the option, and find the same motion."""
    old, q, _, _ = library_state("four_bar")
    names = [j.name for j in old.joints] + [x.name for x in old.mechanism.loops]
    which = names[["crank", "coupler", "rocker", "loop"].index(cut)]
    mine, theirs, system = both(old.mechanism, q, 5, cut=[which])
    agree(mine, theirs, 5)
    assert [x.name for x in system.mechanism.loops] == [which]
    assert any(f"pair {which!r} is cut" in str(entry) and "marked" in str(entry) for entry in system.report.entries)


def test_pairs_of_a_file(tmp_path):
    """Read pairs, with a report that names each cut with its line, and write the tree and the loop."""
    file = tmp_path / "linkage.toml"
    file.write_text(TEXT)
    system = kt.load(file)
    assert [(j.name, j.parent, j.child, j.axis) for j in system.joints] == [
        ("motor", "ground", "crank", (0.0, 0.0, -1.0)),
        ("crank_pin", "crank", "rod", (0.0, 0.0, 1.0)),
        ("pivot", "ground", "rocker", (0.0, 0.0, 1.0)),
    ]
    assert (system.joints[0].limits.lower, system.joints[0].damping) == ((-1.0,), (0.1,))
    (spring,) = system.mechanism.forces
    assert (spring.body_a, spring.body_b, dict(spring.coefficients)) == (
        "ground", "crank", {"stiffness_1": 5.0, "rest_1": 0.3}
    )  # fmt: skip
    assert system.mechanism.guess == (("motor", (0.8,)), ("pivot", (1.9,)))
    entries = [str(e).removeprefix(str(tmp_path)) for sort in ("changed", "dropped") for e in system.report.of(sort)]
    assert entries == [
        "/linkage.toml:35: pair 'rocker_ball' is cut in the ring rod - crank - ground - rocker: 3 equations; "
        "every other pair of it that may be cut gives more; must stay: 'motor' (joint spring 'return')",
        "/linkage.toml:19: pair 'motor' is a joint from body_b to body_a, of the same motions",
        "/linkage.toml:35: the guess of pair 'rocker_ball', which is cut",
    ]
    closed = system.assemble()
    assert np.abs(system.closure_residual(closed)).max() < 1e-12
    again = kt.load(kt.save(system, tmp_path / "tree.toml"))
    assert again.mechanism.hash == system.mechanism.hash


@pytest.mark.parametrize(("old", "new", "message"), [
    ('body_b = "rocker"\nplacement_a = { translation = [0.3, 0, 0] }\nplacement_b', 'body_b = "roker"\nplacement_b',
     "f.toml:39: pair 'rocker_ball', body_b: no body 'roker'; did you mean 'rocker'? available: rocker, crank, rod"),
    ('axis = "z"', 'axis = "w"', "f.toml:24: pair 'motor', axis: 'w' is not an axis"),
    ("damping = 0.1", "cut = 1", "f.toml:25: pair 'motor', cut: a number where true or false belongs"),
    ("damping = 0.1", "damping = [0.1, 0.2]", "f.toml:19: joint 'motor': 2 damping for a revolute joint; give 1, or"),
    ("damping = 0.1", "drag = 0.1", "f.toml:25: pair 'motor': no key 'drag'; available: name, kind, body_a, body_b"),
    ('name = "motor"', 'nam = "motor"', "f.toml:20: pair 1: no key 'nam'; did you mean 'name'?"),
])  # fmt: skip
def test_impossible_files_are_refused(old, new, message):
    """Name the line of the pair."""
    assert old in TEXT
    with pytest.raises(kt.ModelError) as caught:
        read_toml_text(TEXT.replace(old, new), file="f.toml")
    assert str(caught.value).startswith(message)
