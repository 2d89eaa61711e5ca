"""The built-in closed mechanisms: they close at their guesses, move as in their sources, and have their numbers."""

# ruff: noqa: E741 - I is the papers' letter

from __future__ import annotations

import math
from dataclasses import replace

import numpy as np
import pytest
from scipy.optimize import brentq

import everyday
import flexible_mechanisms
import kinetree as kt
from interpreted import compute
from kinetree import library
from kinetree.formats.toml import read_toml
from kinetree.library.chains import n_four_bars_mechanism
from kinetree.model.mechanism import resolve_parts
from pose_products import placed
from tolerance import assert_close

MOBILITY = {
    "charmie_complete": 21,
    "charmie_torso": 2,
    "crank_rocker": 1,
    "five_bar": 2,
    "four_bar": 1,
    "gear_train": 1,
    "hoeken": 1,
    "parallelogram": 1,
    "press": 1,
    "rack_steering": 1,
    "slider_crank": 1,
    "spatial_slider_crank": 1,
    "stewart": 6,
    "three_rrr": 3,
}
"""Degrees of freedom, with the loops closed."""


def load(name):
    """Return a built-in mechanism with the values of its parameters, of which none is free."""
    mechanism = read_toml(library.path(name))[0]
    return replace(resolve_parts(mechanism, mechanism.values()), parameters=())


def assembled(mechanism) -> np.ndarray:
    """Return the coordinates of the guess; those of joints not named in it are zero."""
    guess = dict(mechanism.guess)
    moving = [j.name for j in mechanism.joints if j.kind != "fixed"]
    return np.concatenate([np.array(guess.get(name, (0.0,))) for name in moving])


def gap(mechanism, q) -> np.ndarray:
    """Return the gaps of the loops and couplings, from the poses of the frames they join [m, 1]."""
    T = {b.name: pose for b, pose in zip(mechanism.bodies, compute(mechanism, "poses", q), strict=True)}
    T["ground"] = np.eye(4)
    out = []
    for loop in mechanism.loops:
        a, b = T[loop.body_a] @ placed(loop.placement_a), T[loop.body_b] @ placed(loop.placement_b)
        apart, along = a[:3, 3] - b[:3, 3], a[:3, :3] @ loop.axis
        if loop.kind in ("point_on_line", "prismatic"):
            apart = np.cross(along, apart)
        elif loop.kind == "point_on_plane":
            apart = np.array([along @ apart])
        out.append(apart)
        if loop.kind == "revolute":
            out.append(np.cross(along, b[:3, :3] @ loop.axis))
            assert out[-1] @ out[-1] < 1.0 and along @ (b[:3, :3] @ loop.axis) > 0
        elif loop.kind == "prismatic":
            out.append((a[:3, :3].T @ b[:3, :3] - np.eye(3)).ravel())
        else:
            assert loop.kind in ("spherical", "point_on_line", "point_on_plane")
    at = {
        j.name: q[own.start] for j, own in zip(mechanism.joints, mechanism.q_slices, strict=True) if j.kind != "fixed"
    }
    for c in mechanism.couplings:
        out.append([at[c.joint] - c.offset - sum(ratio * at[name] for name, ratio in c.terms)])
    return np.concatenate(out)


def jacobian(mechanism, q) -> np.ndarray:
    """Return the derivatives of the gap with respect to the velocities, by central differences."""
    h = 1e-6
    steps = [compute(mechanism, "integrate", q, h * e) for e in (*np.eye(mechanism.nv), *-np.eye(mechanism.nv))]
    gaps = np.array([gap(mechanism, step) for step in steps])
    return (gaps[: mechanism.nv] - gaps[mechanism.nv :]).T / (2 * h)


def closed_at(mechanism, q, lead: dict[int, float]) -> np.ndarray:
    """Return the coordinates near q that close the loops with some coordinates given, by Newton's method."""
    q = np.array(q)
    q[list(lead)] = list(lead.values())
    rest = [k for k in range(len(q)) if k not in lead]
    for _ in range(20):
        q[rest] -= np.linalg.lstsq(jacobian(mechanism, q)[:, rest], gap(mechanism, q), rcond=1e-9)[0]
    assert np.abs(gap(mechanism, q)).max() < 1e-12
    return q


