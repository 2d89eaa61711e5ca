"""Batches that are shared with threads that wait in native code: every sample once, the same bits, and all reports."""

from __future__ import annotations

import ctypes
import platform
import threading
from concurrent.futures import ThreadPoolExecutor
from types import SimpleNamespace

import numpy as np
import pytest

from divided_batches import divide_all
from kinetree import InputError, System
from kinetree.compiler.ir.program import Array
from kinetree.runtime import threads as shared
from kinetree.runtime.native import core_signature, register
from kinetree.targets.abi import TRIAL, Share
from layouts import LAYOUTS
from strategies import random_mechanism

pytestmark = pytest.mark.skipif(not shared.SUPPORTED, reason="threads of this system wait in Python")

SMALL = System(random_mechanism(["revolute", "helical"], [-1, 0], 21))
KERNEL = ctypes.CFUNCTYPE(None, *[ctypes.c_void_p] * 4)


class Recorded:
    """A function y = 2 x in Python whose calls are recorded: the first entry, the number of samples, and the thread."""

    def __init__(self, before=lambda: None) -> None:
        self.inputs, self.outputs = (Array("x", (3,)),), (Array("y", (3,)),)
        self.output, self.name, self.executor = self.outputs[0], "twice", SimpleNamespace(kernel=None)
        self.request = SimpleNamespace(dtype="float64")
        self.before, self.calls = before, []
        self.code = KERNEL(self.run)
        signature = core_signature(self.inputs, self.outputs)
        address = ctypes.cast(self.code, ctypes.c_void_p).value or 0
        self.gufunc = register(address, ctypes.c_int64(), "twice", "", signature, (1, 1), "float64", self.code)

    def run(self, pointers, counts, steps, _) -> None:
        x, y = (ctypes.c_void_p * 2).from_address(pointers)
        n, (dx, dy, *cores) = ctypes.c_int64.from_address(counts).value, (ctypes.c_int64 * 4).from_address(steps)
        for k in range(n):
            for j in range(3):
                number = ctypes.c_double.from_address(x + k * dx + j * cores[0]).value
                ctypes.c_double.from_address(y + k * dy + j * cores[1]).value = 2 * number
        self.calls.append((ctypes.c_double.from_address(x).value, n, threading.current_thread().name))
        self.before()

    def on(self, threads: int, pace: float = 0.0) -> shared.Shared:
        """Return the function on threads, with a known time per sample [s]."""
        shared.THREADS.start(threads)
        made = shared.Shared(self, threads)
        ctypes.c_double.from_buffer(made.words, 8 * Share.PACE).value = pace * 1e9
        return made


def numbered(*batch: int) -> np.ndarray:
    """Return samples whose first entry is their number."""
    count = int(np.prod(batch))
    return (np.arange(count)[:, None] + np.array([0.0, 0.1, -0.7])).reshape(*batch, 3)


def test_threads_meet_in_one_batch():
    """Run portions of one batch in two threads at the same time, and every sample once."""
    both = threading.Barrier(2)
    f = Recorded(lambda: both.wait(timeout=20) if len(f.calls) < 3 else None)
    x = numbered(400)
    assert np.array_equal(f.on(2, pace=1e-6)(x), 2 * x)
    names = [name for *_, name in f.calls]
    assert len(set(names[:2])) == 2 and threading.current_thread().name in names
    assert sum(n for _, n, _ in f.calls) == 400 and len({first for first, *_ in f.calls}) == len(f.calls)


def test_little_work_stays_in_this_thread():
    """Call the kernel once if the batch takes less than twice the least work, or has no more than a vector."""
    f = Recorded()
    fast = f.on(4, pace=1.9 * shared.LEAST_SHARE / 200)
    assert np.array_equal(fast(numbered(200)), 2 * numbered(200))
    assert f.calls == [(0.0, 200, threading.current_thread().name)]
    f.calls.clear()
    f.on(4, pace=1.0)(numbered(8))
    assert [n for _, n, _ in f.calls] == [8]


