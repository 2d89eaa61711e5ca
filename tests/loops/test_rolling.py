"""Rolling discs, balls, rollers and knife edges against closed forms and against equations written by hand."""

from __future__ import annotations

import math

import numpy as np
import pytest
from scipy.spatial.transform import Rotation

import everyday
import kinetree as kt
from closed_mechanisms import closed
from kinetree import loops
from kinetree.errors import InputError
from strategies import random_mechanism
from tolerance import assert_close

MASS, RADIUS, G = 2.3, 0.41, 9.81
AXIAL, DIAMETRAL = 0.5 * MASS * RADIUS**2, 0.25 * MASS * RADIUS**2
LEGENDRE = MASS * RADIUS**2 * AXIAL / (DIAMETRAL * (AXIAL + MASS * RADIUS**2))
TIGHT = {"method": "dop853", "rtol": 1e-12, "atol": 1e-13}


def free_disc(gravity=(0.0, 0.0, -G)) -> kt.System:
    """Return a thin homogeneous disc with its axle along y of its body, which rolls on the xy plane."""
    body = kt.Body("disc", MASS, inertia=(DIAMETRAL, AXIAL, DIAMETRAL, 0.0, 0.0, 0.0))
    road = kt.Loop("road", "rolling_disc", "ground", "disc", axis="z", axis2="y", radius=RADIUS)
    joint = kt.Joint("base", "free", "ground", "disc")
    guess = {"base": (0.0, 0.0, RADIUS, 0.0, 0.0, 0.0, 1.0)}
    return kt.System(kt.build_mechanism("disc", [body], [joint], loops=[road], gravity=gravity, guess=guess))


def tilted(beta: float, roll: float = 0.3):
    """Return q of a disc whose axle is at an angle beta to the vertical, its attitude, and the triad (t, s, u)."""
    turn = Rotation.from_euler("ZXY", [0.7, math.pi / 2 - beta, roll])
    s = turn.as_matrix()[:, 1]
    t = np.cross(s, [0.0, 0.0, 1.0]) / math.sin(beta)
    q = np.concatenate([[0.3, -0.2, RADIUS * math.sin(beta)], turn.as_quat()])
    return q, turn.as_matrix(), (t, s, np.cross(t, s))


def disc_start(beta: float, w: tuple[float, float, float]):
    """Return a start with the angular velocity w in (t, s, u), rolling."""
    q, R, (t, s, u) = tilted(beta)
    omega = w[0] * t + w[1] * s + w[2] * u
    v = np.cross(omega, RADIUS * u)
    return q, np.concatenate([R.T @ omega, R.T @ v])


def triads(run):
    """Return the directions ahead, along the axle and upward in the disc, the angle to the vertical, and omega."""
    R = Rotation.from_quat(run.q[:, 3:]).as_matrix()
    s = R[:, :, 1]
    beta = np.arccos(s[:, 2])
    t = np.cross(s, [0.0, 0.0, 1.0]) / np.sin(beta)[:, None]
    return t, s, np.cross(t, s), beta, np.einsum("kij,kj->ki", R, run.qd[:, :3])


@pytest.mark.slow
def test_a_disc_rolls_in_steady_circles():
    """Keep a tilted disc on its circle for two revolutions, with the forces at the contact of the closed form.

    k W (A W c - (C + m R^2) w_s) = m g R c for the rate W about the vertical, with c and k the cosine and the sine of
    the angle between axle and vertical.
    """
    disc, beta, rate = free_disc(), 1.1, 2.7
    c, k = math.cos(beta), math.sin(beta)
    spin = (DIAMETRAL * rate * c - MASS * G * RADIUS * c / (k * rate)) / (AXIAL + MASS * RADIUS**2)
    q, qd = disc_start(beta, (0.0, spin, rate * k))
    run = kt.simulate(disc, q, qd, duration=4 * math.pi / rate, **TIGHT)
    t, _, _, found, _ = triads(run)
    assert_close(found, np.full(len(run.t), beta), 1e-10, "tilt")
    center = q[:3] + RADIUS * spin / rate * np.cross([0.0, 0.0, 1.0], t[0])
    angle = rate * run.t
    out = q[:3] - center
    circle = center + np.outer(np.cos(angle), out) + np.outer(np.sin(angle), np.cross([0.0, 0.0, 1.0], out))
    assert_close(run.q[:, :3], circle, 1e-9, "circle")
    forces = np.stack([disc.multipliers(x, v, np.zeros(6)) for x, v in zip(run.q[::40], run.qd[::40], strict=True)])
    expected = np.array([MASS * G, 0.0, MASS * RADIUS * spin * rate])  # height, rolling, sideslip
    assert_close(forces, np.broadcast_to(expected, forces.shape), 1e-8, "force at the contact")


