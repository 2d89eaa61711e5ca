"""Checks of parts at their creation."""

from __future__ import annotations

import numpy as np
import pytest

import kinetree as kt

TOO_LONG = "has a name of 10000 characters; give it a name of 1 to 1000 characters"


@pytest.mark.parametrize(
    ("make", "message"),
    [
        (lambda: kt.Body("b" * 10_000, 1.3), f"a body {TOO_LONG}"),
        (lambda: kt.Body("", 1.3), "a body has no name; give it a name of 1 to 1000 characters"),
        (lambda: kt.Body(3, 1.3), "the name of a body is 3, not a text; give a name in quotes"),  # type: ignore
        (lambda: kt.Body("b", 1.0, None), "body 'b', com: None is not a list of numbers; give a tuple of numbers"),  # type: ignore
        (lambda: kt.Body("b", 1.0, (0.1, 0.2)), "body 'b', com: 2 numbers; give 3"),  # type: ignore
        (lambda: kt.Body("b", None), "body 'b', mass: None is not a number; give a number, or parse(...) a formula"),  # type: ignore
        (
            lambda: kt.Body("b", 1.0, (0.1, 0.2, 0.3), (1.0, 2.0, 2.5)),
            "body 'b': the inertia has 3 numbers; give xx, yy, zz, xy, yz, zx",
        ),
        (lambda: kt.Joint("j" * 10_000, "revolute", "ground", "b"), f"a joint {TOO_LONG}"),
        (
            lambda: kt.Joint("j", "revolute", "ground", "b", axis=None),  # type: ignore
            "joint 'j', axis: None is not a list of numbers; give a tuple of numbers",
        ),
        (lambda: kt.Frame("f" * 10_000, "b"), f"a frame {TOO_LONG}"),
        (lambda: kt.Loop("l", "point", "a", "b", length="x"),  # type: ignore
         "loop 'l', length: 'x' is not a number; give a number, or parse(...) a formula"),
        (lambda: kt.ForceElement("f", "spring_damper", "a", "b", (0.1,)), "force 'f', point_a: 1 numbers; give 3"),  # type: ignore
    ],
)  # fmt: skip
def test_a_part_is_refused_when_it_is_created(make, message):
    """Create a part with a wrong name or number and read the error at once."""
    with pytest.raises(kt.ModelError) as error:
        make()
    assert str(error.value) == message


def test_lists_and_arrays_are_taken():
    """Create parts with lists and arrays in place of tuples."""
    body = kt.Body("b", 1, [0.1, 0.2, 0.3], np.array([1.0, 1.1, 1.2, 0.0, 0.0, 0.0]))  # type: ignore
    built = kt.build_mechanism("m", [body], [kt.Joint("j", "revolute", "ground", "b", axis=[0, 1, 0])])  # type: ignore
    assert built.bodies[0].com == (0.1, 0.2, 0.3)
    assert built.joints[0].axis == (0.0, 1.0, 0.0)
