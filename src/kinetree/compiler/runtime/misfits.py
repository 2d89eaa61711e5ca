"""The errors of arrays whose shapes do not suit a function; the same for all libraries of arrays."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np

from ...errors import InputError
from ..ir.program import Array

Shape = tuple[int, ...]


def wrong_count(name: str, inputs: Sequence[Array], given: int) -> InputError | None:
    """Return the error of a wrong number of arrays."""
    if given == len(inputs):
        return None
    return InputError(f"{name} takes {len(inputs)} arrays ({', '.join(a.name for a in inputs)}), not {given}")


def wrong_shape(name: str, inputs: Sequence[Array], shapes: Sequence[Shape]) -> InputError | None:
    """Return the error of input shapes: one that does not end as expected, or leading shapes that do not fit."""
    leads = []
    for a, shape in zip(inputs, shapes, strict=True):
        core = shape[len(shape) - len(a.shape) :] if len(shape) >= len(a.shape) else None
        if core != a.shape:
            expected = ", ".join(["...", *map(str, a.shape)])
            return InputError(f"{name}: {a.name} has shape {shape}; expected [{expected}]")
        leads.append(shape[: len(shape) - len(a.shape)])
    try:
        np.broadcast_shapes(*leads)
    except ValueError:
        pairs = ", ".join(f"{a.name} {shape}" for a, shape in zip(inputs, leads, strict=True))
        return InputError(f"{name}: the leading shapes do not fit together: {pairs}")
    return None


def wrong_out(name: str, outputs: Sequence[Array], lead: Shape, places: Sequence[Shape | None]) -> InputError | None:
    """Return the error of `out`, given by the shape of each of its arrays: too many, too few, or of a wrong shape."""
    if len(places) != len(outputs):
        names = ", ".join(a.name for a in outputs)
        return InputError(f"{name}: out has {len(places)} arrays; expected a tuple of one each for {names}")
    for a, shape in zip(outputs, places, strict=True):
        if shape is not None and shape != lead + a.shape:
            which = "out" if len(places) == 1 else f"out for {a.name}"
            return InputError(f"{name}: {which} has shape {shape}; expected {lead + a.shape}")
    return None
