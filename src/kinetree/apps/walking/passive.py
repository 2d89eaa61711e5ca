"""Passive walkers, which gravity alone moves down a slope, and the return maps by which their gaits are found.

The walkers are the rimless wheel, the compass gait and the simplest walker. All walk in the xy plane along x, with y
perpendicular to the slope, and rotate about z. The supporting foot is pinned to the ground. At heel strike the other
foot is pinned, without bounce or slip, and the first one comes free.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import KW_ONLY, dataclass, field
from functools import cached_property
from typing import Any

import numpy as np
from numpy.typing import ArrayLike

from ..._support.checks import number, positive, whole
from ..._support.tables import Displayed
from ...algebra.scalars import Numbers, cos, where
from ...errors import InputError
from ...model import build_mechanism
from ...model.mechanism import Mechanism
from ...model.parts import Body, Frame, Joint, Placement
from ...results.trajectory import Trajectory
from ...simulation.events import Event, event_hits
from ...simulation.simulate import simulate
from ...system import System

# --- Return maps: a motion from a section to an event, and a jump back to the section ---


State = tuple[Numbers, Numbers]
"""Coordinates q [..., nq] and velocities qd [..., nv]."""

SAMPLES = 129
"""The output times of a motion: an event between two of them is located."""


@dataclass(frozen=True)
class ReturnMap:
    """The map of points x of a section to those after one return.

    `state` returns q and qd of points [..., n]. From there the mechanism moves until the `event`, within the `longest`
    time [s]. `jump` returns q and qd after it, such as those after an impact with the legs exchanged, and `section` the
    point of a state. `options` go to `simulate`.
    """

    system: System
    event: Event
    _: KW_ONLY
    state: Callable[[Numbers], State]
    jump: Callable[[Numbers, Numbers], State]
    section: Callable[[Numbers, Numbers], Numbers]
    longest: float
    options: Mapping[str, Any] = field(default_factory=lambda: {"rtol": 1e-12, "atol": 1e-13})

    def __call__(self, x: ArrayLike) -> Numbers:
        """Return the points after one return, NaN where the event does not occur."""
        points = np.asarray(x, dtype=float)
        flat = points.reshape(-1, points.shape[-1])
        out = np.full_like(flat, np.nan)
        good = np.flatnonzero(np.isfinite(flat).all(axis=-1))
        if len(good):
            q, qd = self.state(flat[good])
            for hit in event_hits(self._run(q, qd)):
                out[good[hit.run[0]]] = self.section(*self.jump(hit.q, hit.qd))
        return out.reshape(points.shape)

    def steps(self, x: ArrayLike, count: int) -> list[Trajectory]:
        """Return the motions of so many returns from one point, fewer if one does not return."""
        point, out = np.asarray(x, dtype=float), list[Trajectory]()
        for _ in range(count):
            run = self._run(*self.state(point))
            out.append(run)
            hits = event_hits(run)
            if not hits:
                break
            point = self.section(*self.jump(hits[0].q, hits[0].qd))
        return out

    def returns(self, x: ArrayLike, count: int) -> Numbers:
        """Return how often motions from points [..., n] return, up to a count, as for a picture of a basin."""
        points = np.asarray(x, dtype=float)
        total = np.zeros(points.shape[:-1], dtype=int)
        for _ in range(count):
            points = self(points)
            alive = np.isfinite(points).all(axis=-1)
            total += alive
            if not alive.any():
                break
        return total

    def _run(self, q: Numbers, qd: Numbers) -> Trajectory:
        if not self.event.stop:
            raise InputError("the event of a ReturnMap must end the motion; give Event(..., stop=True)")
        times = np.linspace(0.0, self.longest, SAMPLES)
        return simulate(self.system, q, qd, times=times, events=self.event, **self.options)


# --- Periodic motions: fixed points of a return map by Newton's method, with their multipliers ---

STEP = 1e-6
"""The step of central differences, relative to 1 + |x|. With maps of relative accuracy 1e-13, errors of the derivative
by rounding and by curvature are both some 1e-8."""

HALVINGS = 12
"""How often a step of Newton's method is halved until the residual decreases."""


