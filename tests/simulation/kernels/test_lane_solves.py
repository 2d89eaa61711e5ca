"""Linear equations of lanes: against NumPy, with rows that must be exchanged in some lanes only."""

from __future__ import annotations

import numpy as np

from kinetree.compiler.lanes.expressions import Builder
from kinetree.compiler.lanes.interpret import interpret
from kinetree.runtime.native import native_kernel
from kinetree.simulation.methods.lane_states import LaneSolver
from tolerance import assert_close

SIZE = 5


def solving_kernel():
    """Return a kernel that solves one system per lane."""
    k = Builder("solve", {})
    matrix, right = k.array("matrix", SIZE * SIZE), k.array("right", SIZE)
    found = k.array("found", SIZE, output=True)
    solver, block = LaneSolver(k, SIZE), k.block("block", SIZE + 2)
    with k.each_lane():
        with k.loop(SIZE * SIZE) as i:
            solver.matrix[i] = matrix[i]
        with k.loop(SIZE) as i:
            block[i + 2] = right[i]
    solver.factor()
    solver.solve(block, k.cast(2, k.extent().kind))
    with k.each_lane(), k.loop(SIZE) as i:
        found[i] = block[i + 2]
    return k.kernel()


def systems():
    """Return random systems; in every third one the diagonal is zero, so that rows must be exchanged."""
    rng = np.random.default_rng(7)
    matrices, right = rng.normal(size=(19, SIZE, SIZE)), rng.normal(size=(19, SIZE))
    matrices[::3, range(SIZE), range(SIZE)] = 0.0
    return matrices, right


def test_solutions_equal_those_of_numpy():
    """Solve many systems natively and statement by statement."""
    matrices, right = systems()
    kernel, flat = solving_kernel(), matrices.reshape(len(matrices), -1)
    expected = np.linalg.solve(matrices, right[..., None])[..., 0]
    for found in (native_kernel(kernel)(flat, right), interpret(kernel, flat, right)[0]):
        assert_close(found, expected, 1e-11 * np.abs(expected).max(), "solutions")


def test_exchanges_of_other_lanes_have_no_effect():
    """Solve each system alone, and find the same bits as in a batch."""
    matrices, right = systems()
    solve, flat = native_kernel(solving_kernel()), matrices.reshape(len(matrices), -1)
    together = solve(flat, right)
    alone = np.array([solve(a, b) for a, b in zip(flat, right, strict=True)])
    assert np.array_equal(together, alone)


def test_a_singular_system_is_not_finite():
    """Solve with a matrix of zeros."""
    with np.errstate(all="ignore"):
        found = native_kernel(solving_kernel())(np.zeros(SIZE * SIZE), np.ones(SIZE))
    assert not np.isfinite(found).any()
