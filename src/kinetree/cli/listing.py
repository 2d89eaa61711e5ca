"""`kinetree list`: the built-in mechanisms, one line each."""

from __future__ import annotations

import re
from collections.abc import Sequence
from typing import TYPE_CHECKING

from .. import joints as joint_kinds
from ..model.mechanism import Mechanism
from .console import NARROW, clean, heading, make_table, print_table

if TYPE_CHECKING:
    from rich.console import Console

WIDTH = 80
"""Length [characters] above which a summary is shortened at a comma, so that it fits on a line."""
GROUPS = {
    "closed": "Closed mechanisms",
    "floating": "Trees on a free base",
    "fixed": "Chains and trees on the ground",
}


def print_library(console: Console, mechanisms: Sequence[tuple[str, Mechanism]]) -> None:
    """Print names, sizes and summaries in groups: a table per group, or lines on a narrow screen."""
    for group in reversed(GROUPS):
        members = [(name, m) for name, m in mechanisms if _group(m) == group]
        if members:
            heading(console, GROUPS[group])
            _print_group(console, members)
    console.print()
    console.print("nv: degrees of freedom of the joints; loops leave fewer.", style="dim")
    console.print("kinetree show NAME: joints, bodies, description and source.", style="dim")


def _print_group(console: Console, members: Sequence[tuple[str, Mechanism]]) -> None:
    if console.width < NARROW:
        for name, m in members:
            console.print(f"{clean(name)}  {len(m.bodies)} bodies, nv {m.nv}: {clean(_summary(m))}")
        return
    table = make_table(console, "name", "bodies", "nv", "what", numeric=("bodies", "nv"))
    table.columns[0].no_wrap = True
    for name, mechanism in members:
        table.add_row(clean(name), str(len(mechanism.bodies)), str(mechanism.nv), clean(_summary(mechanism)))
    print_table(console, table)


def _group(mechanism: Mechanism) -> str:
    if mechanism.closures:
        return "closed"
    return "floating" if mechanism.joints and joint_kinds.kind(mechanism.joints[0].kind).FLOATS else "fixed"


def _summary(mechanism: Mechanism) -> str:
    """Return the first sentence of the description up to a colon, or up to a comma if it is long."""
    sentence = re.split(r"[.:;] |[.:;]$", mechanism.description, maxsplit=1)[0]
    while len(sentence) > WIDTH and ", " in sentence:
        sentence = sentence.rpartition(", ")[0]
    return sentence.partition(" (")[0] if sentence.count("(") > sentence.count(")") else sentence
