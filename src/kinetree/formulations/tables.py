"""Matrices as tables with named blocks, in plain text, HTML and LaTeX; the matrices of a DeNOC by name."""

from __future__ import annotations

import html as markup
from collections.abc import Iterable, Sequence
from itertools import groupby
from typing import TYPE_CHECKING, NamedTuple

import numpy as np

from .._support.tables import count_text
from ..errors import unknown_name
from .kinematics import Matrix
from .links import ABOUT

if TYPE_CHECKING:
    from .denoc import DeNOC

Labels = Sequence[tuple[str, str]]
"""A (block, entry) per row or column: the body and a component, or the joint and its degree of freedom."""

COMPONENTS = ("wx", "wy", "wz", "vx", "vy", "vz")
NOISE = 1e-13
"""Entries below this fraction of the largest are shown as zeros: they are rounding."""
MOST = 60
"""Largest number of rows or columns in a text table, to keep it readable; the remaining ones are only counted."""


def twist_labels(names: Iterable[str], components: Sequence[str] = COMPONENTS) -> Labels:
    """Return a label per component of the bodies' twists (or of wrenches, with nx ... fz)."""
    return [(name, c) for name in names for c in components]


def joint_labels(joints: Iterable[tuple[str, int]]) -> Labels:
    """Return a label per degree of freedom of (joint, count) pairs."""
    return [(name, str(k + 1) if count > 1 else "") for name, count in joints for k in range(count)]


def entries(matrix: Matrix, digits: int = 4) -> list[list[str]]:
    """Return each entry as a short string; zeros are dots."""
    floor = NOISE * float(np.abs(matrix).max(initial=0.0))
    return [["." if abs(x) <= floor else f"{x:.{digits}g}" for x in row] for row in matrix]


def text(matrix: Matrix, rows: Labels, columns: Labels, *, heading: str = "", width: int = 110) -> str:
    """Return a plain-text table, split into several parts where it is wider than `width`."""
    shown = min(len(rows), MOST)
    cells = entries(matrix)[:shown]
    sides = _sides(rows[:shown])
    out = [heading] if heading else []
    for first, last in _parts(cells, columns, width - len(sides[0]) if sides else width):
        part = [row[first:last] for row in cells]
        out += _part(part, sides, columns[first:last])
    left = [f"{len(x) - MOST} more {what}" for x, what in ((rows, "rows"), (columns, "columns")) if len(x) > MOST]
    return "\n".join(out + ([f"... and {' and '.join(left)}"] if left else []))


def _sides(rows: Labels) -> list[str]:
    """Return the left margin of each row: the block once, then the entry."""
    block = max((len(b) for b, _ in rows), default=0)
    entry = max((len(e) for _, e in rows), default=0)
    out, before = [], None
    for b, e in rows:
        out.append(f"{b if b != before else '':<{block}} {e:<{entry}}")
        before = b
    return out


def _parts(cells: list[list[str]], columns: Labels, width: int) -> list[tuple[int, int]]:
    """Return ranges of columns that fit the width, split between blocks where possible."""
    sizes = [_size(cells, columns, k) + 2 for k in range(min(len(columns), MOST))]
    blocks = [len(list(group)) for _, group in groupby(columns[: len(sizes)], key=lambda label: label[0])]
    out, first, at, used = [], 0, 0, 0
    for count in blocks:
        size = sum(sizes[at : at + count])
        if used and used + size > width:
            out.append((first, at))
            first, used = at, 0
        at, used = at + count, used + size
    return [*out, (first, at)]


def _size(cells: list[list[str]], columns: Labels, k: int) -> int:
    alone = (k == 0 or columns[k - 1][0] != columns[k][0]) and (
        k + 1 == len(columns) or columns[k + 1][0] != columns[k][0]
    )
    label = len(columns[k][0]) if alone else 0
    return max(label, len(columns[k][1]), max((len(row[k]) for row in cells), default=0))


def _part(cells: list[list[str]], sides: list[str], columns: Labels) -> list[str]:
    margin = " " * (len(sides[0]) if sides else 0)
    sizes = [_size(cells, columns, k) for k in range(len(columns))]
    head, at = margin, 0
    for block, group in groupby(columns, key=lambda label: label[0]):
        count = len(list(group))
        room = sum(sizes[at : at + count]) + 2 * count
        head += f"  {block:>{room - 2}}" if count == 1 else f"  {block:<{room - 2}}"
        at += count
    out = [head.rstrip()]
    if any(entry for _, entry in columns):
        out.append((margin + "".join(f"  {e:>{s}}" for (_, e), s in zip(columns, sizes, strict=True))).rstrip())
    for side, row in zip(sides, cells, strict=True):
        out.append((side + "".join(f"  {x:>{s}}" for x, s in zip(row, sizes, strict=True))).rstrip())
    return out


