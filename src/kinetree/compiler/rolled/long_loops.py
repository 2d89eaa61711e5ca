"""Loops of long mechanisms: the equations of a few loops around rolled sweeps, solved densely in NumPy.

A row of J is what the joints feel of a unit multiplier's wrenches: inverse dynamics at rest without gravity. I^-1 J^T
is forward dynamics under these rows. All rows are one batch: O(n) for each equation, and no code that grows with n.
"""

from __future__ import annotations

import math
from collections.abc import Callable
from dataclasses import dataclass, replace
from typing import Any

import numpy as np

from ... import joints as joint_kinds
from ... import loops as loop_kinds
from ...errors import InputError
from ...model.mechanism import Mechanism, resolved
from ...model.parts import GROUND, Placement
from ..lower.loop_pattern import DEPENDENT
from ..runtime.batches import spread

Numbers = np.ndarray


@dataclass(frozen=True)
class Rows:
    """The equations at one state: residual, dJ/dt qd, and J [nc, nv]."""

    residual: Numbers
    bias: Numbers
    J: Numbers


@dataclass(frozen=True)
class End:
    """A loop's frame on a body (-1: the ground): its place r and axes R there."""

    body: int
    r: Numbers
    R: Numbers

    def seen(self, poses: Numbers, twists: Numbers, rates: Numbers) -> tuple[Numbers, ...]:
        """Return origin and axes in the ground's frame, with w, v, dw and dv of the origin in the ground's axes."""
        if self.body < 0:
            return self.r, self.R, *np.zeros((4, 3))
        T, (w, v), (dw, dv) = poses[self.body], np.split(twists[self.body], 2), np.split(rates[self.body], 2)
        whirl, turn = _skew(w), T[:3, :3]
        moved = (w, v + whirl @ self.r, dw, dv + _skew(dw) @ self.r + whirl @ (whirl @ self.r))
        return T[:3, 3] + turn @ self.r, turn @ self.R, *(turn @ x for x in moved)


