"""The Programs of a task: its reset, its motion, and what is observed, rewarded and ended after a step."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping
from dataclasses import dataclass
from typing import Any

from ..algebra.scalars import Scalar, is_number, where
from ..compiler.ir.program import Array, Program
from ..compiler.ir.trace import Condition, Trace, Value
from ..compiler.lower.contacts import candidate_names
from ..errors import InputError, brief, unknown_name
from ..simulation.acting.instants import HINT, Instant
from .tasks import Draw, Dynamics, Equations, Layout, Moment, Task


def observe(task: Task, now: Moment) -> list[Scalar]:
    """Return the entries of the observation."""
    parts = (task.observation,) if callable(task.observation) or isinstance(task.observation, str) else task.observation
    out: list[Scalar] = []
    for part in parts:
        found = part(now) if callable(part) else now.value(part)
        out += list(found) if isinstance(found, list | tuple) else [found]
    if not out:
        raise InputError(f"task {task.name!r} observes nothing; give observation, such as ('q', 'qd')")
    return [_scalar(x, f"an observation of task {task.name!r}") for x in out]


def rewards(task: Task, now: Moment) -> dict[str, Scalar]:
    """Return the terms of the reward by name."""
    terms = task.reward if isinstance(task.reward, Mapping) else {"reward": task.reward}
    if not terms or not all(callable(x) for x in terms.values()):
        raise InputError(f"task {task.name!r}: reward is {brief(task.reward)}; give a function, or functions by name")
    return {name: _scalar(f(now), f"reward {name!r} of task {task.name!r}") for name, f in terms.items()}


def holds(task: Task, name: str, now: Moment) -> Scalar:
    """Return 1 where a condition of the task holds, else 0."""
    given = getattr(task, name)
    whole: Scalar = 0.0
    for function in () if given is None else (given,) if callable(given) else given:
        found = function(now)
        if not isinstance(found, bool | Condition):
            raise InputError(f"task {task.name!r}: {name} returned {brief(found)}; return a condition, such as x < y")
        whole = where(found, 1.0, whole)
    return whole


def _scalar(x: Scalar, what: str) -> Scalar:
    if isinstance(x, Value) or is_number(x):
        return x
    try:
        return float(x)
    except (TypeError, ValueError):
        raise InputError(f"{what} is {brief(x)}; expected a number of traced scalars") from None


def compiled(task: Task, function: Callable[[], Any], what: str) -> Any:
    """Return the result of a user's function on traced scalars; InputError for operations that cannot be compiled."""
    try:
        return function()
    except (TypeError, AttributeError) as error:
        raise InputError(f"{what} of task {task.name!r} cannot be compiled ({error}); {HINT}") from error


# --- The Programs of a task ---


@dataclass(frozen=True)
class Start:
    """The Program of a reset: even random numbers -> q, qd, what is kept, and parameters, and how many it takes."""

    program: Program
    draws: int
    layout: Layout


def start_of(task: Task) -> Start:
    """Trace the reset of a task."""
    motion, trace = task.motion, Trace()
    mechanism = motion.mechanism if isinstance(motion, Dynamics) else None
    draw = Draw(trace, mechanism)
    reset = task.reset
    given: Any = {} if reset is None else compiled(task, lambda: reset(draw), "reset")
    if not isinstance(given, Mapping):
        raise InputError(f"task {task.name!r}: reset returned {brief(given)}; return a mapping with q, qd and others")
    given = dict(given)
    neutral = [0.0] * motion.nq
    if isinstance(motion, Dynamics):
        neutral = motion.system.assemble().tolist() if motion.system.closures else list(motion.mechanism.neutral)
    q = _entries(task, "q", given.pop("q", neutral), motion.nq)
    qd = _entries(task, "qd", given.pop("qd", [0.0] * motion.nv), motion.nv)
    free = [] if mechanism is None else [p.name for p in mechanism.free_parameters]
    named = dict(given.pop("parameters", {}))
    for name in named:
        if name not in free:
            raise unknown_name("free parameter", str(name), free)
    nominal = {} if mechanism is None else {p.name: p.value for p in mechanism.free_parameters}
    parameters = [named.get(name, nominal[name]) for name in free]
    kept: dict[str, tuple[int, int | None]] = {}
    values: list[Scalar] = []
    for name, x in given.items():
        several = isinstance(x, list | tuple)
        kept[str(name)] = (len(values), len(x) if several else None)
        values += [_scalar(v, f"{name!r} of the reset of task {task.name!r}") for v in (x if several else [x])]
    contacts = () if mechanism is None else tuple(candidate_names(mechanism))
    layout = Layout(motion.nq, motion.nv, task.actions.size, len(free), contacts, kept)
    results = {"q": q, "qd": qd, "kept": values, "parameters": parameters}
    outputs = [Array(name, (len(x),)) for name, x in results.items() if x]
    inputs = (Array("u", (max(draw.count, 1),)),)
    program = Program.of_trace("begin", inputs, outputs, trace, [x for x in results.values() if x])
    return Start(program, draw.count, layout)


