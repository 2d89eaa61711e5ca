"""System: its methods, options and error messages."""

from __future__ import annotations

import copy
import inspect
import pickle
import warnings

import numpy as np
import pytest

import everyday
from kinetree import (
    Body,
    InputError,
    Joint,
    Limits,
    ModelError,
    Parameter,
    System,
    UnknownNameError,
    build_mechanism,
    load,
)
from kinetree.analysis.loops.batch_assembly import assemble as closed
from kinetree.analysis.loops.independence import independent
from kinetree.dynamics import ALGORITHMS
from kinetree.joints import KINDS
from kinetree.model import parse
from kinetree.runtime.compiled import CompiledMechanism
from strategies import State, one_of_each, random_mechanism
from tolerance import assert_close

ARM = System(random_mechanism(["revolute", "prismatic", "helical"], [-1, 0, 1], 51, name="arm"))
S = State(ARM.mechanism, 1, 5)
INPUTS = {"q": S.q, "q2": S.q[::-1], "qd": S.qd, "qdd": S.qdd, "tau": S.tau, "added": abs(S.qdd)}


def call(name: str, **options):
    """Call a method by name, for the frame of the tool if it requires a frame, with the first joint driven."""
    algorithm = ALGORITHMS[name]
    frame = ("tool",) if algorithm.frame else ()
    options |= {"driven": "j0"} if algorithm.driven else {}
    return getattr(ARM, name)(*(INPUTS[i] for i in algorithm.inputs), *frame, **options)


def each(results) -> tuple:
    """Return one output, or several, as a tuple."""
    return results if isinstance(results, tuple) else (results,)


@pytest.mark.parametrize("name", everyday.some(ALGORITHMS))
def test_every_algorithm_is_a_method(name):
    """Call each method and find the result of the function of the same name, with the documented shape."""
    sizes = {"nq": 3, "nv": 3, "nb": 3, "10 nb": 30, "nc": 0}
    algorithm = ALGORITHMS[name]
    f = ARM.function(name, frame="tool" if algorithm.frame else None, driven=["j0"] if algorithm.driven else ())
    expected = each(f(*(INPUTS[i] for i in algorithm.inputs)))
    for out, same, (_, shape) in zip(each(call(name)), expected, algorithm.outputs, strict=True):
        assert out.shape == (5, *(sizes.get(n, n) for n in shape))
        assert np.array_equal(out, same)
    assert getattr(System, name).__doc__


@pytest.mark.parametrize("name", everyday.some(ALGORITHMS))
def test_options_change_no_number(name):
    """Pass every option at its plain value and find the bits of the call without."""
    plain = each(call(name))
    out = tuple(map(np.empty_like, plain))
    given = each(call(name, out=out if len(out) > 1 else out[0], check=False, threads=2, dtype=float))
    assert all(x is y and np.array_equal(x, z) for x, y, z in zip(given, out, plain, strict=True))
    assert all(x.dtype == np.float32 for x in each(call(name, dtype="float32")))
    if ALGORITHMS[name].wrenches:
        pushed = each(call(name, wrenches=np.zeros((3, 6))))
        assert all(np.array_equal(x, y) for x, y in zip(pushed, plain, strict=True))


def test_describes_itself():
    """Read sizes and parts of a system."""
    assert repr(ARM) == "<System 'arm': 3 bodies, nq = 3, nv = 3>"
    assert repr(load("four_bar")) == "<System 'four_bar': 3 bodies, nq = 3, nv = 3, 1 loop>"
    assert repr(load("gear_train")) == "<System 'gear_train': 4 bodies, nq = 4, nv = 4, 3 couplings>"
    assert (ARM.nq, ARM.nv) == (3, 3)
    assert [b.name for b in ARM.bodies] == ["b0", "b1", "b2"]
    assert [j.kind for j in ARM.joints] == ["revolute", "prismatic", "helical"]
    assert System(one_of_each()).nq == 30


