"""Functions in CasADi: expressions and native callbacks against each other, the library, and a model by hand."""

from __future__ import annotations

import gc
import sys

import casadi as ca
import numpy as np
import pytest

import everyday
import kinetree as kt
from kinetree.dynamics import ALGORITHMS
from kinetree.errors import InputError, UnknownNameError
from kinetree.model import parse
from public_robots import public_robots
from tolerance import assert_close


def state(system: kt.System) -> list[np.ndarray]:
    """Return a random state, closed if there are loops, and torques."""
    q, qd = system.random_state(3)
    if system.closures:
        q = system.assemble(q)
    return [q, qd, np.random.default_rng(5).normal(size=system.nv)]


def floating() -> kt.System:
    """Return two bodies on a hinge, free in space."""
    base = kt.Body("base", 2.3, (0.1, -0.2, 0.3), (0.4, 0.5, 0.6, 0.02, -0.03, 0.05))
    link = kt.Body("link", 0.7, (0.3, 0.1, -0.1), (0.03, 0.05, 0.04, 0.002, 0.003, -0.001))
    free = kt.Joint("free", "free", "ground", "base")
    hinge = kt.Joint("hinge", "revolute", "base", "link", axis=(0.0, 0.6, 0.8))
    return kt.System(kt.build_mechanism("floating", [base, link], [free, hinge]))


def forms(system: kt.System, name: str, **options) -> list[ca.Function]:
    """Return a function as an expression and as a callback."""
    return [system.casadi(name, form=form, **options) for form in ("sx", "native")]


def assert_equal(found, expected, label: str) -> None:
    """Compare to 1e-12 of the largest entry."""
    expected = np.asarray(expected)
    assert_close(np.asarray(found), expected, 1e-12 * np.abs(expected).max(), label)


@pytest.mark.parametrize(
    "name",
    everyday.some(
        [
            pytest.param("puma560", marks=pytest.mark.slow),
            pytest.param("space_robot_3r", marks=pytest.mark.slow),
            "planar_3r",
            "floating",
            "four_bar",
        ]
    ),
)
def test_values_and_jacobians_of_both_forms(name):
    """Agree with the library and with each other, for an arm, a free-floating robot and a mechanism with a loop."""
    system = floating() if name == "floating" else kt.load(name)
    given = state(system)
    expected = system.forward_dynamics(*given)
    expression, native = forms(system, "forward_dynamics")
    for f in (expression, native):
        assert [f.name_in(k) for k in range(3)] == ["q", "qd", "tau"] and f.name_out(0) == "qdd"
        assert_equal(f(*given), expected[:, None], f"{name}: accelerations")
    by_expression, by_native = (f.jacobian()(*given, 0) for f in (expression, native))
    for x, y in zip(by_expression, by_native, strict=True):
        assert x.shape == y.shape and y.nnz() <= x.nnz()
        assert_equal(y, x, f"{name}: Jacobians of both forms")
    if system.nq == system.nv:
        for x, y in zip(system.forward_dynamics_derivatives(*given), by_native, strict=True):
            assert_equal(y, x, f"{name}: Jacobians of the library")


@pytest.mark.slow
def test_a_public_robot():
    """Agree for a UR5, of which CasADi gets values and Jacobians in both forms."""
    path = next(path for path in public_robots() if path.name == "ur5_robot.urdf")
    system = kt.load(path)
    given = state(system)
    expression, native = forms(system, "forward_dynamics")
    assert_equal(native(*given), system.forward_dynamics(*given)[:, None], "native accelerations")
    assert_equal(expression(*given), system.forward_dynamics(*given)[:, None], "accelerations of the expression")
    for x, y in zip(expression.jacobian()(*given, 0), native.jacobian()(*given, 0), strict=True):
        assert_equal(y, x, "Jacobians")


