"""Assembly of many positions at once: Newton's method in native code, with a verdict for each sample."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from math import prod

import numpy as np
from numpy.typing import ArrayLike

from ...algebra.arrays import Numbers
from ...compiled import CompiledMechanism
from ...errors import AssemblyError, InputError
from ...model.parameter_values import Named
from ..joint_entries import held as held_masks
from ..joint_entries import numbers
from . import assembly
from .assembly import Hold
from .batch_closing import Batch, assemble_sample
from .kinematics import LoopKinematics, Mask
from .placements import inputs_of
from .samples import Piece, Samples

FEW = 8
"""The most failed samples of a batch that are assembled once more one by one, to find a solution or the reason."""
ON_FAILURE = ("raise", "nan")
TOLERANCE = 1e-12
"""The largest gap of a position, in radians and in parts of the mechanism's length."""
Entries = tuple[Sequence[int], Sequence[int]]
"""Entries of joints in q and in qd."""


def assemble(
    system: CompiledMechanism,
    q_guess: ArrayLike | None = None,
    hold: Hold = (),
    *,
    tolerance: float = TOLERANCE,
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
    if not samples.lead:
        return _single(system, q_guess, hold, tolerance, parameters, on_failure)
    found = np.empty((prod(samples.runs), samples.steps, system.nq))
    masks = held_masks(system.mechanism, hold)
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
    return Batch(system, base, wanted, *masks, values).from_known(known[1], TOLERANCE)


def masks_of(system: CompiledMechanism, entries: Entries) -> tuple[Mask, Mask]:
    """Return masks of the coordinates [nq] and degrees of freedom [nv] with some entries."""
    masks = np.zeros(system.nq, dtype=bool), np.zeros(system.nv, dtype=bool)
    for mask, places in zip(masks, entries, strict=True):
        mask[list(places)] = True
    return masks


def _single(system: CompiledMechanism, q_guess, hold: Hold, tolerance: float, parameters, on_failure: str) -> Numbers:
    try:
        return assembly.assemble(system, q_guess, hold, tolerance=tolerance, parameters=parameters)
    except AssemblyError:
        if on_failure == "raise":
            raise
        return np.full(system.nq, np.nan)


def samples_of(
    system: CompiledMechanism,
    q_guess: ArrayLike | None,
    hold: Hold,
    parameters: Named | None,
    *,
    motion: bool,
    **more: Mapping[int, Numbers],
) -> Samples:
    """Return the samples of guesses, parameters, held values, and more numbers by entry."""
    values = numbers(system.mechanism, hold, 0) if isinstance(hold, Mapping) else {}
    guess = np.asarray(LoopKinematics(system).start(None) if q_guess is None else q_guess, dtype=float)
    if guess.shape[-1:] != (system.nq,):
        raise InputError(f"q has shape {guess.shape}; expected [..., {system.nq}]")
    bad = np.argwhere(~np.isfinite(guess))
    if len(bad):
        raise InputError(f"q{bad[0].tolist()} is {guess[tuple(bad[0])]}; give finite numbers")
    arrays = {"q_guess": guess, "parameters": inputs_of(system, parameters)}
    return Samples.of(arrays, {"hold": values, **more}, motion=motion)


def batch_at(system: CompiledMechanism, piece: Piece, masks: tuple[Mask, Mask], step: int) -> Batch:
    """Return some samples at one instant."""
    base = piece.array("q_guess", step)
    assert base is not None
    return Batch(system, base, piece.placed("hold", base, step), *masks, piece.array("parameters", step))


def refuse_failed(
    system: CompiledMechanism, samples: Samples, masks: tuple[Mask, Mask], found: Numbers, tolerance: float
) -> None:
    """Raise an AssemblyError for the first sample that failed; a few are first tried once more, one by one."""
    failed: Mask = np.any(np.isnan(found), axis=-1)  # type: ignore[assignment]  # [runs, steps]
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
    sample = [int(x) for x in np.unravel_index(int(np.argmax(failed)), samples.lead)]
    return AssemblyError(
        f"sample {sample}: {what}; {int(failed.sum())} of {failed.size} samples fail",
        where=system.mechanism.name,
        remedy=f"{remedy}; on_failure='nan' keeps the other samples",
    )
