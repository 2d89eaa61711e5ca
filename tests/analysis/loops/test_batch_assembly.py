"""Tests of src/kinetree/analysis/loops/batch_assembly.py: many closed positions at once."""

from __future__ import annotations

import numpy as np
import pytest

import everyday
import kinetree as kt
from closed_mechanisms import DRIVES, library_state
from kinetree.analysis.loops.batch_assembly import assemble_from
from kinetree.model.axes import axis_labels
from sprung_mechanisms import sprung
from tolerance import assert_close


@pytest.fixture(scope="module")
def system(tmp_path_factory) -> kt.System:
    """Return a four-bar whose crank is a free parameter."""
    return sprung(tmp_path_factory.mktemp("sprung"))


def test_a_batch_has_the_positions_of_single_calls(system):
    """Assemble cranks and designs at once, and find the positions of single calls, in the mode of the guess."""
    angles, arms = np.linspace(-2.0, 3.0, 5), np.array([[0.03], [0.041], [0.05]])
    q = system.assemble(hold={"crank": angles}, parameters={"arm": arms})
    assert q.shape == (3, 5, 3) and (q[..., 0] == angles).all()
    for n in np.ndindex(3, 5):
        one = system.assemble(hold={"crank": angles[n[1]]}, parameters={"arm": arms[n[0], 0]})
        assert (q[n] == one).all()


def test_a_sample_does_not_depend_on_its_batch(system):
    """Find the same bits in batches of other sizes."""
    angles = np.linspace(-1.0, 2.0, 19)
    whole = system.assemble(hold={"crank": angles})
    assert (system.assemble(hold={"crank": angles[4:7]}) == whole[4:7]).all()


def test_a_motion_stays_on_its_branch(system):
    """Follow the crank through two revolutions from each mode of assembly, with coarse and fine steps."""
    modes = system.assembly_modes(hold={"crank": 0.3})
    assert len(modes) == 2
    for steps in (31, 400):
        angles = np.linspace(0.3, 0.3 + 4 * np.pi, steps)
        runs = system.assemble(np.array(modes)[:, None], {"crank": angles}, follow=True)
        assert_close(np.sin(runs[:, -1]), np.sin(modes), 1e-10, "positions after two revolutions")
        assert_close(system.closure_residual(runs), np.zeros((2, steps, 5)), 1e-12, "gaps")
        assert np.abs(np.diff(runs[..., 1], axis=-1)).max() < 1.0


def test_designs_are_assembled_from_a_known_one(system):
    """Keep the mode of a known position in designs far from it, with the same bits alone, and mark unreachable ones."""
    names = [p.name for p in system.mechanism.free_parameters]
    nominal = np.array([p.value for p in system.mechanism.free_parameters])
    sets, angles = np.repeat(nominal[None], 4, axis=0), np.array([0.4, 2.1, -1.3, 0.4])
    sets[:, names.index("arm")] = 0.012, 0.055, 0.03, 9.0
    mode = system.assemble(hold={"crank": 0.4})
    wanted = np.repeat(mode[None], 4, axis=0)
    wanted[:, 0] = angles
    found = assemble_from(system, (mode, nominal), ((0,), (0,)), wanted, sets)
    assert np.isnan(found[3]).all() and (found[:3, 0] == angles[:3]).all()
    for n in range(3):
        path = np.linspace(0.0, 1.0, 101)[:, None]
        slow = system.assemble(
            mode, {"crank": 0.4 + path[:, 0] * (angles[n] - 0.4)}, follow=True,
            parameters=nominal + path * (sets[n] - nominal),
        )  # fmt: skip
        assert_close(found[n], slow[-1], 1e-11, "position of a design")
        alone = assemble_from(system, (mode, nominal), ((0,), (0,)), wanted[n : n + 1], sets[n : n + 1])
        assert (alone[0] == found[n]).all()


@everyday.long
def test_quaternions_are_followed():
    """Follow the platform of a Stewart platform, whose joint is a quaternion, as its legs move."""
    system = kt.load("stewart")
    start = system.assemble()
    names = [f"leg{k}" for k in range(1, 7)]
    first = {name: start[system.mechanism.q_slices[[j.name for j in system.joints].index(name)]][0] for name in names}
    t = np.linspace(0.0, 1.0, 12)
    hold = {name: x + 0.03 * np.sin((k + 1) * t) for k, (name, x) in enumerate(first.items())}
    q = system.assemble(start, hold, follow=True)
    assert_close(system.closure_residual(q), np.zeros((12, len(system.closures))), 1e-12, "gaps")
    one = system.assemble(q[8], {name: x[9] for name, x in hold.items()})
    assert_close(q[9], one, 1e-10, "position of a motion")