def test_every_closed_mechanism_is_here():
    """Find each mechanism with loops or couplings here, except those that roll and those of flexible bodies."""
    names = [name for name in library.names() if name not in (*flexible_mechanisms.LIBRARY, "cam_follower")]
    assert [name for name in names if load(name).closures and not load(name).rolls] == list(MOBILITY)


@pytest.mark.parametrize("name", everyday.seldom(MOBILITY, ["charmie_complete"]))
def test_loops_are_closed_at_the_guess(name):
    """Close the loops at the guess to rounding, and count the remaining degrees of freedom."""
    mechanism = load(name)
    q = assembled(mechanism)
    assert len(q) == mechanism.nq
    assert_close(gap(mechanism, q), 0 * gap(mechanism, q), 2e-15, "gap")
    values = np.linalg.svd(jacobian(mechanism, q), compute_uv=False)
    rank = int((values > 1e-6 * values[0]).sum())
    assert mechanism.nv - rank == MOBILITY[name]


@pytest.mark.parametrize(
    ("name", "lengths", "masses"),
    [
        ("four_bar", (0.038, 0.1152, 0.1152, 0.0895), (1.5, 3.0, 5.0)),
        ("crank_rocker", (0.05, 0.13, 0.1, 0.15), (1.5, 5.0, 3.0)),
    ],
)
def test_four_bars_have_the_lengths_of_their_sources(name, lengths, masses):
    """Measure crank, output link, coupler and base of the assembled linkage, and weigh its links."""
    mechanism = load(name)
    T = compute(mechanism, "poses", assembled(mechanism))
    (loop,) = mechanism.loops
    pin = (T[0] @ placed(loop.placement_a))[:3, 3]
    places = [T[k][:3, 3] for k in range(3)]  # of crank, output link and coupler
    ends = [(places[0], pin), (places[1], places[2]), (places[2], pin), (places[0], places[1])]
    assert_close([np.linalg.norm(b - a) for a, b in ends], lengths, 1e-16, "lengths")
    assert tuple(b.mass for b in mechanism.bodies) == masses
    for body, length in zip(mechanism.bodies, lengths, strict=False):
        assert_close(body.com, (length / 2, 0, 0), 1e-17, "center of mass")
        assert_close(body.inertia[2], body.mass * length**2 / 12, 1e-16, "inertia")


def test_four_bar_starts_as_the_source_does():
    """Start near the initial state of the source, with output and coupler velocities that keep the loop closed."""
    mechanism = load("four_bar")
    assert_close(assembled(mechanism), (0, 0.9844, 4.3144), 5e-5, "four digits")
    qd = np.array([4.7124, 1.4045, 0.0])  # as in the source
    J = jacobian(mechanism, assembled(mechanism))
    assert np.abs(J @ qd).max() < 2e-4 * np.abs(J).max() * 4.7, "to the printed digits"


@everyday.long
@pytest.mark.parametrize(
    ("name", "crank", "tolerance"), everyday.some([("hoeken", 0.04, 0.003), ("four_bar", 0.038, 0.003)])
)
def test_tracers_move_nearly_straight(name, crank, tolerance):
    """Rotate the crank by 180 degrees: the tracer moves four cranks along x, and hardly along y."""
    mechanism = load(name)
    start = assembled(mechanism)  # the crank points away from the other pivot
    places = []
    for way in (-1.0, 1.0):
        q = start
        for angle in np.linspace(0, way * math.pi / 2, 13):
            q = closed_at(mechanism, q, {0: start[0] + angle})
            places.append(compute(mechanism, "pose", q, frame="tracer")[:2, 3])
    x, y = np.transpose(places)
    assert np.ptp(x) > 3.8 * crank
    assert np.ptp(y) < tolerance * np.ptp(x)
    if name == "hoeken":
        assert_close(y[0], 4 * crank, 1e-15, "height of the line")


def test_slider_crank_is_stretched():
    """Stretch crank and rod along the slide, 2 m, as in the source; the slider follows the crank."""
    mechanism = load("slider_crank")
    q = assembled(mechanism)
    assert_close(q, (-math.pi / 2, 0, 2), 0, "start")
    assert_close(compute(mechanism, "pose", q, frame="slider")[:3, 3], (0, -2, 0), 1e-15, "slider")
    q = closed_at(mechanism, q, {0: -math.pi / 3})
    assert_close(q, (-math.pi / 3, -math.pi / 3, math.sqrt(3)), 1e-12, "an equilateral half")


