"""Impossible loops, couplings and guesses, each with the faulty part and the remedy in the message."""

from __future__ import annotations

import math
from dataclasses import replace

import pytest

from kinetree import Body, Coupling, Curve, Joint, Loop, ModelError, Parameter, build_mechanism
from kinetree.loops import KINDS
from kinetree.model import parse

BODIES = [Body(name, 1.3, (0.1, 0.2, 0.3), (1.0, 1.2, 1.1, 0.1, 0.2, 0.05)) for name in "abcd"]
JOINTS = [
    Joint("ja", "revolute", "ground", "a"),
    Joint("jb", "prismatic", "a", "b"),
    Joint("jc", "helical", "b", "c", pitch=0.1),
    Joint("jd", "spherical", "c", "d"),
]
OWN = {
    "rod": {"length": 0.7},
    "helical": {"pitch": 0.02},
    "rolling_disc": {"axis2": (0.2, 1.1, -0.3), "radius": 0.31},
    "rolling_ball": {"radius": 0.17},
    "rolling_rollers": {"axis2": (0.2, 1.1, -0.3), "radius": 0.31, "angle": 0.7},
    "point_on_curve": {"curve": Curve.circle(0.2)},
    "roller_on_curve": {"curve": Curve.circle(0.2), "radius": 0.03},
    "rolling_on_curve": {"curve": Curve.circle(0.2), "radius": 0.03},
    "face_on_curve": {"curve": Curve.circle(0.2), "axis2": (0.2, 1.1, -0.3)},
    "curve_on_curve": {"curve": Curve.circle(0.2), "curve_b": Curve.ellipse(0.1, 0.2)},
    "knife_edge": {"axis2": (0.2, 1.1, -0.3)},
}


def made(**more):
    """Assemble four bodies in a chain with more parts."""
    return build_mechanism("chain", BODIES, JOINTS, **more)


def refused(**more) -> str:
    """Return the message of the error for these parts."""
    with pytest.raises(ModelError) as caught:
        made(**more)
    return str(caught.value)


@pytest.mark.parametrize("kind", KINDS)
def test_every_kind_of_loop_can_be(kind):
    """Assemble a loop of every kind with the data that it requires."""
    loop = Loop("l", kind, "d", "ground", axis=(0.3, -0.4, 1.2), **OWN.get(kind, {}))
    assert made(loops=[loop]).loops == (loop,)


@pytest.mark.parametrize(("change", "message"), [
    ({"kind": "free"}, "loop 'l', kind: no loop kind 'free'; available: revolute, prismatic"),
    ({"kind": "sperical"}, "loop 'l', kind: no loop kind 'sperical'; did you mean 'spherical'?"),
    ({"body_b": "d"}, "loop 'l', body_b: both ends are on body 'd'; name another body"),
    ({"body_a": "ground"}, "loop 'l', body_b: both ends are on the ground; name another body"),
    ({"axis": (0.0, 0.0, 0.0)}, "loop 'l': the axis (0.0, 0.0, 0.0) has no direction; give three numbers"),
    ({"kind": "point_on_line", "axis": (0.0, 0.0, 0.0)}, "loop 'l': the axis (0.0, 0.0, 0.0) has no direction"),
    ({"kind": "point_on_plane", "axis": (0.0, 0.0, 0.0)}, "loop 'l': the axis (0.0, 0.0, 0.0) has no direction"),
    ({"kind": "universal", "axis2": (0.0, 1.0, 1.0)},
     "loop 'l': the two axes of a universal joint enclose 45 degrees; they must be perpendicular"),
    ({"kind": "universal", "axis2": (0.0, 0.0, 0.0)}, "loop 'l': the axis2 (0.0, 0.0, 0.0) has no direction"),
    ({"axis2": (0.0, 1.0, 0.0)},
     "loop 'l', axis2: a revolute loop has no axis2; leave it out, or make it a universal or rolling_disc or rolling_"
     "rollers or face_on_curve or knife_edge loop"),
    ({"kind": "point_on_curve"}, "loop 'l', curve: a point_on_curve loop has no curve; give its curve"),
    ({"kind": "rolling_disc", "axis2": (0.0, 1.0, 0.0)},
     "loop 'l', radius: a rolling_disc loop has no radius; give its radius"),
    ({"kind": "rolling_disc", "radius": 0.3},
     "loop 'l', axis2: a rolling_disc loop has no axis2; give the axle of the wheel, the direction of the edge, or "
     "the normal of the face, in frame b"),
    ({"kind": "rolling_ball", "radius": -0.3}, "loop 'l', radius: the radius is -0.3 m; give a radius above 0"),
    ({"kind": "rolling_ball", "radius": math.nan}, "loop 'l': radius is nan; give a finite number"),
    ({"kind": "rolling_rollers", "axis2": (0.0, 1.0, 0.0), "radius": 0.3, "angle": 1.6},
     "loop 'l', angle: the rollers are at 1.6 rad to the axle; give an angle between -pi/2 and pi/2"),
    ({"kind": "knife_edge", "axis2": (0.0, 0.0, 0.0)}, "loop 'l': the axis2 (0.0, 0.0, 0.0) has no direction"),
    ({"radius": 0.3}, "loop 'l', radius: a revolute loop has no radius; leave it out, or make it a rolling_disc or"),
    ({"pitch": 0.1}, "loop 'l', pitch: a revolute loop has no pitch; leave it out, or make it a helical loop"),
    ({"length": 0.1}, "loop 'l', length: a revolute loop has no length; leave it out, or make it a rod loop"),
    ({"kind": "helical"}, "loop 'l', pitch: the pitch is 0 m/rad; give a pitch, or make it a revolute loop"),
    ({"kind": "rod"}, "loop 'l', length: the rod is 0 m long; give a length above 0, or make it a spherical loop"),
    ({"kind": "rod", "length": -2.0}, "loop 'l', length: the rod is -2 m long"),
    ({"kind": "rod", "length": math.nan}, "loop 'l': length is nan; give a finite number"),
    ({"kind": "rod", "length": parse("l - 1")}, "loop 'l', length: the rod is -0.75 m long"),
])  # fmt: skip
def test_impossible_loops(change, message):
    """Refuse impossible loops."""
    loop = replace(Loop("l", "revolute", "d", "ground"), **change)
    assert refused(loops=[loop], parameters=[Parameter("l", 0.25)]).startswith(message)


