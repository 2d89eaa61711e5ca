"""Kernels whose lanes are gathered from several blocks, against the interpreter, which runs all lanes together."""

from __future__ import annotations

import numpy as np
import pytest

from kinetree.compiler.lanes.expressions import Builder
from kinetree.compiler.lanes.form import Kernel, Kind
from kinetree.compiler.lanes.interpret import interpret
from kinetree.runtime.native import native_kernel
from kinetree.targets.llvm import phases
from native_program import traced
from same_bits import assert_same_bits
from tolerance import assert_close


def roots() -> Kernel:
    """Return a kernel that searches roots of some lanes in turns, with further steps for large ones among them."""
    k = Builder("roots", {"f": traced(lambda x, y: [x * y - 0.3, x + 2.5 * y], 2)})
    x, turns, out = k.array("x", 2), k.array("turns", shared=True), k.array("out", 4, output=True)
    state, made, steps = k.block("state", 3), k.block("made", 2), k.block("steps")
    some, large, busy = (k.block(name, kind=Kind.MASK) for name in ("some", "large", "busy"))
    zero, one = k.constant(0.0, Kind.LANE), k.constant(1.0, Kind.LANE)
    with k.each_lane():
        state[0], state[1] = x[0], x[1]
    state[2], steps.value = one, zero
    twice, count = state[0] * 2.0, k.whole(turns[()])
    with k.loop(count) as n:
        some.value = state[0] > k.number(n)
        early = state[1] + 0.1
        with k.gathered(some, [(state, 0, 2), (steps, 0, 1)], [(state, 2, 1), (steps, 0, 1)]):
            state[2], busy.value = some.value.where(one, state[2]), some.value
            with k.whilst(lambda: k.any(busy.value)):
                better = (state[2] + state[0] / state[2]) * 0.5
                far = abs(better - state[2]) > abs(better) * 1e-3
                state[2] = busy.value.where(better, state[2])
                steps.value = steps.value + busy.value.where(one, zero)
                busy.value = busy.value & far
            large.value = some.value & (state[2] > 1.5)
            with k.gathered(large, [(state, 1, 2)], [(state, 2, 1)]):
                k.call("f", state, made)
                state[2] = large.value.where(state[2] + made[0] + made[1], state[2])
        state[1] = some.value.where(state[2] * 0.25 + early, state[1])
    with k.each_lane():
        for i, value in enumerate((state[1], state[2], steps.value, twice)):
            out[i] = value
    return k.kernel()


@pytest.mark.parametrize("dtype", ["float64", "float32"])
@pytest.mark.parametrize("high", [0.3, 2.0, 40.0])
def test_gathered_lanes_compute_what_all_lanes_do(dtype, high):
    """Gather few, half, and almost all lanes of batches of many sizes, and find the numbers of lanes in place."""
    rng, kernel = np.random.default_rng(3), roots()
    assert phases.divide(kernel.body, phases.common_values(kernel.body, {}))
    run = native_kernel(kernel, dtype)
    for n in (1, 7, 8, 9, 63, 64, 65, 130, 391):
        x = np.stack([rng.uniform(-1.5, high, n), rng.uniform(-1.0, 1.0, n)], axis=1).astype(dtype)
        turns = np.asarray(3.0, dtype)
        found = run(x, turns)
        assert_same_bits(found, np.concatenate([run(row[None], turns) for row in x]))
        expected = interpret(kernel, x, turns, dtype=dtype)[0]
        scale = np.abs(expected) + 1.0  # Programs may fuse products with sums
        assert_close(found / scale, expected / scale, 20 * np.finfo(dtype).eps, "numbers relative to the interpreter's")


def test_gathered_lanes_of_no_block_leave_all_entries():
    """Gather no lane at all, and find the numbers of the start."""
    x = -np.random.default_rng(4).uniform(0.1, 1.0, (100, 2))
    out = native_kernel(roots())(x, 3.0)
    assert_same_bits(out, np.stack([x[:, 1], np.ones(100), np.zeros(100), 2.0 * x[:, 0]], axis=1))
