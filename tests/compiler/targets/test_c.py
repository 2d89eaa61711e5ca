"""C source of Programs, compiled by the installed C compiler, against the gufunc."""

from __future__ import annotations

import ctypes
import shutil
import subprocess
from dataclasses import replace
from pathlib import Path

import hypothesis
import numpy as np
import pytest

import kinetree as kt
from closed_mechanisms import closed_mechanisms, motion
from kinetree.compiler.ir.program import Array, Program
from kinetree.compiler.targets.c.target import source
from kinetree.errors import InputError
from native_program import traced
from rounding_scales import torque_scale
from strategies import State, examples, moving_mechanisms, one_of_each
from tolerance import assert_close

EPS = float(np.finfo(float).eps)
COMPILER = next(filter(None, map(shutil.which, ("cc", "gcc", "clang"))), None)
needs_compiler = pytest.mark.skipif(COMPILER is None, reason="no C compiler (cc, gcc or clang) on the PATH")


def library(folder: Path, *texts: str) -> ctypes.CDLL:
    """Compile source texts to a shared library; warnings are errors."""
    paths = [folder / f"f{k}.c" for k in range(len(texts))]
    for path, text in zip(paths, texts, strict=True):
        path.write_text(text)
    out = folder / f"lib{abs(hash(texts))}.so"
    flags = ["-std=c99", "-pedantic", "-Wall", "-Wextra", "-Werror", "-O0", "-fPIC", "-shared"]
    subprocess.run([str(COMPILER), *flags, *map(str, paths), "-o", str(out), "-lm"], check=True)
    return ctypes.CDLL(str(out))


def called(function, program: Program, *inputs, dtype="float64") -> np.ndarray:
    """Call a C function sample by sample; return its first output."""
    count = len(inputs[0])
    arrays = [np.ascontiguousarray(x, dtype) for x in inputs]
    out = [np.full((count, *a.shape), np.nan, dtype) for a in program.outputs]
    for k in range(count):
        function(*(ctypes.c_void_p(x[k].ctypes.data) for x in (*arrays, *out)))
    return out[0]


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
    programs = [system.function(name).program for name in names]
    compiled = library(folder, *map(source, programs))
    for name, program in zip(names, programs, strict=True):
        expected = system.function(name)(q, qd, force)
        found = called(getattr(compiled, name), program, q, qd, force)
        if name == "forward_dynamics":
            free = system.tree.forward_dynamics(q, qd, force)  # the multipliers of loops may cancel these
            scale = max(condition(system, q), 8) * max(np.abs(expected).max(), np.abs(free).max())
        else:
            scale = max(torque_scale(system.mechanism, *x) for x in zip(q, qd, force, strict=True))
        assert_close(found, expected, 20 * EPS * scale, name)


@needs_compiler
@pytest.mark.parametrize("name", ["planar_3r", "stanford", "space_robot_3r", "four_bar", "stewart"])
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
        compiled = library(tmp_path, source(program, dtype))
        found = called(compiled["a_3_parts"], program, x, dtype=dtype)
        finite = np.isfinite(expected)
        np.testing.assert_array_equal(found[~finite], expected[~finite])
        scale = np.maximum(np.abs(expected[finite]), 1e-30)
        assert_close(found[finite] / scale, expected[finite] / scale, bound, dtype)


def test_functions_are_saved_by_suffix(tmp_path):
    """Write a function to a file, and refuse unsuitable suffixes, paths and functions."""
    arm = kt.load("planar_2r")
    path = arm.function("inertia_matrix").save(tmp_path / "inertia.c")
    text = path.read_text()
    assert "inertia_matrix, written by Kinetree: q[2] -> I[2][2]" in text
    assert "void inertia_matrix(const double *restrict q, double *restrict I)" in text
    with pytest.raises(InputError, match=r"the suffix '.f90' is not one of exported code; expected .c"):
        arm.function("inertia_matrix").save(tmp_path / "inertia.f90")
    with pytest.raises(InputError, match=r"cannot be written \(No such file or directory\); choose another path"):
        arm.function("inertia_matrix").save(tmp_path / "missing" / "inertia.c")
    long = kt.System(one_of_each()).function("inverse_dynamics", lowering="rolled")
    with pytest.raises(InputError, match="compiled with loops over its bodies.*lowering='unrolled'"):
        long.save(tmp_path / "long.c")
