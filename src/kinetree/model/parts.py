"""The parts of a mechanism: plain frozen data in SI units; any number may be an expression of parameters."""

from __future__ import annotations

import math
from collections.abc import Iterable, Sequence
from dataclasses import dataclass, replace

from .._support.checks import plain
from ..algebra.rotations import from_euler, snap_to_axes
from ..algebra.vectors import (
    IDENTITY,
    ZERO,
    Matrix,
    Vector,
    add,
    from_moments,
    matmul,
    neg,
    symmetric,
    times,
    to_moments,
    transpose,
)
from ..errors import ModelError, at, below, brief, part_at
from .beams import Beam
from .curves import Curve, Law
from .free_beams import FreeBeam
from .modal_bodies import ModalBody
from .parameters import Number
from .part_fields import MAX_NAME, axis_of, check_part, formula, not_a_number, spell_axes

GROUND = "ground"
"""The name of the fixed world, the root of every mechanism."""


@dataclass(frozen=True)
class Placement:
    """The pose of a frame in another: its origin [m] and its axes as the columns of a rotation."""

    translation: Vector = ZERO
    rotation: Matrix = IDENTITY

    def __post_init__(self) -> None:
        """Read formulas in text."""
        if type(self.translation) in (tuple, list) and str in map(type, self.translation):
            place = tuple(formula(x, "translation") for x in self.translation)
            object.__setattr__(self, "translation", place)

    @classmethod
    def from_euler(
        cls, sequence: str, angles: Sequence[Number | str], translation: Vector = ZERO, *, degrees: bool = False
    ) -> Placement:
        """Return the placement with successive rotations about moving axes [rad, or degrees].

        The sequence has one to three letters: "zxz" for the Euler angles of [Goncalves2023] (17), "zyx" for
        (yaw, pitch, roll).
        """
        unit = math.pi / 180 if degrees else 1.0
        if not isinstance(sequence, str) or not 1 <= len(sequence) <= 3 or set(sequence) - set("xyz"):
            raise ModelError(
                f"{brief(sequence)} is not a sequence of axes", remedy='give one to three of x, y, z: "zxz"'
            )
        if len(angles) != len(sequence):
            raise ModelError(f"{len(angles)} angles for the sequence {sequence!r}", remedy=f"give {len(sequence)}")
        turns = [formula(a, "angles") * unit for a in angles]
        return cls(translation, from_euler(sequence, turns))


@dataclass(frozen=True)
class Shape:
    """Something to draw: box (x, y, z), cylinder or capsule (radius, length), sphere (radius), mesh (scale) [m]."""

    kind: str
    size: tuple[float, ...] = ()
    placement: Placement = Placement()
    role: str = "visual"
    file: str = ""
    color: tuple[float, float, float, float] | None = None
    name: str = ""


@dataclass(frozen=True)
class Body:
    """A rigid body: mass [kg], center of mass [m] and inertia about it [kg m^2] as (xx, yy, zz, xy, yz, zx), or 3x3.

    Both are in the body's frame, whose origin is that of the body's joint. A `flexible` body is a beam or a body with
    given modes beside them, clamped in this frame, which has nodes where other parts can be attached.
    """

    name: str
    mass: Number = 0.0
    com: Vector = ZERO
    inertia: tuple[Number, ...] = (0.0, 0.0, 0.0, 0.0, 0.0, 0.0)
    shapes: tuple[Shape, ...] = ()
    flexible: Beam | ModalBody | FreeBeam | None = None

    def __post_init__(self) -> None:
        """Check the name and the counts of numbers."""
        com, inertia, name = self.com, self.inertia, self.name
        usual = type(com) is type(inertia) is tuple and len(com) == 3 and len(inertia) == 6 and type(self.mass) is float
        usual = usual and str not in map(type, (*com, *inertia))
        if not (usual and type(name) is str and 0 < len(name) <= MAX_NAME):  # mechanisms may have very many bodies
            check_part(self, "body")
        if self.flexible is not None and not isinstance(self.flexible, Beam | ModalBody | FreeBeam):
            raise ModelError(
                f"flexible is {brief(self.flexible)}",
                where=part_at("body", name),
                remedy="give a kt.Beam or a kt.ModalBody",
            )


@dataclass(frozen=True)
class Limits:
    """Bounds of coordinates [rad or m], velocities [rad/s or m/s] and forces [N m or N]; an empty tuple means none.

    For a joint with one degree of freedom, single numbers will do.
    """

    lower: tuple[float, ...] = ()
    upper: tuple[float, ...] = ()
    velocity: tuple[float, ...] = ()
    effort: tuple[float, ...] = ()

    def __post_init__(self) -> None:
        """Make tuples of single numbers."""
        for name, value in list(vars(self).items()):
            if isinstance(value, float | int):
                object.__setattr__(self, name, (value,))


SPONG, FULL = "spong", "full"
"""Models of an elastic joint: the rotor as an inertia on its coordinate alone, and as a body that spins."""


