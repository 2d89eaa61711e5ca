"""Typed values from untyped data (TOML tables, DH rows, text); each error has its location and a remedy."""

from __future__ import annotations

import csv
import math
import re
from collections.abc import Collection, Iterable, Mapping, Sequence
from pathlib import Path
from typing import Any

from .._support.checks import plain
from .._support.tables import count_text
from ..algebra.rotations import from_axis_angle, from_euler, from_quaternion, from_rpy
from ..algebra.scalars import Scalar, is_number, sqrt
from ..algebra.vectors import IDENTITY, ZERO, Matrix, Vector, dot, scale, to_moments
from ..errors import Advice, ModelError, UnknownNameError, at, below, path_of, quote, unknown_name
from ..model import Expression, Number, Placement, parse
from ..model.part_fields import MAX_NAME, axis_of

# --- Strict reading of text: UTF-8 files of bounded size, and finite ASCII decimals without spellings of Python alone

MAX_BYTES = 64 * 2**20
"""Largest file [bytes], to bound time and memory."""
MAX_DIGITS = 400
"""Longest text of one number [characters]: a double never needs more."""
SPACE = " \t\r\n"

_DECIMAL = re.compile(r"[+-]?(?:[0-9]+\.?[0-9]*|\.[0-9]+)(?:[eE][+-]?[0-9]+)?")


def file_text(path: str | Path) -> str:
    """Return the text of a UTF-8 file of bounded size, or raise ModelError."""
    try:
        with open(path, "rb") as stream:
            data = stream.read(MAX_BYTES + 1)
    except (OSError, ValueError) as error:
        reason = error.strerror if isinstance(error, OSError) and error.strerror else str(error)
        raise ModelError(f"the file cannot be read ({reason})", remedy="check the path", file=path) from None
    if len(data) > MAX_BYTES:
        raise ModelError(
            f"the file has more than {MAX_BYTES // 2**20} MiB", remedy="describe fewer or simpler parts", file=path
        )
    try:
        return data.decode("utf-8-sig")
    except UnicodeDecodeError as error:
        raise ModelError(
            f"byte {data[error.start]:#04x} is not UTF-8",
            remedy="save the file as UTF-8",
            file=path,
            line=data.count(b"\n", 0, error.start) + 1,
        ) from None


def strict_float(text: str, *, where: str = "", file: str | Path | None = None, line: int | None = None) -> float:
    """Return the finite number of a text in ASCII decimals, such as `-1.5e-3`, or raise ModelError."""
    word = text.strip(SPACE)
    if not word:
        raise ModelError("a number is missing", where=where, remedy="give a decimal such as 0.25", file=file, line=line)
    if len(word) > MAX_DIGITS or not _DECIMAL.fullmatch(word):
        raise ModelError(
            f"{quote(word)} is not a number",
            where=where,
            remedy="give a decimal such as -1.5e-3, with digits 0 to 9, a point and no unit",
            file=file,
            line=line,
        )
    value = float(word)
    if not math.isfinite(value):
        raise ModelError(
            f"{quote(word)} is too large for a double",
            where=where,
            remedy="give a number below 1.8e308",
            file=file,
            line=line,
        )
    return value


def strict_floats(
    text: str, count: int, *, where: str = "", file: str | Path | None = None, line: int | None = None
) -> tuple[float, ...]:
    """Return `count` finite numbers from a text with spaces between them, or raise ModelError."""
    words = re.split(f"[{SPACE}]+", text.strip(SPACE), maxsplit=count + 1) if text.strip(SPACE) else []
    if len(words) != count:
        more = f"more than {count_text(count, 'number')}"
        raise ModelError(
            f"{count_text(len(words), 'number') if len(words) <= count else more} in {quote(text)}",
            where=where,
            remedy=f"give {count} decimals with spaces between them" if count != 1 else "give one decimal",
            file=file,
            line=line,
        )
    return tuple(strict_float(word, where=where, file=file, line=line) for word in words)


