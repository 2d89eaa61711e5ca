"""Time steps (t, q, qd[, tau][, parameters], dt[, steps]) -> (q_next, qd_next), for loops outside of Kinetree."""

from __future__ import annotations

from collections.abc import Sequence

from ...compiler.ir.program import Program
from ...compiler.lanes.form import Kernel, Kind
from ..tableaus import Tableau
from .fixed_steps import explicit_step, map_step
from .held_inputs import HeldRates, HeldStates, held_rates
from .implicit_steps import implicit_step
from .lane_states import LaneStates, builder_of


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
    program = parts.each
    stages = 1 if tableau is None else len(tableau.b) * (2 if tableau.implicit else 1)
    k = builder_of("step", program, closing)
    k.programs |= {name: p for name, p in (("once", parts.once), ("idle", parts.idle)) if p}
    nq, nv = program.inputs[1].size, program.inputs[2].size
    free = sum(a.size for a in program.inputs if a.name == "parameters") - held
    t = k.array("t") if timed else None
    q, qd = k.array("q", nq), k.array("qd", nv)
    tau = k.array("tau", held) if held else None
    parameters = k.array("parameters", free) if free else None
    dt = k.array("dt")
    steps = k.array("steps", shared=True) if many else None
    q_next, qd_next = k.array("q_next", nq, output=True), k.array("qd_next", nv, output=True)
    states = (HeldStates if parts.idle else LaneStates)(k, program, stages, quaternions, closing, dtype)
    begin, length = k.block("begin"), k.block("length")
    begin.value = 0.0
    with k.each_lane():
        if t:
            begin.value = t[()]
        length.value = dt[()]
        for array, block, size, first in (
            (q, states.y, nq, 0),
            (qd, states.y, nv, nq),
            (parameters, states.inputs, free, 1 + states.n),
            (tau, states.inputs, held, 1 + states.n + free),
        ):
            if array:
                with k.loop(size) as j:
                    block[j + first] = array[j]
    if parts.once:
        kept = k.block("kept", parts.once.outputs[0].size)
        k.call("once", states.inputs, kept)
        with k.loop(kept.memory.size) as j:
            states.inputs[j + (1 + states.n + free + held)] = kept[j]
    if isinstance(states, HeldStates):
        states.test(1 + states.n + free, held)
    if tableau is None:
        step = map_step(states, program)
    else:
        step = implicit_step(states, tableau) if tableau.implicit else explicit_step(states, tableau)
    if steps:
        with k.loop(k.whole(steps[()])) as m:
            step(begin.value, length.value, m)
    else:
        step(begin.value, length.value, k.constant(0, Kind.COUNT))
    with k.each_lane():
        for array, size, first in ((q_next, nq, 0), (qd_next, nv, nq)):
            with k.loop(size) as j:
                array[j] = states.y[j + first]
    return k.kernel()
