"""Reproduction of the papers' tables and figures, each with a verdict and its reason.

Each module of a paper has ENTRIES. A new table or figure is a function that takes a folder and returns an Outcome, and
a line in its module's list.
"""

from __future__ import annotations

from collections.abc import Iterable

from ...errors import unknown_name
from .entry import Check, Entry, Outcome, Source, Verdict

PAPERS = ("saha1999", "saha2013", "gupta2013", "wolinski2015", "goncalves2023")
TOPICS = {
    "speed": (
        "saha2013-figure-19",
        "saha2013-figure-20",
        "wolinski2015-table-1",
        "wolinski2015-figures-12-13",
        "goncalves2023-table-5",
    ),
}
"""Entries of several papers about one topic."""


def entries() -> dict[str, Entry]:
    """Return every entry by name, in the order of the papers."""
    from . import (
        goncalves2023,
        goncalves2023_motion,
        gupta2013,
        saha1999,
        saha2013,
        saha2013_biped,
        saha2013_closed,
        saha2013_forced,
        wolinski2015,
    )

    modules = (
        *(saha1999, saha2013, saha2013_biped, saha2013_forced, saha2013_closed),
        *(gupta2013, wolinski2015, goncalves2023_motion, goncalves2023),
    )
    return {entry.name: entry for module in modules for entry in module.ENTRIES}


def select_entries(names: Iterable[str]) -> list[Entry]:
    """Return entries by name; "all" selects every entry, the name of a paper or a topic all of its own."""
    known = entries()
    out: dict[str, Entry] = {}
    for name in names:
        if name == "all":
            out |= known
        elif name in PAPERS:
            out |= {k: e for k, e in known.items() if k.startswith(name)}
        elif name in TOPICS:
            out |= {key: known[key] for key in TOPICS[name]}
        elif name in known:
            out[name] = known[name]
        else:
            raise unknown_name("entry", name, ("all", *PAPERS, *TOPICS, *known))
    return list(out.values())


__all__ = ["PAPERS", "TOPICS", "Check", "Entry", "Outcome", "Source", "Verdict", "entries", "select_entries"]
