"""The step of any method with fixed steps: of a tableau, explicit or implicit, or of a Program that is one itself."""

from __future__ import annotations

from ...compiler.ir.program import Program
from ..tableaus import Pair, Tableau
from .fixed_steps import Step, explicit_step, map_step
from .implicit_steps import implicit_step
from .lane_states import LaneStates


def stages_of(tableau: Tableau | Pair | None) -> int:
    """Return the number of stages in memory: implicit methods have new ones and accepted ones."""
    if tableau is None:
        return 1
    return len(tableau.b) * (2 if isinstance(tableau, Tableau) and tableau.implicit else 1)


def step_of(states: LaneStates, program: Program, tableau: Tableau | None, *, patient: bool = False) -> Step:
    """Return the step of a method; None is a Program that is a step. Derivatives of implicit ones must be `patient`."""
    if tableau is None:
        return map_step(states, program)
    return implicit_step(states, tableau, patient=patient) if tableau.implicit else explicit_step(states, tableau)
