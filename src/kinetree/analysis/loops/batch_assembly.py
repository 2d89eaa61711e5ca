"""Assembly of many positions at once: Newton's method in native code, with a verdict for each sample."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, replace
from functools import cached_property
from math import prod
from typing import TYPE_CHECKING, Any

import numpy as np
from numpy.typing import ArrayLike

from ...algebra.scalars import Numbers
from ...errors import AssemblyError, InputError
from ...model.axes import axis_labels
from ...model.mechanism import Mechanism, Named, inputs_of
from ...runtime.compiled import CompiledMechanism
from ..joint_entries import Hold, Placed, as_list, numbers
from ..joint_entries import masks_of_joints as held_masks
from .driven_programs import NativeLoops, with_parameters
from .kinematics import LoopKinematics, Mask
from .misfits import assemble_or_explain
from .samples import FAR, NUDGES, STRIDE, Piece, Samples, starts
from .tolerances import ASSEMBLED, CLOSED

if TYPE_CHECKING:
    from numpy.typing import NDArray

# --- Closing of many positions at once: Newton's method in native code, from guesses or from the positions before.

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
        found, gap = self._from_guess()
        left = np.flatnonzero(~(gap <= tolerance))
        found[left] = np.nan
        found = self._pinned(found)
        if not len(left):
            return found
        found[left] = self.part(left)._from_starts(tolerance)
        return found

    def _from_starts(self, tolerance: float) -> Numbers:
        """Return the closed positions nearest to the guess of those from perturbed guesses, else from random starts."""
        found, nearest = np.full(self.wanted.shape, np.nan), np.full(len(self.wanted), np.inf)
        for k, start in enumerate(starts(self.loops, self.wanted, self.at, self.degrees)):
            rows = np.arange(len(found)) if k <= NUDGES else np.flatnonzero(~np.isfinite(nearest))
            if not len(rows):
                break
            there = self.part(rows)._accepted(np.broadcast_to(start, found.shape)[rows], tolerance)
            away = np.abs(self.part(rows)._difference(self.wanted[rows], there)).max(axis=-1, initial=0.0)
            better = away < nearest[rows]  # false for NaN
            found[rows[better]], nearest[rows[better]] = there[better], away[better]
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
                found[left] = self.part(left)._after(known, steps, tolerance)
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
        found, gap = self._closed(np.where(self.at, self.wanted, start))
        found[~(gap <= tolerance)] = np.nan
        return self._pinned(found)

    @cached_property
    def loops(self) -> LoopKinematics:
        """Functions of the loops for the parameters of the batch."""
        return LoopKinematics(self.system, self.parameters, many=True)

    def _from_guess(self) -> tuple[Numbers, Numbers]:
        """Return positions reached from the guess as the held joints move to their values, and their gaps."""
        way, count = self._way(self.base)
        far = count > 0
        there, gap = self._closed(np.where(far[:, None], self.base, self.wanted))
        if far.any():
            blocked = far & ~(gap <= CLOSED)
            there, count = np.where(blocked[:, None], self.wanted, there), np.where(blocked, 0, count)
            if (rows := count > 1).any():
                there[rows] = self.part(rows)._walked(there[rows], there[rows], way[rows], count[rows])
            there[far], gap[far] = self.part(far)._closed(np.where(self.at, self.wanted, there)[far])
        return there, gap

    def _way(self, start: Numbers) -> tuple[Numbers, np.ndarray]:
        """Return the way of the held joints from a start, in units of the length, and its number of strides."""
        way = np.where(self.degrees, self._difference(start, self.wanted), 0.0)
        most = np.abs(way).max(axis=-1, initial=0.0)
        far = ~(most <= FAR * STRIDE)  # NaN too
        way[far], most[far] = 0.0, 0.0
        return way, np.ceil(most / STRIDE).astype(int)

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
            if len(more := np.flatnonzero(k < count)):
                ahead[more] = self.part(more)._closed(ahead[more])[0]
            back, there = np.where(moving[:, None], there, back), np.where(moving[:, None], ahead, there)
        return there

    def _closed(self, q: Numbers) -> tuple[Numbers, Numbers]:
        """Return the positions that Newton's method finds from q, and their gaps."""
        return self.native.close(*with_parameters((q,), self.parameters))

    def _pinned(self, found: Numbers) -> Numbers:
        """Return positions with held quaternions exactly as given; Newton's method makes them units."""
        return found if self.native.flat else np.where(self.at & np.isfinite(found), self.wanted, found)

    def _difference(self, a: Numbers, b: Numbers) -> Numbers:
        if self.native.flat:
            return (b - a) / self.native.units
        return self._unchecked("difference", a, b) / self.native.units

    def _moved(self, q: Numbers, step: Numbers) -> Numbers:
        if self.native.flat:
            return q + step * self.native.units
        return self._unchecked("integrate", q, step * self.native.units)

    def _unchecked(self, name: str, *arrays: Numbers) -> Numbers:
        more: dict[str, Any] = {} if self.parameters is None else {"parameters": self.parameters}
        with np.errstate(all="ignore"):
            return np.asarray(self.system._with(name, check=False, **more)(*arrays), dtype=float)

    def part(self, rows: NDArray | slice) -> Batch:
        """Return some samples of the batch."""
        own = None if self.parameters is None else self.parameters[rows]
        return Batch(self.system, self.base[rows], self.wanted[rows], self.at, self.degrees, own)


