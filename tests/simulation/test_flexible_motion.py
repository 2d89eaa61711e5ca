"""Motions of flexible bodies: what is conserved, beams that spin up, loops through nodes, stiff beams."""

from __future__ import annotations

import math

import numpy as np
import pytest
import scipy.linalg
from numpy.polynomial import legendre
from scipy.integrate import solve_ivp

import everyday
import kinetree as kt
from kinetree.model.beam_shapes import bending_roots
from tolerance import assert_close

STILL = (0.0, 0.0, 0.0)


def elastic_energy(system: kt.System, q: np.ndarray) -> np.ndarray:
    """Return the energy of the springs of all modes."""
    total = np.zeros(q.shape[:-1])
    for joint, own in zip(system.mechanism.joints, system.mechanism.q_slices, strict=True):
        shape = system.mechanism.body(joint.child).flexible
        if shape is not None:
            total += 0.5 * (q[..., own] ** 2) @ np.array(shape.modal.stiffness)
    return total


def floating_arm() -> kt.System:
    """Return a free base with a flexible link, a joint at its tip, and a second flexible link."""
    first = kt.Beam(0.9, EI=(11.0, 17.0), GJ=12.0, mass_per_length=0.6, polar=0.002, modes=(2, 1, 1, 0))
    second = kt.Beam(0.7, EI=8.0, mass_per_length=0.4, modes=(1, 1))
    base = kt.Body("base", 2.3, (0.02, -0.05, 0.03), (0.11, 0.13, 0.09, 0.004, -0.002, 0.003))
    place = kt.Placement.from_euler("xyz", (0.2, -0.4, 0.3), (0.15, 0.05, -0.1))
    return kt.System(
        kt.build_mechanism(
            "floating",
            [
                base,
                kt.Body("one", flexible=first),
                kt.Body("two", 0.2, flexible=second),
                kt.Body("hand", 0.5, (0.03, 0.02, 0.0), (0.004, 0.003, 0.005, 0.0, 0.0, 0.0)),
            ],
            [
                kt.Joint("float", "free", "ground", "base"),
                kt.Joint("shoulder", "revolute", "base", "one", place, (0.2, 1.0, -0.3)),
                kt.Joint("elbow", "universal", "one.tip", "two", kt.Placement((0.0, 0.05, 0.0))),
                kt.Joint("palm", "fixed", "two.tip", "hand"),
            ],
            gravity=STILL,
        )
    )


def test_energy_and_momentum_of_a_floating_arm():
    """Keep energy to 1e-8 over ten seconds of free motion, and both momenta to 1e-9."""
    arm = floating_arm()
    rng = np.random.default_rng(4)
    q = arm.neutral()
    q[7:] += 0.01 * rng.normal(size=arm.nq - 7)
    qd = 0.35 * rng.normal(size=arm.nv)
    run = kt.simulate(arm, q, qd, times=np.linspace(0.0, 10.0, 41), method="dop853", rtol=1e-12, atol=1e-13)
    energy = arm.kinetic_energy(run.q, run.qd) + elastic_energy(arm, run.q)
    assert elastic_energy(arm, run.q).max() > 0.02 * energy[0]
    assert_close(energy, np.full(41, energy[0]), 1e-8 * energy[0], "energy")
    h = arm.momentum(run.q, run.qd)
    assert_close(h, np.broadcast_to(h[0], h.shape), 1e-9 * np.abs(h).max(), "momentum")


def hub(**options) -> kt.System:
    """Return a beam on a hub that rotates about z."""
    body = kt.Body("boom", flexible=kt.Beam(**options))
    return kt.System(kt.build_mechanism("hub", [body], [kt.Joint("hub", "revolute", "ground", "boom")], gravity=STILL))


@everyday.long
@pytest.mark.parametrize(
    ("speed", "out", "along"),
    [(0, 3.5160153, 3.5160153), (2, 4.1373196, 3.6217970), (6, 7.3603730, 4.2632254), (12, 13.1701505, 5.4270493)],
)
def test_frequencies_of_a_rotating_beam(speed, out, along):
    """Find the first frequencies of a beam on a rotating hub, out of its plane and in it, by derivatives."""
    for modes, exact in (((0, 12), out), ((12, 0), along)):
        system = hub(length=1.0, EI=1.0, mass_per_length=1.0, modes=modes)
        q, qd = np.zeros(13), np.array([float(speed), *np.zeros(12)])
        K = system.inverse_dynamics_derivatives(q, qd, 0 * qd)[0][1:, 1:]
        squares = scipy.linalg.eigh(K, system.inertia_matrix(q)[1:, 1:], eigvals_only=True)
        assert_close(math.sqrt(squares[0]), exact, 1e-6 * exact, "frequency")
    # Southwell: the squares of both differ by the square of the speed.
    assert_close(out**2 - along**2, float(speed) ** 2, 1e-5 * max(1, speed**2), "printed numbers")


