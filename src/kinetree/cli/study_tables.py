"""Studies as text: the range of every measure, the best runs, and those that failed."""

from __future__ import annotations

from typing import TYPE_CHECKING

import numpy as np

from ..studies.statuses import Status
from .console import clean, heading, make_table, print_table

if TYPE_CHECKING:
    from rich.console import Console

    from ..studies.study import Study


def print_study(console: Console, study: Study, seconds: float) -> None:
    """Print measures, best values and failures of a study."""
    left = int((study.status == Status.NOT_EVALUATED).sum())
    done = study.runs - left
    name = clean(str(study.about.get("mechanism", "study")))
    heading(console, f"{name}: {done:,} of {study.runs:,} runs in {seconds:.3g} s")
    good = study.finished
    if good.any():
        table = make_table(console, "measure", "unit", "smallest", "median", "largest", "smallest at",
                           numeric=("smallest", "median", "largest"))  # fmt: skip
        for label, x in study.measures.items():
            at = ", ".join(f"{q} = {v:.5g}" for q, v in study.best(label).values.items())
            cells = [f"{f(x[good]):.5g}" for f in (np.min, np.median, np.max)]
            table.add_row(clean(label), clean(study.units.get(label, "")), *cells, clean(at))
        print_table(console, table)
    if len(study.failed):
        console.print(f"{len(study.failed):,} runs failed:")
        console.print(clean_lines(str(study.failed)), soft_wrap=True)


def clean_lines(text: str) -> str:
    """Return a text without control characters except the ends of lines."""
    return "\n".join(f"  {clean(line)}" for line in text.splitlines())
