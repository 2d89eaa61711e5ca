"""`kinetree show`: a mechanism and the report of its import."""

from __future__ import annotations

import re
import textwrap
from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Any

from ... import joints as joint_kinds
from ..._support.tables import count_text
from ...algebra.scalars import Scalar
from ...formats.report import SORTS, Report
from ...joints import kind
from ...model.mechanism import Mechanism, resolve_parts
from ...model.parameters import Expression, resolve
from ...model.parts import Joint, Limits
from ...model.topology import modules
from ...system import System
from .console import NARROW, clean, heading, make_table, print_table

if TYPE_CHECKING:
    from rich.console import Console
    from rich.table import Table
    from rich.tree import Tree


ROWS = 40
ENTRIES = 12
"""Numbers of rows of tables and of entries of lists, to which both are shortened on a screen without --all."""
FORMULA = 24
"""Longest formula in a table [characters]: all columns stay visible."""

MEANING = {
    "read": "recognized and kept",
    "changed": "merged, moved, cut, snapped or repaired",
    "dropped": "in the file, not in the mechanism",
    "suspect": "kept unchanged, but probably wrong",
}


@dataclass(frozen=True)
class _Listing:
    """A console on which long lists are shortened, unless they are printed `whole`, with a remark after them."""

    console: Console
    whole: bool

    def some(self, items: Sequence[object], most: int) -> Sequence[Any]:
        """Return the items to print."""
        return items if self.whole else items[:most]

    def print_rest(self, count: int, most: int) -> None:
        """Print how many of `count` items were left out."""
        if count > most and not self.whole:
            self.console.print(f"  ... and {count - most} more: --all prints them", style="italic")

    def print_table(self, table: Table, count: int) -> None:
        """Print a table of the first ones of `count` rows."""
        print_table(self.console, table)
        self.print_rest(count, ROWS)

    def print_lines(self, lines: Sequence[str]) -> None:
        """Print each text on a single line, however long, so that it can be searched for."""
        for line in self.some(lines, ENTRIES):
            self.console.print(f"  {line}", soft_wrap=True)
        self.print_rest(len(lines), ENTRIES)


def print_system(console: Console, system: System, *, everything: bool) -> None:
    """Print a mechanism and its import report; lists are shortened on a screen only, with a remark."""
    listing = _Listing(console, everything or not console.is_terminal)
    mechanism = system.mechanism
    _print_summary(console, mechanism)
    heading(console, "Tree, by kinematic modules")
    print_table(console, _tree(listing, mechanism))
    for part in (_print_joints, _print_limits, _print_bodies):
        part(listing, mechanism)
    for title, parts in (
        ("Frames", (f"{f.name} (on {f.body})" for f in mechanism.frames)),
        ("Free parameters", map(_parameter, mechanism.free_parameters)),
        ("Loops", (f"{x.name}: {x.kind} of {x.body_a} and {x.body_b}" for x in mechanism.loops)),
        ("Couplings", (f"{x.name}: {x.joint} follows {', '.join(n for n, _ in x.terms)}" for x in mechanism.couplings)),
        ("Forces", (f"{x.name}: {x.kind} between {x.body_a} and {x.body_b}" for x in mechanism.forces)),
    ):
        _print_names(listing, title, parts)
    _print_report(listing, system.report)


