"""Readers of Denavit-Hartenberg tables, as rows or CSV, in the standard and in the modified convention.

Standard ([Saha1999] appendix A): the pose of frame i+1 in frame i is Rz(theta) Tz(b) Tx(a) Rx(alpha), and frame i+1 is
fixed to the child of joint i. Modified (Khalil and Kleinfinger): the pose of frame i in that of its parent is
Rz(gamma) Tz(epsilon) Rx(alpha) Tx(a) Tz(b) Rz(theta), and frame i is the body's own. The joint moves about or along
z_i; its coordinate is added to theta (revolute) or to b (prismatic).
"""

from __future__ import annotations

import difflib
import math
import re
from collections.abc import Callable, Iterable, Mapping, Sequence
from operator import index as index_of
from pathlib import Path
from typing import Any, SupportsIndex, TypeVar

from ..algebra.rotations import Full, Planar
from ..algebra.scalars import Scalar, cos, is_number, sin, snap
from ..algebra.vectors import Matrix, add, from_moments, matmul, times, to_moments
from ..errors import ModelError, Where, at, below, quote, unknown_name
from ..model import GROUND, Body, Frame, Joint, Loop, Mechanism, Number, Parameter, Placement, build_mechanism, parse
from ..model.part_fields import MAX_NAME
from . import toml_parts
from .fields import (
    PLACEMENT,
    csv_cells,
    file_text,
    filled_cells,
    inertia,
    known_keys,
    name,
    number,
    numbers,
    placement,
    require,
    sequence,
    sort,
    strict_float,
    strict_floats,
    unknown_key,
    vector,
)
from .report import Report, report_tolerated, size_text
from .toml_parts import LIMITS, LOSSES, limits, losses

CONVENTIONS = ("standard", "modified")
JOINTS = ("revolute", "prismatic", "fixed")
LETTERS = {"R": "revolute", "P": "prismatic", "F": "fixed"}
"""Joints as textbooks abbreviate them, in letters of either case."""
GEOMETRY = ("a", "alpha", "b", "theta")
BRANCH = ("gamma", "epsilon")
ROW = ("joint", *GEOMETRY, "mass", "com", "inertia", "parent", "name", "limits", *LOSSES)
ROWS = ("dh", "row")
"""The key path of the rows in a file."""

Parts = tuple[list[Body], list[Joint], list[Frame]]


def mechanism_from_dh(
    rows: Iterable[Mapping[str, object]],
    *,
    convention: str = "standard",
    degrees: bool = False,
    gravity: Sequence[Number] = (0.0, 0.0, -9.81),
    name: str = "dh",
    parameters: Iterable[Parameter] = (),
    frames: Iterable[Frame | Mapping[str, object]] = (),
    tool: object = None,
    loops: Iterable[Loop | Mapping[str, object]] = (),
    guess: Mapping[str, object] | None = None,
    lenient: bool = False,
) -> Mechanism:
    """Return the mechanism of a table of rows, one per body.

    A row has `joint` ("revolute", "prismatic", "fixed", or R, P, F), `a`, `b` [m], `alpha`, `theta` [rad, or degrees],
    `mass` [kg], `com` [m] and `inertia` about it [kg m^2] in frame i+1 (standard) or i (modified), `parent` (the number
    of a row from 0, a name, or "ground"; by default the previous row), `name`, `limits`, `damping`, `friction`,
    `armature`; modified rows may add `gamma` and `epsilon`. Missing numbers are zero. Standard rows also define the
    frames "frame_2", "frame_3", ... of the paper, and "tool" at the last one. `tool` is another pose of this frame in
    the last row's frame: a translation [m], a 4 x 4 matrix, a Placement or a table of one. `frames` and `loops` are
    parts, or tables as in TOML files. `lenient` accepts inertias that no body can have.
    """
    bodies, joints, made = parts_from_dh(list(rows), convention=convention, degrees=degrees, tool=tool)
    return build_mechanism(
        name,
        bodies,
        joints,
        frames=[*made, *(_part(x, Frame, toml_parts.frame, f"frame {i}") for i, x in enumerate(frames, 1))],
        loops=[_part(x, Loop, toml_parts.loop, f"loop {i}") for i, x in enumerate(loops, 1)],
        gravity=vector(gravity, "gravity"),
        parameters=parameters,
        guess=guess or {},
        lenient=lenient,
    )


T = TypeVar("T")


def _part(x: object, kind: type[T], read: Callable[[object, str], T], where: str) -> T:
    """Return a part unchanged, or the part of a table."""
    return x if isinstance(x, kind) else read(x, where)


