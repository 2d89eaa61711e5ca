"""Memory of kernels: large blocks of samples are not on the stack."""

from __future__ import annotations

import subprocess
import sys

import numpy as np
import pytest

import everyday
from kinetree import chain
from kinetree.targets.llvm.blocks import STACK, release, reserve
from kinetree.targets.llvm.writer import Text

SMALL_STACK = """
import threading
import numpy as np
import kinetree as kt
arm = kt.chain({count})
f = arm.function({name!r}, lowering="unrolled")
x = [np.random.default_rng(k).normal(size=(9, arm.nv)) for k in range(len(f.inputs))]
out = []
threading.stack_size({kib} * 1024)
thread = threading.Thread(target=lambda: out.append(f(*x)))
thread.start()
thread.join()
assert np.array_equal(out[0], f(*x))
print(out[0].shape)
"""


@pytest.mark.slow
@pytest.mark.parametrize(
    ("count", "name", "kib", "shape"),
    [
        (40, "inertia_matrix", 128, "(9, 40, 40)"),
        pytest.param(60, "convective_matrix", 512, "(9, 60, 60)", marks=pytest.mark.slow),
    ],
)
def test_large_outputs_run_on_a_small_stack(count, name, kib, shape):
    """Run a function with a large output in a thread with a small stack, and find the result of the main thread."""
    script = SMALL_STACK.format(count=count, name=name, kib=kib)
    done = subprocess.run([sys.executable, "-c", script], capture_output=True, text=True, timeout=600)
    assert done.returncode == 0, done.stderr
    assert done.stdout.strip() == shape


def test_small_memory_is_on_the_stack():
    """Take memory up to the bound from the stack, and more from the heap, which is released."""
    small, large = Text(), Text()
    assert not reserve(small, {"a": STACK // 2, "b": STACK // 2 - 3})
    assert "malloc" not in small.text()
    assert reserve(large, {"a": STACK // 2, "b": STACK // 2 + 1})
    release(large)
    assert "kt_malloc" in large.text()
    assert "kt_free" in large.text()


@everyday.long
def test_large_outputs_are_rolled():
    """Choose rolled code by the size of the output, even for few bodies."""
    arm = chain(56)
    assert arm.function("inertia_matrix").request.lowering == "rolled"
    assert arm.function("bias_torque").request.lowering == "unrolled"
    q = np.random.default_rng(3).normal(size=56)
    matrix = arm.inertia_matrix(q)
    assert np.array_equal(matrix, matrix.T)