def test_spatial_slider_crank_is_the_benchmark():
    """Find lengths, positions and initial velocities of the benchmark."""
    mechanism = load("spatial_slider_crank")
    q = assembled(mechanism)
    crank, slider, rod = (compute(mechanism, "pose", q, frame=name) for name in ("crank", "slider", "rod"))
    assert_close(crank[:3, 3], (0, 0.1, 0.12), 1e-16, "A")
    assert_close(slider[:3, 3], (0.2, 0, 0), 1e-16, "C")
    pin = crank @ placed(mechanism.loops[0].placement_a)
    assert_close(pin[:3, 3], (0, 0.1, 0.2), 1e-16, "B")
    assert_close(np.linalg.norm(pin[:3, 3] - slider[:3, 3]), 0.3, 1e-15, "rod")
    J = jacobian(mechanism, q)
    qd = np.array([6.0, *np.linalg.lstsq(-J[:, 1:], 6.0 * J[:, 0])[0]])
    t = compute(mechanism, "twist", q, qd, frame="rod", axes="world")
    assert_close(t[:3], (1.92, -0.96, 0.48), 1e-8, "angular velocity of the rod")
    assert_close(t[3:], (0.24, 0, 0), 1e-9, "velocity of the slider")
    assert_close(t[3:] + np.cross(t[:3], rod[:3, :3] @ (-0.15, 0, 0)), (0.12, -0.24, 0), 1e-8, "rod's center of mass")


def test_three_rrr_is_near_its_source():
    """Start within a hundredth of the source's initial state, with its pivots and the size of its platform."""
    mechanism = load("three_rrr")
    q = assembled(mechanism)
    assert_close(q, (1.0467, 5.4206, -2.5357, 4.1883, -2.0939, 5.7637, -0.9869), 0.01, "start")
    T = {b.name: pose[:3, 3] for b, pose in zip(mechanism.bodies, compute(mechanism, "poses", q), strict=True)}
    assert [tuple(T[f"link{k}"]) for k in (1, 4, 6)] == [(0, 0, 0), (1, 0, 0), (0.5, 0.866, 0)]
    pins = [compute(mechanism, "pose", q, frame=f"link{k}") @ (0.6, 0, 0, 1) for k in (5, 7)]
    triangle = [T["link3"], *(pin[:3] for pin in pins)]
    assert_close([np.linalg.norm(triangle[k] - triangle[k - 1]) for k in range(3)], [0.4] * 3, 1e-14, "platform")
    centre = compute(mechanism, "pose", q, frame="platform")[:3, 3]
    assert_close(centre, np.mean(triangle, axis=0), 1e-14, "centre")


def test_stewart_legs_are_alike():
    """Find six legs of one length, from pairs on the base's circle to pairs on the platform's."""
    mechanism = load("stewart")
    q = assembled(mechanism)
    T = {b.name: pose[:3, 3] for b, pose in zip(mechanism.bodies, compute(mechanism, "poses", q), strict=True)}
    feet, tops = (np.array([T[f"{part}{k}"] for k in range(1, 7)]) for part in ("cylinder", "rod"))
    assert_close(np.linalg.norm(feet, axis=1), [0.5] * 6, 1e-15, "base")
    assert_close(np.linalg.norm(tops - (0, 0, 0.7), axis=1), [0.3] * 6, 1e-15, "platform")
    assert_close(np.linalg.norm(tops - feet, axis=1), [0.7663516827720258] * 6, 1e-14, "legs")


