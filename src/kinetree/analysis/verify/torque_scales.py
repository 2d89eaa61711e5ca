"""Upper bounds of torques, the scale for their rounding errors.

By the Cauchy-Schwarz inequality, masses dm with accelerations a cause a torque on axis k of at most
sqrt(I_kk) sqrt(sum of a^2 dm). It is reached if all mass points act in the same direction. Where contributions cancel,
as those of gravity about a vertical axis, the torque itself is only rounding and is no scale.
"""

from __future__ import annotations

import numpy as np

from ...algebra.arrays import Numbers
from ...formulations.kinematics import gravity, skew
from ...model.mechanism import Mechanism
from ..body_motion import BodyMotion, body_motions


def torque_scale(
    mechanism: Mechanism,
    q: Numbers,
    qd: Numbers | None = None,
    qdd: Numbers | None = None,
    wrenches: Numbers | None = None,
) -> Numbers:
    """Return an upper bound of each torque at one state that no cancellation makes smaller, [nv].

    It is sqrt(I_kk sum of a^2 dm), with gravity as an acceleration, plus |omega| |n| + |v| |f| of every external wrench
    for a unit velocity of the axis, plus the torque on the armature.
    """
    g = gravity(mechanism)
    squares, inertia, pulled, drives = 0.0, *np.zeros((3, mechanism.nv))
    for i, b in enumerate(body_motions(mechanism, q, qd, qdd)):
        state = b.body
        squares += _square(b, g)
        inertia += state.m * (b.N[3:] ** 2).sum(axis=0) + np.einsum("ik,ij,jk->k", b.N[:3], state.I, b.N[:3])
        if wrenches is not None:
            n, f = (np.linalg.norm(x) for x in np.split(np.asarray(wrenches)[i], 2))
            at_origin = b.N[3:] - np.cross(b.N[:3].T, state.d).T
            pulled += n * np.linalg.norm(b.N[:3], axis=0) + f * np.linalg.norm(at_origin, axis=0)
        if qdd is not None:
            drives[state.dofs] = np.abs(state.armature * np.asarray(qdd)[state.dofs])
    return np.sqrt(np.maximum(inertia * squares, 0.0)) + pulled + drives


def _square(b: BodyMotion, g: Numbers) -> float:
    """Return the sum of |a - g|^2 dm over a body: m |a_c - g|^2 + tr(U J U^T), with U r the acceleration about c."""
    U = skew(b.dw) + skew(b.body.w) @ skew(b.body.w)
    J = 0.5 * np.trace(b.body.I) * np.eye(3) - b.body.I
    return float(b.body.m * ((b.dc - g) ** 2).sum() + np.trace(U @ J @ U.T))