def assemble_sample(batch: Batch, n: int, parameters: Numbers | None, tolerance: float) -> Numbers:
    """Return the position of one sample, from all starts; AssemblyError with the reason if its loops stay open."""
    labels, places = axis_labels(batch.system.mechanism, 0), np.flatnonzero(batch.at).tolist()
    guess, hold = batch.base[n], {labels[k]: float(batch.wanted[n, k]) for k in places}
    if batch.system.nq != batch.system.nv:  # quaternions are held with their joints
        guess, hold = batch.wanted[n], list(dict.fromkeys(labels[k].partition(".")[0] for k in places))
    return assemble_or_explain(batch.system, guess, hold, tolerance=tolerance, parameters=parameters)


FEW = 8
"""The most failed samples of a batch that are assembled once more one by one, to find a solution or the reason."""
ON_FAILURE = ("raise", "nan")
DRAWS = 20
"""The most draws of a random closed state."""
ROUNDING = 1e-9
"""The distance beyond a limit that counts as none [rad, m]: a coupling follows a joint at its limit to rounding."""
Entries = tuple[Sequence[int], Sequence[int]]
"""Entries of joints in q and in qd."""


def assemble(
    system: CompiledMechanism,
    q_guess: ArrayLike | None = None,
    hold: Hold = (),
    *,
    tolerance: float = ASSEMBLED,
    parameters: Named | None = None,
    follow: bool = False,
    on_failure: str = "raise",
) -> Numbers:
    """Return closed positions near guesses, [..., nq], with every residual at most `tolerance`.

    The guess [..., nq], the held values and the parameters [..., np] may have leading shapes that fit together. With
    `follow`, the last axis is a motion: each position continues the one before, which keeps the assembly mode. A
    position from which the loops do not close raises an AssemblyError, or is NaN with on_failure="nan". In a motion,
    those after it are NaN too.
    """
    if on_failure not in ON_FAILURE:
        raise InputError(f"on_failure is {on_failure!r}; expected 'raise' or 'nan'")
    if not tolerance > 0:
        raise InputError(f"tolerance is {tolerance}; expected more than 0, such as 1e-12")
    samples = samples_of(system, q_guess, hold, parameters, motion=follow)
    if follow and not samples.motion:
        raise InputError("a motion needs an axis of time, the last axis of the numbers of its joints; give arrays")
    found = np.empty((prod(samples.runs), samples.steps, system.nq))
    masks = masks_by_name(system, hold)
    for piece in samples.pieces():
        there = back = np.empty(0)
        for k in range(samples.steps):
            batch = batch_at(system, piece, masks, k)
            if k == 0:
                there = back = batch.first(tolerance)
            else:
                back, there = there, batch.next(back, there, tolerance)
            found[piece.rows, k] = there
    if on_failure == "raise":
        refuse_failed(system, samples, masks, found, tolerance)
    return found.reshape(*samples.lead, system.nq)


def random_closed_state(
    system: CompiledMechanism, rng: np.random.Generator, lead: tuple[int, ...]
) -> tuple[Numbers, Numbers]:
    """Return random closed positions [*lead, nq], within limits where they are found, and velocities that keep them.

    Random coordinates of the tree are moved to the nearest closed position. Those that do not close, or only beyond a
    limit, are drawn again, DRAWS times at most; AssemblyError if some close nowhere.
    """
    m, count = system.mechanism, prod(lead)
    q, found = np.full((count, system.nq), np.nan), np.zeros(count, dtype=bool)
    for _ in range(DRAWS):
        rows = np.flatnonzero(~found)
        if not rows.size:
            break
        near = assemble(system, system.tree.random_state(rng, rows.size)[0], on_failure="nan")
        closed, inside = np.isfinite(near).all(axis=-1), _within_limits(m, near)
        better = closed & (inside | np.isnan(q[rows]).any(axis=-1))
        q[rows[better]], found[rows] = near[better], inside
    if np.isnan(q).any():
        lost = int(np.isnan(q).any(axis=-1).sum())
        raise AssemblyError(
            f"the loops of {m.name!r} close from none of {DRAWS} random starts, in {lost} of {count} states; see "
            "doctor(), or draw random states of the open mechanism with system.tree.random_state"
        )
    qd = system.closing_speed(q, rng.normal(size=(count, system.nv))) if count else np.zeros((0, system.nv))
    return q.reshape(*lead, system.nq), qd.reshape(*lead, system.nv)


def _within_limits(m: Mechanism, q: Numbers) -> Mask:
    """Return whether all coordinates [n, nq] are finite and within the limits of their joints, but for rounding."""
    inside = np.asarray(np.isfinite(q).all(axis=-1))
    for joint, own in zip(m.resolved_joints, m.q_slices, strict=True):
        for sign, limits in ((1.0, joint.limits.upper), (-1.0, joint.limits.lower)):
            if limits:
                inside &= (sign * q[:, own] <= sign * np.array(limits) + ROUNDING).all(axis=-1)
    return inside