def parts_from_dh(
    table: Sequence[object],
    *,
    convention: str = "standard",
    degrees: bool = False,
    bodies: Iterable[str] = (),
    tool: object = None,
) -> Parts:
    """Return bodies, joints and frames of a table; parents may also be other bodies, named in `bodies`."""
    if name(convention, at("dh", "convention")) not in CONVENTIONS:
        raise unknown_name("convention", convention, CONVENTIONS, where=at("dh", "convention"))
    standard = convention == "standard"
    if not table:
        raise ModelError("the table has no rows", where=at("dh"), remedy="give one row per moving body")
    rows = [known_keys(row, ROW if standard else (*ROW, *BRANCH), _row(i)) for i, row in enumerate(table)]
    names = [name(row.get("name", f"link{i + 1}"), below(_row(i), "name")) for i, row in enumerate(rows)]
    index = {label: i for i, label in enumerate(names)}
    others = (*bodies, GROUND)
    out: Parts = ([], [], [])
    ends = [_end(row, degrees, _row(i)) if standard else Placement() for i, row in enumerate(rows)]
    for i, row in enumerate(rows):
        where = _row(i)
        parent = _parent(row, i, names, index, others)
        if standard:
            start = ends[index[parent]] if parent in index else Placement()
        else:
            start = _start(row, degrees, where)
        out[0].append(_body(row, names[i], ends[i], where))
        out[1].append(_joint(row, i, parent, names[i], start))
        if standard:
            out[2].append(Frame(f"frame_{i + 2}", names[i], ends[i]))
    if tool is not None or (standard and "tool" not in index and "tool" not in others):
        out[2].append(Frame("tool", names[-1], _seen_from(ends[-1], tool_placement(tool, "tool"))))
    return out


def tool_placement(x: object, where: str) -> Placement:
    """Return the placement of a Placement, a table of one, a translation, a 4 x 4 matrix, or None."""
    if x is None or isinstance(x, Placement):
        return x or Placement()
    if isinstance(x, Mapping):
        return placement(known_keys(x, PLACEMENT, where), where)
    items = sequence(x, where)
    if len(items) != 4:
        return Placement(vector(items, where))
    rows = [numbers(row, where, 4) for row in items]
    if rows[3] != (0.0, 0.0, 0.0, 1.0):
        raise ModelError(
            f"the last row of the matrix is {rows[3]}",
            where=where,
            remedy="give a 4 x 4 pose that ends with 0, 0, 0, 1",
        )
    return Placement(*zip(*((row[3], row[:3]) for row in rows[:3]), strict=True))


def _seen_from(end: Placement, inner: Placement) -> Placement:
    return Placement(add(end.translation, times(end.rotation, inner.translation)), matmul(end.rotation, inner.rotation))


def _end(row: Mapping[str, object], degrees: bool, where: str) -> Placement:
    """Return the pose of frame i+1 in its body's frame: Rz(theta) Tz(b) Tx(a) Rx(alpha)."""
    a, alpha, b, theta = _numbers(row, GEOMETRY, degrees, where)
    turn = _turn(2, theta, degrees)
    return Placement(times(turn, (a, 0.0, b)), matmul(turn, _turn(0, alpha, degrees)))


def _start(row: Mapping[str, object], degrees: bool, where: str) -> Placement:
    """Return the pose of frame i in its parent's: Rz(gamma) Tz(epsilon) Rx(alpha) Tx(a) Tz(b) Rz(theta)."""
    a, alpha, b, theta, gamma, epsilon = _numbers(row, (*GEOMETRY, *BRANCH), degrees, where)
    turn = matmul(_turn(2, gamma, degrees), _turn(0, alpha, degrees))
    return Placement(add((0.0, 0.0, epsilon), times(turn, (a, 0.0, b))), matmul(turn, _turn(2, theta, degrees)))


ANGLES = ("alpha", "theta", "gamma")
LARGEST = 5.0 * math.pi
"""The largest angle of a table [rad], two and a half revolutions: above are degrees that were not declared."""


def _numbers(row: Mapping[str, object], keys: Sequence[str], degrees: bool, where: str) -> list[Scalar]:
    """Return lengths and angles of a row; angles that can only be degrees are refused unless they are declared so."""
    values = [number(row.get(key, 0.0), below(where, key)) for key in keys]
    for key, x in zip(keys, values, strict=True):
        if key in ANGLES and not degrees and is_number(x) and abs(x) > LARGEST:
            raise ModelError(
                f"{x:g} rad are {abs(x) / (2 * math.pi):.1f} revolutions",
                where=below(where, key),
                remedy="if the table is in degrees, declare it: degrees=True, degrees = true below [dh], or a line "
                "# degrees: true in a .csv file",
            )
    return values