def test_functions_are_compiled_once():
    """Get a function twice and find the same object; a dtype may be given in any form."""
    assert ARM.function("inertia_matrix") is ARM.function("inertia_matrix", dtype=np.float64)
    assert ARM.function("inertia_matrix", dtype="float32") is ARM.function("inertia_matrix", dtype=np.float32)


def test_random_states():
    """Draw states from a seed or a generator, alone or in batches, inside the limits."""
    q, qd = ARM.random_state(3)
    assert q.shape == qd.shape == (3,)
    again, _ = ARM.random_state(np.random.default_rng(3))
    assert np.array_equal(q, again)
    assert [x.shape for x in ARM.random_state(3, 4)] == [(4, 3), (4, 3)]
    assert [x.shape for x in ARM.random_state(3, (2, 0))] == [(2, 0, 3), (2, 0, 3)]
    assert [x.shape for x in System(build_mechanism("none", [], [])).random_state(3, 4)] == [(4, 0), (4, 0)]


def test_random_states_of_a_batch_are_one_draw():
    """Draw many states at once: limits hold, quaternions are uniform rotations, and samples differ."""
    system = System(one_of_each())
    q, qd = system.random_state(5, (2, 3000))
    assert q.shape == (2, 3000, system.nq)
    assert qd.shape == (2, 3000, system.nv)
    at = 0
    for joint in system.joints:
        size = KINDS[joint.kind].NQ
        drawn, at = q[..., at : at + size], at + size
        if joint.kind in ("spherical", "free"):
            turns = drawn[..., -4:].reshape(-1, 4)
            assert_close(np.linalg.norm(turns, axis=1), np.ones(6000), 5e-16, "length")  # 2.2e-16
            assert np.abs(np.cov(turns.T) - np.eye(4) / 4).max() < 0.02  # 0.006
        assert size == 0 or len(np.unique(drawn.reshape(-1, size), axis=0)) == 6000
    limited = build_mechanism(
        "l", [Body("b", 1.0)], [Joint("j", "revolute", "ground", "b", limits=Limits((0.1,), (0.4,)))]
    )
    drawn = System(limited).random_state(5, 1000)[0]
    assert 0.1 <= drawn.min() < 0.11 < 0.39 < drawn.max() <= 0.4


@pytest.mark.parametrize("rng", ["a", -1, 1.5, [1, -2]])
def test_random_states_refuse_what_is_no_generator(rng):
    """Give an invalid seed and read what is expected."""
    with pytest.raises(InputError, match="rng is .*; expected a numpy.random.Generator, a seed such as 7, or None"):
        ARM.random_state(rng)


def test_a_matrix_is_a_seed():
    """Give integers as a matrix: they are the seed that a list of them is."""
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", PendingDeprecationWarning)
        seed = np.matrix([[3, 4]])
    assert np.array_equal(ARM.random_state(seed)[0], ARM.random_state([3, 4])[0])


@pytest.mark.parametrize("shape", ["a", -1, 1.5, None, (2, -1), (2, 1.5)])
def test_random_states_refuse_what_is_no_shape(shape):
    """Give an invalid shape and read what is expected."""
    with pytest.raises(InputError, match=r"shape is .*; expected integers of zero or more, such as 1000 or"):
        ARM.random_state(1, shape)


@pytest.mark.parametrize("options", [{}, {"threads": 2}, {"dtype": "float32"}, {"check": False}])
def test_masked_arrays_are_refused(options):
    """Mask an entry: no result is computed with the number that the mask hides."""
    masked = np.ma.masked_array(S.q[0], [False, True, False])
    for _ in range(2):  # the second call is that of a compiled function
        with pytest.raises(InputError, match=r"gravity_torque: q has 1 masked entries; .*x.filled\(0.0\)"):
            ARM.gravity_torque(masked, **options)
    unmasked = np.ma.masked_array(S.q[0])
    assert np.array_equal(ARM.gravity_torque(unmasked), ARM.gravity_torque(S.q[0]))


def test_a_system_needs_a_mechanism():
    """Give something else and read what is expected."""
    with pytest.raises(InputError, match="mechanism is None; expected a Mechanism, the result of assemble"):
        System(None)  # type: ignore[arg-type]


