"""How recordings agree with the model: delays of torques, drive gains, signs, and zeros of positions."""

from __future__ import annotations

import itertools
import math
from collections.abc import Sequence
from dataclasses import dataclass, replace
from typing import TYPE_CHECKING, Any

import numpy as np

from ...algebra.scalars import Numbers
from ...dynamics.regressor import COUNT
from ...errors import InputError
from ...model.axes import axis_labels, axis_names
from ...runtime.compiled import CompiledMechanism
from .base_parameters import BaseParameters
from .equations import Measured, Rows, stacked
from .estimates import Indices
from .recordings import Recording

if TYPE_CHECKING:
    from numpy.typing import NDArray

DELAY_GAIN = 25.0
"""The least fall of n log(residual^2), a statistic of chi-squared, by which a delay counts as found."""
SWEEPS, STEPS = 3, 30
BETTER = 1.5
"""The factor by which the residual must fall for the signs of torques to count as reversed."""
NOTHING, SURPRISE = 1e-4, 0.25
"""The relative residual that counts as none; the logarithm of the factor for parameters that differ by their size."""
POOR_FRAME, MOST_TURNED = 0.05, 8
"""The residual above which zeros of two joints are tried, and the number of joints of which."""
ALONE = 0.8
"""The factor by which the residual must fall for the sign or zero of a single joint."""
BETTER_FRAME = 0.95
"""The factor by which a residual must fall for another sign or zero of a position."""
SIGN_MATTERS = 1.02
"""The factor by which a residual must grow for a sign to be known."""
UNDETERMINED = 1e-4
"""The least singular value of a joint's scaled columns, relative to the largest, that is used to try signs."""
ALIKE, UNLIKE = 0.9, 0.8
"""Correlations of a torque with that of another joint of the model and of its own, by which it seems swapped."""
NEAR_MODEL = 0.05
"""The relative residual that counts as much as parameters that differ from the model's by their own size."""
TRIED_TIMES, POOR, CLEARLY = 300, 0.01, 0.75
"""Times by which signs and zeros of positions are tried; the relative residual above which they are; the factor by
which the residual must fall."""
ORDERED = 1.5
"""The factor by which residuals of joints by themselves must fall for another order of joints."""
LOSSY = 0.3
"""The correlation of current and speed from which friction dominates, so that a drive must deliver power."""
KNOWN_GAIN, MODEL_ERROR, GUESS = 4.0, 0.1, 0.3
"""Deviations by which a gain must differ from zero to be known from the model, the error of the model's torques in
parts of them, and that of a gain that is taken from other joints."""
UNKNOWN_RATIO, WEAK_RATIO = 1.0, 0.2
"""Half widths of the intervals of ratios of gains by the currents alone, relative to them, from which they count as
unknown, and from which the model decides, whose torques count as right to a tenth."""
INTERVAL = 1.96
NOISELESS = 1e-9
"""Residuals below this part of the torques are rounding errors, in which there is no delay to be found."""


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
        shifted = np.concatenate([r.torque(none + d)[r.use] for r in rows])
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
class Ratios:
    """Gains relative to that of a `reference` joint [m], and the half widths of their 95 % intervals relative to them.

    `widths` are those of the estimate, in which the model's torques count as right to a tenth; `alone` are those by
    the currents without the model.
    """

    reference: int
    values: Numbers
    widths: Numbers
    alone: Numbers

    def heads(self, joints: Sequence[str]) -> tuple[str, str]:
        """Return the heads of columns of a table."""
        return f"ratio to {joints[self.reference]}", "by the log alone"

    def cells(self, k: int) -> tuple[str, str]:
        """Return the ratio of a joint with its interval, and the interval without the model, as texts."""
        if k == self.reference:
            return "1", ""
        own = self.alone[k]
        alone = "unknown" if own > UNKNOWN_RATIO else f"+/- {100.0 * own:.2g} %"
        return f"{self.values[k]:.4g} +/- {100.0 * self.widths[k]:.2g} %", alone

    def weak(self) -> list[int]:
        """Return the joints whose gains rest on the model more than on the currents."""
        return [k for k, x in enumerate(self.alone) if x > WEAK_RATIO]


