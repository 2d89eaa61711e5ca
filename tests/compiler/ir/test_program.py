"""Program: text and hash, operation counts, and the interpreter."""

from __future__ import annotations

import json

import numpy as np
import pytest

from interpreted import program
from kinetree.algebra import scalars
from kinetree.compiler.ir.program import Array, Program
from kinetree.compiler.ir.trace import Trace
from kinetree.dynamics import ALGORITHMS
from native_program import traced
from strategies import State, one_of_each


@pytest.mark.parametrize("name", ["inverse_dynamics", "difference", "pose", "kinetic_energy"])
def test_text_reads_back_with_every_bit(name):
    """Write a Program as text, read it, and find an equal one of the same hash."""
    p = program(one_of_each(), name, "tool" if ALGORITHMS[name].frame else None)
    again = Program.loads(p.dumps())
    assert again == p
    assert again.hash == p.hash
    assert again.dumps() == p.dumps()


def test_constants_are_written_to_the_last_bit():
    """Keep constants that decimal digits would round."""
    numbers = [0.1, 1 / 3, 5e-324, 1.7976931348623157e308, -(2.0**-1074)]
    p = traced(lambda x: [x + c for c in numbers])
    out = Program.loads(p.dumps()).interpret([0.0])[0]
    assert out.tolist() == numbers


def test_hash_follows_the_arithmetic_and_the_names():
    """Change a constant, a name or a shape, and find a different hash."""
    p = traced(lambda x: [x + 0.1])
    others = [
        traced(lambda x: [x + 0.10000000000000002]),
        Program("other", p.inputs, p.outputs, p.ops, p.results),
        Program(p.name, (Array("z", (1,)),), p.outputs, p.ops, p.results),
        Program(p.name, (Array("x", (1, 1)),), p.outputs, p.ops, p.results),
    ]
    assert len({p.hash, *(o.hash for o in others)}) == 5


def test_other_versions_are_refused():
    """Refuse the text of a later version."""
    data = json.loads(traced(lambda x: [x]).dumps())
    data["kinetree"] = 99
    with pytest.raises(ValueError, match="the text is a Program of version 99; expected version 2"):
        Program.loads(json.dumps(data))


def test_other_inputs_for_the_same_arithmetic():
    """Gather two inputs in one array, after entries that are not read, and find the same values."""
    trace = Trace()
    a, b = trace.input(0, 0), trace.input(1, 1)
    p = Program.of_trace("two", (Array("a", (1,)), Array("b", (2,))), (Array("y", (1,)),), trace, [[a - 2.5 * b]])
    joined = p.with_inputs((Array("both", (5,)),), {"a": ("both", 4), "b": ("both", 1)})
    expected = p.interpret([0.7], [9.0, -1.3])[0]
    assert joined.interpret([9.0, 9.0, -1.3, 9.0, 0.7])[0] == expected


def test_cost_counts_what_runs():
    """Count multiplications, additions, divisions, roots, sines and the rest, but no signs."""
    p = traced(
        lambda x, y: [x * y + x - 2.0 / y, -scalars.sqrt(x), scalars.sin(x) * scalars.cos(y), scalars.atan2(x, y)], 2
    )
    assert p.cost() == {"multiplications": 2, "additions": 2, "divisions": 1, "roots": 1, "sines": 2, "others": 1}


def test_interpret_broadcasts():
    """Run with leading shapes that broadcast, and without any."""
    mechanism = one_of_each()
    s = State(mechanism, shape=(2, 1, 4))
    p = program(mechanism, "inverse_dynamics")
    out = p.interpret(s.q, s.qd[0, 0, 0], s.qdd[:, :, :1])[0]
    assert out.shape == (2, 1, 4, mechanism.nv)
    alone = p.interpret(s.q[1, 0, 2], s.qd[0, 0, 0], s.qdd[1, 0, 0])[0]
    assert np.array_equal(out[1, 0, 2], alone)
    with pytest.raises(ValueError, match="zip"):
        p.interpret(s.q)


def test_sizes_of_arrays():
    """Count the entries of scalars, vectors and empty arrays."""
    assert [Array("a", shape).size for shape in ((), (3,), (2, 3), (0, 6))] == [1, 3, 6, 0]
