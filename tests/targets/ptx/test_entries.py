"""GPU kernels of Programs: their arithmetic on this processor against the gufuncs, and their PTX assembled."""

from __future__ import annotations

from itertools import islice

import hypothesis
import numpy as np
import pytest

import everyday
import gpu_on_cpu
import kinetree as kt
from assembler import assembled, needs_ptxas
from closed_mechanisms import closed_mechanisms, library_state, motion
from kinetree import library
from kinetree.algebra import scalars
from kinetree.compiler.ir.program import Program
from kinetree.errors import InputError
from kinetree.targets import target
from kinetree.targets.ptx import entries
from kinetree.targets.ptx.entries import emit, launch
from kinetree.targets.ptx.schedule import BUDGET
from kinetree.targets.ptx.staging import layout
from native_program import traced
from public_robots import calculable, public_robots
from rounding_scales import dynamics_scale
from strategies import State, examples, moving_mechanisms, one_of_each, random_mechanism
from tolerance import assert_close

EPS = float(np.finfo(float).eps)


def check_against_gufuncs(system: kt.System, q, qd, force, entry: str = "kernel") -> None:
    """Compare both dynamics of a mechanism; scales of rounding are those of rigid bodies."""
    for name in ("forward_dynamics",) if system.closures else ("forward_dynamics", "inverse_dynamics"):
        function = system.function(name)
        found, expected = gpu_on_cpu.run(function.program, entry, (q, qd, force))[0], function(q, qd, force)
        if system.mechanism.has_flexible:
            bound = 1e-9 * np.abs(expected).max()
        else:
            bound = 20 * EPS * dynamics_scale(system.mechanism, name, q, qd, force)
        assert_close(found, expected, bound, name)


@everyday.long
@pytest.mark.parametrize(("entry", "order"), [("kernel", "C"), ("kernel", "F"), ("rows", "C")])
def test_layouts_and_remainders(entry, order):
    """Run more samples than a warp has threads, on row-major and column-major arrays, with one shared input."""
    system = kt.load("stanford")
    s = State(system.mechanism, 4, 35)
    program = system.function("inverse_dynamics").program
    found = gpu_on_cpu.run(program, entry, (s.q, s.qd, s.tau[:1]), order=order)[0]
    expected = system.inverse_dynamics(s.q, s.qd, s.tau[:1])
    scale = dynamics_scale(system.mechanism, "inverse_dynamics", s.q, s.qd, np.tile(s.tau[:1], (35, 1)))
    assert_close(found, expected, 20 * EPS * scale, entry)


@everyday.long
def test_wide_rows_with_a_shared_input():
    """Copy rows together, also of an input that all samples share."""
    parents = [parent for limb in range(4) for parent in (-1, *range(6 * limb, 6 * limb + 5))]
    system = kt.System(random_mechanism(("revolute",) * 24, parents, 2))
    program = system.function("inverse_dynamics").program
    s = State(system.mechanism, 4, 66)
    found = gpu_on_cpu.run(program, "rows", (s.q, s.qd, s.tau[:1]))[0]
    scale = dynamics_scale(system.mechanism, "inverse_dynamics", s.q, s.qd, np.tile(s.tau[:1], (66, 1)))
    assert_close(found, system.inverse_dynamics(s.q, s.qd, s.tau[:1]), 20 * EPS * scale, "torques")


def neighbors(count: int) -> Program:
    """Return a program with as many results as inputs, products of neighbors, and the sine of an angle."""

    def page(*x):
        return [a * b for a, b in zip(x[2:], x[3:] + x[:1], strict=True)] + [scalars.sin(x[1]), x[0] * 3.0]

    return traced(page, count)


@pytest.mark.parametrize(("entry", "order"), [("kernel", "F"), ("rows", "C")])
@pytest.mark.parametrize("count", everyday.some([31, 33, 75, 300]))
def test_inputs_in_shared_memory(entry, order, count):
    """Keep many inputs in shared memory, rows of odd and even length, and arrays that do not fit there."""
    program = neighbors(count)
    x = np.random.default_rng(count).uniform(-9, 9, (34, count))
    found = gpu_on_cpu.run(program, entry, (x,), order=order)[0]
    assert_close(found, program.interpret(x)[0], 90 * EPS, entry)


