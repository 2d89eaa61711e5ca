"""Sums as chains that add their products last, so that each product is fused with an addition.

In a b + c d + (e + f g), written as a tree, the outer additions are operations of their own. The chain
((e + f g) + c d) + a b takes three operations on processors that multiply and add at once, and the tree takes five.
Values change by rounding only.
"""

from __future__ import annotations

from collections.abc import Iterable

from ..ir.operations import Op
from ..ir.program import Program
from ..ir.staging import some_outputs

SUMS = (Op.ADD, Op.SUB)
Term = tuple[bool, int]
"""Whether a term of a sum is negative, and its operation."""


def chained(program: Program) -> Program:
    """Return a Program of the same values up to rounding, whose sums with products are chains."""
    ops, uses = program.ops, _uses(program)
    inner = {k for op in ops if op[0] in SUMS for k in op[1:] if ops[k][0] in SUMS and uses[k] == 1}
    absorbed: set[int] = set()
    chains: dict[int, list[Term]] = {}
    for k in range(len(ops)):
        if ops[k][0] in SUMS and k not in inner:
            terms, within = _terms(program, k, inner, uses)
            if len(terms) > 2 and any(_is_product(ops[j], uses[j]) for _, j in terms):
                chains[k] = sorted(terms, key=lambda term: (_is_product(ops[term[1]], uses[term[1]]), term[1]))
                absorbed |= within
    new: list[tuple] = []
    place: dict[int, int] = {}
    for k, op in enumerate(ops):
        if k in chains:
            place[k] = _write(new, [(minus, place[j]) for minus, j in chains[k]])
        elif k not in absorbed:
            new.append(op if op[0] <= Op.CONST else (op[0], *(place[j] for j in op[1:])))
            place[k] = len(new) - 1
    results = tuple(tuple(place[k] for k in entries) for entries in program.results)
    made = Program(program.name, program.inputs, program.outputs, tuple(new), results)
    return some_outputs(made, range(len(results)))  # without negations that became subtractions


def _terms(program: Program, k: int, inner: set[int], uses: list[int]) -> tuple[list[Term], set[int]]:
    """Return the terms of a sum, and the sums within it that serve no other purpose."""
    terms: list[Term] = []
    within: set[int] = set()
    stack = [(False, k)]
    while stack:
        minus, j = stack.pop()
        op = program.ops[j]
        if op[0] in SUMS and (j == k or j in inner):
            within.add(j)
            stack += [(minus != (op[0] is Op.SUB), op[2]), (minus, op[1])]
        elif op[0] is Op.NEG and uses[j] == 1:
            stack.append((not minus, op[1]))
        else:
            terms.append((minus, j))
    return terms, within - {k}


def _write(ops: list[tuple], terms: list[Term]) -> int:
    """Append the operations of a chain, which begins with the first positive term; return the number of the last."""
    first = next((j for j, (minus, _) in enumerate(terms) if not minus), 0)
    minus, value = terms[first]
    for other, k in (*terms[:first], *terms[first + 1 :]):
        if minus and not other:
            ops.append((Op.SUB, k, value))
            minus = False
        else:
            ops.append((Op.SUB if other and not minus else Op.ADD, value, k))
        value = len(ops) - 1
    if minus:
        ops.append((Op.NEG, value))
    return len(ops) - 1


def _is_product(op: tuple, uses: int) -> bool:
    """Return whether an operation is a product of no other use, which can be fused."""
    return op[0] is Op.MUL and uses == 1


def _uses(program: Program) -> list[int]:
    """Return how often each value is used, as an operand or as a result."""
    uses = [0] * len(program.ops)
    for operands in (*_operands(program), *program.results):
        for k in operands:
            uses[k] += 1
    return uses


def _operands(program: Program) -> Iterable[tuple[int, ...]]:
    return (op[1:] for op in program.ops if op[0] > Op.CONST)
