"""Motions given by a table of values, with cubic splines in between."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import KW_ONLY, dataclass
from functools import cached_property
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray

from ...errors import InputError, ModelError, unknown_name
from ...formats.csv_cells import csv_cells
from ...formats.numbers import strict_float
from ...formats.toml import file_text
from ...model.part_fields import MAX_NAME
from ..smooth import clip, where
from .motions import horner, inside
from .sampling import Lists, as_time

MAX_KNOTS = 2000
"""The most times of a compiled table: each adds a comparison and four selections per coordinate to every step."""
ENDS = ("not-a-knot", "natural", "clamped")
"""The conditions at the ends of a spline, by the names of SciPy."""


@dataclass(frozen=True, eq=False)
class Table:
    """Values [times, coordinates] at increasing times [s], joined by a cubic spline; at rest before and after.

    `ends` is the condition at both ends of the spline: "not-a-knot", "natural" (zero acceleration) or "clamped" (zero
    velocity, so that the motion begins and ends smoothly).
    """

    times: Any
    values: Any
    _: KW_ONLY
    ends: str = "not-a-knot"

    def __post_init__(self) -> None:
        """Read and check the numbers."""
        times, values = _array(self.times, "times"), _array(self.values, "values")
        if values.ndim == 1:
            values = values[:, None]
        if times.ndim != 1 or values.ndim != 2 or len(times) != len(values):
            raise InputError(
                f"the times of Table have shape {times.shape}, the values {values.shape}; "
                "give [n] and [n, coordinates], one row of values per time",
                path=("values",),
            )
        if len(times) < 2:
            raise InputError(f"Table has {len(times)} times; give two or more", path=("times",))
        falls = np.flatnonzero(np.diff(times) <= 0)
        if falls.size:
            k = int(falls[0])
            raise InputError(
                f"the times of Table must rise: {times[k + 1]:g} s (number {k + 2}) comes after {times[k]:g} s",
                path=("times",),
            )
        if self.ends not in ENDS:
            raise InputError(f"the ends of Table are {self.ends!r}; give one of {', '.join(ENDS)}", path=("ends",))
        object.__setattr__(self, "times", times)
        object.__setattr__(self, "values", values)

    @classmethod
    def from_csv(cls, path: str | Path, *, columns: Sequence[str] | None = None, ends: str = "not-a-knot") -> Table:
        """Read a table: a header whose first cell is t or time, then one line of numbers per time; # starts a comment.

        `columns` are the names of the coordinates in the required order; by default all columns.
        """
        names, rows = _read(file_text(path), str(path))
        for name in columns or ():
            if name not in names[1:]:
                raise unknown_name("column", name, names[1:], file=path)
        chosen = [names.index(name) for name in columns] if columns else range(1, len(names))
        numbers = np.array(rows, dtype=float).reshape(len(rows), len(names))
        try:
            return cls(numbers[:, 0], numbers[:, list(chosen)], ends=ends)
        except InputError as error:
            raise ModelError(str(error), file=path) from None

    @cached_property
    def coefficients(self) -> NDArray[np.float64]:
        """The cubic of each interval in powers of the time since its start, [4, intervals, coordinates]."""
        from scipy.interpolate import CubicSpline

        return CubicSpline(self.times, self.values, bc_type=self.ends).c[::-1]

    def __call__(self, t: Any) -> Lists:
        """Return q, qd, qdd."""
        t = as_time(t) - float(self.times[0])
        T = float(self.times[-1] - self.times[0])
        u = clip(t, 0.0, T)
        starts = self.times[:-1] - self.times[0]
        since, cubics = (_looked_up if isinstance(u, float | np.ndarray | np.generic) else _chosen)(
            u, starts, self.coefficients
        )
        q, qd, qdd = [], [], []
        for c0, c1, c2, c3 in cubics:
            q.append(horner([c0, c1, c2, c3], since))
            qd.append(inside(t, T, horner([c1, c2 * 2.0, c3 * 3.0], since)))
            qdd.append(inside(t, T, horner([c2 * 2.0, c3 * 6.0], since)))
        return q, qd, qdd


def column_names(path: str | Path) -> list[str]:
    """Return the names of the columns of a table in a CSV file, without that of the times."""
    return _read(file_text(path), str(path))[0][1:]


def _looked_up(u: Any, starts: NDArray, cubics: NDArray):
    """Return the time since the start of the interval of each u, and its cubics, by binary search."""
    k = np.clip(np.searchsorted(starts, u, side="right") - 1, 0, len(starts) - 1)
    return u - starts[k], [[cubics[p, k, j] for p in range(4)] for j in range(cubics.shape[2])]


def _chosen(u: Any, starts: NDArray, cubics: NDArray):
    """Return the same for a traced u, by a binary tree of selections."""
    if len(starts) + 1 > MAX_KNOTS:
        raise InputError(
            f"Table has {len(starts) + 1} times; at most {MAX_KNOTS} can be compiled; "
            "take fewer of them: a cubic spline needs few"
        )

    def pick(values: list[float]) -> Any:
        def part(low: int, high: int) -> Any:
            if high - low == 1:
                return values[low]
            middle = (low + high) // 2
            return where(u < float(starts[middle]), part(low, middle), part(middle, high))

        return part(0, len(values))

    picked = [[pick(cubics[p, :, j].tolist()) for p in range(4)] for j in range(cubics.shape[2])]
    return u - pick(starts.tolist()), picked


def _array(x: Any, what: str) -> NDArray[np.float64]:
    try:
        out = np.array(x, dtype=float)
    except (TypeError, ValueError):
        raise InputError(f"the {what} of Table are no array of numbers", path=(what,)) from None
    if not np.isfinite(out).all():
        first = np.argwhere(~np.isfinite(out))[0].tolist()
        raise InputError(f"the {what} of Table are not all finite: entry {first}", path=(what,))
    out.setflags(write=False)
    return out


def _read(text: str, file: str) -> tuple[list[str], list[list[float]]]:
    names: list[str] = []
    rows: list[list[float]] = []
    for line, content in enumerate(text.splitlines(), 1):
        content = content.partition("#")[0].strip()
        if not content:
            continue
        cells = csv_cells(content, file, line)
        if not names:
            names = _header(cells, file, line)
        elif len(cells) != len(names):
            raise ModelError(
                f"{len(cells)} cells under {len(names)} columns", remedy="give every cell", file=file, line=line
            )
        else:
            rows.append([strict_float(c, where=n, file=file, line=line) for n, c in zip(names, cells, strict=True)])
    if not names:
        raise ModelError("there is no header", remedy="begin with a line such as t,joint1,joint2", file=file)
    return names, rows


def _header(cells: list[str], file: str, line: int) -> list[str]:
    if cells[0] not in ("t", "time") or len(cells) < 2:
        raise ModelError(
            f"the header begins with {cells[0][:60]!a} and has {len(cells)} columns",
            remedy="begin with t or time, then a name for each coordinate",
            file=file,
            line=line,
        )
    for i, cell in enumerate(cells):
        if not cell or len(cell) > MAX_NAME or cell in cells[:i]:
            raise ModelError(
                f"column {i + 1} has no name of its own", remedy="give each column another name", file=file, line=line
            )
    return cells