@everyday.long
def test_a_disc_keeps_its_energy_and_both_linear_integrals():
    """Keep the energy and the two constants of Appell and Korteweg over a wobbling motion.

    As functions of the angle b between axle and vertical, the angular velocities satisfy
    w_s' = m R^2 / (C + m R^2) w_u and w_u' = C / A w_s - w_u cot b, so that w_s is a combination of Legendre functions
    P(cos b) and P(-cos b), whose two coefficients are constants of the motion.
    """
    disc = free_disc()
    q, qd = disc_start(1.2, (0.4, 3.1, 0.9))
    run = kt.simulate(disc, q, qd, duration=3.0, **TIGHT)
    _, s, u, beta, omega = triads(run)
    assert np.ptp(beta) > 0.2, "the disc wobbles"
    spin, up = np.einsum("ki,ki->k", omega, s), np.einsum("ki,ki->k", omega, u)
    share = MASS * RADIUS**2 / (AXIAL + MASS * RADIUS**2)
    constants = []
    for b, x, y in zip(beta[::20], spin[::20], up[::20], strict=True):
        (p, dp), (m, dm) = legendre(math.cos(b)), legendre(-math.cos(b))
        rows = [[p, m], [-math.sin(b) * dp / share, math.sin(b) * dm / share]]
        constants.append(np.linalg.solve(rows, [x, y]))
    first = np.broadcast_to(constants[0], (len(constants), 2))
    assert_close(np.array(constants), first, 1e-9, "linear integrals")
    assert_close(run.energy_error, 0.0, 1e-9, "energy")
    assert_close(slips(disc, run), np.zeros((len(run.t), 3)), 1e-13, "J qd")
    assert_close(disc.closure_residual(run.q)[:, 0], np.zeros(len(run.t)), 1e-12, "height")


def legendre(x: float) -> tuple[float, float]:
    """Return P(x) and P'(x) of Legendre's equation with n (n + 1) = -LEGENDRE, by its hypergeometric series."""
    y, n, term, total, slope = (1.0 - x) / 2.0, 0, 1.0, 0.0, 0.0
    while n * term > 1e-17 * slope or n < 3:
        total += term
        slope += n * term / y
        term *= (LEGENDRE + n + n * n) / (n + 1.0) ** 2 * y
        n += 1
    return total, -0.5 * slope


def slips(system: kt.System, run):
    """Return J qd at all samples."""
    return np.einsum("kij,kj->ki", system.closure_jacobian(run.q), run.qd)


