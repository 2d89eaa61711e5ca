"""An event-driven run: smooth motion in a mode, up to the event that ends the mode.

Events are touch-down, lift-off, the end of slip, the end of stick, and the end of a surface. Each is found on the dense
output of the integrator, at points within each step, and its time by bisection down to rounding.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from dataclasses import replace
from typing import Any

import numpy as np

from ...errors import InputError
from ..run_states import REASONS, Settings
from .cone_problem import NoForces, solve
from .impacts import impact
from .modes import (
    BEGIN,
    Mode,
    PainleveError,
    accelerations,
    chosen,
    cone_problem,
    directions,
    feasible,
    refuse_painleve,
)
from .projection import placed, settled
from .records import Records
from .touching import START, Coefficients

POINTS = np.arange(1, 9) / 8
"""Points within a step at which modes are examined, in parts of the step."""
LONGEST = 1 / 40
"""The longest step, in parts of the run: the flight between two bounces is examined at many points."""
ZENO = 1e-10
"""The height of bounces, in parts of the characteristic length, below which infinitely many are replaced by one."""
EVENTS = 1_000_000
"""The largest number of events of a run."""
CAUGHT = 10.0
"""The velocity of slip below which it is an error of integration, in parts of the tolerance of the velocities."""
HURRIED = 20
"""The number of events within ten times CLOSE after which bounces of several contacts in turns are ended."""
STUCK = 60
"""The number of events within CLOSE that shows that they accumulate."""
CLOSE = 1e-7
"""The time within which events accumulate, in parts of the run: the bounces of a ball that comes to rest are longer."""
AWAY = 1e-3
"""The gap of a closed contact, in parts of the characteristic length, that only the end of a surface explains."""

State = tuple[np.ndarray, np.ndarray]


class March:
    """One run: its time, state and mode, from event to event."""

    def __init__(
        self, given: Coefficients, start: State, times: np.ndarray, settings: Settings, pair: str, records: Records
    ) -> None:  # fmt: skip
        """Examine the start: contacts that touch are closed, or bounce if they approach."""
        self.given, self.times, self.settings, self.pair = given, times, settings, pair
        self.records, self.mode = records, Mode()
        self.t, self.y, self.evaluations, self.steps = float(times[0]), start, 0, 0
        self._recent: list[float] = []  # times of events
        self._refuse_depth(start)
        state = given.at(*start)
        touching = [i for i, g in enumerate(state.gap) if abs(g) <= START * given.scales.length]
        self.y = settled(given, Mode(), placed(given, touching, start[0]), start[1])
        self._restart(touching, now=())

    def _refuse_depth(self, start: State) -> None:
        state, given = self.given.at(*start), self.given
        deep = [i for i, g in enumerate(state.gap) if g < -START * given.scales.length]
        if deep:
            worst = min(deep, key=lambda i: state.gap[i])
            raise InputError(
                f"q0 puts contact {given.names[worst]!r} {-state.gap[worst]:.6g} m under its surface"
                + (f", and {len(deep) - 1} others" if len(deep) > 1 else "")
                + "; start with all gaps zero or above"
            )

    def samples(self) -> Iterator[State]:
        """Yield the states at the times, and record forces and residuals there."""
        k, count = 0, len(self.times)
        recent = self._recent
        while k < count:
            while k < count and self.times[k] <= self.t:
                self.records.sample(self.given, self.mode, self.t, *self.y)
                yield self.y
                k += 1
            if k == count:
                return
            for piece in self._smooth():
                until, between = piece
                while k < count and self.times[k] < until:
                    t = float(self.times[k])
                    q, qd = settled(self.given, self.mode, *self._split(between(t)))
                    self.records.sample(self.given, self._turned(q, qd), t, q, qd)
                    yield q, qd
                    k += 1
            recent.append(self.t)
            close = len(recent) > STUCK and recent[-1] - recent[-1 - STUCK] <= CLOSE * (self.times[-1] - self.times[0])
            if close or len(self.records.events) > EVENTS:
                raise InputError(
                    f"events of contacts accumulate at t = {self.t:.9g} s: "
                    f"{', '.join(str(e) for e in self.records.events[-3:])}; the run ends there"
                )

    def _turned(self, q: np.ndarray, qd: np.ndarray) -> Mode:
        """Return the mode with the directions of slip of a state."""
        if not self.mode.slip:
            return self.mode
        state = self.given.at(q, qd)
        found = directions(self.mode, state, 0.01 * self.given.scales.still)
        slip = {i: d for i, d in zip(self.mode.closed, found, strict=True) if not np.isnan(d[0])}
        slow = BEGIN * self.given.scales.still
        begins = frozenset(i for i in self.mode.begins if np.hypot(*state.v[i, 1:]) <= slow)
        return replace(self.mode, slip=slip, begins=begins)

    def _split(self, y: np.ndarray) -> State:
        nq = len(self.y[0])
        return y[:nq], y[nq:]

    def _smooth(self) -> Iterator[tuple[float, Callable[[float], np.ndarray]]]:
        """Integrate in the mode until its end, or the end of the run; yield each step with its dense output."""
        from scipy import integrate

        given, settings, nq = self.given, self.settings, len(self.y[0])
        end = float(self.times[-1])

        def rate(t: float, y: np.ndarray) -> np.ndarray:
            self.evaluations += 1
            return accelerations(given, self.mode, t, y[:nq], y[nq:])

        with np.errstate(all="ignore"):
            solver: Any = getattr(integrate, self.pair)(
                rate, self.t, np.concatenate(self.y), end, rtol=settings.rtol, atol=settings.atol,
                max_step=max(LONGEST * (end - self.times[0]), 1e-12),
            )  # fmt: skip
        while solver.status == "running":
            if self.steps >= settings.most:
                raise InputError(f"{REASONS[2]}; the last good state is at t = {self.t:.9g} s")
            with np.errstate(all="ignore"):
                solver.step()
            self.steps += 1
            if solver.status == "failed" or not np.isfinite(solver.y).all():
                self._explain_failure()
                raise InputError(f"{REASONS[1]}; the last good state is at t = {self.t:.9g} s")
            between = solver.dense_output()
            found = self._first(self.t, solver.t, between)
            if found is not None:
                bad, wrong = found
                yield bad, between
                self.t = bad
                gone = [i for kind, i in wrong if kind == "away"]
                kept = tuple(i for i in self.mode.closed if i not in gone)
                self.y = settled(given, Mode(kept, self.mode.slip), *self._split(between(bad)))
                self._event(wrong)
                return
            yield solver.t, between
            self.t = float(solver.t)
            self.y = settled(given, self.mode, *self._split(solver.y))
            self.mode = self._turned(*self.y)
            if caught := self._caught():
                self._event([("caught", i) for i in caught])
                return
            solver.y = np.concatenate(self.y)
            solver.f = rate(self.t, solver.y)
        self.t = end

    def _caught(self) -> list[int]:
        """Return contacts that slide no faster than the tolerance of the integrator, and that friction could hold.

        The direction of their velocity is an error of integration. Those that friction cannot hold begin to slip anew.
        """
        given, mode, settings = self.given, self.mode, self.settings
        slides = [i for i in mode.slip if i not in mode.begins and given.mu[i] > 0]
        if not slides:
            return []
        state = given.at(*self.y)
        noise = CAUGHT * (settings.atol + settings.rtol * np.abs(state.J) @ np.abs(self.y[1]))
        slow = [i for i in slides if np.hypot(*state.v[i, 1:]) <= noise[i, 1:].max()]
        if not slow:
            return []
        _, free = given.free(self.t, *self.y)
        slip = {i: d for i, d in mode.slip.items() if i not in slow}
        try:
            f = solve(cone_problem(given, list(mode.closed), state, free, slip)).forces
        except NoForces:
            return []
        force = dict(zip(mode.closed, f, strict=True))
        held = [i for i in slow if np.hypot(*force[i][1:]) < given.mu[i] * force[i][0] * (1 - 1e-9)]
        anew = [i for i in slow if i not in held and -(force[i][1:] @ state.v[i, 1:]) > 0]
        self.mode = replace(mode, begins=mode.begins | frozenset(anew))
        return held

    def _explain_failure(self) -> None:
        """Raise PainleveError if the state at which the integrator failed is near one."""
        refuse_painleve(self.given, self.mode, self.given.at(*self.y))

    def _first(self, start: float, end: float, between) -> tuple[float, list] | None:
        """Return the first time that is not good, and what is wrong there; None if there is none."""
        ts = start + POINTS * (end - start)
        ys = between(ts).T
        gaps, rates = self._gaps(ys)
        before_gap, before_rate = self._gaps(np.concatenate(self.y)[None])
        limit = self._limit(before_gap[0], before_rate[0])
        good = start
        previous = before_gap[0], before_rate[0]
        for t, y, gap, rate in zip(ts, ys, gaps, rates, strict=True):
            wrong = self._wrong(t, y, gap, limit)
            dip = None if wrong else self._dip(good, t, between, previous, (gap, rate), limit)
            if dip is not None:
                t, wrong = dip
            if wrong:
                good = self._apex(good, t, between, wrong, previous[1])
                return self._bisected(good, t, between, limit, wrong)
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

    def _dip(self, a: float, b: float, between, at_a, at_b, limit) -> tuple[float, list] | None:
        """Return a time between two points at which a gap is negative although it is not at these points."""
        for i in np.flatnonzero((at_a[1] < 0) & (at_b[1] > 0) & np.isfinite(limit)):
            if at_a[0][i] > -at_a[1][i] * (b - a):
                continue
            low, high = a, b
            for _ in range(40):
                middle = 0.5 * (low + high)
                gap, rate = self._gaps(between(middle)[None])
                if gap[0][i] < limit[i]:
                    return middle, [("touch", int(i))]
                low, high = (middle, high) if rate[0][i] < 0 else (low, middle)
        return None

    def _wrong(self, t: float, y: np.ndarray, gap: np.ndarray, limit: np.ndarray) -> list[tuple[str, int]]:
        """Return what ends the mode at a state, by candidate."""
        given, mode = self.given, self.mode
        wrong = [("touch", int(i)) for i in np.flatnonzero(gap < limit)]
        if not mode.closed or wrong:
            return wrong
        q, qd = self._split(y)
        state = given.at(q, qd)
        away = AWAY * given.scales.length
        if gone := [("away", i) for i in mode.closed if abs(state.gap[i]) > away]:
            return gone
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

    def _apex(self, good: float, bad: float, between, wrong: list, rate: np.ndarray) -> float:
        """Return the top of the flight of contacts that leave and touch again, a good time after that of leaving."""
        for kind, i in wrong:
            if kind != "touch" or rate[i] <= 0:
                continue
            low, high = good, bad
            for _ in range(60):
                middle = 0.5 * (low + high)
                gap, speed = self._gaps(between(middle)[None])
                if gap[0][i] > 0 and speed[0][i] <= 0:
                    return middle
                low, high = (middle, high) if speed[0][i] > 0 else (low, middle)
        return good

    def _bisected(self, good: float, bad: float, between, limit, wrong) -> tuple[float, list]:
        """Return the first time that is not good, next to the last that is, and what is wrong there."""
        while True:
            middle = 0.5 * (good + bad)
            if not good < middle < bad:
                return bad, wrong
            y = between(middle)
            gap, _ = self._gaps(y[None])
            found = self._wrong(middle, y, gap[0], limit)
            if found:
                bad, wrong = middle, found
            else:
                good = middle

    def _event(self, wrong: list[tuple[str, int]]) -> None:
        """Begin the mode that follows an event."""
        given, names = self.given, self.given.names
        state = given.at(*self.y)
        kinds = {kind for kind, _ in wrong}
        if "painleve" in kinds:
            refuse_painleve(given, self.mode, state)
        closed = set(self.mode.closed)
        for kind, i in wrong:
            if kind == "touch":
                closed.add(i)
            if kind == "away":
                closed.discard(i)
                self.mode = Mode(tuple(j for j in self.mode.closed if j != i), self.mode.slip)
                self.records.note("end of surface", self.t, names[i])
        passed = {i: state.v[i, 1:] for kind, i in wrong if kind == "stop"}
        if passed and any(np.hypot(*v) > 1e3 * given.scales.still for v in passed.values()):
            turned = {i: v / np.hypot(*v) for i, v in passed.items()}  # by a right angle, without a stop
            self.mode = replace(self.mode, slip=self.mode.slip | turned)
            return
        stopped = [i for kind, i in wrong if kind in ("stop", "caught")]
        if stopped:
            slip = {i: d for i, d in self.mode.slip.items() if i not in stopped}
            self.y = settled(given, Mode(self.mode.closed, slip), *self.y)
        self._restart(sorted(closed), now=[i for kind, i in wrong if kind == "force"])

    def _restart(self, closed: list[int], now: Any) -> None:
        """Let approaching contacts bounce, and choose the mode of those that remain closed."""
        given, before = self.given, self.mode
        state = given.at(*self.y)
        near = [i for i, g in enumerate(state.gap) if abs(g) <= 100 * given.scales.gap]
        closed = sorted({*closed, *near})
        if any(state.v[i, 0] < -given.scales.still for i in closed):
            self._bounce(closed)
            state = given.at(*self.y)
        rest = [i for i in closed if abs(state.v[i, 0]) <= given.scales.still]
        _, free = given.free(self.t, *self.y)
        self.mode, _ = chosen(given, rest, state, free, now=now)
        self.y = settled(given, self.mode, *self.y)
        self._note_changes(before, closed)

    def _bounce(self, closed: list[int]) -> None:
        given, (q, qd) = self.given, self.y
        state = given.at(q, qd)
        e = given.restitution[closed].copy()
        found = impact(given, state, qd, closed, e)
        last = self._last_bounces(closed, e, found)
        if self._hurried():
            last = [(k, self.t) for k in range(len(closed)) if 0 < e[k] < 1]
        if last:
            e[[k for k, _ in last]] = 0.0
            found = impact(given, state, qd, closed, e)
        self.records.impacts = np.maximum(self.records.impacts, found.residuals)
        self.records.reduced += found.kept < 1.0
        for k, i in enumerate(closed):
            if found.impulses[k, 0] > 0 and state.v[i, 0] < -given.scales.still:
                self.records.note("impact", self.t, given.names[i])
        for k, end in last:
            self.records.note("rest", end, given.names[closed[k]])
        self.y = q, found.qd

    def _hurried(self) -> bool:
        """Return whether contacts bounce in turns, ever faster, as those of a rocking block that comes to rest."""
        recent, span = self._recent, float(self.times[-1] - self.times[0])
        return len(recent) > HURRIED and self.t - recent[-HURRIED] <= 10 * CLOSE * span

    def _last_bounces(self, closed: list[int], e: np.ndarray, found) -> list[tuple[int, float]]:
        """Return the contacts whose bounces are too low to follow, with the times at which they come to rest.

        With a constant acceleration -a between bounces, the velocities of departure v e^k form a geometric series,
        which ends after 2 v / (a (1 - e)). A plastic impact now gives the same impulses up to that time.
        """
        given, q = self.given, self.y[0]
        after = given.at(q, found.qd)
        leaving = [k for k, i in enumerate(closed) if after.v[i, 0] > 0 and found.impulses[k, 0] > 0 and 0 < e[k] < 1]
        if not leaving:
            return []
        rest = [i for i in closed if abs(after.v[i, 0]) <= given.scales.still]
        _, free = given.free(self.t, q, found.qd)
        mode, _ = chosen(given, rest, after, free)
        rates = after.J @ accelerations(given, mode, self.t, q, found.qd)[len(q) :] + after.bias
        out = []
        for k in leaving:
            v, a = after.v[closed[k], 0], -rates[closed[k], 0]
            if a > 0 and v * v / (2 * a) < ZENO * given.scales.length:
                out.append((k, self.t + 2 * v / (a * (1 - e[k]))))
        return out

    def _note_changes(self, before: Mode, closed: list[int]) -> None:
        names = self.given.names
        for i in before.closed:
            if i not in self.mode.closed:
                self.records.note("lift-off", self.t, names[i])
        for i in self.mode.closed:
            if i in self.mode.slip:
                if i not in before.closed or i not in before.slip:
                    self.records.note("slip", self.t, names[i])
            elif i not in before.closed or i in before.slip:
                self.records.note("stick", self.t, names[i])