@pytest.mark.parametrize("spare", [0, 1])
@pytest.mark.parametrize(
    ("dtype", "count"),
    everyday.some(
        [
            ("float64", 16),
            ("float64", 24),
            ("float64", 72),
            ("float32", 27),
            ("float32", 30),
            ("float32", 32),
            ("float32", 36),
            ("float32", 136),
        ]
    ),
)
def test_rows_are_copied_in_chunks_or_numbers(dtype, count, spare):
    """Copy rows with and without gaps in shared memory, and parts of wider arrays, whose rows are apart."""
    program = neighbors(count)
    x = np.random.default_rng(count).uniform(-9, 9, (75, count)).astype(dtype)
    found = gpu_on_cpu.run(program, "rows", (x,), dtype=dtype, spare=spare)[0]
    assert_close(found, program.interpret(x.astype(float))[0], 90 * np.finfo(dtype).eps, "rows")


@pytest.mark.parametrize(("entry", "order"), [("kernel", "F"), ("rows", "C")])
def test_more_values_than_registers(entry, order, monkeypatch):
    """Move values to shared memory and back where registers are too few, over inputs and beside outputs."""
    monkeypatch.setitem(BUDGET, 8, 12)
    monkeypatch.setattr(entries, "arrange", entries.arrange.__wrapped__)  # without what other tests have cached
    system = kt.load("stanford")
    program = system.function("forward_dynamics").program
    assert len(layout(program, 8, rows=entry == "rows").moves) > 50
    s = State(system.mechanism, 4, 34)
    found = gpu_on_cpu.run(program, entry, (s.q, s.qd, s.tau), order=order)[0]
    scale = dynamics_scale(system.mechanism, "forward_dynamics", s.q, s.qd, s.tau)
    assert_close(found, system.forward_dynamics(s.q, s.qd, s.tau), 20 * EPS * scale, entry)


@pytest.mark.slow
@pytest.mark.parametrize("entry", ["kernel", "rows"])
def test_every_kind_of_joint(entry):
    """Compare the dynamics of a mechanism with all kinds of joints."""
    system = kt.System(one_of_each())
    s = State(system.mechanism, 4)
    check_against_gufuncs(system, s.q, s.qd, s.tau, entry)


@examples(3)
@hypothesis.given(mechanism=moving_mechanisms(most=4))
def test_random_trees(mechanism):
    """Compare the dynamics of random trees."""
    s = State(mechanism, 4)
    check_against_gufuncs(kt.System(mechanism), s.q, s.qd, s.tau)


@examples(3)
@hypothesis.given(made=closed_mechanisms(most=4))
def test_random_closed_mechanisms(made):
    """Compare the dynamics of random mechanisms with loops."""
    mechanism, q = made
    qd, tau = motion(mechanism, q)
    check_against_gufuncs(kt.System(mechanism), q[None], qd[None], tau[None])


@pytest.mark.parametrize("entry", ["kernel", "rows"])
@pytest.mark.parametrize("dtype", ["float64", "float32"])
def test_angles_of_any_size(entry, dtype):
    """Reduce huge bare angles before the arithmetic, and leave the bits of other samples as they are."""
    program = traced(lambda x, y: [scalars.sin(x), scalars.cos(x + 0.3), scalars.sin(y), y * 2.0], 2)
    x = np.random.default_rng(3).uniform(-9, 9, (40, 2)).astype(dtype)
    before = gpu_on_cpu.run(program, entry, (x,), dtype=dtype)[0]
    x[[3, 17]] = [[1e12, -2e9], [-3e30, 4e20]]
    found = gpu_on_cpu.run(program, entry, (x,), dtype=dtype)[0]
    others = [k for k in range(40) if k not in (3, 17)]
    assert np.array_equal(found[others], before[others])
    a, b = x.astype(float).T
    shifted = np.where(np.abs(a) < 10, a, np.arctan2(np.sin(a), np.cos(a))).astype(dtype) + np.dtype(dtype).type(0.3)
    expected = np.stack([np.sin(a), np.cos(shifted.astype(float)), np.sin(b), 2 * b], axis=1)
    scale = np.maximum(np.abs(expected), 1)
    assert_close(found / scale, expected / scale, 2 * np.finfo(dtype).eps, entry)


