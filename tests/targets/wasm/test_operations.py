"""Operations of Programs in WebAssembly, one by one, their precision, and programs that are too large."""

from __future__ import annotations

from dataclasses import replace

import numpy as np
import pytest

import kinetree as kt
from kinetree.compiler.ir.program import Array, Program
from kinetree.compiler.ir.trace import Trace
from kinetree.errors import InputError
from kinetree.targets import digest
from kinetree.targets.wasm import Wasm, values, wasm_module
from kinetree.targets.wasm.module import metadata_of
from native_program import traced
from tolerance import assert_close
from wasm_hosts import Call, in_node, in_wasmtime, needs_node, needs_wasmtime

EPS = float(np.finfo(float).eps)


def every_operation() -> Program:
    """Return a Program of each operation, and of constants of every encoding."""

    def page(x, y):
        less, more = x < y, y < 2.0 * x
        chosen = ((less & ~more) | (less & more)).where(x, -y)
        return [
            x + y, x - y, x * y, x / y, -x, chosen, x.sqrt(), x.sin(), x.cos(), x.tan(), x.asin(), x.acos(), x.atan(),
            x.exp(), x.log(), x.atan2(y), x * -1e-300 + 1e-300, x * 0.1, x + np.inf, y + 2.0**70, x * 1000.0, x - 64.0,
            x * 63.0 + y * 63.0, x * 0.5, x * 0.1 + y * 0.1, x * -1023.0, x + 1024.0, x.sin().cos(), y.cos(),
        ]  # fmt: skip

    program = traced(page, 2)
    return replace(program, name="3 parts", inputs=(Array("double", (2,)),), outputs=(Array("v0", (29,)),))


@needs_node
def test_every_operation_in_both_precisions(tmp_path):
    """Compare each operation with NumPy."""
    program = every_operation()
    x = np.array([[0.37, 0.61], [0.52, 0.23]])
    expected = program.interpret(x)[0]
    precisions = {"float64": 4 * EPS, "float32": 4e-7}
    calls = [Call(Wasm().emit(program, dtype), program.name, (x,)) for dtype in precisions]
    for (dtype, bound), (found,) in zip(precisions.items(), in_node(calls, tmp_path), strict=True):
        finite = np.isfinite(expected)
        np.testing.assert_array_equal(found[~finite], expected[~finite])
        scale = np.maximum(np.abs(expected[finite]), 1e-30)
        assert_close(found[finite] / scale, expected[finite] / scale, bound, dtype)


def sine_and_cosine(x: np.ndarray) -> np.ndarray:
    """Return sine and cosine by WebAssembly, [n, 2]."""
    program = traced(lambda x: [x.sin(), x.cos()])
    return in_wasmtime([Call(wasm_module([program]), program.name, (x[:, None],))])[0][0]


def sines_together(x: np.ndarray, size: int) -> np.ndarray:
    """Return sine and cosine by WebAssembly, [n, 2], several angles at a time."""
    program = traced(lambda *angles: [f for a in angles for f in (a.sin(), a.cos())], size)
    groups = np.append(x, [0.7] * (-len(x) % size)).reshape(-1, size)
    return in_wasmtime([Call(wasm_module([program]), program.name, (groups,))])[0][0].reshape(-1, 2)[: len(x)]


def in_pairs(x: np.ndarray) -> np.ndarray:
    """Return sine and cosine of two angles at a time."""
    return sines_together(x, 2)


def in_fours(x: np.ndarray) -> np.ndarray:
    """Return sine and cosine of four angles at a time."""
    return sines_together(x, 4)


ALONE_AND_TOGETHER = pytest.mark.parametrize("sines", [sine_and_cosine, in_pairs, in_fours])