# --- The cells of a line of CSV ---


def csv_cells(content: str, file: str, line: int) -> list[str]:
    """Return the cells of one line without surrounding spaces; cells in double quotes may contain commas."""
    try:
        (cells,) = csv.reader([content], strict=True, skipinitialspace=True)
    except (csv.Error, ValueError) as error:
        raise ModelError(
            f"not a line of CSV ({error})", remedy="separate cells by commas", file=file, line=line
        ) from None
    return [cell.strip() for cell in cells]


def filled_cells(columns: Collection[str], cells: Sequence[str], file: str, line: int) -> dict[str, str]:
    """Return the cells of a line that are not empty, by the names of their columns."""
    if len(cells) > len(columns):
        raise ModelError(
            f"{len(cells)} cells under {len(columns)} columns",
            remedy="add a column or remove a cell",
            file=file,
            line=line,
        )
    return {key: cell for key, cell in zip(columns, cells, strict=False) if cell}


ROTATIONS = ("rotation", "rpy", "rpy_deg", "quaternion", "euler", "zxz", "zxz_deg", "axis_angle")
PLACEMENT = ("translation", *ROTATIONS)
UNIT = 1e-6
"""Largest deviation of a quaternion's length from 1: files print about six digits."""


def known_keys(table: object, known: Iterable[str], where: str) -> Mapping[str, object]:
    """Return the table, or refuse a value that is not a table or has an unknown key."""
    if not isinstance(table, Mapping):
        raise ModelError(f"{sort(table)} where a table belongs", where=where, remedy="give keys and values")
    names = known if isinstance(known, Mapping) else list(known)  # a mapping may have very many
    for key in table:
        if key not in names:
            raise unknown_key("key", str(key), names, where=where, path=(*path_of(where), key))
    return table


def unknown_key(kind: str, key: str, names: Iterable[str], **place: Any) -> UnknownNameError:
    """Return the error for a key or column that is not among `names`; those of other programs are recognized."""
    elsewhere = {theirs: ours for theirs, ours in KEYS_ELSEWHERE.items() if ours in names}
    return unknown_name(kind, key[:MAX_NAME], names, elsewhere=elsewhere, **place)


KEYS_ELSEWHERE = {"origin": "translation", "xyz": "translation", "placement": "translation", "position": "translation"}
KEYS_ELSEWHERE |= {"type": "kind", "center_of_mass": "com", "cog": "com", "limit": "limits", "qlim": "limits"}
KEYS_ELSEWHERE |= {"d": "b", "offset": "theta", "m": "mass", "r": "com", "i": "inertia", "jm": "armature"}
"""Keys that users of other formats and programs try first, in lower case, and ours of the same meaning."""


def refuse_unknown_tables(data: Mapping[str, object], known: Sequence[str]) -> None:
    """Raise ModelError for a table that is not among those that a file of some sort has, of which the first names it.

    A file of another sort is recognized by its own first table.
    """
    for key in data:
        if key not in known:
            if key in FILES and known[0] not in data:
                raise ModelError(f"the file is {FILES[key][0]}", where=at(key), remedy=FILES[key][1])
            raise unknown_name("table", key[:MAX_NAME], known, path=(key,))


FILES = {
    "mechanism": (
        "a mechanism",
        Advice("kt.load reads it", "give it to `kinetree simulate`, or name it in an experiment: mechanism = FILE"),
    ),
    "experiment": ("an experiment", "give it to `kinetree run`"),
    "study": ("a study", "give it to `kinetree study`"),
    "task": ("a task of learning", "give it to kt.env"),
}
"""The sorts of TOML files by their first table: what such a file is, and what reads it."""


def require(table: Mapping[str, object], key: str, where: str) -> object:
    """Return the value of a required key."""
    if key not in table:
        raise ModelError(f"{key!r} is missing", where=where, remedy=f"add {key} = ...")
    return table[key]


