"""The state and the mode after an event: impacts, the end of infinitely many bounces, and the choice of the mode."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, field, replace

import numpy as np

from ..outcomes import Ending, Outcome, RunStopped
from .cone_problem import RANK, ConeProblem, NoForces, solve
from .records import Records
from .restitution import expansion_impulse, leaving_velocity
from .touching import AWAY, Coefficients, Coordinates, Mode, State, accelerations, choose_mode, refuse_painleve

Causes = list[tuple[str, int]]
"""The causes of an event, each with its candidate: touch, away, stop, caught, force or painleve."""

# --- Impacts of rigid bodies: restitution by Newton's or Poisson's law, with Coulomb friction of the impulses.

ADDED = 1e-13
"""The part of the kinetic energy that rounding may add at an impact."""
HALVINGS = 50
"""The number of halvings by which restitution is reduced where it would add energy: down to rounding."""


@dataclass(frozen=True)
class Impact:
    """The velocities after an impact, the impulses of the candidates that touched [k, 3], and what was reduced.

    `kept` is the part of restitution that was applied: 1, or less where the law would have added energy.
    """

    qd: np.ndarray
    which: tuple[int, ...]
    impulses: np.ndarray
    after: np.ndarray
    residuals: tuple[float, float, float]
    kept: float = 1.0


def impact(given: Coefficients, state: State, qd: np.ndarray, which: list[int], restitution: np.ndarray) -> Impact:
    """Return the impact of the candidates that touch, with a coefficient of restitution for each."""
    J, X, W = state.answers(which)
    before = (J @ qd).reshape(-1, 3)

    def applied(part: float) -> tuple[np.ndarray, tuple[float, float, float]]:
        return _impulses(given, W, before, which, part * restitution)

    kept = 1.0
    try:
        impulses, residuals = applied(kept)
    except NoForces:  # a body that is wedged cannot rebound
        if not restitution.any():
            raise
        kept = 0.0
        impulses, residuals = applied(kept)
    if _gain(W, before, impulses) > ADDED * _energy(W, before):
        low, high = 0.0, 1.0
        for _ in range(HALVINGS):
            middle = 0.5 * (low + high)
            impulses, residuals = applied(middle)
            if _gain(W, before, impulses) > 0:
                high = middle
            else:
                low = middle
        kept = low
        impulses, residuals = applied(kept)
    after = before + (W @ impulses.ravel()).reshape(-1, 3)
    return Impact(qd + X @ impulses.ravel(), tuple(which), impulses, after, residuals, kept)


def _impulses(given: Coefficients, W, before, which, e) -> tuple[np.ndarray, tuple[float, float, float]]:
    """Return the impulses and the residuals of their cone problem.

    The laws of restitution.py hold for each contact. Poisson's compression ends where the normal velocity is zero.
    """
    mu, poisson = given.mu[which], given.poisson[which] & (e > 0)
    closing = np.minimum(before[:, 0], 0.0)
    if not poisson.any():
        b = before.copy()
        b[:, 0] -= leaving_velocity(e, closing)
        found = solve(ConeProblem.of(W, b, mu))
        return found.forces, found.residuals
    first = solve(ConeProblem.of(W, before, mu))
    b = first.velocities.copy()
    b[:, 0] -= np.where(poisson, 0.0, leaving_velocity(e, closing))
    floor = np.where(poisson, expansion_impulse(e, first.forces[:, 0]), 0.0)
    second = solve(ConeProblem.of(W, b, mu, floor=floor))
    gap, cone, slip = map(max, first.residuals, second.residuals)
    return first.forces + second.forces, (gap, cone, slip)


def _gain(W, before, impulses) -> float:
    """Return the kinetic energy that impulses add."""
    f = impulses.ravel()
    return float(f @ before.ravel() + 0.5 * f @ (W @ f))


def _energy(W, before) -> float:
    """Return the kinetic energy of the motion of the contacts: what a plastic impact of all rows would take."""
    v = before.ravel()
    return 0.5 * float(v @ np.linalg.lstsq(W, v, rcond=1e-12)[0])


# --- Drift of closed contacts removed: gaps, and the velocities that the mode keeps at zero ---

ROUNDS = 3
"""Newton steps on the gaps; each squares the error of the one before."""


def remove_drift(given: Coefficients, mode: Mode, q: np.ndarray, qd: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
    """Return the nearest state whose closed contacts have no gap, and no velocity where they stick.

    Corrections are the smallest in the kinetic-energy norm. Quaternions get unit length, and loops are closed.
    """
    q = close_gaps(given, mode.closed, q)
    closer = given.functions.closer
    if closer is not None:
        q, qd = closer.close(q, qd, given.parameters)
    if mode.closed:
        qd = _stopped(given, mode, q, qd)
        qd = _stopped(given, mode, q, qd)  # rounding of the first
    return q, qd


def close_gaps(given: Coefficients, closed: Sequence[int], q: np.ndarray) -> np.ndarray:
    """Return the nearest position at which closed contacts have no gap, with unit quaternions.

    Contacts whose surface has ended, also by a step of the correction itself, are not moved back to it.
    """
    functions, more = given.functions, given.more
    rest = np.zeros(functions.problem.mechanism.nv)
    q = functions.integrate(q, rest, *more)
    for _ in range(ROUNDS if closed else 0):
        state = given.at(q, rest)
        near = [i for i in closed if abs(state.gap[i]) <= AWAY * given.scales.length]
        gaps = state.gap[near]
        if np.abs(gaps).max(initial=0.0) <= 1e-15 * given.scales.length:
            break
        _, X, W = state.answers(near)
        f = np.linalg.lstsq(W[::3, ::3], -gaps, rcond=RANK)[0]
        q = functions.integrate(q, X[:, ::3] @ f, *more)
    return q


def _stopped(given: Coefficients, mode: Mode, q: np.ndarray, qd: np.ndarray) -> np.ndarray:
    state = given.at(q, qd)
    _, X, W = state.answers(mode.closed)
    rows = [3 * k + j for k, i in enumerate(mode.closed) for j in ((0,) if i in mode.slip else (0, 1, 2))]
    v = state.v[list(mode.closed)].ravel()[rows]
    f = np.linalg.lstsq(W[np.ix_(rows, rows)], -v, rcond=RANK)[0]
    return qd + X[:, rows] @ f


ZENO = 1e-10
"""The height of bounces, relative to the characteristic length, below which infinitely many are replaced by one."""
EVENTS = 1_000_000
"""The largest number of events of a run."""
HURRIED = 20
"""The number of events within ten times CLOSE after which bounces of several contacts in turns are ended."""
STUCK = 60
"""The number of events within CLOSE that shows that they accumulate."""
CLOSE = 1e-7
"""The time within which events accumulate, relative to the run: the bounces of a ball that comes to rest are longer."""


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
            last = ", ".join(str(e) for e in self.records.events[-3:])
            text = f"events of contacts accumulate at t = {t:.9g} s: {last}; the run ends there"
            raise RunStopped(Ending(Outcome.CONTACT, text))

    def after(self, wrong: Causes, t: float, y: Coordinates, mode: Mode) -> tuple[Coordinates, Mode]:
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
            y = remove_drift(given, Mode(mode.closed, slip), *y)
        return self.restart(sorted(closed), t, y, mode, now=[i for kind, i in wrong if kind == "force"])

    def restart(
        self, closed: list[int], t: float, y: Coordinates, before: Mode, *, now: object
    ) -> tuple[Coordinates, Mode]:
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
        mode, _ = choose_mode(given, rest, state, free, now=now)
        y = remove_drift(given, mode, *y)
        self._note_changes(before, mode, t)
        return y, mode

    def _bounce(self, closed: list[int], t: float, y: Coordinates) -> Coordinates:
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
        """Return whether contacts bounce in turns, ever faster, like a rocking block that comes to rest."""
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
        mode, _ = choose_mode(given, rest, after, free)
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
