"""Bodies given in frames of their own: the same mechanism as with all data in the frames of the joints."""

from __future__ import annotations

from dataclasses import replace

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from closed_mechanisms import closed
from kinetree import Body, ForceElement, Frame, Joint, ModelError, Parameter, Placement, Shape, System, build_mechanism
from kinetree.formats.toml import read_toml_text
from kinetree.formats.toml_writer import write_toml
from kinetree.model import GROUND, Mechanism, parse
from kinetree.model.mechanism import resolve_parts
from kinetree.model.parts import compose, inverse, place_body
from strategies import State, examples, mechanisms, nested, placement, random_mechanism
from tolerance import assert_close


def as_drawn(mechanism: Mechanism, seed: int) -> Mechanism:
    """Return the mechanism assembled from data of bodies in random frames: those of a CAD file, say."""
    rng = np.random.default_rng(seed)
    where = {b.name: placement(rng) for b in mechanism.bodies} | {GROUND: Placement()}

    def moved(body: str, place: Placement) -> Placement:
        return compose(where[body], place)

    def point(body: str, x):
        return moved(body, Placement(x)).translation

    return build_mechanism(
        mechanism.name,
        [place_body(where[b.name], b) for b in mechanism.bodies],
        [replace(j, placement=moved(j.parent, j.placement), child_placement=where[j.child]) for j in mechanism.joints],
        frames=[replace(f, placement=moved(f.body, f.placement)) for f in mechanism.frames],
        loops=[
            replace(x, placement_a=moved(x.body_a, x.placement_a), placement_b=moved(x.body_b, x.placement_b))
            for x in mechanism.loops
        ],
        forces=[
            replace(x, point_a=point(x.body_a, x.point_a), point_b=point(x.body_b, x.point_b)) for x in mechanism.forces
        ],
        couplings=mechanism.couplings,
        gravity=mechanism.gravity,
        guess=mechanism.guess,
    )


def numbers(x) -> list[float]:
    """Return all numbers of a part or of a tuple of parts."""
    if isinstance(x, float):
        return [x]
    items = x if isinstance(x, tuple) else vars(x).values() if hasattr(x, "__dataclass_fields__") else ()
    return [n for item in items for n in numbers(item)]


def furnished(mechanism: Mechanism, seed: int) -> Mechanism:
    """Return the mechanism with shapes on its bodies, a spring and frames."""
    rng = np.random.default_rng(seed)
    bodies = tuple(replace(b, shapes=(Shape("sphere", (0.1,), placement(rng)),)) for b in mechanism.bodies)
    ends = (GROUND, mechanism.bodies[-1].name)
    points = nested(rng.normal(size=(2, 3)))
    spring = ForceElement("spring", "spring_damper", *ends, *points, (("stiffness", 300.0),))
    frames = (Frame("point", ends[1], placement(rng)), Frame("mark", GROUND, placement(rng)))
    return replace(mechanism, bodies=bodies, forces=(spring,), frames=frames)


@examples(30)
@given(mechanisms(), st.integers(0, 2**32 - 1))
def test_data_in_any_frames_give_the_same_mechanism(tree, seed):
    """Move bodies, shapes, frames, springs and child joints into the frames of the joints, with nothing lost."""
    expected = furnished(tree, seed)
    found = as_drawn(expected, seed)
    assert all(j.child_placement is None for j in found.joints)
    for sort in ("bodies", "joints", "forces"):
        a, b = getattr(found, sort), getattr(expected, sort)
        assert [x.name for x in a] == [x.name for x in b]
        assert_close(numbers(a), numbers(b), 1e-14, sort)
    assert_close(numbers(found.frames[:2]), numbers(expected.frames), 1e-14, "frames")


def test_loops_move_with_their_bodies():
    """Keep a closed mechanism closed at the same coordinates."""
    tree = random_mechanism(["revolute", "spherical", "cylindrical"], [-1, 0, 1], 3)
    whole, q = closed(tree, [("universal", "b2", GROUND), ("rod", "b0", "b2")], 5, coupled=True)
    found = as_drawn(whole, 8)
    assert_close(System(found).closure_residual(q), np.zeros(len(whole.closures)), 1e-13, "closure")
    assert (found.couplings, found.guess) == (whole.couplings, whole.guess)


def test_the_given_frame_keeps_its_pose():
    """Find the given frame of each body under its name, where the CAD file has it, and write it to a file."""
    place = Placement.from_euler("zxz", (0.2, 0.9, -0.4), (0.1, 0.2, -0.3))
    bodies = [Body("a", 1.0, (0.1, 0.2, 0.3), (1.0, 1.2, 1.1, 0.1, 0.2, 0.05)), Body("b_frame"), Body("b")]
    joints = [
        Joint("j", "revolute", GROUND, "a", Placement((1.0, 0.0, 0.0)), child_placement=place),
        Joint("k", "fixed", "a", "b_frame", child_placement=Placement()),
        Joint("l", "fixed", "a", "b", child_placement=place),
    ]
    mechanism = build_mechanism("two", bodies, joints)
    assert [(f.name, f.body) for f in mechanism.frames] == [
        ("a_frame", "a"), ("b_frame_frame", "b_frame"), ("b_frame_", "b")
    ]  # fmt: skip
    assert mechanism.frames[0].placement == inverse(place)
    found = System(mechanism).pose(np.zeros(1), "a_frame")
    expected = compose(Placement((1.0, 0.0, 0.0)), inverse(place))
    assert_close(found[:3, 3], expected.translation, 1e-15, "position")
    again, _ = read_toml_text(write_toml(mechanism))
    assert again.hash == mechanism.hash


