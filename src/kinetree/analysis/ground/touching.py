"""Which contacts can carry a force in a given motion: those that touch, and stay or slip."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from typing import Any

import numpy as np

from ...algebra.arrays import Numbers
from ...errors import InputError, unknown_name
from ...model.contact_numbers import ContactNumbers
from .cones import OPEN, SLIP, STICK


@dataclass(frozen=True)
class Touch:
    """The modes of all candidates [..., nc], unit vectors of their slip [..., nc, 2], and those that move inward."""

    modes: np.ndarray
    slip: Numbers
    inward: np.ndarray


def touch_of(numbers: ContactNumbers, gap: Numbers, v: Numbers, a: Numbers, tol: float) -> Touch:
    """Return the modes of a motion with velocities and accelerations [..., nc, 3] along normal and tangents.

    A candidate that leaves its surface is open. One that slides, or begins to, slips; one that does neither sticks.
    Gaps, velocities and accelerations count as zero up to `tol` of the characteristic length, of sqrt(g l) and of g.
    """
    still, steady = tol * numbers.speed, tol * numbers.gravity
    near = gap <= tol * numbers.length
    resting = np.abs(v[..., 0]) <= still
    leaves = (v[..., 0] > still) | (resting & (a[..., 0] > steady))
    enters = (v[..., 0] < -still) | (resting & (a[..., 0] < -steady)) | (gap < -tol * numbers.length)
    speed, rate = np.hypot(v[..., 1], v[..., 2]), np.hypot(a[..., 1], a[..., 2])
    slides, begins = speed > still, rate > steady
    slip = np.where(slides[..., None], v[..., 1:], a[..., 1:])
    size = np.where(slides, speed, rate)
    modes = np.where(near & ~leaves, np.where(slides | begins, SLIP, STICK), OPEN)
    unit = np.where((modes == SLIP)[..., None], slip / np.where(size > 0, size, 1.0)[..., None], 0.0)
    return Touch(modes, unit, near & enters)


def given_touch(names: tuple[str, ...], touching: Any, lead: tuple[int, ...]) -> Touch:
    """Return the modes of contacts that the caller names: all of these stick, all others are open."""
    shape = (*lead, len(names))
    if isinstance(touching, str):
        touching = [touching]
    if isinstance(touching, Iterable) and not isinstance(touching, np.ndarray | Mapping):
        touching = list(touching)
    if isinstance(touching, list) and all(isinstance(x, str) for x in touching):
        flags = np.zeros(len(names), dtype=bool)
        for name in touching:
            own = [k for k, x in enumerate(names) if x == name or x.startswith(f"{name}.")]
            if not own:
                raise unknown_name("contact", name, names, where="touching")
            flags[own] = True
    else:
        flags = np.asarray(touching)
        if flags.dtype != bool or flags.shape[-1:] != (len(names),):
            raise InputError(
                f"touching has shape {flags.shape} and type {flags.dtype}; "
                f"give names of contacts, or truth values [..., {len(names)}], one per point: {', '.join(names)}"
            )
    try:
        flags = np.broadcast_to(flags, shape)
    except ValueError:
        raise InputError(f"touching has shape {flags.shape}; expected {shape}") from None
    return Touch(np.where(flags, STICK, OPEN), np.zeros((*shape, 2)), np.zeros(shape, dtype=bool))
