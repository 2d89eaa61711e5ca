"""The generalized inertia matrix, by composite bodies, and its inverse, by articulated ones."""

from __future__ import annotations

from ..algebra.scalars import log
from ..algebra.spatial import Twist, Wrench, power
from .forward import Pivot, start


def inertia_matrix(tree):
    """I = N_d^T M~ N_d with M~ = N_l^T M N_l                                        [Saha2013] (18)-(21).

    F is the momentum of each column's unit velocity, propagated inward from its own composite body.
    """
    entries = {}

    @tree.each
    def begin(i):
        i.Mtilde, i.F = i.M, {}

    @tree.inward
    def columns(i, p):
        i.F |= {k: i.Mtilde @ pk for k, pk in zip(i.labels, i.P.columns, strict=True)}
        for column, F in i.F.items():
            for row, value in zip(i.labels, i.P.T @ F, strict=True):
                entries[row, column] = entries[column, row] = value  # (21)
        for k, armature in zip(i.labels, i.armature, strict=True):
            entries[k, k] += armature
        p.F |= {k: i.A.T @ F for k, F in i.F.items()}
        p.Mtilde += i.A.T @ i.Mtilde @ i.A  # (20)

    return tree.matrix(entries)


def inverse_inertia_matrix(tree):
    """I^-1 = U^-T D^-1 U^-1: forward dynamics of unit torques, without motion or gravity. [Saha2013] (28)-(33)"""
    entries = {}
    start(tree)

    @tree.each
    def begin(i):
        i.W = {}

    @tree.inward
    def eliminate(i, p):
        i.pivots = []
        own = dict.fromkeys(i.labels, Wrench())
        i.W |= own
        for k, pk, armature in reversed(list(zip(i.labels, i.P.columns, i.armature, strict=True))):
            pivot = Pivot(i, pk, armature)
            tauhat = {c: (1.0 if c == k else 0.0) - power(w, pk) for c, w in i.W.items()}
            i.W = {c: pivot.push(w, 1.0 if c == k else 0.0, tauhat[c]) for c, w in i.W.items()}
            i.pivots.append((k, pk, pivot, tauhat))
        p.W |= {c: i.A.T @ w for c, w in i.W.items()}
        p.Mhat += i.A.T @ i.Mhat @ i.A

    tree.ground.mu = {}

    @tree.outward
    def accelerate(i, p):
        i.mu = {c: i.A @ mu for c, mu in p.mu.items()}
        for k, pk, pivot, tauhat in reversed(i.pivots):
            for c in i.mu.keys() | tauhat.keys():
                mu = i.mu.get(c, Twist())
                value = tauhat.get(c, 0.0) * pivot.inverse - power(pivot.psi, mu)
                i.mu[c] = mu + pk * value
                if c <= k:
                    entries[k, c] = entries[c, k] = value

    return tree.matrix(entries)


def inertia_logdet(tree):
    """log det I = sum of log mhat over the columns of all joints, since det U = 1.       [Saha2013] (28)-(31)

    I is the matrix of the open tree. The metric of internal coordinates of a polymer has this determinant.
    """
    start(tree)
    tree.ground.logdet = 0.0

    @tree.each
    def begin(i):
        i.logdet = 0.0

    @tree.inward
    def eliminate(i, p):
        for pk, armature in reversed(list(zip(i.P.columns, i.armature, strict=True))):
            i.logdet = i.logdet + log(Pivot(i, pk, armature).mhat)
        p.logdet += i.logdet
        p.Mhat += i.A.T @ i.Mhat @ i.A  # (31)

    return [tree.ground.logdet]
