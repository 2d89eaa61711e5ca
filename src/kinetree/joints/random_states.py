"""Random coordinates of many joints for a whole leading shape at once, and the checks of their arguments."""

from __future__ import annotations

import operator
from collections.abc import Iterable
from typing import Any

import numpy as np

from ..algebra.arrays import Numbers
from ..errors import InputError, brief


def generator(rng: Any) -> np.random.Generator:
    """Return the random number generator for an argument: the generator itself, one from a seed, or a fresh one."""
    given = (np.random.Generator, np.random.RandomState, np.random.BitGenerator, np.random.SeedSequence)
    if rng is None or isinstance(rng, given):
        return np.random.default_rng(rng)
    try:  # as plain integers: a matrix of seeds would send NumPy into infinite recursion
        seeds = [operator.index(x) for x in np.asarray(rng).ravel().tolist()]
        return np.random.default_rng(seeds if np.ndim(rng) else seeds[0])
    except (TypeError, ValueError, IndexError):
        raise InputError(
            f"rng is {brief(rng)}; expected a numpy.random.Generator, a seed such as 7, or None for a fresh one"
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
        raise InputError(f"shape is {brief(shape)}; expected integers of zero or more, such as 1000 or (1000, 20)")
    return lead


def drawn_coordinates(joints: Iterable[tuple[Any, Any]], rng: np.random.Generator, lead: tuple[int, ...]) -> Numbers:
    """Return random coordinates [*lead, nq] for pairs (joint, kind), drawn joint by joint for all samples at once."""
    drawn = [x for joint, kind in joints for x in kind.random(joint, rng, lead or None)]
    return np.stack(drawn, axis=-1) if drawn else np.zeros((*lead, 0))
