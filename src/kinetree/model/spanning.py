"""Spanning tree of a graph of bodies: the heaviest one, and among equals a shallow one."""

from __future__ import annotations

import heapq
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any


@dataclass(frozen=True)
class Edge:
    """A connection of two nodes; the tree prefers edges of large weight, which may be any value that has an order."""

    a: str
    b: str
    weight: Any


@dataclass(frozen=True)
class Spanning:
    """A spanning tree: the edge that carries each node, the node before it, and the number of edges to the root."""

    carrier: dict[str, int]
    parent: dict[str, str]
    depth: dict[str, int]

    def ring(self, edge: Edge) -> tuple[list[str], list[int]]:
        """Return the nodes from a to b in the tree, and the edges between them: a ring with an edge that is cut."""
        left, right = [edge.a], [edge.b]
        while left[-1] != right[-1]:
            side = left if self.depth[left[-1]] >= self.depth[right[-1]] else right
            side.append(self.parent[side[-1]])
        nodes = left + right[-2::-1]
        edges = [self.carrier[n] for n in left[:-1]] + [self.carrier[n] for n in reversed(right[:-1])]
        return nodes, edges


def heaviest_tree(root: str, edges: Sequence[Edge]) -> Spanning:
    """Return the spanning tree of the greatest total weight of all nodes that the edges connect to the root.

    It grows from the root by the heaviest edge that leaves it (Prim's algorithm); of equal ones by the one that starts
    at the smallest depth, then by the first in the given order. So the result depends on nothing but the input.
    """
    around: dict[str, list[int]] = {}
    for k, edge in enumerate(edges):
        around.setdefault(edge.a, []).append(k)
        around.setdefault(edge.b, []).append(k)
    ranks = {w: r for r, w in enumerate(sorted({e.weight for e in edges}, reverse=True))}
    carrier: dict[str, int] = {}
    parent: dict[str, str] = {}
    depth = {root: 0}
    waiting = [(ranks[edges[k].weight], 0, k, root) for k in around.get(root, ())]
    heapq.heapify(waiting)
    while waiting:
        _, _, k, node = heapq.heappop(waiting)
        new = edges[k].b if edges[k].a == node else edges[k].a
        if new in depth:
            continue
        carrier[new], parent[new], depth[new] = k, node, depth[node] + 1
        for j in around[new]:
            heapq.heappush(waiting, (ranks[edges[j].weight], depth[new], j, new))
    return Spanning(carrier, parent, depth)
