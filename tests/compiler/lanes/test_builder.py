"""Kernels of the lane language: errors of the builder, and the interpreter against native code."""

from __future__ import annotations

import numpy as np
import pytest

from kinetree.compiler.lanes.expressions import Builder
from kinetree.compiler.lanes.form import OPERATIONS, Kernel, Kind, Let
from kinetree.compiler.lanes.interpret import interpret
from kinetree.runtime.native import native_kernel
from native_program import sorted_numbers, sorting, traced


def exercise() -> Kernel:
    """Return a kernel with every operation and statement: each lane halves x until it is small."""
    k = Builder("exercise", {"f": traced(lambda x, y: [x * y - 0.3, x + 2.5 * y], 2)})
    x, times, scale = k.array("x", 2), k.array("times", "t", shared=True), k.array("scale", shared=True)
    out, rounds = k.array("out", "t", 3, output=True), k.array("rounds", 4, output=True)
    state, result, big = k.block("state", 2), k.block("result", 3), k.block("big", 700)
    index, turns = k.block("index", kind=Kind.INDEX), k.block("turns", kind=Kind.COUNT)
    small, own_turns = k.block("small", kind=Kind.MASK), k.block("own_turns")
    exact = k.block("exact", kind=Kind.DOUBLE)
    with k.each_lane(), k.loop(2) as j:
        state[j] = x[j]
    index.value, turns.value, small.value, own_turns.value = 0, 0, False, 0.0
    s = scale[()]
    with k.repeat() as turn:
        before = small.value
        smaller = before.where(state[0], state[0] / 2.0 - 0.01 * s)
        state[0] = smaller
        small.value = before | (abs(smaller) < s) | ~(smaller <= 1e3)
        turns.value = turns.value + 1
        own_turns.value = before.where(own_turns.value, own_turns.value + 1.0)
        turn.again = k.any(~small.value) & (turns.value < 40)
    with k.loop(2) as i:
        state[1] = state[1] * k.choose(i, (0.25, 4.0))
        with k.when(i.equals(1)):
            k.call("f", state, result, i)
    exact.value = (k.constant(1.0, Kind.DOUBLE) * 4294967087.0 + 0.5) * 1e-10
    state[1] = state[1] + k.round(exact.value)
    result[0] = k.unbits(k.bits(abs(state[1]) + 1.0) * 1.0).sqrt()
    with k.loop(700) as j:
        big[j] = state[0] * k.number(j)
    with k.when(k.extent() > 1), k.each_lane(), k.whilst(lambda: index.value < k.extent()):
        at = index.value
        with k.loop(3) as j:
            out[at, j] = (
                result[j] * times[at] * k.choose(j, (0.7, -1.3, 2.1)) + k.number(k.whole(times[0] * 3.0)) - big[699]
            )
        index.value = at + 1
    last = (k.extent() >= 2).where(k.extent(), 0)
    lane_value = state[1]
    with k.each_lane():
        rounds[0], rounds[1] = k.number(last), lane_value
        with k.when(lane_value > 0.0):
            rounds[1] = 2.0 * lane_value
        odd = (last * 2 - 1).equals(5)
        rounds[2] = odd.where(own_turns.value, 0.0)
        rounds[3] = (index.value >= 2).where(s, 0.0)
    return k.kernel()


@pytest.mark.parametrize("dtype", ["float64", "float32"])
def test_lanes_have_indices_of_their_own(dtype):
    """Sort the numbers of each lane natively and interpreted, and compare with NumPy."""
    x = sorted_numbers(21).astype(dtype)
    (found,) = interpret(sorting(), x, dtype=dtype)
    expected = np.stack([np.concatenate([row[row > 0], row[row <= 0]]) for row in x]) * np.asarray(10.0, dtype)
    np.testing.assert_array_equal(found[:, :5], expected)
    np.testing.assert_array_equal(native_kernel(sorting(), dtype)(x), found)


