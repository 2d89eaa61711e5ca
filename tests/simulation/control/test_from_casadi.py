"""CasADi functions replayed into a trace: the numbers of CasADi, operation by operation."""

from __future__ import annotations

import casadi as ca
import numpy as np
import pytest

from forces_by_numpy import torques
from interpreted import relative
from kinetree import InputError
from kinetree.simulation.acting.from_casadi import FromCasadi, replay
from kinetree.simulation.acting.rates import ForcedMechanism, rates
from native_program import gufunc, traced
from strategies import State, random_mechanism
from tolerance import assert_close

ARM = random_mechanism(["revolute", "prismatic", "helical"], [-1, 0, 1], 3)
NAMES = ("t", "q", "qd"), ("tau",)
X = np.array([-2.3, -1.0, -0.6, -1e-7, 0.0, 1e-7, 0.3, 0.8, 1.0, 1.7])

OPERATIONS = {
    "arithmetic": lambda x: 2 * x - x * x + 3 / (x * x + 1) - 1 / (2 + x * x),
    "powers": lambda x: x**3 + (x + 3) ** -2 + (x * x + 1) ** 1.7 + ca.sqrt(x * x) + (x * x + 1) ** 0.5 + x**7,
    "exponentials": lambda x: ca.exp(x) + ca.log(1 + x * x) + ca.expm1(x) + ca.log1p(x * x),
    "circular": lambda x: ca.sin(x) + ca.cos(x) + ca.tan(x / 2) + ca.asin(x / 3) + ca.acos(x / 3) + ca.atan(x),
    "angles": lambda x: ca.atan2(x, -0.3) + ca.hypot(x, 0.4),
    "hyperbolic": lambda x: ca.sinh(x) + ca.cosh(x) + ca.tanh(x),
    "signs": lambda x: ca.fabs(x) + ca.sign(x) + ca.copysign(x, x - 0.5) + ca.fmin(x, 0.2) + ca.fmax(x, 0.1),
    "comparisons": lambda x: (x < 0.3) + 2 * (x <= 0.3) + 4 * (x == 0.3) + 8 * (x != 0.3) + 16 * (x > -0.6),
    "logic": lambda x: ca.logic_and(x > -1, x < 1) + 2 * ca.logic_or(x < -1, x > 1) + 4 * ca.logic_not(x),
    "choices": lambda x: ca.if_else(x > 0, x * x, -x) + ca.if_else(x, 1.0, 5.0),
}


@pytest.mark.parametrize("name", OPERATIONS)
def test_operations_agree_with_casadi(name):
    """Replay each operation on traced values, run it natively and by the interpreter, and compare with CasADi."""
    x = ca.SX.sym("x")
    f = ca.Function("f", [x], [OPERATIONS[name](x)])
    expected = np.array([float(f(v)) for v in X])[:, None]  # type: ignore[arg-type]
    program = traced(lambda x: replay(f, [[x]])[0])
    assert_close(program.interpret(X[:, None])[0], expected, 4e-15 * np.abs(expected).max(), "traced")
    assert_close(gufunc(program)(X[:, None]), expected, 8e-15 * np.abs(expected).max(), "native")


def controller(kind):
    """Return a controller of the arm with zeros in its matrix of gains and a sparse output."""
    t, q, qd = kind.sym("t"), kind.sym("q", 3), kind.sym("qd", 3)
    gains = ca.DM([[0.0, 0.0, 0.0], [3.0, 0.0, 1.0], [0.0, 2.0, 0.0]])
    tau = -ca.mtimes(gains, q) - 0.5 * qd * ca.DM([0.0, 1.0, 0.0]) + ca.sin(t) * ca.DM([0.0, 0.0, 1.0])
    return ca.Function("feedback", [t, q, qd], [ca.sparsify(tau) if kind is ca.SX else tau], *NAMES)


@pytest.mark.parametrize("kind", [ca.SX, ca.MX])
def test_controller_acts_as_in_casadi(kind):
    """Find the torques that CasADi computes for the arm."""
    f, s, t = controller(kind), State(ARM, 1, 4), 0.7
    expected = np.array([np.array(f(t, q, qd)).ravel() for q, qd in zip(s.q, s.qd, strict=True)])
    assert_close(relative(torques(ARM, s.q, s.qd, control=FromCasadi(f), t=t), expected), 0.0, 1e-12)


def function(output, **changes):
    """Return a function of the arm's state with an output of its coordinates."""
    t, q, qd = ca.SX.sym("t"), ca.SX.sym("q", changes.get("nq", 3)), ca.SX.sym("qd", 3)
    return ca.Function("bad", [t, q, qd], [output(t, q, qd)], *NAMES, {"allow_free": True})


def opaque():
    """Return a function that calls another one whose instructions are hidden."""
    t, q, qd = ca.MX.sym("t"), ca.MX.sym("q", 3), ca.MX.sym("qd", 3)
    table = ca.interpolant("table", "bspline", [[0.0, 1.0, 2.0, 3.0]], [0.0, 1.0, 0.0, 2.0])
    return ca.Function("bad", [t, q, qd], [table(t) * q], *NAMES)


def solver():
    """Return a function that cannot be expanded to scalars."""
    t, q, qd = ca.MX.sym("t"), ca.MX.sym("q", 3), ca.MX.sym("qd", 3)
    return ca.Function("bad", [t, q, qd], [ca.solve(ca.MX(ca.diag([1.0, 2.0, 3.0])) + t, q, "lapacklu")], *NAMES)


@pytest.mark.parametrize(
    ("make", "message"),
    [
        (
            lambda: function(lambda t, q, qd: ca.floor(q)),
            "function 'bad' uses OP_FLOOR, which cannot be compiled; write",
        ),
        (lambda: function(lambda t, q, qd: ca.erf(q)), "function 'bad' uses OP_ERF, which cannot be compiled"),
        (lambda: function(lambda t, q, qd: (q * q) ** t), "OP_POW with an exponent that is not a number cannot be"),
        (lambda: function(lambda t, q, qd: q[:2]), "'bad' has the outputs tau [2]; expected tau [3]"),
        (
            lambda: function(lambda t, q, qd: q[:3], nq=4),
            "the inputs t [1], q [4], qd [3]; expected t [1], q [3], qd [3]",
        ),
        (
            lambda: function(lambda t, q, qd: q * ca.SX.sym("gain")),
            "'bad' has the free variables gain; make them numbers",
        ),
        (lambda: lambda t, q, qd: q, "FromCasadi has a function; give a casadi.Function of (t, q, qd)"),
        (opaque, "'bad' uses OP_CALL, which cannot be compiled; write it without callbacks, integrators and interp"),
        (solver, "the CasADi function 'bad' cannot be expanded to scalars ("),
    ],
)
def test_faults_are_named(make, message):
    """Give a function that cannot be replayed, and read the reason."""
    with pytest.raises(InputError) as caught:
        rates(ForcedMechanism(ARM, control=FromCasadi(make())))
    assert message in str(caught.value)