def html(matrix: Matrix, rows: Labels, columns: Labels, *, heading: str = "") -> str:
    """Return an HTML table with one header cell per block."""
    out = ["<table>"] + ([f"<caption>{markup.escape(heading)}</caption>"] if heading else [])
    out.append("<tr><th></th><th></th>")
    out += [f'<th colspan="{len(list(g))}">{markup.escape(b)}</th>' for b, g in groupby(columns, key=lambda x: x[0])]
    out.append("</tr>")
    if any(entry for _, entry in columns):
        out.append("<tr><th></th><th></th>" + "".join(f"<th>{markup.escape(e)}</th>" for _, e in columns) + "</tr>")
    before = None
    for (block, entry), row in zip(rows, entries(matrix), strict=True):
        name = markup.escape(block) if block != before else ""
        data = "".join(f'<td style="text-align:right">{x}</td>' for x in row)
        out.append(f"<tr><th>{name}</th><th>{markup.escape(entry)}</th>{data}</tr>")
        before = block
    return "".join([*out, "</table>"])


def latex(matrix: Matrix, rows: Labels, columns: Labels) -> str:
    """Return a LaTeX array with a line between blocks, its rows and columns labeled."""
    groups = [len(list(g)) for _, g in groupby(columns, key=lambda x: x[0])]
    lines = [r"\begin{array}{r|" + "|".join("r" * n for n in groups) + "}"]
    lines.append(" & ".join(["", *(_word(*label) for label in columns)]) + r" \\ \hline")
    before = rows[0][0] if rows else ""
    for label, row in zip(rows, entries(matrix), strict=True):
        if label[0] != before:
            lines.append(r"\hline")
        before = label[0]
        lines.append(" & ".join([_word(*label), *(_number(x) for x in row)]) + r" \\")
    return "\n".join([*lines, r"\end{array}"])


def _word(block: str, entry: str) -> str:
    escaped = block.replace("\\", " ").replace("_", r"\_").replace("&", r"\&").replace("%", r"\%").replace("#", r"\#")
    return rf"\text{{{escaped}}}" + (rf"_{{{entry}}}" if entry else "")


def _number(x: str) -> str:
    """Return 1.2e-05 as a power of ten, and a dot as a centered one."""
    if "e" in x:
        mantissa, exponent = x.split("e")
        return rf"{mantissa}\cdot 10^{{{int(exponent)}}}"
    return r"\cdot" if x == "." else x


# --- Names, layout and equation numbers of the matrices of a DeNOC


class Name(NamedTuple):
    """Description of a matrix: labels of its rows and columns ("twist", "wrench", "joint", ""), meaning, equation."""

    rows: str
    columns: str
    meaning: str
    equation: str


NAMES = {
    "t": Name("twist", "", "twists", "[Saha1999] (3)"),
    "N_l": Name("twist", "twist", "propagations", "[Saha2013] (9b), (44)"),
    "N_d": Name("twist", "joint", "joint motions", "[Saha2013] (9b), (45)"),
    "N": Name("twist", "joint", "natural orthogonal complement N_l N_d", "[Saha2013] (9a)"),
    "dN_l": Name("twist", "twist", "rate of N_l", "[Saha1999] (25)"),
    "dN_d": Name("twist", "joint", "rate of N_d", "[Saha1999] (26)"),
    "dN": Name("twist", "joint", "rate of N", "[Saha1999] 4.2"),
    "M": Name("wrench", "twist", "masses of the bodies", "[Saha2013] (14)"),
    "Omega": Name("twist", "twist", "angular velocities, both halves", "[Saha2013] (48)"),
    "W": Name("twist", "twist", "angular velocities, upper half", "[Saha2013] (14)"),
    "E": Name("twist", "twist", "ones in the upper half", "[Saha2013] (48)"),
    "dM": Name("wrench", "twist", "convective matrices of the bodies", "[Saha1999] (8), (10)"),
    "Mtilde": Name("wrench", "twist", "masses of composite bodies", "[Saha2013] (19)"),
    "I": Name("joint", "joint", "generalized inertia matrix (GIM)", "[Saha2013] (21)"),
    "C": Name("joint", "joint", "matrix of convective inertia (MCI)", "[Saha1999] (29)"),
    "C_christoffel": Name("joint", "joint", "the same from Christoffel symbols", "[Gupta2013] (35)"),
    "g": Name("joint", "", "torques against gravity", "[Saha1999] (30), (32)"),
}

