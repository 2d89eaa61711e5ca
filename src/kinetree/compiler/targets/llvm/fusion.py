"""Sums that are fused with one of their products to an operation that rounds once, chosen before code is written.

Where several programs compute the same function, such as two kernels of a GPU, the same choice gives the same bits.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import NamedTuple

from ...ir.operations import Op
from ...ir.program import Program


class Fusion(NamedTuple):
    """The operations a, b and c of a b + c, where the product or c may be negative."""

    operands: tuple[int, int, int]
    minus_product: bool
    minus_rest: bool


def fusions(program: Program, allowed: Callable[[int, int], bool]) -> dict[int, Fusion]:
    """Return the fusions by their sums; `allowed(product, sum)` returns whether the two may be fused.

    Of two products, the one with fewer uses is taken, as it is more often of no other use.
    """
    ops = program.ops
    uses = [0] * len(ops)
    for op, *x in ops:
        if op > Op.CONST:
            for k in x:
                uses[k] += 1
    found: dict[int, Fusion] = {}
    for i in reversed(range(len(ops))):
        op, *x = ops[i]
        if (op is not Op.ADD and op is not Op.SUB) or x[0] == x[1]:  # a difference that is zero stays zero
            continue
        signs = (1, -1 if op is Op.SUB else 1)
        choices = []
        for k, sign, rest, other in ((x[0], signs[0], x[1], signs[1]), (x[1], signs[1], x[0], signs[0])):
            product, sign = (ops[k][1], -sign) if ops[k][0] is Op.NEG else (k, sign)
            if ops[product][0] is Op.MUL and allowed(k, i) and allowed(product, i):
                choices.append((uses[k], k, Fusion((*ops[product][1:], rest), sign < 0, other < 0)))
        if choices:
            _, k, found[i] = min(choices, key=lambda choice: choice[0])
            uses[k] -= 1
    return found
