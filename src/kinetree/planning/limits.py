"""Limits of planned motions by sort: those given, or those that the joints of the mechanism have."""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from dataclasses import dataclass

import numpy as np

from .._support.checks import number, numbers
from ..algebra.scalars import Numbers
from ..errors import InputError, argument, brief, unknown_name
from ..model.axes import axis_labels, axis_names, entries
from ..model.mechanism import Mechanism
from ..simulation.arguments import spread

OWN = {"velocity": "velocity", "torque": "effort"}
"""The limits that joints of a mechanism have themselves, by the sorts of this module."""
UNITS = {
    "position": ("rad", "m"), "velocity": ("rad/s", "m/s"), "acceleration": ("rad/s^2", "m/s^2"),
    "jerk": ("rad/s^3", "m/s^3"), "torque": ("N m", "N"),
}  # fmt: skip
"""The units of each sort of limits, of rotations and of translations."""


@dataclass(frozen=True)
class MotionLimits:
    """Limits of all degrees of freedom [nv] by sort; infinite where there are none. Positions have two, [2, nv]."""

    position: Numbers
    velocity: Numbers
    acceleration: Numbers
    jerk: Numbers
    torque: Numbers

    def of(self, sort: str) -> Numbers:
        """Return the limits of a sort."""
        return getattr(self, sort)


def read_limits(
    mechanism: Mechanism, given: object, driven: Sequence[int], sorts: Sequence[str], who: str
) -> MotionLimits:
    """Return limits from a mapping by sort: one number, one per driven degree of freedom, or numbers by joint.

    Sorts that are not given are the mechanism's own. Joints that a mapping by joint leaves out keep their own, too.
    """
    if given is not None and not isinstance(given, Mapping):
        raise InputError(
            f'limits of {who} are {brief(given)}; give a mapping such as {{"torque": 40.0}}, of {", ".join(sorts)}',
            path=("limits",),
        )
    for name in given or ():
        if name not in sorts:
            raise unknown_name("limit", str(name), sorts)
    found = {sort: _own(mechanism, sort) for sort in UNITS}
    for sort, value in (given or {}).items():
        read = _read_ranges if sort == "position" else _read
        read(mechanism, value, driven, argument(sort, who, "the limit of "), found[sort])
    return MotionLimits(**found)


def _own(mechanism: Mechanism, sort: str) -> Numbers:
    """Return the limits that a mechanism has itself."""
    out = np.full(mechanism.nv, math.inf)
    if sort == "position":
        out = np.stack([-out, out])
        for joint, own in zip(mechanism.joints, mechanism.v_slices, strict=True):
            if joint.limits.lower and mechanism.nq == mechanism.nv:
                out[0, own] = [float(x) for x in joint.limits.lower]
                out[1, own] = [float(x) for x in joint.limits.upper]
        return out
    for joint, own in zip(mechanism.joints, mechanism.v_slices, strict=True):
        value = getattr(joint.limits, OWN[sort]) if sort in OWN else ()
        if value:
            out[own] = [float(x) for x in value]
    return np.where(out > 0.0, out, math.inf)  # files write 0 where there is no limit


def _read(mechanism: Mechanism, value: object, driven: Sequence[int], what: str, out: Numbers) -> None:
    """Write limits, which are above zero, into those of all degrees of freedom."""
    if isinstance(value, Mapping):
        for name, x in value.items():
            own = entries(mechanism, name, 1)
            out[own] = spread(numbers(x, f"{what}, {name!r}", infinite=True), len(own), f"{what}, {name!r}")
    else:
        out[list(driven)] = spread(numbers(value, what, infinite=True), len(driven), what)
    if (out <= 0.0).any():
        k = int(np.argmax(out <= 0.0))
        raise InputError(f"{what} is {out[k]:g} at {axis_labels(mechanism, 1)[k]!r}; give more than zero")


def _read_ranges(mechanism: Mechanism, value: object, driven: Sequence[int], what: str, out: Numbers) -> None:
    """Write ranges of positions, by joint, into those of all degrees of freedom."""
    if not isinstance(value, Mapping):
        raise InputError(f'{what} is {brief(value)}; give ranges by joint, such as {{"rail": (-1.0, 1.0)}}')
    for name, x in value.items():
        own = entries(mechanism, name, 1)
        pair = x if isinstance(x, Sequence) and len(x) == 2 else ()
        low, high = (number(y, f"{what}, {name!r}", infinite=True) for y in pair) if pair else (math.nan, math.nan)
        if not low < high:
            raise InputError(f"{what}, {name!r}, is {brief(x)}; give two numbers that rise")
        out[0, own], out[1, own] = low, high


def unit_of(mechanism: Mechanism, sort: str, k: int) -> str:
    """Return the unit of a sort of limit of a degree of freedom."""
    return UNITS[sort][axis_names(mechanism, 1)[k][2] == "m"]
