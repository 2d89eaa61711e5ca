"""The interpreter of Programs: the same bits as the kernels of entries.py, both run on this processor."""

from __future__ import annotations

from functools import reduce

import hypothesis
import numpy as np
import pytest

import everyday
import gpu_on_cpu
import kinetree as kt
from assembler import assembled, needs_ptxas
from closed_mechanisms import library_state
from kinetree.algebra import scalars
from kinetree.compiler.targets.ptx import entries
from kinetree.compiler.targets.ptx.choices import fused
from kinetree.compiler.targets.ptx.interpreter import SLOTS, interpreted
from kinetree.compiler.targets.ptx.spills import BUDGET
from kinetree.compiler.targets.ptx.steps import steps
from native_program import traced
from strategies import State, examples, moving_mechanisms


def assert_same_bits(program, inputs, dtype="float64", entries=("kernel", "rows")) -> None:
    """Compare the interpreter with kernels."""
    for entry in entries:
        expected = gpu_on_cpu.run(program, entry, inputs, dtype=dtype)
        found = gpu_on_cpu.interpret(program, entry, inputs, dtype=dtype, spare=2)
        for a, b in zip(found, expected, strict=True):
            assert np.isfinite(b).all()
            np.testing.assert_array_equal(a.view(np.uint8), b.view(np.uint8), f"{entry} {dtype}")


@hypothesis.settings(examples(3))
@hypothesis.given(mechanism=moving_mechanisms())
def test_bits_of_random_mechanisms(mechanism):
    """Give the bits of both kernels for random trees."""
    s = State(mechanism, 5, 3)
    for name, dtype in (("forward_dynamics", "float64"), ("inverse_dynamics", "float32")):
        program = kt.System(mechanism).function(name).program
        assert_same_bits(program, (s.q, s.qd, s.tau), dtype)


@pytest.mark.slow
@pytest.mark.parametrize("dtype", ["float64", "float32"])
def test_bits_of_a_stewart_platform(dtype):
    """Give the bits of kernels of a large function, some of whose values wait in shared memory."""
    system, *state = library_state("stewart")
    program = system.function("forward_dynamics").program
    assert_same_bits(program, [np.stack([a, a + 0.003]) for a in state], dtype)


def test_bits_of_values_that_wait_in_shared_memory(monkeypatch):
    """Give the bits of kernels that move values out of registers, where fewer products are fused."""
    monkeypatch.setitem(BUDGET, 8, 5)
    monkeypatch.setitem(entries.CROWDED, 8, 20)
    monkeypatch.setattr(entries, "arranged", entries.arranged.__wrapped__)  # without what other tests have cached
    monkeypatch.setattr(gpu_on_cpu, "arranged", entries.arranged)
    system = kt.load("stanford")
    s = State(system.mechanism, 5, 3)
    program = system.function("forward_dynamics").program
    _, places = entries.arranged(program, "float64", "kernel")
    assert places is not None and places.moves
    assert fused(program, places) != fused(program, None)
    assert_same_bits(program, (s.q, s.qd, s.tau))


def test_large_angles():
    """Reduce all bare angles to one revolution if one of them is large, and others by themselves."""
    program = traced(lambda x, y, z: [scalars.sin(x), scalars.cos(y), scalars.sin(z) + z, scalars.sin(x * y)], 3)
    angles = np.array([[3.0e8, 5.0, -7.0e9], [2.5, 6.1, 1e12], [2.5, -6.1, 3.0]])
    assert_same_bits(program, (angles,))


def test_all_operations():
    """Interpret every operation, conditions among them."""

    def page(x, y):
        less = scalars.logical_and(x < y, scalars.logical_not(y < 0.3))
        chosen = scalars.where(scalars.logical_or(less, y < -2.0), scalars.atan2(x, y), scalars.exp(x / 7.0))
        more = scalars.asin(x / 9.0) + scalars.acos(x / 8.0) - scalars.atan(y) * scalars.tan(x)
        return [chosen, more, scalars.sqrt(x * x + y * y), -(x * y) - scalars.log(x * x + 1.5), x, -y * 3.0 - (-0.0)]

    x = np.random.default_rng(4).uniform(-5, 5, (9, 2))
    assert_same_bits(traced(page, 2), (x,))


def test_slots_are_used_again():
    """Take no more slots than values in use, and refuse Programs that need more than there are."""
    chain = traced(lambda x, y: [reduce(lambda a, _: scalars.sin(a) * x + y, range(30), x)], 2)
    assert steps(chain, None).slots < 8

    def wide(*x):
        waiting = [a * b for a in x for b in x[:8]]
        return [sum(a * w for a, w in zip(waiting, reversed(waiting), strict=True))]

    assert interpreted(traced(wide, 160), "float64", "kernel") is None
    assert SLOTS[-1] < 160 * 8


@everyday.long
@needs_ptxas
def test_ptx_is_small(tmp_path):
    """Assemble the interpreter of a large function, a tenth of the function's own code."""
    program = kt.load("stewart").function("forward_dynamics").program
    found = interpreted(program, "float32", "rows")
    assert found is not None and len(found.ptx) < 20_000
    assert assembled(found.ptx, tmp_path)["steps"][1] == 0
