"""The demonstration: arms of the papers, a four-bar and a long chain, each compared with an independent result."""

from __future__ import annotations

import time
from collections.abc import Callable
from dataclasses import dataclass
from itertools import pairwise
from math import factorial, pi

import numpy as np

from ...algebra.arrays import Numbers
from ...loading import load
from ...model.axes import axis_names
from ...results.trajectory import Trajectory
from ...system import System
from .mechanisms import (
    Check,
    Links,
    energy_check,
    fall,
    gap_check,
    links_check,
    long_chain,
    loop_energy_check,
    tracking,
    tracking_check,
    turning,
)

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
    m1, m2, m3 = (float(b.mass) for b in arm.bodies)  # type: ignore[arg-type]
    d1, d2, d3 = (float(b.com[0]) for b in arm.bodies)
    J1, J2, J3 = (float(b.inertia[2]) for b in arm.bodies)  # type: ignore[arg-type]
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