class LongLoops:
    """The functions of a long closed mechanism by name, each of one state.

    `make(mechanism, name, wrenches)` returns a compiled function of a tree.
    """

    def __init__(self, mechanism: Mechanism, make: Callable[[Mechanism, str, bool], Callable]) -> None:
        """Compile the sweeps that the equations need."""
        self.mechanism = mechanism
        self._loops = resolved(mechanism.loops, mechanism.values())
        self._couplings = resolved(mechanism.couplings, mechanism.values())
        unknown = mechanism.values([math.nan] * len(mechanism.free_parameters))
        if resolved((mechanism.loops, mechanism.couplings), unknown) != (self._loops, self._couplings):
            raise InputError(
                f"loops of {mechanism.name!r} have free parameters, which rolled code takes as constants; "
                "fix them with system.fixed(parameters), or use lowering='unrolled'"
            )
        index = {GROUND: -1} | {b.name: k for k, b in enumerate(mechanism.bodies)}
        self._ends = [
            tuple(_end(index[body], p, axes) for body, p in ((x.body_a, x.placement_a), (x.body_b, x.placement_b)))
            for x, axes in ((x, np.array(loop_kinds.frame(x), dtype=float)) for x in self._loops)
        ]
        tree = replace(mechanism, loops=(), couplings=())
        floating = replace(tree, gravity=(0.0, 0.0, 0.0))
        self._dynamics, self._response = (make(m, "implicit_dynamics", False) for m in (tree, floating))
        self._moments = make(floating, "gravity_torque", True)
        self._kinematics = tuple(make(tree, name, False) for name in ("poses", "twists", "twist_rates"))
        self._at, q, v = {}, 0, 0
        for joint in mechanism.joints:
            self._at[joint.name] = q, v
            q, v = q + joint_kinds.kind(joint.kind).NQ, v + joint_kinds.kind(joint.kind).NV

    def rows(self, q: Numbers, qd: Numbers, more: tuple, *, jacobian: bool = True) -> Rows:
        """Return the equations of all loops, then those of the couplings: dynamics/closure.py, in the ground's axes."""
        poses, twists, rates = (f(*args, *more) for f, args in zip(self._kinematics, self._states(q, qd), strict=True))
        residual, bias, pulls = [], [], []
        for loop, (a, b) in zip(self._loops, self._ends, strict=True):
            oa, Ra, wa, va, dwa, dva = a.seen(poses, twists, rates)
            ob, Rb, wb, vb, dwb, dvb = b.seen(poses, twists, rates)
            arm, whirl = ob - oa, _skew(wa)
            w, v = wb - wa, vb - va - whirl @ arm
            dw = dwb - dwa - whirl @ w
            dv = dvb - dva - _skew(dwa) @ arm - whirl @ (whirl @ arm + 2 * v)
            r, R = _plain(Ra.T @ arm), tuple(map(_plain, Ra.T @ Rb))
            for e in loop_kinds.equations(loop, r, R, _plain(Ra.T @ w), _plain(Ra.T @ v)):
                n, f, dn, df = (Ra @ np.array(x, dtype=float) for x in (e.n, e.f, e.dn, e.df))
                residual.append(e.residual)
                bias.append(n @ dw + f @ dv + dn @ w + df @ v)
                pulls.append(((a.body, -n, -f), (b.body, n, f), ob))
        J = self._pulled(q, poses, pulls, more) if jacobian else np.zeros((len(pulls), self.mechanism.nv))
        geared = [self._coupled(c, q) for c in self._couplings]
        return Rows(
            np.array([*residual, *(gap for gap, _ in geared)], dtype=float),
            np.array([*bias, *(0.0 for _ in geared)], dtype=float),
            np.vstack([J, *(row for _, row in geared)]),
        )

    def _states(self, q: Numbers, qd: Numbers) -> tuple:
        return (q,), (q, qd), (q, qd, np.zeros_like(qd))

    def _pulled(self, q: Numbers, poses: Numbers, pulls: list, more: tuple) -> Numbers:
        """Return J: what the joints feel of each equation's wrenches at a point, in the ground's axes."""
        wrenches = np.zeros((len(pulls), len(self.mechanism.bodies), 6))
        for row, (*sides, point) in zip(wrenches, pulls, strict=True):
            for body, n, f in sides:
                if body >= 0:
                    T = poses[body]
                    moment = n + _skew(point - T[:3, 3]) @ f
                    row[body] += np.concatenate([T[:3, :3].T @ moment, T[:3, :3].T @ f])
        return -self._moments(q, wrenches, *more)

    def _coupled(self, coupling: Any, q: Numbers) -> tuple[float, Numbers]:
        """Return residual and row of a coupling."""
        row, gap = np.zeros(self.mechanism.nv), -float(coupling.offset)
        for name, ratio in ((coupling.joint, 1.0), *((n, -r) for n, r in coupling.terms)):
            at_q, at_v = self._at[name]
            row[at_v] += ratio
            gap += float(ratio * q[at_q])
        return gap, row

    def closure_residual(self, q: Numbers, *more: Numbers) -> Numbers:
        """Return the residual."""
        return self.rows(q, np.zeros(self.mechanism.nv), more, jacobian=False).residual

    def closure_jacobian(self, q: Numbers, *more: Numbers) -> Numbers:
        """Return J."""
        return self.rows(q, np.zeros(self.mechanism.nv), more).J

    def closure_bias(self, q: Numbers, qd: Numbers, *more: Numbers) -> Numbers:
        """Return dJ/dt qd."""
        return self.rows(q, qd, more, jacobian=False).bias

    def forward_dynamics(self, q: Numbers, qd: Numbers, tau: Numbers, *more: Numbers) -> Numbers:
        """Return the accelerations."""
        return self.implicit_dynamics(q, qd, tau, np.zeros_like(tau), *more)

    def implicit_dynamics(self, q: Numbers, qd: Numbers, tau: Numbers, added: Numbers, *more: Numbers) -> Numbers:
        """Return the accelerations with inertias added."""
        return self._driven(q, qd, tau, added, more)[0]

    def multipliers(self, q: Numbers, qd: Numbers, tau: Numbers, *more: Numbers) -> Numbers:
        """Return the multipliers, the least ones where equations depend on each other."""
        return self._driven(q, qd, tau, np.zeros_like(tau), more)[1]

    def closing_step(self, q: Numbers, *more: Numbers) -> Numbers:
        """Return the dq that closes the loops to first order."""
        rows = self.rows(q, np.zeros(self.mechanism.nv), more)
        X = self._responses(q, rows.J, 0.0, more)
        return -X.T @ _solve(rows.J @ X.T, rows.residual)

    def closing_speed(self, q: Numbers, qd: Numbers, *more: Numbers) -> Numbers:
        """Return the nearest speeds that keep the loops closed."""
        rows = self.rows(q, qd, more)
        X = self._responses(q, rows.J, 0.0, more)
        return qd - X.T @ _solve(rows.J @ X.T, rows.J @ qd)

    def _driven(self, q: Numbers, qd: Numbers, tau: Numbers, added: Numbers, more: tuple) -> tuple[Numbers, Numbers]:
        rows = self.rows(q, qd, more)
        free = self._dynamics(q, qd, tau, added, *more)
        X = self._responses(q, rows.J, added, more)
        found = -_solve(rows.J @ X.T, rows.J @ free + rows.bias)
        return free + found @ X, found

    def _responses(self, q: Numbers, J: Numbers, added: Any, more: tuple) -> Numbers:
        """Return I^-1 J^T, a row for each equation: what its torques add to the accelerations at rest."""
        rest = np.zeros(self.mechanism.nv)
        return self._response(q, rest, J, np.broadcast_to(added, rest.shape), *more)


