"""The demonstration: arms of the papers, a four-bar and a long chain, each compared with an independent result."""

from __future__ import annotations

import time
from collections.abc import Callable
from dataclasses import dataclass
from itertools import pairwise
from math import factorial, pi

import numpy as np

from ...algebra.scalars import Numbers
from ...loading import chain, load
from ...model.axes import axis_names
from ...model.parameters import plain_number
from ...results.trajectory import Trajectory
from ...simulation.acting.controllers import ComputedTorque
from ...simulation.acting.references import Cosine, sampled
from ...simulation.simulate import simulate
from ...system import System

Motion = tuple[Numbers, Numbers, Numbers]
"""q, qd, qdd, each [..., n]."""

BOUND = 1e-12
SAMPLES = 1_000_000


@dataclass(frozen=True)
class Timing:
    """A batch in one call: seconds, and whether other ways of running it give identical bits."""

    system: str
    samples: int
    seconds: float
    same_split: bool
    same_threads: bool


@dataclass(frozen=True)
class History:
    """Torques (or forces) [n, k] of an arm at the times t [s], with their units."""

    t: Numbers
    tau: Numbers
    units: tuple[str, ...]


@dataclass(frozen=True)
class Demo:
    """All results: torques of three arms, an inertia, agreements, a timing, three runs, a long chain."""

    stanford: History
    planar: History
    kuka: History
    smallest_eigenvalue: float
    condition: float
    checks: tuple[Check, ...]
    timing: Timing
    fall: Trajectory
    tracking: Trajectory
    bars: Trajectory
    links: Links

    @property
    def holds(self) -> bool:
        """Whether every agreement holds."""
        same = self.timing.same_split and self.timing.same_threads
        return same and self.smallest_eigenvalue > 0 and all(check.holds for check in self.checks)


def run(*, say: Callable[[str], None] = lambda text: None, samples: int = SAMPLES) -> Demo:
    """Compute everything, and report each step as it begins."""
    say("Stanford arm: inverse dynamics, forward dynamics, energies")
    stanford, t = load("stanford"), np.linspace(0.0, 10.0, 1001)
    motion = stanford_motion(t)
    tau = stanford.inverse_dynamics(*motion)
    eigenvalues = np.linalg.eigvalsh(stanford.inertia_matrix(motion[0]))
    condition = float((eigenvalues[:, -1] / eigenvalues[:, 0]).max())
    checks = [
        _forward_check(stanford, motion, tau, 8 * float(np.finfo(float).eps) * condition),
        _symmetry_check(stanford, motion[0]),
        _matrix_check(stanford, motion, tau),
        _power_check(stanford, stanford_motion, t),
    ]
    say("planar 3R arm: recursion against explicit expressions")
    planar = load("planar_3r")
    planar_tau = planar.inverse_dynamics(*planar_motion(t))
    explicit = planar_torques(planar, *planar_motion(t))
    checks.append(Check("planar_3r: recursion = explicit expressions", _relative(planar_tau, explicit), BOUND))
    say("KUKA LWR 4+: inverse dynamics, symmetry in time")
    kuka, t7 = load("kuka_lwr4"), np.linspace(0.0, 14.0, 1401)
    kuka_tau = kuka.inverse_dynamics(*kuka_motion(t7))
    checks.append(_matrix_check(kuka, kuka_motion(t7), kuka_tau))
    checks.append(Check("kuka_lwr4: tau(t) = tau(14 s - t)", _relative(kuka_tau, kuka_tau[::-1]), BOUND))
    say("Stanford arm: free fall")
    falling = fall()
    checks.append(energy_check(falling))
    say("KUKA LWR 4+: computed torque along a motion")
    following = tracking()
    checks.append(tracking_check(following))
    say("four-bar: free motion with the loop closed")
    bars = turning()
    checks += [gap_check(bars), loop_energy_check(bars)]
    say("chain of 10,000 links: forward dynamics")
    links = long_chain()
    checks.append(links_check(links))
    say(f"KUKA LWR 4+: {samples:,} samples in one call")
    return Demo(
        History(t, tau, _units(stanford)),
        History(t, planar_tau, _units(planar)),
        History(t7, kuka_tau, _units(kuka)),
        float(eigenvalues.min()),
        condition,
        tuple(checks),
        _timing(kuka, samples),
        falling,
        following,
        bars,
        links,
    )


