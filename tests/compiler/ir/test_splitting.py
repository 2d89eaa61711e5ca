"""Programs in two parts: the same bits as the whole, with every input where it is known."""

from __future__ import annotations

import numpy as np

from kinetree.algebra.scalars import cos, sqrt, where
from kinetree.compiler.ir.program import Array, Program
from kinetree.compiler.ir.splitting import split
from kinetree.compiler.ir.trace import Trace


def whole() -> Program:
    """Return a Program with outputs before and after its late input, and a comparison that both parts use."""
    trace = Trace()
    inputs = (Array("a", (2,)), Array("late", (2,)), Array("b", (1,)))
    (a0, a1), (p, q), (b,) = ([trace.input(g, k) for k in range(x.size)] for g, x in enumerate(inputs))
    size = sqrt(a0 * a0 + a1 * a1 + 0.7)
    steep = a0 < b
    early = where(steep, size * b, cos(a1))
    outputs = (Array("early", (2,)), Array("after", (3,)))
    after = [where(steep, p * size, q) + early, size * b, q * 3.1 - a1]
    return Program.of_trace("whole", inputs, outputs, trace, [[early, size], after])


def test_the_two_parts_have_the_bits_of_the_whole():
    """Run the first part, pass on what it keeps with the late input, and find the outputs of the whole."""
    program = whole()
    first, second = split(program, "late")
    rng = np.random.default_rng(3)
    a, p, b = (rng.normal(size=(40, n)) for n in (2, 2, 1))
    early, after = program.interpret(a, p, b)
    found, kept = first.interpret(a, b)
    (moved,) = second.interpret(kept, p)
    assert np.array_equal(found, early)
    assert np.array_equal(moved, after)


def test_numbers_that_the_second_part_does_not_need_are_not_passed_on():
    """Find the inputs of each part, and no more numbers kept than the second part reads."""
    first, second = split(whole(), "late")
    assert [x.name for x in first.inputs] == ["a", "b"]
    assert [x.name for x in first.outputs] == ["early", "kept"]
    assert [x.name for x in second.inputs] == ["kept", "late"]
    read = {op[2] for op in second.ops if op[0].name == "INPUT" and op[1] == 0}
    assert read == set(range(second.inputs[0].size))


def test_outputs_may_be_left_to_the_second_part():
    """Name an output that does not depend on the late input, and find it in the second part."""
    program = whole()
    first, second = split(program, "late", "early")
    assert [x.name for x in first.outputs] == ["kept"]
    assert [x.name for x in second.outputs] == ["early", "after"]
    a, p, b = (np.random.default_rng(7).normal(size=(5, n)) for n in (2, 2, 1))
    (kept,) = first.interpret(a, b)
    assert all(np.array_equal(x, y) for x, y in zip(second.interpret(kept, p), program.interpret(a, p, b), strict=True))
