"""Loops of long mechanisms: a few equations at the ends of rolled sweeps, solved densely in NumPy.

J is that of the loops' frames, and I^-1 J^T is forward dynamics under its rows, all of them in one batch: O(n) for each
equation, and no code that grows with n. Differs from the unrolled pages in the order of operations alone.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, replace
from typing import Any

import numpy as np

from .. import joints as joint_kinds
from .. import loops as loop_kinds
from ..algebra.vectors import matmul
from ..errors import InputError
from ..model.mechanism import Mechanism, resolved
from ..model.parts import GROUND, Frame, Placement
from .closing import DEPENDENT

Numbers = np.ndarray


@dataclass(frozen=True)
class Rows:
    """The equations at one state: residual, J [nc, nv], and dJ/dt qd."""

    residual: Numbers
    J: Numbers
    bias: Numbers


class LongLoops:
    """The functions of a long closed mechanism by name, each of one state.

    `make(mechanism, name, frame)` returns a compiled function of a tree, axes of frames being the ground's.
    """

    def __init__(self, mechanism: Mechanism, make: Callable[[Mechanism, str, str | None], Callable]) -> None:
        """Put a frame at each end of each loop."""
        self.mechanism = mechanism
        self._loops = resolved(mechanism.loops, mechanism.values())
        if mechanism.free_parameters and self._loops != mechanism.loops:
            raise InputError(
                f"loops of {mechanism.name!r} have parameters, which rolled code takes as constants; "
                "fix them with system.fixed(parameters), or use lowering='unrolled'"
            )
        ends = [(f"{p.name}:{side}", *part) for p in self._loops for side, part in _sides(p).items()]
        tree = replace(mechanism, loops=(), couplings=(), frames=tuple(Frame(*end) for end in ends))
        self._of = {name: make(tree, name, None) for name in ("implicit_dynamics",)}
        self._frames = {
            end: tuple(make(tree, name, end) for name in ("pose", "jacobian", "twist_rate"))
            for end, body, _ in ends
            if body != GROUND
        }
        self._standing = {end: _pose(place) for end, body, place in ends if body == GROUND}
        self._places, at = {}, 0
        for joint in mechanism.joints:
            self._places[joint.name] = at
            at += joint_kinds.kind(joint.kind).NV
        self._at_q, at = {}, 0
        for joint in mechanism.joints:
            self._at_q[joint.name] = at
            at += joint_kinds.kind(joint.kind).NQ

    def rows(self, q: Numbers, qd: Numbers, more: tuple) -> Rows:
        """Return the equations of all loops, then the couplings': dynamics/closure.py, in the ground's axes."""
        residual, J, bias = [], [], []
        for loop in self._loops:
            (Ta, Ja, da), (Tb, Jb, db) = (self._end(f"{loop.name}:{s}", q, qd, more) for s in "ab")
            Ra, arm = Ta[:3, :3], Tb[:3, 3] - Ta[:3, 3]
            wa, wb = Ja[:3] @ qd, Jb[:3] @ qd
            whirl, lever = _skew(wa), _skew(arm)
            across = Jb[3:] - Ja[3:] + lever @ Ja[:3]
            w, v = wb - wa, across @ qd
            dw = db[:3] - da[:3] - whirl @ w
            dv = db[3:] - da[3:] + lever @ da[:3] - whirl @ (whirl @ arm + 2 * v)
            turned = [tuple(float(x) for x in Ra.T @ u) for u in (arm, w, v)]
            R = tuple(tuple(float(x) for x in row) for row in Ra.T @ Tb[:3, :3])
            for e in loop_kinds.equations(loop, turned[0], R, turned[1], turned[2]):
                n, f, dn, df = (Ra @ np.array(x, dtype=float) for x in (e.n, e.f, e.dn, e.df))
                residual.append(e.residual)
                J.append(n @ (Jb[:3] - Ja[:3]) + f @ across)
                bias.append(n @ dw + f @ dv + dn @ w + df @ v)
        for coupling in resolved(self.mechanism.couplings, self.mechanism.values()):
            row, gap = np.zeros(self.mechanism.nv), -float(coupling.offset)
            for name, ratio in ((coupling.joint, 1.0), *((n, -r) for n, r in coupling.terms)):
                row[self._places[name]] += ratio
                gap += ratio * q[self._at_q[name]]
            residual.append(gap)
            J.append(row)
            bias.append(0.0)
        return Rows(np.array(residual, dtype=float), np.array(J), np.array(bias, dtype=float))

    def closure_residual(self, q: Numbers, *more: Numbers) -> Numbers:
        """Return the residual."""
        return self.rows(q, np.zeros(self.mechanism.nv), more).residual

    def closure_jacobian(self, q: Numbers, *more: Numbers) -> Numbers:
        """Return J."""
        return self.rows(q, np.zeros(self.mechanism.nv), more).J

    def closure_bias(self, q: Numbers, qd: Numbers, *more: Numbers) -> Numbers:
        """Return dJ/dt qd."""
        return self.rows(q, qd, more).bias

    def forward_dynamics(self, q: Numbers, qd: Numbers, tau: Numbers, *more: Numbers) -> Numbers:
        """Return the accelerations."""
        return self.implicit_dynamics(q, qd, tau, np.zeros_like(tau), *more)

    def implicit_dynamics(self, q: Numbers, qd: Numbers, tau: Numbers, added: Numbers, *more: Numbers) -> Numbers:
        """Return the accelerations with inertias added."""
        return self._driven(q, qd, tau, added, more)[0]

    def multipliers(self, q: Numbers, qd: Numbers, tau: Numbers, *more: Numbers) -> Numbers:
        """Return the multipliers."""
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
        free = self._of["implicit_dynamics"](q, qd, tau, added, *more)
        X = self._responses(q, rows.J, added, more)
        found = -_solve(rows.J @ X.T, rows.J @ free + rows.bias)
        return free + found @ X, found

    def _responses(self, q: Numbers, J: Numbers, added: Any, more: tuple) -> Numbers:
        """Return I^-1 J^T, a row for each equation: what its torques add to the accelerations at rest."""
        rest = np.zeros(self.mechanism.nv)
        torques = np.vstack([rest, J])
        found = self._of["implicit_dynamics"](q, rest, torques, np.broadcast_to(added, rest.shape), *more)
        return found[1:] - found[0]

    def _end(self, name: str, q: Numbers, qd: Numbers, more: tuple) -> tuple[Numbers, Numbers, Numbers]:
        """Return pose, Jacobian and twist rate with qdd = 0 of a loop's frame."""
        if name in self._standing:
            return self._standing[name], np.zeros((6, len(qd))), np.zeros(6)
        pose, J, rate = self._frames[name]
        return pose(q, *more), J(q, *more), rate(q, qd, np.zeros_like(qd), *more)


