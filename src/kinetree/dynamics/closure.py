"""The equations that close loops, and their Jacobian J: block rows of N between the two ends of each loop."""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import Any

from .. import loops
from ..algebra.propagation import Pose
from ..algebra.scalars import Scalar
from ..algebra.spatial import Twist, TwistRate, Wrench, power
from ..algebra.vectors import Matrix, Vector, add, cross, dot, matmul, sub, times, transpose
from ..loops import laws


@dataclass(frozen=True)
class Row:
    """One equation: its residual, the rate J qd of it, and the part dJ/dt qd of its acceleration.

    A unit multiplier acts by `wrenches`, each on a body (in its working frame) at the end of a chain of bodies, which
    is empty where the body carries the other end too; or by `torques` on degrees of freedom, by label. A row that is
    not holonomic restricts velocities alone.
    """

    residual: Scalar
    rate: Scalar
    bias: Scalar
    wrenches: tuple[tuple[list, Any, Wrench], ...] = ()
    torques: dict[int, Scalar] = field(default_factory=dict)
    holonomic: bool = True


End = tuple[Pose, Twist, TwistRate]
"""Pose, twist and twist rate with qdd = 0 of a loop's frame, seen from a body that moves with neither end."""


def rows(tree) -> list[Row]:
    """Return the equations of all loops, then of the couplings."""
    out = [row for loop in tree.loops for row in of_loop(loop, end(loop.chain_a, loop.a), end(loop.chain_b, loop.b))]
    return out + [of_coupling(coupling) for coupling in tree.couplings]


def closure_residual(tree):
    """Return the residual of every equation [m, rad]: zero where the loops are closed."""
    return [row.residual for row in rows(tree)]


def closure_bias(tree):
    """Return dJ/dt qd of every equation: J qdd + dJ/dt qd = 0 keeps loops closed.              [Saha2013] (53)"""
    return [row.bias for row in rows(tree)]


def closure_jacobian(tree):
    """Return J of every equation, row by row: J qd = 0 keeps loops closed.                      [Saha2013] (52)

    A row is what the joints feel of a unit multiplier, whose wrenches travel inward to where the two ends meet.
    """
    out = []
    for row in rows(tree):
        entries = of_row(row)
        out += [entries.get(k, 0.0) for k in range(tree.nv)]
    return out


def of_row(row: Row) -> dict[int, Scalar]:
    """Return the entries of J of one equation, by label of the degree of freedom; missing ones are zero."""
    entries = dict(row.torques)
    for chain, _, w in row.wrenches:
        for i in reversed(chain):
            for k, pk in zip(i.labels, i.P.columns, strict=True):
                x = power(w, pk)
                entries[k] = entries[k] + x if k in entries else x  # both ends may be nodes of one flexible body
            w = i.A.T @ w
    return entries


def of_loop(loop, end_a: End, end_b: End) -> list[Row]:
    """Return the equations of a loop, on scalars of any kind."""
    return [row_of(loop, motion, e) for motion in [relative(end_a, end_b)] for e in equations_of(loop, motion)]


def equations_of(loop, motion: Relative) -> list[loops.Equation]:
    """Return the equations of a loop for the relative motion of its ends."""
    return loops.equations(loop.loop, motion.r, motion.R, motion.w, motion.v)


@dataclass(frozen=True)
class Relative:
    """Position, rotation, twist and twist rate with qdd = 0 of frame b in frame a, in the axes of a."""

    r: Vector
    R: Matrix
    w: Vector
    v: Vector
    dw: Vector
    dv: Vector


def relative(end_a: End, end_b: End) -> Relative:
    """Return the motion of frame b relative to frame a.

    The two ends move as if the last body that both have in common stood still: only that enters their relative motion.
    """
    (Ta, ta, da), (Tb, tb, db) = end_a, end_b
    back = transpose(Ta.R)
    r, R = times(back, sub(Tb.r, Ta.r)), matmul(back, Tb.R)
    w = sub(times(R, tb.w), ta.w)
    v = sub(times(R, tb.v), add(ta.v, cross(ta.w, r)))
    dw = sub(times(R, db.dw), add(da.dw, cross(ta.w, w)))
    whirl = cross(ta.w, v)  # Coriolis, twice
    dv = sub(times(R, db.dv), add(add(da.dv, times(da.U, r)), add(whirl, whirl)))
    return Relative(r, R, w, v, dw, dv)


def row_of(ends, motion: Relative, e: loops.Equation) -> Row:
    """Return an equation between two frames, `ends.a` and `ends.b`, as a row.

    With [w; v] the twist of frame b relative to frame a, in a's axes, at b's origin, the rate of an equation is
    n . w + f . v, and its bias that of the rates that are left with qdd = 0.
    """
    toward = transpose(motion.R)
    rate = dot(e.n, motion.w) + dot(e.f, motion.v)
    bias = dot(e.n, motion.dw) + dot(e.f, motion.dv) + dot(e.dn, motion.w) + dot(e.df, motion.v)
    on_b = ends.b.A.T @ Wrench(times(toward, e.n), times(toward, e.f))
    on_a = -(ends.a.A.T @ Wrench(add(e.n, cross(motion.r, e.f)), e.f))
    both = ((ends.chain_a, ends.a.record, on_a), (ends.chain_b, ends.b.record, on_b))
    return Row(e.residual, rate, bias, both, holonomic=e.holonomic)


def of_coupling(coupling) -> Row:
    """Return the equation of a coupling: the sum of ratio q is the offset, which may move.

    With a law, the joint that follows, which comes first, has the law of the sum of the others.
    """
    if coupling.law is not None:
        return _of_law(coupling)
    residual, rate, bias = -coupling.offset, 0.0, 0.0
    if coupling.moving is not None:
        rate, bias = (-x for x in coupling.moving)
    torques: dict[int, Scalar] = {}
    for i, ratio in coupling.terms:
        residual, rate = residual + ratio * i.q[0], rate + ratio * i.qd[0]
        torques[i.labels[0]] = torques.get(i.labels[0], 0.0) + ratio
    return Row(residual, rate, bias, torques=torques)


def end(chain: list, frame) -> End:
    """Return the motion of a frame in the body that the chain starts from."""
    T, t, dt = Pose(), Twist(), TwistRate()
    for i in chain:
        T = T @ i.A
        t = i.A @ t + i.P @ i.qd
        dt = i.A @ dt + i.P.bias(t, i.qd)
    return fixed_to(frame, T, t, dt)


def fixed_to(frame, T: Pose, t: Twist, dt: TwistRate) -> End:
    """Return the motion of a frame that is fixed to a body with pose T, twist t and twist rate dt."""
    return T.then(frame.R, frame.r), frame.A @ t, frame.A @ dt


def _of_law(coupling) -> Row:
    """Return the equation q - offset - f(u) = 0 of a coupling, with u the sum of ratio q of the other joints."""
    (joint, _), *others = coupling.terms
    moved = (0.0, 0.0) if coupling.moving is None else coupling.moving
    u = sum((-ratio * i.q[0] for i, ratio in others), start=0.0)
    du = sum((-ratio * i.qd[0] for i, ratio in others), start=0.0)
    f, slope, bend = laws.values(coupling.law, u)
    torques: dict[int, Scalar] = {joint.labels[0]: 1.0}
    for i, ratio in others:
        torques[i.labels[0]] = torques.get(i.labels[0], 0.0) + slope * ratio
    rate = joint.qd[0] - slope * du - moved[0]
    return Row(joint.q[0] - f - coupling.offset, rate, -(bend * du * du) - moved[1], torques=torques)
