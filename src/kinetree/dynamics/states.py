"""Steps in the space of coordinates, joint by joint: quaternions stay unit, angles add."""

from __future__ import annotations


def integrate(tree):
    """Return q moved on by dq (given in the place of qd), exactly for a constant twist of each joint."""
    return [x for i in tree.records for x in i.kind.integrate(i.joint, i.q, i.qd)]


def difference(tree):
    """Return the dq that leads from qa to qb (given in the place of q and q2)."""
    return [x for i in tree.records for x in i.kind.difference(i.joint, i.q, i.q2)]


def coordinate_rate(tree):
    """Return dq/dt for the speeds qd."""
    return [x for i in tree.records for x in i.kind.rate(i.joint, i.q, i.qd)]
