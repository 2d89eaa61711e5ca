"""Compiled functions: the numbers of the interpreter, and the same bits for any layout of the samples."""

from __future__ import annotations

import copy
import itertools
import multiprocessing
import pickle
from concurrent.futures import ProcessPoolExecutor, ThreadPoolExecutor

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

import everyday
from divided_batches import divide_all
from interpreted import relative
from kinetree import Body, InputError, Joint, System, build_mechanism
from kinetree.dynamics import ALGORITHMS
from kinetree.runtime.function import Function
from layouts import LAYOUTS
from strategies import State, examples, moving_mechanisms, one_of_each, random_mechanism
from tolerance import assert_close

SMALL = System(random_mechanism(["revolute", "spherical", "helical"], [-1, 0, 1], 21))
"""Six coordinates, five speeds."""


def arguments(function: Function, s: State) -> list[np.ndarray]:
    """Return random arrays for the inputs of a function."""
    known = {"q": s.q, "q2": np.roll(s.q, 1, axis=0), "qd": s.qd, "qdd": s.qdd, "tau": s.tau, "wrenches": s.wrenches}
    known["added"] = np.abs(s.qdd)
    return [known[a.name] for a in function.inputs]


def function(system: System, name: str, dtype: str = "float64") -> Function:
    """Return a function by name, for the frame of the tool if it requires one, with wrenches if it depends on them."""
    algorithm = ALGORITHMS[name]
    options = {"driven": [system.joints[0].name]} if algorithm.driven else {}
    frame = "tool" if algorithm.frame else None
    return system.function(name, frame=frame, wrenches=algorithm.wrenches, dtype=dtype, **options)


def each(results) -> tuple:
    """Return one output, or several, as a tuple."""
    return results if isinstance(results, tuple) else (results,)


@pytest.mark.parametrize(
    "name", everyday.some(everyday.without(ALGORITHMS, ("inverse_inertia_matrix", "convective_matrix")))
)
def test_native_code_is_what_the_interpreter_says(name):
    """Run every algorithm natively on a mechanism with all kinds of joints, and in plain NumPy."""
    system = System(one_of_each())
    f = function(system, name)
    given_ = arguments(f, State(system.mechanism, shape=19))
    for out, expected in zip(each(f(*given_)), f.program.interpret(*given_), strict=True):
        assert_close(relative(out, expected), 0.0, 4e-14, name)  # 1e-14 for forward dynamics, 2e-15 for others


@given(moving_mechanisms(most=4))
@examples(12)
def test_native_code_of_random_mechanisms(mechanism):
    """Run inverse and forward dynamics natively and in plain NumPy."""
    system, s = System(mechanism), State(mechanism, shape=9)
    for name in ("inverse_dynamics", "forward_dynamics"):
        f = function(system, name)
        given_ = arguments(f, s)
        expected = f.program.interpret(*given_)[0]
        condition = float(np.linalg.cond(system.function("inertia_matrix").program.interpret(s.q)[0]).max())
        assert_close(relative(f(*given_), expected), 0.0, max(1e-13, 1e-15 * condition), name)


@pytest.mark.parametrize("name", everyday.some(ALGORITHMS))
def test_single_precision(name):
    """Run every algorithm in float32 and find the numbers of float64 to about six digits."""
    f, wide = function(SMALL, name, "float32"), function(SMALL, name)
    given_ = [a.astype(np.float32) for a in arguments(f, State(SMALL.mechanism, shape=33))]
    for out, expected in zip(each(f(*given_)), each(wide(*(a.astype(float) for a in given_))), strict=True):
        assert out.dtype == np.float32
        assert_close(relative(out, expected), 0.0, 1e-4, name)  # 7e-6 for the potential energy, 1e-6 for others


@given(st.data())
@examples(40)
def test_bits_do_not_depend_on_the_split(data):
    """Cut a batch anywhere and find every sample's bits unchanged, down to single calls."""
    name = data.draw(st.sampled_from(["inverse_dynamics", "forward_dynamics", "difference", "pose"]))
    dtype = data.draw(st.sampled_from(["float64", "float32"]))
    f = function(SMALL, name, dtype)
    n = data.draw(st.integers(1, 70))
    given_ = [a.astype(dtype) for a in arguments(f, State(SMALL.mechanism, 3, 70))]
    whole = f(*given_)
    cuts = sorted({0, n, *data.draw(st.lists(st.integers(0, n), max_size=6))})
    for a, b in itertools.pairwise(cuts):
        assert np.array_equal(f(*(x[a:b] for x in given_)), whole[a:b])
    k = data.draw(st.integers(0, 69))
    assert np.array_equal(f(*(x[k] for x in given_)), whole[k])
    assert np.array_equal(f(*(x[k : k + 1, None] for x in given_))[0, 0], whole[k])


