"""Joints by name in arrays: which entries of q and qd they are, and numbers given for some of them."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from typing import Any

import numpy as np
from numpy.typing import NDArray

from ..algebra.arrays import Numbers
from ..errors import InputError, unknown_name
from ..joints import kind
from ..model.axes import axis_labels, axis_names
from ..model.mechanism import Mechanism

LISTED = 8
"""Of more names, the first are listed."""


def entries(mechanism: Mechanism, name: str, which: int) -> list[int]:
    """Return where a joint, or one of its axes such as "rod.angle1", is in q (0) or in qd (1)."""
    joints = [joint.name for joint in mechanism.joints]
    if name in joints:
        return [k for k, (joint, _, _) in enumerate(axis_names(mechanism, which)) if joint == name]
    labels = axis_labels(mechanism, which)
    if name not in labels:
        raise unknown_name("joint", str(name), dict.fromkeys([*joints, *labels]))
    return [labels.index(name)]


def listed(names: str | Iterable[str]) -> list[str]:
    """Return names as a list, also where one name came alone."""
    return [names] if isinstance(names, str) else list(names)


def spoken(texts: Iterable[str]) -> str:
    """Return texts as a list in a sentence: a, b and c."""
    *most, last = list(texts)
    return f"{', '.join(most)} and {last}" if most else last


def some(names: Iterable[str], comma: str = "") -> str:
    """Return names as a list in a sentence, a long one cut short."""
    whole = [str(x) for x in names]
    if len(whole) > LISTED:
        whole = [*whole[: LISTED - 1], f"{len(whole) - LISTED + 1} more"]
    return (comma.join(whole) if comma else spoken(whole)) if whole else "nothing"


def held(mechanism: Mechanism, names: str | Iterable[str]) -> tuple[NDArray[np.bool_], NDArray[np.bool_]]:
    """Return which coordinates [nq] and which degrees of freedom [nv] are those of joints, or axes of joints."""
    out = np.zeros(mechanism.nq, dtype=bool), np.zeros(mechanism.nv, dtype=bool)
    turning = {j.name for j in mechanism.joints if kind(j.kind).QUATERNION is not None}
    for name in listed(names):
        joint = str(name).rpartition(".")[0]
        if joint in turning:
            raise InputError(f"hold {name!r}: joint {joint!r} turns by a quaternion; hold the whole joint {joint!r}")
        for which, mask in enumerate(out):
            mask[entries(mechanism, name, which)] = True
    return out


def numbers(mechanism: Mechanism, given: Mapping[str, Any], which: int) -> dict[int, Numbers]:
    """Return what is given by joint or axis as arrays by their entry in q (0) or qd (1).

    A joint with several takes them along the last axis; leading shapes are kept.
    """
    out: dict[int, Numbers] = {}
    if not isinstance(given, Mapping):
        first = mechanism.joints[0].name if mechanism.joints else "joint"
        raise InputError(f"numbers by joint are expected, such as {{{first!r}: 0.5}}; given {given!r}")
    for name, value in given.items():
        at = entries(mechanism, name, which)
        try:
            array = np.asarray(value, dtype=float)
        except (ValueError, TypeError):
            raise InputError(f"{name!r} is given {value!r}; give numbers") from None
        if not np.isfinite(array).all():
            raise InputError(f"{name!r} is given {value!r}; give finite numbers")
        if len(at) != 1:
            if array.shape[-1:] != (len(at),):
                raise InputError(f"{name!r} is given shape {array.shape}; expected {len(at)} numbers")
            out |= {k: array[..., i] for i, k in enumerate(at)}
        else:
            out[at[0]] = array
    return out
