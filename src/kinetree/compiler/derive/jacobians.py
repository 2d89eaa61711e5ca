"""Jacobians of Programs as Programs, by the mode with the fewest operations."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from types import MappingProxyType

from ...algebra.scalars import Scalar
from ..ir.operations import Op
from ..ir.program import Array, Program
from .adjoints import reverse
from .charts import Chart
from .elimination import eliminate
from .recorded import Recorded, Row, add_to, times, traced
from .tangents import forward

WEIGHTS = {"multiplications": 1, "additions": 1, "divisions": 8, "roots": 10, "sines": 20, "others": 4}
"""The time of an operation relative to that of an addition, roughly, on processors with vector units."""
MODES = ("forward", "reverse", "mixed")
"""Forward mode, reverse mode, and elimination of the cheapest value first."""
LONG = 20_000
"""The largest number of operations for which mixed mode is tried; its search takes seconds for longer Programs."""

Charts = Mapping[str, Chart]
"""The directions of inputs by name."""
ENTRIES: Charts = MappingProxyType({})
"""No charts: all inputs are displaced entry by entry."""


def derivative(
    program: Program,
    wrt: Sequence[str],
    of: Sequence[str] | None = None,
    *,
    mode: str = "auto",
    charts: Charts = ENTRIES,
) -> Program:
    """Return the Program of the Jacobians of the outputs `of` (all by default) with respect to the inputs `wrt`.

    Its inputs are those of the Program. Its outputs are d{output}_d{input}, each of the output's shape followed by the
    number of directions, for every output and then for every input. `charts` has the directions of inputs that are not
    displaced entry by entry. The mode "auto" is the one with the fewest operations.
    """
    if mode != "auto":
        return _in_mode(program, wrt, of, mode, charts)
    modes = MODES if len(program.ops) <= LONG else MODES[:2]
    return cheapest(_in_mode(program, wrt, of, m, charts) for m in modes)


def cheapest(programs: Iterable[Program]) -> Program:
    """Return the Program with the fewest operations, weighted by their times."""
    return min(programs, key=weight)


def weight(program: Program) -> int:
    """Return the number of operations of a Program, weighted by their times."""
    return sum(WEIGHTS[label] * n for label, n in program.cost().items())


def _in_mode(program: Program, wrt, of, mode: str, charts: Charts) -> Program:
    trace, inputs = traced(program.inputs)
    recorded = Recorded(program, inputs)
    chosen = [(a, r) for a, r in zip(program.outputs, program.results, strict=True) if of is None or a.name in of]
    rows = differentiated(recorded, inputs, wrt, {k for _, r in chosen for k in r}, mode, charts)
    arrays, results = [], []
    for out, entries in chosen:
        for name in wrt:
            n = directions(program, name, charts).size
            arrays.append(Array(f"d{out.name}_d{name}", (*out.shape, n)))
            results.append([rows[k].get((name, j), 0.0) for k in entries for j in range(n)])
    return Program.of_trace(f"jacobian_of_{program.name}", program.inputs, arrays, trace, results)


def directions(program: Program, name: str, charts: Charts) -> Chart:
    """Return the directions of an input of a Program."""
    return charts.get(name) or Chart.of_entries(next(a for a in program.inputs if a.name == name))


def differentiated(
    recorded: Recorded, inputs: Mapping[str, Sequence[Scalar]], wrt: Sequence[str], targets: set[int], mode: str,
    charts: Charts,
) -> dict[int, Row]:  # fmt: skip
    """Return the derivatives of operations of a recorded Program, labeled by (input, direction)."""
    seeds = input_rows(recorded, inputs, wrt, charts)
    if mode == "reverse":
        return {k: combined(reverse(recorded, {k: 1.0}, set(seeds)), seeds) for k in targets}
    return (forward if mode == "forward" else eliminate)(recorded, seeds, targets)


def input_rows(
    recorded: Recorded, inputs: Mapping[str, Sequence[Scalar]], wrt: Sequence[str], charts: Charts
) -> dict[int, Row]:
    """Return for each input operation its derivatives along the directions, labeled by (input, direction)."""
    program = recorded.program
    rows = {name: directions(program, name, charts).rows(inputs[name]) for name in wrt}
    names = [a.name for a in program.inputs]
    out = {}
    for k, op in enumerate(program.ops):
        if op[0] is Op.INPUT and names[op[1]] in rows:
            name = names[op[1]]
            out[k] = {(name, j): x for j, x in rows[name][op[2]].items()}
    return out


def combined(adjoints: Row, seeds: Mapping[int, Row]) -> Row:
    """Return the derivatives along directions from those with respect to input operations."""
    out: Row = {}
    for k, adjoint in adjoints.items():
        for label, x in seeds[k].items():
            add_to(out, label, times(x, adjoint))
    return out