def operations_of(body) -> set[str]:
    """Return the operations in nested statements."""
    out = set()
    for statement in body:
        out |= {statement.op} if isinstance(statement, Let) else set()
        for name in ("body", "test"):
            out |= operations_of(getattr(statement, name, ()))
    return out


@pytest.mark.parametrize(("dtype", "count"), [("float64", 11), ("float32", 21), ("float64", 1)])
def test_native_code_equals_the_interpreter(dtype, count):
    """Run a kernel with every operation interpreted and natively, with idle lanes, and find the same bits."""
    kernel = exercise()
    assert operations_of(kernel.body) == set(OPERATIONS)
    x = (np.random.default_rng(8).normal(size=(count, 2)) * [30.0, 1.0]).astype(dtype)
    times = np.array([0.7, 1.1, 1.9], dtype)
    arguments = (x, times, np.asarray(0.31, dtype))
    native = native_kernel(kernel, dtype)(*arguments)
    plain = interpret(kernel, *arguments, dtype=dtype)
    for a, b in zip(native, plain, strict=True):
        if dtype == "float64":
            np.testing.assert_array_equal(a, b)
        else:  # Programs are interpreted in float64
            np.testing.assert_allclose(a, b, rtol=1e-5)


def test_kernels_have_a_hash_and_a_signature():
    """Read the hash, arity and signature of a kernel, and distinguish two kernels."""
    kernel = exercise()
    assert kernel.signature == "(2),(t),()->(t,3),(4)"
    assert kernel.dimensions == (2, "t", 3, 4)
    assert kernel.arity == (3, 2)
    assert kernel.hash == exercise().hash
    other = Builder("exercise", {})
    assert other.kernel().hash != kernel.hash


def test_what_makes_no_sense_is_refused():
    """Refuse mixed kinds, own samples outside each_lane, branches on a mask, and conversion to a bool."""
    k = Builder("wrong", {})
    x, y, m = k.array("x", 2), k.block("y"), k.block("m", kind=Kind.MASK)
    with pytest.raises(TypeError, match="x can be read and written only inside each_lane"):
        x[0]
    with pytest.raises(TypeError, match="x has 1 axes, but 2 indices are given"):
        x[0, 1]
    with pytest.raises(TypeError, match="the condition is a mask; outside each_lane it must be a flag, such as any"):
        with k.when(m.value):
            pass
    with pytest.raises(TypeError, match="the value is a lane; expected a mask"):
        m.value = y.value
    with pytest.raises(TypeError, match="the value is a lane; expected a count"):
        y[y.value]
    with pytest.raises(TypeError, match="neither true nor false in Python; use `where`, `when` or `whilst`"):
        bool(m.value)


def test_arrays_have_types_of_their_own():
    """Read whole numbers and numbers of float64 in a kernel of float32, and write truth and rounded numbers."""
    k = Builder("typed", {})
    whole, exact = k.array("whole", type="int64"), k.array("exact", type="float64")
    odd, sum_, rest = k.array("odd", output=True, type="bool"), k.array("sum", output=True), k.array(
        "rest", output=True, type="float64"
    )  # fmt: skip
    with k.each_lane():
        odd[()] = (whole[()] > 2.0).where(k.constant(1.0, Kind.LANE), 0.0)
        sum_[()] = whole[()] + k.round(exact[()] * 4294967087.0)
        rest[()] = exact[()] * 4294967087.0 - 2.0**32
    x = np.array([1.0 - 2.0**-40, 1.0])
    found = interpret(k.kernel(), np.array([2, 3]), x, dtype="float32")
    assert [f.dtype.name for f in found] == ["bool", "float32", "float64"] and found[0].tolist() == [False, True]
    np.testing.assert_array_equal(found[1], np.float32([2, 3]) + np.float32(x * 4294967087.0))
    np.testing.assert_array_equal(found[2], x * 4294967087.0 - 2.0**32)


def test_blocks_have_names_of_their_own():
    """Refuse a second block of the same name, which would share its memory."""
    k = Builder("twice", {})
    k.block("kept", 3)
    with pytest.raises(AssertionError, match="two blocks of the kernel twice are named kept"):
        k.block("kept", 4)
