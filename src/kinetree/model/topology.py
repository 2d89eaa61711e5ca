"""Topology of the tree: depth order, branches, kinematic modules and cut joints."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace

from .. import joints as joint_kinds
from ..algebra.vectors import Vector
from ..errors import ModelError, below, part_at, unknown_name
from .mechanism import Mechanism, kept_with_mechanism, resolve_parts
from .part_fields import free_name
from .parts import GROUND, Body, Joint, Placement


def depth_order(bodies: Sequence[Body], joints: Sequence[Joint]) -> tuple[list[Body], list[Joint]]:
    """Return bodies and joints with parents first and branches contiguous; siblings keep their given order.

    Raises ModelError for unknown names, bodies that are the child of two joints or of none, and cycles.
    """
    by_name = {b.name: b for b in bodies}
    carried: dict[str, Joint] = {}
    children: dict[str, list[Joint]] = {}
    for joint in joints:
        for role, name in (("parent", joint.parent), ("child", joint.child)):
            if name not in by_name and not (role == "parent" and name == GROUND):
                raise unknown_name("body", name, [*by_name, GROUND], where=below(part_at("joint", joint.name), role))
        if joint.child in carried:
            raise ModelError(
                f"its child {joint.child!r} is already the child of joint {carried[joint.child].name!r}",
                where=part_at("joint", joint.name),
                remedy="keep one of them in the tree and make the other a loop",
            )
        carried[joint.child] = joint
        children.setdefault(joint.parent, []).append(joint)
    order: list[Joint] = []
    stack = list(reversed(children.get(GROUND, [])))
    while stack:
        joint = stack.pop()
        order.append(joint)
        stack.extend(reversed(children.get(joint.child, [])))
    if len(order) < len(bodies):
        raise _not_a_tree(by_name, carried, {j.child for j in order})
    return [by_name[j.child] for j in order], order


def check_depth_order(mechanism: Mechanism) -> None:
    """Raise ModelError unless body i is the child of joint i, parents are first, and branches are contiguous.

    Mechanisms made by `build_mechanism` are in this order. Files list parts in it, and other libraries compute in it.
    """
    above: list[int] = []  # the path to the last body
    for i, (body, joint) in enumerate(zip(mechanism.bodies, mechanism.joints, strict=True)):
        parent = mechanism.body_indices.get(joint.parent)
        while above and above[-1] != parent:
            above.pop()
        if joint.child != body.name or parent is None or (parent >= 0 and not above):
            raise ModelError(
                f"its child {joint.child!r} is out of order: parents come first, and each branch is in a row",
                where=part_at("joint", joint.name),
                remedy="make the mechanism with kt.build_mechanism, which puts its parts in order",
            )
        above.append(i)


def _not_a_tree(by_name: dict[str, Body], carried: dict[str, Joint], reached: set[str]) -> ModelError:
    loose = [name for name in by_name if name not in carried]
    if loose:
        return ModelError(
            f"body {loose[0]!r} is the child of no joint" + (f" (nor are {len(loose) - 1} more)" if loose[1:] else ""),
            remedy=f"connect it to its parent, or to {GROUND!r} by a fixed or free joint",
            path=("body", loose[0], "name"),
        )
    name = next(n for n in by_name if n not in reached)
    cycle = [name]
    while (parent := carried[cycle[-1]].parent) not in cycle:
        cycle.append(parent)
    cycle = cycle[cycle.index(parent) :]
    return ModelError(
        "the joints form a circle: " + " -> ".join([*reversed(cycle), cycle[-1]]),
        remedy="cut one joint of the circle and describe it as a loop",
        path=("body", cycle[-1], "name"),
    )


def depths(mechanism: Mechanism) -> tuple[int, ...]:
    """Return the number of joints between the ground and each body."""
    out: list[int] = []
    for parent in mechanism.parents:
        out.append(1 if parent < 0 else out[parent] + 1)
    return tuple(out)


def children(mechanism: Mechanism) -> tuple[tuple[int, ...], ...]:
    """Return the indices of each body's children."""
    out: list[list[int]] = [[] for _ in mechanism.bodies]
    for i, parent in enumerate(mechanism.parents):
        if parent >= 0:
            out[parent].append(i)
    return tuple(map(tuple, out))