@dataclass(frozen=True)
class Gains:
    """Torques per unit of current [m], their deviations, and the covariance of base parameters beside them.

    Gains are `anchored` to the model's masses where no load is known; those of `guessed` joints are of others. Currents
    then determine `ratios` alone.
    """

    values: Numbers
    deviations: Numbers
    covariance: Numbers
    anchored: bool
    guessed: tuple[int, ...] = ()
    ratios: Ratios | None = None


def model_gains(
    rows: Sequence[Rows], base: BaseParameters, driven: list[int], labels: Sequence[str]
) -> tuple[Numbers, Numbers, tuple[int, ...]]:
    """Return 1 / k of the currents of each joint [m] by the torques of the model, deviations, and joints without any.

    The current of each joint is fitted by the model's torque beside columns of friction, offset and acceleration of
    that joint. Where this does not determine it, the median of the others is taken, with the sign by which the drive
    delivers power.
    """
    count = rows[0].W.shape[1]
    values, spread, way, lossy = np.zeros(count), np.zeros(count), np.ones(count), np.zeros(count, dtype=bool)
    for k in range(count):
        use = [r.use[:, k] for r in rows]
        own = [n for n, i in enumerate(base.kept) if base.names[i].startswith(f"{labels[k]}.")]
        W = np.concatenate([r.W[u, k] for r, u in zip(rows, use, strict=True)])
        current = np.concatenate([r.raw[u, k] for r, u in zip(rows, use, strict=True)])
        at = driven[k]
        qd, qdd = (np.concatenate([x[u, at] for x, u in zip(y, use, strict=True)])
                   for y in ([r.qd for r in rows], [r.qdd for r in rows]))  # fmt: skip
        power = float(current @ qd)
        way[k] = -1.0 if power < 0.0 else 1.0
        lossy[k] = abs(power) > LOSSY * np.linalg.norm(current) * np.linalg.norm(qd)
        A = np.column_stack([W @ base.values, W[:, own], qdd])
        sizes = np.maximum(np.linalg.norm(A, axis=0), 1e-300)
        if sizes[0] <= 1e-12 * np.linalg.norm(W):
            continue
        inverse = np.linalg.pinv(A / sizes, rcond=1e-6)
        found = inverse @ current
        noise = np.linalg.norm(current - (A / sizes) @ found) / math.sqrt(max(len(current) - A.shape[1], 1))
        values[k], spread[k] = found[0] / sizes[0], noise * np.linalg.norm(inverse[0]) / sizes[0]
    known = (np.abs(values) > KNOWN_GAIN * spread) & ~(lossy & (values * way < 0.0))
    if not known.any():
        raise InputError(
            "currents without drive gains: the model's torques do not appear in the currents, and no recording has a "
            "known load; give gains= in N m per unit of current, or record a motion with a known load"
        )
    usual = float(np.median(np.abs(values[known])))
    error = np.where(known, np.hypot(spread, MODEL_ERROR * values), GUESS * usual)
    return np.where(known, values, way * usual), error, tuple(np.flatnonzero(~known).tolist())


