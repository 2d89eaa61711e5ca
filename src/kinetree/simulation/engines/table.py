"""The table of engines, one per line; the first that takes a problem carries it out.

Engines are imported when they are used. Those of methods of their own are named in the table of methods.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from importlib import import_module

from ...errors import InputError
from ..problem import Problem
from .engine import Engine


@dataclass(frozen=True)
class Entry:
    """An engine: its place, as MODULE:NAME in this package, and whether it takes a problem."""

    found: str
    takes: Callable[[Problem], bool]


def _named(name: str) -> Callable[[Problem], bool]:
    """Return the condition that a method names an engine as its own."""
    return lambda p: p.method.engine == name


ENGINES = (
    Entry("time_stepping:run_time_steps", _named("time_stepping")),
    Entry("event_driven:run_from_event_to_event", lambda p: bool(p.mechanism.contacts)),
    Entry("gpu:run_on_gpu", lambda p: p.device is not None),
    Entry("marching:run_marching", lambda p: p.is_long or p.method.engine == "marching"),
    Entry("scipy:run_python_stages", lambda p: p.outside and p.control.rate is None),
    Entry("held_torques:run_held_torques", lambda p: p.outside),
    Entry("referees:run_sundials", _named("sundials")),
    Entry("referees:run_scipy", _named("scipy")),
    Entry("native:run_native", _named("native")),
)


def engine_of(problem: Problem) -> Engine:
    """Return the first engine that takes a problem."""
    for entry in ENGINES:
        if entry.takes(problem):
            module, name = entry.found.split(":")
            return getattr(import_module(f".{module}", __package__), name)
    raise InputError(f"no engine takes {problem.method.name} for {problem.mechanism.name!r}; use another method")