def test_load_refuses_what_names_no_model():
    """Give a name of 10,000 characters, a number, and nothing, and read what is expected."""
    with pytest.raises(UnknownNameError, match="no library mechanism 'xxx"):
        load("x" * 10_000)
    with pytest.raises(ModelError, match="xxx...: does not exist; give the path of a .toml"):
        load("x" * 10_000 + ".toml")
    with pytest.raises(InputError, match="model is 5; expected a library name, or the path of a .toml"):
        load(5)  # type: ignore[arg-type]
    with pytest.raises(UnknownNameError, match="no function 'None'; available: inverse_dynamics"):
        ARM.function(None)  # type: ignore[arg-type]


def test_neutral_of_every_kind():
    """Find the coordinates of zero displacement, with unit quaternions."""
    neutral = System(one_of_each()).neutral()
    assert neutral.shape == (30,)
    assert sorted(set(neutral.tolist())) == [0.0, 1.0]
    assert neutral.sum() == 2.0


@pytest.mark.parametrize(("arguments", "message"), [
    ((np.zeros(2), np.zeros(3), np.zeros(3)), "inverse_dynamics: q has shape (2,); expected [..., 3]"),
    ((np.zeros(3), np.zeros((4, 5)), np.zeros(3)), "inverse_dynamics: qd has shape (4, 5); expected [..., 3]"),
    ((1.0, np.zeros(3), np.zeros(3)), "inverse_dynamics: q has shape (); expected [..., 3]"),
    ((np.zeros((2, 3)), np.zeros((3, 3)), np.zeros(3)),
     "inverse_dynamics: the leading shapes do not fit together: q (2,), qd (3,), qdd ()"),
    ((["a"] * 3, np.zeros(3), np.zeros(3)), "inverse_dynamics: q is not an array of real numbers"),
    ((np.zeros(3), np.zeros(3) * 1j, np.zeros(3)), "inverse_dynamics: qd is not an array of real numbers"),
    ((np.zeros(3), None, np.zeros(3)), "inverse_dynamics: qd is not an array of real numbers"),
    (([[1.0], [1.0, 2.0]], np.zeros(3), np.zeros(3)), "inverse_dynamics: q is not an array of real numbers"),
])  # fmt: skip
@pytest.mark.parametrize("options", [{}, {"check": False}, {"threads": 2}], ids=["plain", "unchecked", "threads"])
def test_wrong_arguments_say_what_was_expected(arguments, message, options):
    """Give wrong shapes and types and read which array, what was given and what is expected."""
    with pytest.raises(InputError) as caught:
        ARM.inverse_dynamics(*arguments, **options)
    assert str(caught.value) == message
    assert isinstance(caught.value, ValueError)


@pytest.mark.parametrize(("options", "message"), [
    ({"out": np.zeros(4)}, "inverse_dynamics: out has shape (4,); expected (5, 3)"),
    ({"out": np.zeros((5, 3), dtype=int)}, "inverse_dynamics: Cannot cast ufunc 'inverse_dynamics' output"),
    ({"wrenches": np.zeros(6)}, "inverse_dynamics: wrenches has shape (6,); expected [..., 3, 6]"),
    ({"dtype": "int32"}, "dtype is 'int32'; expected 'float64' or 'float32'"),
    ({"threads": -1}, "threads is -1; expected 1 or more, or 0 for all cores"),
    ({"parameters": [1.0]}, "'arm' has no free parameters; declare them with free = true in the mechanism"),
    ({"frame": "tool"}, "inverse_dynamics takes no frame"),
    ({"axes": "body"}, "inverse_dynamics has no choice of axes"),
])  # fmt: skip
def test_wrong_options_say_what_was_expected(options, message):
    """Give impossible options and read what is possible."""
    with pytest.raises(InputError) as caught:
        ARM.inverse_dynamics(S.q, S.qd, S.qdd, **options)
    assert str(caught.value).startswith(message)


