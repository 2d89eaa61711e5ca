"""Methods of compiled functions: their signatures, subclasses, and algorithms with several outputs."""

from __future__ import annotations

import copy
import inspect
import pickle

import numpy as np
import pytest

from interpreted import relative
from kinetree import InputError, System
from kinetree.dynamics import ALGORITHMS, Algorithm, inertia, inverse
from kinetree.runtime.function import Function
from kinetree.runtime.methods import complete
from strategies import State, random_mechanism
from tolerance import assert_close

MECHANISM = random_mechanism(["revolute", "prismatic", "spherical"], [-1, 0, 1], 17, name="three")
S = State(MECHANISM, 3, 5)
COMMON = ["parameters", "out", "threads", "check", "dtype"]


@pytest.mark.parametrize("name", ALGORITHMS)
def test_signatures_list_every_option(name):
    """Read arrays, frame and options of a method, before and after its first call."""
    algorithm = ALGORITHMS[name]
    method = getattr(System, name)
    parameters = inspect.signature(method).parameters.values()
    options = [p.name for p in parameters if p.kind is p.KEYWORD_ONLY]
    more = ["wrenches", "forces"] * algorithm.wrenches + ["axes"] * bool(algorithm.axes) + ["driven"] * algorithm.driven
    own = {"inverse_dynamics": ["actuated", "weights", "share"], "regressor": ["columns", "actuated", "weights"]}
    assert options == COMMON + more + own.get(name, [])
    others = [p.name for p in parameters if p.kind is not p.KEYWORD_ONLY]
    assert len(others) == 1 + len(algorithm.inputs) + algorithm.frame
    assert method.__doc__.startswith("Return")
    assert method.__qualname__.endswith(f".{name}")


def described(method) -> tuple:
    """Return name, documentation, and names, kinds and defaults of the arguments of a method."""
    arguments = [(p.name, p.kind, p.default) for p in inspect.signature(method).parameters.values()]
    return method.__name__, inspect.getdoc(method), arguments


def test_calls_leave_methods_as_they_were():
    """Call a method, and find its documentation and its signature unchanged."""
    arm = System(MECHANISM)
    before = described(arm.inverse_dynamics)
    for _ in range(2):
        arm.inverse_dynamics(S.q, S.qd, S.qdd)
        arm.inverse_dynamics(q=S.q, qd=S.qd, qdd=S.qdd, check=False)
    assert described(arm.inverse_dynamics) == before
    assert described(arm.inverse_dynamics) != described(arm.forward_dynamics)


def test_looking_at_methods_compiles_nothing():
    """Read all attributes, as editors do, and find no compiled function."""
    arm = System(MECHANISM)
    assert all(callable(getattr(arm, name)) for name in ALGORITHMS)
    assert arm._functions == {}


def test_options_compile_their_own_code_only():
    """Call with wrenches first, also for derivatives, and find the code without wrenches not compiled."""
    system, w = System(MECHANISM), S.wrenches
    found = system.inverse_dynamics(S.q, S.qd, qdd=S.qdd, wrenches=w)
    system.forward_dynamics_derivatives(S.q, S.qd, S.tau, wrenches=w)
    assert [(r.name, r.wrenches) for r in system._functions] == [("inverse_dynamics", True), ("forward_dynamics", True)]
    system.inverse_dynamics(S.q, S.qd, S.qdd)
    assert np.array_equal(system.inverse_dynamics(S.q, S.qd, S.qdd, wrenches=w), found)
    assert [r.wrenches for r in system._functions] == [True, True, False]


def test_methods_set_by_users_are_kept():
    """Replace a method of an instance, and of a class, and find the replacement also after calls of the original."""
    arm = System(MECHANISM)
    arm.bias_torque = "mine"  # type: ignore[method-assign]
    System.bias_torque(arm, S.q[0], S.qd[0])
    assert arm.bias_torque == "mine"

    class Late(System):
        pass

    late = Late(MECHANISM)
    expected = late.bias_torque(S.q[0], S.qd[0])
    Late.bias_torque = lambda self, q, qd: -super(Late, self).bias_torque(q, qd)  # type: ignore[method-assign]
    assert np.array_equal(Late(MECHANISM).bias_torque(S.q[0], S.qd[0]), -expected)


def test_copies_and_pickles_of_methods():
    """Copy and pickle a system and its methods, before and after calls, and get the same numbers."""
    arm = System(MECHANISM)
    one = S.q[0], S.qd[0]
    again = pickle.loads(pickle.dumps(arm.bias_torque))
    expected = arm.bias_torque(*one)
    for f in (
        again,
        pickle.loads(pickle.dumps(arm.bias_torque)),
        copy.deepcopy(arm.bias_torque),
        copy.copy(arm).bias_torque,
        copy.deepcopy(arm).bias_torque,
        pickle.loads(pickle.dumps(arm)).bias_torque,
    ):
        assert np.array_equal(f(*one), expected)
    assert isinstance(pickle.loads(pickle.dumps(Doubled(MECHANISM).forward_dynamics)).__self__, Doubled)


class Doubled(System):
    """A system whose accelerations are doubled."""

    def forward_dynamics(self, q, qd, tau, **options):
        """Return twice the accelerations."""
        return 2 * super().forward_dynamics(q, qd, tau, **options)


