"""Programs evaluated without native code: on doubles, on complex numbers for exact derivatives, on CasADi symbols."""

from __future__ import annotations

from functools import lru_cache
from typing import Any

import numpy as np

from kinetree.compiler.ir.operations import apply
from kinetree.compiler.ir.program import Program
from kinetree.compiler.lower.build import Request, build
from kinetree.model import Mechanism

STEP = 1e-40
"""The complex step: its square is below the rounding of any other term, so that derivatives are exact to rounding."""


@lru_cache(maxsize=512)
def program(mechanism: Mechanism, name: str, frame: str | None = None, axes: str | None = None, wrenches: bool = False):
    """Return the Program of an algorithm."""
    return build(mechanism, Request(name, frame, axes, wrenches).checked(mechanism))


def compute(
    mechanism: Mechanism, name: str, *arguments, frame: str | None = None, axes: str | None = None, wrenches=None
):
    """Return the result of an algorithm, by plain NumPy without native code."""
    more = () if wrenches is None else (wrenches,)
    return program(mechanism, name, frame, axes, wrenches is not None).interpret(*arguments, *more)[0]


def evaluate(p: Program, *inputs) -> list[Any]:
    """Return the flat entries of a Program's output for inputs given as sequences of any scalars."""
    return p.replay(inputs, apply)[0]


def derivative(p: Program, inputs, directions) -> np.ndarray:
    """Return the derivative of a Program's output along a direction of its inputs, by a complex step."""
    moved = [
        np.moveaxis(np.asarray(x, dtype=complex) + 1j * STEP * np.asarray(d), -1, 0)
        for x, d in zip(inputs, directions, strict=True)
    ]
    lead = np.broadcast_shapes(*(x.shape[1:] for x in moved))
    entries = [np.broadcast_to(np.imag(x) / STEP, lead) for x in evaluate(p, *moved)]
    return np.stack(entries, axis=-1).reshape(lead + p.outputs[0].shape) if entries else np.zeros((*lead, 0))


def along(mechanism: Mechanism, name: str, q, qd, *, frame: str | None = None, axes: str | None = None) -> np.ndarray:
    """Return the rate of a function of q at the joint velocities qd."""
    rate = compute(mechanism, "coordinate_rate", q, qd)
    return derivative(program(mechanism, name, frame, axes), [q], [rate])


def relative(actual, expected) -> float:
    """Return the largest difference relative to the largest expected entry, sample by sample."""
    a, e = np.asarray(actual), np.asarray(expected)
    axes = tuple(range(1, e.ndim))
    size = np.abs(e).max(axis=axes, keepdims=True, initial=0.0)
    return float((np.abs(a - e) / np.where(size > 0, size, 1.0)).max(initial=0.0))