def stanford_motion(t: Numbers) -> Motion:
    """Return the cycloid of the Stanford arm, which starts and ends at rest. [Saha2013] (34), (35), [Saha1999] 6.2"""
    T = 10.0
    start = np.array([0.0, pi / 2, 0.0, 0.0, 0.0, 0.0])
    end = np.array([pi / 3, pi / 3, 0.1, pi / 3, pi / 3, pi / 3])
    rate, w, t = (end - start) / T, 2 * pi / T, t[..., None]
    return (
        start + rate * (t - np.sin(w * t) / w),  # (34), (35)
        rate * (1 - np.cos(w * t)),
        rate * w * np.sin(w * t),
    )


def planar_motion(t: Numbers) -> Motion:
    """Return the motion of the planar arm, each joint by half a revolution in 10 s. [Saha1999] (38)"""
    w, t = 2 * pi / 10.0, np.repeat(t[..., None], 3, axis=-1)
    return (w * t - np.sin(w * t)) / 2, w * (1 - np.cos(w * t)) / 2, w * w * np.sin(w * t) / 2


def kuka_motion(t: Numbers) -> Motion:
    """Return the motion of the KUKA arm, with a period of 14 s. [Wolinski2015] (28)-(31)"""
    w, t = pi / 7, np.repeat(t[..., None], 7, axis=-1)
    return pi / 2 * np.cos(w * t), -pi / 2 * w * np.sin(w * t), -pi / 2 * w * w * np.cos(w * t)


def planar_torques(arm: System, q: Numbers, qd: Numbers, qdd: Numbers) -> Numbers:
    """Return the torques of a planar 3R arm in the x-y plane by Lagrange's explicit expressions, [..., 3].

    p_i = q_1 + ... + q_i are the angles of the links from the x axis. Each center of mass moves on a sum of circles:
    T = sum_ij 1/2 H_ij cos(p_i - p_j) p_i' p_j'. Nothing here is shared with the recursion except the arm's numbers.
    """
    m1, m2, m3 = (plain_number(b.mass) for b in arm.bodies)
    d1, d2, d3 = (float(b.com[0]) for b in arm.bodies)
    J1, J2, J3 = (plain_number(b.inertia[2]) for b in arm.bodies)
    a1, a2 = (float(j.placement.translation[0]) for j in arm.joints[1:])
    gravity = -float(arm.mechanism.gravity[1])
    p1, p2, p3 = np.moveaxis(np.cumsum(q, axis=-1), -1, 0)
    w1, w2, w3 = np.moveaxis(np.cumsum(qd, axis=-1), -1, 0)
    e1, e2, e3 = np.moveaxis(np.cumsum(qdd, axis=-1), -1, 0)
    H11 = J1 + m1 * d1**2 + (m2 + m3) * a1**2
    H22 = J2 + m2 * d2**2 + m3 * a2**2
    H33 = J3 + m3 * d3**2
    H12 = a1 * (m2 * d2 + m3 * a2)
    H13 = m3 * a1 * d3
    H23 = m3 * a2 * d3
    c12, s12 = np.cos(p1 - p2), np.sin(p1 - p2)
    c13, s13 = np.cos(p1 - p3), np.sin(p1 - p3)
    c23, s23 = np.cos(p2 - p3), np.sin(p2 - p3)
    # d/dt (dT/dp_i') - dT/dp_i + dU/dp_i
    n1 = H11 * e1 + H12 * (c12 * e2 + s12 * w2**2) + H13 * (c13 * e3 + s13 * w3**2)
    n2 = H22 * e2 + H12 * (c12 * e1 - s12 * w1**2) + H23 * (c23 * e3 + s23 * w3**2)
    n3 = H33 * e3 + H13 * (c13 * e1 - s13 * w1**2) + H23 * (c23 * e2 - s23 * w2**2)
    n1 += gravity * (m1 * d1 + (m2 + m3) * a1) * np.cos(p1)
    n2 += gravity * (m2 * d2 + m3 * a2) * np.cos(p2)
    n3 += gravity * m3 * d3 * np.cos(p3)
    return np.stack([n1 + n2 + n3, n2 + n3, n3], axis=-1)  # q_i rotates links i to 3


