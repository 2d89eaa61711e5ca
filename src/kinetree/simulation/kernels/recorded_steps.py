"""Fixed steps of which every state is kept: the states from which a run is differentiated backward."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from ...compiler.ir.program import Program
from ...compiler.lanes.builder import Builder
from ...compiler.lanes.expressions import Value
from ...compiler.lanes.form import Kernel, Kind
from ..tableaus import Tableau
from .lane_states import LaneStates, builder_of
from .method_steps import stages_of, step_of


class StepInputs:
    """Arguments of kernels of given steps: the parameters of a run and torques that are held during each step.

    The last `held` parameters of the Program are these torques.
    """

    def __init__(self, k: Builder, program: Program, held: int, *, own: bool = False) -> None:
        """Declare the arguments: times of all steps and their lengths [s], of each run its own or the same for all."""
        self.own = (k.block("begin"), k.block("length")) if own else None
        self.free = sum(a.size for a in program.inputs if a.name == "parameters") - held
        self.parameters = k.array("parameters", self.free) if self.free else None
        self.times, self.lengths = (k.array(name, "t", shared=not own) for name in ("times", "lengths"))
        self.torques = k.array("torques", "t", held) if held else None

    def fill(self, states: LaneStates) -> None:
        """Write the parameters into the inputs of the rates, inside `each_lane`."""
        states.give(self.parameters)

    def hold(self, states: LaneStates, step: Any) -> None:
        """Write the torques of a step into the inputs of the rates, and its own span, inside `each_lane`."""
        if self.own:
            self.own[0].value, self.own[1].value = self.times[step], self.lengths[step]
        states.give(self.torques, step, shift=self.free)

    def span(self, step: Value) -> tuple[Value, Value]:
        """Return the time at the beginning of a step, and its length; an own one is that of the last `hold`."""
        if self.own:
            return self.own[0].value, self.own[1].value
        return self.times[step], self.lengths[step]


def recording_kernel(
    program: Program,
    tableau: Tableau | None,
    quaternions: Sequence[int],
    closing: Program | None,
    *,
    held: int,
    dtype: str = "float64",
) -> Kernel:
    """Return (q0, qd0[, parameters], times, lengths[, torques]) -> (q, qd): the states at all times, one step apart."""
    k = builder_of("recorded", program, closing)
    nq, nv = program.inputs[1].size, program.inputs[2].size
    start = k.array("q0", nq), k.array("qd0", nv)
    given = StepInputs(k, program, held)
    kept = k.array("q", "t", nq, output=True), k.array("qd", "t", nv, output=True)
    states = LaneStates(k, program, stages_of(tableau), quaternions, closing, dtype)
    step = step_of(states, program, tableau, patient=True)
    with k.each_lane():
        states.read(start, states.y)
        given.fill(states)
        states.write(states.y, kept, 0)
    with k.loop(k.extent() - 1) as j:
        with k.each_lane():
            given.hold(states, j)
        begin, h = given.span(j)
        step(begin, h, k.constant(0, Kind.COUNT))
        with k.each_lane():
            states.write(states.y, kept, j + 1)
    return k.kernel()