def test_a_disc_obeys_newton_and_euler_with_explicit_multipliers():
    """Compare accelerations and contact forces with Newton's and Euler's equations and a force at the contact."""
    disc, rng = free_disc(), np.random.default_rng(4)
    for _ in range(10):
        beta = rng.uniform(0.4, 2.7)
        q, qd = disc_start(beta, tuple(rng.normal(size=3) * 3.0))
        torque = rng.normal(size=6)
        R, (t, s, u) = Rotation.from_quat(q[3:]).as_matrix(), tilted(beta)[2]
        omega = R @ qd[:3]
        inertia = R @ np.diag([DIAMETRAL, AXIAL, DIAMETRAL]) @ R.T
        ds = np.cross(omega, s)
        dk = -s[2] * ds[2] / math.sin(beta)
        dflat = (ds - ds[2] * np.array([0.0, 0.0, 1.0]), s - s[2] * np.array([0.0, 0.0, 1.0]))
        daside = dflat[0] / math.sin(beta) - dflat[1] * dk / math.sin(beta) ** 2
        aside = dflat[1] / math.sin(beta)
        du = -ds[2] * aside - s[2] * daside + dk * np.array([0.0, 0.0, 1.0])
        p, dp = -RADIUS * u, -RADIUS * du
        cross = np.array([np.cross(e, p) for e in np.eye(3)]).T  # alpha -> alpha x p
        M = np.zeros((9, 9))
        M[:3, :3], M[3:6, 3:6] = inertia, MASS * np.eye(3)
        M[:3, 6:], M[3:6, 6:] = -np.array([np.cross(p, e) for e in np.eye(3)]).T, -np.eye(3)
        M[6:, :3], M[6:, 3:6] = cross, np.eye(3)
        right = np.concatenate([
            R @ torque[:3] - np.cross(omega, inertia @ omega),
            R @ torque[3:] + [0.0, 0.0, -MASS * G],
            -np.cross(omega, dp),
        ])  # fmt: skip
        found = np.linalg.solve(M, right)
        qdd = disc.forward_dynamics(q, qd, torque)
        expected = np.concatenate([R.T @ found[:3], R.T @ found[3:6] - np.cross(qd[:3], qd[3:])])
        assert_close(qdd, expected, 1e-11 * np.abs(expected).max(), "accelerations")
        force = found[6:]
        along = [force[2], force @ t, force @ np.cross([0.0, 0.0, 1.0], t)]
        assert_close(disc.multipliers(q, qd, torque), along, 1e-11 * np.abs(force).max(), "multipliers")
        power = disc.multipliers(q, qd, torque) @ (disc.closure_jacobian(q) @ qd)
        assert_close(power, 0.0, 1e-12 * np.abs(force).max(), "power of the reactions")


@pytest.mark.slow
def test_a_ball_rolls_down_an_inclined_plane():
    """Accelerate a ball by 5/7 of g sin(angle), on a plane that is inclined about an arbitrary direction."""
    turn = Rotation.from_rotvec([0.31, -0.22, 0.4]).as_matrix()
    inertia = 0.4 * MASS * RADIUS**2
    ball = kt.System(kt.build_mechanism(
        "ball",
        [kt.Body("ball", MASS, inertia=(inertia, inertia, inertia, 0.0, 0.0, 0.0))],
        [kt.Joint("base", "free", "ground", "ball")],
        loops=[kt.Loop("slope", "rolling_ball", "ground", "ball",
                       kt.Placement(rotation=tuple(map(tuple, turn.tolist()))), radius=RADIUS)],
        guess={"base": (*(RADIUS * turn[:, 2]).tolist(), 0.0, 0.0, 0.0, 1.0)},
    ))  # fmt: skip
    n, g = turn[:, 2], np.array([0.0, 0.0, -G])
    along = g - (g @ n) * n
    q0 = ball.assemble()
    v = turn @ [0.7, -0.4, 0.0]
    qd0 = np.concatenate([np.cross(n, v) / RADIUS, v])
    run = kt.simulate(ball, q0, qd0, duration=2.0, **TIGHT)
    path = RADIUS * n + np.outer(run.t, v) + 5 / 14 * np.outer(run.t**2, along)
    assert_close(run.q[:, :3], path, 1e-9, "parabola")
    assert_close(run.energy_error, 0.0, 1e-9, "energy")
    force = ball.multipliers(q0, qd0, np.zeros(6))
    assert_close(force[0], -MASS * (g @ n), 1e-12 * MASS * G, "normal force")
    assert_close(np.linalg.norm(force[1:]), 2 / 7 * MASS * np.linalg.norm(along), 1e-11, "friction of the incline")


