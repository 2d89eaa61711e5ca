"""Cams, curved slots, gears of variable ratio: closed forms, explicit multipliers, and other mechanisms."""

from __future__ import annotations

import math

import numpy as np
import pytest

import kinetree as kt
from closed_mechanisms import closed, motion
from kinetree.errors import ModelError
from kinetree.formulations.closed_system import closed_equations
from kinetree.loops import laws
from strategies import random_mechanism
from tolerance import assert_close

R, E, ROLLER, ASIDE, MASS, G = 0.11, 0.04, 0.025, 0.03, 0.43, 9.81
TIGHT = {"method": "dop853", "rtol": 1e-12, "atol": 1e-13}


def cam(kind: str, curve: kt.Curve, **more) -> kt.System:
    """Return a cam on a shaft along z and a follower along y, whose line of motion misses the shaft by ASIDE."""
    bodies = [
        kt.Body("cam", 1.2, (0.01, 0.02, 0.0), (0.01, 0.01, 0.02, 0.0, 0.0, 0.0)),
        kt.Body("follower", MASS, inertia=(1e-3, 1e-3, 1e-3, 0.0, 0.0, 0.0)),
    ]
    joints = [
        kt.Joint("cam", "revolute", kt.GROUND, "cam"),
        kt.Joint("lift", "prismatic", kt.GROUND, "follower", kt.Placement((ASIDE, 0.0, 0.0)), axis="y"),
    ]
    contact = kt.Loop("contact", kind, "cam", "follower", curve=curve, **more)
    return kt.System(
        kt.build_mechanism("cam", bodies, joints, loops=[contact], gravity=(0.0, -G, 0.0), guess={"lift": 0.2})
    )


def eccentric(kind: str, angle):
    """Return the lift of the follower of an eccentric circle, with its first two derivatives by the angle."""
    s, c = E * np.sin(angle), E * np.cos(angle)
    if kind == "face_on_curve":
        return s + R, c, -s
    reach = R + (ROLLER if kind == "roller_on_curve" else 0.0)
    x, root = ASIDE - c, np.sqrt(reach**2 - (ASIDE - c) ** 2)
    slope = -x * s / root
    return s + root, c + slope, -s - (s * s + x * c + slope**2) / root


@pytest.mark.parametrize(
    ("kind", "more"),
    [
        pytest.param("point_on_curve", {}, marks=pytest.mark.slow),
        ("roller_on_curve", {"radius": ROLLER}),
        pytest.param("face_on_curve", {"axis2": "y"}, marks=pytest.mark.slow),
    ],
)
def test_an_eccentric_circle_lifts_its_follower(kind, more):
    """Compare lift, velocity, acceleration and contact force of three followers with their closed forms."""
    system, rate = cam(kind, kt.Curve.circle(R, (E, 0.0)), **more), 3.7
    for angle in np.linspace(0.0, 6.0, 7):
        lift, slope, bend = eccentric(kind, angle)
        q = system.assemble(hold={"cam": angle})
        assert_close(q[1], lift, 1e-12, "lift")
        qd = system.consistent_speeds(q, {"cam": rate})
        qdd = system.consistent_accelerations(q, qd, {"cam": 0.9})
        assert_close(qd[1], slope * rate, 1e-12, "velocity")
        assert_close(qdd[1], bend * rate**2 + slope * 0.9, 1e-11, "acceleration")
        found = system.actuation(q, qd, qdd, "cam")
        across = 1.0 if kind == "face_on_curve" else (lift - E * math.sin(angle)) / (R + more.get("radius", 0.0))
        force = MASS * (qdd[1] + G) / across
        assert_close(found.multipliers, [force], 1e-11 * abs(force), "force along the common normal")


