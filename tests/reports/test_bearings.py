"""Bearing loads: closed forms, independence of the choice of frames, joints without an axis."""

from __future__ import annotations

from dataclasses import replace

import numpy as np
import pytest

import everyday
import kinetree as kt
from kinetree.algebra.rotations import from_euler
from kinetree.reports.loads import bearing_loads
from loaded_runs import MASS, reaction, spinning
from tolerance import assert_close

ROTATED = [(0.0, 0.0, 0.0), (0.7, 1.9, -0.4), (2.1, 3.0, 0.3)]


@pytest.mark.parametrize("angles", ROTATED)
def test_a_rotating_mass_loads_its_bearing(angles):
    """Split the reaction of a rotating mass, with the body's frame rotated: the numbers stay the same."""
    run = spinning(73, angles=angles)
    n, f = reaction(run.t)
    (b,) = bearing_loads(run)
    scale = 1e-13 * np.abs(f).max()
    expected = {
        "radial": np.hypot(f[:, 0], f[:, 1]), "axial": np.abs(f[:, 2]), "force": np.linalg.norm(f, axis=-1),
        "bending": np.hypot(n[:, 0], n[:, 1]), "torsion": np.abs(n[:, 2]), "moment": np.linalg.norm(n, axis=-1),
    }  # fmt: skip
    for part, values in expected.items():
        assert_close(b.values[part], values, 10 * scale, part)
        assert_close(b.peaks[part].value, values.max(), 10 * scale, f"peak of {part}")
        assert b.peaks[part].value == b.values[part][int(np.argmin(np.abs(run.t - b.peaks[part].t)))]
    assert (b.name, b.sort, b.drives, b.shared) == ("hinge", "joint", ("torsion",), ())


@everyday.long
def test_loops_split_by_the_axis_in_frame_a():
    """Find the loads of a four-bar's loop in its table of loads, whichever frames the loop has."""
    arm = kt.load("four_bar")
    run = arm.cycle("crank", speed=6.0, samples=25)
    found = {b.name: b for b in bearing_loads(run)}
    wrench = arm.loads(run.q, run.qd, tau=run["tau"]).at("pin", axes="parent")
    assert_close(found["pin"].values["radial"], np.hypot(wrench[:, 3], wrench[:, 4]), 1e-12, "radial force of the pin")
    R = tuple(tuple(row) for row in np.array(from_euler("zxz", (0.3, 1.1, -0.7))).tolist())
    (pin,) = arm.mechanism.loops
    frames = {k: replace(getattr(pin, k), rotation=R) for k in ("placement_a", "placement_b")}
    turned = kt.System(replace(arm.mechanism, loops=(replace(pin, axis=R[2], **frames),)))
    again = {b.name: b for b in bearing_loads(turned.cycle("crank", speed=6.0, samples=25))}
    for name, part in (("pin", "radial"), ("crank", "radial"), ("crank", "torsion"), ("coupler", "radial")):
        scale = found[name].peaks[part].value
        assert_close(again[name].values[part], found[name].values[part], 1e-9 * scale, f"{part} of {name}")
    assert found["pin"].sort == "loop"
    assert found["pin"].drives == ("torsion",)
    assert set(found["pin"].shared) == {"force", "moment", "axial", "bending"}  # a planar mechanism in space


def test_joints_without_an_axis_have_the_whole_force():
    """Hang a body on a spherical joint, on a slide and free: total force, free directions, and no bearing."""

    def hanging(kind: str, nq: int, nv: int) -> kt.Trajectory:
        body = kt.Body("b", MASS, (0.1, 0.0, 0.2), (0.02, 0.02, 0.02, 0.0, 0.0, 0.0))
        system = kt.System(
            kt.build_mechanism(kind, [body], [kt.Joint("j", kind, kt.GROUND, "b", axis=(1.0, 0.0, 0.0))])
        )
        q = np.tile(system.neutral(), (2, 1))
        tau = system.inverse_dynamics(q, np.zeros((2, nv)), np.zeros((2, nv)))
        return kt.Trajectory(system, [0.0, 1.0], q, np.zeros((2, nv)), torque=tau, accelerations=np.zeros((2, nv)))

    (ball,) = bearing_loads(hanging("spherical", 4, 3))
    assert not ball.has_axis
    assert_close(ball.peaks["force"].value, MASS * 9.81, 1e-12, "weight")
    (slide,) = bearing_loads(hanging("prismatic", 1, 1))
    assert slide.drives == ("axial",)
    assert_close(
        [slide.peaks["radial"].value, slide.peaks["bending"].value], [MASS * 9.81, 0.1 * MASS * 9.81], 1e-12, "slide"
    )
    (plane,) = bearing_loads(hanging("planar", 3, 3))
    assert set(plane.drives) == {"radial", "torsion"}
    assert bearing_loads(hanging("free", 7, 6)) == ()


@everyday.long
def test_compliances_share_what_motion_does_not_determine():
    """Push a four-bar out of its plane: a stiff joint takes the share that the compliances give it."""
    arm = kt.load("four_bar")
    run = arm.cycle("crank", speed=2.0, samples=9, forces=kt.ExternalWrench("coupler", force=(0.0, 0.0, 5.0)))
    share = {"crank": 0.1, "output": 3.0}
    found = {b.name: b for b in bearing_loads(run, share)}
    wrenches = arm.loads(run.q, run.qd, tau=run["tau"], wrenches=run.wrenches, share=share)
    assert_close(found["crank"].values["axial"], np.abs(wrenches.at("crank")[:, 5]), 1e-12, "axial force of the crank")
    equal = {b.name: b for b in bearing_loads(run)}
    assert np.abs(found["crank"].values["axial"] - equal["crank"].values["axial"]).max() > 0.01


@everyday.long
def test_a_point_on_a_line_is_held_across_the_line():
    """Guide the end of a rod along a line: the reaction is perpendicular to it, though the rod's frame rotates."""
    inertia = (0.001, 0.01, 0.01, 0.0, 0.0, 0.0)
    bodies = [kt.Body("crank", 0.7, (0.1, 0.0, 0.0), inertia), kt.Body("rod", 1.1, (0.2, 0.01, 0.0), inertia)]
    joints = [
        kt.Joint("crank", "revolute", kt.GROUND, "crank"),
        kt.Joint("knee", "revolute", "crank", "rod", kt.Placement((0.2, 0.0, 0.0))),
    ]
    line = kt.Loop(
        "line", "point_on_line", kt.GROUND, "rod", placement_b=kt.Placement((0.5, 0.0, 0.0)), axis=(1.0, 0.0, 0.0)
    )
    system = kt.System(kt.build_mechanism("guided", bodies, joints, loops=[line], gravity=(1.0, -9.0, 0.0)))
    found = {b.name: b for b in bearing_loads(system.cycle("crank", speed=5.0, samples=25))}["line"]
    assert found.peaks["force"].value > 1.0
    assert_close(found.values["axial"], np.zeros(25), 1e-12 * found.peaks["force"].value, "force along the line")
    assert_close(
        found.values["radial"], found.values["force"], 1e-12 * found.peaks["force"].value, "force across the line"
    )
