"""Records of the parts of a tree on which algorithms run: bodies, frames, loops and couplings.

Each body has a working frame (working_frames.py), whose z axis is the axis of its joint. Placements and masses are
transformed to it at trace time, when they are constants. Records of a mechanism without free parameters are computed
once, and copied for every tree.
"""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from functools import cached_property
from typing import Any

from ... import joints as joint_kinds
from ... import loops as loop_kinds
from ...algebra.flexible import FlexibleMass
from ...algebra.mass import ArticulatedMass, MassMatrix
from ...algebra.propagation import Propagation
from ...algebra.rotations import ONE, Planar, Rotation, constant, snap_to_axes
from ...algebra.scalars import Scalar, cos, is_number, sin
from ...algebra.spatial import Motion, Twist, TwistRate, Wrench
from ...algebra.vectors import Vector, add, cross, from_moments, matmul, sub, times, to_vector, transpose
from ...model.checks import JOINT_SPRING, TRANSMISSION, coefficient_names, require_flat, spring_joint
from ...model.mechanism import Mechanism, kept_with_mechanism, resolve_parts
from ...model.parts import Frame, Placement
from .working_frames import NOISE, WorkingFrame, chosen_frames, plain_frames, split_rotation


class Record:
    """The record of one body: its data, the inputs of its joint, and the results of earlier sweeps."""

    q: tuple
    qd: tuple
    added: tuple

    def __init__(self, body, joint, frame: WorkingFrame, parent: Record | Ground) -> None:
        """Store a body and its joint, whose expressions have already been replaced by scalars."""
        self.body, self.joint, self.kind = body, joint, joint_kinds.kind(joint.kind)
        self.frame, self.parent = frame, parent
        self.to_work = constant(snap_to_axes(transpose(frame.axes)))
        self.height = self.to_work @ frame.origin  # from the body's origin to the working one
        self.added = (0.0,) * self.kind.NV
        self.t = Twist()
        self.w_ext = Wrench()

    def copied(self, parent: Record | Ground) -> Record:
        """Return a copy on the parent's record of another tree, with all constants that have been computed."""
        out = object.__new__(Record)
        vars(out).update(vars(self), parent=parent)
        return out

    @cached_property
    def _stand(self) -> tuple[Propagation, tuple[float, float]]:
        """The propagation from the parent at zero joint displacement, and (cos, sin) of a rotation about z after it."""
        placement, parent = self.joint.placement, self.parent
        rotation = parent.to_work.matrix()
        whole = snap_to_axes(matmul(rotation, matmul(placement.rotation, self.frame.axes)))
        place = sub(add(placement.translation, times(placement.rotation, self.frame.origin)), parent.frame.origin)
        r = clear_rounding(times(rotation, place))
        if self.kind.AXIAL == joint_kinds.ROTATION and all(is_number(x) for row in whole for x in row):
            factors, theta = split_rotation(whole)
            return Propagation(r, factors), theta
        return Propagation(r, constant(whole)), (1.0, 0.0)

    @property
    def stand(self) -> Propagation:
        """The propagation from the parent at zero joint displacement, without the rotation about z."""
        return self._stand[0]

    @cached_property
    def A(self) -> Propagation:
        """The propagation from the parent at the joint's displacement."""
        if isinstance(self.kind, joint_kinds.Elastic):
            return self._deformed
        stand, (c, s) = self._stand
        if (c, s) == (1.0, 0.0):
            before, rotation, after = self.kind.displacement(self.joint, self.q)
            return Propagation(add(stand.r, stand.E @ before), stand.E @ rotation, after)
        (q,) = self.q
        if c in (0.0, 1.0, -1.0):  # quarter rotations only swap sine and cosine
            rotation = Planar(2, c * cos(q) - s * sin(q), s * cos(q) + c * sin(q))
        else:
            rotation = Planar(2, cos(q + math.atan2(s, c)), sin(q + math.atan2(s, c)))
        return Propagation(stand.r, stand.E @ Rotation((rotation,)))

    @property
    def _deformed(self) -> Propagation:
        """The propagation within a flexible body: to the deformed one, which keeps the frame, or to a node."""
        kind: Any = self.kind
        above: Any = self.parent
        if kind.node is None:
            return self.stand
        return above.body.flexible.modal.node(kind.node).at(above.q, above.qd)

    @cached_property
    def P(self) -> Motion:
        """The motion of the joint: one twist per degree of freedom, with its rate."""
        return self.kind.motion(self.joint, self.q, self.qd)

    @property
    def bias(self) -> TwistRate:
        """The part of the joint's twist rate that does not depend on qdd; it requires `t`."""
        return self.P.bias(self.t, self.qd)

    @cached_property
    def M(self) -> Any:
        """The mass matrix about the working origin; that of a flexible body depends on its modal coordinates."""
        if self.body.flexible is not None:
            return self.body.flexible.modal.moments.at(self.q)
        inertia = self.to_work.symmetric_congruence(from_moments(self.body.inertia))
        com = clear_rounding(self.to_work @ sub(self.body.com, self.frame.origin))
        return MassMatrix.of_body(self.body.mass, com, inertia)

    @cached_property
    def armature(self) -> tuple:
        """The inertia of the drive of each degree of freedom, plus the input `added`."""
        own = self.joint.armature or (0.0,) * self.kind.NV
        return tuple(a + b for a, b in zip(own, self.added, strict=True))

    def from_body(self, w: Wrench) -> Wrench:
        """Transform a wrench from the body's own frame to the working frame, origin and axes."""
        n, f = self.to_work @ w.n, self.to_work @ w.f
        return Wrench(sub(n, cross(self.height, f)), f)

    def in_body(self, x):
        """Transform a twist, twist rate, wrench or articulated mass from the working frame to the body's own frame."""
        back, h = self.to_work.T, self.height
        if isinstance(x, FlexibleMass):
            return self.in_body(x.rigid)
        if isinstance(x, ArticulatedMass):
            return x.shifted(h).turned(back)
        if isinstance(x, Wrench):
            return Wrench(back @ add(x.n, cross(h, x.f)), back @ x.f)
        if isinstance(x, TwistRate):
            return TwistRate(back @ x.w, back @ x.dw, back @ sub(x.dv, times(x.U, h)))
        return Twist(back @ x.w, back @ sub(x.v, cross(x.w, h)))


