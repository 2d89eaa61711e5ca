"""Joints by name in arrays: their entries in q and qd, and numbers given for some of them."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from itertools import chain
from typing import TYPE_CHECKING, Any

import numpy as np
from numpy.typing import NDArray

from ..algebra.scalars import Numbers
from ..errors import InputError
from ..joints import kind
from ..model.axes import entries_of
from ..model.mechanism import Mechanism

if TYPE_CHECKING:
    pass

Hold = str | Iterable[str] | Mapping[str, Any]
"""Names of joints that are held, or their positions."""
LISTED = 8
"""The most names that a message lists, so that it fits on a few lines; the rest are counted."""


def as_list(names: str | Iterable[str]) -> list[str]:
    """Return names as a list; a single name becomes a list of one."""
    return [names] if isinstance(names, str) else list(names)


def spoken(texts: Iterable[str]) -> str:
    """Return texts as an enumeration in a sentence: a, b and c."""
    *most, last = list(texts)
    return f"{', '.join(most)} and {last}" if most else last


def some(names: Iterable[str], comma: str = "") -> str:
    """Return names as an enumeration in a sentence; of a long one, the first names and the count of the rest."""
    whole = [str(x) for x in names]
    if len(whole) > LISTED:
        whole = [*whole[: LISTED - 1], f"{len(whole) - LISTED + 1} more"]
    return (comma.join(whole) if comma else spoken(whole)) if whole else "nothing"


def masks_of_joints(mechanism: Mechanism, names: str | Iterable[str]) -> tuple[NDArray[np.bool_], NDArray[np.bool_]]:
    """Return masks of the coordinates [nq] and degrees of freedom [nv] that belong to joints, or axes of joints."""
    out = np.zeros(mechanism.nq, dtype=bool), np.zeros(mechanism.nv, dtype=bool)
    names = as_list(names)
    turning = {j.name for j in mechanism.joints if kind(j.kind).QUATERNION is not None}
    for name in names if turning else ():
        joint = str(name).rpartition(".")[0]
        if joint in turning:
            raise InputError(f"hold {name!r}: joint {joint!r} rotates by a quaternion; hold the whole joint {joint!r}")
    for which, mask in enumerate(out):
        mask[[k for at in entries_of(mechanism, names, which) for k in at]] = True
    return out


NUMBERS = frozenset((float, int, np.float64))
Placed = Mapping[tuple[int, ...], Numbers]
"""Numbers [..., n] by their n entries in q or in qd."""


def require_names(mechanism: Mechanism, given: Mapping[str, Any]) -> None:
    """Raise an InputError unless numbers are given by joint."""
    if not isinstance(given, (dict, Mapping)):  # a dict is recognized at once
        first = mechanism.joints[0].name if mechanism.joints else "joint"
        raise InputError(f"numbers by joint are expected, such as {{{first!r}: 0.5}}; given {given!r}")


def numbers(mechanism: Mechanism, given: Mapping[str, Any], which: int) -> dict[tuple[int, ...], Numbers]:
    """Return numbers given by joint or axis as arrays [..., n] by their n entries in q (0) or in qd (1).

    A joint with several entries takes them along the last axis of its array. Leading axes are kept. Joints with one
    number each are one array.
    """
    out: dict[tuple[int, ...], Numbers] = {}
    require_names(mechanism, given)
    places = entries_of(mechanism, given, which)
    if given and NUMBERS.issuperset(map(type, given.values())):  # the usual case of one state, without a check for each
        values = np.array(list(given.values()), dtype=float)
        at = tuple(chain.from_iterable(places))
        if len(at) == len(values) and np.isfinite(values).all():
            return {at: values}
    plain: dict[int, float] = {}
    for (name, value), at in zip(given.items(), places, strict=True):
        try:
            array = np.asarray(value, dtype=float)
        except (ValueError, TypeError):
            raise InputError(f"{name!r} is given {value!r}; give numbers") from None
        if not np.isfinite(array).all():
            raise InputError(f"{name!r} is given {value!r}; give finite numbers")
        if len(at) != 1:
            if array.shape[-1:] != (len(at),):
                raise InputError(f"{name!r} is given shape {array.shape}; expected {len(at)} numbers")
            out[at] = array
        elif array.ndim:
            out[at] = array[..., None]
        else:
            plain[at[0]] = float(array)
    if plain:
        out[tuple(plain)] = np.array(list(plain.values()))
    return out
