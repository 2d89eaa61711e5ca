"""Jacobians of Programs as Programs, by the mode with the fewest operations."""

from __future__ import annotations

import heapq
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from types import MappingProxyType
from typing import Any

from ...algebra.scalars import Scalar, is_number, where
from ..ir.operations import Op
from ..ir.program import Array, Program
from .recorded import Recorded, Row, add_to, times, trace_inputs

# --- Mixed mode: values between inputs and outputs are eliminated one by one, the one that costs least first ---
#
# The derivatives of all operations form a graph. A value is eliminated by adding the product of the edges to it and
# from it to the edge from each of its operands to each value that uses it. Elimination in the order of the Program is
# forward mode, in the opposite order reverse mode. Here the next value is the one with the fewest products (Markowitz).

Graph = dict[Any, Row]
"""For each node the edges to its neighbors on one side, with their derivatives."""


def eliminate(recorded: Recorded, seeds: Mapping[int, Row], targets: set[int]) -> dict[int, Row]:
    """Return the derivatives of the target operations, by label; `seeds` are the derivatives of input operations."""
    below, above = _graph(recorded, seeds, targets)
    left = {k for k in below if isinstance(k, int)}
    heap = [(_price(below[k], above[k]), k) for k in left]
    heapq.heapify(heap)
    while heap:
        price, k = heapq.heappop(heap)
        if k not in left:
            continue
        now = _price(below[k], above[k])
        if now > price:
            heapq.heappush(heap, (now, k))
            continue
        left.discard(k)
        for i in _remove(below, above, k):
            if i in left:
                heapq.heappush(heap, (_price(below[i], above[i]), i))
    return {k: {label: x for (_, label), x in below.get(("out", k), {}).items()} for k in targets}


def _graph(recorded: Recorded, seeds: Mapping[int, Row], targets: set[int]) -> tuple[Graph, Graph]:
    """Return the edges of each active operation to its operands, and to the operations that use it.

    Nodes ("in", label) below the seeds and ("out", k) above the targets stay when all operations are eliminated.
    """
    active = recorded.active(set(seeds), targets)
    below: Graph = {}
    above: Graph = {}
    for k in (k for k, mark in enumerate(active) if mark):
        row: Row = {}
        if k in seeds:
            row = {("in", label): x for label, x in seeds[k].items()}
        else:
            for i, factor in recorded.partials(k):
                if active[i]:
                    add_to(row, i, factor)
        below[k] = row
        above.setdefault(k, {})
        if k in targets:
            below["out", k] = {k: 1.0}
            above[k]["out", k] = 1.0
        for i, x in row.items():
            above.setdefault(i, {})[k] = x
    return below, above


def _price(down: Row, up: Row) -> int:
    """Return the number of products that the elimination of a node takes."""
    rows = sum(not _is_unit(x) for x in down.values())
    columns = sum(not _is_unit(x) for x in up.values())
    return rows * columns + (len(down) - 1) * (len(up) - 1)


def _remove(below: Graph, above: Graph, k: int) -> list[Any]:
    """Eliminate a node and return its neighbors."""
    down, up = below.pop(k), above.pop(k)
    for i in down:
        del above[i][k]
    for j, upper in up.items():
        row = below[j]
        del row[k]
        for i, lower in down.items():
            add_to(row, i, times(upper, lower))
            above[i][j] = row[i]
    return [*down, *up]


def _is_unit(x: Scalar) -> bool:
    return is_number(x) and abs(x) == 1.0


# --- Directions in which an input can be displaced: its entries, or the tangent space of its coordinates ---


@dataclass(frozen=True)
class Chart:
    """The directions of an input x: `size` of them, and the Program of dx/dt for the rates of all directions.

    Without `rate`, the directions are the entries of x. The inputs of `rate` are x and the rates, in this order. It is
    linear in the rates.
    """

    size: int
    rate: Program | None = None

    @classmethod
    def of_entries(cls, array: Array) -> Chart:
        """Return the chart whose directions are the entries of an array."""
        return cls(array.size)

    def displaced(self, x: Sequence[Scalar], rates: Sequence[Scalar]) -> list[Scalar]:
        """Return the rate of each entry of x for the rates of all directions."""
        if self.rate is None:
            return list(rates)
        at, along = (a.name for a in self.rate.inputs)
        (out,) = Recorded(self.rate, {at: x, along: rates}).outputs().values()
        return out

    def rows(self, x: Sequence[Scalar]) -> list[Row]:
        """Return for each entry of x its derivatives along the directions, by the index of the direction."""
        if self.rate is None:
            return [{k: 1.0} for k in range(self.size)]
        rows: list[Row] = [{} for _ in x]
        for j in range(self.size):
            unit = [1.0 if k == j else 0.0 for k in range(self.size)]
            for row, d in zip(rows, self.displaced(x, unit), strict=True):
                if not (isinstance(d, int | float) and d == 0.0):
                    row[j] = d
        return rows


# --- Forward mode: the derivatives of all values with respect to a few labels, from the inputs to the outputs.


def forward(recorded: Recorded, seeds: Mapping[int, Row], targets: set[int]) -> dict[int, Row]:
    """Return the derivatives of the target operations, by label; `seeds` are the derivatives of input operations."""
    active = recorded.active(set(seeds), targets)
    rows: dict[int, Row] = {}
    for k, op in enumerate(recorded.program.ops):
        if not active[k]:
            continue
        if k in seeds:
            rows[k] = dict(seeds[k])
        elif op[0] is Op.SELECT:
            rows[k] = _chosen(recorded.values[op[1]], rows.get(op[2], {}), rows.get(op[3], {}))
        else:
            row: Row = {}
            for i, factor in recorded.partials(k):
                if active[i]:
                    for label, x in rows[i].items():
                        add_to(row, label, times(factor, x))
            rows[k] = {label: x for label, x in row.items() if not (is_number(x) and x == 0.0)}
    return {k: rows.get(k, {}) for k in targets}


