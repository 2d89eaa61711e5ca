"""From recordings to equations W beta = tau: filters, regressors, delays, and drive gains."""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass, replace
from typing import Any

import numpy as np

from ...algebra.arrays import Numbers
from ...algebra.vectors import from_moments
from ...dynamics.regressor import COUNT
from ...errors import InputError
from ...model.parts import Body
from ...runtime.compiled import CompiledMechanism
from ..loops.driven_motion import nearest_motion
from .base_parameters import BaseParameters
from .columns import inertial, regressor
from .estimates import Indices
from .recordings import Recording, checked, pieces
from .signals import Shifted, check_cutoff, chosen_cutoff, derivatives, low_pass

QUICKER = 4.0
"""The cutoff of torques in parts of that of positions: products and friction have higher frequencies than motions."""
FINER = 6.0
"""The rate of regressors before they are filtered, in parts of the cutoff of torques."""
APART = 1.8
"""The rate of equations in parts of the cutoff of torques: filtered noise has almost independent samples then."""
EDGE = 1.0
"""The part of a piece that is left out at both ends, where filters start and end, in periods of the cutoff."""
DELAY_GAIN = 25.0
"""The least fall of n log(residual^2), a statistic of chi-squared, by which a delay counts as found."""
SWEEPS, STEPS = 3, 30
BETTER = 1.5
"""The factor by which the residual must fall for the signs of torques to count as reversed."""
ALIKE, UNLIKE = 0.9, 0.8
"""Correlations of a torque with that of another joint of the model and of its own, by which it seems swapped."""
NOISELESS = 1e-9
"""Residuals below this part of the torques are rounding errors, in which there is no delay to be found."""


@dataclass(frozen=True)
class Rows:
    """The equations of a piece: times t [n], the motion, regressors W [n, m, b] of m joints, their torques by `effort`.

    `loads` [n, m] are the torques of a known load. `effort` is read at t, later by the delays.
    """

    name: str
    t: Numbers
    q: Numbers
    qd: Numbers
    qdd: Numbers
    W: Numbers
    loads: Numbers
    effort: Shifted
    raw: Numbers
    cutoff: float | None

    def torque(self, delays: Numbers) -> Numbers:
        """Return the torques or currents that belong to the motion [n, m]."""
        return self.effort.at(self.t, delays) if delays.any() else self.raw

    def part(self, keep: Any) -> Rows:
        """Return some of the rows."""
        arrays = {n: getattr(self, n)[keep] for n in ("t", "q", "qd", "qdd", "W", "loads", "raw")}
        return replace(self, **arrays)


