"""From recordings to equations W beta = tau: filters, regressors, delays, and what of them is in use."""

from __future__ import annotations

import math
from collections.abc import Callable, Sequence
from dataclasses import dataclass, replace
from typing import TYPE_CHECKING

import numpy as np

from ...algebra.scalars import Numbers
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

if TYPE_CHECKING:
    from numpy.typing import NDArray
    from scipy.interpolate import BSpline

# --- Zero-phase filters, derivatives and delays of signals with even time steps ---

ORDER = 6
"""The order of the low-pass filter, which runs forward and backward: it leaves 1 - 2e-5 at 0.4 of the cutoff."""
ABOVE_NOISE = 10.0
"""The amplitude of a signal, relative to the median amplitude of its noise, up to which frequencies are kept."""
MEDIAN = 0.83
"""The median amplitude of white noise relative to the root of its mean power."""
MARGIN = 2.5
"""The chosen cutoff relative to the highest frequency above the noise, so that the filter keeps the motion."""
NYQUIST = 0.8
"""The largest cutoff, relative to half the sampling rate."""


def low_pass(x: Numbers, rate: float, cutoff: float) -> Numbers:
    """Return a signal [n, ...] without frequencies above the cutoff [Hz], without a shift in time."""
    from scipy.signal import butter, sosfiltfilt

    return sosfiltfilt(butter(ORDER, cutoff, fs=rate, output="sos"), x, axis=0)


def derivatives(t: Numbers, x: Numbers) -> tuple[Numbers, Numbers]:
    """Return the first and second derivatives of a smooth signal [n, k], by its quintic spline."""
    from scipy.interpolate import make_interp_spline

    spline = make_interp_spline(t, x, k=5, axis=0)
    return spline.derivative(1)(t), spline.derivative(2)(t)