def assemble_from(
    system: CompiledMechanism,
    known: tuple[Numbers, Numbers | None],
    entries: Entries,
    wanted: Numbers,
    parameters: Numbers | None,
) -> Numbers:
    """Return positions of designs [n, nq] from a closed position [nq] and its parameters [np], in its assembly mode.

    Held coordinates, given by their entries in q and in qd, are as in `wanted` [n, nq]. Parameters are those of all
    designs [np] or of each [n, np]. Positions that cannot be reached are NaN.
    """
    values = None if parameters is None else np.broadcast_to(parameters, (len(wanted), parameters.shape[-1]))
    base, masks = np.broadcast_to(known[0], wanted.shape), masks_of(system, entries)
    return Batch(system, base, wanted, *masks, values).from_known(known[1], ASSEMBLED)


def masks_of(system: CompiledMechanism, entries: Entries) -> tuple[Mask, Mask]:
    """Return masks of the coordinates [nq] and degrees of freedom [nv] with some entries."""
    masks = np.zeros(system.nq, dtype=bool), np.zeros(system.nv, dtype=bool)
    for mask, places in zip(masks, entries, strict=True):
        mask[list(places)] = True
    return masks


def masks_by_name(system: CompiledMechanism, names: str | Iterable[str]) -> tuple[Mask, Mask]:
    """Return masks of the coordinates [nq] and degrees of freedom [nv] of joints, or of axes of joints."""
    known = tuple(map(str, as_list(names)))
    return system._parts.part(("held", known), lambda: held_masks(system.mechanism, known))


def samples_of(
    system: CompiledMechanism,
    q_guess: ArrayLike | None,
    hold: Hold,
    parameters: Named | None,
    *,
    motion: bool,
    **more: Placed,
) -> Samples:
    """Return the samples of guesses, parameters, held values, and more numbers by entry."""
    values = numbers(system.mechanism, hold, 0) if isinstance(hold, Mapping) else {}
    arrays = {"q_guess": guess_of(system, q_guess), "parameters": inputs_of(system.mechanism, parameters)}
    return Samples.of(arrays, {"hold": values, **more}, motion=motion)


def guess_of(system: CompiledMechanism, q_guess: ArrayLike | None) -> Numbers:
    """Return checked guesses [..., nq], by default the neutral position."""
    try:
        guess = np.asarray(system.neutral() if q_guess is None else q_guess, dtype=float)
    except (ValueError, TypeError):
        raise InputError(f"q is not an array of real numbers: {q_guess!r}") from None
    if guess.shape[-1:] != (system.nq,):
        raise InputError(f"q has shape {guess.shape}; expected [..., {system.nq}]")
    if not np.isfinite(guess).all():
        bad = np.argwhere(~np.isfinite(guess))
        raise InputError(f"q{bad[0].tolist()} is {guess[tuple(bad[0])]}; give finite numbers")
    return guess


def batch_at(system: CompiledMechanism, piece: Piece, masks: tuple[Mask, Mask], step: int) -> Batch:
    """Return some samples at one instant."""
    base = piece.array("q_guess", step)
    assert base is not None
    return Batch(system, base, piece.placed("hold", base, step), *masks, piece.array("parameters", step))


def refuse_failed(
    system: CompiledMechanism, samples: Samples, masks: tuple[Mask, Mask], found: Numbers, tolerance: float
) -> None:
    """Raise an AssemblyError for the first sample that failed; a few are first tried once more, one by one."""
    failed: Mask = np.any(np.isnan(found), axis=-1)  # [runs, steps]
    places = np.argwhere(failed)
    for run, step in places[: 1 if samples.motion else FEW]:
        batch = batch_at(system, Piece(samples, slice(run, run + 1)), masks, step)
        own = None if batch.parameters is None else batch.parameters[0]
        try:
            q = assemble_sample(batch, 0, own, tolerance)
        except AssemblyError as error:
            raise failure(system, samples, failed, error.what, error.remedy) from None
        if samples.motion:
            what = "the loops do not close from the position before"
            raise failure(system, samples, failed, what, "give a finer motion, or leave follow out")
        found[run, step], failed[run, step] = q, False
    if failed.any():
        raise failure(system, samples, failed, "the loops stay open", "give a nearer guess (q_guess)")


def failure(system: CompiledMechanism, samples: Samples, failed: Mask, what: str, remedy: str) -> AssemblyError:
    """Return the error of the first failed sample of runs and steps, with the number of all."""
    if not samples.lead:
        return AssemblyError(what, where=system.mechanism.name, remedy=remedy)
    sample = [int(x) for x in np.unravel_index(int(np.argmax(failed)), samples.lead)]
    return AssemblyError(
        f"sample {sample}: {what}; {int(failed.sum())} of {failed.size} samples fail",
        where=system.mechanism.name,
        remedy=f"{remedy}; on_failure='nan' keeps the other samples",
    )
