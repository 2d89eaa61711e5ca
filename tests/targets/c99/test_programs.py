"""C source of Programs, compiled by the installed C compiler, against the gufunc."""

from __future__ import annotations

import ctypes
from dataclasses import replace
from pathlib import Path

import hypothesis
import numpy as np
import pytest

import everyday
import kinetree as kt
from c_compiler import called, library, needs_compiler
from closed_mechanisms import closed_mechanisms, motion
from kinetree.compiler.ir.operations import Op
from kinetree.compiler.ir.program import Array
from kinetree.errors import InputError
from kinetree.targets.c import programs, source
from native_program import traced
from rounding_scales import torque_scale
from strategies import State, examples, moving_mechanisms, one_of_each
from tolerance import assert_close

EPS = float(np.finfo(float).eps)


def of_texts(folder: Path, *texts: str, level: str = "-O0") -> ctypes.CDLL:
    """Compile source texts to a shared library."""
    paths = [folder / f"f{k}_{abs(hash(text))}.c" for k, text in enumerate(texts)]
    for path, text in zip(paths, texts, strict=True):
        path.write_text(text)
    return library(paths, level=level)


def condition(system: kt.System, q) -> float:
    """Return the largest condition number of the inertia matrices, multiplied by that of the loops."""
    inertia = system.inertia_matrix(q)
    if not system.closures:
        return float(np.linalg.cond(inertia).max())
    J = system.closure_jacobian(q)
    s = np.linalg.svd(J, compute_uv=False)
    least = np.where(s > 1e-9 * s.max(axis=-1, keepdims=True), s, np.inf).min(axis=-1)
    return float((np.linalg.cond(inertia) * s.max(axis=-1) / least).max())


def check_c_against_gufuncs(folder: Path, system: kt.System, q, qd, force) -> None:
    """Compare both dynamics of a mechanism in C with the gufuncs."""
    names = ("forward_dynamics",) if system.closures else ("forward_dynamics", "inverse_dynamics")
    made = [system.function(name).program for name in names]
    compiled = of_texts(folder, *map(source, made))
    for name, program in zip(names, made, strict=True):
        expected = system.function(name)(q, qd, force)
        (found,) = called(getattr(compiled, name), (q, qd, force), [program.outputs[0].shape])
        if name == "forward_dynamics":
            free = system.tree.forward_dynamics(q, qd, force)  # the multipliers of loops may cancel these
            scale = max(condition(system, q), 8) * max(np.abs(expected).max(), np.abs(free).max())
        else:
            scale = max(torque_scale(system.mechanism, *x) for x in zip(q, qd, force, strict=True))
        assert_close(found, expected, 20 * EPS * scale, name)


@needs_compiler
@pytest.mark.parametrize("name", everyday.some(["planar_3r", "stanford", "space_robot_3r", "four_bar", "stewart"]))
def test_library_mechanisms_in_c(name, tmp_path):
    """Compile the dynamics of mechanisms of the library, open and closed."""
    system = kt.load(name)
    s = State(system.mechanism, 4)
    q, qd = (s.q, s.qd)
    if system.closures:
        q = np.tile(system.assemble(), (3, 1))
        qd = system.closing_speed(q, qd)
    check_c_against_gufuncs(tmp_path, system, q, qd, s.tau)


@needs_compiler
@examples(6)
@hypothesis.given(mechanism=moving_mechanisms(most=5))
def test_random_trees_in_c(mechanism, tmp_path_factory):
    """Compile the dynamics of random trees."""
    s = State(mechanism, 4)
    check_c_against_gufuncs(tmp_path_factory.mktemp("tree"), kt.System(mechanism), s.q, s.qd, s.tau)


@needs_compiler
@examples(4)
@hypothesis.given(made=closed_mechanisms(most=4))
def test_random_closed_mechanisms_in_c(made, tmp_path_factory):
    """Compile the dynamics of random mechanisms with loops."""
    mechanism, q = made
    qd, tau = motion(mechanism, q)
    check_c_against_gufuncs(tmp_path_factory.mktemp("closed"), kt.System(mechanism), q[None], qd[None], tau[None])


@needs_compiler
def test_every_operation_and_both_precisions(tmp_path):
    """Compile each operation, constants that are negative, tiny and not finite, and names that C does not allow."""

    def page(x, y):
        less, more = x < y, y < 2.0 * x
        chosen = ((less & ~more) | (less & more)).where(x, -y)
        return [
            x + y, x - y, x * y, x / y, -x, chosen, x.sqrt(), x.sin(), x.cos(), x.tan(), x.asin(), x.acos(), x.atan(),
            x.exp(), x.log(), x.atan2(y), x * -1e-300 + 1e-300, x * 0.1, x + np.inf, y + 2.0**70,
        ]  # fmt: skip

    program = traced(page, 2)
    program = replace(program, name="3 parts", inputs=(Array("double", (2,)),), outputs=(Array("v0", (20,)),))
    x = np.array([[0.37, 0.61], [0.52, 0.23]])
    expected = program.interpret(x)[0]
    for dtype, bound in (("float64", 2 * EPS), ("float32", 4e-7)):
        compiled = of_texts(tmp_path, source(program, dtype))
        (found,) = called(compiled["a_3_parts"], [x], [(20,)], dtype)
        finite = np.isfinite(expected)
        np.testing.assert_array_equal(found[~finite], expected[~finite])
        scale = np.maximum(np.abs(expected[finite]), 1e-30)
        assert_close(found[finite] / scale, expected[finite] / scale, bound, dtype)


@needs_compiler
def test_long_programs_are_split(tmp_path, monkeypatch):
    """Compile a Program in parts, whose values and conditions cross the parts, and one in a single function."""

    def page(x, y):
        values, less = [x, y], x < y
        for k in range(40):
            values.append(values[-1] * 0.75 + (values[-2] * values[k // 2]).sin())
        return [*values[::-7], less.where(values[9], values[3]), x, x * 0.0 + 1.0]

    program = traced(page, 2)
    x = np.array([[0.37, 0.61], [0.52, 0.23]])
    monkeypatch.setattr(programs, "PART", 9)
    parts = source(program)
    assert parts.count("KINETREE_PART void function_part") > 8
    (found,) = called(of_texts(tmp_path, parts).function, [x], [program.outputs[0].shape])
    assert_close(found, program.interpret(x)[0], 8 * EPS, "parts")
    monkeypatch.setattr(programs, "PART", 10**6)
    whole = source(program)
    assert "_part" not in whole
    (alone,) = called(of_texts(tmp_path, whole).function, [x], [program.outputs[0].shape])
    np.testing.assert_array_equal(found, alone)


def test_operations_without_use_are_left_out():
    """Write a Program one of whose operations no result needs."""
    program = traced(lambda x: [x * 3.0])
    more = replace(program, ops=(*program.ops, (Op.SIN, 0)))
    assert "sin(" not in source(more)


def test_rolled_programs_are_refused():
    """Request C source of a rolled unit and read the error."""
    rolled = kt.System(one_of_each()).function("inverse_dynamics", lowering="rolled").program
    with pytest.raises(InputError, match="C source is not written for a BoundProgram; use lowering='unrolled'"):
        source(rolled)  # type: ignore[arg-type]