@needs_wasmtime
@ALONE_AND_TOGETHER
def test_sines_are_within_a_unit_of_the_last_place(sines):
    """Compare sine and cosine of small, large and huge angles with exact ones, also next to multiples of pi/2."""
    mpmath = pytest.importorskip("mpmath")
    rng = np.random.default_rng(3)
    ranges = ((1e-9, 1.0), (1.0, 1e3), (1e3, 4e3), (4e3, 6e5), (6e5, 1e9), (1e9, 1e30), (1e100, 1.7e308))
    x = np.concatenate([np.exp(rng.uniform(*np.log(r), 60)) * rng.choice([-1, 1], 60) for r in ranges])
    hardest = 6381956970095103.0 * 2.0**797  # the double nearest to a multiple of pi/2
    x = np.concatenate(
        [x, np.arange(1, 40) * (np.pi / 2), rng.integers(1, 300000, 60) * (np.pi / 2), [hardest, 2**12, 2**19]]
    )
    found = sines(x)
    with mpmath.workprec(1300):
        exact = [[f(mpmath.mpf(float(a))) for f in (mpmath.sin, mpmath.cos)] for a in x]
        errors = [[float((e - float(y)) / np.spacing(abs(float(e)))) for e, y in zip(*p, strict=True)]
                  for p in zip(exact, found, strict=True)]  # fmt: skip
    assert_close(errors, np.zeros_like(found), 0.8, "units in the last place")


@needs_wasmtime
@ALONE_AND_TOGETHER
def test_sines_of_numbers_that_are_not_finite(sines):
    """Return NaN for infinities and NaN, and exact values at zero."""
    found = sines(np.array([np.inf, -np.inf, np.nan, 0.0, -0.0]))
    assert np.isnan(found[:3]).all()
    np.testing.assert_array_equal(found[3:], [[0.0, 1.0]] * 2)


SPECIAL = [0.0, -0.0, 1.0, -1.0, np.inf, -np.inf, np.nan, 5e-324, 1.7e308]


@needs_wasmtime
@pytest.mark.parametrize(
    ("name", "low", "high", "signs", "special"),
    [
        ("exp", 1e-6, 744.0, (-1, 1), SPECIAL),
        ("log", 1e-310, 1e308, (1,), SPECIAL),
        ("atan", 1e-9, 1e12, (-1, 1), SPECIAL),
        ("asin", 1e-9, 1.0, (-1, 1), [*SPECIAL, 1.5]),
        ("acos", 1e-9, 1.0, (-1, 1), [*SPECIAL, 1.5]),
        ("tan", 1e-9, 1e5, (-1, 1), SPECIAL[4:7]),
    ],
)
def test_functions_are_within_two_units_of_the_last_place(name, low, high, signs, special):
    """Compare elementary functions with exact ones, and with NumPy at zeros, infinities and the ends of the range."""
    mpmath = pytest.importorskip("mpmath")
    rng = np.random.default_rng(7)
    x = np.exp(rng.uniform(np.log(low), np.log(high), 300)) * rng.choice(signs, 300)
    program = traced(lambda x: [getattr(x, name)()])
    module = wasm_module([program])
    found, ends = (in_wasmtime([Call(module, program.name, (np.array(y)[:, None],))])[0][0][:, 0] for y in (x, special))
    with mpmath.workprec(300):
        exact = [getattr(mpmath, name)(mpmath.mpf(float(a))) for a in x]
        errors = [float((e - float(y)) / np.spacing(abs(float(e)))) for e, y in zip(exact, found, strict=True)]
    assert_close(errors, np.zeros(300), 2.5 if name == "tan" else 2.0, "units in the last place")
    with np.errstate(all="ignore"):
        expected = program.interpret(np.array(special)[:, None])[0][:, 0]
    np.testing.assert_allclose(ends, expected, rtol=2 * EPS, atol=0.0)


