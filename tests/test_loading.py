"""`save` and `load`, and the clearer names of two public functions."""

from __future__ import annotations

import itertools
from dataclasses import replace

import pytest
from hypothesis import given
from hypothesis import strategies as st

import everyday
import kinetree as kt
from kinetree import library
from kinetree.formats.toml import read_toml_text
from kinetree.formats.toml_writer import write_toml
from public_robots import public_robots
from strategies import examples, mechanisms

ROPE = {"mass_per_metre": 0.37, "radius": 0.004}
INERTIA = (0.02, 0.03, 0.04, 0.0, 0.0, 0.0)
ROW = {"joint": "revolute", "a": 0.3, "alpha": 0.2, "b": 0.1, "theta": 0.0, "mass": 0.7, "inertia": INERTIA}
ROWS = [ROW, ROW | {"a": 0.31}, ROW | {"parent": 0}, ROW | {"parent": 1}, ROW | {"parent": 0}]
PAIRS = (("a", "b"), ("c", "d"), ("c", "ground"), ("a", "c"), ("b", "d"), ("ground", "a"))
BUILT = {
    "chain": lambda: kt.chain(5),
    "polymer": lambda: kt.polymer(6),
    "rope": lambda: kt.rope(0.7, 6, bending=0.02, **ROPE),
    "net": lambda: kt.net(2, 3, mesh=0.21, n=2, bending=0.02, **ROPE),
    "rope_tree": lambda: kt.rope_tree(0.6, 3, levels=2, branches=3, bending=0.02, **ROPE),
    "n_four_bars": lambda: kt.n_four_bars(3),
    "from_dh": lambda: kt.from_dh(ROWS),
    "from_pairs": lambda: kt.from_pairs(
        "rings",
        [kt.Body(name, 0.7, inertia=INERTIA) for name in "abcd"],
        [kt.Pair(a + b, "revolute", a, b) for a, b in PAIRS],
    ),
}


def assert_comes_back(system: kt.System, path) -> None:
    """Save a System, load it, and find the same mechanism with the coordinates in the same order."""
    again = kt.load(kt.save(system, path)).mechanism
    assert [j.name for j in again.joints] == [j.name for j in system.joints]
    assert [b.name for b in again.bodies] == [b.name for b in system.bodies]
    assert again.hash == system.mechanism.hash


@pytest.mark.parametrize("name", BUILT)
def test_what_was_built_comes_back(name, tmp_path):
    """Save and load the mechanism of each builder and find the order of its coordinates unchanged."""
    assert_comes_back(BUILT[name](), tmp_path / "made.toml")


@given(mechanisms(most=12), st.randoms(use_true_random=False))
@examples(60)
def test_parts_in_any_order_come_back(mechanism, chance):
    """Assemble a random tree from parts in any order, write and read it, and find the order of its coordinates."""
    bodies, joints = list(mechanism.bodies), list(mechanism.joints)
    chance.shuffle(bodies)
    chance.shuffle(joints)
    made = kt.build_mechanism("shuffled", bodies, joints)
    again = read_toml_text(write_toml(made))[0]
    assert [j.name for j in again.joints] == [j.name for j in made.joints]
    assert again.hash == made.hash


@pytest.mark.parametrize("order", [(0, 2, 1, 3), (2, 0, 1, 3)], ids=["branch", "child first"])
def test_an_order_that_would_not_come_back_is_refused(order):
    """Make a Mechanism by hand with a branch that is not in a row, and one with a child first, and read what to do."""
    bodies = [kt.Body(name, 0.7, inertia=INERTIA) for name in "abcd"]
    pairs = zip("abcd", ("ground", "a", "a", "b"), strict=True)
    made = kt.build_mechanism("made", bodies, [kt.Joint(f"j{b}", "revolute", p, b) for b, p in pairs])
    assert [b.name for b in made.bodies] == ["a", "b", "d", "c"]
    parts = {"bodies": tuple(made.bodies[k] for k in order), "joints": tuple(made.joints[k] for k in order)}
    for use in (kt.System, write_toml):
        with pytest.raises(
            kt.ModelError, match=r"its child '[bd]' is out of order: .*; make the mechanism with kt.build_mechanism"
        ):
            use(replace(made, **parts))


