"""An event-driven run: smooth motion in a mode, up to the event that ends the mode.

Events are touch-down, lift-off, the end of slip, the end of stick, and the end of a surface. `event_search` finds them,
and `transitions` has what follows.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from dataclasses import replace
from typing import Any

import numpy as np

from ...errors import InputError
from ..run_states import REASONS, Settings
from .depths import refuse_depth
from .event_search import Causes, Search, State, caught
from .modes import BEGIN, Mode, accelerations, directions, refuse_painleve
from .projection import placed, settled
from .records import Records
from .touching import START, Coefficients
from .transitions import Transitions

LONGEST = 1 / 40
"""The longest step, in parts of the run: the flight between two bounces is examined at many points."""


class March:
    """One run: its time, state and mode, from event to event."""

    def __init__(
        self, given: Coefficients, start: State, times: np.ndarray, settings: Settings, pair: str, records: Records
    ) -> None:  # fmt: skip
        """Examine the start: contacts that touch are closed, or bounce if they approach."""
        self.given, self.times, self.settings, self.pair, self.records = given, times, settings, pair, records
        self.t, self.evaluations, self.steps = float(times[0]), 0, 0
        self._transitions = Transitions(given, records, float(times[-1] - times[0]))
        self._refuse_depth(start)
        state = given.at(*start)
        touching = [i for i, g in enumerate(state.gap) if abs(g) <= START * given.scales.length]
        y = settled(given, Mode(), placed(given, touching, start[0]), start[1])
        self.y, self.mode = self._transitions.restart(touching, self.t, y, Mode(), now=())

    def _refuse_depth(self, start: State) -> None:
        given = self.given
        limit = START * given.scales.length
        refuse_depth(given.names, given.at(*start).gap, limit, "start with all gaps zero or above")

    def samples(self) -> Iterator[State]:
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
                    q, qd = settled(self.given, self.mode, *self._split(between(t)))
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
                refuse_painleve(given, self.mode, given.at(*self.y))  # the reason, if it is one
                raise InputError(f"{REASONS[1]}; the last good state is at t = {self.t:.9g} s")
            between = solver.dense_output()
            found = Search(given, self.mode, self.y, between).first(self.t, solver.t)
            if found is not None:
                bad, wrong = found
                yield bad, between
                self._end_mode(bad, self._split(between(bad)), wrong)
                return
            yield solver.t, between
            self.t = float(solver.t)
            self.y = settled(given, self.mode, *self._split(solver.y))
            self.mode, held = caught(given, self._turned(*self.y), settings, self.t, self.y)
            if held:
                causes: Causes = [("caught", i) for i in held]
                self.y, self.mode = self._transitions.after(causes, self.t, self.y, self.mode)
                return
            solver.y = np.concatenate(self.y)
            solver.f = rate(self.t, solver.y)
        self.t = end

    def _end_mode(self, t: float, y: State, wrong: Causes) -> None:
        """Go to the time of an event, and begin the mode that follows."""
        gone = [i for kind, i in wrong if kind == "away"]
        kept = tuple(i for i in self.mode.closed if i not in gone)
        self.t, y = t, settled(self.given, Mode(kept, self.mode.slip), *y)
        self.y, self.mode = self._transitions.after(wrong, t, y, self.mode)
