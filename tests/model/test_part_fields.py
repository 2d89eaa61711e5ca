"""Checks of parts at their creation."""

from __future__ import annotations

import numpy as np
import pytest

import kinetree as kt
from tolerance import assert_close

TOO_LONG = "has a name of 10000 characters; give it a name of 1 to 1000 characters"


@pytest.mark.parametrize(
    ("make", "message"),
    [
        (lambda: kt.Body("b" * 10_000, 1.3), f"a body {TOO_LONG}"),
        (lambda: kt.Body("", 1.3), "a body has no name; give it a name of 1 to 1000 characters"),
        (lambda: kt.Body(3, 1.3), "the name of a body is 3, not a text; give a name in quotes"),  # type: ignore
        (lambda: kt.Body("b", 1.0, None), "body 'b', com: None is not a list of numbers; give a tuple of numbers"),  # type: ignore
        (lambda: kt.Body("b", 1.0, (0.1, 0.2)), "body 'b', com: 2 numbers; give 3"),  # type: ignore
        (lambda: kt.Body("b", None), "body 'b', mass: None is not a number; give a number, or a formula in quotes"),  # type: ignore
        (
            lambda: kt.Body("b", 1.0, (0.1, 0.2, 0.3), (1.0, 2.0, 2.5)),
            "body 'b': the inertia has 3 numbers; give xx, yy, zz, xy, yz, zx, or a 3x3 matrix",
        ),
        (lambda: kt.Joint("j" * 10_000, "revolute", "ground", "b"), f"a joint {TOO_LONG}"),
        (
            lambda: kt.Joint("j", "revolute", "ground", "b", axis=None),  # type: ignore
            "joint 'j', axis: None is not a list of numbers; give a tuple of numbers",
        ),
        (lambda: kt.Frame("f" * 10_000, "b"), f"a frame {TOO_LONG}"),
        (lambda: kt.Loop("l", "point", "a", "b", length="x +"),
         "loop 'l', length: something is missing at the end in the expression 'x +'; use numbers, parameter names, "
         "+ - * / ^, parentheses, pi and sin, cos, tan, sqrt, asin, acos, atan, exp, log, deg"),
        (lambda: kt.Body("b", 1.0, inertia=[[1.0, 0.1, 0.0], [0.2, 1.0, 0.0], [0.0, 0.0, 1.0]]),
         "body 'b': the inertia is not symmetric: 0.1 and 0.2; make them equal"),
        (lambda: kt.ForceElement("f", "spring_damper", "a", "b", coefficients=(3.0,)),  # type: ignore
         "force 'f', coefficients: (3.0,) is not a list of names with numbers; give {\"name\": number, ...}"),
        (lambda: kt.Coupling("c", "b", 2.0),  # type: ignore
         "coupling 'c', terms: 2.0 is not a list of names with numbers; give {\"name\": number, ...}"),
        (lambda: kt.ForceElement("f", "spring_damper", "a", "b", (0.1,)), "force 'f', point_a: 1 numbers; give 3"),  # type: ignore
    ],
)  # fmt: skip
def test_a_part_is_refused_when_it_is_created(make, message):
    """Create a part with a wrong name or number and read the error at once."""
    with pytest.raises(kt.ModelError) as error:
        make()
    assert str(error.value) == message


def test_formulas_matrices_and_single_numbers_are_taken():
    """Create parts with formulas in text, an inertia as a matrix and one number of damping, as files have them."""
    inertia = np.array([[0.3, 0.01, 0.02], [0.01, 0.4, 0.03], [0.02, 0.03, 0.5]])
    body = kt.Body("b", "2 * m", ("l / 2", 0, 0.1), inertia)  # type: ignore
    assert body.inertia == (0.3, 0.4, 0.5, 0.01, 0.03, 0.02)
    joint = kt.Joint("j", "revolute", "ground", "b", kt.Placement(("l", 0, 0)), axis="y", damping=0.7)  # type: ignore
    assert joint.damping == (0.7,)
    ball = kt.Joint("ball", "spherical", "ground", "b", friction="0.1 * m")  # type: ignore
    assert ball.friction == (kt.parse("0.1 * m"),) * 3
    coil = kt.ForceElement("s", "joint_spring", "ground", "b", coefficients=(("stiffness_1", "k"),))  # type: ignore
    free = [kt.Parameter(n, x, free=True) for n, x in (("m", 1.2), ("l", 0.4), ("k", 3.0), ("g", 9.81))]
    made = kt.System(
        kt.build_mechanism("p", [body], [joint], forces=[coil], gravity=(0, 0, "-g"), parameters=free)  # type: ignore
    )
    q, m, length, g = 0.3, 1.7, 0.9, 1.62
    found = made.gravity_torque([q], parameters={"m": m, "l": length, "k": 5.0, "g": g})
    weight = -2 * m * g * (length / 2 * np.cos(q) + 0.1 * np.sin(q))
    assert_close(found, [weight + 5.0 * q], 1e-14 * 10, "torque by formulas")
    with pytest.raises(kt.ModelError, match="body 'b': no parameter 'mm'; did you mean 'm'"):
        kt.build_mechanism("p", [kt.Body("b", "mm")], [joint], parameters=free)  # type: ignore


def test_numbers_by_name_may_be_mappings():
    """Give coefficients and terms as dictionaries, with a formula, and find the pairs of the other spelling."""
    rates = {"stiffness": 3.0, "free_length": "l / 2"}
    coil = kt.ForceElement("s", "spring_damper", "ground", "b", coefficients=rates)  # type: ignore
    assert coil == kt.ForceElement("s", "spring_damper", "ground", "b", coefficients=tuple(rates.items()))  # type: ignore
    gear = kt.Coupling("c", "b", {"a": -2.0})  # type: ignore
    assert gear == kt.Coupling("c", "b", (("a", -2.0),))


def test_inertias_of_arrays_are_plain_numbers():
    """Give an inertia as an array, and find Python's numbers in it."""
    body = kt.Body("b", 1.0, inertia=np.diag([0.1, 0.2, 0.25]))  # type: ignore
    assert [type(x) for x in body.inertia] == [float] * 6


def test_lists_and_arrays_are_taken():
    """Create parts with lists and arrays in place of tuples."""
    body = kt.Body("b", 1, [0.1, 0.2, 0.3], np.array([1.0, 1.1, 1.2, 0.0, 0.0, 0.0]))  # type: ignore
    built = kt.build_mechanism("m", [body], [kt.Joint("j", "revolute", "ground", "b", axis=[0, 1, 0])])  # type: ignore
    assert built.bodies[0].com == (0.1, 0.2, 0.3)
    assert built.joints[0].axis == (0.0, 1.0, 0.0)


def test_one_number_is_the_limit_of_a_joint_with_one_coordinate():
    """Give limits as numbers, and read them as tuples."""
    given = kt.Limits(lower=-0.7, upper=2, velocity=3.1, effort=(40.0,))
    assert given == kt.Limits((-0.7,), (2,), (3.1,), (40.0,))
    body = kt.Body("b", 1.3, (0.1, 0.2, 0.3), (0.2, 0.3, 0.4, 0.0, 0.0, 0.0))
    arm = kt.build_mechanism("arm", [body], [kt.Joint("j", "revolute", "ground", "b", limits=given)])
    assert arm.joints[0].limits.lower == (-0.7,)
    with pytest.raises(kt.ModelError, match="limits"):
        kt.build_mechanism("arm", [body], [kt.Joint("j", "spherical", "ground", "b", limits=given)])
