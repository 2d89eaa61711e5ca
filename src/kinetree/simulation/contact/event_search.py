"""Events within a step of the integrator: the first time at which a mode ends, and the reason.

Each event is found on the dense output, at points within the step, and its time by bisection down to rounding.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, replace

import numpy as np

from ..run_states import Settings
from .cone_problem import NoForces, solve
from .modes import Mode, PainleveError, cone_problem, feasible, refuse_painleve
from .touching import AWAY, Coefficients

POINTS = np.arange(1, 9) / 8
"""Points within a step at which modes are examined, in parts of the step."""
CAUGHT = 10.0
"""The velocity of slip below which it is an error of integration, in parts of the tolerance of the velocities."""

State = tuple[np.ndarray, np.ndarray]
Causes = list[tuple[str, int]]
"""The causes of an event, each with its candidate: touch, away, stop, caught, force or painleve."""


@dataclass(frozen=True)
class Search:
    """The search for the end of a mode within a step: the mode, the state before the step, and its dense output."""

    given: Coefficients
    mode: Mode
    y: State
    between: Callable

    def first(self, start: float, end: float) -> tuple[float, Causes] | None:
        """Return the first time that is not good, and what is wrong there; None if there is none."""
        ts = start + POINTS * (end - start)
        ys = self.between(ts).T
        gaps, rates = self._gaps(ys)
        before_gap, before_rate = self._gaps(np.concatenate(self.y)[None])
        limit = self._limit(before_gap[0], before_rate[0])
        good = start
        previous = before_gap[0], before_rate[0]
        for t, y, gap, rate in zip(ts, ys, gaps, rates, strict=True):
            wrong = self._wrong(t, y, gap, limit)
            dip = None if wrong else self._dip(good, t, previous, (gap, rate), limit)
            if dip is not None:
                t, wrong = dip
            if wrong:
                good = self._apex(good, t, wrong, previous[1])
                return self._bisected(good, t, limit, wrong)
            good, previous = t, (gap, rate)
        return None

    def _gaps(self, ys: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
        nq = len(self.y[0])
        return self.given.gaps(np.ascontiguousarray(ys[:, :nq]), np.ascontiguousarray(ys[:, nq:]))

    def _limit(self, gap: np.ndarray, rate: np.ndarray) -> np.ndarray:
        """Return the gap below which each open candidate has touched: zero, or less if it has just opened."""
        fresh = (gap <= 10 * self.given.scales.gap) & (rate <= self.given.scales.still)
        limit = np.minimum(gap, 0.0) - np.where(fresh, 10 * self.given.scales.gap, 0.0)
        limit[list(self.mode.closed)] = -np.inf
        return limit

    def _dip(self, a: float, b: float, at_a, at_b, limit) -> tuple[float, Causes] | None:
        """Return a time between two points at which a gap is negative although it is not at these points."""
        for i in np.flatnonzero((at_a[1] < 0) & (at_b[1] > 0) & np.isfinite(limit)):
            if at_a[0][i] > -at_a[1][i] * (b - a):
                continue
            low, high = a, b
            for _ in range(40):
                middle = 0.5 * (low + high)
                gap, rate = self._gaps(self.between(middle)[None])
                if gap[0][i] < limit[i]:
                    return middle, [("touch", int(i))]
                low, high = (middle, high) if rate[0][i] < 0 else (low, middle)
        return None

    def _wrong(self, t: float, y: np.ndarray, gap: np.ndarray, limit: np.ndarray) -> Causes:
        """Return what ends the mode at a state, by candidate."""
        given, mode = self.given, self.mode
        wrong = [("touch", int(i)) for i in np.flatnonzero(gap < limit)]
        wrong += [("away", i) for i in mode.closed if abs(gap[i]) > AWAY * given.scales.length]
        if not mode.closed or wrong:
            return wrong
        nq = len(self.y[0])
        q, qd = y[:nq], y[nq:]
        state = given.at(q, qd)
        for i, d in mode.slip.items():
            if given.mu[i] > 0 and state.v[i, 1:] @ d < self._stopping(i):
                wrong.append(("stop", i))
        if wrong:
            return wrong
        try:
            refuse_painleve(given, mode, state)
        except PainleveError:
            return [("painleve", mode.closed[0])]
        _, free = given.free(t, q, qd)
        return [("force", i) for i in feasible(given, mode, state, free)[1]]

    def _stopping(self, i: int) -> float:
        """Return the velocity along the direction of slip below which it has stopped; negative at the begin of slip."""
        v = self.given.at(*self.y).v[i, 1:] @ self.mode.slip[i]
        return 0.0 if v > self.given.scales.still else -self.given.scales.still

    def _apex(self, good: float, bad: float, wrong: list, rate: np.ndarray) -> float:
        """Return the top of the flight of contacts that leave and touch again, a good time after that of leaving."""
        for kind, i in wrong:
            if kind != "touch" or rate[i] <= 0:
                continue
            low, high = good, bad
            for _ in range(60):
                middle = 0.5 * (low + high)
                gap, speed = self._gaps(self.between(middle)[None])
                if gap[0][i] > 0 and speed[0][i] <= 0:
                    return middle
                low, high = (middle, high) if speed[0][i] > 0 else (low, middle)
        return good

    def _bisected(self, good: float, bad: float, limit, wrong) -> tuple[float, Causes]:
        """Return the first time that is not good, next to the last that is, and what is wrong there."""
        while True:
            middle = 0.5 * (good + bad)
            if not good < middle < bad:
                return bad, wrong
            y = self.between(middle)
            gap, _ = self._gaps(y[None])
            found = self._wrong(middle, y, gap[0], limit)
            if found:
                bad, wrong = middle, found
            else:
                good = middle


def caught(given: Coefficients, mode: Mode, settings: Settings, t: float, y: State) -> tuple[Mode, list[int]]:
    """Return the mode, and its contacts that slide no faster than the integrator's tolerance and could be held.

    The direction of their velocity is an error of integration. Those that friction cannot hold begin to slip anew.
    """
    slides = [i for i in mode.slip if i not in mode.begins and given.mu[i] > 0]
    if not slides:
        return mode, []
    state = given.at(*y)
    noise = CAUGHT * (settings.atol + settings.rtol * np.abs(state.J) @ np.abs(y[1]))
    slow = [i for i in slides if np.hypot(*state.v[i, 1:]) <= noise[i, 1:].max()]
    if not slow:
        return mode, []
    _, free = given.free(t, *y)
    slip = {i: d for i, d in mode.slip.items() if i not in slow}
    try:
        f = solve(cone_problem(given, list(mode.closed), state, free, slip)).forces
    except NoForces:
        return mode, []
    force = dict(zip(mode.closed, f, strict=True))
    held = [i for i in slow if np.hypot(*force[i][1:]) < given.mu[i] * force[i][0] * (1 - 1e-9)]
    anew = [i for i in slow if i not in held and -(force[i][1:] @ state.v[i, 1:]) > 0]
    return replace(mode, begins=mode.begins | frozenset(anew)), held
