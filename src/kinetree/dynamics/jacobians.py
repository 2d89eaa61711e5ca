"""Jacobians of frames and their rates: block rows of N = N_l N_d."""

from __future__ import annotations

from ..algebra.spatial import Twist
from ..algebra.vectors import add, cross, sub, times, transpose
from .kinematics import move, place


def jacobian(tree, frame: str, axes: str = "world"):
    """t_f = J qd at the frame's origin, in the ground's axes or the frame's.               [Saha2013] (9)

    A column is its joint's motion at the frame's origin: [e; e_v + e x (o_f - o_i)] in the ground's axes.
    """
    f = tree.frame(frame)
    chain = tree.chain(f)
    place(tree, chain)
    tip = f.record.T.then(f.R, f.r)
    in_axes = _turn(tip.R, axes)

    @chain.each
    def columns(i):
        arm = sub(tip.r, i.T.r)
        i.J = [in_axes(_at(i.T.turn(pk), arm)) for pk in chain.motion(i).columns]

    return tree.columns("J")


def jacobian_rate(tree, frame: str, axes: str = "world"):
    """dt_f = J qdd + J' qd; in the frame's axes J' is the rate of the entries of J there.   [Saha2013] (23)"""
    f = tree.frame(frame)
    chain = tree.chain(f)
    place(tree, chain)
    move(tree, chain)
    tip = f.record.T.then(f.R, f.r)
    speed = f.record.T.turn(_at(f.record.t, f.r))
    in_axes = _turn(tip.R, axes)

    @chain.each
    def columns(i):
        arm, own = sub(tip.r, i.T.r), i.T.turn(i.t)
        darm = sub(speed.v, own.v)
        i.dJ = []
        P = chain.motion(i)
        for pk, dpk in zip(P.columns, P.rate(i.t).columns, strict=True):
            e, de = i.T.turn(pk), i.T.turn(dpk)
            column = _at(de, arm) + Twist((0.0, 0.0, 0.0), cross(e.w, darm))
            if axes == "body":  # the frame rotates: d(R^T x) = R^T (dx - w x x)
                J = _at(e, arm)
                column = column - Twist(cross(speed.w, J.w), cross(speed.w, J.v))
            i.dJ.append(in_axes(column))

    return tree.columns("dJ")


def _at(t: Twist, arm) -> Twist:
    """Return the twist at a point `arm` away."""
    return Twist(t.w, add(t.v, cross(t.w, arm)))


def _turn(R, axes: str):
    """Return the function from a twist in the ground's axes to the requested axes."""
    if axes == "world":
        return lambda t: t
    back = transpose(R)
    return lambda t: Twist(times(back, t.w), times(back, t.v))
