"""The quantities that runs are differentiated with respect to, and their columns."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass
from typing import Any

from ...errors import InputError, unknown_name
from ...model.axes import axis_labels
from ...model.mechanism import Mechanism

GROUPS = ("q0", "qd0", "parameters", "tau")
"""The start, the free parameters, and torques that are added to those that act."""


@dataclass(frozen=True)
class Columns:
    """The columns of derivatives, in this order: q0 and qd0 if chosen, free parameters by index, torques if chosen.

    A column of q0 is a direction of the tangent space, as those of qd0.
    """

    groups: tuple[str, ...]
    free: tuple[int, ...]
    nv: int
    labels: tuple[str, ...]

    @property
    def state(self) -> int:
        """The number of columns of the start."""
        return self.nv * sum(name in self.groups for name in GROUPS[:2])

    def slice_of(self, group: str) -> slice:
        """Return the columns of a group; an empty slice if it is not among them."""
        first = 0
        for name in GROUPS:
            size = 0 if name not in self.groups else len(self.free) if name == "parameters" else self.nv
            if name == group:
                return slice(first, first + size)
            first += size
        raise unknown_name("group of columns", group, GROUPS)

    def parameters(self, count: int) -> tuple[int, ...]:
        """Return the entries of [free parameters, torques] that the last columns belong to."""
        torques = range(count, count + self.nv) if "tau" in self.groups else ()
        return (*self.free, *torques)

    def __len__(self) -> int:
        """Return the number of columns."""
        return self.slice_of("tau").stop


def columns_of(mechanism: Mechanism, wrt: Any) -> Columns:
    """Return the columns of names: groups, or free parameters; by default the start and all free parameters."""
    free = [p.name for p in mechanism.free_parameters]
    given = (*GROUPS[:2], *((GROUPS[2],) if free else ())) if wrt is None else (wrt,) if isinstance(wrt, str) else wrt
    names = tuple(given) if isinstance(given, Iterable) else ()
    if not names or not all(isinstance(x, str) for x in names):
        raise InputError(f"wrt is {repr(wrt)[:60]}; give names such as 'q0' or ('q0', 'qd0', 'parameters', 'tau')")
    if len(set(names)) < len(names):
        raise InputError(f"wrt is {', '.join(names)}; expected each name once")
    for name in names:
        if name not in (*GROUPS, *free):
            raise unknown_name("quantity of a run", name, (*GROUPS, *free))
    if "parameters" in names and not free:
        raise InputError(
            f"wrt has 'parameters', and {mechanism.name!r} has no free parameters; declare some with free=True"
        )
    chosen = tuple(k for k, name in enumerate(free) if name in names or "parameters" in names)
    groups = tuple(x for x in GROUPS if x in names or (x == "parameters" and chosen))
    axes = axis_labels(mechanism, 1)
    labels = [f"{x} of {a}" for x in ("q0", "qd0") if x in groups for a in axes]
    labels += [*(free[k] for k in chosen), *(f"tau of {a}" for a in axes if "tau" in groups)]
    return Columns(groups, chosen, mechanism.nv, tuple(labels))