@pytest.mark.parametrize("dtype", ["float64", "float32"])
@pytest.mark.parametrize("layout", LAYOUTS)
@pytest.mark.parametrize("name", ["inverse_dynamics", "inertia_matrix", "reactions"])
def test_bits_do_not_depend_on_strides(name, layout, dtype):
    """Store the samples in any layout, read and write them, and find the same bits."""
    f = function(SMALL, name, dtype)
    given_ = [a.astype(dtype) for a in arguments(f, State(SMALL.mechanism, 4, 37))]
    expected = f(*given_)
    assert np.array_equal(f(*map(layout, given_)), expected)
    out = layout(np.zeros_like(expected))
    assert f(*given_, out=out) is out
    assert np.array_equal(out, expected)
    mixed = [layout(a) if k % 2 else a for k, a in enumerate(given_)]
    assert np.array_equal(f(*mixed), expected)


def test_broadcast_inputs_are_read_again_and_again():
    """Broadcast one input to all samples, or to all pairs of samples, and find the bits of full arrays."""
    f = SMALL.function("inverse_dynamics")
    s = State(SMALL.mechanism, 5, 11)
    one = f(s.q, s.qd[0], s.qdd)
    assert np.array_equal(one, f(s.q, np.tile(s.qd[0], (11, 1)), s.qdd))
    pairs = f(s.q[:, None], s.qd[None, :], s.qdd[0])
    assert pairs.shape == (11, 11, SMALL.nv)
    assert np.array_equal(pairs[3, 7], f(s.q[3], s.qd[7], s.qdd[0]))
    still = np.broadcast_to(s.q[0], (11, SMALL.nq))
    assert np.array_equal(f(still, s.qd, s.qdd)[4], f(s.q[0], s.qd[4], s.qdd[4]))


def test_an_empty_batch_is_empty():
    """Run an empty batch and get an empty result."""
    assert SMALL.inverse_dynamics(np.zeros((0, 6)), np.zeros((0, 5)), np.zeros((0, 5))).shape == (0, 5)
    assert SMALL.inertia_matrix(np.zeros((3, 0, 6))).shape == (3, 0, 5, 5)