@pytest.mark.slow
def test_a_spline_through_points_converges_to_the_curve():
    """Reduce the error of the lift with the fourth power of the distance of the points of a circle."""
    angles, errors = np.linspace(0.0, 6.0, 9), []
    for count in (12, 24, 48):
        s = 2 * np.pi * np.arange(count) / count
        points = tuple(zip(E + R * np.cos(s), R * np.sin(s), strict=True))
        system = cam("roller_on_curve", kt.Curve(points=points), radius=ROLLER)
        found = [system.assemble(hold={"cam": a})[1] for a in angles]
        errors.append(np.abs(found - eccentric("roller_on_curve", angles)[0]).max())
    orders = np.log2(np.array(errors[:-1]) / errors[1:])
    assert (orders > 3.5).all() and errors[-1] < 1e-6, (orders, errors)


def ellipses() -> tuple[kt.System, float, float]:
    """Return two equal ellipses that rotate about foci at the distance of their long axes, and touch."""
    a, e = 0.2, 0.45
    b, far = a * math.sqrt(1 - e * e), a * e
    bodies = [kt.Body(n, 1.0, inertia=(0.01, 0.01, 0.01, 0.0, 0.0, 0.0)) for n in "ab"]
    joints = [
        kt.Joint("a", "revolute", kt.GROUND, "a"),
        kt.Joint("b", "revolute", kt.GROUND, "b", kt.Placement((2 * a, 0.0, 0.0))),
    ]
    left, right = kt.Curve.ellipse(a, b, (-far, 0.0)), kt.Curve.ellipse(a, b, (-far, 0.0))
    loop = kt.Loop("teeth", "curve_on_curve", "a", "b", curve=left, curve_b=right)
    return kt.System(kt.build_mechanism("ellipses", bodies, joints, loops=[loop])), a, e


def meshed(angle, e: float):
    """Return the angle b of the second elliptical gear: tan(b / 2) = -(1 - e) / (1 + e) tan(a / 2)."""
    turns = np.round(angle / (2 * np.pi))
    rest = angle - 2 * np.pi * turns
    return -2 * np.pi * turns - 2 * np.arctan((1 - e) / (1 + e) * np.tan(rest / 2))


@pytest.mark.slow
def test_elliptical_gears_touch_along_their_closed_form():
    """Find two ellipses in contact at the angles of elliptical gears, and the same rates."""
    system, a, e = ellipses()
    for angle in np.linspace(-2.9, 2.9, 8):
        q = np.array([angle, meshed(angle, e)])
        assert_close(system.closure_residual(q), [0.0], 1e-12 * a, "gap")
        h = 1e-4
        near = meshed(angle + h * np.array([-2, -1, 1, 2]), e)
        slope = (8 * (near[2] - near[1]) - (near[3] - near[0])) / (12 * h)
        qd = system.consistent_speeds(q, {"a": 1.0})
        assert_close(qd[1], slope, 1e-9, "ratio of the gears")


def geared(law: kt.Law) -> kt.System:
    """Return two shafts, the second of which follows the first by a law, against its direction."""
    bodies = [kt.Body(n, 1.0, inertia=(0.02, 0.02, 0.013 + 0.02 * k, 0.0, 0.0, 0.0)) for k, n in enumerate("ab")]
    joints = [kt.Joint(n, "revolute", kt.GROUND, n) for n in "ab"]
    gear = kt.Coupling("gear", "b", (("a", -1.0),), 0.3, law)
    return kt.System(kt.build_mechanism("gears", bodies, joints, couplings=[gear]))


@pytest.mark.slow
def test_gears_of_variable_ratio_follow_their_law():
    """Compare a law of sines, and its spline, with the closed form of elliptical gears.

    The closed form is u + 2 sum of (-e)^n / n sin(n u), with the eccentricity e.
    """
    e = 0.45
    exact = geared(kt.Law(slope=1.0, sines=tuple(2 * (-e) ** n / n for n in range(1, 46))))
    angles = np.linspace(-9.0, 9.0, 25)
    found = np.array([exact.assemble(hold={"a": x})[1] for x in angles])
    assert_close(found, 0.3 + meshed(angles, e), 1e-12, "law of sines")
    u = np.linspace(0.0, 2 * np.pi, 73)
    spline = geared(kt.Law(points=tuple(zip(u, -meshed(u, e), strict=True)), periodic=True))
    found = np.array([spline.assemble(hold={"a": x})[1] for x in angles])
    assert_close(found, 0.3 + meshed(angles, e), 5e-6, "periodic spline")
    run = kt.simulate(exact, [0.0, 0.3], exact.consistent_speeds([0.0, 0.3], {"a": 2.0}), duration=4.0, **TIGHT)
    assert_close(run.q[:, 1], 0.3 + meshed(run.q[:, 0], e), 1e-11, "along a run")
    assert_close(run.energy_error, 0.0, 1e-10, "energy")


