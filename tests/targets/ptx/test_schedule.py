"""The order of operations on GPUs: the same arithmetic with fewer values in use."""

from __future__ import annotations

import hypothesis
import numpy as np

import everyday
import kinetree as kt
from kinetree.compiler.ir.program import Program
from kinetree.targets.ptx.schedule import most_in_use, schedule
from native_program import traced
from strategies import State, examples, moving_mechanisms, random_mechanism


def as_sets(program: Program) -> list:
    """Return the results as expressions of inputs and constants, independent of the order of operations."""
    return program.replay(
        [[f"{a.name}{k}" for k in range(a.size)] for a in program.inputs], lambda op, *x: hash((op, *x)), hash
    )


@examples(6)
@hypothesis.given(mechanism=moving_mechanisms(most=5))
def test_the_arithmetic_stays_the_same(mechanism):
    """Find the same operations on the same operands, hence the same bits."""
    system = kt.System(mechanism)
    s = State(mechanism, 3)
    for name in ("inverse_dynamics", "forward_dynamics"):
        program = system.function(name).program
        other = schedule(program)
        assert len(other.ops) == len(program.ops)
        assert most_in_use(other) <= most_in_use(program)
        assert as_sets(other) == as_sets(program)
        before, after = (p.interpret(s.q, s.qd, s.tau)[0] for p in (program, other))
        assert np.array_equal(before, after)


@everyday.long
def test_limbs_are_computed_one_after_the_other():
    """Order the inverse dynamics of a mechanism with four long limbs by limbs."""
    parents = [parent for limb in range(4) for parent in (-1, *range(6 * limb, 6 * limb + 5))]
    program = kt.System(random_mechanism(("revolute",) * 24, parents, 2)).function("inverse_dynamics").program
    before, after = most_in_use(program), most_in_use(schedule(program))
    assert after < 0.5 * before, (before, after)


def test_results_that_are_inputs_or_constants_are_kept():
    """Order a program whose results are an input, a constant and a repeated value."""
    program = traced(lambda x, y: [x, 3.0, x * y, x * y, y], 2)
    assert schedule(program).interpret(np.array([2.0, 5.0]))[0].tolist() == [2.0, 3.0, 10.0, 10.0, 5.0]