def found_gains(
    W: Numbers,
    current: Numbers,
    loads: Numbers,
    joint: Indices,
    prior: tuple[Numbers, Numbers, tuple[int, ...]] | None,
) -> Gains:
    """Return the drive gains k of current = (W beta + load) / k, which is linear in beta and in 1 / k by itself.

    Known loads determine them. Without any, `prior` has 1 / k by the model with deviations: it decides what currents do
    not, such as the common factor of all gains and masses. Errors are those of currents: Gauss and Newton's steps.
    """
    count = int(joint.max()) + 1
    member = (joint[:, None] == np.arange(count)).astype(float)
    anchored = not loads.any()
    if anchored:
        assert prior is not None
        inverse = prior[0].copy()
        heavy = np.abs(inverse)[joint]
        beta = np.linalg.lstsq(W * heavy[:, None], current * np.sign(inverse)[joint], rcond=None)[0]
    else:
        A = np.hstack([W, -member * current[:, None]])
        sizes = np.linalg.norm(A, axis=0)
        found = np.linalg.lstsq(A / sizes, -loads, rcond=None)[0] / sizes
        beta, inverse = found[: W.shape[1]], 1.0 / found[W.shape[1] :]
    J, sizes, step = np.zeros((0, 0)), np.zeros(0), np.zeros(0)
    for _ in range(STEPS):
        torque = W @ beta + loads
        residual = current - inverse[joint] * torque
        noise = np.array([max(np.sqrt(np.mean(residual[joint == k] ** 2)), 1e-300) for k in range(count)])
        noise = np.maximum(noise, 1e-12 * np.sqrt(np.mean(current**2)))
        J = np.hstack([inverse[joint][:, None] * W, member * torque[:, None]]) / noise[joint][:, None]
        b = residual / noise[joint]
        if anchored and prior is not None:
            J = np.vstack([J, np.hstack([np.zeros((count, W.shape[1])), np.diag(1.0 / prior[1])])])
            b = np.append(b, (prior[0] - inverse) / prior[1])
        sizes = np.linalg.norm(J, axis=0)
        step = np.linalg.lstsq(J / sizes, b, rcond=None)[0] / sizes
        beta, inverse = beta + step[: W.shape[1]], inverse + step[W.shape[1] :]
        if np.abs(step * sizes).max() <= 1e-10 * max(np.linalg.norm(b), 1e-300) + 1e-14:
            break
    if (np.abs(inverse) < 1e-12 * np.abs(inverse).max()).any():
        raise InputError("a current does not depend on the motion; look for swapped or empty columns of currents")
    covariance = np.linalg.pinv((J / sizes).T @ (J / sizes), hermitian=True) / np.outer(sizes, sizes)
    freedom = len(current) / max(len(current) - len(step), 1)
    values = 1.0 / inverse
    spread = np.sqrt(np.diagonal(covariance)[W.shape[1] :] * freedom) * values**2
    p = W.shape[1]
    own = covariance[p:, p:] * freedom / np.outer(inverse, inverse)
    ratios = _ratios(values, own, J[: len(current), :p], J[: len(current), p:] * inverse, freedom) if anchored else None
    return Gains(values, spread, covariance[:p, :p] * freedom, anchored,
                 () if prior is None or not anchored else prior[2], ratios)  # fmt: skip


def _ratios(values: Numbers, covariance: Numbers, B: Numbers, C: Numbers, freedom: float) -> Ratios | None:
    """Return ratios of gains [m] with the covariance of their logarithms.

    B and C are the derivatives of currents by base parameters and by logarithms of gains, in deviations of the noise:
    what is left of C beside B is the information of the currents alone, in which a common factor has no part.
    """
    count = len(values)
    if count < 2:
        return None
    sizes = np.maximum(np.linalg.norm(B, axis=0), 1e-300)
    C = C - (B / sizes) @ np.linalg.lstsq(B / sizes, C, rcond=None)[0]
    information = C.T @ C / freedom
    r = int(np.argmax(np.diagonal(information)))
    others = [k for k in range(count) if k != r]
    alone = np.zeros(count)
    floor = 1e-8 * np.eye(count - 1)  # of intervals that are reported as unknown
    alone[others] = np.sqrt(np.diagonal(np.linalg.inv(information[np.ix_(others, others)] + floor)))
    d = np.diagonal(covariance)
    widths = np.sqrt(np.maximum(d + d[r] - 2.0 * covariance[r], 0.0))
    return Ratios(r, values / values[r], INTERVAL * widths, INTERVAL * alone)