@pytest.mark.parametrize(
    "law",
    [
        kt.Law(polynomial=(0.3, -0.2, 0.7, 0.1)),
        kt.Law(slope=0.4, cosines=(0.1, 0.3), sines=(0.2, -0.5)),
        kt.Law(points=((0.0, 0.1), (0.7, 0.5), (1.3, -0.2), (2.0, 0.4))),
        kt.Law(points=((0.0, 0.1), (0.7, 0.5), (1.3, -0.2), (2.0, 0.4)), periodic=True),
    ],
)
def test_laws_have_the_derivatives_of_their_values(law):
    """Compare slope and curvature of a law with differences, within its points and beyond."""
    h = 1e-4
    for u in (-3.1, -0.2, 0.33, 0.98, 1.87, 5.21):
        near = np.array([laws.values(law, u + k * h)[:2] for k in (-2, -1, 1, 2)])
        f = laws.values(law, u)
        assert_close(f[1:], (8 * (near[2] - near[1]) - (near[3] - near[0])) / (12 * h), 1e-9, "derivatives")
    if law.points:
        values = [laws.values(law, u)[0] for u, _ in law.points]
        assert_close(values, [f for _, f in law.points], 1e-14, "points")
    if law.periodic:
        assert_close(laws.values(law, 6.4)[0], laws.values(law, 0.4)[0] + 3 * 0.3, 1e-13, "three periods later")


@pytest.mark.slow
def test_a_pin_in_a_circular_slot_is_a_pendulum():
    """Compare a block whose pin slides in a circular slot with the same block on a pivot at its center."""
    length = 0.31
    body = [kt.Body("bob", MASS, inertia=(1e-3, 1e-3, 1.5e-3, 0.0, 0.0, 0.0))]
    slot = kt.Loop("slot", "point_on_curve", kt.GROUND, "bob", curve=kt.Curve.circle(length))
    guided = kt.System(kt.build_mechanism(
        "slot", body, [kt.Joint("base", "planar", kt.GROUND, "bob")], loops=[slot], gravity=(0.0, -G, 0.0),
        guess={"base": (length, 0.0, 0.0)},
    ))  # fmt: skip
    run = kt.simulate(guided, guided.assemble(), duration=2.0, **TIGHT)
    swung = [kt.Body("bob", MASS, (length, 0.0, 0.0))]
    pendulum = kt.System(kt.build_mechanism(
        "pendulum", swung, [kt.Joint("pivot", "revolute", kt.GROUND, "bob")], gravity=(0.0, -G, 0.0)
    ))  # fmt: skip
    other = kt.simulate(pendulum, [0.0], times=run.t, **TIGHT)
    circle = length * np.stack([np.cos(other.q[:, 0]), np.sin(other.q[:, 0])], axis=1)
    assert_close(run.q[:, :2], circle, 1e-9, "path")
    assert_close(run.energy_error, 0.0, 1e-10, "energy")


