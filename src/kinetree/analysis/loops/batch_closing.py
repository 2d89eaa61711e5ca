"""Closing of many positions at once: Newton's method in native code, from guesses or from the positions before."""

from __future__ import annotations

from dataclasses import dataclass, replace
from functools import cached_property
from typing import Any

import numpy as np

from ...algebra.arrays import Numbers
from ...compiled import CompiledMechanism
from ...errors import AssemblyError
from ...joints import kind
from ...model.axes import axis_labels
from . import assembly
from .assembly import STRIDE
from .kinematics import CLOSED, LoopKinematics, Mask
from .native_loops import NativeLoops, with_parameters
from .starts import starts

ROUNDS = 30
"""The most steps of Newton's method from one start; from near a closed position it takes three."""
FINE, NEARLY = 1e-14, 1e-10
"""Gaps that are not corrected, and gaps that are not corrected if a step does not halve them [lengths, rad]."""
FAR = 400
"""The most strides from a guess to the held values, as for a single position."""
PATHS = (8, 64)
"""The numbers of steps from a known design to another; more steps are taken if fewer do not arrive."""
JUMP = 0.5
"""The largest correction of a position that continues another one [rad, or lengths of the mechanism]: more would be a
jump to another assembly mode, since strides are a tenth of it."""


@dataclass(frozen=True)
class Batch:
    """Guesses and wanted positions [n, ...] of a mechanism with held coordinates `at` and degrees of freedom."""

    system: CompiledMechanism
    base: Numbers
    wanted: Numbers
    at: Mask
    degrees: Mask
    parameters: Numbers | None

    @cached_property
    def native(self) -> NativeLoops:
        """The compiled programs."""
        return NativeLoops.of(self.system, self.degrees)

    def first(self, tolerance: float) -> Numbers:
        """Return closed positions by following the held joints from the guess, or from other starts."""
        if not self.native.possible:
            return self._one_by_one(tolerance)
        found = self._from_guess()
        left = np.flatnonzero(~(self._gap(found) <= tolerance))
        found[left] = np.nan
        rest = self._part(left)
        for start in starts(rest.loops, rest.wanted, self.at, self.degrees) if len(left) else ():
            todo = np.flatnonzero(~np.isfinite(found[left]).all(axis=-1))
            if not len(todo):
                break
            found[left[todo]] = rest._part(todo)._accepted(np.broadcast_to(start, rest.wanted.shape)[todo], tolerance)
        return found

    def next(self, back: Numbers, there: Numbers, tolerance: float) -> Numbers:
        """Return positions that continue the closed ones of two instants; NaN where they do not close."""
        if not self.native.possible:
            return self._one_by_one(tolerance)
        way, count = self._way(there)
        return self._accepted(self._walked(back, there, way, np.maximum(count, 1)), tolerance)

    def from_known(self, known: Numbers | None, tolerance: float) -> Numbers:
        """Return positions reached from the guess, which is closed with the parameters `known` [np].

        Held joints and parameters move to their values together. This keeps the assembly mode; positions that cannot
        be reached so are NaN.
        """
        found = np.full(self.wanted.shape, np.nan)
        for steps in PATHS:
            left = np.flatnonzero(~np.isfinite(found).all(axis=-1))
            if len(left):
                found[left] = self._part(left)._after(known, steps, tolerance)
        return found

    def _after(self, known: Numbers | None, steps: int, tolerance: float) -> Numbers:
        """Return positions after steps along the path from the parameters `known`."""
        there, way = self.base, np.where(self.degrees, self._difference(self.base, self.wanted), 0.0)
        for k in range(1, steps + 1):
            now = self
            if k < steps:
                ahead = np.where(self.at, self._moved(self.base, way * (k / steps)), self.base)
                values = self.parameters
                if values is not None and known is not None:
                    values = known + (k / steps) * (values - known)
                now = replace(self, wanted=ahead, parameters=values)
            before, there = there, now._accepted(there, tolerance)
            there[now.jumped(np.where(self.at, now.wanted, before), there)] = np.nan
        return there

    def jumped(self, guess: Numbers, found: Numbers) -> Mask:
        """Return whether positions are so far from their guesses that they may be of another assembly mode."""
        with np.errstate(invalid="ignore"):
            return ~(np.abs(self._difference(guess, found)).max(axis=-1, initial=0.0) <= JUMP)

    def _one_by_one(self, tolerance: float) -> Numbers:
        """Return positions of a mechanism without programs, each by itself."""
        out = self.wanted.copy()
        for n in range(len(out) if self.system.closures else 0):
            own = None if self.parameters is None else self.parameters[n]
            try:
                out[n] = assemble_sample(self, n, own, tolerance)
            except AssemblyError:
                out[n] = np.nan
        return out

    def _accepted(self, start: Numbers, tolerance: float) -> Numbers:
        """Return the positions that Newton's method finds with held coordinates as wanted; NaN where it finds none."""
        found = self._newton(np.where(self.at, self.wanted, start))
        found[~(self._gap(found) <= tolerance)] = np.nan
        return found

    @cached_property
    def loops(self) -> LoopKinematics:
        """Functions of the loops for the parameters of the batch."""
        return LoopKinematics(self.system, self.parameters, many=True)

    @cached_property
    def flat(self) -> bool:
        """Whether every joint has as many coordinates as velocities, so that positions can be subtracted."""
        return all(kind(j.kind).NQ == kind(j.kind).NV for j in self.system.joints)

    def _from_guess(self) -> Numbers:
        """Return positions reached from the guess as the held joints move to their values, with closed loops."""
        way, count = self._way(self.base)
        there = self._newton(np.where((count > 0)[:, None], self.base, self.wanted))
        blocked = (count > 0) & ~(self._gap(there) <= CLOSED)
        there, count = np.where(blocked[:, None], self.wanted, there), np.where(blocked, 0, count)
        return self._newton(np.where(self.at, self.wanted, self._walked(there, there, way, count)))

    def _way(self, start: Numbers) -> tuple[Numbers, np.ndarray]:
        """Return the way of the held joints from a start, in units of the length, and its number of strides."""
        way = np.where(self.degrees, self._difference(start, self.wanted), 0.0)
        most = np.abs(way).max(axis=-1, initial=0.0)
        far = ~(most <= FAR * STRIDE)  # NaN too
        return np.where(far[:, None], 0.0, way), np.where(far, 0, np.ceil(np.where(far, 0.0, most) / STRIDE)).astype(
            int
        )

    def _walked(self, back: Numbers, there: Numbers, way: Numbers, count: np.ndarray) -> Numbers:
        """Return positions after `count` strides along the way, straight on from two positions.

        Straight on also at points where branches meet. The last stride is left to the caller to close.
        """
        start, total = there, int(count.max(initial=0))
        for k in range(1, total + 1):
            moving = k <= count
            part = np.where(k == 1, 1.0 / np.maximum(count, 1), 1.0)[:, None]  # of the step before
            ahead = self._moved(there, self._difference(back, there) * part)
            ahead = np.where(self.at, self._moved(start, way * (k / np.maximum(count, 1))[:, None]), ahead)
            closed = self._newton(ahead, k < count)
            back, there = np.where(moving[:, None], there, back), np.where(moving[:, None], closed, there)
        return there

    def _newton(self, q: Numbers, some: Mask | None = None) -> Numbers:
        """Return positions after steps of Newton's method, each until its loops are closed to rounding."""
        out = np.array(q, dtype=float)
        live = np.arange(len(out)) if some is None else np.flatnonzero(some)
        before = np.full(len(live), np.inf)
        for _ in range(ROUNDS):
            if not len(live):
                break
            own = None if self.parameters is None else self.parameters[live]
            moved, gap = self.native.newton(*with_parameters((out[live],), own))
            gap = gap[:, 0]
            stuck = (gap <= NEARLY) & (gap > before / 2)  # rounding errors, which no step reduces
            still = (gap > FINE) & ~stuck  # NaN counts as closed, and is refused by its gap
            live, before = live[still], gap[still]
            out[live] = moved[still]
        return out

    def _gap(self, q: Numbers) -> Numbers:
        """Return the largest residual of each position, in units of the length; NaN where it is not finite."""
        safe = np.where(np.isfinite(q).all(axis=-1, keepdims=True), q, 0.0)
        gap = self.native.newton(*with_parameters((safe,), self.parameters))[1][:, 0]
        return np.where(np.isfinite(q).all(axis=-1), gap, np.nan)

    def _difference(self, a: Numbers, b: Numbers) -> Numbers:
        if self.flat:
            return (b - a) / self.loops.speeds
        return self._unchecked("difference", a, b) / self.loops.speeds

    def _moved(self, q: Numbers, step: Numbers) -> Numbers:
        if self.flat:
            return q + step * self.loops.speeds
        return self._unchecked("integrate", q, step * self.loops.speeds)

    def _unchecked(self, name: str, *arrays: Numbers) -> Numbers:
        more: dict[str, Any] = {} if self.parameters is None else {"parameters": self.parameters}
        with np.errstate(all="ignore"):
            return np.asarray(self.system._with(name, check=False, **more)(*arrays), dtype=float)

    def _part(self, rows: Any) -> Batch:
        own = None if self.parameters is None else self.parameters[rows]
        return Batch(self.system, self.base[rows], self.wanted[rows], self.at, self.degrees, own)


def assemble_sample(batch: Batch, n: int, parameters: Numbers | None, tolerance: float) -> Numbers:
    """Return the position of one sample, from all starts; AssemblyError with the reason if its loops stay open."""
    labels, places = axis_labels(batch.system.mechanism, 0), np.flatnonzero(batch.at).tolist()
    guess, hold = batch.base[n], {labels[k]: float(batch.wanted[n, k]) for k in places}
    if batch.system.nq != batch.system.nv:  # quaternions are held with their joints
        guess, hold = batch.wanted[n], list(dict.fromkeys(labels[k].partition(".")[0] for k in places))
    return assembly.assemble(batch.system, guess, hold, tolerance=tolerance, parameters=parameters)