def test_a_dtype_that_is_none_is_refused_as_one():
    """Mistype a dtype and read which there are, as for any other option."""
    with pytest.raises(InputError, match="dtype is 'flaot32'; expected 'float64' or 'float32'"):
        ARM.gravity_torque(S.q, dtype="flaot32")


def test_a_wrong_count_of_arrays():
    """Give a function too few arrays and read which it takes."""
    with pytest.raises(InputError, match=r"inverse_dynamics takes 3 arrays \(q, qd, qdd\), not 2"):
        ARM.function("inverse_dynamics").checked((S.q, S.qd))


def test_unknown_frames_list_the_known():
    """Mistype a frame and read which there are."""
    for name in ("pose", "jacobian"):
        with pytest.raises(UnknownNameError) as caught:
            getattr(ARM, name)(S.q, "tol")
        assert str(caught.value) == "no frame 'tol'; did you mean 'tool'? available: tool, b0, b1, b2, ground"
    with pytest.raises(UnknownNameError, match="no function 'inertia'; "):
        ARM.function("inertia")


@pytest.mark.parametrize("frame", [["tool"], {"tool": 1}, 3])
def test_frames_that_are_not_names_list_the_known(frame):
    """Give a list, a dictionary or a number as a frame, and read which frames there are."""
    for name in ("pose", "jacobian"):
        with pytest.raises(InputError) as caught:
            getattr(ARM, name)(S.q, frame)
        message = f"{name} needs a frame by name, not {frame!r}: one of tool, b0, b1, b2, ground"
        assert str(caught.value) == message


def test_names_and_axes_that_are_lists_are_refused():
    """Give lists as the name of a function and as axes, and read what is possible."""
    with pytest.raises(UnknownNameError, match="no function \"\\['pose'\\]\"; "):
        ARM.function(["pose"])
    for axes in ([], ["world"]):
        with pytest.raises(InputError, match="expected 'body' or 'world'"):
            ARM.jacobian(S.q, "tool", axes=axes)


@pytest.mark.parametrize("bad", [np.nan, np.inf, -np.inf])
@pytest.mark.parametrize("place", range(3))
def test_input_that_is_not_finite_is_refused_by_entry(place, bad):
    """Put NaN or an infinity anywhere and read its index."""
    arguments = [S.q.copy(), S.qd.copy(), S.qdd.copy()]
    arguments[place][3, 1] = bad
    name = ("q", "qd", "qdd")[place]
    message = f"inverse_dynamics: {name}[3, 1] is {bad}; give finite numbers, or check=False to let NaN through"
    for options in ({}, {"threads": 2}, {"dtype": "float32"}, {"out": np.empty((5, 3))}):
        with np.errstate(all="ignore"), pytest.raises(InputError) as caught:
            ARM.inverse_dynamics(*arguments, **options)
        assert str(caught.value) == message
    with np.errstate(all="ignore"):
        out = ARM.inverse_dynamics(*arguments, check=False)
    assert not np.isfinite(out[3]).all()
    assert np.isfinite(np.delete(out, 3, 0)).all()


@pytest.mark.parametrize("bad", [np.nan, np.inf])
@pytest.mark.parametrize("name", ["gravity_torque", "inertia_matrix"])
def test_input_that_is_not_finite_gives_an_error_and_no_warning(name, bad):
    """Put NaN or an infinity into an angle with warnings as errors, and still read Kinetree's own error."""
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        with pytest.raises(InputError, match=rf"{name}: q\[2\] is {bad}"):
            getattr(ARM, name)([0.0, 0.0, bad])


def test_several_bad_entries_are_counted():
    """Put NaN into all of an array and read the first entry and how many more."""
    with np.errstate(all="ignore"), pytest.raises(InputError) as caught:
        ARM.gravity_torque(np.full((5, 3), np.nan))
    assert str(caught.value) == (
        "gravity_torque: q[0, 0] is nan, and 14 more entries are not finite; "
        "give finite numbers, or check=False to let NaN through"
    )