@pytest.mark.slow
def test_a_bead_on_a_wire_is_pushed_by_its_curvature():
    """Compare the force on a bead in a curved slot with m (v^2 / radius + g cos(slope)), and its acceleration."""
    x = np.linspace(-1.0, 1.0, 21)
    curve = kt.Curve(points=tuple(zip(x, 0.4 * x**2 - 0.2 * x**3, strict=True)), closed=False)
    slot = kt.Loop("wire", "point_on_curve", kt.GROUND, "bead", curve=curve)
    bead = kt.System(kt.build_mechanism(
        "bead", [kt.Body("bead", MASS, inertia=(1e-3, 1e-3, 1e-3, 0.0, 0.0, 0.0))],
        [kt.Joint("base", "planar", kt.GROUND, "bead")], loops=[slot], gravity=(0.0, -G, 0.0),
    ))  # fmt: skip
    q = np.array([0.3, 0.4 * 0.3**2 - 0.2 * 0.3**3, 0.2])  # a point of the curve
    slope, bend = 0.8 * 0.3 - 0.6 * 0.3**2, 0.8 - 1.2 * 0.3
    speed, rise = 1.3, math.hypot(1.0, slope)
    qd = bead.consistent_speeds(q, {"base.x": speed / rise, "base.angle": 0.0})
    force = MASS * (speed**2 * bend / rise**3 + G / rise)
    assert_close(bead.multipliers(q, qd, np.zeros(3)), [-force], 2e-4 * force, "force, to the spline's curvature")
    along = bead.forward_dynamics(q, qd, np.zeros(3))
    pushed = -G * slope / rise
    assert_close((along[0] + slope * along[1]) / rise, pushed, 1e-4, "acceleration along the wire")
    run = kt.simulate(bead, q, qd, duration=1.5, **TIGHT)
    assert_close(run.energy_error, 0.0, 1e-8, "energy")
    assert_close(bead.closure_residual(run.q), np.zeros((len(run.t), 1)), 1e-12, "gap")


def test_a_roller_rolls_down_an_ellipse():
    """Let a free disc roll inside a bowl: it keeps its energy, its contact, and a still point at the contact."""
    bowl = kt.Curve(cosines=((0.0, 0.0), (0.5, 0.0)), sines=((0.0, -0.3),))  # clockwise: the outside is within
    disc = kt.Body("disc", 0.7, inertia=(1e-3, 1e-3, 2e-3, 0, 0, 0))
    roll = kt.Loop("roll", "rolling_on_curve", kt.GROUND, "disc", curve=bowl, radius=0.06)
    planar = kt.Joint("disc", "planar", kt.GROUND, "disc")
    made = kt.build_mechanism(
        "bowl", [disc], [planar], loops=[roll], gravity=(0.0, -G, 0.0), guess={"disc": (0.3, -0.15, 0.0)}
    )
    system = kt.System(made)
    q = system.assemble()
    run = kt.simulate(system, q, np.zeros(3), duration=1.5, **TIGHT)
    assert_close(run.energy_error, 0.0, 1e-9, "energy")
    assert np.ptp(run.q[:, 0]) > 0.5 and np.abs(run.qd[:, 2]).max() > 5.0, "it rolls to the other side"
    assert_close(system.closure_residual(run.q)[:, 0], np.zeros(len(run.t)), 1e-11, "contact")
    speed = np.hypot(run.qd[:, 0], run.qd[:, 1])
    assert_close(np.abs(run.qd[:, 2]) * 0.06, speed, 1e-9, "speed of the center of a rolling disc")


@pytest.mark.slow
@pytest.mark.parametrize(
    "kind", ["point_on_curve", "roller_on_curve", "rolling_on_curve", "face_on_curve", "curve_on_curve"]
)
def test_random_trees_with_cams_agree_with_dense_matrices(kind):
    """Compare accelerations with those of dense equations, and the power of the contact with zero."""
    tree = random_mechanism(("revolute", "prismatic", "spherical", "revolute"), (-1, 0, -1, 2), 7)
    mechanism, q = closed(tree, [(kind, tree.bodies[0].name, tree.bodies[-1].name)], 5)
    system = kt.System(mechanism)
    qd, _ = motion(mechanism, q, 1)
    tau = np.random.default_rng(2).normal(size=system.nv)
    qdd = system.forward_dynamics(q, qd, tau)
    expected = closed_equations(mechanism, q, qd).acceleration(tau)
    assert_close(qdd, expected, 1e-9 * max(1.0, np.abs(expected).max()), "accelerations")
    force = system.multipliers(q, qd, tau)
    assert_close(force @ (system.closure_jacobian(q) @ qd), 0.0, 1e-10 * max(1.0, np.abs(force).max()), "power")