def test_gear_train_counts_teeth():
    """Rotate the input and find the other shafts and the rack by their teeth, meshing at the pitch circles."""
    mechanism = load("gear_train")
    (stage1,), (stage2,), (rack,) = (c.terms for c in mechanism.couplings)
    assert_close((stage1[1], stage2[1], rack[1]), (-1 / 3, -1 / 3, 0.054), 1e-17, "ratios")
    q = [1.5, -0.5, 1.5 / 9, 0.009]
    assert_close(gap(mechanism, np.array(q)), np.zeros(3), 1e-17, "gap")
    speeds = np.array(q) / 1.5
    contact = {"input": ("intermediate", 0.02), "intermediate": ("output", 0.018)}
    for name, (other, radius) in contact.items():
        poses, twists = ({} for _ in range(2))
        for part in (name, other):
            poses[part] = compute(mechanism, "pose", q, frame=part)[:3, 3]
            twists[part] = compute(mechanism, "twist", q, speeds, frame=part, axes="world")
        point = poses[name] + (radius, 0, 0)
        both = [twists[p][3:] + np.cross(twists[p][:3], point - poses[p]) for p in (name, other)]
        assert_close(both[0], both[1], 1e-17, "speed of the teeth")
    output = compute(mechanism, "twist", q, speeds, frame="output", axes="world")
    assert_close(np.cross(output[:3], (0, 0, 0.054))[0], speeds[3], 1e-17, "rack")


@pytest.mark.parametrize("n", [1, 2, 5])
def test_n_four_bars_are_the_benchmark(n):
    """Reduce the row of four-bars to its one angle: inertia and gravity of the benchmark's exact equation."""
    system = kt.n_four_bars(n)
    mechanism = system.mechanism
    assert (len(mechanism.bodies), len(mechanism.loops)) == (2 * n + 1, n)
    S = np.array([1.0 if j.name.startswith("rocker") else -1.0 for j in mechanism.joints])
    for angle in (0.0, 0.4, -1.1, 2.0):
        q = angle * S
        assert_close(gap(mechanism, q), np.zeros(6 * n), 4e-15, "loops stay closed")
        I, g = compute(mechanism, "inertia_matrix", q), compute(mechanism, "gravity_torque", q)
        assert_close(S @ I @ S, (n + 1) / 3 + n, 1e-13 * n, "inertia")
        phi = math.pi / 2 + angle
        assert_close(S @ g, 9.81 * ((n + 1) / 2 + n) * math.cos(phi), 2e-13 * n, "gravity")
    start = -S  # the rockers at -1 rad/s
    t = compute(mechanism, "twist", system.neutral(), start, frame="B0", axes="world")
    assert_close(t[3:], (1, 0, 0), 1e-15, "B0 starts at 1 m/s along x")
    assert_close(compute(mechanism, "pose", 0 * S, frame=f"B{n}")[:3, 3], (n, 1, 0), 1e-15, "the last one")


def test_n_four_bars_take_sizes_and_refuse_none():
    """Give other lengths, masses and gravity; reject zero four-bars, and halves."""
    mechanism = n_four_bars_mechanism(3, length=0.7, mass=2.5, gravity=(0.1, 0, -3.7), name="row")
    assert (mechanism.name, mechanism.gravity) == ("row", (0.1, 0.0, -3.7))
    assert_close([b.inertia[2] for b in mechanism.bodies], [2.5 * 0.49 / 12] * 7, 1e-16, "inertia")
    assert_close(gap(mechanism, np.zeros(7)), np.zeros(18), 1e-15, "gap")
    for n, message in ((0, "n is 0; give 1 or more four-bars"), (1.5, "n is 1.5; give a whole number")):
        with pytest.raises(kt.InputError, match=message):
            kt.n_four_bars(n)  # type: ignore[arg-type]
    with pytest.raises(kt.InputError, match="the length is nan; expected more than 0"):
        kt.n_four_bars(2, length=math.nan)
    with pytest.raises(kt.InputError, match="the mass is 0; expected more than 0"):
        kt.n_four_bars(2, mass=0)
    with pytest.raises(kt.ModelError, match="gravity: 9.81 is not a list of numbers"):
        kt.n_four_bars(2, gravity=9.81)  # type: ignore[arg-type]


