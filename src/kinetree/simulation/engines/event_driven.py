"""Runs with hard contact, event by event: touch-down, lift-off, stick and slip are located to rounding."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from dataclasses import dataclass, replace
from typing import Any

import numpy as np

from ...errors import InputError
from ..contact.cone_problem import NoForces, solve
from ..contact.records import Records, contact_fields, contact_options, doubtful
from ..contact.touching import (
    AWAY,
    BEGIN,
    START,
    Coefficients,
    Coordinates,
    Functions,
    Mode,
    PainleveError,
    accelerations,
    cone_problem,
    directions,
    feasible,
    refuse_depth,
    refuse_painleve,
)
from ..contact.transitions import Causes, Transitions, close_gaps, remove_drift
from ..events import Watch
from ..outcomes import Ending, Outcome, RunStopped
from ..problem import Problem
from ..run_states import Run, Settings
from .engine import Fields, Motion, Progress, onward_by, refuse_with_contacts
from .native import acting_on
from .solvers import run_each

# --- One run: smooth motion in a mode, up to the event that ends the mode ---
#
# Events are touch-down, lift-off, the end of slip, the end of stick, and the end of a surface. Each is found on the
# dense output of a step, at points within it, and its time by bisection down to rounding; `transitions` has what
# follows.


# --- The end of a mode within a step: the first time at which it ends, and the reason ---

POINTS = np.arange(1, 9) / 8
"""Points within a step at which modes are examined, relative to the step."""
CAUGHT = 10.0
"""The velocity of slip below which it is an error of integration, relative to the tolerance of the velocities."""


@dataclass(frozen=True)
class Search:
    """The search for the end of a mode within a step: the mode, the state before the step, and its dense output."""

    given: Coefficients
    mode: Mode
    y: Coordinates
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
        """Return the velocity along the direction of slip below which it has stopped; negative where slip begins."""
        v = self.given.at(*self.y).v[i, 1:] @ self.mode.slip[i]
        return 0.0 if v > self.given.scales.still else -self.given.scales.still

    def _apex(self, good: float, bad: float, wrong: list, rate: np.ndarray) -> float:
        """Return the top of the flight of contacts that leave and touch again, well after they leave."""
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


def stop_slow_slips(
    given: Coefficients, mode: Mode, settings: Settings, t: float, y: Coordinates
) -> tuple[Mode, list[int]]:
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


# --- A run from event to event ---

LONGEST = 1 / 40
"""The longest step, relative to the run: the flight between two bounces is examined at many points."""


class EventDrivenRun:
    """One run: its time, state and mode, from event to event."""

    def __init__(
        self,
        given: Coefficients,
        start: Coordinates,
        times: np.ndarray,
        settings: Settings,
        pair: str,
        records: Records,
    ) -> None:
        """Examine the start: contacts that touch are closed, or bounce if they approach."""
        self.given, self.times, self.settings, self.pair, self.records = given, times, settings, pair, records
        self.t, self.evaluations, self.steps = float(times[0]), 0, 0
        self._transitions = Transitions(given, records, float(times[-1] - times[0]))
        self._refuse_depth(start)
        state = given.at(*start)
        touching = [i for i, g in enumerate(state.gap) if abs(g) <= START * given.scales.length]
        y = remove_drift(given, Mode(), close_gaps(given, touching, start[0]), start[1])
        self.y, self.mode = self._transitions.restart(touching, self.t, y, Mode(), now=())

    def _refuse_depth(self, start: Coordinates) -> None:
        given = self.given
        limit = START * given.scales.length
        refuse_depth(given.names, given.at(*start).gap, limit, "start with all gaps zero or above")

    def samples(self) -> Iterator[Coordinates]:
        """Yield the states at the times, and record forces and residuals there."""
        k, count = 0, len(self.times)
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
                    q, qd = remove_drift(self.given, self.mode, *self._split(between(t)))
                    self.records.sample(self.given, self._turned(q, qd), t, q, qd)
                    yield q, qd
                    k += 1
            self._transitions.passed(self.t)

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

    def _split(self, y: np.ndarray) -> Coordinates:
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
                rate,
                self.t,
                np.concatenate(self.y),
                end,
                rtol=settings.rtol,
                atol=settings.atol,
                max_step=max(LONGEST * (end - self.times[0]), 1e-12),
            )
        while solver.status == "running":
            if self.steps >= settings.most:
                raise RunStopped(Ending(Outcome.TOO_MANY, last=float(self.t)))
            with np.errstate(all="ignore"):
                solver.step()
            self.steps += 1
            if solver.status == "failed" or not np.isfinite(solver.y).all():
                refuse_painleve(given, self.mode, given.at(*self.y))  # the reason, if it is one
                raise RunStopped(Ending(Outcome.TOO_SHORT, last=float(self.t)))
            between = solver.dense_output()
            found = Search(given, self.mode, self.y, between).first(self.t, solver.t)
            if found is not None:
                bad, wrong = found
                yield bad, between
                self._end_mode(bad, self._split(between(bad)), wrong)
                return
            yield solver.t, between
            self.t = float(solver.t)
            self.y = remove_drift(given, self.mode, *self._split(solver.y))
            self.mode, held = stop_slow_slips(given, self._turned(*self.y), settings, self.t, self.y)
            if held:
                causes: Causes = [("caught", i) for i in held]
                self.y, self.mode = self._transitions.after(causes, self.t, self.y, self.mode)
                return
            solver.y = np.concatenate(self.y)
            solver.f = rate(self.t, solver.y)
        self.t = end

    def _end_mode(self, t: float, y: Coordinates, wrong: Causes) -> None:
        """Go to the time of an event, and begin the mode that follows."""
        gone = [i for kind, i in wrong if kind == "away"]
        kept = tuple(i for i in self.mode.closed if i not in gone)
        self.t, y = t, remove_drift(self.given, Mode(kept, self.mode.slip), *y)
        self.y, self.mode = self._transitions.after(wrong, t, y, self.mode)


PAIRS = {"dop853": "DOP853", "scipy": "DOP853", "dopri5": "RK45"}
"""SciPy's embedded pairs by method."""


