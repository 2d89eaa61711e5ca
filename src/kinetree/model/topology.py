"""Topology of the tree: depth order, branches, kinematic modules and cut joints."""

from __future__ import annotations

from collections.abc import Sequence

from ..errors import ModelError, below, part_at, unknown_name
from .mechanism import Mechanism
from .parts import GROUND, Body, Joint


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
