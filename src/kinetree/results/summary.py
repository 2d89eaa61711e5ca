"""A summary of a run: mechanism and method, status, gap of the loops, and limits that were exceeded."""

from __future__ import annotations

from typing import TYPE_CHECKING

import numpy as np

from ..simulation.limits import limit_violations

if TYPE_CHECKING:
    from .trajectory import Trajectory


def summary_lines(run: Trajectory) -> list[str]:
    """Return the lines of a summary; the last one names the limits that were exceeded, if any."""
    name, runs = run.system.mechanism.name, f"{int(np.prod(run.shape)):,} runs of " if run.shape else ""
    lines = [
        f"{name}: {runs}{len(run):,} samples over {run.t[-1] - run.t[0]:g} s by {run.method}, "
        f"{run.evaluations:,} evaluations",
        f"status: {run.status}",
    ]
    if run.system.closures:
        lines.append(f"loops closed to {np.nanmax(np.abs(run['gap']), initial=0.0):.1e} m or rad")
    if run.reference is not None:
        error = np.abs(run["tracking_error"])
        if not np.isnan(error).all():
            lines.append(f"largest tracking error: {np.nanmax(error):.3g} (rad or m)")
    passed = limit_violations(run).summary()
    return [*lines, passed] if passed else lines