@dataclass(frozen=True, repr=False)
class PeriodicMotion(Displayed):
    """A fixed point x of a return map: its residual |map(x) - x|, the derivative of the map there, and the iterations.

    A small deviation is multiplied by the `derivative` from one return to the next.
    """

    x: Numbers
    residual: float
    derivative: Numbers
    iterations: int

    @property
    def multipliers(self) -> np.ndarray:
        """The eigenvalues of the derivative, largest first: Floquet multipliers of the motion."""
        values = np.linalg.eigvals(self.derivative)
        return values[np.argsort(-np.abs(values))]

    @property
    def stable(self) -> bool:
        """Whether all small deviations fade: all multipliers are inside the unit circle."""
        return bool(np.abs(self.multipliers).max(initial=0.0) < 1.0)

    def display(self) -> list[str]:
        """Return the fixed point and its largest multiplier in a line."""
        largest = np.abs(self.multipliers).max(initial=0.0)
        word = "stable" if self.stable else "unstable"
        return [f"x = {np.array2string(self.x, precision=9)}, {word}, largest multiplier {largest:.6g}"]


def periodic(
    advance: Callable[[Numbers], Numbers], x0: ArrayLike, *, tolerance: float = 1e-11, most: int = 40
) -> PeriodicMotion:
    """Return the fixed point of a return map near x0 [n], by Newton's method.

    `advance` maps a batch of points [..., n] to the points after one return, NaN where there is none, as a `ReturnMap`
    does. Its derivative is formed by central differences, in one call for all directions. The residual falls below
    `tolerance`, relative to 1 + |x|, within at most so many iterations, or an InputError states the reason.
    """
    x = np.array(x0, dtype=float)
    if x.ndim != 1 or not x.size or not np.isfinite(x).all():
        raise InputError(f"x0 has shape {x.shape}; give the finite coordinates [n] of a point near the fixed point")
    tolerance = positive(tolerance, "tolerance")
    gap = _gap(advance, x)
    for iteration in range(1, whole(most, "most") + 1):
        derivative = _derivative(advance, x)
        size = 1.0 + np.abs(x).max()
        if np.abs(gap).max() <= tolerance * size:
            return PeriodicMotion(x, float(np.abs(gap).max()), derivative, iteration)
        step = np.linalg.lstsq(derivative - np.eye(len(x)), -gap, rcond=None)[0]
        x, gap = _shorter(advance, x, gap, step)
    raise InputError(
        f"no periodic motion within {most} iterations: the residual is {np.abs(gap).max():.3g} at x = {x}; start "
        "nearer to it"
    )


def _shorter(advance, x: Numbers, gap: Numbers, step: Numbers) -> tuple[Numbers, Numbers]:
    """Return the point after a step, halved until the residual decreases, and its gap."""
    shares = 0.5 ** np.arange(HALVINGS)
    tried = x + shares[:, None] * step
    gaps = _map_states(advance, tried) - tried
    sizes = np.abs(gaps).max(axis=-1)
    better = np.flatnonzero(sizes < np.abs(gap).max())
    if not len(better):
        raise InputError(
            f"no periodic motion: Newton's method stops at x = {x} with the residual {np.abs(gap).max():.3g}; start "
            "nearer to it, or make the map more accurate (rtol)"
        )
    return tried[better[0]], gaps[better[0]]


def _gap(advance, x: Numbers) -> Numbers:
    gap = _map_states(advance, x) - x
    if not np.isfinite(gap).all():
        raise InputError(f"the motion from x0 = {x} does not return; start nearer to a periodic motion")
    return gap


def _derivative(advance, x: Numbers) -> Numbers:
    """Return the derivative [n, n] of the map by central differences."""
    steps = np.diag(STEP * (1.0 + np.abs(x)))
    ends = _map_states(advance, np.concatenate([x + steps, x - steps]))
    n = len(x)
    derivative = (ends[:n] - ends[n:]).T / (2.0 * np.diag(steps))
    if not np.isfinite(derivative).all():
        raise InputError(f"motions next to x = {x} do not return; the periodic motion has no derivative there")
    return derivative


def _map_states(advance, x: Numbers) -> Numbers:
    found = np.asarray(advance(x), dtype=float)
    if found.shape != x.shape:
        raise InputError(f"the map of points {x.shape} returned {found.shape}; expected the same shape")
    return found