def found_signs(
    rows: Sequence[Rows],
    gains: Numbers,
    nominal: Numbers,
    driven: list[int],
    labels: Sequence[str],
    findings: list[str],
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
    for k in np.flatnonzero(~_matters(signs, left, best)):  # either sign fits: drives deliver power on the whole
        power = sum(float(np.sum((r.raw * r.qd[:, driven])[r.use[:, k], k])) for r in rows) * gains[k]
        best[k] = -1.0 if power < 0.0 else 1.0
    if (best < 0.0).any():
        turned = [label for label, sign in zip(labels, best, strict=True) if sign < 0.0]
        findings.append(
            f"torques of {', '.join(turned)} count the other way round than joints of the model; they are reversed"
        )
    return best


def _matters(signs: Numbers, left: Numbers, best: Numbers) -> NDArray[np.bool_]:
    """Return for which joints the other sign fits worse [m], all others as they are."""
    own = best * best[0]
    out = np.ones(len(best), dtype=bool)
    for k in range(1, len(best)):
        other = own.copy()
        other[k] *= -1.0
        a, b = (float(left[(signs == x).all(axis=1)][0]) for x in (own, other))
        out[k] = b > SIGN_MATTERS**2 * a
    return out


def found_positions(
    measured: Measured,
    rows: Sequence[Rows],
    gains: Numbers | None,
    spread: Numbers,
    labels: Sequence[str],
    findings: list[str],
) -> tuple[Numbers, Numbers]:
    """Return signs and zeros [nv] of positions, q = sign * (measured) + zero, by which torques fit the motion.

    `spread` [p] are sizes of all parameters, by which they may differ from the model's. Signs are tried in all
    combinations of up to eight joints, then signs and quarter turns of one joint and of two; those of drives, and gains
    that are not known, with each of them. They count where the residual falls clearly.
    """
    system, base, nv = measured.system, measured.base, measured.system.nv
    sign, zero = np.ones(nv), np.zeros(nv)
    if system.closures or system.nq != nv:
        return sign, zero
    thin = [r.part(slice(None, None, max(1, sum(len(x.t) for x in rows) // TRIED_TIMES))) for r in rows]
    q, qd, qdd, effort, use, W = (
        np.concatenate([getattr(r, n) for r in thin]) for n in ("q", "qd", "qdd", "raw", "use", "W")
    )
    joint = np.nonzero(use)[1]
    effort = effort[use]
    sizes = np.array([max(float(np.linalg.norm(effort[joint == k])), 1e-300) for k in range(use.shape[1])])
    own = np.where(joint[:, None] == np.arange(len(sizes)), effort[:, None], 0.0)
    kept = [k for k in base.kept if k < COUNT * len(system.bodies)]
    plain = W[use][:, len(kept) :]  # friction belongs to the motion as it is measured
    m, near = len(sizes), np.abs(base.matrix) @ spread
    near = np.where(np.array(base.kept) < COUNT * len(system.bodies), near, math.inf)
    signs = 1.0 - 2.0 * ((np.arange(2**m)[:, None] >> np.arange(m)) & 1)
    start = np.abs(1.0 / model_gains(rows, base, measured.driven, labels)[0] if gains is None else gains)
    E, weights = own / sizes, (1.0 / (start * sizes))[joint][:, None]
    toward = NEAR_MODEL * math.sqrt(m / len(kept)) / near
    given = toward**2 * base.values

    def misfit(sign: Numbers, zero: Numbers) -> float:
        """Return the geometric mean of relative residuals, of the best signs or gains, times a factor for surprise."""
        Y = CompiledMechanism.regressor(system, sign * q + zero, sign * qd, sign * qdd)[:, measured.driven][..., kept]
        A = np.hstack([(Y * sign[measured.driven][:, None])[use], plain]) * weights
        H = A.T @ A + np.diag(toward**2)
        scale = np.sqrt(np.maximum(np.diagonal(H), 1e-300))
        inverse = np.linalg.pinv(H / np.outer(scale, scale), rcond=UNDETERMINED, hermitian=True) / np.outer(
            scale, scale
        )
        AE = A.T @ E
        G = E.T @ E - AE.T @ inverse @ AE  # of |A beta - E k|^2 + |toward (beta - model)|^2 with the best beta
        g = AE.T @ inverse @ given
        if gains is None:
            k = np.linalg.lstsq(G, g, rcond=1e-9)[0]
        else:
            k = signs[int(np.argmin(np.einsum("ij,jk,ik->i", signs, G, signs) - 2.0 * signs @ g))]
        beta = inverse @ (AE @ k + given)
        left = ((A @ beta - E @ k) / np.maximum(np.abs(k), 0.1)[joint]) ** 2
        off = (beta - base.values) / near
        each = np.array([left[joint == n].sum() for n in range(m)])
        return math.exp(0.5 * float(np.log(each + NOTHING**2).mean()) + SURPRISE * float(off @ off) / len(kept))

    first = best = misfit(sign, zero)
    if first < POOR or len(q) < 5 * len(base):
        return sign, zero
    tried = sorted(itertools.product((1.0, -1.0), repeat=min(nv, 8)), key=lambda x: sum(y < 0.0 for y in x))
    for x in tried:
        other = np.concatenate([x, np.ones(nv - len(x))])
        if (found := misfit(other, zero)) < BETTER_FRAME * best:
            sign, best = other, found
    turning = [k for k, (_, _, unit) in enumerate(axis_names(system.mechanism, 1)) if unit == "rad"]
    ways = list(itertools.product((1.0, -1.0), (0.0, 0.5, -0.5, 1.0)))
    for several in (1, 2, 1):
        if several == 2 and best < POOR_FRAME and (sign > 0.0).all() and not zero.any():
            break
        for joints_ in itertools.combinations(turning[:MOST_TURNED], several):
            for chosen in itertools.product(ways, repeat=several):
                way, place = sign.copy(), zero.copy()
                for k, (s, turn) in zip(joints_, chosen, strict=True):
                    way[k], place[k] = s, turn * math.pi
                if (found := misfit(way, place)) < BETTER_FRAME * best:
                    sign, zero, best = way, place, found
    for k in range(nv):  # what says little by itself stays as it was
        way, place = sign.copy(), zero.copy()
        way[k], place[k] = 1.0, 0.0
        if (found := misfit(way, place)) < best / ALONE:
            sign, zero, best = way, place, found
    if best > CLEARLY * first:
        return np.ones(nv), np.zeros(nv)
    if (sign < 0.0).any():
        turned = ", ".join(labels[k] for k in np.flatnonzero(sign < 0.0).tolist())
        findings.append(
            f"positions of {turned} count the other way round than joints of the model; they are reversed (the "
            f"residual falls by a factor of {first / best:.1f})"
        )
    for k in np.flatnonzero(zero).tolist():
        findings.append(f"{labels[k]} has its zero {math.degrees(zero[k]):.0f} degrees from that of the model")
    return sign, zero


def found_order(measured: Measured, recordings: Sequence[Recording], rows: list[Rows], findings: list[str]) -> Measured:
    """Return how recordings are read: with their joints in the order of the model, or in that of their names.

    Programs such as robot systems sort joints by name. Where this is another order, it is tried: each joint by itself,
    with any parameters, so that neither gains nor signs have a part in it.
    """
    system, labels = measured.system, axis_labels(measured.system.mechanism, 1)
    order = np.argsort(np.argsort(labels))
    if system.closures or system.nq != system.nv or (order == np.arange(len(labels))).all():
        return measured
    before = _alone(rows)
    if before <= POOR:
        return measured
    other = replace(measured, order=tuple(order.tolist()))
    after = _alone(other.rows(recordings, "recording", []))
    if after * ORDERED >= before:
        return measured
    findings.append(
        f"joints of the log are in the order of their names, {', '.join(sorted(labels))}, by which residuals fall by a "
        f"factor of {before / after:.1f}; they are read so"
    )
    return other


def _alone(rows: Sequence[Rows]) -> float:
    """Return the geometric mean of relative residuals of joints, each with parameters of its own."""
    out = []
    for k in range(rows[0].W.shape[1]):
        W = np.concatenate([r.W[r.use[:, k], k] for r in rows])
        effort = np.concatenate([r.raw[r.use[:, k], k] for r in rows])
        sizes = np.linalg.norm(W, axis=0)
        W = W[:, sizes > 0.0] / sizes[sizes > 0.0]
        left = effort - W @ np.linalg.lstsq(W, effort, rcond=UNDETERMINED)[0]
        out.append(np.linalg.norm(left) / max(np.linalg.norm(effort), 1e-300))
    return float(np.exp(np.mean(np.log(np.maximum(out, NOTHING)))))


def notice_swapped(
    rows: Sequence[Rows], gains: Numbers, nominal: Numbers, labels: Sequence[str], findings: list[str]
) -> None:
    """Add a finding for torques that follow those of another joint of the model rather than of their own."""
    model = np.concatenate([r.W @ nominal + r.loads for r in rows]).T
    tau = gains[:, None] * np.concatenate([r.raw for r in rows]).T
    unit = []
    for x in (tau, model):
        columns = x - x.mean(axis=1, keepdims=True)
        unit.append(columns / np.maximum(np.linalg.norm(columns, axis=1, keepdims=True), 1e-300))
    alike = np.abs(unit[0] @ unit[1].T)
    for k, label in enumerate(labels):
        other = int(np.argmax(alike[k]))
        if other != k and alike[k, other] > ALIKE and alike[k, k] < UNLIKE:
            findings.append(
                f"the torque of {label} follows the model's torque of {labels[other]} (correlation "
                f"{alike[k, other]:.2f}), not its own ({alike[k, k]:.2f}): look for swapped columns"
            )
