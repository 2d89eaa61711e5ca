"""`kinetree cost` and `kinetree bench`: operations and times of a mechanism's functions."""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING

from ..analysis.cost.timing import Timing
from ..errors import ModelError
from ..system import System
from .console import clean, heading, make_table, print_table

if TYPE_CHECKING:
    from rich.console import Console

USUAL = (
    "inverse_dynamics",
    "forward_dynamics",
    "inertia_matrix",
    "inverse_inertia_matrix",
    "convective_matrix",
    "gravity_torque",
    "bias_torque",
    "kinetic_energy",
    "poses",
)


def print_costs(console: Console, system: System, functions: Sequence[str] | None) -> None:
    """Print a row per function, and the reason for each function that is impossible."""
    heading(console, f"{clean(system.mechanism.name)}: operations of one sample")
    columns = ("M", "A", "divisions", "roots", "sines", "others")
    table = make_table(console, "function", *columns, numeric=columns)
    refused = []
    for name in functions or USUAL:
        try:
            c = system.cost(name)
        except ModelError as error:
            if functions:
                raise
            refused.append(f"{name}: {error}")
            continue
        table.add_row(name, *map(str, (c.M, c.A, c.divisions, c.roots, c.sines, c.others)))
    print_table(console, table)
    for line in refused:
        console.print(clean(line))
    console.print(
        "M: multiplications and divisions, also by constants. A: additions and subtractions. Signs do not count.",
        style="dim",
    )


def print_timings(console: Console, found: Sequence[Timing], batch: int) -> None:
    """Print a row per function that was timed."""
    columns = ("ready [ms]", "one call [ns]", f"per sample of {batch:,} [ns]")
    table = make_table(console, "function", *columns, numeric=columns)
    for row in found:
        table.add_row(row.function, f"{row.ready * 1e3:.1f}", f"{row.single:.0f}", f"{row.sample:.1f}")
    print_table(console, table)
    console.print("ready: compiled, or read from the cache. Calls are of the bare gufunc, one thread.", style="dim")