def _sides(loop: Any) -> dict[str, tuple[str, Placement]]:
    """Return body and placement of both ends, turned so that z is the loop's axis."""
    axes = loop_kinds.frame(loop)
    turned = [Placement(p.translation, matmul(p.rotation, axes)) for p in (loop.placement_a, loop.placement_b)]
    return {"a": (loop.body_a, turned[0]), "b": (loop.body_b, turned[1])}


def _skew(a: Numbers) -> Numbers:
    """Return the matrix of a x."""
    x, y, z = a
    return np.array([[0.0, -z, y], [z, 0.0, -x], [-y, x, 0.0]])


def _pose(place: Placement) -> Numbers:
    out = np.eye(4)
    out[:3, :3], out[:3, 3] = place.rotation, place.translation
    return out


def _solve(S: Numbers, b: Numbers) -> Numbers:
    """Return the least x with S x = b, rows scaled alike; singular directions of S are left out.

    What overflowed gives NaN: a run that leaves the finite numbers says so.
    """
    if not (np.isfinite(S).all() and np.isfinite(b).all()):
        return np.full(b.shape, np.nan)
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
        if len(arguments) != len(self._inputs):
            raise TypeError(f"{len(self._inputs)} arrays are expected")
        arrays = [np.asarray(x, dtype=float) for x in arguments]
        leads = []
        for a, x in zip(self._inputs, arrays, strict=True):
            if x.shape[x.ndim - len(a.shape) :] != a.shape:
                raise ValueError(f"{a.name} has shape {x.shape}")
            leads.append(x.shape[: x.ndim - len(a.shape)])
        lead = np.broadcast_shapes(*leads)
        wide = [np.broadcast_to(x, lead + a.shape) for a, x in zip(self._inputs, arrays, strict=True)]
        result = np.empty(lead + self._output.shape, self._dtype) if out is None else out
        for index in np.ndindex(*lead):
            state = [x[index] for x in wide]
            fine = all(np.isfinite(x).all() for x in state)
            result[index] = self._one(*state) if fine else np.nan
        self._bad[1] += not np.isfinite(result).all()
        return result
