"""Choices that determine the bits of results, the same for all code of an entry: fused products, and bare angles."""

from __future__ import annotations

from ...ir.program import Program
from ..llvm import arithmetic
from ..llvm.fusion import Fusion, fusions
from .staging import Layout


def fused(program: Program, places: Layout | None) -> dict[int, Fusion]:
    """Return the sums of a Program that are fused with a product.

    A product that waits in shared memory before it is added is not fused, because its factors would be in use longer.
    """
    returns: dict[int, int] = {}
    for i, moves in places.moves.items() if places is not None else ():
        for move in moves:
            if move.back:
                returns[move.value] = min(i, returns.get(move.value, i))
    return fusions(program, lambda product, i: returns.get(product, i + 1) > i)


def bare_angles(program: Program, places: Layout | None) -> tuple[set[int], list[tuple[int, int]]]:
    """Return the operations that are bare angles, and the entries of inputs that they come from.

    If inputs are in shared memory, there are none if some are in arrays too large for it.
    """
    bare, found = arithmetic.bare_angles(program)
    starts = arithmetic.offsets(program)
    groups = range(len(starts))
    angles = [next((g, p - starts[g]) for g in reversed(groups) if starts[g] <= p) for p in found]
    if places is not None and not places.early and any(places.inputs[group] is None for group, _ in angles):
        return set(), []
    return bare, angles