def test_bad_wrenches_and_parameters_are_named():
    """Put NaN into wrenches and parameters and read which of them."""
    wrenches = np.zeros((3, 6))
    wrenches[1, 4] = np.nan
    with pytest.raises(InputError, match=r"gravity_torque: wrenches\[1, 4\] is nan"):
        ARM.gravity_torque(S.q, wrenches=wrenches)
    body = Body("a", parse("m"), (0.1, 0.2, 0.3))
    made = System(build_mechanism("p", [body], [Joint("j", "revolute", "ground", "a", axis=(1.0, 0.0, 0.0))],
                           parameters=[Parameter("m", 1.0, free=True)]))  # fmt: skip
    with pytest.raises(InputError, match=r"gravity_torque: parameters\[0\] is nan"):
        made.gravity_torque([0.1], parameters=[np.nan])
    with pytest.raises(InputError, match=r"gravity_torque: parameters has shape \(2,\); expected \[\.\.\., 1\]"):
        made.gravity_torque([0.1], parameters=[1.0, 2.0])
    assert_close(made.gravity_torque([0.1], parameters=[2.0]), 2 * made.gravity_torque([0.1]), 1e-15, "twice the mass")


def test_numbers_of_any_kind_are_taken():
    """Give lists, integers, booleans and float32, and find the numbers of float64 arrays."""
    expected = ARM.gravity_torque(np.array([1.0, 0.0, 1.0]))
    for q in ([1, 0, 1], (1.0, 0.0, 1.0), np.array([1, 0, 1], dtype=np.int8), np.array([True, False, True]),
              np.array([1, 0, 1], dtype=np.float32), np.array([1, 0, 1], dtype=np.float16)):  # fmt: skip
        out = ARM.gravity_torque(q)
        assert out.dtype == np.float64
        assert np.array_equal(out, expected)


def test_a_zero_quaternion_is_never_silent():
    """Give a quaternion of length zero, which is no rotation, and get an error rather than NaN."""
    ball = System(random_mechanism(["spherical"], [-1], 1))
    with np.errstate(all="ignore"), pytest.raises(InputError, match="quaternion"):
        ball.gravity_torque(np.zeros(4))


def test_a_tip_without_mass_is_refused_by_name():
    """Compute accelerations that nothing determines and read which joint is the cause."""
    made = build_mechanism("light", [Body("a", 1.0, (1.0, 0.0, 0.0)), Body("b")],
                    [Joint("j", "revolute", "ground", "a"), Joint("k", "spherical", "a", "b")])  # fmt: skip
    system = System(made)
    with pytest.raises(ModelError, match="no inertia resists the motion of joint 'k'"):
        system.forward_dynamics(system.neutral(), np.zeros(4), np.zeros(4))
    assert system.inverse_dynamics(system.neutral(), np.zeros(4), np.ones(4)).shape == (4,)


def test_analyses_take_a_compiled_mechanism():
    """Give analyses the compiled functions alone, without the methods of System."""
    ring = CompiledMechanism(load("four_bar").mechanism)
    q = closed(ring)
    assert np.abs(ring.closure_residual(q)).max() < 1e-12
    assert independent(ring, q).mobility == 1
    assert not hasattr(ring, "assemble")


def test_a_subclass_stays_one():
    """Derive a class from System and keep it in copies, trees, fixed parameters, text and pickles."""
    arm = OwnSystem(load("four_bar").mechanism)
    assert repr(arm).startswith("<OwnSystem 'four_bar': ")
    for made in (arm.tree, pickle.loads(pickle.dumps(arm)), copy.copy(arm)):
        assert type(made) is OwnSystem
    assert np.array_equal(arm.assemble(), load("four_bar").assemble())


def test_methods_of_analyses_document_themselves():
    """Read the docstring and the names of arguments of every analysis on the class."""
    for name in ("verify", "ledger", "doctor", "assemble", "loads", "actuation", "cost", "equations", "denoc"):
        method = getattr(System, name)
        assert method.__doc__.splitlines()[0].endswith(".") or ":" in method.__doc__, name
        assert "self" in inspect.signature(method).parameters, name
    assert "actuated" in inspect.signature(System.inverse_dynamics).parameters


class OwnSystem(System):
    """A class of a user's own."""
