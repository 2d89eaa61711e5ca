"""Linear-quadratic regulators along a motion: gains that change with time."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import ArrayLike

from ..._support.checks import real_array, whole
from ..._support.tables import Displayed
from ...algebra.arrays import Numbers
from ...analysis.linearization import discrete, linearize
from ...errors import InputError
from .instants import Instant
from .joint_forces import require_flat
from .lqr import driven_joints, subtract_feedback, weights
from .references.piecewise import piecewise
from .references.table import Table

KNOTS = 41
"""The default number of times at which gains are computed. Between them, they are interpolated by cubic splines, each
interval of which adds selections to the compiled rates."""


@dataclass(frozen=True, init=False, eq=False, repr=False)
class TrackingLQR(Displayed):
    """tau = tau(t) - K(t) [q - q(t); qd - qd(t)] along a run, with the gains of the linearized motion.

    K(t) minimizes the sum of x^T Q x + u^T R u over the rest of the run plus x^T S x at its end. After the end of the
    run, the last values stay. `held` are the torques of the intervals between its times, if these are constant there.
    """

    table: Table
    K: Numbers
    driven: tuple[int, ...]
    held: Numbers | None

    def __init__(
        self,
        run: Any,
        *,
        torques: ArrayLike | None = None,
        Q: ArrayLike = 1.0,
        R: ArrayLike = 1.0,
        S: ArrayLike | None = None,
        joints: str | Sequence[str] | None = None,
        knots: int | None = None,
    ) -> None:
        """Compute the gains along a single run of a tree, whose control gives the torques tau(t).

        A Trajectory of an optimal control without `control` takes them as `torques`: [nt, nv] at its times, or
        [nt - 1, nv], each held until the next time. Gains are computed at `knots` of the times, by default 41, or all
        where torques are held. `joints` are driven, by default all. Q, R and S are as those of LQR; S is Q times 1 s
        unless it is given.
        """
        _refuse(run)
        system = run.system
        given = _torques(run, torques)
        held = given if len(given) < len(run.t) else None
        if held is not None and knots is not None:
            raise InputError("knots are given, and torques that are held in each interval; leave knots out")
        count = len(run.t) if held is not None else whole(KNOTS if knots is None else knots, "knots", least=4)
        driven = driven_joints(system, run.q[0], joints, None)
        n, rows = system.nv, np.unique(np.linspace(0, len(run.t) - 1, count).astype(int))
        t, q, qd, tau = run.t[rows], run.q[rows], run.qd[rows], given[np.minimum(rows, len(given) - 1)]
        plant = linearize(system, q, qd, tau, parameters=run.constant_parameters)
        matrices = weights(Q, 2 * n, "Q"), weights(R, len(driven), "R"), weights(Q if S is None else S, 2 * n, "S")
        K = _backward(t, plant.A, plant.B[..., list(driven)], *matrices)
        columns = np.concatenate([q, qd, tau, K.reshape(len(t), -1)], axis=-1)
        table = Table(t, columns, ends="not-a-knot")
        for name, value in {"table": table, "K": K, "driven": driven, "held": held}.items():
            object.__setattr__(self, name, value)

    def display(self) -> list[str]:
        """Return the number of gains and the interval of time on one line."""
        t, (count, driven, states) = self.table.times, self.K.shape
        return [f"TrackingLQR: gains [{driven}, {states}] at {count} times from {t[0]:.4g} s to {t[-1]:.4g} s"]

    def torque(self, now: Instant) -> list[Any]:
        """Return the torques."""
        n, count = now.mechanism.nv, len(self.driven)
        values, _, _ = self.table(now.t)
        if len(values) != 3 * n + 2 * n * count:
            raise InputError(
                f"this TrackingLQR is that of another mechanism than {now.mechanism.name!r}; make one of a run of it"
            )
        q, qd, tau, flat = values[:n], values[n : 2 * n], values[2 * n : 3 * n], values[3 * n :]
        if self.held is not None:
            still = np.zeros_like(self.held)
            tau, _, _ = piecewise(self.table.times, np.stack([self.held, still, still]), now.t)
        away = [x - y for x, y in zip((*now.q, *now.qd), (*q, *qd), strict=True)]
        return subtract_feedback(tau, [flat[k : k + 2 * n] for k in range(0, len(flat), 2 * n)], away, self.driven)


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


def _torques(run: Any, given: ArrayLike | None) -> Numbers:
    """Return the torques of the drives at the times of a run, [nt, nv], or held between them, [nt - 1, nv]."""
    shape = (len(run.t), run.system.nv)
    if given is None:
        if run.control is None:
            raise InputError(
                "TrackingLQR: the trajectory has no control, the torques of its drives; give them as torques=... "
                f"{list(shape)} at its times, or {[shape[0] - 1, shape[1]]}, held from one time to the next"
            )
        return np.asarray(run.control, dtype=float)
    found = real_array(given, "torques")
    if found.shape not in (shape, (shape[0] - 1, shape[1])):
        raise InputError(
            f"TrackingLQR: torques have shape {found.shape}; expected {shape} at the times of the trajectory, or "
            f"{(shape[0] - 1, shape[1])}, held from one time to the next"
        )
    if not np.isfinite(found).all():
        raise InputError("TrackingLQR: torques have entries that are not finite; give finite numbers")
    return found


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
