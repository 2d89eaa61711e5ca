"""Contacts of a run: warnings of shapes that touch a surface with some of their points only."""

from __future__ import annotations

import re
import warnings

import numpy as np
import pytest

import kinetree as kt
from kinetree.simulation.options import with_contacts

STAIRS = kt.Surface("steps", edges=(0.31,), heights=(0.05, 0.17))
HILLS = kt.Surface("heights", heights=np.full((4, 4), 0.07), spacing=(0.4, 0.31))


def block() -> kt.System:
    """Return a free body."""
    body = kt.Body("box", 2.0, (0.01, -0.02, 0.015), (0.02, 0.03, 0.04, 0.001, 0.0, 0.002))
    return kt.System(kt.build_mechanism("block", [body], [kt.Joint("base", "free", "ground", "box")]))


@pytest.mark.parametrize(
    ("shape", "size", "surface", "words"),
    [
        (
            "box",
            (0.4, 0.3, 0.2),
            STAIRS,
            "a box touches steps with its corners only, and outer edges of the steps pass",
        ),
        ("capsule", (0.1, 0.3), STAIRS, "a capsule touches steps with its two ends only, and outer edges"),
        (
            "box",
            (0.4, 0.3, 0.2),
            HILLS,
            "a box touches heights with its corners only, and hills pass through its sides",
        ),
    ],
)
def test_sides_that_do_not_touch_are_warned_of(shape, size, surface, words):
    """Warn where a run is set up, with contacts given to it or those of the mechanism."""
    system, contact = block(), kt.Contact("c0", "box", shape, size, surface=surface)
    with pytest.warns(RuntimeWarning, match=re.escape(f"contact 'c0': {words}")):
        made = with_contacts(system, contact)
    with pytest.warns(RuntimeWarning, match=re.escape(words)):
        with_contacts(made, None)


def test_the_warning_names_the_line_of_the_user():
    """Find the call of `simulate` as the place of the warning."""
    contact = kt.Contact("c0", "box", "box", (0.4, 0.3, 0.2), surface=STAIRS)
    with warnings.catch_warnings(record=True) as found, pytest.raises(kt.InputError):
        warnings.simplefilter("always")
        kt.simulate(block(), contacts=contact, duration=0.1, method="moreau", dt=-1e-3)
    assert [x.filename for x in found] == [__file__]


def test_shapes_that_touch_everywhere_are_silent():
    """Set up points and spheres on steps and points on hills, and boxes and capsules on a plane, without a warning."""
    points = [kt.Contact(f"p{k}", "box", "point", surface=x) for k, x in enumerate((STAIRS, HILLS))]
    ball = kt.Contact("ball", "box", "sphere", 0.1, surface=STAIRS)
    plane = [kt.Contact("box", "box", "box", (0.4, 0.3, 0.2)), kt.Contact("rod", "box", "capsule", (0.1, 0.3))]
    assert len(with_contacts(block(), [*points, ball, *plane]).mechanism.contacts) == 5