def text(x: object, where: str) -> str:
    """Return a text."""
    if not isinstance(x, str):
        raise ModelError(f"{sort(x)} where a text belongs", where=where, remedy="put it in quotes")
    return x


def name(x: object, where: str) -> str:
    """Return a name of 1 to MAX_NAME characters."""
    found = text(x, where)
    if not 0 < len(found) <= MAX_NAME:
        what = f"the name has {len(found)} characters"
        raise ModelError(what, where=where, remedy=f"give 1 to {MAX_NAME} characters")
    return found


def truth(x: object, where: str) -> bool:
    """Return true or false."""
    if not isinstance(x, bool):
        raise ModelError(f"{sort(x)} where true or false belongs", where=where, remedy="write true or false")
    return x


def number(x: object, where: str, *, infinite: bool = False) -> Scalar:
    """Return a number or an expression; a text is parsed as a formula. Infinities are refused unless `infinite`."""
    if isinstance(x, Expression):
        return x
    if isinstance(x, str):
        value = _formula(x, where)
        if isinstance(value, Expression):
            return value
    else:
        value = plain(x)
    if value is None:
        raise ModelError(
            f"{sort(x)} where a number belongs",
            where=where,
            remedy='give a number such as 0.25, or a formula in quotes such as "l1/2"',
        )
    if math.isnan(value) or (math.isinf(value) and not infinite):
        raise ModelError(f"the number is {value}", where=where, remedy="give a finite number")
    return value


def _formula(formula: str, where: str) -> Number:
    try:
        return parse(formula)
    except ModelError as error:
        raise ModelError(error.what, where=where, remedy=error.remedy) from None
    except RecursionError:
        raise ModelError(
            "a formula has too many terms", where=where, remedy="split it, with a parameter for each part"
        ) from None


def constant(x: object, where: str) -> float:
    """Return a number without parameters."""
    value = number(x, where)
    if isinstance(value, Expression):
        raise ModelError(f"{value} depends on a parameter", where=where, remedy="give a plain number here")
    return value


def sequence(x: object, where: str) -> list[object]:
    """Return the list of a list, a tuple or an array."""
    if (to_list := getattr(x, "tolist", None)) is not None:
        x = to_list()
    if not isinstance(x, list | tuple):
        raise ModelError(f"{sort(x)} where a list belongs", where=where, remedy="give numbers in brackets")
    return list(x)


def numbers(x: object, where: str, count: int | None = None) -> tuple[Scalar, ...]:
    """Return a list of numbers; their count is checked if `count` is given."""
    items = sequence(x, where)
    if count is not None and len(items) != count:
        raise ModelError(f"{len(items)} numbers", where=where, remedy=f"give {count}")
    return tuple(number(item, where) for item in items)


def vector(x: object, where: str) -> Vector:
    """Return three numbers."""
    a, b, c = numbers(x, where, 3)
    return a, b, c


def axis(x: object, where: str) -> Vector:
    """Return a direction: three numbers, or a letter such as "x" or "-z"."""
    return axis_of(x, where) if isinstance(x, str) else vector(x, where)


def one_or_more(x: object, where: str, *, infinite: bool = False) -> tuple[Scalar, ...]:
    """Return the numbers of a list, or one number as a list of one."""
    items = sequence(x, where) if isinstance(x, list | tuple) or getattr(x, "ndim", 0) else [x]
    return tuple(number(item, where, infinite=infinite) for item in items)


def matrix(x: object, where: str) -> Matrix:
    """Return a 3x3 matrix, by rows."""
    rows = sequence(x, where)
    if len(rows) != 3:
        raise ModelError(f"a matrix has {len(rows)} rows", where=where, remedy="give three rows of three numbers")
    return vector(rows[0], where), vector(rows[1], where), vector(rows[2], where)


