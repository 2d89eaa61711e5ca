"""Printing of positions that inverse kinematics found."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import numpy as np

from ..model.axes import axis_names
from .console import clean, counted, make_table, print_table

if TYPE_CHECKING:
    from rich.console import Console


def print_positions(console: Console, found: Any) -> None:
    """Print one column per solution with all coordinates, the errors of its pose, and what is known of others."""
    rows = np.atleast_2d(found.q)
    names = [str(k + 1) for k in range(len(rows))]
    table = make_table(console, "joint", *names, "unit", numeric=tuple(names))
    labels = [
        (f"{joint}.{axis}" if axis else joint, unit) for joint, axis, unit in axis_names(found.system.mechanism, 0)
    ]
    for k, (label, unit) in enumerate(labels):
        table.add_row(clean(label), *(f"{x:.9g}" for x in rows[:, k]), unit)
    for label, values, unit in (("error", found.position, "m"), ("error", found.rotation, "rad")):
        table.add_row(label, *(f"{x:.1e}" for x in np.atleast_1d(values)), unit)
    print_table(console, table)
    if hasattr(found, "method"):
        _print_method(console, found)
    else:
        searches = (
            f"{counted(int(found.restarts) + 1, 'search', 'searches')}, {int(found.iterations)} steps in the last"
        )
        console.print(searches)


def _print_method(console: Console, found: Any) -> None:
    console.print(f"{counted(len(found), 'solution', 'solutions')} by {found.method}")
    if found.outside:
        console.print(f"{counted(found.outside, 'solution', 'solutions')} beyond the limits: --no-limits lists all")
    if found.redundant:
        extra = counted(found.redundant, "degree of freedom", "degrees of freedom")
        console.print(f"The arm has {extra} in excess: solutions are infinitely many, and one of them is listed.")
