"""Quantities that a study varies: free parameters by name, and initial coordinates and velocities by joint."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass

import numpy as np

from ..algebra.arrays import Numbers
from ..compiler.ir.program import Program
from ..compiler.ir.trace import Op
from ..errors import InputError, unknown_name
from ..joints import kind
from ..model.axes import axis_labels, axis_names
from ..model.mechanism import Mechanism
from ..system import System


@dataclass(frozen=True)
class Quantities:
    """The entries of varied quantities by name: of the free parameters, of q, and of qd."""

    parameters: Mapping[str, int]
    q: Mapping[str, int]
    qd: Mapping[str, int]
    units: Mapping[str, str]

    @property
    def starts(self) -> tuple[str, ...]:
        """The names of the initial coordinates and velocities."""
        return (*self.q, *self.qd)

    def parameter_values(self, nominal: Numbers | None, values: Mapping[str, Numbers]) -> Numbers | None:
        """Return the free parameters of all runs [n, np], or the nominal ones [np] if none of them varies."""
        if nominal is None or not self.parameters:
            return nominal
        count = len(next(iter(values.values())))
        out = np.repeat(nominal[None], count, axis=0)
        for name, k in self.parameters.items():
            out[:, k] = values[name]
        return out


def quantities(mechanism: Mechanism, names: Iterable[str]) -> Quantities:
    """Return the entries of quantities; an unknown name raises an error with the nearest known one."""
    free = {p.name: k for k, p in enumerate(mechanism.free_parameters)}
    labels = [
        {f"{sort}.{label}": k for k, label in enumerate(axis_labels(mechanism, which))}
        for which, sort in enumerate(("q", "qd"))
    ]
    units = {p.name: p.unit for p in mechanism.free_parameters}
    for which, end in ((0, ""), (1, "/s")):
        units |= {
            name: unit + end for name, (_, _, unit) in zip(labels[which], axis_names(mechanism, which), strict=True)
        }
    found: tuple[dict[str, int], dict[str, int], dict[str, int]] = ({}, {}, {})
    for name in names:
        for known, own in zip((free, *labels), found, strict=True):
            if name in known:
                own[name] = known[name]
                break
        else:
            raise unknown_name("free parameter or initial state", name, [*free, *labels[0], *labels[1]])
    for name in found[0 + 1]:
        _refuse_quaternion(mechanism, name)
    return Quantities(*found, {name: units[name] for own in found for name in own})


def _refuse_quaternion(mechanism: Mechanism, name: str) -> None:
    joint = name.removeprefix("q.")
    for own in mechanism.joints:
        if own.name in (joint, joint.rpartition(".")[0]) and kind(own.kind).QUATERNION is not None:
            raise InputError(
                f"{name!r} is a coordinate of a joint that rotates by a quaternion; vary velocities of {own.name!r}, "
                "or a parameter of its placement"
            )


# --- Free parameters in the equations of loops: designs that differ in others only move in the same way ---


def depends_on_parameters(system: System, entries: Sequence[int]) -> bool:
    """Return whether the equations of the loops contain some of the free parameters, by their entries."""
    if not system.closures or not entries:
        return False
    program = system.function("closure_residual").program
    if not isinstance(program, Program):  # rolled code: not examined
        return True
    group = [array.name for array in program.inputs].index("parameters")
    return any(op[0] is Op.INPUT and op[1] == group and op[2] in entries for op in program.ops)