class Ground:
    """The record of the ground: at rest, with gravity as an upward acceleration; sums into it are discarded."""

    frame = WorkingFrame()
    to_work = ONE
    t = Twist()

    def __getattr__(self, name: str) -> _Nothing:
        """Return an object that discards what is added to it, for fields that the algorithm did not set here."""
        return NOTHING


class _Nothing:
    def __add__(self, other):
        return self

    def __or__(self, other):
        return self


NOTHING = _Nothing()


class FrameRecord:
    """A named frame: the record of its body, and its position and rotation in that body's working frame."""

    def __init__(self, frame, record: Record | Ground) -> None:
        """Transform the frame's placement to the working frame."""
        self.record = record
        self.r = record.to_work @ sub(frame.placement.translation, record.frame.origin)
        self.R = snap_to_axes(matmul(record.to_work.matrix(), frame.placement.rotation))
        self.A = Propagation(self.r, constant(self.R))

    def copied(self, record: Record | Ground) -> FrameRecord:
        """Return a copy on the body's record of another tree."""
        out = object.__new__(FrameRecord)
        vars(out).update(vars(self), record=record)
        return out


def loop_frames(loop, record_a: Any, record_b: Any) -> tuple[FrameRecord, FrameRecord]:
    """Return the two frames of a loop, with z along the loop's axis; its expressions are scalars already."""
    axes = loop_kinds.frame(loop)
    a, b = (
        FrameRecord(Frame(loop.name, body, Placement(p.translation, matmul(p.rotation, axes))), record)
        for body, p, record in ((loop.body_a, loop.placement_a, record_a), (loop.body_b, loop.placement_b, record_b))
    )
    return a, b


class LoopRecord:
    """A loop: its two frames, and for each the bodies outward from the nearest common ancestor to it."""

    def __init__(self, loop, a: FrameRecord, b: FrameRecord, chain_a: list, chain_b: list) -> None:
        """Store the loop, its frames and the two chains of bodies."""
        self.loop, self.a, self.b = loop, a, b
        self.chain_a, self.chain_b = chain_a, chain_b


class CouplingRecord:
    """A coupling, sum of ratio * q = offset, with (record, ratio) of each joint, first of the one that follows.

    With a `law`, the coordinate of the first joint less the law of the sum of the others is the offset.
    `moving` is None, or the rate and the acceleration of the offset.
    """

    def __init__(self, coupling, by_joint: Mapping[str, Scalar], moved: Sequence[Scalar] | None = None) -> None:
        """Look up the records of the joints by name; `moved` are an offset, its rate and its acceleration."""
        self.law = coupling.law
        self.name, self.offset = coupling.name, coupling.offset if moved is None else moved[0]
        self.moving = None if moved is None else tuple(moved[1:])
        ratios = ((coupling.joint, 1.0), *((name, -ratio) for name, ratio in coupling.terms))
        self.terms = [(by_joint[name], ratio) for name, ratio in ratios]