GRAVITY = 9.81
APART = 0.05
"""The least angle between the legs at heel strike [rad]: feet that pass each other are below the slope, as the papers
accept it."""


def pinned_speeds(system: System, q: Numbers, qd: Numbers, frame: str) -> Numbers:
    """Return the velocities after a point of a mechanism in the plane was suddenly pinned, without bounce or slip.

    The velocities nearest to qd in kinetic energy with J qd = 0: qd - I^-1 J^T (J I^-1 J^T)^-1 J qd.
    """
    J = system.jacobian(q, frame)[..., 3:5, :]
    answer = system.inverse_inertia_matrix(q) @ np.swapaxes(J, -1, -2)
    impulse = np.linalg.solve(J @ answer, J @ qd[..., None])
    return qd - (answer @ impulse)[..., 0]


@dataclass(frozen=True)
class Compass:
    """A walker of two straight legs with a hip: the compass gait of [Goswami1998].

    A leg of a `length` [m] has its mass `leg` [kg] at a distance `above` [m] from its foot, without inertia of its own,
    and `hip` [kg] is at the hip. `slope` is in rad. With hip alone, `Compass.simplest(...)`, it is the simplest walker
    of [Garcia1998], whose feet have a small share of the mass.
    """

    slope: float
    leg: float = 5.0
    hip: float = 10.0
    length: float = 1.0
    above: float = 0.5
    gravity: float = GRAVITY

    def __post_init__(self) -> None:
        """Check the numbers."""
        number(self.slope, "slope")
        for name in ("leg", "hip", "length", "gravity"):
            positive(getattr(self, name), name)
        if not 0.0 <= number(self.above, "above") < self.length:
            raise InputError(f"above is {self.above}; give the height of a leg's mass, below its length {self.length}")

    @classmethod
    def simplest(cls, slope: float, *, foot: float = 1e-3) -> Compass:
        """Return the walker with all masses at the hip (1 kg) and at the feet, g = l = 1."""
        return cls(slope, leg=foot, hip=1.0, length=1.0, above=0.0, gravity=1.0)

    @cached_property
    def system(self) -> System:
        """The walker on its pinned foot: q are the angle of that leg from y, and the angle of the hip."""
        return System(self._mechanism(floating=False))

    @cached_property
    def floating(self) -> System:
        """The walker with both feet free: x and y of the first one come before the angles."""
        return System(self._mechanism(floating=True))

    def _mechanism(self, *, floating: bool) -> Mechanism:
        point = (0.0,) * 6
        total = self.leg + self.hip
        center = (self.leg * self.above + self.hip * self.length) / total
        about = self.leg * (self.above - center) ** 2 + self.hip * (self.length - center) ** 2
        bodies = [
            Body("stance", total, (0.0, center, 0.0), (about, 0.0, about, 0.0, 0.0, 0.0)),
            Body("swing", self.leg, (0.0, self.above - self.length, 0.0), point),
        ]
        z = (0.0, 0.0, 1.0)
        joints = [
            Joint("stance", "revolute", "y" if floating else "ground", "stance", axis=z),
            Joint("hip", "revolute", "stance", "swing", Placement((0.0, self.length, 0.0)), axis=z),
        ]
        if floating:
            bodies = [Body("x", 0.0, (0.0, 0.0, 0.0), point), Body("y", 0.0, (0.0, 0.0, 0.0), point), *bodies]
            joints = [
                Joint("x", "prismatic", "ground", "x", axis=(1.0, 0.0, 0.0)),
                Joint("y", "prismatic", "x", "y", axis=(0.0, 1.0, 0.0)),
                *joints,
            ]
        down = (self.gravity * np.sin(self.slope), -self.gravity * np.cos(self.slope), 0.0)
        foot = Frame("foot", "swing", Placement((0.0, -self.length, 0.0)))
        return build_mechanism("compass", bodies, joints, gravity=down, frames=[foot])

    def height(self, now):
        """Return the height of the foot above the slope, on traced scalars; -1 until the leg swings ahead."""
        a, b = now.q[0], now.q[0] + now.q[1]
        return where(now.q[1] > APART, self.length * (cos(a) - cos(b)), -1.0)

    def strike(self, q: Numbers, qd: Numbers) -> tuple[Numbers, Numbers]:
        """Return the state after heel strike, with the legs exchanged; NaN for a walker that has fallen."""
        still = np.zeros_like(q)
        whole, rates = np.concatenate([still, q], axis=-1), np.concatenate([still, qd], axis=-1)
        after = pinned_speeds(self.floating, whole, rates, "foot")[..., 2:]
        fallen = (np.abs(q[..., :1]) > np.pi / 2) | (np.abs(q[..., :1] + q[..., 1:]) > np.pi / 2)
        return exchange_legs(np.where(fallen, np.nan, q)), exchange_legs(after)

    @cached_property
    def step(self) -> ReturnMap:
        """The map from one heel strike to the next: x = (angle of the supporting leg, and both velocities)."""
        return ReturnMap(
            self.system,
            Event(self.height, direction=-1, stop=True, name="heel strike"),
            state=lambda x: (np.stack([x[..., 0], -2.0 * x[..., 0]], axis=-1), x[..., 1:]),
            jump=self.strike,
            section=lambda q, qd: np.concatenate([q[..., :1], qd], axis=-1),
            longest=8.0 * float(np.sqrt(self.length / self.gravity)),
        )


