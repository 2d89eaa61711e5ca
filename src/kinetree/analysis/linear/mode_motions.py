"""Modes of vibration as motions of finite size, with loops closed, for pictures and animations."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import numpy as np

from ...algebra.arrays import Numbers
from ...errors import InputError
from ...model.scales import loop_units
from ...numbers import number, positive, whole

if TYPE_CHECKING:
    from .modes import Modes

SWING = 0.25
"""The default size of the largest displacement, in rad or in parts of the mechanism's characteristic length: large
enough to be seen."""
ROUNDS = 30
"""The most steps of Newton's method that close loops."""
CLOSED = 1e-9
"""The largest gap of loops in a picture, in rad or in parts of the mechanism's characteristic length."""


def mode_motion(
    modes: Modes, k: int, *, amplitude: float | None = None, period: float | None = 1.0, periods: int = 2,
    samples: int = 61,
) -> tuple[Numbers, Numbers, Numbers]:  # fmt: skip
    """Return times t [nt] and states q [nt, nq], qd [nt, nv] of a mode, counted from 1, with constant amplitude.

    `amplitude` is the largest displacement [rad, m]. A vibration takes `period` seconds in the motion, None for its
    own. A motion that does not vibrate is shown as if it did. There are `samples` in each of the `periods`. With loops,
    positions are the nearest closed ones, and velocities those of the small motion, projected.
    """
    count = len(modes.eigenvalues)
    if whole(k, "the number of the mode") > count:
        raise InputError(f"there is no mode {k}; there are {count}, counted from 1")
    system, shape, value = modes.system, modes.shapes[k - 1], modes.eigenvalues[k - 1]
    size = _amplitude(modes, shape) if amplitude is None else number(amplitude, "the amplitude")
    rate = np.abs(np.imag(value)) or np.abs(value) or 2.0 * np.pi
    length = 2.0 * np.pi / rate if period is None else positive(period, "the period")
    phases = np.linspace(0.0, 2.0 * np.pi * whole(periods, "periods"), whole(samples, "samples", least=4) * periods + 1)
    turning = np.exp(1j * phases)[:, None] * shape
    q = np.asarray(system.integrate(modes.q, size * turning.real))
    qd = size * (1j * turning).real * (2.0 * np.pi / length)
    if system.closures:
        q = _closed(modes, q, k, size)
        qd = np.asarray(system.closing_speed(q, qd, **_options(modes)))
    return phases / (2.0 * np.pi) * length, q, qd


def _amplitude(modes: Modes, shape: Numbers) -> float:
    return SWING / float(np.abs(shape / loop_units(modes.system.mechanism)[1]).max(initial=1e-12))


def _closed(modes: Modes, q: Numbers, k: int, size: float) -> Numbers:
    """Return the nearest closed positions; InputError if the amplitude is beyond the reach of the loops."""
    system, options, units = modes.system, _options(modes), loop_units(modes.system.mechanism)[0]
    for _ in range(ROUNDS):
        gap = np.abs(np.asarray(system.closure_residual(q, **options)) / units).max(initial=0.0)
        if gap < CLOSED:
            return q
        q = np.asarray(system.integrate(q, system.closing_step(q, **options)))
    raise InputError(f"the loops do not close along mode {k} with an amplitude of {size:.3g}; give a smaller amplitude")


def _options(modes: Modes) -> dict[str, Any]:
    return {} if modes.parameters is None else {"parameters": modes.parameters}
