"""Names, layout and equation numbers of the matrices of a DeNOC, for printing."""

from __future__ import annotations

from typing import TYPE_CHECKING, NamedTuple

import numpy as np

from ..errors import unknown_name
from . import tables
from .kinematics import Matrix
from .links import ABOUT
from .tables import Labels

if TYPE_CHECKING:
    from .denoc import DeNOC


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
        return tables.joint_labels((b.joint, b.p.shape[1]) for b in d.bodies)
    if kind in ("twist", "wrench"):
        return tables.twist_labels((b.name for b in d.bodies), tables.COMPONENTS if kind == "twist" else WRENCH)
    return [("", "")]


def layout(d: DeNOC, name: str) -> tuple[Matrix, Labels, Labels]:
    """Return a matrix with the labels of its rows and columns; a vector is one column."""
    matrix = d[name]
    columns = [(name, "")] if matrix.ndim == 1 else labels(d, NAMES[name].columns)
    return matrix.reshape(len(matrix), len(columns)), labels(d, NAMES[name].rows), columns


def shape(d: DeNOC, name: str) -> tuple[int, ...]:
    """Return the shape of a matrix without computing it."""
    kinds = (NAMES[name].rows, NAMES[name].columns)
    return tuple(d.links.nv if k == "joint" else 6 * len(d.links) for k in kinds if k)


def heading(d: DeNOC, name: str) -> str:
    """Return the title of a matrix's table."""
    return f"{name}: {NAMES[name].meaning}, {_size(d, name)}  {NAMES[name].equation}"


def overview(d: DeNOC) -> str:
    """Return a list of all matrices with sizes, meanings and equations."""
    lines = [
        f"DeNOC of {d.links.name!r} about the {ABOUT[d.about]}: {len(d.links)} bodies, {d.links.nv} degrees of freedom"
    ]
    for name, what in NAMES.items():
        lines.append(f"  {name:<13} {_size(d, name):<9} {what.meaning:<38} {what.equation}")
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
    return tables.text(matrix, rows, [(name, "") for name in columns], heading=title)


def _size(d: DeNOC, name: str) -> str:
    return " x ".join(map(str, shape(d, name)))
