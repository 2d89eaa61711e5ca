"""Merging of bodies connected by fixed joints into one body, whose names remain as frames, and locking of joints."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, replace

from .. import joints as joint_kinds
from .. import loops as loop_kinds
from ..algebra.vectors import (
    ZERO,
    ZERO_MATRIX,
    Matrix,
    Vector,
    add,
    from_moments,
    madd,
    matmul,
    scale,
    sub,
    symmetric,
    times,
    to_moments,
    transpose,
)
from ..errors import InputError
from ..model.checks import JOINT_SPRING, TRANSMISSION
from ..model.mechanism import Mechanism, resolve_parts
from ..model.parameters import plain_number
from ..model.parts import GROUND, Body, Coupling, Frame, Joint, Loop, Placement, Shape, compose, inverse, place_body
from .report import Report


@dataclass(frozen=True)
class Weld:
    """A body merged into another (or into the ground), and the fixed joint between them, if there was one."""

    body: str
    carrier: str
    joint: str
    mass: float


@dataclass(frozen=True)
class Merged:
    """A tree without fixed joints, and the results of the merge.

    `hidden` has the names of fixed joints without a frame, because another part has their name. `ground_shapes` are
    those of bodies welded to the ground, which has no shapes of its own.
    """

    bodies: tuple[Body, ...]
    joints: tuple[Joint, ...]
    frames: tuple[Frame, ...]
    welds: tuple[Weld, ...]
    hidden: tuple[str, ...]
    ground_shapes: tuple[Shape, ...]

    @property
    def carriers(self) -> dict[str, Frame]:
        """The frame of each body that was merged, in the body that carries it."""
        return {weld.body: frame for weld, frame in zip(self.welds, self.frames, strict=False)}


def merge_fixed(bodies: Sequence[Body], joints: Sequence[Joint]) -> Merged:
    """Return the tree with all fixed joints merged; a body that is the child of no joint is fixed to the ground.

    Bodies and joints must form trees, with plain numbers; they keep their order.
    """
    where = _carriers(bodies, joints)
    by_child = {j.child: j for j in joints}
    members: dict[str, list[tuple[Placement, Body]]] = {}
    for body in sorted(bodies, key=lambda b: where[b.name][0] != b.name):  # the carrying body comes first
        carrier, placement = where[body.name]
        members.setdefault(carrier, []).append((placement, body))
    fixed = [b for b in bodies if where[b.name][0] != b.name]
    welds = [Weld(b.name, where[b.name][0], _joint_name(by_child, b.name), plain_number(b.mass)) for b in fixed]
    frames = [Frame(b.name, *where[b.name]) for b in fixed]
    taken = {GROUND, *(b.name for b in bodies)}
    held = [w for w in welds if w.joint]
    frames += [Frame(w.joint, *where[w.body]) for w in held if w.joint not in taken]
    return Merged(
        bodies=tuple(combine_bodies(members[b.name]) for b in bodies if where[b.name][0] == b.name),
        joints=tuple(_moved(j, *where[j.parent]) for j in joints if joint_kinds.kind(j.kind).NV),
        frames=tuple(frames),
        welds=tuple(welds),
        hidden=tuple(w.joint for w in held if w.joint in taken),
        ground_shapes=_shapes([place_body(p, b) for p, b in members.get(GROUND, [])]),
    )


def move_loops(loops: Iterable[Loop], where: Mapping[str, Frame], report: Report) -> list[Loop]:
    """Return loops between the bodies that carry those of the file; one within a body is reported as dropped."""
    out = []
    for loop in loops:
        a, b = _on(where, loop.body_a, loop.placement_a), _on(where, loop.body_b, loop.placement_b)
        if a.body == b.body:
            report.dropped(f"the loop {loop.name!r}: both its ends are on {a.body!r}")
        else:
            placements = {"placement_a": a.placement, "placement_b": b.placement}
            out.append(replace(loop, body_a=a.body, body_b=b.body, **placements))
    return out


def combine_bodies(members: Sequence[tuple[Placement, Body]]) -> Body:
    """Return the first body with the mass and shapes of all, given with their placements in the frame of the first."""
    masses = [plain_number(b.mass) for _, b in members]
    moved = [place_body(p, b) for p, b in members]
    centers = [b.com for b in moved]
    heavy = [(m, c) for m, c in zip(masses, centers, strict=True) if m != 0]
    mass = sum(masses)
    com = _center(heavy, mass) if heavy else centers[0]
    inertia = ZERO_MATRIX
    for b in moved:
        inertia = madd(inertia, from_moments(b.inertia))
    for m, c in heavy:
        inertia = madd(inertia, _of_point(m, sub(c, com)))
    return replace(members[0][1], mass=mass, com=com, inertia=to_moments(symmetric(inertia)), shapes=_shapes(moved))


def _carriers(bodies: Sequence[Body], joints: Sequence[Joint]) -> dict[str, tuple[str, Placement]]:
    """Return for each body the moving body (or ground) that it is fixed to, and its placement in that body."""
    children: dict[str, list[Joint]] = {}
    for joint in joints:
        children.setdefault(joint.parent, []).append(joint)
    carried = {j.child for j in joints}
    where = {GROUND: (GROUND, Placement())}
    where |= {b.name: (GROUND, Placement()) for b in bodies if b.name not in carried}
    stack = list(where)
    while stack:
        parent = stack.pop()
        carrier, placement = where[parent]
        for joint in children.get(parent, ()):
            welded = not joint_kinds.kind(joint.kind).NV
            where[joint.child] = (
                (carrier, compose(placement, joint.placement)) if welded else (joint.child, Placement())
            )
            stack.append(joint.child)
    return where


def _moved(joint: Joint, carrier: str, placement: Placement) -> Joint:
    return replace(joint, parent=carrier, placement=compose(placement, joint.placement))


def _joint_name(by_child: dict[str, Joint], body: str) -> str:
    return by_child[body].name if body in by_child else ""


def _shapes(bodies: Sequence[Body]) -> tuple[Shape, ...]:
    return tuple(s for b in bodies for s in b.shapes)


def _center(heavy: Sequence[tuple[float, Vector]], mass: float) -> Vector:
    if len(heavy) == 1:
        return heavy[0][1]  # bit for bit, without rounding
    moment = ZERO
    for m, c in heavy:
        moment = add(moment, scale(m, c))
    return (moment[0] / mass, moment[1] / mass, moment[2] / mass)


def _of_point(m: float, r: Vector) -> Matrix:
    """Return m (r.r 1 - r r^T), the inertia of a point mass."""
    xx, yy, zz = (m * x * x for x in r)
    xy, yz, zx = (-m * r[i] * r[(i + 1) % 3] for i in range(3))
    return ((yy + zz, xy, zx), (xy, zz + xx, yz), (zx, yz, xx + yy))


# --- Joints locked at given coordinates ---

CLOSED = 1e-9
"""The largest residual of a loop or coupling of locked joints [rad, m, or m per meter of the loop's offsets]."""


def displacement(joint: Joint, q: Sequence[float]) -> Placement:
    """Return the pose of a child at coordinates q of its joint, relative to zero displacement."""
    kind = joint_kinds.kind(joint.kind)
    axes = kind.frame(joint)
    before, turn, after = kind.displacement(joint, q)
    place = add(before, times(turn.matrix(), after))
    return Placement(times(axes, place), matmul(matmul(axes, turn.matrix()), transpose(axes)))


def loop_gap(loop: Loop, between: Placement) -> float:
    """Return the largest residual of a loop whose frame b has a placement in its frame a [rad, m]."""
    axes = loop_kinds.frame(loop)
    r = times(transpose(axes), between.translation)
    R = matmul(matmul(transpose(axes), between.rotation), axes)
    return max((abs(float(e.residual)) for e in loop_kinds.equations(loop, r, R, ZERO, ZERO)), default=0.0)


def lock_joints(m: Mechanism, lock: Mapping[str, tuple[float, ...]]) -> Mechanism:
    """Return a mechanism with joints fixed at given coordinates; what acts in them alone is left out."""
    carried = {j.child: j.name for j in m.joints}
    for name in lock:
        joint = m.joint(name)
        if joint.elastic is not None or f"{name}.motor" in carried.values() or f"{name}.circuit" in carried.values():
            raise InputError(f"joint {name!r} is elastic or has a motor with a circuit; use kt.with_rigid_joints first")
    joints = tuple(
        Joint(j.name, "fixed", j.parent, j.child, compose(j.placement, displacement(j, lock[j.name])))
        if j.name in lock
        else j
        for j in m.joints
    )
    forces = []
    for force in m.forces:
        ends = [carried.get(x) for x in (force.body_a, force.body_b)]
        if force.kind == TRANSMISSION and any(x in lock for x in ends) and not all(x in lock for x in ends):
            free = next(x for x in ends if x not in lock)
            raise InputError(f"{force.name!r} is a transmission to joint {free!r}; lock both of its joints or none")
        between = force.kind in (JOINT_SPRING, TRANSMISSION) and ends[1] in lock
        forces += [] if between else [force]
    driven = tuple(a for a in m.actuators if a.joint not in lock)
    kept = {"q": set(carried.values()) - lock.keys(), "qd": set(carried.values()) - lock.keys()}
    kept["control"] = {a.name for a in driven}
    return replace(
        m,
        joints=joints,
        couplings=tuple(c for c in (_locked_coupling(c, lock) for c in m.couplings) if c is not None),
        forces=tuple(forces),
        actuators=driven,
        motors=tuple(x for x in m.motors if x.joint not in lock),
        keyframes=tuple(
            replace(k, **{key: tuple(x for x in getattr(k, key) if x[0] in names) for key, names in kept.items()})
            for k in m.keyframes
        ),
        guess=tuple(x for x in m.guess if x[0] not in lock),
    )


def _locked_coupling(c: Coupling, lock: Mapping[str, tuple[float, ...]]) -> Coupling | None:
    """Return a coupling without its locked joints, or None if it holds; refuse one that locks further joints."""
    if not {c.joint, *(x for x, _ in c.terms)} & lock.keys():
        return c
    free = tuple((x, ratio) for x, ratio in c.terms if x not in lock)
    if c.law is not None:
        raise InputError(f"a joint of coupling {c.name!r} is locked, which is by a law; leave its joints free")
    given = sum((ratio * lock[x][0] for x, ratio in c.terms if x in lock), 0.0)
    if c.joint not in lock:
        return replace(c, terms=free, offset=c.offset + given)
    if free:
        listed = ", ".join(repr(x) for x, _ in free)
        raise InputError(f"joint {c.joint!r} follows {listed} by coupling {c.name!r}; lock {listed} instead")
    at = plain_number(c.offset) + plain_number(given)
    if abs(at - lock[c.joint][0]) > CLOSED * max(1.0, abs(at)):
        raise InputError(
            f"joint {c.joint!r} is locked at {lock[c.joint][0]:g}, but coupling {c.name!r} puts it at {at:g}"
        )
    return None


def merge_locked(m: Mechanism, report: Report) -> Mechanism:
    """Return a mechanism without fixed joints: bodies on them are merged into others, and their names remain as frames.

    Its free parameters must be gone. Raises InputError for loops within a body that do not close.
    """
    values = {p.name: p.value for p in m.parameters}
    parts = ("bodies", "joints", "frames", "loops", "couplings", "forces", "contacts", "gravity", "scenery")
    m = replace(m, parameters=(), **{key: resolve_parts(getattr(m, key), values) for key in parts})
    merged = merge_fixed(m.bodies, m.joints)
    where = merged.carriers
    for loop in m.loops:
        a, b = _on(where, loop.body_a, loop.placement_a), _on(where, loop.body_b, loop.placement_b)
        gap = loop_gap(loop, compose(inverse(a.placement), b.placement)) if a.body == b.body else 0.0
        offsets = (*a.placement.translation, *b.placement.translation)
        if gap > CLOSED * max(1.0, *(abs(plain_number(x)) for x in offsets)):
            raise InputError(f"loop {loop.name!r} does not close with these joints locked: its gap is {gap:.3g}")
    frames = [replace(_on(where, f.body, f.placement), name=f.name) for f in m.frames]
    known = {f.name for f in frames}
    contacts = []
    for contact in m.contacts:
        at, ground = _on(where, contact.body, contact.placement), contact.surface
        on = _on(where, ground.body, ground.placement)
        surface = replace(ground, body=on.body, placement=on.placement)
        contacts.append(replace(contact, body=at.body, placement=at.placement, surface=surface))
    forces = []
    for force in m.forces:
        a, b = (_on(where, x, Placement(p)) for x, p in ((force.body_a, force.point_a), (force.body_b, force.point_b)))
        points = {"point_a": a.placement.translation, "point_b": b.placement.translation}
        forces.append(replace(force, body_a=a.body, body_b=b.body, **points))
    return replace(
        m,
        bodies=merged.bodies,
        joints=merged.joints,
        frames=(*frames, *(f for f in merged.frames if f.name not in known)),
        loops=tuple(move_loops(m.loops, where, report)),
        forces=tuple(forces),
        contacts=tuple(contacts),
        scenery=(*m.scenery, *merged.ground_shapes),
    )


def _on(where: Mapping[str, Frame], body: str, placement: Placement) -> Frame:
    """Return a placement in a body as one in the body that carries it."""
    if body not in where:
        return Frame(body, body, placement)
    return Frame(body, where[body].body, compose(where[body].placement, placement))