@everyday.long
def test_coordinates_of_quaternions_are_displaced_entry_by_entry():
    """Take the derivative along integrate(q, dq) as the plain Jacobian times the rates of the nq coordinates."""
    system = floating()
    q, qd, tau = state(system)
    native = system.casadi("forward_dynamics", form="native")
    plain = np.asarray(native.jacobian()(q, qd, tau, 0)[0])
    assert plain.shape == (system.nv, system.nq) and system.nq == system.nv + 1
    rates = np.stack([system.coordinate_rate(q, e) for e in np.eye(system.nv)], axis=1)
    tangent = system.function("forward_dynamics").jacobian("q")(q, qd, tau)
    assert_equal(plain @ rates, tangent, "the tangent space")


def test_hessians_of_native_code():
    """Agree with CasADi's own second derivatives of the expression."""
    system = kt.load("planar_2r")
    q, qd, tau = state(system)
    x = ca.MX.sym("x", 4)
    found = []
    for f in forms(system, "forward_dynamics"):
        y = ca.dot([1.3, -0.7], f(x[:2], x[2:], tau))
        found.append(ca.Function("h", [x], [ca.hessian(y, x)[0]])(ca.vertcat(q, qd)))
    assert np.abs(np.asarray(found[0])).max() > 0.1
    assert_equal(found[1], found[0], "Hessians")


def test_every_function():
    """Make an expression of each function of a mechanism with a loop, with distinct names of arrays."""
    system = kt.load("four_bar")
    frame = system.bodies[-1].name
    for name, algorithm in ALGORITHMS.items():
        f = system.casadi(name, frame=frame if algorithm.frame else None)
        assert f.n_out() == len(algorithm.outputs)
        assert len({*f.name_in(), *f.name_out()}) == f.n_in() + f.n_out()


def test_driven_joints_and_several_outputs():
    """Agree in accelerations and torques of hybrid dynamics, and in their Jacobians."""
    arm = kt.load("planar_2r")
    q, qd, x = state(arm)
    driven = [arm.joints[0].name]
    expected = arm.hybrid_dynamics(q, qd, x, 0.7 * x, driven=driven)
    slopes = []
    for f in forms(arm, "hybrid_dynamics", driven=driven):
        assert f.name_out() == ["qdd_out", "tau_out"]
        for found, wanted in zip(f(q, qd, x, 0.7 * x), expected, strict=True):
            assert_equal(found, wanted[:, None], "hybrid dynamics")
        slopes.append(f.jacobian()(q, qd, x, 0.7 * x, 0, 0))
    for x, y in zip(*slopes, strict=True):
        assert_close(np.asarray(y), np.asarray(x), 1e-11, "Jacobians")


def test_third_derivatives():
    """Agree with CasADi's derivatives of its Jacobian's Jacobian, also where blocks are zero."""
    arm = kt.load("planar_2r")
    thirds = []
    for f in forms(arm, "gravity_torque"):
        third = f.jacobian().jacobian().jacobian()
        thirds.append(third(np.array([0.3, -0.4]), *[0] * (third.n_in() - 1)))
    for x, y in zip(*(t if isinstance(t, tuple) else (t,) for t in thirds), strict=True):
        assert x.shape == y.shape
        assert_close(np.asarray(y), np.asarray(x), 1e-12, "third derivatives")


@everyday.long
def test_matrices_wrenches_and_parameters():
    """Keep rows and columns of matrices, of stacks of them, and of inputs, in values and in Jacobians."""
    arm = kt.load("planar_2r")
    q, qd, qdd = state(arm)
    tool = arm.bodies[-1].name
    wrenches = np.random.default_rng(7).normal(size=(2, 6))
    for name, given, options, expected in (
        ("jacobian", (q,), {"frame": tool}, arm.jacobian(q, tool)),
        ("poses", (q,), {}, arm.poses(q).reshape(-1, 4)),
        ("kinetic_energy", (q, qd), {}, [[arm.kinetic_energy(q, qd)]]),
        ("inverse_dynamics", (q, qd, qdd, wrenches), {"wrenches": True},
         arm.inverse_dynamics(q, qd, qdd, wrenches=wrenches)[:, None]),
    ):  # fmt: skip
        expression, native = forms(arm, name, **options)
        for f in (expression, native):
            assert_equal(f(*given), expected, name)
        slopes = [f.jacobian()(*given, 0) for f in (expression, native)]
        pairs = zip(*slopes, strict=True) if len(given) > 1 else [slopes]
        for x, y in pairs:
            assert_equal(y, x, f"Jacobian of {name}")


