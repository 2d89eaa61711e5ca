"""Impossible mechanisms, each with the faulty part and the remedy in the message."""

from __future__ import annotations

import math
from dataclasses import replace

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from kinetree import (
    Body,
    Coupling,
    ForceElement,
    Frame,
    Joint,
    KinetreeError,
    Limits,
    Loop,
    ModelError,
    Parameter,
    Placement,
    System,
    UnknownNameError,
    build_mechanism,
)
from kinetree.model import parse
from kinetree.model.checks import check, impossible_inertias, inertia_excess, massless_inertias
from strategies import body, examples, nested, rotation

GOOD = Body("a", 1.0, (0.1, 0.2, 0.3), (1.0, 1.2, 1.1, 0.1, 0.2, 0.05))
JOINT = Joint("j", "revolute", "ground", "a")


def refused(bodies=(GOOD,), joints=(JOINT,), name="bad", **more) -> str:
    """Return the message of the error for these parts."""
    with pytest.raises(ModelError) as caught:
        build_mechanism(name, bodies, joints, **more)
    return str(caught.value)


NONE_MAY = (
    "and none may be negative or exceed the sum of the others; "
    "check units, signs, the order xx, yy, zz, xy, yz, zx and the reference point (the center of mass), "
    "or accept it by lenient (lenient=True in Python, true in files, --lenient)"
)


@pytest.mark.parametrize(("change", "message"), [
    ({"mass": -1.0}, "body 'a': the mass is -1 kg; give a mass of zero or more"),
    ({"mass": math.nan}, "body 'a': mass is nan; give a finite number"),
    ({"com": (0.0, math.inf, 0.0)}, "body 'a': com is inf; give a finite number"),
    ({"inertia": (1.0, 1.0, 3.0, 0.0, 0.0, 0.0)},
     "body 'a': no body can have this inertia: its principal moments are 1, 1, 3 kg m^2, " + NONE_MAY),
    ({"inertia": (1.0, 1.0, 1.0, 2.0, 0.0, 0.0)},
     "body 'a': no body can have this inertia: its principal moments are -1, 1, 3 kg m^2, " + NONE_MAY),
    ({"name": "ground"}, "a body has the name 'ground', which is reserved for the fixed world; rename the body"),
])  # fmt: skip
def test_impossible_bodies(change, message):
    """Refuse impossible bodies."""
    assert refused([replace(GOOD, **change)]) == message


@pytest.mark.parametrize(("change", "message"), [
    ({"kind": "revolut"}, "joint 'j': no joint kind 'revolut'; did you mean 'revolute'? available: fixed, revolute, "),
    ({"damping": (1.0, 2.0)}, "joint 'j': 2 damping for a revolute joint; give 1, or none"),
    ({"friction": (1.0, 2.0)}, "joint 'j': 2 friction for a revolute joint; give 1, or none"),
    ({"armature": (1.0, 2.0)}, "joint 'j': 2 armature for a revolute joint; give 1, or none"),
    ({"armature": (-1.0,)}, "joint 'j': the armature is negative; give zero or more"),
    ({"limits": Limits(lower=(1.0, 2.0))}, "joint 'j': 2 lower limits for a revolute joint; give 1, or none"),
    ({"limits": Limits(upper=(math.nan,))}, "joint 'j': upper is nan; give a finite number"),
    ({"pitch": math.inf}, "joint 'j': pitch is inf; give a finite number"),
    ({"placement": Placement((0.0, 0.0, math.nan))}, "joint 'j': translation is nan; give a finite number"),
    ({"placement": Placement(rotation=((1.0, 0.0, 0.0), (0.0, 1.0, 0.0), (0.0, 0.0, -1.0)))},
     "joint 'j': the rotation is not orthonormal with determinant 1: it is a reflection; "
     "give a right-handed set of perpendicular unit axes, or use rpy or quaternion"),
    ({"placement": Placement(rotation=((2.0, 0.0, 0.0), (0.0, 1.0, 0.0), (0.0, 0.0, 1.0)))},
     "joint 'j': the rotation is not orthonormal with determinant 1: it is off by 3; "),
])  # fmt: skip
def test_impossible_joints(change, message):
    """Refuse impossible joints."""
    assert refused(joints=[replace(JOINT, **change)]).startswith(message)


def test_infinite_limits_are_fine():
    """Accept infinite limits."""
    limits = Limits((-math.inf,), (math.inf,), (math.inf,), (math.inf,))
    assert build_mechanism("good", [GOOD], [replace(JOINT, limits=limits)]).joints[0].limits == limits


