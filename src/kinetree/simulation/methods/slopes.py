"""The rates of a state with their Jacobian and their derivative with respect to time, as one Program."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

from ...algebra.scalars import is_number
from ...compiler.derive.jacobians import ENTRIES, MODES, differentiate_recorded, weight
from ...compiler.derive.recorded import Recorded, trace_inputs
from ...compiler.ir.program import Array, Program
from ...errors import InputError

LONGEST = 3000
"""The most operations of rates whose Jacobian is compiled. The Jacobian of longer ones takes minutes to compile: a
Stewart platform has rates of 7,000 operations, and their Jacobian has 210,000."""


@dataclass(frozen=True)
class Slopes:
    """The Program (t, q, qd[, ...]) -> (dq, dqd, slope_t, slope) of rates f of the state y = (q, qd).

    slope_t is df/dt, and slope has the rows of the Jacobian df/dy. If dq_i is `moves[i]` qd_i plus a function of time,
    the Jacobian has the rows of dqd only. For other coordinates, such as quaternions, `moves` is None, and the Jacobian
    has all rows.
    """

    program: Program
    moves: tuple[float, ...] | None


def slopes_of(program: Program) -> Slopes:
    """Return the rates of a Program (t, q, qd[, ...]) -> (dq, dqd) with their derivatives, with few operations."""
    if len(program.ops) > LONGEST:
        raise InputError(
            f"the rates take {len(program.ops)} operations, more than the {LONGEST} whose Jacobian is compiled; use "
            'method="radau"'
        )
    return min((_in_mode(program, mode) for mode in MODES), key=lambda found: weight(found.program))


def jacobian_of(program: Program, parameters: Sequence[int] = ()) -> Slopes:
    """Return a Program (t, q, qd[, ...]) -> (x, y[, ...]) with the Jacobian of x and y, with few operations.

    The columns of the Jacobian are those of q and qd, then of some entries of the input "parameters". The other outputs
    come after y. slope_t is left out.
    """
    found = (_in_mode(program, mode, timed=False, parameters=parameters) for mode in MODES)
    return min(found, key=lambda each: weight(each.program))


def _in_mode(program: Program, mode: str, *, timed: bool = True, parameters: Sequence[int] = ()) -> Slopes:
    trace, inputs = trace_inputs(program.inputs)
    recorded = Recorded(program, inputs)
    moved, pushed = program.results[:2]
    wrt = (*(("t",) if timed else ()), "q", "qd", *(("parameters",) if parameters else ()))
    rows = differentiate_recorded(recorded, inputs, wrt, {*moved, *pushed}, mode, ENTRIES)
    nq, nv = (a.size for a in program.inputs[1:3])
    moves = _moves([rows[k] for k in moved], nv)
    chosen = pushed if moves is not None else (*moved, *pushed)
    labels = [(name, j) for name, entries in (("q", range(nq)), ("qd", range(nv)), ("parameters", parameters))
              for j in entries]  # fmt: skip
    by_time = [Array("slope_t", (nq + nv,))] if timed else []
    outputs = (*program.outputs, *by_time, Array("slope", (len(chosen), len(labels))))
    results = [
        *recorded.outputs().values(),
        *([[rows[k].get(("t", 0), 0.0) for k in (*moved, *pushed)]] if timed else []),
        [rows[k].get(label, 0.0) for k in chosen for label in labels],
    ]
    return Slopes(Program.of_trace(f"slopes_of_{program.name}", program.inputs, outputs, trace, results), moves)


def _moves(rows: list[dict], nv: int) -> tuple[float, ...] | None:
    """Return the constants m_i of dq_i = m_i qd_i + a function of time; None if a rate of coordinates is another."""
    if len(rows) != nv:
        return None
    found = []
    for i, row in enumerate(rows):
        others = {label: x for label, x in row.items() if label[0] != "t" and not (is_number(x) and x == 0.0)}
        own = others.pop(("qd", i), 0.0)
        if others or not is_number(own):
            return None
        found.append(float(own))
    return tuple(found)
