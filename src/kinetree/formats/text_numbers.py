"""Strict reading of text: UTF-8 files of bounded size, and finite ASCII decimals without spellings of Python alone."""

from __future__ import annotations

import csv
import math
import re
from collections.abc import Collection, Sequence
from pathlib import Path

from ..errors import ModelError, quote

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
        raise ModelError(
            f"{len(words) if len(words) <= count else f'more than {count}'} numbers in {quote(text)}",
            where=where,
            remedy=f"give {count} decimals with spaces between them",
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
