"""Expressions of parameters: the parser, its limits, and mechanisms with free parameters."""

# ruff: noqa: E741 - I is the papers' letter

from __future__ import annotations

import math
from dataclasses import replace

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

import everyday
from interpreted import relative
from kinetree import Body, Joint, ModelError, Parameter, Placement, System, UnknownNameError, build_mechanism
from kinetree.model import Expression, parse
from kinetree.model.parameters import FUNCTIONS
from strategies import State, examples, random_mechanism
from tolerance import assert_close

VALUES = {"a": 1.7, "b": -0.3, "l1": 0.25, "x_2": 4.0}


@pytest.mark.parametrize(("text", "expected"), [
    ("1", 1.0), (" 1.5e-3 ", 1.5e-3), (".5", 0.5), ("5.", 5.0), ("pi", math.pi), ("2*pi", 2 * math.pi),
    ("1 + 2*3", 7.0), ("(1 + 2)*3", 9.0), ("1 - 2 - 3", -4.0), ("8/4/2", 1.0), ("-2^2", -4.0), ("(-2)^2", 4.0),
    ("2^-2", 0.25), ("2**3", 8.0), ("--2", 2.0), ("2*-3", -6.0), ("- -+2", 2.0), ("sqrt(2)", math.sqrt(2)),
    ("deg(180)", math.pi), ("atan(1)*4", math.pi), ("exp(log(3))", math.exp(math.log(3))), ("sin (1)", math.sin(1)),
    ("tan(0.3) + asin(0.2) - acos(0.1)", math.tan(0.3) + math.asin(0.2) - math.acos(0.1)),
])  # fmt: skip
def test_formulas_without_names_are_numbers(text, expected):
    """Parse a formula as a number, with the precedence of mathematics."""
    value = parse(text)
    assert isinstance(value, float)
    assert value == pytest.approx(expected, rel=1e-15)


@pytest.mark.parametrize(("text", "expected"), [
    ("a", 1.7), ("l1/2 + 0.1*cos(a)", 0.125 + 0.1 * math.cos(1.7)), ("-a^2*b", 1.7**2 * 0.3), ("x_2 - a - b", 2.6),
    ("a^-2", 1.7**-2), ("1/(a + b)", 1 / 1.4), ("deg(x_2)", math.radians(4)), ("a*0", 0.0), ("a*1 + 0", 1.7),
])  # fmt: skip
def test_formulas_with_names_wait_for_values(text, expected):
    """Parse a formula of parameters and compute its value later."""
    made = parse(text)
    assert isinstance(made, Expression)
    assert made.names() <= set(VALUES)
    assert made.value(VALUES) == pytest.approx(expected, rel=1e-15)


REMEDY = "; use numbers, parameter names, + - * / ^, parentheses, pi and " + ", ".join(FUNCTIONS)


@pytest.mark.parametrize(("text", "message"), [
    ("", "something is missing at the end in the expression ''" + REMEDY),
    ("1 +", "something is missing at the end in the expression '1 +'" + REMEDY),
    ("(1", "something is missing at the end in the expression '(1'" + REMEDY),
    ("(1 2", "a parenthesis is not closed in the expression '(1 2'" + REMEDY),
    ("1)", "unexpected ')' in the expression '1)'" + REMEDY),
    ("a b", "unexpected 'b' in the expression 'a b'" + REMEDY),
    ("sin 3", "unexpected '3' in the expression 'sin 3'" + REMEDY),
    ("2^x", "an exponent is not a number in the expression '2^x'" + REMEDY),
    ("1_000", "unexpected '_000' in the expression '1_000'" + REMEDY),
    ("a..b", "unexpected '.' in the expression 'a..b'" + REMEDY),
    ("{a", "unexpected '{' in the expression '{a'" + REMEDY),
    ("__import__('os')", "unexpected \"'\" in the expression \"__import__('os')\"" + REMEDY),
    ("\u0661", "unexpected '\u0661' in the expression '\u0661'" + REMEDY),
    ("a^1.5", "an exponent must be a whole number from -16 to 16; use sqrt, exp or log"),
    ("2^17", "an exponent must be a whole number from -16 to 16; use sqrt, exp or log"),
    ("1/0", "1.0 / 0.0 cannot be computed (float division by zero); change the parameters"),
    ("sqrt(-1)", "sqrt(-1.0) cannot be computed (math domain error); change the parameters"),
    ("exp(1000)", "exp(1000.0) cannot be computed (math range error); change the parameters"),
])  # fmt: skip
def test_bad_formulas_say_what_is_wrong(text, message):
    """Refuse texts that are not formulas, with the position and the possible contents."""
    with pytest.raises(ModelError) as caught:
        parse(text)
    assert str(caught.value) == message


