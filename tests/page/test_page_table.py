"""Tables of mechanisms in pages: DH parameters of given poses, and numbers as inputs of functions."""

from __future__ import annotations

import numpy as np
import pytest

import kinetree as kt
from kinetree.formats.toml import read_toml_text
from kinetree.page.kernel import TIERS, live_mechanism
from kinetree.page.table import modified_geometry, page_table, standard_geometry
from tolerance import assert_close


def table(system: kt.System) -> dict:
    return page_table(system.mechanism, system.mechanism.values())


def rotation(k: int, angle: float) -> np.ndarray:
    i, j = (k + 1) % 3, (k + 2) % 3
    out = np.eye(4)
    out[i, i] = out[j, j] = np.cos(angle)
    out[i, j], out[j, i] = -np.sin(angle), np.sin(angle)
    return out


def shift(x: float, y: float, z: float) -> np.ndarray:
    out = np.eye(4)
    out[:3, 3] = x, y, z
    return out


def test_parameters_of_poses_are_found():
    """Find the parameters of random poses, of parallel axes and of a branch; a pose that is not standard has none."""
    rng = np.random.default_rng(3)
    for theta, alpha in [*rng.uniform(-3, 3, (8, 2)), (0.4, 0.0), (-1.1, np.pi / 2), (0.7, np.pi)]:
        a, b = rng.uniform(-0.7, 0.7, 2)
        found = standard_geometry(rotation(2, theta) @ shift(a, 0, b) @ rotation(0, alpha))
        assert found is not None
        assert_close([found.b, found.a], [b, a], 1e-14, "lengths")
        for one, other in ((found.theta, theta), (found.alpha, alpha)):
            assert_close([np.cos(one), np.sin(one)], [np.cos(other), np.sin(other)], 1e-14, "angle")
        pose = rotation(0, alpha) @ shift(a, 0, b) @ rotation(2, theta)
        found = modified_geometry(pose)
        assert found is not None and found.gamma == found.epsilon == 0
        made = rotation(0, found.alpha) @ shift(found.a, 0, found.b) @ rotation(2, found.theta)
        assert_close(made, pose, 1e-14, "modified row")
        branch = rotation(2, 0.6) @ shift(0, 0, 0.3) @ pose
        found = modified_geometry(branch)
        assert found is not None
        made = rotation(2, found.gamma) @ shift(0, 0, found.epsilon) @ rotation(0, found.alpha)
        assert_close(made @ shift(found.a, 0, found.b) @ rotation(2, found.theta), branch, 1e-13, "branch")
    assert standard_geometry(rotation(0, 0.4) @ rotation(2, 0.3)) is None


def test_tables_of_the_library_are_those_of_their_files():
    """Return the rows of the Stanford arm as its file has them, and the forms of other mechanisms."""
    found = table(kt.load("stanford"))
    assert found["serial"] and [row["form"] for row in found["rows"]] == ["standard"] * 6
    first, fourth = found["rows"][0], found["rows"][3]
    assert (first["b"], first["alpha"], first["mass"], first["com"]) == (0.2, -np.pi / 2, 9.0, [0.0, 0.1, 0.0])
    assert (fourth["b"], fourth["com"], fourth["inertia"][:3]) == (0.6, [0.0, -0.1, 0.0], [0.001, 0.001, 0.0005])
    arm = table(kt.load("planar_3r"))
    assert arm["tool"] == {"a": 0.22, "alpha": 0.0} and [row["a"] for row in arm["rows"]] == [0.0, 0.3, 0.25]
    robot = table(kt.load("space_robot_3r"))
    assert [row["form"] for row in robot["rows"]] == ["placement", "modified", "modified", "modified"]
    assert {row["form"] for row in table(kt.load("kuka_lwr4"))["rows"]} == {"placement"}
    assert not table(kt.load("four_bar"))["serial"]


@pytest.mark.parametrize("kinds", TIERS)
def test_numbers_as_inputs_give_the_same_motion(kinds):
    """Compare functions with numbers as inputs with those of the mechanism, at its own and at other numbers."""
    arm = kt.load("planar_2r")
    live = live_mechanism(arm.mechanism, kinds)
    system = kt.System(live.mechanism, arm.report)
    values = np.array([p.value for p in live.mechanism.free_parameters])
    assert len(values) == sum(slot[-1] for slot in live.slots)
    q, qd, qdd = [0.4, -0.7], [0.3, 0.9], [-0.5, 0.2]
    tau = system.inverse_dynamics(q, qd, qdd, parameters=values)
    assert_close(tau, arm.inverse_dynamics(q, qd, qdd), 1e-14, "torques at the given numbers")
    at = next(
        sum(slot[-1] for slot in live.slots[:k])
        for k, slot in enumerate(live.slots)
        if slot[:3] == ["bodies", 1, "mass"]
    )
    values[at] *= 1.7
    rows = [{"joint": "revolute", "mass": b.mass, "com": b.com, "inertia": b.inertia} for b in arm.bodies]
    rows[1] |= {"a": 0.3, "mass": 1.7 * arm.bodies[1].mass}
    heavy = kt.from_dh(rows, convention="modified", gravity=(0, -9.81, 0))
    tau = system.inverse_dynamics(q, qd, qdd, parameters=values)
    assert_close(tau, heavy.inverse_dynamics(q, qd, qdd), 1e-14, "torques with another mass")


def test_the_text_of_a_live_mechanism_becomes_its_file():
    """Fill the names of numbers in, as the page does: the text is the mechanism, with its own parameters."""
    for name in ("stanford", "five_bar"):
        given = kt.load(name).mechanism
        live = live_mechanism(given, TIERS[0])
        text = live.toml()
        for p in reversed(live.mechanism.parameters):
            text = text.replace(f'"{p.name}"', repr(p.value)) if p.name.startswith(live.prefix) else text
        assert live.prefix not in text
        again = read_toml_text(text)[0]
        assert [p.name for p in again.parameters] == [p.name for p in given.parameters]
        assert again.fixed([p.value for p in again.free_parameters]).nv == given.nv
        q = np.linspace(0.2, 0.7, given.nq)
        report = kt.load(name).report
        one, other = (np.asarray(kt.System(m, report).poses(q)) for m in (again, given))
        assert_close(one, other, 1e-15, name)
