"""Table 5 of [Goncalves2023]: seconds for 1000 steps, as printed and as measured here."""

from __future__ import annotations

import tempfile
from pathlib import Path

from book import Section
from kinetree.apps.reproduce.goncalves2023 import table_5
from report import Table


def section(quick: bool) -> Section:
    """Return the paper's table with the times measured here; `quick` has no effect, as there are no rounds."""
    with tempfile.TemporaryDirectory() as folder:
        outcome = table_5(Path(folder))
    ((title, (headings, *rows)),) = outcome.tables
    factors = [float(row[headings.index("factor")]) for row in rows]
    table = Table(title, tuple(headings), tuple(map(tuple, rows)), " ".join(outcome.notes))
    headline = f"{min(factors):.1f} to {max(factors):.1f} times the printed speed in all, on another machine."
    return Section("Times that [Goncalves2023] prints", headline, (table,))