def test_deep_and_long_formulas_are_refused():
    """Refuse malicious formulas before they cost time."""
    with pytest.raises(ModelError, match="too many nested parentheses"):
        parse("(" * 100 + "1" + ")" * 100)
    with pytest.raises(ModelError, match=r"an expression has \d+ characters; use at most \d+"):
        parse("1" * 1_000_000)


@pytest.mark.parametrize("terms", [300, 350, 800, 5000])
def test_long_sums_are_computed_or_refused(terms):
    """Compute a sum of many terms, or refuse it by a ModelError; never exhaust Python's stack."""
    try:
        made = parse("a" + "+a" * (terms - 1))
        assert isinstance(made, Expression)
        assert made.value({"a": 2.0}) == 2.0 * terms
    except ModelError as error:
        assert terms > 300, error


def test_text_of_a_long_sum_reads_back():
    """Print a sum of 100 terms and parse it again: formulas of files must be writable."""
    made = parse("+".join(["a"] * 100))
    assert parse(str(made)) == made


def test_unknown_parameters_are_listed():
    """Compute a formula of a missing parameter and read the available ones."""
    with pytest.raises(UnknownNameError, match=r"no parameter 'x_3'; did you mean 'x_2'\? available: a, b, l1, x_2"):
        parse("x_3").value(VALUES)


def formulas(depth: int = 4):
    """Draw formulas as text."""
    leaf = st.sampled_from(["a", "b", "l1", "x_2", "pi", "0.7", "2", "1e-3"])

    def grow(inner):
        pair = st.tuples(inner, st.sampled_from("+-*"), inner).map(lambda t: f"({t[0]} {t[1]} {t[2]})")
        call = st.tuples(st.sampled_from(["sin", "cos", "atan", "deg"]), inner).map(lambda t: f"{t[0]}({t[1]})")
        power = st.tuples(inner, st.integers(0, 4)).map(lambda t: f"({t[0]})^{t[1]}")
        return st.one_of(pair, call, power, inner.map(lambda t: f"(-{t})"))

    return st.recursive(leaf, grow, max_leaves=2**depth)


@given(formulas())
@examples(100)
def test_text_of_an_expression_reads_back_as_itself(text):
    """Compare values of formulas with Python, print and parse them again, and find equal expressions."""
    made = parse(text)
    scope = {"sin": math.sin, "cos": math.cos, "atan": math.atan, "deg": math.radians, "pi": math.pi, **VALUES}
    expected = eval(text.replace("^", "**"), {"__builtins__": {}}, scope)
    if isinstance(made, Expression):
        assert parse(str(made)) == made
        made = made.value(VALUES)
    assert made == pytest.approx(expected, rel=1e-12, abs=1e-12)


@given(st.text(alphabet="ab1.e+-*/^() \tsincopqrt_%'\"\u00e9\u0660", max_size=30))
@examples(300)
def test_any_text_is_read_or_refused(text):
    """Parse any text as a formula, or refuse it by a ModelError."""
    try:
        made = parse(text)
    except ModelError:
        return
    assert isinstance(made, float | Expression)


