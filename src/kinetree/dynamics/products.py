"""Products of the nv x nv matrices with a vector, in O(n): the columns of matrices too large to be unrolled."""

from __future__ import annotations

from ..algebra.scalars import where
from ..algebra.spatial import Twist, Wrench, power
from ..algebra.vectors import ZERO, add, cross
from . import forward


def inertia_product(tree):
    """I v = N_d^T N_l^T M N_l N_d v, with v in the place of qdd                              [Saha2013] (18)-(21)."""
    tree.ground.u = Twist()

    @tree.outward
    def momentum(i, p):
        i.u = i.A @ p.u + i.P @ i.qdd
        i.w = i.M @ i.u

    return _torques(tree, armature=True)


def inverse_inertia_product(tree):
    """I^-1 v by I = U D U^T, with v in the place of tau: forward dynamics at rest, without gravity. [Saha2013] (28)"""

    @tree.each
    def rest(i):
        i.w = Wrench()

    forward.eliminate(tree)
    return forward.accelerate(tree)


def convective_product(tree):
    """C v = N~^T M~ dN~/dt v of the bodies' points, with v in the place of qdd      [Gupta2013] (35), [Saha1999] (25).

    u is the twist of the velocities v, a its rate while the mechanism moves with qd, both as vectors. The
    parent's u changes by u x dr where the child's origin moves with dr, and a joint's axes change by P'.
    """
    tree.ground.u = tree.ground.a = Twist()

    @tree.outward
    def motion(i, p):
        E, r = i.A.E, i.A.offset
        own = i.P @ i.qd
        dr = add(cross(p.t.w, r), E @ own.v)  # the rate of r, in the parent's frame
        i.t = i.A @ p.t + own  # (22)
        i.u = i.A @ p.u + i.P @ i.qdd
        i.a = i.A @ p.a + Twist(ZERO, E.T @ cross(p.u.w, dr)) + i.P.rate(i.t) @ i.qdd
        i.w = i.M @ i.a + i.M.coriolis(i.t) @ i.u

    return _torques(tree, armature=False)


def resistance(tree, driven=frozenset()):
    """Return each pivot of I = U D U^T relative to the composite body's: 0 where nothing resists the motion.

    Negligible pivots are not eliminated, nor those of driven degrees of freedom, given by label, which count as 1.
    """
    forward.start(tree)

    @tree.each
    def begin(i):
        i.Mtilde = i.M

    @tree.inward
    def pivots(i, p):
        i.left = []
        for k, pk, armature in reversed(list(zip(i.labels, i.P.columns, i.armature, strict=True))):
            if k in driven:
                i.left.insert(0, 1.0)
                continue
            psihat = i.Mhat @ pk
            mhat, whole = power(psihat, pk) + armature, power(i.Mtilde @ pk, pk) + armature
            some = mhat > NOTHING * whole
            i.left.insert(0, where(some, mhat / where(some, whole, 1.0), 0.0))
            i.Mhat = i.Mhat.without(pk, psihat, psihat * where(some, 1.0 / where(some, mhat, 1.0), 0.0), free=False)
        p.Mtilde += i.A.T @ i.Mtilde @ i.A
        p.Mhat += i.A.T @ i.Mhat @ i.A

    return tree.joints("left")


NOTHING = 1e-12
"""A pivot this small relative to the composite body's is rounding."""


def _torques(tree, *, armature: bool):
    @tree.inward
    def forces(i, p):
        drives = i.armature if armature else (0.0,) * len(i.labels)
        i.tau = [pw + a * v for pw, a, v in zip(i.P.T @ i.w, drives, i.qdd, strict=True)]
        p.w += i.A.T @ i.w

    return tree.joints("tau")