def exchange_legs(x: Numbers) -> Numbers:
    """Return angles or their rates (first leg, hip) with the legs exchanged: (a, b - a) becomes (b, a - b)."""
    return np.stack([x[..., 0] + x[..., 1], -x[..., 1]], axis=-1)


@dataclass(frozen=True)
class RimlessWheel:
    """A wheel of spokes without a rim: `mass` [kg] and `inertia` [kg m^2] at the hub, spokes of a `length` [m]."""

    slope: float
    spokes: int = 8
    mass: float = 1.0
    inertia: float = 0.1
    length: float = 1.0
    gravity: float = GRAVITY

    def __post_init__(self) -> None:
        """Check the numbers."""
        number(self.slope, "slope")
        whole(self.spokes, "spokes", least=3)
        for name in ("mass", "length", "gravity"):
            positive(getattr(self, name), name)
        number(self.inertia, "inertia", least=0.0)

    @property
    def half(self) -> float:
        """Half the angle between two spokes [rad]."""
        return float(np.pi / self.spokes)

    @property
    def loss(self) -> float:
        """The ratio of the angular velocities after and before a spoke strikes the slope."""
        inert = self.mass * self.length**2
        return float((self.inertia + inert * np.cos(2 * self.half)) / (self.inertia + inert))

    @property
    def rolling_speed(self) -> float:
        """The angular velocity after a strike in steady rolling, in closed form [rad/s]; 0 if it cannot roll."""
        inert = self.inertia + self.mass * self.length**2
        gain = 4 * self.mass * self.gravity * self.length / inert * np.sin(self.half) * np.sin(self.slope)
        speed = np.sqrt(self.loss**2 * gain / (1 - self.loss**2)) if gain > 0 and self.loss > 0 else 0.0
        over = 2 * self.mass * self.gravity * self.length / inert * (1 - np.cos(max(self.half - self.slope, 0.0)))
        return float(speed) if speed**2 > over else 0.0

    @cached_property
    def system(self) -> System:
        """The wheel on its pinned spoke: q is the angle of the hub from y, counterclockwise."""
        inertia = (self.inertia, self.inertia, self.inertia, 0.0, 0.0, 0.0)
        body = Body("wheel", self.mass, (0.0, self.length, 0.0), inertia)
        down = (self.gravity * np.sin(self.slope), -self.gravity * np.cos(self.slope), 0.0)
        joint = Joint("spoke", "revolute", "ground", "wheel", axis=(0.0, 0.0, 1.0))
        return System(build_mechanism("rimless_wheel", [body], [joint], gravity=down))

    @cached_property
    def step(self) -> ReturnMap:
        """The map from one strike to the next: x = (angular velocity of the hub); rolling downhill is negative.

        A wheel that is too slow to pass over its spoke rolls back, and does not return.
        """
        half = self.half
        return ReturnMap(
            self.system,
            Event(lambda now: now.q[0] + half, direction=-1, stop=True, name="strike"),
            state=lambda x: (np.full_like(x, half), x),
            jump=lambda q, qd: (q + 2 * half, self.loss * qd),
            section=lambda q, qd: qd,
            longest=20.0 * float(np.sqrt(self.length / self.gravity)),
        )
