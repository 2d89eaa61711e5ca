"""Numbers that users give: what counts as one, and the checks that every border shares."""

from __future__ import annotations

import math
import operator
import sys
from collections.abc import Iterable, Sequence
from numbers import Integral, Real
from typing import Any

import numpy as np

from ..errors import InputError, brief, path_of


def is_masked(x: object) -> bool:
    """Return whether an array hides entries behind a mask."""
    ma = sys.modules.get("numpy.ma")  # slow to import, and loaded wherever such an array exists
    return ma is not None and isinstance(x, ma.MaskedArray) and bool(ma.is_masked(x))


def plain(x: object) -> float | None:
    """Return a real number of Python or NumPy as a float; None for anything else, truth values and texts included."""
    if type(x) is float:
        return x
    if isinstance(x, bool) or not isinstance(x, Real):
        return None
    try:
        return float(x)
    except OverflowError:  # an integer of hundreds of digits
        return math.inf if abs(x) == x else -math.inf


def number(x: object, what: str, *, least: float = -math.inf, infinite: bool = False) -> float:
    """Return a plain number, not NaN and not below `least`; infinities pass only where they are allowed."""
    value = plain(x)
    if value is None:
        raise InputError(f"{what} is {brief(x)}; give a number", path=path_of(what))
    if math.isnan(value) or (math.isinf(value) and not infinite):
        raise InputError(f"{what} is {value}; give a finite number", path=path_of(what))
    if value < least:
        raise InputError(f"{what} is {value:g}; give {least:g} or more", path=path_of(what))
    return value


def positive(x: object, what: str) -> float:
    """Return a plain number above zero."""
    value = number(x, what)
    if value <= 0.0:
        raise InputError(f"{what} is {value:g}; give more than zero", path=path_of(what))
    return value


def whole(x: Any, what: str, *, least: int = 1, most: int | None = None, of: str = "") -> int:
    """Return a whole number from `least` to `most`; `of` is the word for those that are counted, such as "links"."""
    if isinstance(x, bool) or not isinstance(x, Integral):
        value = number(x, what)
        if not value.is_integer():
            raise InputError(f"{what} is {value:g}; give a whole number{of and f' of {of}'}", path=path_of(what))
    count = int(x)
    if count < least:
        raise InputError(f"{what} is {count}; give {least} or more{of and f' {of}'}", path=path_of(what))
    if most is not None and count > most:
        raise InputError(f"{what} is {count:,}; give no more than {most:,}{of and f' {of}'}", path=path_of(what))
    return count


def numbers(x: object, what: str, *, least: float = -math.inf, infinite: bool = False) -> tuple[float, ...]:
    """Return one number, or several, as a tuple of floats."""
    return tuple(number(item, what, least=least, infinite=infinite) for item in items(x, what))


def vector(x: object, what: str) -> tuple[float, float, float]:
    """Return three numbers."""
    found = numbers(x, what)
    if len(found) != 3:
        raise InputError(f"{what} has {len(found)} numbers; give 3", path=path_of(what))
    return found[0], found[1], found[2]


def items(x: object, what: str) -> Sequence[Any]:
    """Return the items of a list or a flat array, or a single thing as a list of one."""
    if isinstance(x, np.ndarray):
        if x.ndim > 1:
            raise InputError(
                f"{what} has shape {x.shape}; give one number, or one per degree of freedom", path=path_of(what)
            )
        x = x.tolist()
    if isinstance(x, Sequence) and not isinstance(x, str):
        if not x:
            raise InputError(f"{what} is empty; give one number, or one per degree of freedom", path=path_of(what))
        return x
    return (x,)


def real_array(value: object, name: str, remedy: str = "") -> np.ndarray:
    """Return an array of real numbers; masked entries, complex numbers, texts and dates are refused."""
    if is_masked(value):
        raise InputError(f"{name} has masked entries; fill them, or leave these runs out", path=path_of(name))
    try:
        array = np.asarray(value)
        entries = array.flat if array.dtype == object else ()
        if array.dtype.kind not in "fiuO" or any(x is None or isinstance(x, str) for x in entries):
            raise TypeError
        return array.astype(float)
    except (TypeError, ValueError):
        raise InputError(
            f"{name} is not an array of real numbers{remedy}: {brief(value)}", path=path_of(name)
        ) from None


def leading_shape(arrays: Iterable[tuple[str, tuple[int, ...], tuple[int, ...]]], who: str = "") -> tuple[int, ...]:
    """Return the shape to which the leading axes of arrays broadcast, given the name, shape and core axes of each.

    This is the rule for the arrays of every function: the last axes belong to one state or one set of parameters,
    all axes before them broadcast as in NumPy, and results have the leading shape that follows.
    """
    leads, before = [], f"{who}: " if who else ""
    for name, shape, core in arrays:
        behind = len(shape) - len(core)
        if behind < 0 or shape[behind:] != core:
            raise InputError(f"{before}{name} has shape {shape}; expected [{', '.join(map(str, ('...', *core)))}]")
        leads.append((name, shape[:behind]))
    if len({lead for _, lead in leads}) == 1:
        return leads[0][1]
    try:
        return np.broadcast_shapes(*(lead for _, lead in leads))
    except ValueError:
        listed = ", ".join(f"{name} {lead}" for name, lead in leads)
        raise InputError(f"{before}the leading shapes do not fit together: {listed}") from None


# --- Arguments of random draws ---


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


def read_shape(shape: Any) -> tuple[int, ...]:
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