def run_from_event_to_event(problem: Problem, watch: Watch | None, progress: Progress | None) -> Motion:
    """Carry out runs with contacts by adaptive steps from event to event, one run after the other."""
    _refuse(problem)
    functions, records = Functions(problem), list[Records]()
    count = [0]

    def evaluated() -> int:
        before, count[0] = count[0], 0
        return before

    def marched(kept: list[Records]):
        def samples(q0, qd0, times, parameters):
            kept.append(Records())  # also of a run that is refused
            pair = PAIRS[problem.method.name]
            march = EventDrivenRun(functions.of(parameters), (q0, qd0), times, problem.settings, pair, kept[-1])
            try:
                yield from march.samples()
            finally:
                count[0] = march.evaluations

        return samples

    def again(q, qd, t, more) -> Run:
        short = replace(problem, start=(q, qd), times=t, parameters=more)
        return run_each(short, marched([]), evaluated)

    done = run_each(problem, marched(records), evaluated, watch, progress)

    def complete(ended: Run) -> tuple[Run, Fields]:
        acted = acting_on(problem)
        fields = acted | contact_fields(problem, ended, records, acted["wrenches"])
        found = {k: x.doubt(problem.times) for k, x in enumerate(records)}
        ended, doubts = doubtful(ended, found, "try a smaller rtol and atol")
        return ended, fields | {"options": contact_options(records) | doubts}

    return Motion(done, onward_by(problem, done, again), complete)


def _refuse(problem: Problem) -> None:
    """Raise an InputError for options that runs from event to event do not support."""
    refuse_with_contacts(problem)
    if problem.method.name not in PAIRS:
        raise InputError(
            f"contacts are simulated event by event with {' or '.join(PAIRS)}, not with {problem.method.name}; "
            'leave out method and dt, or give method="moreau" and dt for time steps'
        )