def _end(body: int, placement: Placement, axes: Numbers) -> End:
    """Return a loop's frame, turned so that z is the loop's axis."""
    return End(body, np.array(placement.translation, dtype=float), np.array(placement.rotation, dtype=float) @ axes)


def _plain(x: Numbers) -> tuple[float, ...]:
    return tuple(x.tolist())


def _skew(a: Numbers) -> Numbers:
    """Return the matrix of a x."""
    x, y, z = a
    return np.array([[0.0, -z, y], [z, 0.0, -x], [-y, x, 0.0]])


def _solve(S: Numbers, b: Numbers) -> Numbers:
    """Return the least x with S x = b, rows scaled alike; singular directions of S are left out. NaN stays NaN."""
    if not (np.isfinite(S).all() and np.isfinite(b).all()):  # which LAPACK refuses
        return np.full_like(b, np.nan)
    scale = 1.0 / np.sqrt(np.maximum(np.diag(S), DEPENDENT * np.diag(S).max(initial=1e-300)))
    return scale * np.linalg.lstsq(scale[:, None] * S * scale, scale * b, rcond=DEPENDENT)[0]


class LongFunction:
    """What stands for the gufunc of a long closed mechanism: it broadcasts, one state after the other.

    `bad` counts, in its second entry, the calls with numbers that are not finite, as kernels do.
    """

    def __init__(self, loops: LongLoops, name: str, inputs: tuple, output: Any, dtype: str, bad: Any) -> None:
        """Hold one function of the loops, with shapes of its arrays."""
        self._one = getattr(loops, name)
        self._inputs, self._output, self._dtype, self._bad = inputs, output, dtype, bad

    def __call__(self, *arguments: Any, out: Any = None) -> Numbers:
        """Return the results of a batch."""
        wide, result = spread(self._inputs, self._output, self._dtype, arguments, out)
        for index in np.ndindex(*result.shape[: result.ndim - len(self._output.shape)]):
            state = [np.asarray(x[index], dtype=float) for x in wide]
            fine = all(np.isfinite(x).all() for x in state)
            result[index] = self._one(*state) if fine else np.nan
        self._bad[1] += not np.isfinite(result).all()
        return result