@dataclass(frozen=True)
class Measured:
    """How recordings become equations: the system, its base parameters, and the joints whose torques are measured."""

    system: CompiledMechanism
    base: BaseParameters
    driven: list[int]
    cutoff: float | None
    longest_delay: float

    def rows(self, data: Sequence[Recording], what: str, findings: list[str]) -> list[Rows]:
        """Return the equations of all pieces of recordings."""
        out = []
        for k, recording in enumerate(data):
            which = recording.name or (what if len(data) == 1 else f"{what} {k + 1}")
            known = checked(self.system.mechanism, recording, which)
            for piece in pieces(known, which, findings):
                out.append(self._of_piece(piece, which))
        return out

    def _of_piece(self, piece: Recording, which: str) -> Rows:
        t, q, qd, qdd = piece.t, piece.q, piece.qd, piece.qdd
        effort = piece.effort[:, self.driven]
        rate = (len(t) - 1) / (t[-1] - t[0])
        given = qdd is not None
        if given and self.cutoff is None:
            W, loads = self._regressors(q, qd, qdd, piece.load)
            return Rows(which, t, q, qd, qdd, W, loads, Shifted.of(t, effort), effort, None)
        if given:
            cutoff = check_cutoff(self.cutoff or 0.0, rate)
        else:
            cutoff = chosen_cutoff(q, rate) if self.cutoff is None else check_cutoff(self.cutoff, rate)
        edge = EDGE / cutoff
        if t[-1] - t[0] < 4.0 * edge + 2.0 * self.longest_delay:
            raise InputError(
                f"{which}: {t[-1] - t[0]:.3g} s are too short for a filter of {cutoff:.3g} Hz; record longer, or "
                "give a higher cutoff"
            )
        if not given:
            q = low_pass(q, rate, cutoff)
            qd, qdd = derivatives(t, q)
        quick = min(QUICKER * cutoff, 0.4 * rate)
        few = max(1, int(rate / (FINER * quick)))
        if few > 1:
            effort = low_pass(effort, rate, 0.4 * rate / few)
        t, q, qd, qdd, effort = t[::few], q[::few], qd[::few], qdd[::few], effort[::few]
        W, loads = self._regressors(q, qd, qdd, piece.load)
        slow = rate / few  # the same filter for both sides of the equations
        W, loads, effort = (low_pass(x, slow, min(quick, 0.4 * slow)) for x in (W, loads, effort))
        away = edge + self.longest_delay
        inside = np.flatnonzero((t >= t[0] + away) & (t <= t[-1] - away))[:: max(1, math.ceil(slow / (APART * quick)))]
        whole = Rows(which, t, q, qd, qdd, W, loads, Shifted.of(t, effort), effort, cutoff)
        return whole.part(inside)

    def _regressors(self, q: Numbers, qd: Numbers, qdd: Numbers, load: Body | None) -> tuple[Numbers, Numbers]:
        """Return the kept columns [n, m, b] and the torques of a known load [n, m]."""
        system, base = self.system, self.base
        if system.closures:
            q, qd, qdd = nearest_motion(system, q, qd, qdd)
        Y = regressor(system, q, qd, qdd, columns=base.columns, actuated=base.actuated)[:, self.driven]
        loads = np.zeros(Y.shape[:2])
        if load is not None:
            at = system.mechanism.body_indices.get(load.name, -1)
            if at < 0:
                names = ", ".join(b.name for b in system.bodies)
                raise InputError(
                    f"load is welded to {load.name!r}, which is no body; give it the name of one of {names}"
                )
            own = np.array(inertial(load.mass, load.com, from_moments(load.inertia)), dtype=float)
            loads = Y[..., COUNT * at : COUNT * (at + 1)] @ own
        return Y[..., list(base.kept)], loads


def stacked(rows: Sequence[Rows], delays: Numbers) -> tuple[Numbers, Numbers, Numbers, Indices]:
    """Return W, the torques or currents, the torques of loads, and the joint of each row, of all pieces."""
    W = np.concatenate([r.W.reshape(-1, r.W.shape[-1]) for r in rows])
    effort = np.concatenate([r.torque(delays).ravel() for r in rows])
    loads = np.concatenate([r.loads.ravel() for r in rows])
    joint = np.concatenate([np.tile(np.arange(r.W.shape[1]), len(r.t)) for r in rows])
    return W, effort, loads, joint