def inertia(x: object, where: str) -> tuple[Scalar, ...]:
    """Return (xx, yy, zz, xy, yz, zx) from these six numbers or a symmetric 3x3 matrix."""
    items = sequence(x, where)
    if len(items) == 6:
        return numbers(items, where)
    if len(items) != 3:
        raise ModelError(
            f"an inertia has {len(items)} numbers", where=where, remedy="give xx, yy, zz, xy, yz, zx, or a 3x3 matrix"
        )
    m = matrix(items, where)
    for a, b in ((m[i][j], m[j][i]) for i in range(3) for j in range(i)):
        alike = a == b or (is_number(a) and is_number(b) and math.isclose(a, b, rel_tol=1e-9))
        if not alike:
            raise ModelError(f"the inertia is not symmetric: {a} and {b}", where=where, remedy="make them equal")
    return to_moments(m)


def placement(table: Mapping[str, object], where: str) -> Placement:
    """Return the placement given in a table by `translation` and one of the rotations."""
    given = [key for key in ROTATIONS if key in table]
    if len(given) > 1:
        raise ModelError(
            f"both {given[0]} and {given[1]} are given", where=below(where, given[1]), remedy="keep one of them"
        )
    shift = vector(table["translation"], below(where, "translation")) if "translation" in table else ZERO
    turn = _ROTATION[given[0]](table[given[0]], below(where, given[0])) if given else IDENTITY
    return Placement(shift, turn)


def _rpy(x: object, where: str):
    return from_rpy(*vector(x, where))


def _rpy_deg(x: object, where: str):
    return from_rpy(*_radians(x, where))


def _zxz(x: object, where: str):
    """Return the rotation of intrinsic ZXZ angles.                                             [Goncalves2023] (17)

    Differs from the paper: its entry (1, 3) is printed as s1 s3; it is s1 s2.
    """
    return from_euler("zxz", vector(x, where))


def _zxz_deg(x: object, where: str):
    return from_euler("zxz", _radians(x, where))


def _radians(x: object, where: str) -> Vector:
    """Return three angles in degrees as radians."""
    return scale(math.pi / 180, vector(x, where))


def _quaternion(x: object, where: str):
    q = numbers(x, where, 4)
    if all(map(is_number, q)):
        length = math.hypot(*q)
        if abs(length - 1) > UNIT:
            raise ModelError(
                f"the quaternion has the length {length:.9g}", where=where, remedy="give x, y, z, w of length 1"
            )
        q = tuple(c / length for c in q)
    return from_quaternion(q)


def _euler(x: object, where: str):
    table = known_keys(x, ("sequence", "angles"), where)
    letters = text(require(table, "sequence", where), where)
    if not 1 <= len(letters) <= 3 or set(letters) - set("xyz"):
        raise ModelError(
            f"{letters[:20]!r} is not a sequence of axes",
            where=where,
            remedy='give one to three of x, y, z, as in "zxz"',
        )
    return from_euler(letters, numbers(require(table, "angles", where), where, len(letters)))


def _axis_angle(x: object, where: str):
    table = known_keys(x, ("axis", "angle"), where)
    axis = vector(require(table, "axis", where), where)
    length = sqrt(dot(axis, axis))
    if is_number(length) and not 1e-9 < length < math.inf:
        raise ModelError("the axis has no direction", where=where, remedy="give three numbers, such as [0, 0, 1]")
    return from_axis_angle(scale(1.0 / length, axis), number(require(table, "angle", where), where))


_ROTATION = {
    "rotation": matrix,
    "rpy": _rpy,
    "rpy_deg": _rpy_deg,
    "quaternion": _quaternion,
    "euler": _euler,
    "zxz": _zxz,
    "zxz_deg": _zxz_deg,
    "axis_angle": _axis_angle,
}


def sort(x: object) -> str:
    """Return the sort of a value in words for a message."""
    words = {bool: "true or false", str: "a text", int: "a number", float: "a number", list: "a list", tuple: "a list"}
    if isinstance(x, Mapping):
        return "a table"
    return words.get(type(x), "nothing" if x is None else f"a {type(x).__name__}")
