"""Inverse dynamics: the torques and joint reactions of a given motion."""

from __future__ import annotations


def inverse_dynamics(tree):
    """tau = N_d^T N_l^T (M t' + Omega M E t - w_ext)                       [Saha2013] (16), (22)-(26), (47).

    A twist rate includes its angular velocity: A t' + A' t of (23) is one product. With rates left out, the same page
    gives the bias torque (qdd = 0) and the gravity torque (qd = qdd = 0).
    """
    newton_euler(tree)

    @tree.inward
    def forces(i, p):
        i.tau = [pw + a * qdd for pw, a, qdd in zip(i.P.T @ i.w, i.armature, i.qdd, strict=True)]  # (25)
        p.w += i.A.T @ i.w  # Differs from the paper: (25) omits the body's own w_i, which p.w already contains.

    return tree.joints("tau")


def reactions(tree):
    """Return the wrench of each parent on its child at the joint, in the child's frame.    [Saha2013] (24), (25)"""
    newton_euler(tree)

    @tree.inward
    def forces(i, p):
        i.reaction = i.in_body(i.w)
        p.w += i.A.T @ i.w

    return tree.bodies("reaction")


def newton_euler(tree):
    """Store in every record the wrench w of its own motion."""
    tree.ground.dt = tree.rho  # (26)

    @tree.outward
    def motion(i, p):
        i.t = i.A @ p.t + i.P @ i.qd  # (22)
        i.dt = i.A @ p.dt + i.bias + i.P @ i.qdd  # (23)
        i.w = i.M.wrench(i.dt) - i.w_ext  # (24), (47a)