def chosen_cutoff(q: Numbers, rate: float) -> float:
    """Return the frequency [Hz] up to which positions [n, k] exceed their noise, with a margin.

    The noise is the mean power of the upper half of the spectrum, which motions of machines leave to it. A median would
    miss that of rounded positions in a periodic motion, which stands in lines.
    """
    n = len(q)
    t = np.arange(n)[:, None]
    line = q[0] + (q[-1] - q[0]) * t / (n - 1)  # ends that differ would have a spectrum of their own
    spectrum = np.abs(np.fft.rfft((q - line) * np.hanning(n)[:, None], axis=0))
    noise = MEDIAN * np.sqrt(np.mean(spectrum[len(spectrum) // 2 :] ** 2, axis=0))
    frequencies = np.fft.rfftfreq(n, 1.0 / rate)
    above = spectrum > ABOVE_NOISE * np.maximum(noise, 1e-12 * spectrum.max())
    highest = max((float(frequencies[np.flatnonzero(column)[-1]]) for column in above.T if column.any()), default=0.0)
    least = 4.0 * rate / n
    return float(np.clip(MARGIN * highest, least, NYQUIST * rate / 2.0))


def check_cutoff(cutoff: float, rate: float) -> float:
    """Return a cutoff [Hz] that suits a sampling rate."""
    if not 0.0 < cutoff < rate / 2.0:
        raise InputError(
            f"cutoff is {cutoff:g} Hz, and the recording has {rate:.4g} samples per second; give less than half of that"
        )
    return cutoff


@dataclass(frozen=True)
class Shifted:
    """A signal [n, k] that can be read at times between its samples."""

    spline: BSpline

    @classmethod
    def of(cls, t: Numbers, x: Numbers) -> Shifted:
        """Return the signal through samples."""
        from scipy.interpolate import make_interp_spline

        return cls(make_interp_spline(t, x, k=3, axis=0))

    def at(self, t: Numbers, delays: Numbers) -> Numbers:
        """Return the signal of each column, read its delay [s] later than t: what belongs to the instants t."""
        if not delays.any():
            return self.spline(t)
        return np.stack([self.spline(t + d)[:, k] for k, d in enumerate(delays)], axis=-1)


# --- Equations of the pieces of a recording ---

QUICKER = 4.0
"""The cutoff of torques relative to that of positions: products and friction have higher frequencies than motions."""
FINER = 6.0
"""The rate of regressors before they are filtered, relative to the cutoff of torques."""
APART = 1.8
"""The rate of equations relative to the cutoff of torques: filtered noise has almost independent samples then."""
EDGE = 1.0
"""The part of a piece that is left out at both ends, where filters start and end, in periods of the cutoff."""
REST, REST_TIME = 0.005, 0.15
"""The part of a joint's largest speed below which it rests, if it does for that time [s]: friction is anything then."""
STILL = 1e-3
"""The largest speed [rad/s, m/s] of a joint that does not move at all."""
ALWAYS = 0.95
"""The part of rows at rest above which a joint does not move at all, and is treated as if it did."""
CAPPED, MOST_CAPPED = 0.003, 0.6
"""The least and the largest part of samples at exactly the extreme value by which efforts count as saturated."""
RARE = 5.0
"""How many times more often a drive is at its limit than at the next lower value, which coarse numbers repeat, too."""
CHUNK, PAD = 8192, 15.0
"""Samples for which regressors are kept at once, and what filters see beside them, in periods of the cutoff."""
MOST_TIMES = 12_000
"""The most times of which equations are made; more of them would say little more."""


@dataclass(frozen=True)
class Rows:
    """The equations of a piece: times t [n], the motion, regressors W [n, m, b] of m joints, their torques by `effort`.

    `loads` [n, m] are the torques of a known load. `effort` is read at t, later by the delays. `use` [n, m] marks what
    parameters are estimated from: joints that move, under drives that are not saturated.
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
    use: NDArray[np.bool_]
    cutoff: float | None

    def torque(self, delays: Numbers) -> Numbers:
        """Return the torques or currents that belong to the motion [n, m]."""
        return self.effort.at(self.t, delays) if delays.any() else self.raw

    def part(self, keep: NDArray | slice) -> Rows:
        """Return some of the rows."""
        arrays = {n: getattr(self, n)[keep] for n in ("t", "q", "qd", "qdd", "W", "loads", "raw", "use")}
        return replace(self, **arrays)


@dataclass(frozen=True)
class Measured:
    """How recordings become equations: the system, its base parameters, and the joints whose torques are measured.

    The `order` has the column of each joint, if that is not the order of the model.
    """

    system: CompiledMechanism
    base: BaseParameters
    driven: list[int]
    cutoff: float | None
    longest_delay: float
    order: tuple[int, ...] = ()

    def rows(
        self, data: Sequence[Recording], what: str, findings: list[str], frame: tuple[Numbers, Numbers] | None = None
    ) -> list[Rows]:
        """Return the equations of all pieces of recordings; `frame` has signs and zeros of positions."""
        out = []
        for k, recording in enumerate(data):
            which = recording.name or (what if len(data) == 1 else f"{what} {k + 1}")
            known = checked(self.system.mechanism, recording, which)
            if self.order:
                known = _changed(known, lambda x: x[:, list(self.order)])
            if frame is not None:
                known = _turned(known, *frame)
            for piece in pieces(known, which, findings):
                out.append(self._of_piece(piece, which))
        return out

    def _of_piece(self, piece: Recording, which: str) -> Rows:
        t, q, qd, qdd = piece.t, piece.q, piece.qd, piece.qdd
        effort = piece.effort[:, self.driven]
        free = ~saturated(effort)
        rate = (len(t) - 1) / (t[-1] - t[0])
        given = qdd is not None
        if given and self.cutoff is None:
            W, loads = self._regressors(q, qd, qdd, piece.load)
            return Rows(which, t, q, qd, qdd, W, loads, Shifted.of(t, effort), effort, free, None)
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
        ends = _near(~free, math.ceil(rate / quick))[::few]
        t, q, qd, qdd, effort = t[::few], q[::few], qd[::few], qdd[::few], effort[::few]
        slow = rate / few
        quick = min(quick, 0.4 * slow)
        away = edge + self.longest_delay
        apart = max(1, math.ceil(slow / (APART * quick)), len(t) // MOST_TIMES)
        inside = np.flatnonzero((t >= t[0] + away) & (t <= t[-1] - away))[::apart]
        pad = math.ceil(PAD * slow / quick)
        parts = []
        for first in range(0, len(t), CHUNK):  # the same filter for both sides of the equations
            own = inside[(inside >= first) & (inside < first + CHUNK)]
            seen = slice(max(first - pad, 0), first + CHUNK + pad)
            both = self._regressors(q[seen], qd[seen], qdd[seen], piece.load)
            parts.append(tuple(low_pass(x, slow, quick)[own - seen.start] for x in both))
        W, loads = (np.concatenate([x[k] for x in parts]) for k in (0, 1))
        effort = low_pass(effort, slow, quick)
        use = ~ends & ~self._resting(q, qd, slow)
        signal, raw = Shifted.of(t, effort), effort[inside]
        t, q, qd, qdd = (x[inside] for x in (t, q, qd, qdd))
        return Rows(which, t, q, qd, qdd, W, loads, signal, raw, use[inside], cutoff)

    def _resting(self, q: Numbers, qd: Numbers, rate: float) -> NDArray[np.bool_]:
        """Return where the measured joints rest [n, m]: where they hardly move in a while, before and after."""
        if "coulomb" not in self.base.columns or self.system.nq != self.system.nv:
            return np.zeros((len(q), len(self.driven)), dtype=bool)
        half = math.ceil(REST_TIME * rate / 2.0)
        n = np.arange(len(q))
        first, last = np.maximum(n - half, 0), np.minimum(n + half, len(q) - 1)
        moved = np.abs(q[last] - q[first])[:, self.driven] * rate / (last - first)[:, None]  # noise has no part in it
        fastest = np.abs(qd[:, self.driven]).max(axis=0, initial=0.0)
        low = (moved < REST * fastest) & (fastest > STILL)
        rest = _near(~_near(~low, half), half)
        rest[:, rest.mean(axis=0) > ALWAYS] = False
        return rest

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


def _turned(x: Recording, sign: Numbers, zero: Numbers) -> Recording:
    """Return a recording with other signs and zeros of positions; torques belong to the new signs."""
    turned = _changed(x, lambda y: sign * y)
    return replace(turned, q=turned.q + zero)


def _changed(x: Recording, change: Callable[[Numbers], Numbers]) -> Recording:
    """Return a recording with all columns of joints changed alike."""
    names = ("q", "qd", "qdd", "tau", "current")
    return replace(x, **{n: change(y) for n in names if (y := getattr(x, n)) is not None})


def saturated(effort: Numbers) -> NDArray[np.bool_]:
    """Return where efforts [n, m] stay at exactly their largest magnitude, as those of drives at their limit do."""
    size = np.abs(effort)
    capped = size >= (1.0 - 1e-9) * size.max(axis=0, initial=0.0)
    part = capped.mean(axis=0)
    below = np.where(capped, 0.0, size)
    second = (size >= (1.0 - 1e-9) * below.max(axis=0, initial=0.0)) & ~capped
    part = np.where(capped.sum(axis=0) > RARE * second.sum(axis=0), part, 0.0)
    return capped & (part > CAPPED) & (part < MOST_CAPPED) & (size.max(axis=0, initial=0.0) > 0.0)


def _near(marked: NDArray[np.bool_], rows: int) -> NDArray[np.bool_]:
    """Return what is marked [n, m], and that many rows before and after it."""
    count = np.vstack([np.zeros((1, marked.shape[1]), dtype=int), np.cumsum(marked, axis=0)])
    n = np.arange(len(marked))
    return count[np.minimum(n + rows + 1, len(marked))] > count[np.maximum(n - rows, 0)]


def stacked(rows: Sequence[Rows], delays: Numbers) -> tuple[Numbers, Numbers, Numbers, Indices]:
    """Return W, the torques or currents, the torques of loads, and the joint of each row in use, of all pieces."""
    W = np.concatenate([r.W[r.use] for r in rows])
    effort = np.concatenate([r.torque(delays)[r.use] for r in rows])
    loads = np.concatenate([r.loads[r.use] for r in rows])
    joint = np.concatenate([np.nonzero(r.use)[1] for r in rows])
    return W, effort, loads, joint
