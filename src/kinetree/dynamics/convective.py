"""The matrix of convective inertia terms C, with dI/dt - 2 C skew."""

from __future__ import annotations

from ..algebra.spatial import power


def convective_matrix(tree):
    """C = N~^T M~ dN~/dt of the bodies' points                           [Gupta2013] (35), [Saha1999] (25)-(29).

    The only C whose entries are Christoffel's symbols of I; C qd is that of [Saha2013] (17). B sums M dA/dt + B A
    over the bodies outboard of a joint, as M~ sums their mass: (28). Three wrenches per column propagate inward: F1 =
    M~ p' + B p gives the column C_ij of the joints before it, F2 = M~ p and F3 = B^T p its row C_ji.
    """
    entries = {}

    @tree.outward
    def motion(i, p):
        i.t = i.A @ p.t + i.P @ i.qd

    @tree.each
    def begin(i):
        i.Mtilde, i.B, i.F = i.M, i.M.coriolis(i.t), {}

    @tree.inward
    def columns(i, p):
        rate = i.P.rate(i.t)  # p'
        own = {}
        for k, pk, dpk in zip(i.labels, i.P.columns, rate.columns, strict=True):
            F1, F2 = i.Mtilde @ dpk + i.B @ pk, i.Mtilde @ pk
            own[k] = F1, F2, i.B.transpose_times(pk)
        for column, (F1, _, _) in (own | i.F).items():
            for row, pk in zip(i.labels, i.P.columns, strict=True):
                entries[row, column] = power(F1, pk)
        for row, (_, F2, F3) in i.F.items():
            for column, pk, dpk in zip(i.labels, i.P.columns, rate.columns, strict=True):
                entries[row, column] = power(F2, dpk) + power(F3, pk)
        dA = i.A.rate(p.t, i.P @ i.qd)
        carried = {}
        for k, (F1, F2, F3) in (own | i.F).items():
            F2 = i.A.T @ F2
            carried[k] = i.A.T @ F1, F2, i.A.T @ F3 + dA.turned(F2)
        p.F |= carried
        p.B += dA.carried(i.Mtilde, i.B)
        p.Mtilde += i.A.T @ i.Mtilde @ i.A

    return tree.matrix(entries)