L, EI, EA, MU, TOP, RISE = 10.0, 1.4e4, 2.8e7, 1.2, 6.0, 15.0
"""The beam that spins up, of [Kane1987]: length, stiffnesses, mass per length, last speed and time to reach it."""


def spin(t: float) -> tuple[float, float]:
    """Return speed and acceleration of the hub."""
    if t >= RISE:
        return TOP, 0.0
    phase = 2 * math.pi * t / RISE
    return TOP / RISE * (t - RISE / (2 * math.pi) * math.sin(phase)), TOP / RISE * (1 - math.cos(phase))


def tip_lag(system: kt.System, times: np.ndarray) -> np.ndarray:
    """Return the deflection of the tip while the hub spins up, from rest."""
    m, driven = system.nv - 1, np.zeros(system.nv)

    def rates(t: float, y: np.ndarray) -> np.ndarray:
        speed, driven[0] = spin(t)
        q, qd = np.array([0.0, *y[:m]]), np.array([speed, *y[m:]])
        qdd, _ = system.hybrid_dynamics(q, qd, driven, np.zeros(m + 1), driven=["hub"])
        return np.concatenate([y[m:], qdd[1:]])

    y = solve_ivp(rates, (0.0, times[-1]), np.zeros(2 * m), method="DOP853", t_eval=times, rtol=1e-8, atol=1e-10).y
    return np.array([system.pose([0.0, *e], "boom.tip")[1, 3] for e in y[:m].T])


