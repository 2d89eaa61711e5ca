"""Centered states of floating trees: the translation of the root is that of the tree's center of mass.

The velocity of a free joint is given in axes that rotate, where a body without forces has the acceleration -omega x v.
A time step sums such terms at a few instants, and what is left creates momentum. Time steps therefore advance

    z = q with the center of mass x_c,    u = qd with its velocity v_c,    both in the axes of the joint's parent,

where dv_c/dt = F / m + g has no such term: without forces, v_c stays as it is.   See docs/theory/center-of-mass.md
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

from ..algebra.rotations import Rotation
from ..algebra.scalars import Scalar, is_number
from ..algebra.spatial import Wrench
from ..algebra.vectors import ZERO, add, dot, scale, sub
from ..model.parts import GROUND
from . import kinematics
from .closure import of_row
from .energy import whole

State = tuple[list[Scalar], list[Scalar]]
"""The scalars of q and qd, or of z and u."""


@dataclass(frozen=True)
class Root:
    """A floating root: its record, and the entries of its translations in q, in qd, and in the columns of its joint."""

    record: Any
    q: tuple[int, ...]
    qd: tuple[int, ...]
    columns: tuple[int, ...]

    @property
    def E(self) -> Rotation:
        """The rotation from the root's axes to the axes of the joint's parent."""
        return self.record.kind.displacement(self.record.joint, self.record.q)[1]

    def mean(self, total: Scalar) -> Scalar:
        """Return a sum of mass times vector over the tree, in the root's axes, per mass in the axes of the parent."""
        return self.E @ scale(1.0 / self.record.Mtilde.m, total)


def floating_roots(tree, own: frozenset[int] = frozenset()) -> list[Root]:
    """Return the roots that float in the ground, with the mass `Mtilde` of each tree.

    Those with armature in their translations, or whose translations are among `own` entries of qd, are left out.
    """
    out = []
    for i, own_q in zip(tree.records, tree.mechanism.q_slices, strict=True):
        pairs = i.kind.FLOATS
        if not pairs or not _stands(tree, i.parent):
            continue
        places, labels = (own_q.start + k for k, _ in pairs), [i.labels[v] for _, v in pairs]
        light = all(is_number(i.armature[v]) and i.armature[v] == 0 for _, v in pairs)
        if light and own.isdisjoint(labels):
            out.append(Root(i, tuple(places), tuple(labels), tuple(v for _, v in pairs)))
    if out:
        whole(tree)
    return [root for root in out if not (is_number(root.record.Mtilde.m) and root.record.Mtilde.m == 0)]


def floats(tree, own: frozenset[int] = frozenset()) -> bool:
    """Return whether a tree has floating roots."""
    return bool(floating_roots(tree, own))


def kept_by_loops(tree, own: frozenset[int] = frozenset()) -> tuple[frozenset[int], frozenset[int]] | None:
    """Return the entries in q and qd of the translations of roots each of whose loops is within one tree.

    Such loops have the same gaps wherever the tree is, and closing them does not move its center of mass. None if
    nothing floats, or if a loop or coupling also takes part in where a tree is.
    """
    m, roots = tree.mechanism, floating_roots(tree, own)
    at: dict[str, str | None] = {GROUND: None}
    names = {root.record.joint.name for root in roots}
    for joint in m.joints:
        at[joint.child] = joint.name if joint.name in names else at[joint.parent]
    moved = {name.split(".")[0] for x in m.couplings for name in (x.joint, *(other for other, _ in x.terms))}
    if not roots or names & moved or any(at[x.body_a] != at[x.body_b] for x in m.loops):
        return None
    return frozenset(k for root in roots for k in root.q), frozenset(k for root in roots for k in root.qd)


def translations(tree, own: frozenset[int] = frozenset()) -> frozenset[int]:
    """Return the entries in qd of the translations of all floating roots."""
    return frozenset(label for root in floating_roots(tree, own) for label in root.qd)


def center(tree, own: frozenset[int] = frozenset()) -> State:
    """Return (z, u) of the tree with q and qd."""
    q, qd = list(tree.joints("q")), list(tree.joints("qd"))
    roots = floating_roots(tree, own)
    if roots:
        _flow(tree)
    for root in roots:
        arm, velocity = root.mean(root.record.Mtilde.mc), root.mean(root.record.h.f)
        for place, label, x, v in zip(root.q, root.qd, arm, velocity, strict=False):
            q[place], qd[label] = q[place] + x, v
    return q, qd


