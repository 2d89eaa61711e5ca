"""Starts of Newton's method for closing loops: a guess, perturbed guesses, random positions."""

from __future__ import annotations

from collections.abc import Iterator

import numpy as np

from ...algebra.arrays import Numbers
from ...compiler.lower.loop_pattern import random_coordinates
from .kinematics import LoopKinematics, Mask

NUDGES, RANDOM = 8, 16
"""Numbers of restarts from increasingly perturbed guesses, and from random positions."""


def starts(loops: LoopKinematics, q: Numbers, at: Mask, degrees: Mask) -> Iterator[Numbers]:
    """Yield the guess, increasingly perturbed guesses, and random positions, all with the held joints unchanged."""
    rng = np.random.default_rng(0)
    yield q
    for k in range(NUDGES):
        nudge = 0.05 * 1.6**k * rng.normal(size=len(degrees))
        yield np.where(at, q, loops.move(q, np.where(degrees, 0.0, nudge)))
    for _ in range(RANDOM):
        yield np.where(at, q, random_coordinates(loops.mechanism, rng))