def test_the_first_batch_is_measured():
    """Run a trial in this thread, from which the time per sample is known."""
    f = Recorded()
    call = f.on(2)
    call(numbered(500))
    assert f.calls[0] == (0.0, TRIAL, threading.current_thread().name)
    assert sum(n for _, n, _ in f.calls) == 500
    assert ctypes.c_double.from_buffer(call.words, 8 * Share.PACE).value > 0


def test_a_late_thread_is_not_awaited(monkeypatch):
    """Withdraw an offer that no thread has taken, and finish the batch alone."""
    absent = shared.Threads()
    ctypes.c_int64.from_address(absent.count).value = 3  # posts without threads
    monkeypatch.setattr(shared, "THREADS", absent)
    f = Recorded()
    monkeypatch.setattr(absent, "size", 4)
    for _ in range(2):  # posts are free again afterwards
        f.calls.clear()
        assert np.array_equal(f.on(4, pace=1e-6)(numbered(300)), 2 * numbered(300))
        assert {name for *_, name in f.calls} == {threading.current_thread().name} and len(f.calls) > 1


@pytest.mark.parametrize("batch", [(7, 31), (3, 5, 12), (1, 400), (400, 1)])
def test_batches_with_several_axes(batch):
    """Share batches along all leading axes, in new and given arrays, with any strides."""
    f = Recorded()
    call, x = f.on(3, pace=1e-6), numbered(*batch)
    assert np.array_equal(call(x), 2 * x) and np.array_equal(call(x[::-1]), 2 * x[::-1])
    out = np.empty((*batch[::-1], 3)).swapaxes(0, len(batch) - 1)
    assert call(x, out=out) is out and np.array_equal(out, 2 * x)
    assert sum(n for _, n, _ in f.calls) == 3 * x.size // 3 and max(n for _, n, _ in f.calls) <= 32


@pytest.mark.parametrize("layout", LAYOUTS)
@pytest.mark.parametrize("dtype", ["float64", "float32"])
def test_bits_in_any_layout(layout, dtype, monkeypatch):
    """Find the bits of one thread for any layout of the arguments, broadcast and listed ones, and results in place."""
    f = SMALL.function("bias_torque", dtype=dtype)
    divide_all(monkeypatch, f)
    rng = np.random.default_rng(5)
    x = tuple(layout(rng.normal(size=(333, 2)).astype(dtype)) for _ in range(2))
    wanted = f(*x)
    for threads in (2, 5):
        assert np.array_equal(f.unchecked(x, threads=threads), wanted)
    q, qd = rng.normal(size=(60, 1, 2)).astype(dtype), rng.normal(size=(7, 2)).astype(dtype)
    listed = (q.tolist(), qd) if dtype == "float64" else (q, qd[:, ::-1])
    for given in ((q, qd), (qd, q), listed, (q[0], qd), (q[:, 0], qd[0])):
        assert np.array_equal(f.unchecked(given, threads=3), f.unchecked(given))
    room = rng.normal(size=(50, 4, 2)).astype(dtype)
    wanted = f(room[:-1], room[1:])
    assert np.array_equal(f.unchecked((room[:-1], room[1:]), out=room[1:], threads=2), wanted)


@pytest.mark.parametrize("lowering", ["unrolled", "rolled"])
def test_loops_over_bodies(lowering, monkeypatch):
    """Share batches of code with loops over the bodies, which has a workspace per thread."""
    f = SMALL.function("inverse_dynamics", lowering=lowering)
    divide_all(monkeypatch, f)
    x = tuple(np.random.default_rng(10).normal(size=(300, 2)) for _ in range(3))
    for _ in range(3):
        assert np.array_equal(f.unchecked(x, threads=3), f(*x))
    assert list(f.shares) == [3]