@pytest.mark.parametrize(("more", "message"), [
    ({"frames": [Frame("f", "b")]}, "frame 'f': no body 'b'; available: a, ground"),
    ({"frames": [Frame("a", "a")]}, "the frame 'a' has the name of a body; rename the frame: bodies are frames too"),
    ({"frames": [Frame("f", "a"), Frame("f", "a")]}, "the frame name 'f' is used twice; rename one of them"),
    ({"loops": [Loop("l", "revolute", "a", "z")]}, "loop 'l': no body 'z'; available: a, ground"),
    ({"forces": [ForceElement("s", "spring_damper", "y", "a")]}, "force 's': no body 'y'; available: a, ground"),
    ({"forces": [ForceElement("s", "spring", "a", "a")]},
     "force 's': no kind of force 'spring'; did you mean 'joint_spring'? "
     "available: spring_damper, linear_actuator, transmission, joint_spring"),
    ({"forces": [ForceElement("s", "spring_damper", "a", "a", coefficients=(("stifness", 2.0),))]},
     "force 's': no coefficient 'stifness'; did you mean 'stiffness'? "
     "available: stiffness, damping, free_length, preload"),
    ({"forces": [ForceElement("s", "joint_spring", "a", "ground", coefficients=(("rest_1", 2.0),))]},
     "force 's': no joint has the parent 'a' and the child 'ground'; name a body and one of its children"),
    ({"bodies": None}, "body: None where a list of kt.Body belongs; put the parts in brackets"),
    ({"bodies": [JOINT]}, f"body 1: {repr(JOINT)[:57]}... is not a kt.Body; give a list of kt.Body"),
    ({"joints": [Joint("j", None, "ground", "a")]},  # type: ignore[arg-type]
     "joint 'j', kind: None is not a text; give a name in quotes"),
    ({"joints": [Joint("j", "revolute", "ground", "a", limits=None)]},  # type: ignore[arg-type]
     "joint 'j', limits: None is not a kt.Limits; leave it out, or give kt.Limits()"),
    ({"joints": [Joint("j", "revolute", "ground", "a", None)]},  # type: ignore[arg-type]
     "joint 'j', placement: None is not a kt.Placement; leave it out, or give kt.Placement()"),
    ({"name": "x" * 10_000}, "a mechanism has a name of 10000 characters; give it a name of 1 to 1000 characters"),
    ({"couplings": [Coupling("c", "j", (("k", 2.0),))]}, "coupling 'c': no joint 'k'; available: j"),
    ({"forces": [ForceElement("s", "spring", "", "")]},
     "force 's': no kind of force 'spring'; did you mean 'joint_spring'? "
     "available: spring_damper, linear_actuator, transmission, joint_spring"),
    ({"gravity": (0.0, 0.0, math.nan)}, "gravity: a number is nan; give a finite number"),
    ({"gravity": (0.0, 0.0, parse("g"))}, "gravity: no parameter 'g'; available: none"),
    ({"parameters": [Parameter("p", math.inf)]}, "parameter 'p': value is inf; give a finite number"),
])  # fmt: skip
def test_impossible_parts(more, message):
    """Refuse impossible frames, loops, forces, couplings, gravity and parameters."""
    assert refused(**more) == message


def test_expressions_are_checked_at_their_values():
    """Refuse a mass that a parameter makes negative, and one that cannot be computed."""
    light = replace(GOOD, mass=parse("1 - m"))
    assert (
        refused([light], parameters=[Parameter("m", 3.0)]) == "body 'a': the mass is -2 kg; give a mass of zero or more"
    )
    infinite = replace(GOOD, mass=parse("1/m"))
    message = refused([infinite], parameters=[Parameter("m", 0.0)])
    assert message == "body 'a': 1.0 / m cannot be computed (float division by zero); change the parameters"
    assert refused([light]) == "body 'a': no parameter 'm'; available: none"


def test_two_of_one_name():
    """Refuse two joints with the same name."""
    joints = [JOINT, replace(JOINT, child="b")]
    assert refused([GOOD, replace(GOOD, name="b")], joints) == "the joint name 'j' is used twice; rename one of them"


@given(st.integers(0, 2**32 - 1))
@examples(50)
def test_possible_inertias_pass(seed):
    """Accept the inertia of any mass distribution, and refuse one with a moment too large."""
    rng = np.random.default_rng(seed)
    made = body("b", rng)
    assert inertia_excess(made.inertia)[0] <= 0
    R = np.array(rotation(rng))
    a, b = rng.uniform(0.1, 1.0, 2)
    bad = R @ np.diag([a, b, (a + b) * 1.001]) @ R.T
    assert inertia_excess(nested([*np.diag(bad), bad[0, 1], bad[1, 2], bad[2, 0]]))[0] > 1e-5


