"""Programs in stages: the same bits as the whole, with every input where it is known."""

from __future__ import annotations

import numpy as np

from kinetree.algebra.scalars import cos, sqrt, where
from kinetree.compiler.ir.operations import Op
from kinetree.compiler.ir.program import Array, Program
from kinetree.compiler.ir.staging import constant_part, in_stages
from kinetree.compiler.ir.trace import Trace


def whole() -> Program:
    """Return a Program with a late input, a comparison that all stages use, and inputs that only the last one uses."""
    trace = Trace()
    inputs = (Array("a", (2,)), Array("guess", (2,)), Array("b", (2,)))
    (a0, a1), (p, q), (b, c) = ([trace.input(g, k) for k in range(x.size)] for g, x in enumerate(inputs))
    size = sqrt(a0 * a0 + a1 * a1 + 0.7)
    steep = a0 < b
    early = where(steep, size * b, cos(a1))
    outputs = (Array("early", (2,)), Array("guess", (2,)), Array("after", (3,)))
    after = [where(steep, p * size, q) + early, size * b, q * 3.1 - a1 * c]
    return Program.of_trace("whole", inputs, outputs, trace, [[early, size], [early * 0.3, b - size], after])


def run(stages: list[Program], first: list[np.ndarray], changed: np.ndarray) -> dict[str, np.ndarray]:
    """Return the outputs of all stages, with the late input changed after its stage."""
    known: dict[str, np.ndarray] = {}
    for s, stage in enumerate(stages):
        given = first if s == 0 else [known[a.name] for a in stage.inputs]
        found = stage.interpret(*given)
        known |= dict(zip([a.name for a in stage.outputs], found, strict=True))
        if "guess" in known and s == 1:
            known["guess"] = changed
    return known


def test_the_stages_have_the_bits_of_the_whole():
    """Run the stages with a late input that is changed in between, and find the outputs of the whole."""
    program = whole()
    rng = np.random.default_rng(3)
    a, p, b = (rng.normal(size=(40, 2)) for _ in range(3))
    early, _, after = program.interpret(a, p, b)
    found = run(in_stages(program, ["early"], ["guess"], ["after"]), [a, b], p)
    assert np.array_equal(found["early"], early)
    assert np.array_equal(found["after"], after)


def test_each_stage_takes_the_outputs_of_those_before_it():
    """Find the inputs and outputs of each stage, and no more numbers kept than later stages read."""
    first, second, third = in_stages(whole(), ["early"], ["guess"], ["after"])
    assert [x.name for x in first.inputs] == ["a", "b"]
    assert [x.name for x in first.outputs] == ["early", "kept0"]
    assert [x.name for x in second.inputs] == ["early", "kept0"]
    assert [x.name for x in third.inputs] == ["early", "kept0", "guess"]
    read = {(op[1], op[2]) for stage in (second, third) for op in stage.ops if op[0] is Op.INPUT and op[1] == 1}
    assert read == {(1, k) for k in range(first.outputs[1].size)}


def test_no_operation_is_carried_out_twice_except_comparisons():
    """Count the operations of the stages: those of the whole, with comparisons in every stage that uses them."""
    program = whole()
    stages = in_stages(program, ["early"], ["guess"], ["after"])

    def counted(ops, *kinds: Op) -> int:
        return sum(op[0] in kinds for op in ops)

    numbers = (Op.ADD, Op.SUB, Op.MUL, Op.SQRT, Op.COS, Op.SELECT)
    assert sum(counted(x.ops, *numbers) for x in stages) == counted(program.ops, *numbers)
    assert [counted(x.ops, Op.LESS) for x in stages] == [1, 0, 1]


def test_the_constant_part_and_the_rest_have_the_bits_of_the_whole():
    """Compute what follows from one input once, and find the outputs of the whole from it."""
    program = whole()
    rng = np.random.default_rng(5)
    a, p, b = (rng.normal(size=(40, 2)) for _ in range(3))
    for name in ("a", "b"):
        found = constant_part(program, name)
        assert found is not None or name == "b"
        if found is not None:
            first, rest = found
            (kept,) = first.interpret(a, p, b)
            for got, right in zip(rest.interpret(a, p, b, kept), program.interpret(a, p, b), strict=True):
                assert np.array_equal(got, right)


def test_the_rest_does_not_repeat_the_constant_part():
    """Find the square root of the first input in the first part only, and comparisons in the rest."""
    found = constant_part(whole(), "a")
    assert found is not None
    first, rest = found
    assert sum(op[0] is Op.SQRT for op in first.ops) == 1
    assert sum(op[0] is Op.SQRT for op in rest.ops) == 0
    assert sum(op[0] is Op.LESS for op in rest.ops) == 1
    assert rest.inputs[-1] == first.outputs[0] == Array("kept0", (2,))


def test_no_constant_part_without_operations_on_one_input():
    """Return None where every operation has an operand that changes."""
    trace = Trace()
    inputs = (Array("a", (1,)), Array("b", (1,)))
    x, y = trace.input(0, 0), trace.input(1, 0)
    program = Program.of_trace("product", inputs, (Array("c", (1,)),), trace, [[x * y]])
    assert constant_part(program, "b") is None