def _print_summary(console: Console, mechanism: Mechanism) -> None:
    total = sum(resolve_parts(tuple(b.mass for b in mechanism.bodies), mechanism.values()))
    rows = {
        "mechanism": mechanism.name,
        "description": mechanism.description,
        "source": mechanism.source,
        "size": f"{count_text(len(mechanism.bodies), 'body', 'bodies')}, nq = {mechanism.nq}, nv = {mechanism.nv}",
        "total mass": f"{total:.6g} kg",
        "gravity": f"{_vector(mechanism.gravity)} m/s^2",
        "modules": str(len(modules(mechanism))),
        "parts": ", ".join(
            count_text(len(parts), one)
            for one, parts in (
                ("frame", mechanism.frames),
                ("loop", mechanism.loops),
                ("coupling", mechanism.couplings),
                ("force", mechanism.forces),
            )
        ),
        "parameters": f"{len(mechanism.parameters)}, {len(mechanism.free_parameters)} of them free",
        "hash": mechanism.hash,
    }
    table = make_table(console, "", "")
    table.show_header, table.box, table.columns[0].style, table.columns[0].no_wrap = False, None, "bold", True
    for label, text in rows.items():
        if text:
            table.add_row(label, clean(text))
    print_table(console, table)


def _tree(listing: _Listing, mechanism: Mechanism) -> Tree:
    """Return the tree with a node per module, so that a long chain is one node. [Saha2013] 3

    If nesting would leave no room for names, a module is placed beside its parent, with the name of its parent body.
    """
    from rich.text import Text
    from rich.tree import Tree

    root, deepest = Tree(Text("ground")), max(2, (listing.console.width - 40) // 4)
    places: dict[int, tuple[Tree, int]] = {-1: (root, 0)}
    for number, chain in enumerate(modules(mechanism), 1):
        names = [clean(mechanism.bodies[i].name) for i in chain]
        if not listing.whole and len(names) > ENTRIES:
            names[ENTRIES - 2 : -1] = [f"... ({len(names)} in all: --all)"]
        parent = mechanism.parents[chain[0]]
        above, depth = places[parent]
        on = f" on {clean(mechanism.bodies[parent].name)}" if depth == deepest else ""
        node = above.add(Text(f"module {number}{on}: {' - '.join(names)}"))
        places[chain[-1]] = (above, depth) if on else (node, depth + 1)
    return root


def _print_joints(listing: _Listing, mechanism: Mechanism) -> None:
    heading(listing.console, f"Joints ({len(mechanism.joints)})")
    table = make_table(listing.console, "q", "joint", "kind", "parent", "body", "axis", numeric=("q",))
    for joint, own in zip(listing.some(mechanism.joints, ROWS), mechanism.q_slices, strict=False):
        size = own.stop - own.start
        index = f"{own.start}" if size == 1 else (f"{own.start}-{own.stop - 1}" if size else "")
        table.add_row(index, *map(clean, (joint.name, joint.kind, joint.parent, joint.child)), _axis(joint))
    listing.print_table(table, len(mechanism.joints))


def _print_limits(listing: _Listing, mechanism: Mechanism) -> None:
    limited = [j for j in mechanism.joints if j.limits != Limits()]
    if not limited:
        return
    heading(listing.console, f"Limits (of {len(limited)} joints; - is none)")
    table = make_table(listing.console, "joint", "lower", "upper", "velocity", "effort")
    for joint in listing.some(limited, ROWS):
        bounds = (joint.limits.lower, joint.limits.upper, joint.limits.velocity, joint.limits.effort)
        table.add_row(clean(joint.name), *map(_bound, bounds))
    listing.print_table(table, len(limited))
    listing.console.print("[rad or m], [rad/s or m/s], [N m or N]", style="dim")


def _print_bodies(listing: _Listing, mechanism: Mechanism) -> None:
    heading(listing.console, f"Bodies ({len(mechanism.bodies)})")
    columns = ("body", "mass", "center of mass", "inertia: xx, yy, zz", "xy, yz, zx")
    table = make_table(listing.console, *columns, numeric=("mass",))
    for body in listing.some(mechanism.bodies, ROWS):
        mass, com, inertia = ([_short(x, mechanism) for x in part] for part in ((body.mass,), body.com, body.inertia))
        moments, products = ", ".join(map(_number, inertia[:3])), ", ".join(map(_number, inertia[3:]))
        table.add_row(clean(body.name), _number(mass[0]), _vector(com), moments, products)
    listing.print_table(table, len(mechanism.bodies))
    listing.console.print("[kg], [m], [kg m^2] about the center of mass; in the body's frame", style="dim")


def _axis(joint: Joint) -> str:
    data = kind(joint.kind).DATA
    if "sequence" in data:
        return joint.sequence
    if "axis" not in data:
        return "-"
    second = f", {_vector(joint.axis2)}" if joint.axis2 is not None else ""
    return _vector(joint.axis) + second


def _print_names(listing: _Listing, title: str, names: Iterable[str]) -> None:
    lines = [clean(name) for name in names]
    if lines:
        heading(listing.console, f"{title} ({len(lines)})")
        listing.print_lines(lines)


def _print_report(listing: _Listing, report: Report) -> None:
    console = listing.console
    heading(console, f"Import report of {clean(report.file)}" if report.file else "Import report")
    if not report.entries:
        console.print("nothing to report")
    for sort in SORTS:
        entries = report.of(sort)
        if entries:
            console.print(
                f"{sort} ({len(entries)}): {MEANING[sort]}", style="bold" if sort != "suspect" else "bold red"
            )
            lines = map(report.short, entries) if listing.whole else report.lines(sort)
            listing.print_lines([clean(line) for line in lines])


def _parameter(parameter: Any) -> str:
    unit = f" {parameter.unit}" if parameter.unit else ""
    note = f": {parameter.note}" if parameter.note else ""
    return f"{parameter.name} = {_number(parameter.value)}{unit}{note}"


def _bound(values: tuple[float, ...]) -> str:
    return ", ".join(map(_number, values)) or "-"


def _vector(values: Iterable[object]) -> str:
    return "(" + ", ".join(map(_number, values)) + ")"


def _short(x: object, mechanism: Mechanism) -> Any:
    """Return a number, or a formula if it is short; a long one, as of a moved body, as its value."""
    return x if not isinstance(x, Expression) or len(str(x)) <= FORMULA else resolve(x, mechanism.values())


def _number(x: Scalar) -> str:
    return clean(str(x)) if isinstance(x, Expression) else f"{x + 0.0:.6g}"


# --- `kinetree list` and `kinetree cache`: the built-in mechanisms, one line each, and the compiled code on disk.

WIDTH = 80
"""Length [characters] above which a summary is shortened at a comma, so that it fits on a line."""
GROUPS = {
    "closed": "Closed mechanisms",
    "floating": "Trees on a free base",
    "fixed": "Chains and trees on the ground",
}


def print_library(console: Console, mechanisms: Sequence[tuple[str, Mechanism]], robots: Sequence[str] = ()) -> None:
    """Print names, sizes and summaries in groups: a table per group, or lines on a narrow screen.

    `robots` are the names of those of installed packages.
    """
    for group in reversed(GROUPS):
        members = [(name, m) for name, m in mechanisms if _group(m) == group]
        if members:
            heading(console, GROUPS[group])
            _print_group(console, members)
    console.print()
    console.print("nv: degrees of freedom of the joints; loops leave fewer.", style="dim")
    if robots:
        named = f"{count_text(len(robots), 'robot')} of installed packages: {clean(', '.join(robots))}."
        for line in textwrap.wrap(f"robot:NAME: {named}", min(console.width, 120)):
            console.print(line, style="dim")
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


def print_cache(
    console: Console, folder: Path, files: Sequence[tuple[float, int, str]], limit: int, *, cleared: bool
) -> None:
    """Print folder, number of files, size and limit of the cache of compiled code, and what was removed."""
    size = f"{count_text(len(files), 'file')}, {sum(x[1] for x in files) / 2**20:.1f} MiB"
    console.print(f"{clean(str(folder))}", soft_wrap=True)
    console.print(f"removed: {size}" if cleared else f"{size} of at most {limit / 2**20:.0f} MiB; --clear removes them")