def _entries(task: Task, name: str, given: Iterable[Scalar], count: int) -> list[Scalar]:
    found = [_scalar(x, f"{name} of the reset of task {task.name!r}") for x in given]
    if len(found) != count:
        raise InputError(f"task {task.name!r}: reset returned {name} with {len(found)} entries; expected {count}")
    return found


def look_program(task: Task, layout: Layout) -> Program:
    """Return the Program of the observation at the start of an episode."""
    trace = Trace()
    now = _moment(task, layout, trace)
    seen = compiled(task, lambda: observe(task, now), "observation")
    return Program.of_trace("look", layout.seen, [Array("observation", (len(seen),))], trace, [seen])


def finish_program(task: Task, layout: Layout) -> tuple[Program, tuple[str, ...]]:
    """Return the Program of observation, reward, ends of an episode and terms of the reward, and their names."""
    trace = Trace()
    now = _moment(task, layout, trace)
    seen = compiled(task, lambda: observe(task, now), "observation")
    terms = compiled(task, lambda: rewards(task, now), "reward")
    total: Scalar = 0.0
    for x in terms.values():
        total = total + x
    ends = [compiled(task, lambda name=name: holds(task, name, now), name) for name in ("terminated", "truncated")]
    results = {"observation": seen, "reward": [total], "ends": ends, "terms": list(terms.values())}
    outputs = [Array(name, (len(x),)) for name, x in results.items()]
    return Program.of_trace("finish", layout.seen, outputs, trace, list(results.values())), tuple(terms)


def advance_program(task: Task, layout: Layout) -> Program:
    """Return the Program of a step of equations."""
    motion, trace = task.motion, Trace()
    assert isinstance(motion, Equations)
    now = _moment(task, layout, trace)
    q, qd = compiled(task, lambda: motion.advance(now), "advance")
    results = [_entries(task, "q", q, layout.nq), _entries(task, "qd", qd, layout.nv)]
    outputs = [Array("q", (layout.nq,)), Array("qd", (layout.nv,))]
    return Program.of_trace("advance", layout.seen, outputs, trace, results)


def _moment(task: Task, layout: Layout, trace: Trace) -> Moment:
    given = {a.name: [trace.input(g, k) for k in range(a.size)] for g, a in enumerate(layout.seen)}
    motion, instant, step = task.motion, None, task.motion.dt
    if isinstance(motion, Dynamics):
        instant = Instant(motion.mechanism, given["t"][0], given["q"], given["qd"], given.get("parameters"), given)
        step = motion.dt / motion.substeps
    return Moment(layout, given, instant, step)


class ActionControl:
    """The controller of a task: actions and what the episode keeps are inputs that are held over a step."""

    def __init__(self, task: Task, layout: Layout, held: str) -> None:
        """Declare the inputs."""
        self._task, self._layout, self._held = task, layout, held
        self.inputs = (Array(held, (layout.actions + layout.values,)),)

    def torque(self, now: Instant) -> list[Scalar]:
        """Return the torques of the task's control."""
        motion, given, count = self._task.motion, now.given[self._held], self._layout.actions
        assert isinstance(motion, Dynamics)
        numbers = {"q": now.q, "qd": now.qd, "t": [now.t], "action": given[:count], "kept": given[count:]}
        moment = Moment(self._layout, numbers, now, motion.dt / motion.substeps)
        found = compiled(self._task, lambda: motion.control(moment), "control")
        if isinstance(found, Mapping):
            tau: list[Scalar] = [0.0] * now.mechanism.nv
            names = [joint.name for joint in now.mechanism.joints]
            for name, x in found.items():
                if name not in names:
                    raise unknown_name("joint", str(name), names)
                own = now.mechanism.v_slices[names.index(name)]
                tau[own] = list(x) if isinstance(x, list | tuple) else [x]
            found = tau
        tau = list(found)
        if len(tau) != now.mechanism.nv:
            raise InputError(
                f"task {self._task.name!r}: control returned {len(tau)} torques; expected {now.mechanism.nv}, or a "
                "mapping from joints"
            )
        return tau