def parametrized(seed: int = 12, *, free: bool = True):
    """Return a tree in which masses, lengths, a pitch, an armature and gravity are parameters, and their values."""
    made = random_mechanism(["revolute", "helical", "free", "universal"], [-1, 0, 1, 1], seed)
    bodies, joints, parameters = list(made.bodies), list(made.joints), []

    def parameter(name: str, value: float) -> Expression:
        parameters.append(Parameter(name, value, free=free))
        made = parse(name)
        assert isinstance(made, Expression)
        return made

    m, l, k, g, J = (parameter(n, v) for n, v in (("m", 1.3), ("l", 0.4), ("k", 0.07), ("g", 9.7), ("J", 0.2)))
    bodies[1] = replace(bodies[1], mass=m, com=(l * 0.5, 0.1, l), inertia=(J, J, J, 0.0, 0.01, 0.0))
    joints[1] = replace(joints[1], pitch=k, armature=(J * J,), placement=Placement((l, l * 2.0, 0.1)))
    return build_mechanism("free", bodies, joints, gravity=(0.1, 0.2, -g), parameters=parameters)


NAMES = ("inverse_dynamics", "forward_dynamics", "inertia_matrix", "convective_matrix", "reactions", "kinetic_energy",
         "potential_energy", "poses", "momentum", "center_of_mass", "integrate")  # fmt: skip


@pytest.mark.parametrize("name", everyday.some(NAMES))
def test_free_parameters_at_their_values_are_baked_ones(name):
    """Find the same numbers whether parameters are inputs at their values or constants of the code."""
    free, baked = System(parametrized()), System(parametrized(free=False))
    s = State(free.mechanism)
    inputs = {"q": s.q, "qd": s.qd, "qdd": s.qdd, "tau": s.tau}
    arguments = [inputs[a.name] for a in baked.function(name).inputs]
    out, expected = getattr(free, name)(*arguments), getattr(baked, name)(*arguments)
    assert_close(relative(out, expected), 0.0, 1e-13, name)  # 3e-15


def test_parameters_are_batched_like_anything_else():
    """Give each sample its own parameters, and find the results of mechanisms with these numbers."""
    system = System(parametrized())
    s = State(system.mechanism)
    nominal = np.array([p.value for p in system.mechanism.free_parameters])
    values = nominal * np.array([[1.0], [1.1], [0.8]])
    tau = system.inverse_dynamics(s.q, s.qd, s.qdd, parameters=values)
    assert np.array_equal(tau[0], system.inverse_dynamics(s.q[0], s.qd[0], s.qdd[0]))
    for k in range(3):
        other = replace(
            system.mechanism,
            parameters=tuple(
                replace(p, value=float(v), free=False)
                for p, v in zip(system.mechanism.parameters, values[k], strict=True)
            ),
        )
        expected = System(other).inverse_dynamics(s.q[k], s.qd[k], s.qdd[k])
        assert_close(relative(tau[k : k + 1], expected[None]), 0.0, 1e-13, f"sample {k}")  # 2e-15
    broadcast = system.potential_energy(s.q[:, None], parameters=values[None, :])
    assert broadcast.shape == (3, 3)


@pytest.mark.parametrize("what", ["planar", "universal", "revolute"])
def test_an_axis_may_be_a_parameter(what):
    """Make an axis a free parameter and find the pose of the same axis as a constant."""

    def made(free: bool):
        joint = Joint("j", what, "ground", "a", axis=(0.3, parse("k"), 0.1))
        return System(build_mechanism("axis", [Body("a", 1.0)], [joint], parameters=[Parameter("k", 0.05, free=free)]))

    q = State(made(False).mechanism).q
    assert_close(made(True).pose(q, "a"), made(False).pose(q, "a"), 1e-14, "pose")


def test_a_free_axis_may_lie_along_x():
    """Let a free component of an axis be zero, so that the axis is x, and get finite numbers."""
    joint = Joint("j", "revolute", "ground", "a", axis=(1.0, parse("k"), 0.0))
    brick = Body("a", 1.0, (0.1, 0.2, 0.3), (1.0, 1.0, 1.0, 0.0, 0.0, 0.0))
    system = System(build_mechanism("axis", [brick], [joint], parameters=[Parameter("k", 0.0, free=True)]))
    with np.errstate(all="ignore"):
        assert np.isfinite(system.gravity_torque([0.1])).all()


def test_a_parameter_may_not_hide_a_constant():
    """Refuse a parameter with the name of a constant of formulas, which would hide its value."""
    with pytest.raises(ModelError, match="pi"):
        build_mechanism(
            "bad", [Body("a", 1.0)], [Joint("j", "fixed", "ground", "a")], parameters=[Parameter("pi", 3.0)]
        )