WRENCH = ("nx", "ny", "nz", "fx", "fy", "fz")


def labels(d: DeNOC, kind: str) -> Labels:
    """Return the labels of rows or columns: components of bodies, or joints."""
    if kind == "joint":
        return joint_labels((b.joint, b.p.shape[1]) for b in d.bodies)
    if kind in ("twist", "wrench"):
        first, mode = (COMPONENTS, "e'") if kind == "twist" else (WRENCH, "Q")
        return [label for b in d.bodies for label in twist_labels([b.name], (*first, *mode_names(mode, b.size)))]
    return [("", "")]


def mode_names(what: str, size: int) -> list[str]:
    """Return the names of the entries of a twist or wrench that belong to modes."""
    return [f"{what}{k + 1}" for k in range(size - 6)]


def layout(d: DeNOC, name: str) -> tuple[Matrix, Labels, Labels]:
    """Return a matrix with the labels of its rows and columns; a vector is one column."""
    matrix = d[name]
    columns = [(name, "")] if matrix.ndim == 1 else labels(d, NAMES[name].columns)
    return matrix.reshape(len(matrix), len(columns)), labels(d, NAMES[name].rows), columns


def shape(d: DeNOC, name: str) -> tuple[int, ...]:
    """Return the shape of a matrix without computing it."""
    kinds = (NAMES[name].rows, NAMES[name].columns)
    return tuple(d.links.nv if k == "joint" else d.links.width for k in kinds if k)


def heading(d: DeNOC, name: str) -> str:
    """Return the title of a matrix's table."""
    return f"{name}: {NAMES[name].meaning}, {_shape_text(d, name)}  {NAMES[name].equation}"


def overview(d: DeNOC) -> str:
    """Return a list of all matrices with sizes, meanings and equations."""
    lines = [
        f"DeNOC of {d.links.name!r} about the {ABOUT[d.about]}: {count_text(len(d.links), 'body', 'bodies')}, "
        f"{count_text(d.links.nv, 'degree')} of freedom"
    ]
    for name, what in NAMES.items():
        lines.append(f"  {name:<13} {_shape_text(d, name):<9} {what.meaning:<38} {what.equation}")
    lines.append("  composites, articulated (bodies); elimination; forward_dynamics(tau)")
    return "\n".join(lines)


def pattern(d: DeNOC, name: str) -> str:
    """Return the blocks of N_l, N_d, N or Mtilde as the papers write them; bodies are numbered from 1."""
    A = "A" if d.about == "origin" else "B"
    lower = {
        "N_l": lambda i, j: "1" if i == j else f"{A}_{i + 1},{j + 1}",
        "N_d": lambda i, j: f"p_{i + 1}" if i == j else ".",
        "N": lambda i, j: f"p_{i + 1}" if i == j else f"{A}_{i + 1},{j + 1} p_{j + 1}",
        "Mtilde": lambda i, j: f"M~_{i + 1}" if i == j else f"M~_{i + 1} {A}_{i + 1},{j + 1}",
    }
    if name not in lower:
        raise unknown_name("pattern", str(name), lower)
    n = len(d.links)
    cells = [["."] * n for _ in range(n)]
    for i, path in enumerate(d.links.paths):
        for j in path:
            cells[i][j] = lower[name](i, j)
            if name == "Mtilde" and i != j:
                cells[j][i] = f"{A}_{i + 1},{j + 1}^T M~_{i + 1}"
    sizes = [max(len(row[k]) for row in cells) for k in range(n)]
    return "\n".join("  ".join(f"{x:<{s}}" for x, s in zip(row, sizes, strict=True)).rstrip() for row in cells)


def named_columns(columns: dict[str, Matrix], rows: Labels, title: str) -> str:
    """Return vectors side by side, one per column, under their names."""
    matrix = np.column_stack([np.asarray(x, dtype=float) for x in columns.values()])
    return text(matrix, rows, [(name, "") for name in columns], heading=title)


def _shape_text(d: DeNOC, name: str) -> str:
    return " x ".join(map(str, shape(d, name)))