def found_delays(rows: Sequence[Rows], gains: Numbers, longest: float, step: float) -> Numbers:
    """Return the delay [s] of the torque of each joint behind its motion, zero where none is significant.

    All joints are shifted together, then one by one. With Q a basis of the weighted columns, the residual of shifted
    torques tau is |tau|^2 - |Q^T tau|^2. Both terms are splines over the delay of each joint.
    """
    from scipy.interpolate import make_interp_spline
    from scipy.optimize import minimize_scalar

    none = np.zeros(rows[0].W.shape[1])
    W, effort, loads, joint = stacked(rows, none)
    members = [joint == k for k in range(len(none))]
    tau = gains[joint] * effort - loads
    residual = tau - W @ np.linalg.lstsq(W, tau, rcond=None)[0]
    noise = np.array([np.sqrt(np.mean(residual[own] ** 2)) for own in members])
    if (noise <= NOISELESS * np.sqrt(np.mean(tau**2))).all():
        return none
    weights = 1.0 / np.maximum(noise, NOISELESS * noise.max())[joint]
    Q = np.linalg.qr(W * weights[:, None])[0]
    half = int(np.ceil(longest / step)) + 2  # splines are poor at their ends
    grid = np.arange(-half, half + 1) * step
    along, squares = np.empty((len(grid), len(none), Q.shape[1])), np.empty((len(grid), len(none)))
    for n, d in enumerate(grid):
        shifted = np.concatenate([r.torque(none + d).ravel() for r in rows])
        shifted = (gains[joint] * shifted - loads) * weights
        for k, own in enumerate(members):
            along[n, k], squares[n, k] = shifted[own] @ Q[own], shifted[own] @ shifted[own]
    of_along, of_squares = (make_interp_spline(grid, x, k=5, axis=0) for x in (along, squares))

    def misfit(delays: Numbers) -> float:
        c = np.sum([of_along(d)[k] for k, d in enumerate(delays)], axis=0)
        return float(sum(of_squares(d)[k] for k, d in enumerate(delays)) - c @ c)

    def best(base: Numbers, way: Numbers) -> Numbers:
        def moved(d: float) -> Numbers:
            return np.clip(base + d * way, -longest, longest)

        steps = np.linspace(-longest, longest, 2 * half + 1)
        k = int(np.argmin([misfit(moved(d)) for d in steps]))
        bounds = steps[max(k - 1, 0)], steps[min(k + 1, len(steps) - 1)]
        fine: Any = minimize_scalar(lambda d: misfit(moved(d)), bounds=bounds, method="bounded")
        found = moved(float(fine.x))
        gain = len(tau) * np.log(max(misfit(base), 1e-300) / max(misfit(found), 1e-300))
        return found if gain > DELAY_GAIN else base

    delays = best(none, none + 1.0)
    for _ in range(SWEEPS if len(none) > 1 else 0):
        before = delays
        for k in range(len(none)):
            delays = best(delays, np.eye(len(none))[k])
        if np.abs(delays - before).max() < 1e-2 * step:
            break
    return delays


@dataclass(frozen=True)
class Gains:
    """Torques per unit of current [m], their deviations, and the covariance of base parameters beside them.

    Gains are `anchored` to the model's masses where no load is known.
    """

    values: Numbers
    deviations: Numbers
    covariance: Numbers
    anchored: bool


def found_gains(W: Numbers, current: Numbers, loads: Numbers, joint: Indices, nominal: Numbers) -> Gains:
    """Return the drive gains k of current = (W beta + load) / k, which is linear in beta and in 1 / k by itself.

    Known loads determine them. Without any, the gains keep the mean that the nominal parameters of the model give.
    Errors are those of currents: Gauss and Newton's steps from the solution of W beta + load = k current.
    """
    count = int(joint.max()) + 1
    member = (joint[:, None] == np.arange(count)).astype(float)
    anchored = not loads.any()
    if anchored:
        model = W @ nominal
        size = np.array([np.linalg.norm(model[joint == k]) for k in range(count)])
        if not (size > 1e-9 * size.max()).all():
            raise InputError(
                "currents without drive gains: the masses of the model are zero, and no recording has a known load; "
                "give gains= in N m per unit of current, or record a motion with a known load"
            )
        start = np.array([(current[joint == k] @ model[joint == k]) / size[k] ** 2 for k in range(count)])
        beta, inverse = nominal.copy(), start
    else:
        A = np.hstack([W, -member * current[:, None]])
        sizes = np.linalg.norm(A, axis=0)
        found = np.linalg.lstsq(A / sizes, -loads, rcond=None)[0] / sizes
        beta, inverse = found[: W.shape[1]], 1.0 / found[W.shape[1] :]
    gauge = np.concatenate([np.zeros(W.shape[1]), inverse / (inverse @ inverse)])
    J, sizes, step = np.zeros((0, 0)), np.zeros(0), np.zeros(0)
    for _ in range(STEPS):
        torque = W @ beta + loads
        residual = current - inverse[joint] * torque
        noise = np.array([max(np.sqrt(np.mean(residual[joint == k] ** 2)), 1e-300) for k in range(count)])
        noise = np.maximum(noise, 1e-12 * np.sqrt(np.mean(current**2)))
        J = np.hstack([inverse[joint][:, None] * W, member * torque[:, None]]) / noise[joint][:, None]
        b = residual / noise[joint]
        if anchored:
            heavy = np.linalg.norm(J) * 1e3
            J = np.vstack([J, heavy * gauge / np.linalg.norm(gauge)])
            b = np.append(b, 0.0)
        sizes = np.linalg.norm(J, axis=0)
        step = np.linalg.lstsq(J / sizes, b, rcond=None)[0] / sizes
        beta, inverse = beta + step[: W.shape[1]], inverse + step[W.shape[1] :]
        if np.abs(step * sizes).max() <= 1e-10 * max(np.linalg.norm(b), 1e-300) + 1e-14:
            break
    if (np.abs(inverse) < 1e-12 * np.abs(inverse).max()).any():
        raise InputError("a current does not depend on the motion; look for swapped or empty columns of currents")
    covariance = np.linalg.inv((J / sizes).T @ (J / sizes)) / np.outer(sizes, sizes)
    freedom = len(current) / max(len(current) - len(step), 1)
    values = 1.0 / inverse
    spread = np.sqrt(np.diagonal(covariance)[W.shape[1] :] * freedom) * values**2
    return Gains(values, spread, covariance[: W.shape[1], : W.shape[1]] * freedom, anchored)