@needs_wasmtime
def test_angles_of_points_in_every_direction():
    """Compare atan2 with exact values, also for huge and tiny points, and with NumPy on the axes and at infinity."""
    mpmath = pytest.importorskip("mpmath")
    rng = np.random.default_rng(11)
    points = rng.normal(size=(200, 2)) * 10.0 ** rng.integers(-150, 150, size=(200, 1))
    ends = [0.0, -0.0, 1.0, -1.0, np.inf, -np.inf, np.nan, 1.7e308, 5e-324]
    axes = np.array([[y, x] for y in ends for x in ends])
    program = traced(lambda y, x: [y.atan2(x)], 2)
    module = wasm_module([program])
    found, special = (in_wasmtime([Call(module, program.name, (p,))])[0][0][:, 0] for p in (points, axes))
    with mpmath.workprec(300):
        exact = [mpmath.atan2(*map(mpmath.mpf, map(float, p))) for p in points]
        errors = [float((e - float(y)) / np.spacing(abs(float(e)))) for e, y in zip(exact, found, strict=True)]
    assert_close(errors, np.zeros(200), 2.0, "units in the last place")
    expected = np.arctan2(*axes.T)
    signed = ~np.isnan(expected)
    np.testing.assert_array_equal(np.signbit(special)[signed], np.signbit(expected)[signed])
    np.testing.assert_allclose(special, expected, rtol=2 * EPS, atol=0.0)


@needs_wasmtime
def test_sums_of_many_terms_are_written_without_recursion():
    """Write a sum of 5000 products, whose expression is as deep."""
    trace = Trace()
    x = [trace.input(0, k) for k in range(50)]
    total = x[0]
    for k in range(5000):
        total = total * 0.9 + x[k % 50]
    program = Program.of_trace("sum", [Array("x", (50,))], [Array("y", ())], trace, [[total]])
    given = np.random.default_rng(1).normal(size=(2, 50))
    (found,) = in_wasmtime([Call(wasm_module([program]), "sum", (given,))])[0]
    assert_close(found, program.interpret(given)[0], 20 * EPS, "sum")


def test_the_metadata_describe_the_functions():
    """Read the model, the version, the shapes and the hashes from a module."""
    arm = kt.load("planar_2r")
    programs = [arm.function(name).program for name in ("inertia_matrix", "pose")[:1]]
    found = metadata_of(wasm_module(programs, "float32", model="planar_2r"))
    assert found == {
        "kinetree": kt.__version__,
        "model": "planar_2r",
        "dtype": "float32",
        "functions": [
            {
                "name": "inertia_matrix",
                "inputs": [{"name": "q", "shape": [2]}],
                "outputs": [{"name": "I", "shape": [2, 2]}],
                "hash": digest(programs[0], "float32"),
            }
        ],
    }
    with pytest.raises(ValueError, match="no section 'kinetree'; it was not written by Kinetree"):
        metadata_of(b"\0asm\x01\0\0\0")


def test_functions_are_saved_as_modules(tmp_path):
    """Write a function to a .wasm file, and refuse two functions of one name and rolled code."""
    arm = kt.load("planar_2r")
    f = arm.function("inertia_matrix")
    data = f.save(tmp_path / "inertia.wasm").read_bytes()
    assert data[:8] == b"\0asm\x01\0\0\0"
    assert metadata_of(data)["model"] == "planar_2r"
    assert metadata_of(data)["functions"][0]["hash"] == digest(f.program, "float64")
    with pytest.raises(InputError, match="two functions of a module have one name: inertia_matrix, inertia_matrix"):
        wasm_module([f.program, f.program])
    rope = kt.chain(70).function("gravity_torque").program
    with pytest.raises(InputError, match=r"for a Program or a kernel, not for a BoundProgram; use lowering='unrolled'"):
        Wasm().emit(rope, "float64")  # type: ignore[arg-type]


@pytest.mark.parametrize(("limit", "what"), [("MOST_VARIABLES", "variables"), ("MOST_BYTES", "bytes")])
def test_functions_beyond_the_limits_of_browsers_are_refused(limit, what, monkeypatch):
    """State the size and the limit instead of writing a module that no browser accepts."""
    monkeypatch.setattr(values, limit, 6)
    with pytest.raises(InputError, match=rf"3 parts takes \d+ {what} in WebAssembly; browsers accept at most 6 per"):
        wasm_module([every_operation()])
