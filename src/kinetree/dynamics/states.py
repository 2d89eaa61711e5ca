"""Steps in the space of coordinates, joint by joint: quaternions keep unit length, angles add."""

from __future__ import annotations


def integrate(tree):
    """Return q displaced by dq (given in place of qd), exactly for a constant twist of each joint."""

    @tree.each
    def move(i):
        i.moved = i.kind.integrate(i.joint, i.q, i.qd)

    return tree.joints("moved")


def difference(tree):
    """Return the displacement dq from qa to qb (given in place of q and q2)."""

    @tree.each
    def compare(i):
        i.way = i.kind.difference(i.joint, i.q, i.q2)

    return tree.joints("way")


def coordinate_rate(tree):
    """Return dq/dt for the velocities qd."""

    @tree.each
    def differentiate(i):
        i.rate = i.kind.rate(i.joint, i.q, i.qd)

    return tree.joints("rate")
