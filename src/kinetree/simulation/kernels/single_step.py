"""Time steps (t, q, qd[, tau][, parameters], dt[, steps]) -> (q_next, qd_next), for loops outside of Kinetree."""

from __future__ import annotations

from collections.abc import Sequence

from ...compiler.ir.program import Program
from ...compiler.lanes.builder import Builder
from ...compiler.lanes.form import Kernel, Kind
from ..tableaus import Tableau
from .held_inputs import HeldRates, HeldStates, held_rates
from .lane_states import LaneStates, builder_of
from .method_steps import stages_of, step_of


def step_kernel(
    program: Program,
    tableau: Tableau | None,
    quaternions: Sequence[int],
    closing: Program | None = None,
    *,
    dtype: str,
    held: int = 0,
    timed: bool = False,
    many: bool = False,
) -> Kernel:
    """Return a kernel of one step of a method with fixed steps; None is a Program that is a step itself.

    The last `held` parameters of the Program are joint torques, which become the argument `tau`. The time is an
    argument only of a `timed` step, and zero otherwise. With `many`, the number of steps is the last argument, all that
    follows from the parameters alone is computed once, before the first of them, and loads that are zero take no time.
    """
    parts = held_rates(program, held) if many else HeldRates(None, program, None)
    k = builder_of("step", parts.each, closing)
    k.programs |= {name: p for name, p in (("once", parts.once), ("idle", parts.idle)) if p}
    given = _Arguments(k, parts.each, held, timed=timed, many=many)
    kind = HeldStates if parts.idle else LaneStates
    states = kind(k, parts.each, stages_of(tableau), quaternions, closing, dtype)
    begin, length = k.block("begin"), k.block("length")
    begin.value = 0.0
    with k.each_lane():
        if given.t:
            begin.value = given.t[()]
        length.value = given.dt[()]
        states.read((given.q, given.qd), states.y)
        states.give(given.parameters)
        states.give(given.tau, shift=given.free)
    if parts.once:
        _compute_once(states, parts.once, given.free + held)
    if isinstance(states, HeldStates):
        states.test(1 + states.n + given.free, held)
    step = step_of(states, parts.each, tableau)
    if given.steps:
        with k.loop(k.whole(given.steps[()])) as m:
            step(begin.value, length.value, m)
    else:
        step(begin.value, length.value, k.constant(0, Kind.COUNT))
    with k.each_lane():
        states.write(states.y, given.after)
    return k.kernel()


class _Arguments:
    """The arguments of a step in order; those that it does not have are None."""

    def __init__(self, k: Builder, program: Program, held: int, *, timed: bool, many: bool) -> None:
        nq, nv = program.inputs[1].size, program.inputs[2].size
        self.free = sum(a.size for a in program.inputs if a.name == "parameters") - held
        self.t = k.array("t") if timed else None
        self.q, self.qd = k.array("q", nq), k.array("qd", nv)
        self.tau = k.array("tau", held) if held else None
        self.parameters = k.array("parameters", self.free) if self.free else None
        self.dt = k.array("dt")
        self.steps = k.array("steps", shared=True) if many else None
        self.after = k.array("q_next", nq, output=True), k.array("qd_next", nv, output=True)


def _compute_once(states: LaneStates, once: Program, parameters: int) -> None:
    """Write what follows from the parameters alone into the inputs behind them."""
    k = states.k
    kept = k.block("kept", once.outputs[0].size)
    k.call("once", states.inputs, kept)
    with k.loop(kept.memory.size) as j:
        states.inputs[j + (1 + states.n + parameters)] = kept[j]