@everyday.long
def test_what_was_imported_comes_back(tmp_path):
    """Save and load every library mechanism and public robots of URDF files, fixed and floating."""
    for name in library.names():
        assert_comes_back(kt.load(name), tmp_path / "library.toml")
    for path, base in zip(public_robots()[:12], itertools.cycle(("fixed", "free")), strict=False):
        assert_comes_back(kt.load(path, base=base), tmp_path / "urdf.toml")


def test_an_mjcf_import_comes_back(tmp_path):
    """Save and load a branched MJCF model with an equality of joints and one of bodies."""
    pytest.importorskip("mujoco")
    body = '<body name="{0}" pos="0 0.1 0.2"><joint name="j{0}" axis="0 {1} 1"/><geom size="0.1"/>{2}</body>'
    inner = body.format("b", 0.3, "") + body.format("c", 0.4, body.format("d", 0.1, ""))
    equalities = (
        '<joint joint1="jb" joint2="jc" polycoef="0.1 0.7 0 0 0"/><connect body1="d" body2="e" anchor="0.1 0 0"/>'
    )
    text = body.format("a", 0.2, inner) + body.format("e", 0.7, "")
    (tmp_path / "m.xml").write_text(f"<mujoco><worldbody>{text}</worldbody><equality>{equalities}</equality></mujoco>")
    assert_comes_back(kt.load(tmp_path / "m.xml"), tmp_path / "mjcf.toml")


@pytest.mark.parametrize("name", ["stanford", "four_bar", "biped"])
def test_a_saved_mechanism_is_loaded_again(name, tmp_path):
    """Save a System, and its mechanism alone, and load the same mechanism."""
    system = kt.load(name)
    for number, what in enumerate((system, system.mechanism)):
        path = kt.save(what, tmp_path / f"{number}.toml")
        assert kt.load(path).mechanism.hash == system.mechanism.hash
    assert sorted(p.name for p in tmp_path.iterdir()) == ["0.toml", "1.toml"]


def test_save_refuses_what_it_cannot_write(tmp_path):
    """Save under another suffix, something else, and in a missing folder, and read what to do."""
    arm = kt.load("planar_2r")
    with pytest.raises(
        kt.InputError, match=r"arm.obj: mechanisms are written as .toml, .urdf, .xml \(MJCF\) or .sdf, not as '.obj'"
    ):
        kt.save(arm, tmp_path / "arm.obj")
    with pytest.raises(kt.InputError, match="mechanism is 5; expected a Mechanism or a System"):
        kt.save(5, tmp_path / "arm.toml")  # type: ignore[arg-type]
    with pytest.raises(kt.InputError, match="cannot be written .No such file or directory.; choose another path"):
        kt.save(arm, tmp_path / "none" / "arm.toml")


def test_clearer_names():
    """Find that the old names still work, as well as the clearer ones."""
    assert kt.TorqueFunction is kt.TorqueFunction
    assert kt.build_mechanism is kt.build_mechanism


def test_results_are_no_mechanisms(tmp_path):
    """Load a saved run as if it were a mechanism: the error names what reads results, in Python and in commands."""
    file = kt.simulate(kt.load("pendulum"), duration=0.01).save(tmp_path / "run.npz")
    with pytest.raises(
        kt.ModelError, match=r"run\.npz: .* are not mechanisms; .*kt\.read_trajectory and kt\.read_study"
    ) as caught:
        kt.load(file)
    assert "runs are for `kinetree plot`, `replay` and `loads`" in caught.value.command_line


def test_files_with_similar_names_are_suggested(tmp_path, monkeypatch):
    """Mistype the name of a file, and leave its suffix out: the file that is there is suggested."""
    monkeypatch.chdir(tmp_path)
    kt.save(kt.load("planar_2r"), "crane.toml")
    (tmp_path / "crane.txt").write_text("no model")
    for name, error in (("craen.toml", kt.ModelError), ("crane.tml", kt.ModelError), ("Crane", kt.UnknownNameError)):
        with pytest.raises(error, match=r"did you mean 'crane\.toml'\?"):
            kt.load(name)
    with pytest.raises(kt.ModelError, match=r"elsewhere.crane\.toml: does not exist; give the path"):
        kt.load(tmp_path / "elsewhere" / "crane.toml")
