"""Regressors: inverse dynamics and energies as linear functions of the inertial parameters of the bodies.

The ten parameters of a body are, in Pinocchio's order,

    m, m cx, m cy, m cz, Ixx, Ixy, Iyy, Ixz, Iyz, Izz,

with the first moment and the inertia tensor about the origin of the body's own frame, in its axes.
"""

from __future__ import annotations

from ..algebra.spatial import Twist, TwistRate
from ..algebra.vectors import Vector, add, cross, dot, neg, times, transpose
from .kinematics import move, place

COUNT = 10
"""The number of inertial parameters of a body."""
MOMENTS = ("xx", "xy", "yy", "xz", "yz", "zz")
"""The entries of the inertia tensor, in the order of the parameters."""
PARAMETERS = ("m", "mx", "my", "mz", *(f"I{x}" for x in MOMENTS))
"""The names of the inertial parameters of a body."""


def regressor(tree):
    """tau = Y pi: the power of each body's wrench along the motion of each joint before it. [Saha2013] (22)-(26), (47)

    S has the motions of these joints at the body's origin. Inertia of drives and external wrenches have no part in Y.
    """
    entries = {}
    tree.ground.dt, tree.ground.S = tree.rho, {}  # (26)

    @tree.outward
    def motion(i, p):
        i.t = i.A @ p.t + i.P @ i.qd  # (22)
        i.dt = i.A @ p.dt + i.bias + i.P @ i.qdd  # (23)
        i.S = {k: i.A @ s for k, s in p.S.items()} | dict(zip(i.labels, i.P.columns, strict=True))

    for body, i in enumerate(tree.records):
        own = i.in_body(i.dt)
        moments = _moments(own)
        for k, s in i.S.items():
            entries[k, body] = _torques(i.in_body(s), own, moments)
    none = (0.0,) * COUNT
    return [x for k in range(tree.nv) for body in range(len(tree.records)) for x in entries.get((k, body), none)]


def _moments(dt: TwistRate) -> tuple[Vector, ...]:
    """Return the moments I dw + w x I w for each entry of the inertia tensor equal to one."""
    (x, y, z), (dx, dy, dz), U = dt.w, dt.dw, dt.U
    xy, yz, zx = x * y, y * z, z * x
    return (
        (dx, zx, -xy),
        (-U[2][0], U[2][1], U[0][0] - U[1][1]),
        (-yz, dy, xy),
        (U[1][0], U[2][2] - U[0][0], -U[1][2]),
        (U[1][1] - U[2][2], -U[0][1], U[0][2]),
        (yz, -zx, dz),
    )


def _torques(s: Twist, dt: TwistRate, moments: tuple[Vector, ...]) -> tuple:
    """Return the power along s of the wrench n = mc x dv + I dw + w x I w, f = m dv + U mc, for unit parameters."""
    mc = add(times(transpose(dt.U), s.v), cross(dt.dv, s.w))
    return (dot(s.v, dt.dv), *mc, *(dot(s.w, n) for n in moments))


def energy_regressor(tree):
    """T = K pi and U = V pi: the kinetic energy, and the potential energy of gravity.

    The inertia of drives has no part in K. U is zero with the center of mass at the height of the ground's origin.
    """
    move(tree)
    place(tree)
    kinetic, potential = [], []
    for i in tree.records:
        t, pose = i.in_body(i.t), i.T.then(i.to_work.matrix(), neg(i.height))
        x, y, z = t.w
        kinetic += [0.5 * dot(t.v, t.v), *cross(t.v, t.w)]
        kinetic += [0.5 * (x * x), x * y, 0.5 * (y * y), x * z, y * z, 0.5 * (z * z)]
        potential += [-dot(tree.gravity, pose.r), *neg(times(transpose(pose.R), tree.gravity)), *(0.0,) * len(MOMENTS)]
    return kinetic, potential
