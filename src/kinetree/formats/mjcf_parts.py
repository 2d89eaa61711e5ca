"""The bodies, joints and sites of a compiled MuJoCo model as parts of a mechanism.

A body of MuJoCo may have several joints, each with an anchor away from the body's origin. Here a joint has one child
body, whose origin is the anchor. So each joint but the last gets a massless body, and the frame of a body moves to the
anchor of its last joint. Coordinates are those of MuJoCo, except that quaternions have w last.
"""

from __future__ import annotations

import math
from dataclasses import dataclass, replace
from types import ModuleType
from typing import Any

from ..algebra.rotations import from_axis_angle, from_quaternion, snap_to_axes
from ..algebra.vectors import (
    IDENTITY,
    ZERO,
    Matrix,
    Vector,
    add,
    matmul,
    neg,
    scale,
    sub,
    symmetric,
    times,
    to_moments,
    transpose,
)
from ..joints._common import axes_with_z
from ..model.part_fields import free_name
from ..model.parts import GROUND, Body, Coupling, Frame, Joint, Limits, Loop, Placement, Shape
from .mjcf_xml import Prepared
from .report import Report

FREE, BALL, SLIDE, HINGE = range(4)
"""MuJoCo's type numbers of joints."""
KINDS = {FREE: "free", BALL: "spherical", SLIDE: "prismatic", HINGE: "revolute"}
SIZES = {FREE: (7, 6), BALL: (4, 3), SLIDE: (1, 1), HINGE: (1, 1)}
"""Numbers of coordinates and of velocities by type."""


@dataclass(frozen=True)
class Import:
    """A MuJoCo model that is being read: the package, the model, the names of its parts, and the report."""

    mujoco: ModuleType
    model: Any
    prepared: Prepared
    report: Report
    bodies: tuple[str, ...]
    joints: tuple[str, ...]
    sites: tuple[str, ...]

    def placement(self, body: int, place: object, quaternion: object = (1, 0, 0, 0)) -> Placement:
        """Return a placement in MuJoCo's frame of a body as one in the body's frame here."""
        return Placement(sub(vector(place), self.anchor(body)), rotation_of_quaternion(quaternion))

    def anchor(self, body: int) -> Vector:
        """Return the origin of a body's frame here, in MuJoCo's: the anchor of its last hinge or ball joint."""
        out = ZERO
        for j in joints_of(self.model, body):
            out = self.moved(j, out)
        return out

    def moved(self, joint: int, before: Vector) -> Vector:
        """Return the origin of a joint's child frame: the anchor of a hinge or ball, else the origin before it."""
        return vector(self.model.jnt_pos[joint]) if self.model.jnt_type[joint] in (HINGE, BALL) else before


def read_tree(given: Import, shapes: dict[int, tuple[Shape, ...]]) -> tuple[list[Body], list[Joint], list[Frame]]:
    """Return bodies, joints (fixed ones for bodies without a joint), and the frames of sites and bodies."""
    bodies: list[Body] = []
    joints: list[Joint] = []
    frames: list[Frame] = []
    taken = {GROUND, *given.bodies, *given.sites}
    joint_names = set(given.joints)
    for b in range(1, given.model.nbody):
        name, anchor = given.bodies[b], given.anchor(b)
        own = list(joints_of(given.model, b))
        carried = [free_name(f"{name}_{k + 1}", taken) for k in range(len(own) - 1)] + [name]
        bodies += [Body(massless) for massless in carried[:-1]]
        bodies.append(_body(given, b, shapes.get(b, ())))
        if own:
            joints += _chain(given, b, own, carried)
        else:
            joints.append(Joint(free_name(name, joint_names), "fixed", *_parent(given, b, name, ZERO, IDENTITY)))
        if carried[:-1]:
            given.report.changed(
                f"body {name!r} has {len(own)} joints: the first ones move massless bodies, {', '.join(carried[:-1])}",
                given.prepared.line("body", name),
            )
        if anchor != ZERO:
            frames.append(Frame(free_name(f"{name}_frame", taken), name, Placement(neg(anchor))))
            given.report.changed(
                f"the origin of body {name!r} moves to its joint's anchor; frame {frames[-1].name!r} is the old one",
                given.prepared.line("body", name),
            )
    for s in range(given.model.nsite):
        b = int(given.model.site_bodyid[s])
        place = given.placement(b, given.model.site_pos[s], given.model.site_quat[s])
        frames.append(Frame(given.sites[s], given.bodies[b], place))
    return bodies, joints, frames