def bare_records(mechanism: Mechanism, values: Mapping[str, object]) -> list[Record]:
    """Return one record per body, without inputs."""
    frames = plain_frames(mechanism, values) if mechanism.free_parameters else chosen_frames(mechanism)
    out: list[Record] = []
    for index, (body, joint) in enumerate(zip(mechanism.bodies, mechanism.joints, strict=True)):
        parent = mechanism.parents[index]
        before = out[parent] if parent >= 0 else Ground()
        out.append(Record(resolve_parts(body, values), resolve_parts(joint, values), frames[index], before))
    return out


@kept_with_mechanism
def constant_records(mechanism: Mechanism) -> list[Record]:
    """Return the records of a mechanism without free parameters, with the constants that every tree requires."""
    out = bare_records(mechanism, mechanism.values())
    for record in out:
        _ = record._stand
        if record.body.flexible is None:
            _ = record.M
    return out


def bare_loops(mechanism: Mechanism, values: Mapping[str, object], records: Sequence[Record]) -> list[tuple]:
    """Return each loop with its expressions replaced by scalars, and its two frames."""
    out, index, all_records = [], mechanism.body_indices, (*records, Ground())  # index -1 is the ground
    for loop in mechanism.loops:
        plain = resolve_parts(loop, values)
        out.append((plain, *loop_frames(plain, all_records[index[loop.body_a]], all_records[index[loop.body_b]])))
    return out


@kept_with_mechanism
def constant_loops(mechanism: Mechanism) -> list[tuple]:
    """Return the loops and their frames of a mechanism without free parameters."""
    return bare_loops(mechanism, mechanism.values(), constant_records(mechanism))


def clear_rounding(r: Vector) -> Vector:
    """Return a vector with entries set to zero that are rounding errors relative to the largest."""
    size = max((abs(x) for x in r if is_number(x)), default=0.0)
    return to_vector(0.0 if is_number(x) and abs(x) <= NOISE * size else x for x in r)


# --- Records of contacts: the frames of the surface (a) and of the shape (b), and the bodies between them ---


class ContactRecord:
    """A contact with its two frames, and for each the bodies outward from the nearest common ancestor to it."""

    def __init__(self, contact: object, a: FrameRecord, b: FrameRecord, chain_a: list, chain_b: list) -> None:
        """Store the contact, whose expressions are scalars already, its frames and the two chains of bodies."""
        self.contact, self.a, self.b = contact, a, b
        self.chain_a, self.chain_b = chain_a, chain_b


def contact_ends(contact: Any, of_surface: Any, of_shape: Any) -> tuple[FrameRecord, FrameRecord]:
    """Return the frames of the surface and of the shape, fixed to the records of their bodies."""
    surface = contact.surface
    return (
        FrameRecord(Frame(contact.name, surface.body, surface.placement), of_surface),
        FrameRecord(Frame(contact.name, contact.body, contact.placement), of_shape),
    )


# --- Records of the force elements of a mechanism, with their coefficients as scalars ---


class ForceRecord:
    """A force element: its coefficients by name, and its two points (None for a spring in a joint).

    A spring in a joint has the record of the joint, and stiffness and rest of each degree of freedom. A transmission
    has the records of the two joints, and its coefficients in the order of its law.
    """

    def __init__(self, element: Any, coefficients: dict[str, Any]) -> None:
        """Store an element, whose expressions have been replaced by scalars."""
        self.kind, self.coefficients = element.kind, coefficients
        self.points: tuple[FrameRecord, FrameRecord] | None = None
        self.record: Any = None
        self.ends: tuple[Any, Any] | None = None
        self.stiffness: tuple[Scalar, ...] = ()
        self.rest: tuple[Scalar, ...] = ()


def force_records(mechanism: Mechanism, values: Mapping[str, object], record_of: Any) -> list[ForceRecord]:
    """Return the records of all force elements; `record_of` returns the record of a body by name."""
    carried, out = {j.child: j for j in mechanism.joints}, []
    for element in resolve_parts(mechanism.forces, values):
        names = coefficient_names(element, carried)
        made = ForceRecord(element, dict.fromkeys(names, 0.0) | dict(element.coefficients))
        if element.kind == JOINT_SPRING:
            require_flat(spring_joint(element, carried), f"force {element.name!r}")
            given = tuple(made.coefficients[name] for name in names)
            made.record = record_of(element.body_b)
            made.stiffness, made.rest = given[: len(given) // 2], given[len(given) // 2 :]
        elif element.kind == TRANSMISSION:
            made.ends = record_of(element.body_a), record_of(element.body_b)
        else:
            ends = ((element.body_a, element.point_a), (element.body_b, element.point_b))
            a, b = (FrameRecord(Frame(element.name, x, Placement(p)), record_of(x)) for x, p in ends)
            made.points = a, b
        out.append(made)
    return out
