"""The quantities that travel through the recursions of inverse and forward dynamics, body by body, for teaching.

All twists, wrenches and mass matrices are about the origin of the body's own frame and in its axes. Neither loops nor
external wrenches act.
"""

from __future__ import annotations

from .forward import forward_dynamics
from .inverse import inverse_dynamics, newton_euler


def inverse_recursion(tree):
    """Return t, dt and w of every body, its collected wrench w~, and tau.                   [Saha2013] (22)-(26)

    Gravity is part of dt, as an upward acceleration of the ground (26). w is the wrench of the body's own motion,
    and w~ the sum of those of the body and of all bodies outward of it.
    """
    newton_euler(tree)

    @tree.each
    def own(i):
        i.own_t, i.own_dt, i.own_w = i.in_body(i.t), i.in_body(i.dt), i.in_body(i.w)

    tau = inverse_dynamics(tree)  # its sweep inward leaves the collected wrenches in w

    @tree.each
    def collected(i):
        i.collected = i.in_body(i.w)

    return *(tree.bodies(name) for name in ("own_t", "own_dt", "own_w", "collected")), tau


def forward_recursion(tree):
    """Return Mhat of every body; psi, mhat and tauhat of every column; mu of every body; and qdd.  [Saha2013] (27)-(33)

    Mhat is the mass matrix of the articulated body before the columns of its own joint are eliminated. A joint of
    several degrees of freedom has one psi, mhat and tauhat per column, eliminated last first. mu is the twist rate by
    qdd alone, without the convective terms and without gravity.
    """
    qdd = forward_dynamics(tree)
    articulated_bodies(tree)

    @tree.each
    def own(i):
        i.own_Mhat = i.in_body(i.whole)
        columns = list(reversed(i.pivots))  # in the order of the joint's velocities
        i.own_psi = [x for _, pivot, _ in columns for x in i.in_body(pivot.psi).entries()]
        i.mhat = [pivot.mhat for _, pivot, _ in columns]
        i.tauhat = [tauhat for _, _, tauhat in columns]
        i.own_mu = i.in_body(i.mu)

    psi, mhat, tauhat = (tree.joints(name) for name in ("own_psi", "mhat", "tauhat"))
    return tree.bodies("own_Mhat"), psi, mhat, tauhat, tree.bodies("own_mu"), qdd


def articulated_bodies(tree):
    """Store in every record its articulated body before its own columns are eliminated.              [Saha2013] (31)"""

    @tree.each
    def begin(i):
        i.whole = i.M.articulated()

    @tree.inward
    def carry(i, p):
        p.whole += i.A.T @ i.Mhat @ i.A
