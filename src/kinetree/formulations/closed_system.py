"""Closed mechanisms by explicit matrices: J from N at both ends of each loop, and one dense solution."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
from numpy.typing import ArrayLike

from .. import loops
from ..loops import laws
from ..model.mechanism import Mechanism, resolve_parts
from ..model.parts import GROUND, Placement
from .denoc import DeNOC, denoc
from .kinematics import Matrix, skew
from .links import shifted

RANK = 1e-9
"""Singular values below this fraction of the largest count as zero; rounding is well below."""


@dataclass(frozen=True)
class End:
    """A frame at one end of a loop: position, axes, angular velocity, N [6, nv] of its twist there, and dN."""

    x: Matrix
    R: Matrix
    w: Matrix
    N: Matrix
    dN: Matrix


@dataclass(frozen=True)
class ClosedEquations:
    """I qdd + h = tau + J^T lambda with J qdd + bias = 0, at one state.                   [Saha2013] (50)-(54)

    h includes gravity and external wrenches; `residual` [nc] is the residual of every equation.
    """

    I: Matrix  # noqa: E741 - the papers' letter
    h: Matrix
    J: Matrix
    bias: Matrix
    residual: Matrix

    def acceleration(self, tau: ArrayLike) -> Matrix:
        """Return qdd for given joint torques."""
        return self.solve(tau)[0]

    def solve(self, tau: ArrayLike) -> tuple[Matrix, Matrix]:
        """Return qdd and the smallest multipliers, by one dense least-squares solution."""
        nv, nc = len(self.h), len(self.bias)
        size = np.diag(self.I)
        scale = 1.0 / np.sqrt(np.where(size > 0, size, 1.0))  # makes inertias and lengths comparable
        rows = 1.0 / np.maximum(np.linalg.norm(self.J * scale, axis=1), 1e-300)
        rows[rows > 1e9 * rows.min(initial=np.inf)] = 0.0  # equations that always hold
        J = rows[:, None] * self.J * scale
        whole = np.block([[scale[:, None] * self.I * scale, -J.T], [J, np.zeros((nc, nc))]])
        acting = np.concatenate([scale * (np.asarray(tau, dtype=float) - self.h), -rows * self.bias])
        found = np.linalg.lstsq(whole, acting, rcond=RANK)[0]
        return scale * found[:nv], rows * found[nv:]


def closed_equations(
    mechanism: Mechanism, q: ArrayLike, qd: ArrayLike | None = None, wrenches: ArrayLike | None = None
) -> ClosedEquations:
    """Return the equations of a closed mechanism at q [nq] and qd [nv]; external wrenches [nb, 6] are in body axes."""
    d = denoc(mechanism, q, qd)
    residual, J, bias = closure(mechanism, d, q)
    return ClosedEquations(d.I, d.C @ d.qd + d.g - d.external(wrenches), J, bias, residual)


def closure(mechanism: Mechanism, d: DeNOC, q: ArrayLike) -> tuple[Matrix, Matrix, Matrix]:
    """Return residual [nc], J [nc, nv] and dJ/dt qd [nc] of all loops, then of the couplings."""
    residual, rows, bias = [], [], []
    for loop in resolve_parts(mechanism.loops, mechanism.values()):
        found = _of_loop(d, loop)
        for column, part in zip((residual, rows, bias), found, strict=True):
            column += part
    at_q, at_v = _entries(mechanism)
    angles = np.asarray(q, dtype=float)
    for coupling in resolve_parts(mechanism.couplings, mechanism.values()):
        if coupling.law is not None:
            for column, part in zip((residual, rows, bias), _of_law(coupling, d, angles, at_q, at_v), strict=True):
                column.append(part)
            continue
        row, gap = np.zeros(mechanism.nv), -coupling.offset
        for name, ratio in ((coupling.joint, 1.0), *((name, -ratio) for name, ratio in coupling.terms)):
            row[at_v[name]] += ratio
            gap += ratio * angles[at_q[name]]
        residual.append(gap)
        rows.append(row)
        bias.append(0.0)
    return np.array(residual), np.array(rows).reshape(-1, mechanism.nv), np.array(bias)


def end(d: DeNOC, body: str, placement: Placement, axes: Matrix) -> End:
    """Return a frame fixed to a body and rotated by `axes`: A_en N of [Saha2013] (53)."""
    r, R = np.array(placement.translation, dtype=float), np.array(placement.rotation, dtype=float) @ axes
    if body == GROUND:
        still = np.zeros((6, d.links.nv))
        return End(r, R, np.zeros(3), still, still)
    i = d.links.index(body)
    b, rows = d.bodies[i], d.links.rows[i]
    arm = b.R @ r
    rate = np.cross(b.w, arm)
    N = shifted(-arm) @ d.N[rows]
    dN = shifted(-arm) @ d.dN[rows] + (shifted(-rate) - np.eye(6)) @ d.N[rows]
    return End(b.x + arm, b.R @ R, b.w, N, dN)


def _of_loop(d: DeNOC, loop) -> tuple[list[float], list[Matrix], list[float]]:
    """Return the equations of a loop: a row is the direction of its constraint wrench, times the twist of b in a."""
    axes = np.array(loops.frame(loop), dtype=float)
    a, b = end(d, loop.body_a, loop.placement_a, axes), end(d, loop.body_b, loop.placement_b, axes)
    apart = b.x - a.x
    drift = (b.N - a.N)[3:] @ d.qd
    N = b.N - shifted(-apart) @ a.N
    dN = b.dN - shifted(-apart) @ a.dN - (shifted(-drift) - np.eye(6)) @ a.N
    t, whirl = N @ d.qd, skew(a.w)
    local = [tuple((a.R.T @ x).tolist()) for x in (apart, t[:3], t[3:])]
    R = tuple(map(tuple, (a.R.T @ b.R).tolist()))
    out: tuple[list, list, list] = ([], [], [])
    for e in loops.equations(loop, local[0], R, local[1], local[2]):
        pull = np.concatenate([a.R @ np.array(e.n), a.R @ np.array(e.f)])
        rate = np.concatenate([whirl @ pull[:3] + a.R @ np.array(e.dn), whirl @ pull[3:] + a.R @ np.array(e.df)])
        out[0].append(float(e.residual))
        out[1].append(pull @ N)
        out[2].append(float(rate @ t + pull @ (dN @ d.qd)))
    return out


def _of_law(coupling, d: DeNOC, q: Matrix, at_q: dict[str, int], at_v: dict[str, int]) -> tuple[float, Matrix, float]:
    """Return the equation of a coupling with a law: q - f(u) = offset, u the sum of ratio q."""
    u = sum(ratio * q[at_q[name]] for name, ratio in coupling.terms)
    du = sum(ratio * d.qd[at_v[name]] for name, ratio in coupling.terms)
    f, slope, bend = (float(x) for x in laws.values(coupling.law, float(u)))
    row = np.zeros(len(d.qd))
    row[at_v[coupling.joint]] = 1.0
    for name, ratio in coupling.terms:
        row[at_v[name]] -= slope * ratio
    return float(q[at_q[coupling.joint]]) - f - coupling.offset, row, float(-bend * du**2)


def _entries(mechanism: Mechanism) -> tuple[dict[str, int], dict[str, int]]:
    """Return the first coordinate and the first degree of freedom of each joint."""
    names = [joint.name for joint in mechanism.joints]
    q, v = ([at.start for at in slices] for slices in (mechanism.q_slices, mechanism.v_slices))
    return dict(zip(names, q, strict=True)), dict(zip(names, v, strict=True))
