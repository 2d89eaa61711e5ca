"""The motion of each body in the ground's axes: its center of mass, its columns of N, and the wrench it requires."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from ..algebra.arrays import Numbers
from ..formulations.kinematics import BodyState, body_states
from ..model.mechanism import Mechanism


@dataclass(frozen=True)
class BodyMotion:
    """A body with N [6, nv], its twist [omega; v] at the center of mass per unit qd, and the rate of that twist."""

    body: BodyState
    N: Numbers
    dw: Numbers
    dc: Numbers

    def wrench(self, acceleration: Numbers | None = None) -> Numbers:
        """Return the wrench [n; f] about the center of mass that causes the motion, by the Newton-Euler equations."""
        b = self.body
        n = b.I @ self.dw + np.cross(b.w, b.I @ b.w)
        return np.concatenate([n, b.m * (self.dc if acceleration is None else acceleration)])


def body_motions(mechanism: Mechanism, q: Numbers, qd: Numbers | None = None, qdd: Numbers | None = None):
    """Return the motion of every body for joint velocities and accelerations, which are zero by default."""
    states = body_states(mechanism, q, qd)
    speed = np.zeros(mechanism.nv) if qd is None else np.asarray(qd, dtype=float)
    rate = np.zeros(mechanism.nv) if qdd is None else np.asarray(qdd, dtype=float)
    out: list[BodyMotion] = []
    origins: list[tuple[Numbers, Numbers]] = []  # dw and dv of each body origin
    columns: list[Numbers] = []
    for b in states:
        own = b.P @ rate[b.dofs] + b.dP @ speed[b.dofs]
        N = np.zeros((6, mechanism.nv))
        if b.parent < 0:
            dw, dv = own[:3], own[3:]
        else:
            p, (dwp, dvp) = states[b.parent], origins[b.parent]
            r = b.o - p.o
            dw = dwp + own[:3]
            dv = dvp + np.cross(dwp, r) + np.cross(p.w, b.v - p.v) + own[3:]
            N = _shifted(columns[b.parent], r)
        N[:, b.dofs] += b.P
        origins.append((dw, dv))
        columns.append(N)
        dc = dv + np.cross(dw, b.d) + np.cross(b.w, np.cross(b.w, b.d))
        out.append(BodyMotion(b, _shifted(N, b.d), dw, dc))
    return out


def _shifted(N: Numbers, r: Numbers) -> Numbers:
    """Return twists shifted to a point at the offset r."""
    return np.vstack([N[:3], N[3:] + np.cross(N[:3].T, r).T])
