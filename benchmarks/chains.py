"""Long chains on the page: the measurements of long_chains.py, drawn from 10 to 100,000 links."""

from __future__ import annotations

from pathlib import Path

import long_chains
from book import Picture, Section
from pictures import Curve, Panel, draw
from report import Table

SHORT = (10, 30)
"""Numbers of links below those of the table, for the picture."""


def section(quick: bool, folder: Path) -> Section:
    """Return the tables of long chains, and nanoseconds per link over the number of links."""
    short = [long_chains.measure_length(n, 3 if quick else 11) for n in SHORT]
    tables = long_chains.tables(quick)
    panels, worst = [], []
    for name in long_chains.TARGETS:
        title = name.split("_")[0]
        points: dict[str, list[tuple[float, float]]] = {"ours, one sample": [], "ours, in a batch": [], PEER: []}
        for x in short:
            one = x.single[name].median
            points["ours, one sample"].append((x.links, one))
            points["ours, in a batch"].append((x.links, x.batch[name].median))
            if x.ratios:
                points[PEER].append((x.links, one * x.ratios[name].median))
        for links, one, batch, ratio in _rows(tables[0], title):
            points["ours, one sample"].append((links, one))
            points["ours, in a batch"].append((links, batch))
            if ratio is not None:
                points[PEER].append((links, one * ratio))
        worst.append(f"{points['ours, one sample'][-1][1]:.0f} ns ({title})")
        curves = [Curve(k, *zip(*p, strict=True), dashed=k == PEER) for k, p in points.items()]
        panels.append(Panel(f"{title} dynamics", "links", "ns per link", curves))
    draw(folder / "chains.svg", panels)
    return Section(
        "Long chains",
        f"At 100,000 links one sample takes {' and '.join(worst)} per link, in one thread.",
        tuple(tables),
        (Picture("chains.svg", "Nanoseconds per link over the number of links"),),
    )


PEER = "Pinocchio, one sample"


def _rows(table: Table, function: str) -> list[tuple[float, float, float, float | None]]:
    """Return links, ns per link of one sample and in a batch, and the peer's ratio to one sample, from the table."""
    at = [table.columns.index(c) for c in ("links", "one sample [ns]", "in a batch [ns]", "Pinocchio / one")]
    out = []
    for row in table.rows:
        if row[table.columns.index("function")] == function:
            links, one, batch, ratio = (_number(row[k]) for k in at)
            assert links is not None and one is not None and batch is not None
            out.append((links, one, batch, ratio))
    return out


def _number(cell: str) -> float | None:
    """Return the median in a cell, or None if it has none."""
    return None if cell == "-" else float(cell.split()[0].replace(",", ""))