TEXT = """\
[parameters]
offset = { value = 0.15, free = true }
tilt = { value = 20.0, free = true }

[[body]]
name = "arm"
mass = 1.3
com = [0.1, "offset", -0.2]
inertia = [0.5, 0.6, 0.7, 0.05, -0.04, 0.03]

[[body]]
name = "hand"
mass = 0.4
com = [0.05, 0.01, 0.02]
inertia = [0.05, 0.06, 0.07, 0.005, -0.004, 0.003]

[[joint]]
name = "shoulder"
kind = "revolute"
parent = "ground"
child = "arm"
axis = "y"
child_placement = { translation = [0.1, "2*offset", 0], zxz_deg = [10, "tilt", -30] }

[[joint]]
name = "wrist"
kind = "revolute"
parent = "arm"
child = "hand"
axis = "-x"
translation = ["offset", 0.3, 0.1]
child_placement = { rpy_deg = ["tilt", 0, 15] }
"""


def test_free_parameters_in_both_placements():
    """Compute with parameters in the placements of children as with their numbers."""
    mechanism, report = read_toml_text(TEXT, file="arm.toml")
    system, values = System(mechanism), np.array([0.27, -50.0])
    plain, _ = read_toml_text(TEXT.replace("0.15, free = true", "0.27").replace("20.0, free = true", "-50.0"))
    state = State(mechanism, 3)
    found = system.inverse_dynamics(state.q, state.qd, state.qdd, parameters=values)
    expected = System(resolve_parts(plain, plain.values())).inverse_dynamics(state.q, state.qd, state.qdd)
    assert_close(found, expected, 1e-13, "torques")
    pose = system.pose(state.q, "hand_frame", parameters=values)
    assert_close(pose, System(plain).pose(state.q, "hand_frame"), 1e-14, "pose")
    assert [str(entry) for entry in report.of("changed")] == [
        "arm.toml:5: the data of body 'arm' are moved to its joint; frame 'arm_frame' is the given one",
        "arm.toml:11: the data of body 'hand' are moved to its joint; frame 'hand_frame' is the given one",
    ]
    assert read_toml_text(write_toml(mechanism))[0].hash == mechanism.hash


@pytest.mark.parametrize(("place", "message"), [
    (Placement((0.0, float("nan"), 0.0)), "joint 'j', child_placement: translation is nan; give a finite number"),
    (Placement((0.0, parse("l"), 0.0)), "joint 'j', child_placement: no parameter 'l'; available: p"),
    ((1.0, 2.0, 3.0), "joint 'j', child_placement: (1.0, 2.0, 3.0) is not a kt.Placement; leave it out, or give kt."),
    (Placement((0.0, 0.0)), "joint 'j', translation: 2 numbers; give 3"),
    (Placement(rotation=((0.0, 1.0, 0.0), (1.0, 0.0, 0.0), (0.0, 0.0, 1.0))),
     "joint 'j', child_placement: the rotation is not orthonormal with determinant 1: it is a reflection"),
])  # fmt: skip
def test_impossible_placements_are_refused(place, message):
    """Name the joint and its placement in the child."""
    with pytest.raises(ModelError) as caught:
        joint = Joint("j", "revolute", GROUND, "a", child_placement=place)
        build_mechanism("bad", [Body("a", 1.0)], [joint], parameters=[Parameter("p", 1.0)])
    assert str(caught.value).startswith(message)


def test_axes_by_letter():
    """Give axes by letter in Python too, and refuse other letters."""
    assert Joint("j", "revolute", GROUND, "a", axis="-y").axis == (0.0, -1.0, 0.0)  # type: ignore[arg-type]
    with pytest.raises(ModelError, match="joint 'j', axis: 'Y' is not an axis; give x, y, z, -x, -y, -z, or three"):
        Joint("j", "revolute", GROUND, "a", axis="Y")  # type: ignore[arg-type]


@pytest.mark.parametrize(("sequence", "angles", "message"), [
    ("abc", (1, 2, 3), "'abc' is not a sequence of axes; give one to three of x, y, z: \"zxz\""),
    ("zxz", (1, 2), "2 angles for the sequence 'zxz'; give 3"),
])  # fmt: skip
def test_impossible_angles_are_refused(sequence, angles, message):
    """Refuse other letters, and counts of angles that differ from the letters."""
    with pytest.raises(ModelError) as caught:
        Placement.from_euler(sequence, angles)
    assert str(caught.value) == message


def test_parts_that_are_not_assembled_are_written_whole():
    """Write the placement in a child of loose parts, and read the mechanism that `assemble` makes of them."""
    place = Placement((0.1, 0.2, -0.3))
    loose = Mechanism("loose", (Body("a", 1.0),), (Joint("j", "revolute", GROUND, "a", child_placement=place),))
    found, _ = read_toml_text(write_toml(loose))
    assert found.hash == build_mechanism("loose", loose.bodies, loose.joints).hash
    assert loose.hash != replace(loose, joints=(replace(loose.joints[0], child_placement=None),)).hash