@dataclass(frozen=True)
class Elastic:
    """An elastic joint: a motor with a coordinate of its own before a spring, with stiffness and damping.

    Both are [N m/rad] and [N m s/rad] at the joint, or [N/m] and [N s/m] where it slides. The motor's coordinate is
    the rotation of its rotor divided by the `ratio` of the gear, and its torque is `ratio` times that of the shaft, so
    that both compare with those of the joint. `inertia` is that of the rotor about its axis [kg m^2]; without it, the
    armature of the joint is the motor's. `backlash` is the play of the gear from end to end, at the joint [rad, m].
    `motor_damping` and `motor_friction` act on the motor, also at the joint's side of the gear.

    `model` "spong" leaves out what the rotor feels of the motion of its carrier. With "full" it is a body of its own on
    the `carrier`, by default the joint's parent, which spins with `ratio` about its `axis` at its `placement` there,
    by default those of the joint. Its inertia across the axis is half of that about it, and `mass` [kg] is on the axis.
    Mass and inertia are then no part of the carrier.
    """

    stiffness: Number
    damping: Number = 0.0
    inertia: Number | None = None
    ratio: Number = 1.0
    backlash: Number = 0.0
    motor_damping: Number = 0.0
    motor_friction: Number = 0.0
    model: str = SPONG
    mass: Number = 0.0
    carrier: str = ""
    placement: Placement | None = None
    axis: Vector | None = None

    def __post_init__(self) -> None:
        """Read the numbers, and refuse impossible ones."""
        where = at("elastic")
        if self.model not in (SPONG, FULL):
            raise ModelError(
                f"the model is {brief(self.model)}", where=below(where, "model"), remedy=f'give "{SPONG}" or "{FULL}"'
            )
        for key, least in ELASTIC.items():
            given = formula(getattr(self, key), below(where, key))
            if given is None and key == "inertia":
                continue
            x = plain(given)
            if x is None and (given is None or isinstance(given, bool | str | Iterable)):
                raise not_a_number(given, below(where, key))
            x = given if x is None else x  # an expression, or a traced value in its place
            bad = isinstance(x, float) and not (math.isfinite(x) and (x > 0 if least is None else x >= least))
            if bad:
                remedy = "give a number above zero" if least is None else "give zero or more"
                raise ModelError(f"{key} is {x:g}", where=below(where, key), remedy=remedy)
            object.__setattr__(self, key, x)
        if isinstance(self.axis, str):
            object.__setattr__(self, "axis", axis_of(self.axis, below(where, "axis")))
        if self.model == SPONG and (self.carrier or self.mass or self.placement or self.axis):
            raise ModelError(
                "the rotor has a mass or a place, which Spong's model does not use",
                where=where,
                remedy='leave out mass, carrier, placement and axis, or give model="full"',
            )


ELASTIC = {
    "stiffness": None,
    "damping": 0.0,
    "inertia": None,
    "ratio": None,
    "backlash": 0.0,
    "motor_damping": 0.0,
    "motor_friction": 0.0,
    "mass": 0.0,
}
"""The numbers of an elastic joint and their least values; None for those above zero."""


@dataclass(frozen=True)
class Joint:
    """A joint, which lets a child body move relative to its parent.

    The placement is the pose of the child's frame in the parent's at zero displacement; axes are in the child's frame,
    or letters such as "x" and "-z". `axis2` is the second axis of a universal joint (by default any perpendicular one),
    `pitch` [m/rad] that of a helical joint, `ratio` that of a rotor, `sequence` that of Euler angles. Damping, friction
    and armature have a number per degree of freedom; one number holds for all of them. An `elastic` joint has a motor
    before a spring.

    `child_placement` is for a child whose data are not given at the joint, as in a CAD file: the pose of the joint's
    frame in the given frame of the child. `build_mechanism` moves all data of the child into the joint's frame, in
    which the axes are. The given frame remains as the frame "<child>_frame".
    """

    name: str
    kind: str
    parent: str
    child: str
    placement: Placement = Placement()
    axis: Vector = (0.0, 0.0, 1.0)
    axis2: Vector | None = None
    pitch: Number = 0.0
    sequence: str = "zyx"
    limits: Limits = Limits()
    damping: tuple[Number, ...] = ()
    friction: tuple[Number, ...] = ()
    armature: tuple[Number, ...] = ()
    child_placement: Placement | None = None
    ratio: Number | None = None
    elastic: Elastic | None = None

    def __post_init__(self) -> None:
        """Check the name and the counts of numbers."""
        axis, name = self.axis, self.name
        usual = type(axis) is tuple and len(axis) == 3 and self.axis2 is None and type(self.pitch) is float
        usual = usual and type(self.damping) is type(self.friction) is type(self.armature) is tuple
        usual = usual and str not in map(type, (*axis, *self.damping, *self.friction, *self.armature))
        if not (usual and type(name) is str and 0 < len(name) <= MAX_NAME):  # mechanisms may have very many joints
            spell_axes(self, "joint")
            check_part(self, "joint")
        if self.elastic is not None and not isinstance(self.elastic, Elastic):
            raise _no_elastic(self.elastic, part_at("joint", name))