def test_a_tree_and_a_held_mechanism():
    """Assemble batches without loops, and with every joint held."""
    tree = kt.load("planar_2r")
    assert_close(tree.assemble(hold={"joint2": [0.4, 0.5]}), [[0.0, 0.4], [0.0, 0.5]], 0.0)
    system = kt.load("four_bar")
    q = system.assemble(hold={"crank": [0.2, 0.4]})
    assert_close(system.assemble(q, [j.name for j in system.joints]), q, 0.0)


def test_failed_samples_are_named_or_marked(system):
    """Ask for cranks longer than the linkage allows: an error with sample, loop and gap, or NaN."""
    hold, arms = {"crank": [0.3, 2.0]}, {"arm": [[0.041], [0.09], [0.3]]}
    with pytest.raises(kt.AssemblyError) as caught:
        system.assemble(hold=hold, parameters=arms)
    text = str(caught.value)
    assert "sample [2, 0]: with crank = 0.3 rad held, loop 'pin' stays open by" in text
    assert "2 of 6 samples fail" in text and "on_failure='nan' keeps the other samples" in text
    q = system.assemble(hold=hold, parameters=arms, on_failure="nan")
    assert np.isnan(q).all(axis=-1).tolist() == [[False, False], [False, False], [True, True]]
    assert np.isnan(system.assemble(hold={"crank": 0.3}, parameters={"arm": 0.3}, on_failure="nan")).all()
    motion = {"crank": np.linspace(3.0, 0.0, 40)}
    with pytest.raises(kt.AssemblyError, match=r"sample \[\d+\]: .*; \d+ of 40 samples fail"):
        system.assemble(hold=motion, parameters={"arm": 0.17}, follow=True)
    part = system.assemble(hold=motion, parameters={"arm": 0.17}, follow=True, on_failure="nan")
    lost = np.isnan(part).any(axis=-1)
    assert 0 < lost.sum() < 40 and lost[np.argmax(lost) :].all()


def test_unsuitable_batches_are_refused(system):
    """Check the messages of shapes that do not fit, of guesses that are not finite, and of unknown options."""
    with pytest.raises(
        kt.InputError, match=r"the leading shapes do not fit together: q_guess \(\), parameters \(2,\), hold"
    ):
        system.assemble(hold={"crank": [0.1, 0.2, 0.3]}, parameters={"arm": [0.04, 0.05]})
    with pytest.raises(kt.InputError, match=r"q has shape \(2, 2\); expected \[..., 3\]"):
        system.assemble(np.zeros((2, 2)))
    with pytest.raises(kt.InputError, match=r"q\[1, 2\] is nan; give finite numbers"):
        system.assemble([[0.1, 1.0, 4.0], [0.1, 1.0, np.nan]])
    with pytest.raises(kt.InputError, match="on_failure is 'skip'; expected 'raise' or 'nan'"):
        system.assemble(on_failure="skip")
    with pytest.raises(kt.InputError, match="a motion needs an axis of time"):
        system.assemble(hold={"crank": 0.2}, follow=True)


@pytest.mark.parametrize("name", ["four_bar", "three_rrr", "stewart"])
def test_one_state_has_the_bits_of_a_batch(name):
    """Compute positions, velocities, accelerations, torques and loads of one state, and find them in a batch."""
    arm, q, qd, qdd = library_state(name)
    drives, labels = DRIVES[name], axis_labels(arm.mechanism, 1)
    near, far = (arm.integrate(q, step * np.sin(1.0 + np.arange(arm.nv))) for step in (1e-3, 0.13))
    guesses, places = np.stack([far, near, q]), np.stack([q, q, q])
    assert (arm.assemble(near) == arm.assemble(guesses, on_failure="nan")[1]).all()
    held = {"crank": 0.37} if name == "four_bar" else drives
    assert (arm.assemble(q, held) == arm.assemble(places, held)[2]).all()
    speeds, rates = ({x: values[labels.index(x)] for x in drives} for values in (qd, qdd))
    assert (arm.consistent_speeds(q, speeds) == arm.consistent_speeds(places, speeds)[1]).all()
    found = arm.consistent_accelerations(q, qd, rates), arm.consistent_accelerations(places, qd, rates)
    assert (found[0] == found[1][2]).all()
    one, batch = arm.actuation(q, qd, qdd, drives), arm.actuation(places, qd, qdd, drives)
    assert (one.tau == batch.tau[1]).all() and (one.multipliers == batch.multipliers[1]).all()
    one, batch = (arm.loads(x, qd, qdd=qdd, actuated=drives) for x in (q, places))
    assert (one.joints == batch.joints[2]).all() and (one.cuts == batch.cuts[2]).all()