def read_guess(given: Import) -> dict[str, tuple[float, ...]]:
    """Return MuJoCo's reference coordinates, at which its equalities hold, for joints where they are not neutral."""
    out = {}
    for j in range(given.model.njnt):
        type_, at = int(given.model.jnt_type[j]), int(given.model.jnt_qposadr[j])
        reference = tuple(map(float, given.model.qpos0[at : at + SIZES[type_][0]]))
        if type_ == FREE:
            reference = (*reference[:3], *last_w(reference[3:]))
        if type_ != BALL and reference not in ((0.0,), (0.0,) * 6 + (1.0,)):
            out[given.joints[j]] = reference
    return out


def _body(given: Import, b: int, shapes: tuple[Shape, ...]) -> Body:
    m = given.model
    turn = rotation_of_quaternion(m.body_iquat[b])
    x, y, z = map(float, m.body_inertia[b])
    diagonal: Matrix = ((x, 0.0, 0.0), (0.0, y, 0.0), (0.0, 0.0, z))
    inertia = to_moments(symmetric(matmul(matmul(turn, diagonal), transpose(turn))))
    if m.body_gravcomp[b]:
        given.report.dropped(f"gravcomp = {m.body_gravcomp[b]:g} of body {given.bodies[b]!r}")
    if m.body_mocapid[b] >= 0:
        given.report.changed(f"the mocap body {given.bodies[b]!r} does not move")
    return Body(given.bodies[b], float(m.body_mass[b]), sub(vector(m.body_ipos[b]), given.anchor(b)), inertia, shapes)


def _parent(given: Import, b: int, child: str, anchor: Vector, turn: Matrix) -> tuple[str, str, Placement]:
    """Return parent, child and placement of the first joint of a body, with its frame rotated at its anchor."""
    m = given.model
    above, rotation = int(m.body_parentid[b]), rotation_of_quaternion(m.body_quat[b])
    place = sub(add(vector(m.body_pos[b]), times(rotation, anchor)), given.anchor(above))
    return given.bodies[above], child, Placement(place, snap_to_axes(matmul(rotation, turn)))


def _chain(given: Import, b: int, own: list[int], carried: list[str]) -> list[Joint]:
    """Return the joints of a body as a chain."""
    m, out = given.model, []
    before = ZERO
    for k, j in enumerate(own):
        type_, anchor = int(m.jnt_type[j]), given.moved(j, before)
        axis = vector(m.jnt_axis[j])
        reference = float(m.qpos0[m.jnt_qposadr[j]]) if type_ in (HINGE, SLIDE) else 0.0
        # MuJoCo's coordinates are relative to the reference: at q = 0 the child is displaced by minus the reference
        turn = from_axis_angle(axis, -reference) if type_ == HINGE and reference else IDENTITY
        start = add(anchor, scale(-reference, axis)) if type_ == SLIDE else anchor
        if type_ == FREE:
            ends = (GROUND, carried[k], Placement())
        elif k == 0:
            ends = _parent(given, b, carried[k], start, turn)
        else:
            ends = (carried[k - 1], carried[k], Placement(sub(start, before), turn))
        out.append(_joint(given, j, *ends, axis if type_ in (HINGE, SLIDE) else (0.0, 0.0, 1.0)))
        before = anchor
    return out