def second_model(times: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
    """Return the lag by the accelerations of points of a beam of constant length, in exact cantilever modes.

    A point is at (x + u, v) in the axes of the hub, with u = -1/2 of the integral of v'^2 to x. The second lag is
    that of the linear equation mu v'' + EI v'''' - (T v')' - mu w^2 v = -mu dw x, with the tension
    T = mu w^2 (L^2 - x^2) / 2.
    """
    b = np.array(bending_roots(5, "clamped-free"))
    s, weights = legendre.leggauss(60)
    s, weights = (s + 1) / 2, weights / 2
    sigma = ((np.cosh(b) + np.cos(b)) / (np.sinh(b) + np.sin(b)))[:, None]
    z = b[:, None] * s
    v = np.cosh(z) - np.cos(z) - sigma * (np.sinh(z) - np.sin(z))
    dv = b[:, None] * (np.sinh(z) + np.sin(z) - sigma * (np.cosh(z) - np.cos(z)))
    tip = np.cosh(b) - np.cos(b) - sigma[:, 0] * (np.sinh(b) - np.sin(b))
    tension = (dv * (weights * (1 - s**2) / 2)) @ dv.T
    squares = EI / (MU * L**4) * b**4
    products = legendre.legfit(2 * s - 1, (dv[:, None] * dv[None]).reshape(25, -1).T, 50)
    U = legendre.legval(2 * s - 1, legendre.legint(products, lbnd=-1, scl=0.5)).reshape(5, 5, -1) / L

    def linear(t: float, y: np.ndarray) -> np.ndarray:
        w, dw = spin(t)
        load = v @ (weights * s) * L
        return np.concatenate([y[5:], -squares * y[:5] - w * w * (tension @ y[:5] - y[:5]) - dw * load])

    def complete(t: float, y: np.ndarray) -> np.ndarray:
        (w, dw), e, de = spin(t), y[:5], y[5:]
        slope, rate = -np.einsum("jkn,k->jn", U, e), -np.einsum("jkn,k->jn", U, de)
        place, side, speed, aside = s * L + e @ slope / 2, e @ v, de @ slope, de @ v
        ax = de @ rate - dw * side - 2 * w * aside - w * w * place
        ay = dw * place + 2 * w * speed - w * w * side
        mass = (slope * weights) @ slope.T + (v * weights) @ v.T
        return np.concatenate([de, np.linalg.solve(mass, -squares * e - slope @ (weights * ax) - v @ (weights * ay))])

    found = [
        solve_ivp(rates, (0.0, times[-1]), np.zeros(10), method="DOP853", t_eval=times, rtol=1e-9, atol=1e-11).y
        for rates in (complete, linear)
    ]
    return tip @ found[0][:5], tip @ found[1][:5]


@everyday.long
def test_spin_up():
    """Spin a beam up: its tip lags as in a second model, and without foreshortening it leaves the linear range."""
    times = np.linspace(0.0, 20.0, 81)
    expected, linear = second_model(times)
    lag = tip_lag(hub(length=L, EI=EI, mass_per_length=MU, modes=(4, 0)), times)
    assert_close(lag, expected, 1e-3 * np.abs(expected).max(), "lag")
    assert (
        1e-3 < np.abs(lag - linear).max() / np.abs(linear).max() < 4e-3
    )  # what the linear equation leaves out: 2.8e-3
    wrong = tip_lag(hub(length=L, EI=EI, mass_per_length=MU, modes=(4, 0), foreshortening=False), times[:61])
    assert np.abs(wrong).max() > 5.0  # half the beam's length, and growing: the speed is above its first frequency


def test_steady_extension():
    """Stretch a beam by rotation: u = tan(k L) / k - L with k^2 = mu w^2 / EA, and 5.143e-4 m."""
    system = hub(length=L, EI=EI, EA=EA, mass_per_length=MU, modes=(1, 0, 0, 3))
    qd, q = np.array([TOP, *np.zeros(4)]), np.zeros(5)
    for _ in range(4):
        tau = system.inverse_dynamics(q, qd, np.zeros(5))
        J = system.inverse_dynamics_derivatives(q, qd, np.zeros(5))[0]
        q[1:] -= np.linalg.solve(J[1:, 1:], tau[1:])
    k = TOP * math.sqrt(MU / EA)
    exact = math.tan(k * L) / k - L
    assert_close(system.pose(q, "boom.tip")[0, 3] - L, exact, 1e-6 * exact, "extension")
    assert_close(exact, 5.1429e-4, 1e-7, "as printed")


def rockers(**guess: float) -> kt.System:
    """Return a flexible coupler with both ends on rockers."""
    coupler = kt.Beam(0.8, EI=30.0, mass_per_length=0.9, modes=(2, 0), damping=0.02, nodes={"mid": 0.4})

    def bar_of(name: str) -> kt.Body:
        return kt.Body(name, 0.6, (0.2, 0.01, 0.0), (0.001, 0.01, 0.01, 0.0, 0.0, 0.0))

    return kt.System(
        kt.build_mechanism(
            "rockers",
            [bar_of("bar"), kt.Body("coupler", flexible=coupler), bar_of("other")],
            [
                kt.Joint("left", "revolute", "ground", "bar"),
                kt.Joint("pin", "revolute", "bar", "coupler", kt.Placement((0.4, 0.0, 0.0))),
                kt.Joint("right", "revolute", "ground", "other", kt.Placement((0.7, 0.0, 0.0))),
            ],
            loops=[
                kt.Loop("close", "revolute", "coupler.tip", "other", placement_b=kt.Placement((0.35, 0.0, 0.0))),
            ],
            gravity=(0.0, -9.81, 0.0),
            guess=guess,
        )
    )  # fmt: skip


def test_loops_are_closed_by_the_joints():
    """Close a loop from far away with the joints, while the flexible coupler stays straight."""
    system = rockers(left=1.2, pin=-0.8, right=1.6)
    q = system.assemble()
    assert np.abs(system.closure_residual(q)).max() < 1e-12
    assert np.abs(system.closure_residual(system.mechanism.neutral)).max() > 0.1
    assert np.abs(q[2:4]).max() < 1e-3


def test_a_loop_through_nodes():
    """Hold both ends of a flexible coupler on rockers: the loop stays closed."""
    system = rockers(left=1.2, pin=-1.1, right=1.3)
    q = system.assemble()
    qd = system.closing_speed(q, np.array([0.8, -0.3, 0.1, -0.2, 0.4]))
    run = kt.simulate(system, q, qd, times=np.linspace(0.0, 1.0, 21), method="dop853", rtol=1e-10, atol=1e-12)
    assert np.abs(system.closure_residual(run.q)).max() < 1e-12
    assert np.abs(run.q[:, 2:4]).max() > 1e-4
    J, h = system.closure_jacobian(q), 1e-6
    slopes = [system.closure_residual(q + h * x) - system.closure_residual(q - h * x) for x in np.eye(5)]
    assert_close(J, np.array(slopes).T / (2 * h), 1e-8, "closure Jacobian")


def test_a_rod_between_two_nodes_of_one_beam():
    """Find the equations of a loop whose two ends are nodes of the same flexible body."""
    beam = kt.Beam(1.1, EI=5.0, mass_per_length=0.5, modes=(2, 1), nodes={"a": 0.3})
    joints = [
        kt.Joint("j", "free", "ground", "b"),
        kt.Joint("p", "revolute", "b.a", "arm", kt.Placement((0.0, 0.1, 0.0))),
    ]
    rod = kt.Loop(
        "rod", "rod", "b.tip", "arm", kt.Placement((0.0, 0.05, 0.0)), kt.Placement((0.2, 0.1, 0.0)), length=0.6
    )
    mechanism = kt.build_mechanism("bow", [kt.Body("b", flexible=beam), kt.Body("arm", 0.2)], joints, loops=[rod])
    system, rng = kt.System(mechanism), np.random.default_rng(2)
    q, qd = system.neutral(), rng.normal(size=system.nv)
    q[7:] = [0.05, -0.03, 0.02, 0.4]
    J, h = system.closure_jacobian(q), 1e-6
    slopes = [
        system.closure_residual(system.integrate(q, h * x)) - system.closure_residual(system.integrate(q, -h * x))
        for x in np.eye(system.nv)
    ]
    assert_close(J, np.array(slopes).T / (2 * h), 1e-8, "closure Jacobian")
    assert np.abs(J[0, 6:9]).max() > 0.1
    ahead, behind = (system.integrate(q, s * h * qd) for s in (1, -1))
    change = (system.closure_jacobian(ahead) - system.closure_jacobian(behind)) @ qd / (2 * h)
    assert_close(system.closure_bias(q, qd), change, 1e-7, "closure bias")


def test_stiff_beams_get_a_stiff_method():
    """Simulate a damped beam with axial modes, for which `auto` takes a method for stiff systems."""
    system = hub(
        length=1.0, E=2.1e11, rho=7800, section=("rectangle", 0.004, 0.02), modes=(3, 0, 0, 2), damping=0.2
    )  # fmt: skip
    run = kt.simulate(system, system.neutral(), [2.0, *np.zeros(5)], duration=3.0)
    assert run.finished
    assert run.method == "rodas5p"


@everyday.long
def test_modes_of_a_robot_with_a_flexible_link():
    """Find the frequencies of a cantilever as those of small motions of the mechanism."""
    beam = kt.Beam(1.7, EI=23.0, mass_per_length=0.61, modes=(7, 0))
    joints = [kt.Joint("root", "fixed", "ground", "boom")]
    system = kt.System(kt.build_mechanism("c", [kt.Body("boom", flexible=beam)], joints, gravity=STILL))
    found = system.modes(system.neutral()).frequencies
    exact = np.array(bending_roots(2, "clamped-free")) ** 2 * math.sqrt(23.0 / (0.61 * 1.7**4)) / (2 * math.pi)
    assert_close(np.sort(np.asarray(found))[:2] / exact, np.ones(2), 1e-5, "frequencies")


def test_large_deflections_are_reported():
    """Warn with the deflection of a soft beam that falls, and list it among the limits of the run."""
    body = kt.Body("boom", flexible=kt.Beam(1.0, EI=1.0, mass_per_length=1.0, modes=(0, 2)))
    joints = [kt.Joint("root", "fixed", "ground", "boom")]
    system = kt.System(kt.build_mechanism("soft", [body], joints))
    with pytest.warns(RuntimeWarning, match=r"boom\.modes\.z1 reaches 2[.\d]* m, 1[0-9.]+ times the largest for which"):
        run = kt.simulate(system, system.neutral(), duration=0.9)
    found = kt.limit_violations(run)
    assert {(v.joint, v.what) for v in found.violations} >= {("boom.modes", "lower")}
    assert "limit is exceeded; the most by boom.modes" in run.summary()
