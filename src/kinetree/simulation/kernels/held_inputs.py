"""Rates whose parameters stay the same over many steps: what is computed once, in every stage, and without loads."""

from __future__ import annotations

from dataclasses import dataclass, replace
from typing import Any

from ...compiler.ir.operations import apply
from ...compiler.ir.program import Program
from ...compiler.ir.staging import constant_part, some_outputs
from ...compiler.ir.trace import Trace
from ...compiler.lanes.expressions import Value
from ...compiler.lanes.form import Kind
from .lane_states import LaneStates

MOST = 2000
"""The most operations of rates that are written a second time, for steps without loads: some 5 kB for an arm."""


@dataclass(frozen=True)
class HeldRates:
    """Rates in parts: `once` before the steps, which `each` stage takes as further inputs.

    `idle` replaces `each` if all held inputs are zero; it is None for large mechanisms. `once` is None if nothing
    follows from the parameters alone.
    """

    once: Program | None
    each: Program
    idle: Program | None


def held_rates(program: Program, held: int) -> HeldRates:
    """Return the parts of rates (t, q, qd, parameters) -> (dq, dqd), whose last `held` parameters are loads.

    The bits are those of the Program.
    """
    both = _with_and_without(program, held) if len(program.ops) <= MOST else program
    parts = constant_part(both, "parameters")
    once, each = parts or (None, both)
    if both is program:
        return HeldRates(once, each, None)
    return HeldRates(once, some_outputs(each, (0, 1)), replace(some_outputs(each, (2, 3)), outputs=program.outputs))


def _with_and_without(program: Program, held: int) -> Program:
    """Return one Program of the outputs and, after them, of the outputs with zeros for the held inputs."""
    trace = Trace()
    given: list[list[Any]] = [[trace.input(g, k) for k in range(a.size)] for g, a in enumerate(program.inputs)]
    whole = program.replay(given, apply)
    group = [a.name for a in program.inputs].index("parameters")
    given[group] = [*given[group][:-held], *[0.0] * held]
    idle = [replace(a, name=f"{a.name}_idle") for a in program.outputs]
    results = [*whole, *program.replay(given, apply)]
    return Program.of_trace(program.name, program.inputs, (*program.outputs, *idle), trace, results)


class HeldStates(LaneStates):
    """States whose rates are those without loads if there are none."""

    idle: Value
    """Whether all held inputs of all lanes are zero, when the kernel runs."""

    def test(self, first: int, count: int) -> None:
        """Write the test of the held inputs, which begin at an entry of the inputs."""
        acted = self.k.block("acted", kind=Kind.MASK)
        acted.value = False
        with self.k.loop(count) as j:
            acted.value = acted.value | ~self.inputs[j + first].equals(0.0)
        self.idle = ~self.k.any(acted.value)

    def rates(self, now: Value, stage: Any) -> None:
        """Write k_stage = rates of the state in the inputs, at the time `now`."""
        self.inputs[0] = now
        for condition, name in ((self.idle, "idle"), (~self.idle, "rates")):
            with self.k.when(condition):
                self.k.call(name, self.inputs, self.stages, stage * self.n)