@pytest.mark.slow
def test_a_ball_on_a_turntable_moves_in_circles():
    """Move a ball in a circle, at 2/7 of the rate of the turntable that is driven under it."""
    rate, inertia = 3.1, 0.4 * MASS * RADIUS**2
    table = kt.System(kt.build_mechanism(
        "turntable",
        [kt.Body("table", 5.0, inertia=(0.3, 0.3, 0.5, 0.0, 0.0, 0.0)),
         kt.Body("ball", MASS, inertia=(inertia, inertia, inertia, 0.0, 0.0, 0.0))],
        [kt.Joint("bearing", "revolute", "ground", "table"), kt.Joint("base", "free", "ground", "ball")],
        loops=[kt.Loop("top", "rolling_ball", "table", "ball", radius=RADIUS)],
        guess={"base": (0.6, 0.2, RADIUS, 0.0, 0.0, 0.0, 1.0)},
    ))  # fmt: skip
    q0 = table.assemble()
    v, x0 = np.array([0.5, 0.3, 0.0]), np.array([0.6, 0.2, 0.0])
    under = rate * np.cross([0.0, 0.0, 1.0], x0)
    spin = np.cross([0.0, 0.0, 1.0], v - under) / RADIUS + [0.0, 0.0, 0.9]
    run = kt.simulate(
        table, q0, np.concatenate([[rate], spin, v]), duration=5.0, control=kt.Driven("bearing", kt.Hold(speed=rate)),
        **TIGHT,
    )  # fmt: skip
    slow = 2 / 7 * rate
    center = x0[:2] + np.array([-v[1], v[0]]) / slow
    out, angle = x0[:2] - center, slow * run.t
    circle = center + np.outer(np.cos(angle), out) + np.outer(np.sin(angle), [-out[1], out[0]])
    assert_close(run.q[:, 1:3], circle, 1e-9, "circle")


def sleigh(com: float, gravity=(0.0, 0.0, -G)) -> tuple[kt.System, float]:
    """Return a planar body with its center of mass ahead of its knife edge, and its inertia about the edge by mass."""
    inertia = 0.37
    system = kt.System(kt.build_mechanism(
        "sleigh",
        [kt.Body("sleigh", MASS, (com, 0.0, 0.0), (0.2, 0.3, inertia, 0.0, 0.0, 0.0))],
        [kt.Joint("base", "planar", "ground", "sleigh")],
        loops=[kt.Loop("edge", "knife_edge", "ground", "sleigh", axis2="x")],
        gravity=gravity,
    ))  # fmt: skip
    return system, (inertia + MASS * com**2) / MASS


def test_the_sleigh_of_chaplygin_follows_its_closed_form():
    """Turn a sleigh until it runs straight, by u = c tanh(a c t / J) and heading 2 sqrt(J) / a atan(tanh(a c t / 2 J)).

    With u the speed along the edge and w the rate of heading: u' = a w^2 and w' = -a u w / J.
    """
    a, speed = 0.23, 1.9
    system, J = sleigh(a)
    qd0 = speeds(system, 0.0, 0.0, speed / math.sqrt(J))
    run = kt.simulate(system, system.neutral(), qd0, duration=6.0, **TIGHT)
    rate = a * speed / J
    heading = 2 * math.sqrt(J) / a * np.arctan(np.tanh(rate * run.t / 2))
    assert_close(run.q[:, 2], heading, 1e-9, "heading")
    assert_close(np.linalg.norm(run.qd[:, :2], axis=1), speed * np.tanh(rate * run.t), 1e-9, "speed along the edge")
    assert_close(run.energy_error, 0.0, 1e-9, "energy")
    assert_close(slips(system, run), np.zeros((len(run.t), 1)), 1e-13, "J qd")


@pytest.mark.slow
def test_a_knife_edge_on_an_incline_draws_cycloids():
    """Keep a rotating knife edge on an incline near its height: it draws a cycloid across the slope."""
    down, rate = 4.1, 2.3
    system, _ = sleigh(0.0, gravity=(down, 0.0, -8.0))
    run = kt.simulate(system, system.neutral(), speeds(system, 0.0, 0.0, rate), duration=5.0, **TIGHT)
    angle, size = rate * run.t, down / (2 * rate**2)
    assert_close(run.q[:, 0], size * np.sin(angle) ** 2, 1e-9, "down the slope")
    assert_close(run.q[:, 1], size * (angle - 0.5 * np.sin(2 * angle)), 1e-9, "across the slope")