def test_unsuitable_results(monkeypatch):
    """Refuse results of another shape, kind or number like one thread, with several leading axes too."""
    f = SMALL.function("gravity_torque")
    divide_all(monkeypatch, f)
    q = np.random.default_rng(6).normal(size=(20, 30, 2))
    f.unchecked((q,), threads=2)
    locked = np.empty((20, 30, 2))
    locked.flags.writeable = False
    for bad in (np.empty((20, 31, 2)), np.empty((20, 30, 3)), locked, [1.0], (np.empty((20, 30, 2)),) * 2):
        with pytest.raises(InputError) as alone:
            f.unchecked((q,), out=bad)
        with pytest.raises(InputError) as together:
            f.unchecked((q,), out=bad, threads=2)
        assert str(together.value) == str(alone.value)
    wide = np.empty((5, 20, 30, 2))
    assert np.array_equal(f.unchecked((q,), out=wide, threads=2)[3], f(q))


@pytest.mark.parametrize("batch", [(900,), (30, 30)])
@pytest.mark.parametrize("bad", [0, 899])
def test_numbers_that_are_not_finite(batch, bad, monkeypatch):
    """Name the entry that is not finite, whichever thread computes with it."""
    f = SMALL.function("gravity_torque")
    divide_all(monkeypatch, f)
    q = np.random.default_rng(8).normal(size=(900, 2))
    q[bad, 1] = np.inf
    q = q.reshape(*batch, 2)
    at = ", ".join(map(str, np.argwhere(np.isinf(q))[0]))
    for _ in range(3):
        with pytest.raises(InputError, match=rf"gravity_torque: q\[{at}\] is inf"):
            f.checked((q,), threads=2)


@pytest.mark.parametrize("batch", [(400,), (20, 20)])
def test_floating_point_errors_of_other_threads(batch):
    """Report an overflow in another thread like one in this thread, once."""
    both, library = threading.Barrier(2), ctypes.CDLL(None)
    code = {"x86_64": 8, "aarch64": 4}[platform.machine()]  # FE_OVERFLOW

    def overflow() -> None:
        if len(f.calls) < 3:
            both.wait(timeout=20)
        again = sum(n for _, n, _ in f.calls) > 400  # to be reported, in any thread
        if again or threading.current_thread() is not threading.main_thread():
            library.feraiseexcept(code)

    f = Recorded(overflow)
    call, x = f.on(2, pace=1e-6), numbered(*batch)
    with np.errstate(over="raise"), pytest.raises(FloatingPointError, match="overflow encountered in twice"):
        call(x)
    f.calls.clear()
    f.before = lambda: both.wait(timeout=20) if len(f.calls) < 3 else None
    with np.errstate(over="raise"):
        assert np.array_equal(call(x), 2 * x)


def test_other_threads_round_alike():
    """Run portions with the rounding mode of the caller."""
    both, library, modes = threading.Barrier(2), ctypes.CDLL(None), []

    def note() -> None:
        modes.append(library.fegetround())
        if len(f.calls) < 3:
            both.wait(timeout=20)

    f = Recorded(note)
    call, upward = f.on(2, pace=1e-6), {"x86_64": 0x800, "aarch64": 0x400000}[platform.machine()]
    usual = library.fegetround()
    try:
        library.fesetround(upward)
        call(numbered(400))  # NumPy keeps Python's lock for less than 500 numbers, for which the other thread waits
    finally:
        library.fesetround(usual)
    assert set(modes) == {upward} and len({name for *_, name in f.calls}) == 2


def test_many_callers_share_the_threads(monkeypatch):
    """Call from several threads of Python at once, each of which finds its own results."""
    f = SMALL.function("bias_torque")
    divide_all(monkeypatch, f)
    rng = np.random.default_rng(9)
    x = [tuple(rng.normal(size=(200 + 37 * k, 2)) for _ in range(2)) for k in range(6)]
    wanted = [f(*one) for one in x]

    def call(k: int) -> bool:
        return np.array_equal(f.unchecked(x[k % 6], threads=2 + k % 3), wanted[k % 6])

    with ThreadPoolExecutor(6) as pool:
        assert all(pool.map(call, range(600)))