@pytest.mark.parametrize("turn", [-6.0, -2.5, 0.0, 4.0])
def test_rack_steering_keeps_the_length_of_its_rods(turn):
    """Turn the pinion, and find the angles of both knuckles from the distance of the rod's ends alone."""
    steering = kt.load("rack_steering")
    q = steering.assemble(hold={"pinion": turn})
    angles = {j.name: q[own] for j, own in zip(steering.joints, steering.mechanism.q_slices, strict=True)}
    for side, sign in (("left", 1.0), ("right", -1.0)):
        axis = np.array(steering.mechanism.joint(f"knuckle_{side}").axis) / np.linalg.norm(
            steering.mechanism.joint(f"knuckle_{side}").axis
        )
        arm, end = np.array([-0.12, -sign * 0.045, 0.0]), np.array([-0.14, 0.0075 * turn + sign * 0.335, 0.02])

        def gap(angle, axis=axis, arm=arm, end=end, sign=sign):
            c, s = np.cos(angle), np.sin(angle)
            ball = c * arm + s * np.cross(axis, arm) + (1 - c) * axis * (axis @ arm)
            return np.linalg.norm(ball + np.array([0.0, sign * 0.65, 0.0]) - end) - 0.272

        expected = brentq(gap, -0.9, 0.9, xtol=1e-15)
        assert_close(angles[f"knuckle_{side}"], [expected], 1e-11, "knuckle")
    if turn:  # the inner wheel turns further
        inner, outer = ("left", "right") if turn < 0 else ("right", "left")
        assert abs(angles[f"knuckle_{inner}"][0]) > abs(angles[f"knuckle_{outer}"][0])


def test_the_cam_lifts_its_follower_by_a_cosine():
    """Compare lift, acceleration, contact force and torque of the library's cam with their closed forms."""
    cam, rate = kt.load("cam_follower"), 30.0
    run = cam.cycle("cam", speed=rate, samples=61)
    angle = run.q[:, 0]
    y, slope, bend = 0.05 - 0.01 * np.cos(angle), 0.01 * np.sin(angle), 0.01 * np.cos(angle)
    assert_close(run.q[:, 1], y, 1e-14, "lift")
    assert_close(run.qd[:, 1], slope * rate, 1e-13, "velocity")
    assert_close(run["qdd"][:, 1], bend * rate**2, 1e-11, "acceleration")
    upward = 0.25 * (bend * rate**2 + 9.81) + 2000 * (y - 0.03)
    assert_close(run["multipliers.contact"].ravel(), upward * np.hypot(1.0, slope / y), 1e-11, "force along the normal")
    assert upward.min() > 20.0, "the follower stays on the cam"
    assert_close(run["tau"][:, 0], upward * slope, 1e-12, "torque")


def test_the_roller_of_the_fuel_pump_rolls():
    """Compare spin, contact force, friction and torque with closed forms of a roller on an eccentric circle."""
    pump, rate = kt.load("fuel_pump"), 100.0
    R, e, r, spin_inertia = 0.02, 0.005, 0.008, 8e-7
    run = pump.cycle("camshaft", speed=rate, revolutions=2, samples=81)  # after which the roller is where it was
    angle = run.q[:, 0]
    s, c = np.sin(angle), np.cos(angle)
    root = np.sqrt((R + r) ** 2 - (e * c) ** 2)  # the height of the roller above the cam's center
    slide = e * e * s * c / root
    y, slope, bend = e * s + root, e * c + slide, -e * s + (e * e * (c * c - s * s) - slide**2) / root
    tilt = -e * s / root  # the rate of the line from the cam's center to the roller, per angle of the shaft
    spin, change = tilt * (1 + R / r) - R / r, (1 + R / r) * (e * s * slide / root - e * c) / root
    assert_close(run.q[:, 1], y, 1e-13, "lift")
    assert_close(run.qd[:, 2], spin * rate, 1e-9 * R / r, "spin of the roller")
    assert_close(run["qdd"][:, 2], change * rate**2, 1e-8, "acceleration of the spin")
    upward = 0.175 * (bend * rate**2 + 9.81) + 15000 * (y - 0.013) + 2e7 * np.pi * 0.004**2
    friction = -spin_inertia * change * rate**2 / r
    normal = (upward + friction * e * c / (R + r)) / (root / (R + r))
    assert_close(run["multipliers.contact"], np.stack([normal, friction], axis=1), 1e-12 * normal.max(), "contact")
    torque = upward * slope + spin_inertia * change * rate**2 * spin + 1.2 * 9.81 * 0.001 * c
    assert_close(run["tau"][:, 0], torque, 1e-11, "torque of the shaft")
    assert pump.doctor().mobility == 1 and 0.0 < np.abs(friction).max() < 0.01 * normal.min()
