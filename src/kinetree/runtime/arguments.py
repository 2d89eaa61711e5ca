"""The errors of unsuitable arguments of compiled functions, found after a call has failed or met such numbers."""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING, Any

import numpy as np

from .._support.checks import is_masked, leading_shape
from ..compiler.ir.program import Array
from ..errors import InputError
from ..joints import kind
from .singularity import complete

if TYPE_CHECKING:
    from .function import Function

# --- The errors of arrays whose shapes do not suit a function; the same for all libraries of arrays ---

Shape = tuple[int, ...]


def places_of(out: object, count: int) -> list[Any]:
    """Return the array given for each of a number of outputs, or None."""
    return [None] * count if out is None else list(out) if isinstance(out, tuple) else [out]


def one_or_tuple(results: list[Any]) -> Any:
    """Return one result by itself, several as a tuple."""
    return results[0] if len(results) == 1 else tuple(results)


def wrong_count(name: str, inputs: Sequence[Array], given: int) -> InputError | None:
    """Return the error of a wrong number of arrays."""
    if given == len(inputs):
        return None
    return InputError(f"{name} takes {len(inputs)} arrays ({', '.join(a.name for a in inputs)}), not {given}")


def wrong_shape(name: str, inputs: Sequence[Array], shapes: Sequence[Shape]) -> InputError | None:
    """Return the error of input shapes: one that does not end as expected, or leading shapes that do not fit."""
    try:
        leading_shape(((a.name, shape, a.shape) for a, shape in zip(inputs, shapes, strict=True)), name)
    except InputError as error:
        return error
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


def call_error(function: Function, arguments: tuple, out: object, error: Exception) -> InputError:
    """Return the error for unsuitable arguments, with the given and the expected shapes or types."""
    if wrong := wrong_count(function.name, function.inputs, len(arguments)):
        return wrong
    shapes = []
    for a, given in zip(function.inputs, arguments, strict=True):
        try:
            array = np.asarray(given)
            ok = np.can_cast(array.dtype, np.float64, "same_kind") and array.dtype != object
        except (ValueError, TypeError, RuntimeError):
            ok, array = False, np.zeros(0)
        if not ok and getattr(given, "requires_grad", False):
            return InputError(
                f"{function.name}: {a.name} is a tensor that requires gradients; give x.detach(), or call "
                f"system.torch.{function.request.name}"
            )
        if not ok:
            return InputError(f"{function.name}: {a.name} is not an array of real numbers")
        shapes.append(array.shape)
    if isinstance(error, RuntimeError):  # not of the arguments
        raise error
    if wrong := wrong_shape(function.name, function.inputs, shapes):
        return wrong
    lead = np.broadcast_shapes(*(x[: len(x) - len(a.shape)] for a, x in zip(function.inputs, shapes, strict=True)))
    places = [None if x is None else np.shape(x) for x in places_of(out, len(function.outputs))]
    if wrong := wrong_out(function.name, function.outputs, lead, places):
        return wrong
    return error if isinstance(error, InputError) else InputError(f"{function.name}: {error}")


def refuse_masked(function: Function, arguments: tuple) -> None:
    """Raise InputError for masked entries: native code would compute with the numbers behind the mask."""
    for a, given in zip(function.inputs, arguments, strict=False):
        if is_masked(given):
            raise InputError(
                f"{function.name}: {a.name} has {np.ma.count_masked(given)} masked entries; give numbers for them, "
                "such as x.filled(0.0), or leave those samples out"
            )


def refuse_non_finite(function: Function, arguments: tuple, result: object) -> None:
    """Raise InputError for numbers that are not finite: of an argument, or of derivatives that do not exist."""
    executor = function.executor
    if executor.failures():
        raise MemoryError(f"{function.name}: no memory for a workspace of {executor.workspace:,} numbers per sample")
    for a, given in zip(function.inputs, arguments, strict=True):
        array = np.asarray(given, dtype=float)
        bad = np.argwhere(~np.isfinite(array))
        if len(bad):
            at = ", ".join(map(str, bad[0]))
            raise InputError(
                f"{function.name}: {a.name}[{at}] is {array[tuple(bad[0])]}"
                + (f", and {len(bad) - 1} more entries are not finite" if len(bad) > 1 else "")
                + "; give finite numbers, or check=False to let NaN through"
            )
    _refuse_zero_quaternions(function, arguments)
    if function.request.derivative is not None:
        complete(function, arguments, result)


def _refuse_zero_quaternions(function: Function, arguments: tuple) -> None:
    """Raise InputError for a quaternion of length zero."""
    starts = zip(function.mechanism.joints, function.mechanism.q_slices, strict=True)
    for joint, own in ((j, at) for j, at in starts if kind(j.kind).QUATERNION is not None):
        for a, given in zip(function.inputs, arguments, strict=True):
            if a.name not in ("q", "q2"):
                continue
            quaternion = np.asarray(given, dtype=float)[..., own.stop - 4 : own.stop]
            if not quaternion.any(axis=-1).all():
                raise InputError(
                    f"{function.name}: {a.name} has a quaternion of length zero (joint {joint.name!r}); "
                    "give one of unit length"
                )
