"""Return maps: a motion from a section to an event, and a jump back to the section."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import KW_ONLY, dataclass, field
from typing import Any

import numpy as np
from numpy.typing import ArrayLike

from ..algebra.arrays import Numbers
from ..errors import InputError
from ..results.trajectory import Trajectory
from ..simulation.events import Event, event_hits
from ..simulator import simulate
from ..system import System

State = tuple[Numbers, Numbers]
"""Coordinates q [..., nq] and velocities qd [..., nv]."""

SAMPLES = 129
"""The output times of a motion: an event between two of them is located."""


@dataclass(frozen=True)
class ReturnMap:
    """The map of points x of a section to those after one return.

    `state` returns q and qd of points [..., n]. From there the mechanism moves until the `event`, within the `longest`
    time [s]. `jump` returns q and qd after it, such as those after an impact with the legs exchanged, and `section` the
    point of a state. `options` are those of `simulate`.
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
