"""Events: times at which a function of the state crosses zero, located between the samples of a run.

A crossing is detected if the function has different signs at two neighboring samples. Two crossings between the same
samples are not detected. The time is found by Brent's method on short integrations from the sample before it.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import KW_ONLY, dataclass, replace
from typing import TYPE_CHECKING, Any

import numpy as np

from ..algebra.scalars import Scalar
from ..compiler.ir.program import Program
from ..compiler.ir.trace import Value
from ..errors import InputError
from ..model.mechanism import Mechanism
from ..runtime.native import native
from .acting.instants import HINT, Instant, require_arguments, trace_function
from .outcomes import Ending, Outcome
from .run_states import Run, of_run

if TYPE_CHECKING:
    from ..results.trajectory import Trajectory

TOLERANCE = 1e-10
"""The tolerance of the time of an event, relative to 1 + |t| [s]; equal to the default atol."""

Onward = Callable[[tuple[int, ...], int, float], tuple[np.ndarray, np.ndarray]]
"""(run, k, t) -> (q, qd): the state of one run of a batch at a time t [s] between its samples k and k + 1."""


@dataclass(frozen=True)
class Event:
    """A function of `now` whose zeros are located; direction +1 selects rising ones, -1 falling ones, 0 both.

    The function reads `now.t`, `now.q`, `now.qd` and `now.point(...)` as traced scalars, and is compiled. With `stop`
    the run ends at the first zero.
    """

    function: Callable[[Instant], Scalar]
    _: KW_ONLY
    direction: int = 0
    stop: bool = False
    name: str = ""

    def __post_init__(self) -> None:
        """Check the function and the direction."""
        if not callable(self.function):
            raise InputError("the function of an Event cannot be called; give a function of `now`")
        if self.direction not in (-1, 0, 1):
            raise InputError(f"the direction of an Event is {self.direction!r}; give +1, -1 or 0 for both")


@dataclass(frozen=True, eq=False)
class EventHit:
    """A zero of an event: its name, time [s], state, and the index of the run in the batch, () for a single run."""

    name: str
    t: float
    q: np.ndarray
    qd: np.ndarray
    run: tuple[int, ...] = ()


def event_hits(run: Trajectory) -> list[EventHit]:
    """Return the events of a Trajectory, run by run, in order of time."""
    return [
        EventHit(h["name"], h["t"], np.array(h["q"]), np.array(h["qd"]), tuple(h["run"]))
        for h in run.options.get("events", ())
    ]


def as_options(hits: Sequence[EventHit]) -> list[dict[str, object]]:
    """Return hits as plain numbers, in the form in which a Trajectory stores them."""
    return [
        {"name": h.name, "t": h.t, "q": h.q.tolist(), "qd": h.qd.tolist(), "run": [int(i) for i in h.run]} for h in hits
    ]


class Watch:
    """The events of one simulation: `stops` is true once no run needs to continue, `locate` returns the hits."""

    def __init__(
        self,
        mechanism: Mechanism,
        events: Sequence[Event],
        parameters: np.ndarray | None,
        compiled: Callable[[Program], np.ufunc] = native,
    ) -> None:
        """Compile the events of a mechanism; parameters are [np] or [..., np]."""
        self.events = [replace(event, name=_name(event, k)) for k, event in enumerate(events)]
        names = [event.name for event in self.events]
        if len(set(names)) < len(names):
            raise InputError(f"events have the same name: {', '.join(names)}; give each a name of its own")
        self._gufunc = None
        if self.events:
            traced = lambda now: [_traced(e, now) for e in self.events]  # noqa: E731
            self._gufunc = compiled(trace_function("events", mechanism, traced, len(self.events)))
        self._parameters = parameters
        self._seen = 0
        self._stopped: Any = False

    def __bool__(self) -> bool:
        """Return whether there are events."""
        return bool(self.events)

    def stops(self, run: Run) -> bool:
        """Return whether every run of a batch has crossed an event that stops it, or failed; reads only new samples."""
        ending = [k for k, event in enumerate(self.events) if event.stop]
        if not ending:
            return False
        part = slice(max(self._seen - 1, 0), run.reached)
        crossed = self._crossings(run.t[part], run.q[..., part, :], run.qd[..., part, :])[..., ending]
        self._seen = run.reached
        self._stopped = self._stopped | crossed.any(axis=(-1, -2))
        flat = np.array(self._stopped).reshape(-1)
        flat[list(run.failures)] = True
        return bool(flat.all())

    def locate(self, run: Run, onward: Onward) -> list[EventHit]:
        """Return all hits, run by run, in order of time; the first that stops a run is its last."""
        crossed = self._crossings(run.t, run.q, run.qd)
        hits: list[EventHit] = []
        for index in np.ndindex(*run.q.shape[:-2]):
            found: list[tuple[Event, EventHit]] = []
            for k, which in np.argwhere(crossed[index]):
                if any(e.stop and h.t <= run.t[k] for e, h in found):
                    break
                event = self.events[which]
                found.append((event, self._refine(event, int(which), run, index, int(k), onward)))
            found.sort(key=lambda pair: pair[1].t)
            ends = [h.t for e, h in found if e.stop]
            hits += [h for _, h in found if not ends or h.t <= ends[0]]
        return hits

    def cut(self, run: Run, hits: Sequence[EventHit]) -> Run:
        """Return the run without the samples after a hit that stops it.

        A single run ends with the state at the event. Runs of a batch have NaN after the event.
        """
        stopping = {event.name for event in self.events if event.stop}
        lead = run.q.shape[:-2]
        for hit in hits:
            if hit.name not in stopping:
                continue
            flat = int(np.ravel_multi_index(hit.run, lead)) if lead else 0
            ending = Ending(Outcome.EVENT, f"event {hit.name} at t = {hit.t:.12g} s")
            run = replace(run, failures=run.failures | {flat: ending}, interrupted=False)
            keep = int(np.searchsorted(run.t, hit.t))
            if lead:
                keep += run.t[keep] == hit.t
                run.q[(*hit.run, slice(keep, None))] = np.nan
                run.qd[(*hit.run, slice(keep, None))] = np.nan
            else:
                q, qd = (np.vstack([x[:keep], y]) for x, y in ((run.q, hit.q), (run.qd, hit.qd)))
                return replace(run, t=np.append(run.t[:keep], hit.t), q=q, qd=qd, reached=keep + 1)
        return run

    def _values(self, t, q, qd, index: tuple[int, ...] | None = None) -> np.ndarray:
        """Return the functions of the events: of all runs at times [nt], or of the run `index` at one time."""
        assert self._gufunc is not None
        if self._parameters is None:
            more = ()
        elif index is None:
            more = (self._parameters[..., None, :],)
        else:
            more = (of_run(self._parameters, index),)
        with np.errstate(all="ignore"):  # samples after a failure are NaN, which never count as crossings
            return self._gufunc(np.asarray(t)[..., None], q, qd, *more)

    def _crossings(self, t: np.ndarray, q: np.ndarray, qd: np.ndarray) -> np.ndarray:
        """Return whether each event crosses zero between each sample and the next, [..., nt - 1, events]."""
        values = self._values(t, q, qd)
        before, after = values[..., :-1, :], values[..., 1:, :]
        ways = np.array([event.direction for event in self.events])
        rises, falls = (before < 0) & (after >= 0), (before > 0) & (after <= 0)
        return (rises & (ways >= 0)) | (falls & (ways <= 0))

    def _refine(self, event: Event, which: int, run: Run, index: tuple[int, ...], k: int, onward: Onward) -> EventHit:
        from scipy.optimize import brentq

        a, b = float(run.t[k]), float(run.t[k + 1])
        states = {x: (run.q[(*index, k + i)], run.qd[(*index, k + i)]) for i, x in enumerate((a, b))}

        def value(t: float) -> float:
            if t not in states:
                states[t] = onward(index, k, t)
            return float(self._values(t, *states[t], index)[which])

        t = float(brentq(value, a, b, xtol=TOLERANCE * (1 + abs(b)) / 4, rtol=1e-15))  # type: ignore[arg-type]
        value(t)
        q, qd = states[t]
        return EventHit(event.name, t, q.copy(), qd.copy(), index)


def _name(event: Event, k: int) -> str:
    own = getattr(event.function, "__name__", "<lambda>")
    return event.name or (own if own != "<lambda>" else f"event{k + 1}")


def _traced(event: Event, now: Instant) -> Scalar:
    require_arguments(event.function, "now", f"the event {event.name!r}")
    try:
        value = event.function(now)
    except (TypeError, AttributeError) as error:
        raise InputError(f"the event {event.name!r} cannot be compiled ({error}); {HINT}") from error
    if not isinstance(value, Value | float | int | np.number):
        raise InputError(f"the event {event.name!r} returns {type(value).__name__}; expected one scalar")
    return value if isinstance(value, Value) else float(value)
