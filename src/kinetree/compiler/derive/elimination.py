"""Mixed mode: values between inputs and outputs are eliminated one by one, the one that costs least first.

The derivatives of all operations form a graph. A value is eliminated by adding the product of the edges to it and from
it to the edge from each of its operands to each value that uses it. Elimination in the order of the Program is forward
mode, in the opposite order reverse mode. Here the next value is the one with the fewest products (Markowitz).
"""

from __future__ import annotations

import heapq
from collections.abc import Mapping
from typing import Any

from ...algebra.scalars import Scalar, is_number
from .recorded import Recorded, Row, add_to, times

Graph = dict[Any, Row]
"""For each node the edges to its neighbors on one side, with their derivatives."""


def eliminate(recorded: Recorded, seeds: Mapping[int, Row], targets: set[int]) -> dict[int, Row]:
    """Return the derivatives of the target operations, by label; `seeds` are those of input operations."""
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