def test_free_parameters_are_the_last_input():
    """Differentiate the torque of a pendulum with respect to its length."""
    bob = kt.Body("bob", 1.3, (parse("l"), 0.0, 0.0))
    hinge = kt.Joint("hinge", "revolute", "ground", "bob", axis=(0.0, 1.0, 0.0))
    pendulum = kt.System(kt.build_mechanism("pendulum", [bob], [hinge], parameters=[kt.Parameter("l", 0.7, free=True)]))
    for f in forms(pendulum, "gravity_torque"):
        assert f.name_in(1) == "parameters"
        assert_equal(f.jacobian()(0.4, 0.9, 0)[1], [[-1.3 * 9.81 * np.cos(0.4)]], "d tau / d l")


def test_a_missing_argument_is_zero():
    """Call by buffers with positions alone, and with no place for one of two outputs."""
    system = kt.load("planar_2r")
    q, zero, found = np.array([0.3, -0.4]), np.zeros(2), np.full(2, np.nan)
    buffer, run = system.casadi("forward_dynamics", form="native").buffer()
    buffer.set_arg(0, memoryview(q))
    buffer.set_res(0, memoryview(found))
    run()
    assert_equal(found, system.forward_dynamics(q, zero, zero), "at rest without torques")
    slope = np.full(4, np.nan)
    buffer, run = system.casadi("forward_dynamics", form="native").jacobian().buffer()
    buffer.set_arg(0, memoryview(q))
    buffer.set_res(2, memoryview(slope))
    run()
    assert_equal(slope.reshape(2, 2), system.inverse_inertia_matrix(q), "the last of three outputs")


def test_callbacks_live_as_long_as_expressions():
    """Evaluate an expression after all names of its callback are gone."""
    x = ca.MX.sym("x", 2)
    y = kt.load("planar_2r").casadi("gravity_torque", form="native")(x)
    gc.collect()
    q = [0.3, -0.4]
    assert_equal(ca.Function("f", [x], [y])(q), kt.load("planar_2r").gravity_torque(q)[:, None], "gravity")


def cart_and_pole() -> kt.System:
    """Return a pole on a cart, upright at zero."""
    cart = kt.Body("cart", 2.0, (0.0, 0.0, 0.0), (0.1, 0.1, 0.1, 0.0, 0.0, 0.0))
    pole = kt.Body("pole", 0.3, (0.0, 0.0, 0.5), (0.03, 0.03, 0.001, 0.0, 0.0, 0.0))
    rail = kt.Joint("rail", "prismatic", "ground", "cart", axis=(1.0, 0.0, 0.0))
    pivot = kt.Joint("pivot", "revolute", "cart", "pole", axis=(0.0, 1.0, 0.0))
    return kt.System(kt.build_mechanism("cart and pole", [cart, pole], [rail, pivot]))


def by_hand() -> ca.Function:
    """Return its accelerations from Lagrange's equations in SX."""
    q, qd, tau = ca.SX.sym("q", 2), ca.SX.sym("qd", 2), ca.SX.sym("tau", 2)
    ml, J, total = 0.3 * 0.5, 0.03 + 0.3 * 0.5**2, 2.3
    c, s = ca.cos(q[1]), ca.sin(q[1])
    a, b = tau[0] + ml * s * qd[1] ** 2, tau[1] + ml * 9.81 * s
    qdd = ca.vertcat(J * a - ml * c * b, total * b - ml * c * a) / (total * J - (ml * c) ** 2)
    return ca.Function("by_hand", [q, qd, tau], [qdd])