def test_other_units_are_refused():
    """Refuse programs with loops over bodies."""
    step = kt.System(one_of_each()).function("inverse_dynamics", lowering="rolled").program
    with pytest.raises(InputError, match="PTX is written for a Program.*lowering='unrolled'"):
        target("ptx").emit(step, "float64")  # type: ignore[arg-type]


def test_results_are_written_after_all_rows_are_read():
    """Place results over inputs with another distance between rows, which are those of other threads."""
    program = traced(lambda *x: [a * b for a, b in zip(x[:24], x[16:], strict=True)], 40)
    x = np.random.default_rng(1).uniform(-9, 9, (64, 40))
    found = gpu_on_cpu.run(program, "rows", (x,))[0]
    assert_close(found, program.interpret(x)[0], 90 * EPS, "rows")


@needs_ptxas
@pytest.mark.parametrize("name", everyday.some(["planar_3r", "four_bar", "stanford", "quadruped"]))
@pytest.mark.parametrize("dtype", ["float64", "float32"])
def test_ptx_is_assembled(name, dtype, tmp_path):
    """Assemble PTX for the oldest GPU and for a new one, without spills: narrow and wide rows, trees and loops."""
    program = kt.load(name).function("forward_dynamics").program
    ptx = target("ptx")
    code = ptx.build(ptx.emit(program, dtype))
    assert b".version 7.0" in code and b".target sm_80" in code
    for architecture in ("sm_80", "sm_90"):
        found = assembled(code, tmp_path, architecture)
        assert set(found) == {"kernel", "rows"} and not any(spilled for _, spilled in found.values())


@needs_ptxas
@pytest.mark.slow
@pytest.mark.parametrize("name", library.names())
def test_ptx_of_the_library(name, tmp_path):
    """Assemble the forward dynamics of every mechanism of the library, and compare them on this processor."""
    system = kt.load(name)
    ptx = target("ptx")
    program = system.function("forward_dynamics", lowering="unrolled").program
    for dtype in ("float64", "float32"):
        assembled(ptx.build(ptx.emit(program, dtype)), tmp_path)
    if system.mechanism.free_parameters:
        system = system.fixed([p.value for p in system.mechanism.free_parameters])
    if system.closures:
        _, q, qd, _ = library_state(name)
        check_against_gufuncs(system, q[None], qd[None], np.ones((1, system.nv)))
    else:
        s = State(system.mechanism, 4)
        check_against_gufuncs(system, s.q, s.qd, s.tau)


@needs_ptxas
@pytest.mark.slow
@pytest.mark.parametrize("base", ["fixed", "free"])
def test_public_robots(base, tmp_path):
    """Assemble the dynamics of twenty public robots, and compare them on this processor."""
    systems = list(islice(calculable(public_robots(), base), 20))
    assert len(systems) == 20
    for system in systems:
        s = State(system.mechanism, 4)
        for name in ("inverse_dynamics", "forward_dynamics"):
            function = system.function(name, lowering="unrolled")
            assembled(target("ptx").build(emit(function.program, "float64", ("rows",))), tmp_path)
            found = gpu_on_cpu.run(function.program, "kernel", (s.q, s.qd, s.tau))[0]
            scale = dynamics_scale(system.mechanism, name, s.q, s.qd, s.tau)
            assert_close(found, function(s.q, s.qd, s.tau), 20 * EPS * scale, f"{name} of {system.mechanism.name}")


@everyday.long
def test_launches_fit_shared_memory():
    """Give blocks whole warps, and shared memory only to wide rows and to programs that exceed the registers."""
    narrow, wide = kt.load("stanford"), kt.System(random_mechanism(("revolute",) * 30, range(-1, 29), 2))
    for dtype, staged in (("float64", 64 * 18 * 8), ("float32", 0)):
        program = narrow.function("inverse_dynamics").program
        assert [launch(program, dtype, entry) for entry in ("kernel", "rows")] == [(64, 0), (64, staged)]
        threads, shared = launch(wide.function("inverse_dynamics").program, dtype, "rows")
        assert threads % 32 == 0 and 0 < shared <= 99 * 1024