def _joint(given: Import, j: int, parent: str, child: str, placement: Placement, axis: Vector) -> Joint:
    m, name, type_ = given.model, given.joints[j], int(given.model.jnt_type[j])
    line = given.prepared.line("joint", name)
    at = int(m.jnt_dofadr[j])
    dofs = slice(at, at + SIZES[type_][1])
    if _any(m, "dof_dampingpoly", dofs):
        given.report.dropped(f"the nonlinear damping of joint {name!r}", line)
    if type_ == FREE and m.dof_armature[dofs].any():
        given.report.suspect(f"the armature of the free joint {name!r} acts along the body's axes here", line)
    return Joint(
        name,
        KINDS[type_],
        parent,
        child,
        placement,
        axis,
        limits=_limits(given, j, line),
        damping=_of_dofs(m.dof_damping[dofs]),
        friction=_of_dofs(m.dof_frictionloss[dofs]),
        armature=_of_dofs(m.dof_armature[dofs]),
    )


def _any(m: object, array: str, at: int | slice) -> bool:
    """Return whether an array, which only newer versions of MuJoCo have, has nonzero entries there."""
    return hasattr(m, array) and bool(getattr(m, array)[at].any())


def _limits(given: Import, j: int, line: int | None) -> Limits:
    m, name = given.model, given.joints[j]
    lower, upper = map(float, m.jnt_range[j])
    effort: tuple[float, ...] = ()
    if m.jnt_actfrclimited[j]:
        low, high = map(float, m.jnt_actfrcrange[j])
        effort = (high,) if math.isclose(-low, high) else ()
        if not effort:
            given.report.dropped(f"actuatorfrcrange = {low:g} {high:g} of joint {name!r}: not symmetric", line)
    if not m.jnt_limited[j]:
        return Limits(effort=effort)
    if m.jnt_type[j] == BALL:
        given.report.dropped(f"range = {lower:g} {upper:g} of the ball joint {name!r}", line)
        return Limits()
    return Limits((lower,), (upper,), effort=effort)


def _of_dofs(numbers: Any) -> tuple[float, ...]:
    """Return one number per degree of freedom, or nothing if all are zero."""
    return tuple(map(float, numbers)) if numbers.any() else ()


def joints_of(model: Any, body: int) -> range:
    """Return the indices of a body's joints."""
    start = int(model.body_jntadr[body])
    return range(start, start + int(model.body_jntnum[body]))


def vector(numbers: Any) -> Vector:
    """Return three plain numbers."""
    x, y, z = map(float, numbers)
    return (x + 0.0, y + 0.0, z + 0.0)


def rotation_of_quaternion(quaternion: object) -> Matrix:
    """Return the rotation matrix of a MuJoCo quaternion, which has w first."""
    return snap_to_axes(from_quaternion(last_w(quaternion)))


def last_w(quaternion: Any) -> tuple[float, float, float, float]:
    """Return a MuJoCo quaternion with w last and unit length."""
    w, x, y, z = map(float, quaternion)
    length = math.hypot(w, x, y, z)
    return (x / length, y / length, z / length, w / length)


# --- The equality constraints of a compiled MuJoCo model as loops and couplings ---

CONNECT, WELD, JOINT = range(3)
"""MuJoCo's type numbers of the equalities that are read."""
TAGS = ("connect", "weld", "joint")


def read_equalities(given: Import) -> tuple[list[Loop], list[Coupling]]:
    """Return <connect>s as spherical loops, <weld>s as fixed loops and <joint>s as couplings, all of them exact."""
    m, mujoco = given.model, given.mujoco
    loops: list[Loop] = []
    couplings: list[Coupling] = []
    taken: set[str] = set()
    disabled = bool(m.opt.disableflags & mujoco.mjtDisableBit.mjDSBL_EQUALITY)
    for e in range(m.neq):
        type_, name = int(m.eq_type[e]), m.equality(e).name
        line = given.prepared.line(TAGS[type_], name)
        name = free_name(name or f"{TAGS[type_]}{e + 1}", taken)
        if disabled or not m.eq_active0[e]:
            given.report.dropped(f"the {TAGS[type_]} {name!r}: it is not active", line)
        elif type_ == JOINT:
            couplings += _coupling(given, e, name, line)
        else:
            sites = m.eq_objtype[e] == mujoco.mjtObj.mjOBJ_SITE
            loops.append(_at_sites(given, e, name) if sites else _at_bodies(given, e, name))
    if loops or couplings:
        given.report.changed("equalities hold exactly here; solref, solimp and torquescale are not read")
    return _hinged(loops, given.report), couplings