def uncenter(tree, own: frozenset[int] = frozenset()) -> State:
    """Return (q, qd) of the tree with z and u in place of q and qd: the inverse of `center`.

    The part of the momentum without the root's translation is that of all other velocities.
    """
    q, qd = list(tree.joints("q")), list(tree.joints("qd"))
    roots = floating_roots(tree, own)
    for root in roots:
        _hold(root)
    if roots:
        _flow(tree)
    for root in roots:
        arm, velocity = root.mean(root.record.Mtilde.mc), root.mean(root.record.h.f)
        wanted = (*(qd[k] for k in root.qd), *ZERO)[:3]
        known = (*velocity[: len(root.qd)], *ZERO)[:3]
        along = root.E.T @ sub(wanted, known)
        for place, label, column, x in zip(root.q, root.qd, root.columns, arm, strict=False):
            q[place] = q[place] - x
            qd[label] = dot(root.record.P.columns[column].v, along)
    return q, qd


def integrate(tree, own: frozenset[int] = frozenset()) -> list[Scalar]:
    """Return z displaced by du (given in place of q and qd): centers of mass move straight, joints as they do."""
    way = list(tree.joints("qd"))
    roots = floating_roots(tree, own)
    for root in roots:
        _hold(root)
    moved = list(kinematics.integrate(tree))
    for root in roots:
        for place, label in zip(root.q, root.qd, strict=True):
            moved[place] = moved[place] + way[label]
    return moved


def coordinate_rate(tree, u: Sequence[Scalar], own: frozenset[int] = frozenset()) -> list[Scalar]:
    """Return dz/dt of the tree with q and qd, whose centers of mass have the velocities in u."""
    out = list(kinematics.coordinate_rate(tree))
    for root in floating_roots(tree, own):
        for place, label in zip(root.q, root.qd, strict=True):
            out[place] = u[label]
    return out


def center_accelerations(
    tree, qdd: Sequence[Scalar], loads: Sequence, own: frozenset[int] = frozenset()
) -> list[Scalar]:
    """Return du/dt: qdd with dv_c/dt = F / m + g of the floating roots.

    F are the joint forces of the root, the external wrenches on its tree, and the multipliers of loops to other bodies:
    `loads` are rows with their multipliers. Loops within the tree have no part in F.
    """
    out, roots = list(qdd), floating_roots(tree, own)
    for i in tree.records if roots else ():
        i.pushed = i.w_ext
    if roots:
        tree.inward(_push)
    for root in roots:
        i, columns = root.record, root.record.P.columns
        force = i.pushed.f
        for label, k in zip(root.qd, root.columns, strict=True):
            force = add(force, scale(i.tau[k] + _of_loops(loads, i, label), columns[k].v))
        whole_rate = add(root.mean(force), _falling(tree, i))
        for label, a in zip(root.qd, whole_rate, strict=False):
            out[label] = a
    return out


def _hold(root: Root) -> None:
    """Set the velocities of a root's translation to zero."""
    root.record.qd = tuple(0.0 if k in root.columns else x for k, x in enumerate(root.record.qd))


def _flow(tree) -> None:
    """Store in every record the momentum h of its composite body relative to its parent.

    It is the sum of A^T Mtilde P qd over the joints, as the columns of the GIM are: for h.f of the root alone, which is
    that relative to the ground, less work than twists and momenta of all bodies.
    """
    tree.ground.h = Wrench()

    @tree.each
    def begin(i):
        i.h = i.Mtilde @ (i.P @ i.qd)

    @tree.inward
    def gather(i, p):
        p.h += i.A.T @ i.h


def _push(i, p) -> None:
    p.pushed += i.A.T @ i.pushed


def _of_loops(loads: Sequence, i: object, label: int) -> Any:
    """Return the generalized force of multipliers in a degree of freedom of a record."""
    total: Scalar = 0.0
    for row, multiplier in loads:
        if any(x is i for chain, _, _ in row.wrenches for x in chain) or label in row.torques:
            total = total + of_row(row).get(label, 0.0) * multiplier
    return total


def _stands(tree, i: Any) -> bool:
    """Return whether nothing moves a body."""
    while i is not tree.ground:
        if i.labels:
            return False
        i = i.parent
    return True


def _falling(tree, i: Scalar) -> Scalar:
    """Return gravity in the axes of the joint's parent, which does not move."""
    path, g = [], tree.gravity
    while i is not tree.ground:
        path.append(i)
        i = i.parent
    for fixed in reversed(path[1:]):
        g = fixed.A.E.T @ g
    return path[0].stand.E.T @ g