def swing_up(acceleration: ca.Function, intervals: int = 25, duration: float = 2.5) -> tuple[dict, np.ndarray]:
    """Return the statistics of IPOPT and the solution of a swing-up by multiple shooting."""
    opti, h = ca.Opti(), duration / intervals
    x, u = opti.variable(4, intervals + 1), opti.variable(1, intervals)

    def rate(x, u):
        return ca.vertcat(x[2:], acceleration(x[:2], x[2:], ca.vertcat(u, 0)))

    for k in range(intervals):
        a = rate(x[:, k], u[k])
        b = rate(x[:, k] + h / 2 * a, u[k])
        c = rate(x[:, k] + h / 2 * b, u[k])
        d = rate(x[:, k] + h * c, u[k])
        opti.subject_to(x[:, k + 1] == x[:, k] + h / 6 * (a + 2 * b + 2 * c + d))
    opti.subject_to(x[:, 0] == ca.vertcat(0, np.pi, 0, 0))
    opti.subject_to(x[:, -1] == 0)
    opti.subject_to(opti.bounded(-20, u, 20))
    opti.minimize(h * ca.sumsqr(u))
    opti.set_initial(x[1, :], np.linspace(np.pi, 0, intervals + 1))
    opti.solver("ipopt", {"print_time": False}, {"print_level": 0, "sb": "yes"})
    solution = opti.solve()
    return solution.stats(), np.vstack([solution.value(x)[:, :-1], solution.value(u)])


@everyday.long
def test_ipopt_takes_the_iterates_of_a_model_by_hand():
    """Solve the swing-up of a pole with both forms and with equations by hand, iterate by iterate."""
    system = cart_and_pole()
    expected, solution = swing_up(by_hand())
    assert expected["success"] and expected["iter_count"] > 8
    for f in forms(system, "forward_dynamics"):
        stats, found = swing_up(f)
        assert stats["iter_count"] == expected["iter_count"]
        for name in ("obj", "inf_pr", "inf_du", "alpha_pr"):
            x, y = (np.array(s["iterations"][name]) for s in (stats, expected))
            assert_close(x, y, 1e-8 * (1.0 + np.abs(y).max()), f"{name} of each iterate")
        assert_close(found, solution, 1e-9, "solution")


def test_wrong_requests(monkeypatch):
    """Refuse unknown functions and forms, wrong shapes, single precision, rolled code, and a missing CasADi."""
    arm = kt.load("planar_2r")
    with pytest.raises(UnknownNameError, match="no function 'forward_dynamic'; did you mean 'forward_dynamics'"):
        arm.casadi("forward_dynamic")
    with pytest.raises(InputError, match=r"form is 'mx'; expected 'sx' for an expression, or 'native' for compiled"):
        arm.casadi("forward_dynamics", form="mx")
    with pytest.raises(InputError, match="forward_dynamics: dtype is 'float32'; CasADi computes in float64"):
        arm.casadi("forward_dynamics", dtype="float32")
    with pytest.raises(InputError, match="compiled with loops over the bodies.*use lowering='unrolled'"):
        arm.casadi("inverse_dynamics", lowering="rolled")
    with pytest.raises(InputError, match="closure_residual: gap has no entries; use form='sx'"):
        arm.casadi("closure_residual", form="native")
    for form in ("sx", "native"):
        with pytest.raises(RuntimeError, match=r"mismatching shape.*Got 3-by-1. Allowed dimensions"):
            arm.casadi("gravity_torque", form=form)([0.1, 0.2, 0.3])
    monkeypatch.setitem(sys.modules, "casadi", None)
    with pytest.raises(InputError, match=r"need the package casadi, .*; pip install 'kinetree\[optimal\]'"):
        arm.casadi("forward_dynamics")
