"""Forward dynamics in O(n): I = U D U^T by reverse Gaussian elimination, tips first."""

from __future__ import annotations

from ..algebra.spatial import Twist, Wrench, power, unit_index
from .inverse import newton_euler


def forward_dynamics(tree):
    """U D U^T qdd = tau - C qd - g + N^T w_ext                                        [Saha2013] (27)-(33).

    The bias phi of (27) is inverse dynamics with qdd = 0. Its wrenches and eta of (29) travel inward by the same
    A^T, and one sum w holds both. A joint of several degrees of freedom is eliminated column by column, last first,
    like a chain of massless bodies.
    """

    @tree.each
    def rest(i):
        i.qdd = (0.0,) * len(i.labels)

    newton_euler(tree)
    eliminate(tree)
    return accelerate(tree)


def eliminate(tree, locked=frozenset()):
    """Store in every record its pivots, each with its remaining torque under the wrenches w.

    A pivot has its column p and its tauhat of (28). Locked degrees of freedom, given by label, do not move.
    """
    start(tree)

    @tree.inward
    def pivots(i, p):
        i.pivots = []
        for k, pk, tau, armature in reversed(list(zip(i.labels, i.P.columns, i.tau, i.armature, strict=True))):
            pivot = Lock() if k in locked else Pivot(i, pk, armature)
            tauhat = tau - power(i.w, pk)  # (28)
            i.w = pivot.push(i.w, tau, tauhat)  # (29)
            i.pivots.append((pk, pivot, tauhat))
        p.w += i.A.T @ i.w
        p.Mhat += i.A.T @ i.Mhat @ i.A  # (31)


def accelerate(tree):
    """Return the accelerations of pivots with their torques tauhat.                     [Saha2013] (32), (33)"""
    tree.ground.mu = Twist()

    @tree.outward
    def accelerations(i, p):
        i.mu = i.A @ p.mu
        i.qdd = []
        for pk, pivot, tauhat in reversed(i.pivots):
            qdd = tauhat * pivot.inverse - power(pivot.psi, i.mu)  # (32), (33)
            i.mu += pk * qdd
            i.qdd.append(qdd)

    return tree.joints("qdd")


def start(tree):
    """Start the articulated bodies as the bodies themselves."""

    @tree.each
    def begin(i):
        i.Mhat = i.M.articulated()


class Pivot:
    """psi = Mhat p / mhat of one column, and the articulated body without it.          [Saha2013] (30), (31)

    Where p is a unit twist and the joint has no inertia of its own, psi is 1 along p, and the wrench through the
    joint has tau as its entry there, which is set instead of computed.
    """

    def __init__(self, i, pk: Twist, armature) -> None:
        """Eliminate column pk from the record's articulated body."""
        psihat = i.Mhat @ pk
        self.mhat = power(psihat, pk) + armature
        self.inverse = 1.0 / self.mhat
        self.psi = psihat * self.inverse
        free = isinstance(armature, int | float) and armature == 0
        self.along = unit_index(pk) if free else None
        if self.along is not None:
            self.psi = self.psi.replaced(self.along, 1.0)
        i.Mhat = i.Mhat.without(pk, psihat, self.psi, free=free)

    def push(self, w: Wrench, tau, tauhat) -> Wrench:
        """Return the wrench transmitted by the joint, w + psi tauhat."""
        passed = w + self.psi * tauhat
        return passed if self.along is None else passed.replaced(self.along, tau)


class Lock:
    """The pivot of a locked degree of freedom: it transmits the whole wrench."""

    inverse = 0.0
    psi = Wrench()

    def push(self, w: Wrench, tau, tauhat) -> Wrench:
        """Return the wrench unchanged."""
        return w