def speeds(system: kt.System, x: float, y: float, turn: float):
    """Return the velocities of a planar joint by name of its axes."""
    return system.consistent_speeds(system.neutral(), {"base.x": x, "base.y": y, "base.angle": turn})


def test_a_wheel_off_its_plane_is_refused():
    """Name the loop and the distance of a wheel that starts above its plane, and of one that slips."""
    disc = free_disc()
    q, qd = disc_start(1.3, (0.1, 2.0, 0.3))
    slip = np.array([0.0, 0.0, 0.0, 0.3, 0.0, 0.2])
    above = q + np.array([0.0, 0.0, 0.05, 0.0, 0.0, 0.0, 0.0])
    with pytest.raises(InputError, match=r"q0 does not close loop 'road' \(height\): off by 0.05 m; start from system"):
        kt.simulate(disc, above, qd, duration=0.1)
    with pytest.raises(InputError, match=r"qd0 breaks loop 'road' \(\w+\): it slips at .* m/s; start with system.clos"):
        kt.simulate(disc, q, qd + slip, duration=0.1)
    with pytest.raises(InputError, match=r"qd opens the loops: 'road' \(\w+\) would slip at .* m/s; give qd"):
        disc.inverse_dynamics(q, qd + slip, np.zeros(6), actuated=["base"])


ROLLING = ("rolling_disc", "rolling_ball", "rolling_rollers", "knife_edge")


def contact_rows(system: kt.System, q) -> np.ndarray:
    """Return J of the one loop of a system by the velocities of the material points of both bodies at the contact."""
    (loop,) = system.mechanism.loops
    ends = []
    for body, placement in ((loop.body_a, loop.placement_a), (loop.body_b, loop.placement_b)):
        T = system.pose(q, body)
        R = T[:3, :3] @ np.array(placement.rotation)
        ends.append((T[:3, 3], T[:3, 3] + T[:3, :3] @ placement.translation, R, system.jacobian(q, body)))
    (_, _, Ra, _), (_, center, Rb, _) = ends
    frame = Ra @ np.array(loops.frame(loop))
    z = frame[:, 2]
    if loop.axis2 is None:
        x, directions = center - loop.radius * z, [z, frame[:, 0], frame[:, 1]]
    else:
        s = Rb @ np.array(loop.axis2) / np.linalg.norm(loop.axis2)
        t = np.cross(s, z) / np.linalg.norm(np.cross(s, z))
        aside = np.cross(z, t)
        x = center - (loop.radius or 0.0) * np.cross(t, s)
        roller = math.cos(loop.angle or 0.0) * aside - math.sin(loop.angle or 0.0) * t
        directions = {"rolling_disc": [z, t, aside], "rolling_rollers": [z, roller], "knife_edge": [t]}[loop.kind]
    velocity = [J[3:] - np.array([np.cross(x - o, w) for w in J[:3].T]).T for o, _, _, J in ends]
    return np.array(directions) @ (velocity[1] - velocity[0])


