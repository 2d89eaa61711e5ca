"""The table of engines, one per line; the first that serves a problem carries it out."""

from __future__ import annotations

from ...errors import InputError
from ..motion_problem import Problem
from .engine import Engine
from .event_driven import EventDriven
from .gpu import Gpu
from .held_torques import HeldTorques
from .marching import Marching
from .native import Native
from .referees import Scipy, Sundials
from .scipy import PythonStages
from .time_stepping import TimeStepping

ENGINES: tuple[Engine, ...] = (
    TimeStepping(),
    EventDriven(),
    Gpu(),
    Marching(),
    PythonStages(),
    HeldTorques(),
    Sundials(),
    Scipy(),
    Native(),
)


def engine_of(problem: Problem) -> Engine:
    """Return the first engine that serves a problem."""
    for engine in ENGINES:
        if engine.takes(problem):
            return engine
    raise InputError(f"no engine takes {problem.method.name} for {problem.mechanism.name!r}; use another method")
