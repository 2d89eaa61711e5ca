"""Registration with NumPy: a gufunc that owns its code."""

from __future__ import annotations

import gc
import os
import platform
import subprocess
import sys
import weakref

import numpy as np
import pytest

import everyday
from kinetree import System
from kinetree.algebra import scalars
from kinetree.runtime import native as module
from native_program import compiled, gufunc, registered, traced
from strategies import State, random_mechanism


def test_a_gufunc_outlives_its_system():
    """Delete the system, keep the gufunc, and call it."""
    system = System(random_mechanism(["revolute", "revolute"], [-1, 0], 31))
    s = State(system.mechanism, 1, 9)
    expected = system.inertia_matrix(s.q)
    kept = system.function("inertia_matrix").gufunc
    gone = weakref.ref(system.function("inertia_matrix"))
    del system
    gc.collect()
    assert gone() is None
    junk = [np.random.default_rng(k).normal(size=10_000) for k in range(50)]
    assert np.array_equal(kept(s.q), expected)
    assert len(junk) == 50


def test_code_lives_as_long_as_its_gufunc():
    """Delete everything but the gufunc and keep its code; delete the gufunc too and free the code."""
    program = traced(lambda x: [x * 3.0])
    loaded = compiled(program)
    code = weakref.ref(loaded)
    f = registered(loaded, program)
    del loaded
    gc.collect()
    assert code() is not None
    assert f(np.array([2.0]))[0] == 6.0
    del f
    gc.collect()
    assert code() is None


CALLS = """
import resource
import numpy as np
from kinetree import load

def faults():
    return resource.getrusage(resource.RUSAGE_SELF).ru_minflt

arm = load("stanford")
q, qd, qdd = np.random.default_rng(5).normal(size=(3, 4096, 6))
states = q, qd, qdd
first = arm.inverse_dynamics_derivatives(*states)
copies = [x.copy() for x in first]
for _ in range(3):
    second = arm.inverse_dynamics_derivatives(*states)
before = faults()
for _ in range(10):
    second = arm.inverse_dynamics_derivatives(*states[::-1])
each = (faults() - before) / 10
arrays = [*first, *second]
assert all(x.flags.owndata for x in arrays)
assert not any(np.shares_memory(x, y) for k, x in enumerate(arrays) for y in arrays[:k])
assert all(np.array_equal(x, y) for x, y in zip(first, copies))
print(each)
"""


@pytest.mark.skipif(sys.platform != "linux" or platform.libc_ver()[0] != "glibc", reason="thresholds are glibc's")
@pytest.mark.parametrize(("trim", "least", "most"), [(None, 0, 20), ("131072", 500, 5000)])
def test_results_of_the_next_call_take_the_memory_of_freed_ones(trim, least, most):
    """Count the pages of new results of 3.5 MB, 864, which the system clears only if the user wants small heaps."""
    environment = {k: x for k, x in os.environ.items() if not k.startswith(("MALLOC_", "GLIBC_TUNABLES"))}
    if trim is not None:
        environment["MALLOC_TRIM_THRESHOLD_"] = trim
    done = subprocess.run([sys.executable, "-c", CALLS], env=environment, capture_output=True, text=True, check=True)
    assert least <= float(done.stdout) <= most


@pytest.mark.slow
def test_many_gufuncs_come_and_go():
    """Make and delete many gufuncs, each with its own numbers, and find none in memory."""
    before = len(module._forever)
    alive = []
    for k in range(60):
        alive.append(gufunc(traced(lambda x, k=k: [x * (k + 2.0)])))
        assert alive[-1](np.array([[1.0]]))[0, 0] == k + 2.0
        if len(alive) > 5:
            del alive[0]
    gc.collect()
    assert len(module._forever) == before


def test_a_gufunc_is_numpys_own():
    """Find a ufunc with a name, a signature and NumPy's keywords."""
    f = gufunc(traced(lambda x, y: [x + y, scalars.sin(x)], 2))
    assert isinstance(f, np.ufunc)
    assert (f.nin, f.nout, f.signature, f.__name__) == (1, 1, "(2)->(2)", "function")
    x = np.random.default_rng(1).normal(size=(2, 5))
    assert np.array_equal(f(x, axes=[0, 0]), f(x.T).T)
    assert f(np.ones((3, 2), dtype=np.float32)).dtype == np.float64
    assert f(np.ones((3, 2), dtype=int)).shape == (3, 2)


def test_results_may_overwrite_inputs():
    """Write the result over an input and find the numbers of a new array."""
    f = gufunc(traced(lambda x, y: [x + y, x - y], 2))
    x = np.random.default_rng(2).normal(size=(100, 2))
    expected = f(x)
    shifted = np.concatenate([x, x[:1]])
    f(shifted[:-1], out=shifted[1:])
    assert np.array_equal(shifted[1:], expected)
    f(x, out=x)
    assert np.array_equal(x, expected)


@everyday.long
def test_a_long_row_is_read_and_written_whole():
    """Copy rows of 1 to 40 entries, in both precisions, and access nothing after them."""
    for n in (1, 2, 7, 8, 9, 15, 16, 17, 31, 40):
        program = traced(lambda *x: [a * 2.0 for a in reversed(x)], n)
        for dtype in ("float64", "float32"):
            f = gufunc(program, dtype)
            x = np.arange(19 * n, dtype=dtype).reshape(19, n)
            room = np.full((21, n), -1.0, dtype=dtype)
            f(x, out=room[1:20])
            assert np.array_equal(room[1:20], 2 * x[:, ::-1]), (n, dtype)
            assert (room[0] == -1).all()
            assert (room[20] == -1).all()


def test_process_ends_cleanly():
    """End a process that holds compiled functions without a crash."""
    code = (
        "import sys; sys.path[:0] = {path!r}; import strategies, kinetree\n"
        "s = kinetree.System(strategies.random_mechanism(['revolute'], [-1], 1))\n"
        "f = s.function('gravity_torque').gufunc; print(f([0.1]).shape)"
    )
    done = subprocess.run(
        [sys.executable, "-c", code.format(path=sys.path)], capture_output=True, text=True, check=False
    )
    assert (done.returncode, done.stdout, done.stderr) == (0, "(1,)\n", "")
