"""The state and the mode after an event: impacts, the end of infinitely many bounces, and the choice of the mode."""

from __future__ import annotations

from dataclasses import dataclass, field, replace
from typing import Any

import numpy as np

from ...errors import InputError
from .event_search import Causes, State
from .impacts import Impact, impact
from .modes import Mode, accelerations, chosen, refuse_painleve
from .projection import settled
from .records import Records
from .touching import Coefficients

ZENO = 1e-10
"""The height of bounces, in parts of the characteristic length, below which infinitely many are replaced by one."""
EVENTS = 1_000_000
"""The largest number of events of a run."""
HURRIED = 20
"""The number of events within ten times CLOSE after which bounces of several contacts in turns are ended."""
STUCK = 60
"""The number of events within CLOSE that shows that they accumulate."""
CLOSE = 1e-7
"""The time within which events accumulate, in parts of the run: the bounces of a ball that comes to rest are longer."""


@dataclass(frozen=True)
class Transitions:
    """The events of one run, of a duration `span` [s]: each gives the next state and mode, and is recorded."""

    given: Coefficients
    records: Records
    span: float
    recent: list[float] = field(default_factory=list)

    def passed(self, t: float) -> None:
        """Keep the time of an event, and raise an InputError if events accumulate there."""
        recent = self.recent
        recent.append(t)
        close = len(recent) > STUCK and recent[-1] - recent[-1 - STUCK] <= CLOSE * self.span
        if close or len(self.records.events) > EVENTS:
            raise InputError(
                f"events of contacts accumulate at t = {t:.9g} s: "
                f"{', '.join(str(e) for e in self.records.events[-3:])}; the run ends there"
            )

    def after(self, wrong: Causes, t: float, y: State, mode: Mode) -> tuple[State, Mode]:
        """Return the state and the mode that follow an event."""
        given, names = self.given, self.given.names
        state = given.at(*y)
        kinds = {kind for kind, _ in wrong}
        if "painleve" in kinds:
            refuse_painleve(given, mode, state)
        closed = set(mode.closed)
        for kind, i in wrong:
            if kind == "touch":
                closed.add(i)
            if kind == "away":
                closed.discard(i)
                mode = Mode(tuple(j for j in mode.closed if j != i), mode.slip)
                self.records.note("end of surface", t, names[i])
        passed = {i: state.v[i, 1:] for kind, i in wrong if kind == "stop"}
        if passed and any(np.hypot(*v) > 1e3 * given.scales.still for v in passed.values()):
            turned = {i: v / np.hypot(*v) for i, v in passed.items()}  # by a right angle, without a stop
            mode = replace(mode, slip=mode.slip | turned)
            return y, mode
        stopped = [i for kind, i in wrong if kind in ("stop", "caught")]
        if stopped:
            slip = {i: d for i, d in mode.slip.items() if i not in stopped}
            y = settled(given, Mode(mode.closed, slip), *y)
        return self.restart(sorted(closed), t, y, mode, now=[i for kind, i in wrong if kind == "force"])

    def restart(self, closed: list[int], t: float, y: State, before: Mode, *, now: Any) -> tuple[State, Mode]:
        """Let approaching contacts bounce, and choose the mode of those that remain closed."""
        given = self.given
        state = given.at(*y)
        near = [i for i, g in enumerate(state.gap) if abs(g) <= 100 * given.scales.gap]
        closed = sorted({*closed, *near})
        if any(state.v[i, 0] < -given.scales.still for i in closed):
            y = self._bounce(closed, t, y)
            state = given.at(*y)
        rest = [i for i in closed if abs(state.v[i, 0]) <= given.scales.still]
        _, free = given.free(t, *y)
        mode, _ = chosen(given, rest, state, free, now=now)
        y = settled(given, mode, *y)
        self._note_changes(before, mode, t)
        return y, mode

    def _bounce(self, closed: list[int], t: float, y: State) -> State:
        given, (q, qd) = self.given, y
        state = given.at(q, qd)
        e = given.restitution[closed].copy()
        found = impact(given, state, qd, closed, e)
        last = self._last_bounces(closed, e, found, t, q)
        if self._hurried(t):
            last = [(k, t) for k in range(len(closed)) if 0 < e[k] < 1]
        if last:
            e[[k for k, _ in last]] = 0.0
            found = impact(given, state, qd, closed, e)
        self.records.impacts = np.maximum(self.records.impacts, found.residuals)
        self.records.reduced += found.kept < 1.0
        for k, i in enumerate(closed):
            if found.impulses[k, 0] > 0 and state.v[i, 0] < -given.scales.still:
                self.records.note("impact", t, given.names[i])
        for k, end in last:
            self.records.note("rest", end, given.names[closed[k]])
        return q, found.qd

    def _hurried(self, t: float) -> bool:
        """Return whether contacts bounce in turns, ever faster, as those of a rocking block that comes to rest."""
        recent = self.recent
        return len(recent) > HURRIED and t - recent[-HURRIED] <= 10 * CLOSE * self.span

    def _last_bounces(
        self, closed: list[int], e: np.ndarray, found: Impact, t: float, q: np.ndarray
    ) -> list[tuple[int, float]]:
        """Return the contacts whose bounces are too low to follow, with the times at which they come to rest.

        With a constant acceleration -a between bounces, the velocities of departure v e^k form a geometric series,
        which ends after 2 v / (a (1 - e)). A plastic impact now gives the same impulses up to that time.
        """
        given = self.given
        after = given.at(q, found.qd)
        leaving = [k for k, i in enumerate(closed) if after.v[i, 0] > 0 and found.impulses[k, 0] > 0 and 0 < e[k] < 1]
        if not leaving:
            return []
        rest = [i for i in closed if abs(after.v[i, 0]) <= given.scales.still]
        _, free = given.free(t, q, found.qd)
        mode, _ = chosen(given, rest, after, free)
        rates = after.J @ accelerations(given, mode, t, q, found.qd)[len(q) :] + after.bias
        out = []
        for k in leaving:
            v, a = after.v[closed[k], 0], -rates[closed[k], 0]
            if a > 0 and v * v / (2 * a) < ZENO * given.scales.length:
                out.append((k, t + 2 * v / (a * (1 - e[k]))))
        return out

    def _note_changes(self, before: Mode, mode: Mode, t: float) -> None:
        names = self.given.names
        for i in before.closed:
            if i not in mode.closed:
                self.records.note("lift-off", t, names[i])
        for i in mode.closed:
            if i in mode.slip:
                if i not in before.closed or i not in before.slip:
                    self.records.note("slip", t, names[i])
            elif i not in before.closed or i in before.slip:
                self.records.note("stick", t, names[i])