def _units(arm: System) -> tuple[str, ...]:
    return tuple("N" if unit == "m" else "N m" for _, _, unit in axis_names(arm.mechanism, 1))


def _relative(a: Numbers, b: Numbers) -> float:
    """Return the largest difference, each column relative to its own largest entry."""
    return float((np.abs(a - b).max(axis=0) / np.abs(b).max(axis=0)).max())


def _forward_check(arm: System, motion: Motion, tau: Numbers, bound: float) -> Check:
    back = arm.forward_dynamics(motion[0], motion[1], tau)
    return Check(f"{arm.mechanism.name}: forward dynamics recovers qdd", _relative(back, motion[2]), bound)


def _symmetry_check(arm: System, q: Numbers) -> Check:
    inertia = arm.inertia_matrix(q)
    off = np.abs(inertia - np.swapaxes(inertia, -1, -2)).max() / np.abs(inertia).max()
    return Check(f"{arm.mechanism.name}: I = I^T", float(off), BOUND)


def _matrix_check(arm: System, motion: Motion, tau: Numbers) -> Check:
    q, qd, qdd = motion
    assembled = np.einsum("...ij,...j->...i", arm.inertia_matrix(q), qdd)
    assembled += np.einsum("...ij,...j->...i", arm.convective_matrix(q, qd), qd) + arm.gravity_torque(q)
    return Check(f"{arm.mechanism.name}: recursion = I qdd + C qd + g", _relative(assembled, tau), BOUND)


def _power_check(arm: System, motion: Callable[[Numbers], Motion], t: Numbers) -> Check:
    """Compare tau.qd with dE/dt by central differences of order 12, whose error is about 1e-13 for steps of 0.1 s."""

    def energy(t: Numbers) -> Numbers:
        q, qd, _ = motion(t)
        return arm.kinetic_energy(q, qd) + arm.potential_energy(q)

    m, h = 6, 0.1
    k = np.arange(1, m + 1)
    weights = np.array([(-1) ** (j + 1) * factorial(m) ** 2 / (j * factorial(m - j) * factorial(m + j)) for j in k])
    rate = (energy(t[:, None] + h * k) - energy(t[:, None] - h * k)) @ weights / h
    q, qd, qdd = motion(t)
    power = np.einsum("ij,ij->i", arm.inverse_dynamics(q, qd, qdd), qd)
    return Check(f"{arm.mechanism.name}: tau.qd = dE/dt by differences", _relative(rate, power), BOUND)


def _timing(arm: System, samples: int) -> Timing:
    rng = np.random.default_rng(1)
    state = [rng.uniform(-3.0, 3.0, size=(samples, arm.nv)) for _ in range(3)]
    function, out = arm.function("inverse_dynamics"), np.empty((samples, arm.nv))
    function(*state, out=out)  # allocates the memory before timing
    seconds = []
    for _ in range(5):
        start = time.perf_counter()
        function(*state, out=out)
        seconds.append(time.perf_counter() - start)
    other = np.empty_like(out)
    cuts = [0, *sorted(rng.integers(1, samples, size=3)), samples]
    for first, last in pairwise(cuts):
        function(*(x[first:last] for x in state), out=other[first:last])
    split = out.tobytes() == other.tobytes()
    arm.inverse_dynamics(*state, threads=2, out=other)
    threads = out.tobytes() == other.tobytes()
    return Timing(arm.mechanism.name, samples, float(np.median(seconds)), split, threads)


# --- Agreement between two computations of the same numbers ---


@dataclass(frozen=True)
class Check:
    """An agreement: the compared quantity, the largest relative difference, and its bound."""

    what: str
    residual: float
    bound: float

    @property
    def holds(self) -> bool:
        """Whether the difference is a number within its bound."""
        return self.residual <= self.bound


# --- Simulations of the demonstration: a falling arm, and one that converges to a reference motion and follows it.

RTOL = 1e-10
ENERGY_BOUND = 100 * RTOL
"""Largest relative energy error: some hundred steps, each within the tolerance."""

START = 0.3
"""Initial distance of each joint of the KUKA arm from the reference motion [rad]."""
RATE = 4.0
"""Rate w [1/s] of the errors, which decay as (1 + w t) exp(-w t)."""
REFERENCE = Cosine([pi / 2] * 7, pi / 7)
"""The motion of [Wolinski2015] (28), (29)."""