HINGED = 1e-9
"""The largest difference between the distances of two points in two bodies [m per meter] that one hinge can have."""


def _hinged(loops: list[Loop], report: Report) -> list[Loop]:
    """Return the loops with two <connect>s of the same bodies as one revolute cut, whose axis goes through both points.

    Three points and more, or two whose distance is not the same in both bodies, are left as they are.
    """
    groups: dict[tuple[str, str], list[Loop]] = {}
    for loop in loops:
        if loop.kind == "spherical":
            exchanged = (loop.body_b, loop.body_a) in groups
            group = groups.setdefault((loop.body_b, loop.body_a) if exchanged else (loop.body_a, loop.body_b), [])
            group.append(_exchanged(loop) if exchanged else loop)
    out = {loop.name: loop for loop in loops}
    for one, two in (group for group in groups.values() if len(group) == 2):
        along_a = sub(two.placement_a.translation, one.placement_a.translation)
        along_b = sub(two.placement_b.translation, one.placement_b.translation)
        length = math.hypot(*along_a)
        if length < HINGED or abs(length - math.hypot(*along_b)) > HINGED * length:
            continue
        a = Placement(one.placement_a.translation, axes_with_z(along_a))
        b = Placement(one.placement_b.translation, axes_with_z(along_b))
        out[one.name] = replace(one, kind="revolute", placement_a=a, placement_b=b, axis=(0.0, 0.0, 1.0))
        del out[two.name]
        report.changed(f"the connects {one.name!r} and {two.name!r} are one revolute loop: two points are on its axis")
    return list(out.values())


def _exchanged(x: Loop) -> Loop:
    return replace(x, body_a=x.body_b, body_b=x.body_a, placement_a=x.placement_b, placement_b=x.placement_a)


def _coupling(given: Import, e: int, name: str, line: int | None) -> list[Coupling]:
    """Return q1 - ref1 = a0 + a1 (q2 - ref2) as a coupling, or nothing if it is not linear."""
    m = given.model
    one, two = int(m.eq_obj1id[e]), int(m.eq_obj2id[e])
    constant, ratio, *higher = map(float, m.eq_data[e][:5])
    if two >= 0 and any(higher):
        given.report.dropped(
            f"the equality {name!r}: joint {given.joints[one]!r} follows {given.joints[two]!r} by a polynomial, and "
            "couplings are linear",
            line,
        )
        return []
    offset = constant + _reference(m, one)
    if two < 0:
        return [Coupling(name, given.joints[one], (), offset)]
    return [Coupling(name, given.joints[one], ((given.joints[two], ratio),), offset - ratio * _reference(m, two))]


def _reference(m: Any, joint: int) -> float:
    return float(m.qpos0[m.jnt_qposadr[joint]])


def _at_bodies(given: Import, e: int, name: str) -> Loop:
    m = given.model
    one, two, data = int(m.eq_obj1id[e]), int(m.eq_obj2id[e]), m.eq_data[e]
    if m.eq_type[e] == CONNECT:
        return _loop(
            given, name, "spherical", one, two, given.placement(one, data[:3]), given.placement(two, data[3:6])
        )
    # data is (point in body 2, point in body 1, rotation of body 2 in body 1, ...)
    a = given.placement(one, data[3:6], data[6:10])
    return _loop(given, name, "fixed", one, two, a, given.placement(two, data[:3]))


def _at_sites(given: Import, e: int, name: str) -> Loop:
    m = given.model
    ends = []
    for site in (int(m.eq_obj1id[e]), int(m.eq_obj2id[e])):
        body = int(m.site_bodyid[site])
        ends.append((body, given.placement(body, m.site_pos[site], m.site_quat[site])))
    (one, a), (two, b) = ends
    return _loop(given, name, "spherical" if m.eq_type[e] == CONNECT else "fixed", one, two, a, b)


def _loop(given: Import, name: str, kind: str, one: int, two: int, a: Placement, b: Placement) -> Loop:
    return Loop(name, kind, given.bodies[one], given.bodies[two], a, b)