def test_lenient_lets_inertias_pass_and_lists_them():
    """Accept impossible inertias leniently, and list their bodies."""
    bad = replace(GOOD, inertia=(1.0, 1.0, 3.0, 0.0, 0.0, 0.0))
    made = build_mechanism("lenient", [bad], [JOINT], lenient=True)
    ((name, what),) = impossible_inertias(made)
    assert name == "a"
    assert what.startswith("no body can have this inertia: its principal moments are 1, 1, 3 kg m^2")
    with pytest.raises(ModelError):
        check(made)


def test_unknown_names_are_key_errors_too():
    """Catch an unknown name as a KeyError, with a message that is not quoted."""
    made = build_mechanism("good", [GOOD], [JOINT])
    for find, what in ((made.body, "body"), (made.joint, "joint"), (made.frame, "frame")):
        with pytest.raises(KeyError) as caught:
            find("nobody")
        assert isinstance(caught.value, UnknownNameError)
        assert str(caught.value).startswith(f"no {what} 'nobody'; available: ")


BROKEN = {
    "short com": {"body": {"com": (0.1, 0.2)}},
    "short translation": {"joint": {"placement": Placement((1.0, 2.0))}},
    "short rotation": {"joint": {"placement": Placement(rotation=((1.0, 0.0), (0.0, 1.0)))}},
    "short gravity": {"gravity": (0.0, -9.81)},
    "text": {"body": {"mass": "2 +"}},
}


@pytest.mark.parametrize("name", BROKEN)
def test_numbers_of_the_wrong_count_or_type_are_refused(name):
    """Refuse vectors without three numbers and values that are not numbers by a ModelError."""
    changes = BROKEN[name]
    with pytest.raises(ModelError):
        build_mechanism(
            "bad",
            [replace(GOOD, **changes.get("body", {}))],
            [replace(JOINT, **changes.get("joint", {}))],
            gravity=changes.get("gravity", (0.0, 0.0, -9.81)),
        )


@pytest.mark.parametrize("com", [[0.1, 0.2, 0.3], np.array([0.1, 0.2, 0.3])], ids=["list", "array"])
def test_lists_and_arrays_are_numbers_too(com):
    """Give a center of mass as a list or an array and get a tuple of numbers, or a ModelError."""
    expected = System(build_mechanism("good", [GOOD], [JOINT])).forward_dynamics([0.1], [0.2], [0.3])
    try:
        made = build_mechanism("good", [replace(GOOD, com=com)], [JOINT])
    except KinetreeError:
        return
    assert System(made).forward_dynamics([0.1], [0.2], [0.3]) == expected


NUMBERS = [np.float64(2.0), 2, np.int64(2), np.float32(2.0)]


@pytest.mark.parametrize("number", NUMBERS, ids=["float64", "int", "int64", "float32"])
def test_numbers_of_numpy_are_numbers(number):
    """Give a mass as a NumPy scalar and get a float, or a ModelError."""
    expected = System(build_mechanism("good", [replace(GOOD, mass=2.0)], [JOINT])).forward_dynamics([0.1], [0.2], [0.3])
    try:
        made = build_mechanism("good", [replace(GOOD, mass=number)], [JOINT])
    except KinetreeError:
        return
    assert System(made).forward_dynamics([0.1], [0.2], [0.3]) == expected


def test_nan_in_a_list_is_seen():
    """Refuse a center of mass that is not finite, also in a list."""
    with pytest.raises(KinetreeError):
        build_mechanism("bad", [replace(GOOD, com=[0.1, math.nan, 0.3])], [JOINT])


def test_limits_the_wrong_way_round_are_refused():
    """Refuse a lower limit above the upper one."""
    with pytest.raises(ModelError, match="limit"):
        build_mechanism("bad", [GOOD], [replace(JOINT, limits=Limits((1.0,), (-1.0,)))])


@pytest.mark.parametrize(
    ("kind", "parent", "found"),
    [
        ("revolute", "ground", False),
        ("spherical", "ground", False),
        ("prismatic", "ground", True),
        ("free", "ground", True),
        ("revolute", "a", True),
    ],
)
def test_inertias_without_mass_are_found(kind, parent, found):
    """Find a body with an inertia but no mass, unless it rotates on the ground or has no inertia either."""
    bare, heavy = Body("b", 0.0, inertia=(0.02, 0.03, 0.04, 0, 0, 0)), Body("a", 1.3)
    joints = [Joint("i", "prismatic", "ground", "a"), Joint("j", kind, parent, "b")]
    message = "it has an inertia, up to 0.04 kg m^2, but no mass"
    assert massless_inertias(build_mechanism("m", [heavy, bare], joints)) == ([("b", message)] if found else [])
    assert massless_inertias(build_mechanism("m", [heavy, Body("b")], joints)) == []
    light = replace(bare, mass=parse("2 * m"))
    for value, expected in ((0.0, found), (0.1, False)):
        made = build_mechanism("m", [heavy, light], joints, parameters=[Parameter("m", value)])
        assert bool(massless_inertias(made)) == expected
