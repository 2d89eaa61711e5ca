"""Random coordinates of many joints, for a whole leading shape at once, and the arguments that ask for them."""

from __future__ import annotations

import operator
from collections.abc import Iterable
from typing import Any

import numpy as np

from ..algebra.arrays import Numbers
from ..errors import InputError


def generator(rng: Any) -> np.random.Generator:
    """Return the generator of random numbers that an argument stands for: itself, one of a seed, or a fresh one."""
    given = (np.random.Generator, np.random.RandomState, np.random.BitGenerator, np.random.SeedSequence)
    if rng is None or isinstance(rng, given):
        return np.random.default_rng(rng)
    try:  # as plain integers: NumPy ends in a recursion without end on a matrix
        seeds = [operator.index(x) for x in np.asarray(rng).ravel().tolist()]
        return np.random.default_rng(seeds if np.ndim(rng) else seeds[0])
    except (TypeError, ValueError, IndexError):
        raise InputError(
            f"rng is {_shown(rng)}; expected a numpy.random.Generator, a seed such as 7, or None for a fresh one"
        ) from None


def leading_shape(shape: Any) -> tuple[int, ...]:
    """Return a shape, given as one integer or several, as a tuple."""
    try:
        lead = (operator.index(shape),)
    except TypeError:
        try:
            lead = tuple(operator.index(size) for size in shape)
        except TypeError:
            lead = (-1,)
    if any(size < 0 for size in lead):
        raise InputError(f"shape is {_shown(shape)}; expected integers of zero or more, such as 1000 or (1000, 20)")
    return lead


def drawn_coordinates(joints: Iterable[tuple[Any, Any]], rng: np.random.Generator, lead: tuple[int, ...]) -> Numbers:
    """Return coordinates [*lead, nq] of pairs of a joint and its kind, drawn joint by joint for all samples."""
    drawn = [x for joint, kind in joints for x in kind.random(joint, rng, lead or None)]
    return np.stack(drawn, axis=-1) if drawn else np.zeros((*lead, 0))


def _shown(value: Any) -> str:
    return repr(value).replace("\n", " ")[:60]
