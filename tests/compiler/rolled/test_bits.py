"""Rolled code: the same bits for any layout of the samples, and detection of numbers that are not finite."""

from __future__ import annotations

import ctypes
from concurrent.futures import ThreadPoolExecutor

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

import everyday
import kinetree as kt
from interpreted import relative
from kinetree import InputError, System
from kinetree.runtime.rolled import ColumnFunction, RolledKernel
from layouts import LAYOUTS
from strategies import State, examples, random_mechanism
from tolerance import assert_close

KINDS = ["revolute", "revolute", "spherical", "revolute", "helical", "revolute", "revolute"]
SMALL = System(random_mechanism(KINDS, [-1, 0, 1, 2, 0, 4, 5], 21))
NAMES = ("inverse_dynamics", "forward_dynamics", "twist_rates", "difference")


def rolled(name: str, dtype: str = "float64"):
    """Return a rolled function of the small tree."""
    return SMALL.function(name, lowering="rolled", dtype=dtype)


def arguments(f, s: State, dtype: str = "float64") -> list[np.ndarray]:
    """Return random arrays for the inputs of a function."""
    known = {"q": s.q, "q2": np.roll(s.q, 1, axis=0), "qd": s.qd, "qdd": s.qdd, "tau": s.tau}
    return [known[a.name].astype(dtype) for a in f.inputs]


@given(st.data())
@examples(30)
def test_bits_do_not_depend_on_the_split(data):
    """Cut a batch anywhere, down to single samples, and find every sample's bits unchanged."""
    dtype = data.draw(st.sampled_from(["float64", "float32"]))
    f = rolled(data.draw(st.sampled_from(NAMES)), dtype)
    given_ = arguments(f, State(SMALL.mechanism, 3, 40), dtype)
    whole = f(*given_)
    a = data.draw(st.integers(0, 39))
    b = data.draw(st.integers(a + 1, 40))
    assert np.array_equal(f(*(x[a:b] for x in given_)), whole[a:b])
    assert np.array_equal(f(*(x[a] for x in given_)), whole[a])


@pytest.mark.parametrize("dtype", ["float64", "float32"])
@pytest.mark.parametrize("name", everyday.some(NAMES))
def test_bits_do_not_depend_on_strides(name, dtype):
    """Store the samples with gaps, in reverse, by columns or unaligned, and find the same bits."""
    f = rolled(name, dtype)
    given_ = arguments(f, State(SMALL.mechanism, 4, 19), dtype)
    expected = f(*given_)
    for layout in LAYOUTS:
        assert np.array_equal(f(*map(layout, given_)), expected)
        out = layout(np.zeros_like(expected))
        assert f(*given_, out=out) is out
        assert np.array_equal(out, expected)
        assert np.array_equal(f(*(layout(x)[7] for x in given_)), expected[7])


def test_single_precision():
    """Run in float32 and find the numbers of float64 to about six digits."""
    f, wide = rolled("inverse_dynamics", "float32"), rolled("inverse_dynamics")
    given_ = arguments(f, State(SMALL.mechanism, shape=33), "float32")
    out = f(*given_)
    assert out.dtype == np.float32
    assert_close(relative(out, wide(*(a.astype(float) for a in given_))), 0.0, 1e-5, "float32")  # 1e-6


def test_broadcast_inputs_and_matrices():
    """Broadcast inputs of functions, and of matrices by columns, and find the bits of full arrays."""
    f, g = rolled("inverse_dynamics"), rolled("convective_matrix")
    s = State(SMALL.mechanism, 5, 11)
    pairs = f(s.q[:, None], s.qd[None, :], s.qdd[0])
    assert pairs.shape == (11, 11, SMALL.nv)
    assert np.array_equal(pairs[3, 7], f(s.q[3], s.qd[7], s.qdd[0]))
    many = g(s.q[:2, None], s.qd[None, :3])
    assert many.shape == (2, 3, SMALL.nv, SMALL.nv)
    room = np.empty((SMALL.nv, SMALL.nv))
    assert g(s.q[1], s.qd[2], out=room) is room
    assert np.array_equal(many[1, 2], room)
    assert g(s.q[:0], s.qd[:0]).shape == (0, SMALL.nv, SMALL.nv)


def test_wrong_shapes_of_matrices():
    """Call a matrix by columns with the wrong arrays and read what is expected."""
    g = rolled("inertia_matrix")
    with pytest.raises(InputError, match=rf"inertia_matrix: q has shape \(3,\); expected \[\.\.\., {SMALL.nq}\]"):
        g.checked((np.zeros(3),))
    with pytest.raises(InputError, match=r"inertia_matrix takes 1 arrays \(q\), not 2"):
        g.checked((np.zeros(SMALL.nq), np.zeros(2)))
    with pytest.raises(InputError, match=r"inertia_matrix: out has shape \(4,\)"):
        g.checked((SMALL.neutral(),), out=np.zeros(4))