def _turn(k: int, angle: Scalar, degrees: bool) -> Matrix:
    """Return the rotation about axis k, exact at multiples of 90 degrees."""
    if degrees and is_number(angle):
        angle = math.remainder(angle, 360.0)
        if angle % 90 == 0:
            c, s = ((1.0, 0.0), (0.0, 1.0), (-1.0, 0.0), (0.0, -1.0))[int(angle // 90) % 4]
            return Planar(k, c, s).matrix()
    if degrees:
        angle = angle * (math.pi / 180)
    return Planar(k, snap(cos(angle)), snap(sin(angle))).matrix()


def _body(row: Mapping[str, object], label: str, end: Placement, where: str) -> Body:
    """Return the body, with center of mass and inertia transformed from frame i+1 to the body's frame."""
    com = vector(row.get("com", (0.0, 0.0, 0.0)), below(where, "com"))
    moments = inertia(row.get("inertia", (0.0,) * 6), below(where, "inertia"))
    return Body(
        label,
        number(row.get("mass", 0.0), below(where, "mass")),
        add(end.translation, times(end.rotation, com)),
        to_moments(Full(end.rotation).congruence(from_moments(moments))),
    )


def _joint(row: Mapping[str, object], i: int, parent: str, child: str, placement: Placement) -> Joint:
    where = _row(i)
    kind = _kind(name(require(row, "joint", where), below(where, "joint")))
    if kind not in JOINTS:
        raise unknown_name("joint", kind, JOINTS, where=below(where, "joint"))
    label: Any = row.get("name", f"joint{i + 1}")  # checked by Joint
    return Joint(
        label,
        kind,
        parent,
        child,
        placement,
        limits=limits(row.get("limits", {}), below(where, "limits")),
        **losses(row, where),
    )


def _kind(text: str) -> str:
    """Return the kind of a joint that is given by its name or its letter."""
    return LETTERS.get(text.upper(), text)


def _row(i: int) -> Where:
    return Where(f"row {i + 1}", (*ROWS, i))


def _parent(row: Mapping[str, object], i: int, names: list[str], index: dict[str, int], others: tuple[str, ...]) -> str:
    """Return the name of the parent of a row: a body or the ground."""
    where = below(_row(i), "parent")
    parent = row.get("parent", names[i - 1] if i else GROUND)
    if isinstance(parent, str):
        if parent not in index and parent not in others:
            raise unknown_name("row", parent[:MAX_NAME], [*names, *others], where=where)
        return parent
    if isinstance(parent, bool) or not isinstance(parent, SupportsIndex):
        raise ModelError(f"{sort(parent)} where a row belongs", where=where, remedy="give a number from 0, or a name")
    if not 0 <= index_of(parent) < len(names):
        raise ModelError("there is no such row", where=where, remedy=f"give a row from 0 to {len(names) - 1}")
    return names[index_of(parent)]


# --- Reader of DH tables as CSV: a header line of the keys, then one line per row; lines that start with # are remarks.
#
# Without a header, lines begin with the joint, and the columns are the first of COLUMNS, without gamma and epsilon.
#
# `# convention: modified`, `# degrees: true`, `# gravity: 0 0 -9.81`, `# name: arm`, `# tool: 0 0 0.1` (a translation
# from the last frame) and `# lenient: true` are settings, which arguments override.

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
            if not header:
                header, is_row = _header(cells, report, line)
                if not is_row:
                    continue
            rows.append((line, _csv_row(header, cells, file, line)))
    if not header:
        raise ModelError("there is no header", remedy="begin with a line such as joint,a,alpha,b,theta,mass", file=file)
    try:
        mechanism = mechanism_from_dh([row for _, row in rows], **(said | settings))
    except ModelError as error:
        row = error.path[2] if error.path[:2] == ROWS and len(error.path) > 2 else None
        raise error.located(file, rows[row][0] if isinstance(row, int) else None) from None
    report.read(size_text(mechanism))
    report_tolerated(mechanism, report)
    return mechanism, report


def _setting(comment: str, report: Report, line: int) -> dict[str, object]:
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


def _header(cells: list[str], report: Report, line: int) -> tuple[list[str], bool]:
    """Return the names of the columns, and whether the line is the first row already: a file without a header."""
    file = report.file
    if _kind(cells[0]) in JOINTS:
        columns = [key for key in COLUMNS if key not in BRANCH][: len(cells)]
        report.suspect(f"there is no header: the columns were read as {', '.join(columns)}", line)
        return columns, True
    if cells[0][:1].isdigit() or cells[0][:1] in ("-", "+", "."):
        raise ModelError(
            f"there is no header above {quote(cells[0])}",
            remedy="begin with a line such as joint,a,alpha,b,theta,mass, or each row with revolute or R",
            file=file,
            line=line,
        )
    for i, cell in enumerate(cells):
        if cell not in COLUMNS:
            raise unknown_key("column", cell, COLUMNS, file=file, line=line)
        if cell in cells[:i]:
            raise ModelError(f"two columns have the name {cell!r}", remedy="keep one of them", file=file, line=line)
    if "joint" not in cells:
        remedy = "add one, with revolute, prismatic or fixed (R, P, F) in each row"
        raise ModelError("there is no column 'joint'", remedy=remedy, file=file, line=line)
    return cells, False


def _csv_row(header: list[str], cells: list[str], file: str, line: int) -> dict[str, Any]:
    """Return a line as a row of `mechanism_from_dh`; empty cells are left out."""
    filled = filled_cells(header, cells, file, line)
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