@pytest.mark.parametrize(("couplings", "message"), [
    ([Coupling("g", "jd", (("ja", 2.0),))],
     "coupling 'g': joint 'jd' is spherical and has 4 coordinates, not one; couple revolute, prismatic or helical"),
    ([Coupling("g", "ja", (("jd", 2.0),))], "coupling 'g': joint 'jd' is spherical and has 4 coordinates, not one"),
    ([Coupling("g", "ja", (("jb", 1.0), ("ja", 2.0)))], "coupling 'g': joint 'ja' follows itself; remove that term"),
    ([Coupling("g", "ja", (("jb", 1.0),)), Coupling("h", "jb", (("ja", 1.0),))],
     "coupling 'h': joints follow each other in a circle: ja -> jb -> ja; remove one of these couplings"),
    ([Coupling("f", "jc", (("ja", 1.0),)), Coupling("g", "jb", (("jc", 1.0),)), Coupling("h", "ja", (("jb", 3.0),))],
     "coupling 'g': joints follow each other in a circle: jc -> ja -> jb -> jc; remove one of these couplings"),
    ([Coupling("g", "ja", (("jb", math.inf),))], "coupling 'g': terms is inf; give a finite number"),
])  # fmt: skip
def test_impossible_couplings(couplings, message):
    """Refuse couplings of joints that do not have exactly one coordinate, and joints that follow themselves."""
    assert refused(couplings=couplings).startswith(message)


def test_couplings_in_a_row_and_side_by_side():
    """Let one joint follow two, one of which follows the other, and a joint follow nothing."""
    couplings = [
        Coupling("f", "ja", (("jb", 0.5), ("jc", -1.5)), 0.2),
        Coupling("g", "jb", (("jc", 2.0),)),
        Coupling("h", "jc", (), 0.3),
    ]
    assert made(couplings=couplings).couplings == tuple(couplings)


def test_long_rows_of_couplings_are_checked():
    """Check a thousand joints that follow each other without recursion, and find the circle that one more closes."""
    bodies = [Body(f"b{i}", 1.0) for i in range(1001)]
    joints = [Joint(f"j{i}", "revolute", "ground", f"b{i}") for i in range(1001)]
    couplings = [Coupling(f"c{i}", f"j{i}", ((f"j{i + 1}", 1.0),)) for i in range(1000)]
    assert len(build_mechanism("row", bodies, joints, couplings=couplings).couplings) == 1000
    with pytest.raises(ModelError, match="coupling 'last': joints follow each other in a circle: j0 -> j1 -> "):
        build_mechanism("row", bodies, joints, couplings=[*couplings, Coupling("last", "j1000", (("j0", 1.0),))])


@pytest.mark.parametrize(("guess", "message"), [
    ({"jx": 1.0}, "guess: no joint 'jx'; available: ja, jb"),
    ({"ja": (1.0, 2.0)}, "guess, ja: 2 coordinates for joint 'ja'; give 1"),
    ({"jd": 1.0}, "guess, jd: 1 coordinates for joint 'jd'; give 4"),
    ({"ja": math.nan}, "guess, ja: the guess of joint 'ja' is not finite; give finite numbers"),
    ({"ja": parse("2*x")}, "guess of joint 'ja': a guess depends on parameters; give plain numbers"),
    ({"ja": "1"}, "guess of joint 'ja': '1' is not a number"),
    ([("ja", 1.0), ("ja", 2.0)], "guess, ja: joint 'ja' is guessed twice; keep one of them"),
])  # fmt: skip
def test_impossible_guesses(guess, message):
    """Refuse guesses of unknown joints, with a wrong count of numbers, and with values that are not numbers."""
    assert refused(guess=guess).startswith(message)


def test_guesses_are_kept_but_do_not_move_anything():
    """Keep a guess as plain numbers; it changes the hash of the content, not that of the motion."""
    bare, guessed = made(), made(guess={"jd": [0, 0.6, 0, 0.8], "jb": 2})
    assert guessed.guess == (("jd", (0.0, 0.6, 0.0, 0.8)), ("jb", (2.0,)))
    assert guessed.hash != bare.hash
    assert guessed.motion_hash == bare.motion_hash