@pytest.mark.parametrize("threads", [2, 5])
def test_bits_do_not_depend_on_threads(threads):
    """Divide a batch of long chains among threads and find the same bits."""
    chain = kt.chain(80)
    x = np.random.default_rng(0).normal(size=(3, 2500, 80))
    expected = chain.inverse_dynamics(*x)
    assert np.array_equal(chain.inverse_dynamics(*x, threads=threads), expected)


@everyday.long
def test_many_threads_may_call_one_function():
    """Call one function from many threads at once, single samples and batches, and find each its own result."""
    f = rolled("forward_dynamics")
    given_ = arguments(f, State(SMALL.mechanism, 7, 40))
    expected = f(*given_)

    def call(k: int) -> bool:
        rows = slice(k, k + 11) if k % 3 else slice(k, k + 1)
        return np.array_equal(f(*(a[rows] for a in given_)), expected[rows])

    with ThreadPoolExecutor(8) as pool:
        assert all(pool.map(call, list(range(40)) * 30))


@pytest.mark.parametrize("bad", [np.nan, np.inf, 1e30])
def test_one_bad_sample_does_not_touch_its_neighbours(bad):
    """Put a number that is not finite, or huge, into one sample and find the bits of all others unchanged."""
    f = rolled("forward_dynamics")
    given_ = arguments(f, State(SMALL.mechanism, 8, 21))
    expected = f(*given_)
    for k in range(3):
        changed = [a.copy() for a in given_]
        changed[k][13, 0] = bad
        with np.errstate(all="ignore"):
            out = f(*changed)
        assert np.array_equal(np.delete(out, 13, 0), np.delete(expected, 13, 0)), f"input {k}"
        assert not np.array_equal(out[13], expected[13])


def test_input_that_is_not_finite_is_refused():
    """Put NaN into long chains, alone and in a batch, and read its position."""
    chain = kt.chain(70)
    x = np.random.default_rng(0).normal(size=(3, 9, 70))
    x[1, 4, 33] = np.nan
    with pytest.raises(InputError, match=r"forward_dynamics: qd\[4, 33\] is nan"):
        chain.forward_dynamics(*x)
    with pytest.raises(InputError, match=r"forward_dynamics: qd\[33\] is nan"):
        chain.forward_dynamics(*x[:, 4])
    assert np.isnan(chain.forward_dynamics(*x[:, 4], check=False)).any()
    assert np.isfinite(chain.forward_dynamics(*x[:, 3])).all()


def test_a_lack_of_memory_is_told_once():
    """Fail to allocate a workspace, read so, and find that the next call has its own error."""
    f = rolled("gravity_torque")
    bad = np.full(SMALL.nq, np.nan)
    assert isinstance(f.executor, RolledKernel)
    f.executor.context[f.executor._places["failed"]] = 1
    with pytest.raises(MemoryError, match=r"gravity_torque: no memory for a workspace of [\d,]+ numbers per sample"):
        f.checked((bad,))
    with pytest.raises(InputError, match=r"gravity_torque: q\[0\] is nan"):
        f.checked((bad,))


@pytest.mark.parametrize("name", [*NAMES, "momentum", "inertia_matrix"])
def test_nothing_old_in_a_workspace_is_read(name):
    """Fill the workspaces that are reused between calls with NaN, and find the same bits and no error."""
    f = rolled(name)
    given_ = arguments(f, State(SMALL.mechanism, 9, 11))
    expected, alone = f.checked(tuple(given_)), f.checked(tuple(a[4] for a in given_))
    kernel = f.executor.product if isinstance(f.executor, ColumnFunction) else f.executor
    assert isinstance(kernel, RolledKernel)
    for pool, lanes in (("pool_1", 1), ("pool", 8)):
        place = kernel.context[kernel._places[pool]]
        if place:  # matrices are computed in batches alone
            ctypes.memset(place, 0xFF, kernel.workspace * 8 * lanes)
    before = kernel.context[1]
    assert np.array_equal(f.checked(tuple(given_)), expected)
    assert np.array_equal(f.checked(tuple(a[4] for a in given_)), alone)
    assert kernel.context[1] == before


def test_large_angles():
    """Rotate joints by millions of revolutions and find sines with the accuracy of the C library."""
    chain = kt.chain(66)
    q = np.random.default_rng(2).normal(size=(9, 66)) * 1e12
    turned = np.arctan2(np.sin(q), np.cos(q))
    a, b = chain.gravity_torque(q), chain.gravity_torque(turned)
    assert_close(relative(a, b), 0.0, 1e-12, "torques")  # 3e-15
    assert np.array_equal(chain.gravity_torque(q[3]), a[3])