@pytest.mark.parametrize("threads", [0, 1, 2, 3, 7])
def test_bits_do_not_depend_on_threads(threads, monkeypatch):
    """Divide a batch among threads and find the same bits."""
    divide_all(monkeypatch, SMALL.function("inverse_dynamics"))
    n = 3 * 2048 + 5
    s = State(SMALL.mechanism, 6, 64)
    q, qd, qdd = (np.tile(a, (n // 64 + 1, 1))[:n] for a in (s.q, s.qd, s.qdd))
    expected = SMALL.inverse_dynamics(q, qd, qdd)
    assert np.array_equal(SMALL.inverse_dynamics(q, qd, qdd, threads=threads), expected)
    assert np.array_equal(
        SMALL.inverse_dynamics(q, qd[0], qdd[:1], threads=threads)[7], SMALL.inverse_dynamics(q[7], qd[0], qdd[0])
    )
    out = np.empty_like(expected)
    assert SMALL.inverse_dynamics(q, qd, qdd, threads=threads, out=out) is out
    assert np.array_equal(out, expected)


def test_many_threads_may_call_one_function():
    """Call one function from many threads at once, some with NaN, and find each its own result or error."""
    s = State(SMALL.mechanism, 7, 40)
    expected = SMALL.inverse_dynamics(s.q, s.qd, s.qdd)
    bad = np.full(SMALL.nq, np.nan)

    def call(k: int) -> bool:
        if k % 5 == 0:
            with np.errstate(invalid="ignore"), pytest.raises(InputError, match=r"q\[0\] is nan, and 5 more"):
                SMALL.inverse_dynamics(bad, s.qd[0], s.qdd[0])
            return True
        return np.array_equal(SMALL.inverse_dynamics(s.q[k], s.qd[k], s.qdd[k]), expected[k])

    with ThreadPoolExecutor(8) as pool:
        assert all(pool.map(call, list(range(40)) * 20))


@pytest.mark.parametrize("dtype", ["float64", "float32"])
@pytest.mark.parametrize("bad", [np.nan, 1e30])
def test_one_bad_sample_does_not_touch_its_neighbours(bad, dtype):
    """Put NaN or a huge number into one sample of a batch and find the bits of all others unchanged."""
    s = State(SMALL.mechanism, 8, 40)
    f = SMALL.function("forward_dynamics", dtype=dtype)
    given_ = [a.astype(dtype) * 10 for a in (s.q, s.qd, s.tau)]
    expected = f(*given_)
    for k in range(3):
        changed = [a.copy() for a in given_]
        changed[k][17, 0] = bad
        with np.errstate(all="ignore"):
            out = f(*changed)
        assert np.array_equal(np.delete(out, 17, 0), np.delete(expected, 17, 0)), f"input {k}"
        assert not np.array_equal(out[17], expected[17])


def test_functions_and_systems_survive_pickling():
    """Copy functions and systems, and find the same bits from the copies."""
    s = State(SMALL.mechanism, 9)
    f = function(SMALL, "inverse_dynamics")
    given_ = arguments(f, s)
    for made in (pickle.loads(pickle.dumps(f)), copy.deepcopy(f)):
        assert made.request == f.request
        assert np.array_equal(made(*given_), f(*given_))
    system = pickle.loads(pickle.dumps(SMALL))
    assert system.mechanism == SMALL.mechanism
    assert np.array_equal(system.inertia_matrix(s.q), SMALL.inertia_matrix(s.q))


def test_functions_travel_to_fresh_processes():
    """Send a function and a system to a new process and get the same bits back."""
    s = State(SMALL.mechanism, 10)
    f = function(SMALL, "inverse_dynamics")
    given_ = arguments(f, s)
    with ProcessPoolExecutor(1, mp_context=multiprocessing.get_context("spawn")) as pool:
        there = pool.submit(f, *given_).result()
        energy = pool.submit(SMALL.potential_energy, s.q).result()
    assert np.array_equal(there, f(*given_))
    assert np.array_equal(energy, SMALL.potential_energy(s.q))


@pytest.mark.parametrize("name", ALGORITHMS)
@pytest.mark.parametrize("bodies", [0, 1], ids=["empty", "fixed"])
def test_mechanisms_that_cannot_move(bodies, name):
    """Run every function of a mechanism without bodies, or with a fixed one alone."""
    fixed = build_mechanism(
        "still", [Body("a", 2.0, (0.0, 0.0, 0.5))][:bodies], [Joint("j", "fixed", "ground", "a")][:bodies]
    )
    if name == "center_of_mass" and not bodies:
        return  # nothing has no mass centre; see tests/dynamics/test_energy.py
    f = System(fixed).function(name, frame="ground" if ALGORITHMS[name].frame else None)
    results = each(f.checked(tuple(np.zeros((3, *a.shape)) for a in f.inputs)))
    for out, array in zip(results, f.outputs, strict=True):
        assert out.shape == (3, *array.shape)
        assert np.isfinite(out).all()
    if name == "potential_energy":
        assert_close(results[0], np.full(3, bodies * 2.0 * 9.81 * 0.5), 1e-14, "m g h")
    room = tuple(np.full_like(out, 7.0) for out in results)
    given_ = tuple(np.zeros((3, *a.shape)) for a in f.inputs)
    written = each(f.checked(given_, out=room if len(room) > 1 else room[0]))
    assert all(x is y and np.array_equal(x, z) for x, y, z in zip(written, room, results, strict=True))


def test_wrong_shapes_of_a_mechanism_that_cannot_move():
    """Give coordinates to a mechanism that has none and read what is expected."""
    system = System(build_mechanism("still", [], []))
    with pytest.raises(InputError, match=r"potential_energy: q has shape \(2,\); expected \[\.\.\., 0\]"):
        system.potential_energy(np.zeros(2))


def test_description_of_a_function():
    """Read name, shapes and costs of a function."""
    f = SMALL.function("inverse_dynamics", wrenches=True)
    assert repr(f) == "<inverse_dynamics(q[6], qd[5], qdd[5], wrenches[3, 6]) -> tau[5] of random>"
    assert f.cost() == f.program.cost()
    assert f.cost()["sines"] == 4
    assert f.gufunc.signature == "(6),(5),(5),(3,6)->(5)"