def fall(duration: float = 1.0) -> Trajectory:
    """Return the Stanford arm released at rest, with its boom level."""
    return simulate(load("stanford"), [0.0, pi / 2, 0.0, 0.0, 0.0, 0.0], duration=duration, rtol=RTOL, progress=False)


def tracking(duration: float = 7.0) -> Trajectory:
    """Return the KUKA arm under computed torque, started off its reference motion."""
    start, _, _ = sampled(REFERENCE, 0.0)
    control = ComputedTorque(RATE**2, 2 * RATE, REFERENCE)
    return simulate(load("kuka_lwr4"), start + START, duration=duration, control=control, rtol=RTOL, progress=False)


def tracking_errors(run: Trajectory) -> np.ndarray:
    """Return the differences of a run of the KUKA arm from its reference motion, [nt, 7]."""
    return run.q - sampled(REFERENCE, run.t)[0]


def expected_error(t: np.ndarray) -> np.ndarray:
    """Return the solution of e'' + 2 w e' + w^2 e = 0 from START with zero velocity, [nt]."""
    return START * (1.0 + RATE * t) * np.exp(-RATE * t)


def energy_check(run: Trajectory) -> Check:
    """Compare the energy of a falling arm with its initial energy."""
    error = float(run.energy_error) if run.finished else np.nan
    return Check(f"{run.system.mechanism.name}: energy is constant in free fall", error, ENERGY_BOUND)


def tracking_check(run: Trajectory) -> Check:
    """Compare the errors of all joints with the solution for computed torque."""
    off = np.abs(tracking_errors(run) - expected_error(run.t)[:, None]).max() / START
    name = run.system.mechanism.name
    return Check(
        f"{name}: error = (1 + w t) exp(-w t) by control", float(off) if run.finished else np.nan, ENERGY_BOUND
    )


GAP = 1e-12
"""Largest gap of closed loops [m, rad]: rounding after projection."""


@dataclass(frozen=True)
class Links:
    """Forward dynamics of one long chain: its links, seconds, and the residual of inverse dynamics."""

    count: int
    seconds: float
    residual: float


def turning(duration: float = 2.0) -> Trajectory:
    """Return the four-bar of [Saha2013] 4.1 without a drive, its crank started at 1.5 pi rad/s."""
    bars = load("four_bar")
    q = bars.assemble(hold=["crank"])
    qd = bars.consistent_speeds(q, {"crank": 1.5 * np.pi})
    return simulate(bars, q, qd, duration=duration, rtol=RTOL, atol=1e-12, progress=False)


def gap_check(run: Trajectory) -> Check:
    """Compare the two ends of every loop at every sample."""
    gap = float(np.abs(run["gap"]).max()) if run.finished else np.nan
    return Check(f"{run.system.mechanism.name}: the loop stays closed [m, rad]", gap, GAP)


def loop_energy_check(run: Trajectory) -> Check:
    """Compare the energy of a closed mechanism with its initial energy."""
    error = float(run.energy_error) if run.finished else np.nan
    return Check(f"{run.system.mechanism.name}: energy is constant with the loop closed", error, ENERGY_BOUND)


def long_chain(count: int = 10_000) -> Links:
    """Return the timed forward dynamics of a spatial chain, and its residual by inverse dynamics."""
    links = chain(count)
    rng = np.random.default_rng(2)
    q, qd, tau = rng.normal(size=(3, count))
    function = links.function("forward_dynamics")
    qdd = function(q, qd, tau)
    seconds = []
    for _ in range(5):
        start = time.perf_counter()
        function(q, qd, tau)
        seconds.append(time.perf_counter() - start)
    terms = np.abs(links.bias_torque(q, qd)).max()
    back = links.inverse_dynamics(q, qd, qdd)
    return Links(count, float(np.median(seconds)), float(np.abs(back - tau).max() / terms))


def links_check(links: Links) -> Check:
    """Compare the torques of the accelerations with the given ones; the rounding grows with the number of bodies."""
    return Check(
        f"chain of {links.count:,} links: inverse dynamics recovers tau",
        links.residual,
        links.count * float(np.finfo(float).eps),
    )