def test_a_subclass_changes_every_call():
    """Override a method that calls the inherited one, and find the change in the first call and in later ones."""
    arm, plain = Doubled(MECHANISM), System(MECHANISM)
    expected = 2 * plain.forward_dynamics(S.q, S.qd, S.tau)
    for _ in range(3):
        assert np.array_equal(arm.forward_dynamics(S.q, S.qd, S.tau), expected)
        assert np.array_equal(arm.forward_dynamics(S.q[1], S.qd[1], S.tau[1]), expected[1])
    assert np.array_equal(arm.forward_dynamics(S.q, S.qd, S.tau, threads=2), expected)


def test_actuated_joints_belong_to_inverse_dynamics():
    """Refuse actuated joints for other functions, and options that do not exist."""
    arm = System(MECHANISM)
    with pytest.raises(InputError, match="bias_torque takes no actuated joints; inverse_dynamics and regressor do"):
        arm.bias_torque(S.q, S.qd, actuated=["j1"])  # type: ignore[call-arg]
    with pytest.raises(TypeError, match="unexpected keyword argument 'thread'"):
        arm.bias_torque(S.q, S.qd, thread=2)  # type: ignore[call-arg]
    with pytest.raises(AttributeError, match="'System' object has no attribute 'bias'"):
        arm.bias  # noqa: B018  # type: ignore[attr-defined]


def both(tree):
    """Return the inertia matrix and the bias torques."""
    return inertia.inertia_matrix(tree), inverse.inverse_dynamics(tree)


@pytest.fixture
def two(monkeypatch):
    """Add an algorithm with two outputs to the table."""
    page = Algorithm(both, ("q", "qd"), ("I", "h"), (("nv", "nv"), ("nv",)), wrenches=True, lumps=True)
    monkeypatch.setitem(ALGORITHMS, "equations_of_motion", page)
    complete(System)  # as for the table's own entries, when the package is imported
    yield System(MECHANISM)
    del System.equations_of_motion


def test_an_algorithm_with_two_outputs_is_one_entry(two):
    """Call an added algorithm as a method: batches, threads, options, out and pickles."""
    matrix, h = two.equations_of_motion(S.q, S.qd)
    assert_close(relative(matrix, two.inertia_matrix(S.q)), 0.0, 1e-14, "inertia")  # 0
    assert_close(relative(h, two.bias_torque(S.q, S.qd)), 0.0, 1e-14, "torques")  # 0
    one = two.equations_of_motion(S.q[2], S.qd[2])
    assert np.array_equal(one[0], matrix[2])
    assert np.array_equal(one[1], h[2])
    out = np.empty_like(matrix), np.empty_like(h)
    found = two.equations_of_motion(S.q, S.qd, out=out)
    assert found[0] is out[0]
    assert found[1] is out[1]
    assert np.array_equal(out[1], h)
    single = two.equations_of_motion(S.q, S.qd, dtype="float32")
    assert [x.dtype for x in single] == [np.float32, np.float32]
    wide = np.broadcast_to(S.q[:, None], (5, 4000, MECHANISM.nq))
    many = two.equations_of_motion(wide, S.qd[:, None], threads=2)
    assert np.array_equal(many[0][:, 7], matrix)
    assert np.array_equal(many[1][:, 7], h)
    f = two.function("equations_of_motion")
    assert repr(f) == "<equations_of_motion(q[6], qd[5]) -> I[5, 5], h[5] of three>"
    again = pickle.loads(pickle.dumps(f))
    assert isinstance(again, Function)
    assert np.array_equal(again(S.q, S.qd)[1], h)
    assert np.array_equal(pickle.loads(pickle.dumps(two)).equations_of_motion(S.q, S.qd)[0], matrix)
    assert f.cost()["multiplications"] > two.function("inertia_matrix").cost()["multiplications"]
    push = {"wrenches": np.full((3, 6), 0.3)}
    pushed = two.equations_of_motion(S.q, S.qd, **push)[1]
    assert_close(relative(pushed, two.bias_torque(S.q, S.qd, **push)), 0.0, 1e-14, "pushed")  # 0


def test_faults_of_two_outputs_are_named(two):
    """Give unsuitable arrays for the results, an unsuitable lowering and NaN, and read what is wrong."""
    for options, message in [
        ({"out": np.empty((5, 5))}, "out has 1 arrays; expected a tuple of one each for I, h"),
        ({"out": (np.empty((5, 5, 5)), np.empty((5, 4)))}, "out for h has shape (5, 4); expected (5, 5)"),
    ]:
        with pytest.raises(InputError) as caught:
            two.equations_of_motion(S.q, S.qd, **options)
        assert str(caught.value) == f"equations_of_motion: {message}"
    with pytest.raises(InputError, match="equations_of_motion has several outputs, and rolled code has only one"):
        two.function("equations_of_motion", lowering="rolled")
    with pytest.raises(InputError, match=r"equations_of_motion: q\[0, 1\] is nan"):
        two.equations_of_motion(np.where(np.arange(6) == 1, np.nan, S.q[:1]), S.qd[:1])


def test_two_outputs_of_a_mechanism_that_cannot_move(two):
    """Return empty arrays of the right shapes."""
    fixed = System(random_mechanism(["fixed"], [-1], 5))
    matrix, h = fixed.equations_of_motion(np.zeros((2, 0)), np.zeros((2, 0)))
    assert (matrix.shape, h.shape) == ((2, 0, 0), (2, 0))