def path(mechanism: Mechanism, body: int) -> tuple[int, ...]:
    """Return the bodies from the ground (excluded) to `body` (included); () for the ground (-1)."""
    out: list[int] = []
    while body >= 0:
        out.append(body)
        body = mechanism.parents[body]
    return tuple(reversed(out))


def branches(mechanism: Mechanism) -> tuple[tuple[int, ...], ...]:
    """Return the chains from the ground to each tip."""
    return tuple(path(mechanism, i) for i, below in enumerate(children(mechanism)) if not below)


def modules(mechanism: Mechanism) -> tuple[tuple[int, ...], ...]:
    """Return the kinematic modules: serial chains, each starting where its parent module ends. [Saha2013] 3

    Module numbers increase from parent to child, as in the paper.
    """
    below = children(mechanism)
    out: list[tuple[int, ...]] = []
    for i, parent in enumerate(mechanism.parents):
        if parent >= 0 and len(below[parent]) == 1:
            continue  # part of its parent's chain
        chain = [i]
        while len(below[chain[-1]]) == 1:
            chain.append(below[chain[-1]][0])
        out.append(tuple(chain))
    return tuple(out)


def cut_joints(mechanism: Mechanism) -> tuple[tuple[str, tuple[int, ...]], ...]:
    """Return the name of each loop with the bodies of the tree that form a ring with it."""
    index = {GROUND: -1} | {b.name: i for i, b in enumerate(mechanism.bodies)}
    out = []
    for loop in mechanism.loops:
        a, b = path(mechanism, index[loop.body_a]), path(mechanism, index[loop.body_b])
        shared = set(a) & set(b)
        ring = tuple(i for i in a if i not in shared) + tuple(i for i in reversed(b) if i not in shared)
        out.append((loop.name, ring))
    return tuple(out)


# --- Joints of several axes split into revolute joints with massless bodies: same motion, same coordinates ---


@kept_with_mechanism
def split_joints(mechanism: Mechanism) -> tuple[Mechanism, tuple[int | None, ...]]:
    """Return the mechanism with joints of several rotations split, and each body's old index, None for new bodies.

    Coordinates, velocities and torques keep their order. Successive revolute joints require less arithmetic than one
    joint whose motion matrix depends on q. Numbers must not depend on free parameters.
    """
    values = mechanism.values()
    bodies: list[Body] = []
    joints: list[Joint] = []
    origin: list[int | None] = []
    taken, named = {b.name for b in mechanism.bodies}, {j.name for j in mechanism.joints}
    given, guess = dict(mechanism.guess), dict[str, tuple[float, ...]]()
    for index, (body, joint) in enumerate(zip(mechanism.bodies, mechanism.joints, strict=True)):
        axes = _axes(resolve_parts(joint, values))
        above, place = joint.parent, joint.placement
        for k, axis in enumerate(axes[:-1]):
            name = free_name(f"{body.name}_{k + 1}", taken)
            bodies.append(Body(name))
            origin.append(None)
            joints.append(_part(joint, k, above, name, place, axis, named))
            above, place = name, Placement()
        bodies.append(body)
        origin.append(index)
        last = len(axes) - 1
        joints.append(_part(joint, last, above, body.name, place, axes[-1], named) if axes else joint)
        if joint.name in given:
            parts = joints[-len(axes) :] if axes else [joint]
            numbers = given[joint.name]
            guess |= {p.name: numbers[k : k + 1] if axes else numbers for k, p in enumerate(parts)}
    return replace(mechanism, bodies=tuple(bodies), joints=tuple(joints), guess=tuple(guess.items())), tuple(origin)


def _axes(joint: Joint) -> list[Vector]:
    """Return the axes of a joint that consists of several successive rotations; none for every other joint."""
    steps = joint_kinds.kind(joint.kind).steps(joint) or ()
    turns = len(steps) > 1 and all(what == joint_kinds.ROTATION for what, _ in steps)
    return [axis for _, axis in steps] if turns else []


def _part(joint: Joint, k: int, parent: str, child: str, place: Placement, axis: Vector, named: set[str]) -> Joint:
    name = free_name(f"{joint.name}_{k + 1}", named)  # unique, since couplings refer to joints by name
    return Joint(name, "revolute", parent, child, place, axis, armature=joint.armature[k : k + 1])
