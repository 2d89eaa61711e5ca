"""Linear-quadratic regulators along a motion: gains that change with time."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import ArrayLike

from ...algebra.arrays import Numbers
from ...analysis.linear.linearization import discrete, linearize
from ...errors import InputError
from ...numbers import whole
from ..forces.joint_forces import require_flat
from ..instants import Instant
from ..references.table import Table
from .lqr import driven_joints, fed_back, weights

KNOTS = 41
"""The default number of times at which gains are computed. Between them, they are interpolated by cubic splines, each
interval of which adds selections to the compiled rates."""


@dataclass(frozen=True, init=False, eq=False)
class TrackingLQR:
    """tau = tau(t) - K(t) [q - q(t); qd - qd(t)] along a run, with the gains of the linearized motion.

    K(t) minimizes the sum of x^T Q x + u^T R u over the rest of the run plus x^T S x at its end. After the end of the
    run, the last values stay.
    """

    table: Table
    K: Numbers
    driven: tuple[int, ...]

    def __init__(
        self,
        run: Any,
        *,
        Q: ArrayLike = 1.0,
        R: ArrayLike = 1.0,
        S: ArrayLike | None = None,
        joints: str | Sequence[str] | None = None,
        knots: int = KNOTS,
    ) -> None:
        """Compute the gains along a single run of a tree, whose control gives the torques tau(t).

        `joints` are driven, by default all. Q, R and S are as those of LQR; S is Q times 1 s unless it is given.
        """
        _refuse(run)
        system = run.system
        driven = driven_joints(system, run.q[0], joints, None)
        n, rows = system.nv, np.unique(np.linspace(0, len(run.t) - 1, whole(knots, "knots", least=4)).astype(int))
        t, q, qd, tau = run.t[rows], run.q[rows], run.qd[rows], np.asarray(run.control)[rows]
        plant = linearize(system, q, qd, tau, parameters=run.parameters)
        matrices = weights(Q, 2 * n, "Q"), weights(R, len(driven), "R"), weights(Q if S is None else S, 2 * n, "S")
        K = _backward(t, plant.A, plant.B[..., list(driven)], *matrices)
        table = Table(t, np.concatenate([q, qd, tau, K.reshape(len(t), -1)], axis=-1))
        for name, value in {"table": table, "K": K, "driven": driven}.items():
            object.__setattr__(self, name, value)

    def torque(self, now: Instant) -> list[Any]:
        """Return the torques."""
        n, count = now.mechanism.nv, len(self.driven)
        values, _, _ = self.table(now.t)
        if len(values) != 3 * n + 2 * n * count:
            raise InputError(
                f"this TrackingLQR is that of another mechanism than {now.mechanism.name!r}; make one of a run of it"
            )
        q, qd, tau, flat = values[:n], values[n : 2 * n], values[2 * n : 3 * n], values[3 * n :]
        away = [x - y for x, y in zip((*now.q, *now.qd), (*q, *qd), strict=True)]
        return fed_back(tau, [flat[k : k + 2 * n] for k in range(0, len(flat), 2 * n)], away, self.driven)


def _backward(t: Numbers, A: Numbers, B: Numbers, Q: Numbers, R: Numbers, S: Numbers) -> Numbers:
    """Return the gains at all times, by the Riccati recursion from the last time to the first."""
    steps = np.diff(t)
    moved, pushed = discrete(A[:-1], B[:-1], steps[:, None, None])
    K = np.zeros((len(t), B.shape[-1], A.shape[-1]))
    for k in reversed(range(len(steps))):
        a, b, h = moved[k], pushed[k], steps[k]
        K[k] = np.linalg.solve(h * R + b.T @ S @ b, b.T @ S @ a)
        S = h * Q + a.T @ S @ (a - b @ K[k])
        S = (S + S.T) / 2.0  # rounding would grow from step to step
    K[-1] = K[-2]
    return K


def _refuse(run: Any) -> None:
    """Raise an InputError for a run that has no gains of this kind."""
    who = "TrackingLQR"
    if not all(hasattr(run, name) for name in ("system", "t", "q", "qd", "control")):
        raise InputError(f"{who} takes a run first, not {repr(run)[:60]}; compute one with kt.simulate")
    if run.q.ndim != 2 or len(run.t) < 4:
        raise InputError(f"{who} takes a single run of at least 4 samples; q has shape {run.q.shape}")
    if run.system.closures:
        raise InputError(f"{who}: {run.system.mechanism.name!r} has loops; only runs of trees are followed")
    for joint in run.system.joints:
        require_flat(joint, who)