def _chosen(condition: Scalar, yes: Row, no: Row) -> Row:
    labels = dict.fromkeys((*yes, *no))
    return {label: where(condition, yes.get(label, 0.0), no.get(label, 0.0)) for label in labels}


# --- Reverse mode: the derivatives of one combination of outputs with respect to all inputs, from outputs to inputs.


def reverse(recorded: Recorded, weights: Mapping[int, Scalar], sources: set[int]) -> Row:
    """Return the derivatives of the weighted sum of output operations with respect to input operations."""
    active = recorded.active(sources, set(weights))
    adjoints: Row = {k: x for k, x in weights.items() if active[k]}
    out: Row = {}
    for k in reversed(range(max(weights, default=-1) + 1)):
        adjoint = adjoints.pop(k, None)
        if adjoint is None or (is_number(adjoint) and adjoint == 0.0):
            continue
        if k in sources:
            out[k] = adjoint
        else:
            for i, factor in recorded.partials(k):
                if active[i]:
                    add_to(adjoints, i, times(factor, adjoint))
    return out


WEIGHTS = {"multiplications": 1, "additions": 1, "divisions": 8, "roots": 10, "sines": 20, "others": 4}
"""The time of an operation in additions, roughly, on processors with vector units."""
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

    It has the inputs of the Program. Its outputs are d{output}_d{input}, each of the output's shape followed by the
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
    trace, inputs = trace_inputs(program.inputs)
    recorded = Recorded(program, inputs)
    chosen = [(a, r) for a, r in zip(program.outputs, program.results, strict=True) if of is None or a.name in of]
    rows = differentiate_recorded(recorded, inputs, wrt, {k for _, r in chosen for k in r}, mode, charts)
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


def differentiate_recorded(
    recorded: Recorded,
    inputs: Mapping[str, Sequence[Scalar]],
    wrt: Sequence[str],
    targets: set[int],
    mode: str,
    charts: Charts,
) -> dict[int, Row]:
    """Return the derivatives of operations of a recorded Program, labeled by (input, direction)."""
    seeds = input_rows(recorded, inputs, wrt, charts)
    if mode == "reverse":
        return {k: combine_adjoints(reverse(recorded, {k: 1.0}, set(seeds)), seeds) for k in targets}
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


def combine_adjoints(adjoints: Row, seeds: Mapping[int, Row]) -> Row:
    """Return the derivatives along directions from those with respect to input operations."""
    out: Row = {}
    for k, adjoint in adjoints.items():
        for label, x in seeds[k].items():
            add_to(out, label, times(x, adjoint))
    return out


# --- Products of the Jacobian with tangents and cotangents ---


def jvp(program: Program, wrt: Sequence[str], *, charts: Charts = ENTRIES) -> Program:
    """Return the Program of the derivative of all outputs along a tangent of each of the inputs `wrt`.

    It takes the inputs of the Program, then tangent_{input}; its outputs are tangent_{output}.
    """
    along = [Array(f"tangent_{name}", (directions(program, name, charts).size,)) for name in wrt]
    arrays = (*program.inputs, *along)
    trace, inputs = trace_inputs(arrays)
    recorded = Recorded(program, inputs)
    rates = {name: directions(program, name, charts).displaced(inputs[name], inputs[f"tangent_{name}"]) for name in wrt}
    names = [a.name for a in program.inputs]
    seeds = {
        k: {0: rates[names[op[1]]][op[2]]}
        for k, op in enumerate(program.ops)
        if op[0] is Op.INPUT and names[op[1]] in rates
    }
    found = forward(recorded, seeds, {k for r in program.results for k in r})
    outputs = [Array(f"tangent_{a.name}", a.shape) for a in program.outputs]
    results = [[found[k].get(0, 0.0) for k in r] for r in program.results]
    return Program.of_trace(f"jvp_of_{program.name}", arrays, outputs, trace, results)


def vjp(program: Program, wrt: Sequence[str], *, charts: Charts = ENTRIES) -> Program:
    """Return the Program of the derivatives of the outputs, weighted by cotangents and summed, for the inputs `wrt`.

    It takes the inputs of the Program, then cotangent_{output}; its outputs are cotangent_{input}.
    """
    arrays = (*program.inputs, *(Array(f"cotangent_{a.name}", a.shape) for a in program.outputs))
    trace, inputs = trace_inputs(arrays)
    recorded = Recorded(program, inputs)
    weights: dict = {}
    for a, r in zip(program.outputs, program.results, strict=True):
        for k, x in zip(r, inputs[f"cotangent_{a.name}"], strict=True):
            add_to(weights, k, x)
    seeds = input_rows(recorded, inputs, wrt, charts)
    row = combine_adjoints(reverse(recorded, weights, set(seeds)), seeds)
    sizes: Mapping[str, int] = {name: directions(program, name, charts).size for name in wrt}
    outputs = [Array(f"cotangent_{name}", (n,)) for name, n in sizes.items()]
    results = [[row.get((name, j), 0.0) for j in range(n)] for name, n in sizes.items()]
    return Program.of_trace(f"vjp_of_{program.name}", arrays, outputs, trace, results)


def hvp(program: Program, wrt: Sequence[str], *, charts: Charts = ENTRIES) -> Program:
    """Return the Program of the derivative of `vjp` along a tangent of each of the inputs `wrt`; cotangents stay.

    It takes the inputs of the Program, then cotangent_{output}, then tangent_{input}.
    """
    return jvp(vjp(program, wrt, charts=charts), wrt, charts=charts)
