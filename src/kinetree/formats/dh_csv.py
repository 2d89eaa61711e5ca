"""Reader of DH tables as CSV: a header line of the keys, then one line per row; lines that start with # are comments.

`# convention: modified`, `# degrees: true`, `# gravity: 0 0 -9.81`, `# name: arm`, `# tool: 0 0 0.1` (a translation
from the last frame) and `# lenient: true` are settings, which arguments override.
"""

from __future__ import annotations

import difflib
import math
import re
from collections.abc import Sequence
from pathlib import Path
from typing import Any

from ..errors import ModelError, quote, unknown_name
from ..model import Mechanism, parse
from ..model.part_fields import MAX_NAME
from .dh import BRANCH, GEOMETRY, ROWS, mechanism_from_dh
from .report import Report, report_tolerated
from .text_numbers import csv_cells, strict_float, strict_floats
from .toml import file_text
from .toml_parts import LIMITS, LOSSES

COM = ("cx", "cy", "cz")
INERTIA = ("ixx", "iyy", "izz", "ixy", "iyz", "izx")
COLUMNS = ("joint", *GEOMETRY, *BRANCH, "mass", *COM, *INERTIA, "parent", "name", *LOSSES, *LIMITS)
SETTINGS = ("convention", "degrees", "gravity", "name", "tool", "lenient")
MAX_ROWS = 20_000
"""Largest number of rows, for a table that is read in seconds."""
TRUTHS, VECTORS = ("degrees", "lenient"), ("gravity", "tool")


def read_dh_csv(
    path: str | Path,
    *,
    convention: str | None = None,
    degrees: bool | None = None,
    gravity: Sequence[float] | None = None,
    name: str | None = None,
    lenient: bool | None = None,
) -> tuple[Mechanism, Report]:
    """Read a DH table from a file; the arguments override the settings in the file."""
    given = {"convention": convention, "degrees": degrees, "gravity": gravity, "name": name, "lenient": lenient}
    return read_dh_csv_text(
        file_text(path), file=str(path), **{key: value for key, value in given.items() if value is not None}
    )


def read_dh_csv_text(source: str, *, file: str = "<text>", **settings: Any) -> tuple[Mechanism, Report]:
    """Read a DH table from a text; `file` is its name in messages."""
    report = Report(file)
    said: dict[str, Any] = {"name": "dh" if file == "<text>" else Path(file).stem or "dh"}
    header: list[str] = []
    rows: list[tuple[int, dict[str, Any]]] = []
    for line, content in enumerate(source.splitlines(), 1):
        if content.lstrip().startswith("#"):
            said |= _setting(content.lstrip()[1:], report, line)
        elif content.strip():
            cells = csv_cells(content, file, line)
            if len(rows) == MAX_ROWS:
                raise ModelError(
                    f"there are more than {MAX_ROWS:,} rows",
                    remedy="build long chains by kt.rope or kt.chain",
                    file=file,
                    line=line,
                )
            if header:
                rows.append((line, _row(header, cells, file, line)))
            else:
                header = _header(cells, file, line)
    if not header:
        raise ModelError("there is no header", remedy="begin with a line such as joint,a,alpha,b,theta,mass", file=file)
    try:
        mechanism = mechanism_from_dh([row for _, row in rows], **(said | settings))
    except ModelError as error:
        row = error.path[2] if error.path[:2] == ROWS and len(error.path) > 2 else None
        raise error.located(file, rows[row][0] if isinstance(row, int) else None) from None
    report.read(f"{len(mechanism.bodies)} bodies, {mechanism.nv} degrees of freedom")
    report_tolerated(mechanism, report)
    return mechanism, report


def _setting(comment: str, report: Report, line: int) -> dict[str, Any]:
    """Return the setting in a comment; most comments have none."""
    key, colon, value = (part.strip() for part in comment.partition(":"))
    if not colon or key not in SETTINGS:
        close = difflib.get_close_matches(key, SETTINGS, n=1, cutoff=0.8) if colon and len(key) < 20 else []
        if close:
            report.suspect(f"the comment {quote(key)} resembles the setting {close[0]!r} and was ignored", line)
        return {}
    if key in TRUTHS:
        if value not in ("true", "false"):
            raise ModelError(f"{key} is {quote(value)}", remedy="write true or false", file=report.file, line=line)
        return {key: value == "true"}
    if key in VECTORS:
        return {key: strict_floats(value, 3, where=key, file=report.file, line=line)}
    return {key: value}


def _header(cells: list[str], file: str, line: int) -> list[str]:
    for i, cell in enumerate(cells):
        if cell not in COLUMNS:
            raise unknown_name("column", cell[:MAX_NAME], COLUMNS, file=file, line=line)
        if cell in cells[:i]:
            raise ModelError(f"two columns have the name {cell!r}", remedy="keep one of them", file=file, line=line)
    return cells


def _row(header: list[str], cells: list[str], file: str, line: int) -> dict[str, Any]:
    """Return a line as a row of `mechanism_from_dh`; empty cells are left out."""
    if len(cells) > len(header):
        raise ModelError(
            f"{len(cells)} cells under {len(header)} columns",
            remedy="add a column or remove a cell",
            file=file,
            line=line,
        )
    filled = {key: cell for key, cell in zip(header, cells, strict=False) if cell}
    row: dict[str, Any] = {key: filled.pop(key) for key in ("joint", "name", "parent") if key in filled}
    if re.fullmatch(r"[0-9]{1,9}", row.get("parent", "")):
        row["parent"] = int(row["parent"])
    values = {key: _number(cell, key, file, line) for key, cell in filled.items()}
    for key, columns in (("com", COM), ("inertia", INERTIA)):
        if any(column in values for column in columns):
            row[key] = tuple(values.pop(column, 0.0) for column in columns)
    bounds = {key: values.pop(key) for key in LIMITS if key in values}
    return row | values | ({"limits": bounds} if bounds else {})


def _number(cell: str, key: str, file: str, line: int) -> float:
    """Return a decimal, or a formula without names such as -pi/2."""
    try:
        return strict_float(cell, where=key, file=file, line=line)
    except ModelError:
        try:
            value = parse(cell)
        except (ModelError, RecursionError):
            value = math.nan
        if isinstance(value, float) and math.isfinite(value):
            return value
        raise
