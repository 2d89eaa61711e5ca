"""Motions of closed mechanisms: each instant is extrapolated from those before it, and corrected in native code."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from functools import cached_property
from math import prod
from typing import Any

import numpy as np
from numpy.typing import NDArray

from ...algebra.scalars import Numbers
from ...model.scales import coordinate_units
from ...runtime.compiled import CompiledMechanism
from .batch_assembly import Batch, Entries, batch_at, masks_of
from .driven_programs import NativeLoops, with_parameters
from .instant_kernel import AGAIN
from .kinematics import Mask
from .samples import STRIDE, Piece, Samples
from .tolerances import ASSEMBLED, ROUNDED

Flags = NDArray[np.bool_]

KEPT = ("q", "qd", "qdd", "tau")
"""The arrays of a motion."""
KINEMATIC = KEPT[:3]
"""Those without torques."""
LONGER = 1.5
"""A step that is longer than the one before by more than this is extrapolated by a straight line."""
WEIGHTS = ((1.0,), (2.0, -1.0), (3.0, -3.0, 1.0), (4.0, -6.0, 4.0, -1.0))
"""Weights of the last positions, newest first, that extrapolate a motion by a polynomial through them."""


@dataclass(frozen=True)
class DrivenMotion:
    """Positions [..., nt, nq], velocities, accelerations and actuator torques [..., nt, nv] of a mechanism.

    Torques act at the actuated joints, and are zero elsewhere. Where `closed` [..., nt] is false, the loops do not
    close, or the driving joints do not determine the motion, and all numbers are NaN. Arrays that were not to
    be kept are None.
    """

    q: Any
    qd: Any
    qdd: Any
    tau: Any
    closed: Flags


@dataclass(frozen=True)
class Course:
    """How designs continue a known one: its parameters [np], the times [s] of all instants, and those to return."""

    parameters: Numbers | None
    times: Numbers
    shown: Sequence[int]

    def weights(self, step: int, count: int) -> Sequence[float]:
        """Return weights of the last positions, newest first, that extrapolate a motion to an instant."""
        now, past = self.times[step], self.times[step - count : step][::-1].tolist()
        if count > 2 and now - past[0] > LONGER * (past[0] - past[1]):
            past = past[:2]
        return [prod((now - y) / (x - y) for y in past if y != x) for x in past]


def motion_of_designs(
    system: CompiledMechanism,
    entries: Entries,
    driving: tuple[Numbers, Numbers, Numbers],
    start: Numbers,
    course: Course,
    parameters: Numbers | None,
) -> DrivenMotion:
    """Return the motion of designs with parameters [n, np] from the motion of driving joints, without torques.

    The driving joints are given by their entries in q and in qd, their positions, speeds and accelerations are
    [nt, .] each, with steps below STRIDE. `start` [nq] is a position that is closed with the parameters of the course.
    All designs have its assembly mode: where they cannot be reached from it, and from a jump to another mode on,
    numbers are NaN.
    """
    masks = masks_of(system, entries)
    arrays = {"q_guess": start[None, None], "parameters": None if parameters is None else parameters[:, None]}
    by_entry = {
        name: {tuple(entries[min(which, 1)]): x[None]}
        for which, (name, x) in enumerate(zip(("hold", "speeds", "accelerations"), driving, strict=True))
    }
    samples = Samples.of(arrays, by_entry, motion=True)
    native = NativeLoops.of(system, masks[1])
    return Runner(system, samples, masks, native, None, forces=False, course=course).run(KINEMATIC)


@dataclass(frozen=True)
class Runner:
    """The computation of a motion, piece by piece of its runs and instant by instant.

    Without `driven` there are no torques. With a `course`, the guess is a position of a known design. A `kernel` for
    single instants closes the loops too.
    """

    system: CompiledMechanism
    samples: Samples
    masks: tuple[Mask, Mask]
    native: NativeLoops
    driven: frozenset[int] | None
    forces: bool
    course: Course | None = None
    kernel: np.ufunc | None = None

    def run(self, keep: tuple[str, ...]) -> DrivenMotion:
        """Return the motion; arrays are written instant by instant, and returned transposed."""
        samples, nv = self.samples, self.system.nv
        shown = range(samples.steps) if self.course is None else self.course.shown
        rows = {step: n for n, step in enumerate(shown)}
        count, sizes = prod(samples.runs), {"q": self.system.nq, "qd": nv, "qdd": nv, "tau": nv}
        whole: dict[str, Numbers] = {name: np.empty((len(rows), count, sizes[name])) for name in keep}
        closed = np.zeros((len(rows), count), dtype=bool)
        names = KINEMATIC if self.driven is None else KEPT
        for piece in samples.pieces():
            past: list[Numbers] = []
            if self.kernel is not None:
                kept = [whole[x][0, piece.rows] if x in keep else None for x in names]
                self._once(self.kernel, piece, kept, closed[0, piece.rows])
                continue
            for k in range(samples.steps):
                batch, to = batch_at(self.system, piece, self.masks, k), rows.get(k)
                guess = self._guess(batch, past, k)
                out = tuple(None if to is None or x not in keep else whole[x][to, piece.rows] for x in names)
                q, good = self._instant(piece, batch, guess, k, out)
                if to is not None:
                    closed[to, piece.rows] = good
                past = [q, *past[: len(WEIGHTS) - 1]]
        moved: list[Any] = [None] * len(KEPT)
        lead = (*samples.runs, len(rows)) if samples.motion else samples.runs
        for k, name in enumerate(KEPT):
            if name in keep:
                moved[k] = whole[name].swapaxes(0, 1).reshape(*lead, sizes[name])
        return DrivenMotion(*moved, closed=closed.swapaxes(0, 1).reshape(lead))

    def _once(self, kernel: np.ufunc, piece: Piece, out: list, closed: Flags) -> None:
        """Write q, qd, qdd and tau of single instants, NaN where the loops do not close, and where they do.

        The native code closes loops near the guess. Where it does not, it starts again from a position that does.
        """
        batch = batch_at(self.system, piece, self.masks, 0)
        zeros = np.broadcast_to(0.0, (piece.count, self.system.nv))
        motion = [piece.placed(name, zeros) for name in ("speeds", "accelerations")]

        def evaluate(
            part: Batch, start: Numbers, rows: NDArray | slice, out: tuple | None = None
        ) -> tuple[list[Numbers], Flags]:
            arrays = with_parameters((start, part.wanted, *(x[rows] for x in motion)), part.parameters)
            with np.errstate(all="ignore"):
                *found, gap, rank = kernel(*arrays) if out is None else kernel(*arrays, out=out)
            return found, (gap[:, 0] <= ASSEMBLED) & (rank[:, 0] == self.native.passive)

        whole, closed[:] = evaluate(batch, batch.base, slice(None), (*out, None, None))
        if len(again := np.flatnonzero(~closed)):
            part = batch.part(again)
            found, closed[again] = evaluate(part, part.first(ASSEMBLED), again)
            for all_of, x in zip(whole, found, strict=True):
                all_of[again] = np.where(closed[again, None], x, np.nan)

    @cached_property
    def _near(self) -> list[int]:
        """The number of positions before each instant that extrapolate to it; none where the driving joints are far."""
        if self.course is not None:
            return [min(k, len(WEIGHTS)) for k in range(self.samples.steps)]
        out = [0]
        if not self.samples.motion:
            return out
        for far in self.samples.strides("hold", coordinate_units(self.system.mechanism))[1:] > STRIDE:
            out.append(0 if far else min(out[-1] + 1, len(WEIGHTS)))
        return out

    def _guess(self, batch: Batch, past: list[Numbers], step: int) -> Numbers:
        """Return positions from which one correction suffices, with the held coordinates as wanted."""
        course, count = self.course, self._near[step]
        if not past:
            return batch.first(ASSEMBLED) if course is None else batch.from_known(course.parameters, ASSEMBLED)
        if not count:
            return batch.next(past[min(1, len(past) - 1)], past[0], ASSEMBLED)
        count = count if batch.native.flat else 1
        weights = WEIGHTS[count - 1] if course is None else course.weights(step, count)
        ahead = weights[0] * past[0]
        for x, before in zip(weights[1:], past[1:], strict=False):
            ahead += x * before
        ahead[:, batch.at] = batch.wanted[:, batch.at]
        return ahead

    def _instant(self, piece: Piece, batch: Batch, q: Numbers, step: int, out: tuple) -> tuple[Numbers, Flags]:
        """Write q, qd, qdd and tau of one instant, NaN where the loops do not close; return q, and where they do."""
        zeros, values = np.broadcast_to(0.0, (len(q), batch.system.nv)), batch.parameters
        qd, qdd = (piece.placed(name, zeros, step) for name in ("speeds", "accelerations"))
        found = self._motion(q, qd, qdd, values, (*out, None, None))
        gap, rank = found[-2:]
        for _ in range(AGAIN - 1):
            again = np.flatnonzero(gap[:, 0] > ROUNDED)
            if not len(again):
                break
            own = None if values is None else values[again]
            for whole, x in zip(found, self._motion(found[0][again], qd[again], qdd[again], own), strict=True):
                whole[again] = x
        good = (gap[:, 0] <= ASSEMBLED) & (rank[:, 0] == self.native.passive)
        found[0][:, batch.at] = batch.wanted[:, batch.at]
        if self.course is not None:
            good &= ~batch.jumped(q, found[0])
        if not good.all():
            for x in found[:-2]:
                x[~good] = np.nan
        return found[0], good

    def _motion(
        self, q: Numbers, qd: Numbers, qdd: Numbers, values: Numbers | None, out: tuple | None = None
    ) -> tuple[Numbers, ...]:
        arrays = with_parameters((q, qd, qdd), values)
        return self.native.motion(*arrays, driven=self.driven, forces=self.forces, out=out)