@dataclass(frozen=True)
class Frame:
    """A named frame fixed to a body (or to the ground)."""

    name: str
    body: str
    placement: Placement = Placement()

    def __post_init__(self) -> None:
        """Check the name and the counts of numbers."""
        check_part(self, "frame")


@dataclass(frozen=True)
class Loop:
    """A constraint between frames of two bodies: a cut joint, a rod, a point on a line or plane, a wheel on a plane.

    The axis is in frame a, or a letter such as "x" and "-z". `axis2` is the second axis of a universal cut, the axle of
    a wheel or the direction of a knife edge, fixed to frame b. `pitch` [m/rad] is that of a helical cut and `length`
    [m] that of a rod. `radius` [m] is that of a wheel or ball whose center is the origin of frame b and which rolls on
    the plane through the origin of frame a perpendicular to the axis. `angle` [rad] is that of the rollers of a wheel:
    0 along its axle, 45 degrees for Mecanum wheels. `curve` is that of a cam or slot in the plane of frame a
    perpendicular to the axis, and `curve_b` that of another cam in frame b.
    """

    name: str
    kind: str
    body_a: str
    body_b: str
    placement_a: Placement = Placement()
    placement_b: Placement = Placement()
    axis: Vector = (0.0, 0.0, 1.0)
    axis2: Vector | None = None
    pitch: Number = 0.0
    length: Number = 0.0
    radius: Number | None = None
    angle: Number | None = None
    curve: Curve | None = None
    curve_b: Curve | None = None

    def __post_init__(self) -> None:
        """Check the name and the counts of numbers."""
        spell_axes(self, "loop")
        check_part(self, "loop")


@dataclass(frozen=True)
class Pair:
    """A joint between two bodies, given without a tree: frame b moves relative to frame a like the child of a joint.

    Frame a is fixed to body_a at placement_a, frame b to body_b at placement_b; at zero displacement they coincide.
    Axes are in these frames, or letters such as "x" and "-z". `cut` is true for a pair that must become a loop, false
    for one that must stay in the tree, such as an actuated joint. All other fields are those of a Joint.
    """

    name: str
    kind: str
    body_a: str
    body_b: str
    placement_a: Placement = Placement()
    placement_b: Placement = Placement()
    axis: Vector = (0.0, 0.0, 1.0)
    axis2: Vector | None = None
    pitch: Number = 0.0
    sequence: str = "zyx"
    limits: Limits = Limits()
    damping: tuple[Number, ...] = ()
    friction: tuple[Number, ...] = ()
    armature: tuple[Number, ...] = ()
    cut: bool | None = None
    ratio: Number | None = None
    elastic: Elastic | None = None

    def __post_init__(self) -> None:
        """Check the name and the counts of numbers."""
        spell_axes(self, "pair")
        check_part(self, "pair")
        if self.elastic is not None and not isinstance(self.elastic, Elastic):
            raise _no_elastic(self.elastic, part_at("pair", self.name))


def _no_elastic(given: object, where: str) -> ModelError:
    return ModelError(f"elastic is {brief(given)}", where=where, remedy="give a kt.Elastic")


@dataclass(frozen=True)
class Coupling:
    """A coordinate that follows others: q[joint] = offset + u, or offset + law(u), with u the sum of ratio q[other]."""

    name: str
    joint: str
    terms: tuple[tuple[str, Number], ...]
    offset: Number = 0.0
    law: Law | None = None

    def __post_init__(self) -> None:
        """Check the name and the counts of numbers."""
        check_part(self, "coupling")


@dataclass(frozen=True)
class ForceElement:
    """A force between two points or joints, such as a spring-damper or a transmission, with its named coefficients.

    A spring in a joint, and a transmission between two joints, name the joints by the bodies that they carry.
    """

    name: str
    kind: str
    body_a: str
    body_b: str
    point_a: Vector = ZERO
    point_b: Vector = ZERO
    coefficients: tuple[tuple[str, Number], ...] = ()

    def __post_init__(self) -> None:
        """Check the name and the counts of numbers."""
        check_part(self, "force")


# --- Placements composed and inverted, and bodies given in another frame; numbers may be expressions of parameters.


def compose(a: Placement, b: Placement) -> Placement:
    """Return the placement b, given in a frame with placement a, in the frame in which a is given."""
    return Placement(add(a.translation, times(a.rotation, b.translation)), snap_to_axes(matmul(a.rotation, b.rotation)))


def inverse(a: Placement) -> Placement:
    """Return the placement of the outer frame in the inner one."""
    back = transpose(a.rotation)
    return Placement(neg(times(back, a.translation)), back)


def place_body(a: Placement, body: Body) -> Body:
    """Return a body whose frame has the placement a, with its data in the frame in which a is given."""
    inertia = matmul(matmul(a.rotation, from_moments(body.inertia)), transpose(a.rotation))
    return replace(
        body,
        com=add(a.translation, times(a.rotation, body.com)),
        inertia=to_moments(symmetric(inertia)),
        shapes=tuple(replace(s, placement=compose(a, s.placement)) for s in body.shapes),
    )