@pytest.mark.slow
def test_derivatives_of_a_cam_are_those_of_differences():
    """Compare the derivatives of the accelerations of a cam drive with differences."""
    system = cam("roller_on_curve", kt.Curve.circle(R, (E, 0.0)), radius=ROLLER)
    q = system.assemble(hold={"cam": 0.8})
    qd, tau, h = system.consistent_speeds(q, {"cam": 2.0}), np.array([0.3, -0.2]), 1e-5
    by_q, by_qd, _ = system.forward_dynamics_derivatives(q, qd, tau)
    f = system.forward_dynamics
    for k, e in enumerate(np.eye(2)):
        assert_close(by_q[:, k], (f(q + h * e, qd, tau) - f(q - h * e, qd, tau)) / (2 * h), 1e-7, "by q")
        assert_close(by_qd[:, k], (f(q, qd + h * e, tau) - f(q, qd - h * e, tau)) / (2 * h), 1e-6, "by qd")


@pytest.mark.parametrize(
    ("make", "message"),
    [
        (lambda: kt.Curve(), "a curve has points or cosines; give one of them"),
        (lambda: kt.Curve(points=((0, 0), (1, 0))), "a curve of 2 points; give 3 points or more, and no sines"),
        (
            lambda: kt.Curve(points=((0, 0), (1, 0), (1, 0))),
            "curve, points: points 1 and 2 of a curve are both (1.0, 0.0); remove",
        ),
        (
            lambda: kt.Curve(points=((0, 0), (0, 1), (0, 1.4e-207))),
            "curve, points: points 2 and 0 of a curve are only 1.4e-207 m apart; remove one of them",
        ),
        (lambda: kt.Curve(points=((0, 0), (1, 0, 2), (1, 1))), "curve, points: 3 numbers in a point; give two"),
        (lambda: kt.Curve(points=((0, 0), (1, True), (1, 1))), "curve, points: True is not a finite number"),
        (lambda: kt.Curve(points=((0, 0), (1e300, 0), (1, 1))), "curve, points: 1e+300 is too large; give numbers up"),
        (lambda: kt.Curve(points=((0, 0), (1e-31, 0), (0, 1e-31))), "a curve with a size of 1e-31 m; give its points"),
        (lambda: kt.Law(points=((0, 0), (1e-15, 1), (1, 2))), "law, points: the points of a law do not increase, or"),
        (
            lambda: kt.Curve(points=[(k, k * k) for k in range(1001)]),
            "curve, points: 1001 entries of points; give",
        ),
        (lambda: kt.Curve(cosines=[(0.1, 0.2)] * 82), "curve, cosines: 82 entries of cosines; give no more than 81"),
        (
            lambda: kt.Law(polynomial=[0.1] * 2001),
            "law, polynomial: 2001 entries of polynomial; give no",
        ),
        (lambda: kt.Curve(points=((0, 0), (1, math.inf), (1, 1))), "curve, points: inf is not a finite number"),
        (lambda: kt.Law(), "a law has points, a polynomial, or a slope with cosines and sines; give one of the three"),
        (lambda: kt.Law(points=((0, 0), (0, 1))), "law, points: the points of a law do not increase, or are too few"),
        (lambda: kt.Law(polynomial=("1",)), "law, polynomial: '1' is not a finite number; give numbers"),
    ],
)
def test_impossible_curves_and_laws_are_refused(make, message):
    """Name what is wrong with a curve or a law."""
    with pytest.raises(ModelError) as caught:
        make()
    assert str(caught.value).startswith(message)


def test_curves_with_too_many_pairs_of_points_are_refused():
    """Refuse two splines whose points would be compared more than the allowed number of times."""
    s = 2 * np.pi * np.arange(60) / 60
    round_ = kt.Curve(points=tuple(zip(np.cos(s), np.sin(s), strict=True)))
    with pytest.raises(ModelError, match="the curves have 60 and 60 points, 3600 pairs of them; give up to 1600 pairs"):
        cam("curve_on_curve", round_, curve_b=round_)
