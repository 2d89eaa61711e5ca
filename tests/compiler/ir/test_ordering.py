"""The order of operations: the same values, each shortly before it is used."""

from __future__ import annotations

import numpy as np

from kinetree.compiler.ir.operations import Op
from kinetree.compiler.ir.program import Array, Program
from kinetree.compiler.ir.staging import limb_by_limb
from kinetree.compiler.ir.trace import Trace

N = 12


def limbs() -> Program:
    """Return a Program that computes a part of every limb before it uses the first."""
    trace = Trace()
    x = [trace.input(0, k) for k in range(N)]
    sides = [(a * a + 0.3, a * 1.7 - 0.2) for a in x]
    whole = sides[0][0] / sides[0][1]
    for a, b in sides[1:]:
        whole = whole + a / b
    return Program.of_trace("limbs", (Array("x", (N,)),), (Array("y", (2,)),), trace, [[whole, x[3]]])


def longest_wait(program: Program) -> int:
    """Return the largest distance between an operation and its last use."""
    last = {k: i for i, op in enumerate(program.ops) if op[0] > Op.CONST for k in op[1:]}
    return max(i - k for k, i in last.items() if program.ops[k][0] > Op.CONST)


def test_values_are_unchanged():
    """Reorder a Program, and find the same operations and the same bits."""
    program = limbs()
    ordered = limb_by_limb(program)
    x = np.random.default_rng(4).normal(size=(30, N))
    assert sorted(op[0] for op in ordered.ops) == sorted(op[0] for op in program.ops)
    assert np.array_equal(ordered.interpret(x)[0], program.interpret(x)[0])


def test_values_do_not_wait():
    """Find every value used within one limb, instead of after all others."""
    assert longest_wait(limbs()) > N
    assert longest_wait(limb_by_limb(limbs())) <= 8