def found_signs(
    rows: Sequence[Rows], gains: Numbers, nominal: Numbers, labels: Sequence[str], findings: list[str]
) -> Numbers:
    """Return the signs of torques [m] that fit the motion, -1 where a drive counts the other way round.

    All combinations are compared by their residual, with the torques of each joint scaled to unit size. The sign of
    them all is that of the torques of the model.
    """
    count = rows[0].W.shape[1]
    W, effort, loads, joint = stacked(rows, np.zeros(count))
    tau = gains[joint] * effort - loads
    sizes = np.array([max(np.linalg.norm(tau[joint == k]), 1e-300) for k in range(count)])
    scaled, weights = tau / sizes[joint], 1.0 / sizes[joint]
    Q = np.linalg.qr(W * weights[:, None])[0]
    along = np.stack([scaled[joint == k] @ Q[joint == k] for k in range(count)])
    combinations = 1.0 - 2.0 * ((np.arange(2 ** (count - 1))[:, None] >> np.arange(count - 1)) & 1)
    signs = np.hstack([np.ones((len(combinations), 1)), combinations])
    left = count - np.sum((signs @ along) ** 2, axis=1)
    best = signs[int(np.argmin(left))] if left.min() * BETTER**2 < left[0] else signs[0]
    model = (W @ nominal) * weights
    if np.sum(best[joint] * scaled * model) < 0.0:
        best = -best
    if (best < 0.0).any():
        turned = [label for label, sign in zip(labels, best, strict=True) if sign < 0.0]
        findings.append(
            f"torques of {', '.join(turned)} count the other way round than joints of the model; they are reversed"
        )
    return best


def notice_swapped(
    rows: Sequence[Rows], gains: Numbers, nominal: Numbers, labels: Sequence[str], findings: list[str]
) -> None:
    """Add a finding for torques that follow those of another joint of the model rather than of their own."""
    W, effort, loads, joint = stacked(rows, np.zeros(len(labels)))
    model, tau = W @ nominal + loads, gains[joint] * effort
    unit = []
    for x in (tau, model):
        columns = np.stack([x[joint == k] for k in range(len(labels))])
        columns = columns - columns.mean(axis=1, keepdims=True)
        unit.append(columns / np.maximum(np.linalg.norm(columns, axis=1, keepdims=True), 1e-300))
    alike = np.abs(unit[0] @ unit[1].T)
    for k, label in enumerate(labels):
        other = int(np.argmax(alike[k]))
        if other != k and alike[k, other] > ALIKE and alike[k, k] < UNLIKE:
            findings.append(
                f"the torque of {label} follows the model's torque of {labels[other]} (correlation "
                f"{alike[k, other]:.2f}), not its own ({alike[k, k]:.2f}): look for swapped columns"
            )
