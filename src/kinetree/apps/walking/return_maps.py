"""Return maps: a motion from a section to an event, and a jump back to the section."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import KW_ONLY, dataclass, field
from typing import Any

import numpy as np
from numpy.typing import ArrayLike

from ..._support.checks import positive, whole
from ..._support.tables import Displayed
from ...algebra.arrays import Numbers
from ...errors import InputError
from ...results.trajectory import Trajectory
from ...simulation.events import Event, event_hits
from ...simulation.simulate import simulate
from ...system import System

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