@pytest.mark.slow
@pytest.mark.parametrize("kind", ROLLING)
@pytest.mark.parametrize("seed", range(3))
def test_random_trees_that_roll(kind, seed):
    """Compare J, accelerations and forces with explicit multipliers in NumPy, then keep J qd = 0 and the energy.

    J is that of the velocities at the contact, and dJ/dt qd its difference along the motion.
    """
    tree = random_mechanism(("revolute", "prismatic", "spherical", "free"), (-1, 0, -1, 2), seed)
    mechanism, q = closed(tree, [(kind, "b1", "b3")], seed)
    system = kt.System(mechanism)
    rng = np.random.default_rng(seed)
    qd = system.closing_speed(q, rng.normal(size=system.nv))
    tau, h = rng.normal(size=system.nv), 1e-4
    J = contact_rows(system, q)
    assert_close(system.closure_jacobian(q), J, 1e-12, "J")
    near = [contact_rows(system, system.integrate(q, k * h * qd)) @ qd for k in (-2, -1, 1, 2)]
    bias = (8 * (near[2] - near[1]) - (near[3] - near[0])) / (12 * h)
    assert_close(system.closure_bias(q, qd), bias, 1e-8, "dJ/dt qd")
    n, m = system.nv, len(J)
    whole = np.block([[system.inertia_matrix(q), -J.T], [J, np.zeros((m, m))]])
    right = np.concatenate([tau - system.bias_torque(q, qd), -system.closure_bias(q, qd)])
    found = np.linalg.solve(whole, right)
    scale = max(1.0, np.abs(found).max())
    assert_close(system.forward_dynamics(q, qd, tau), found[:n], 1e-9 * scale, "accelerations")
    assert_close(system.multipliers(q, qd, tau), found[n:], 1e-9 * scale, "multipliers")
    assert_close(found[n:] @ (J @ qd), 0.0, 1e-11 * scale, "power of the reactions")
    run = kt.simulate(system, q, 0.3 * qd, duration=0.4, **TIGHT)
    assert_close(slips(system, run), np.zeros((len(run.t), m)), 1e-11, "J qd along a run")
    assert_close(run.energy_error, 0.0, 1e-8, "energy")


@pytest.mark.slow
def test_derivatives_of_runs_that_slide():
    """Compare the derivatives of the end of a run with differences, and those of accelerations of a disc."""
    system, _ = sleigh(0.23)
    q0, qd0, h = system.neutral(), speeds(system, 0.3, 0.0, 1.1), 1e-6
    found = kt.simulation_derivatives(system, q0, qd0, duration=1.0, dt=1e-3, method="rk4", wrt=("q0", "qd0"))

    def end(q, qd):
        run = kt.simulate(system, q, system.closing_speed(q, qd), duration=1.0, dt=1e-3, method="rk4")
        return np.concatenate([run.q[-1], run.qd[-1]])

    for k, e in enumerate(h * np.eye(3)):
        assert_close(found["q0"][-1, :, k], (end(q0 + e, qd0) - end(q0 - e, qd0)) / (2 * h), 1e-8, "by q0")
        assert_close(found["qd0"][-1, :, k], (end(q0, qd0 + e) - end(q0, qd0 - e)) / (2 * h), 1e-8, "by qd0")
    disc, (q, qd), tau, h = free_disc(), disc_start(1.2, (0.4, 3.1, 0.9)), np.arange(6) * 0.1, 1e-5
    by_q = disc.forward_dynamics_derivatives(q, qd, tau)[0]
    for k, e in enumerate(h * np.eye(6)):
        ahead, behind = (disc.forward_dynamics(disc.integrate(q, s * e), qd, tau) for s in (1, -1))
        assert_close(by_q[:, k], (ahead - behind) / (2 * h), 1e-8, "accelerations by q")


def test_what_positions_do_not_determine_is_refused():
    """Refuse minimal coordinates, motions by positions and a regulator of a body that slides on an edge."""
    system, _ = sleigh(0.23)
    q0 = system.neutral()
    with pytest.raises(InputError, match=r"loops is Minimal\(\), and 'sleigh' has equations of velocities alone"):
        kt.simulate(system, q0, duration=0.1, loops=kt.Minimal())
    with pytest.raises(InputError, match="driven_motion of 'sleigh': it rolls or slides by equations of velocities"):
        system.driven_motion({"base.x": np.zeros(3), "base.angle": np.zeros(3)})
    with pytest.raises(
        InputError, match="LQR: 'sleigh' has equations of velocities alone, such as rolling: no feedback"
    ):
        kt.LQR(system, q0)


def test_a_disc_that_falls_flat_stops_its_run():
    """Stop a run of a disc that falls on its face, with finite states and the energy of its start."""
    disc = free_disc()
    q, qd = disc_start(1.2, (0.0, 0.0, 0.0))
    run = kt.simulate(disc, q, qd, duration=2.0, method="rk4", dt=1e-3)
    assert "the loops did not close, or the state left the finite numbers" in run.status
    assert run.t[-1] < 0.51 and np.isfinite(run.q).all()
    assert_close(run.energy_error, 0.0, 1e-8, "energy")
