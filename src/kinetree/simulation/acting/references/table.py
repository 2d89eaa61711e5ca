"""Motions given by a table of values, with cubic splines in between."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import KW_ONLY, dataclass
from functools import cached_property
from pathlib import Path
from typing import TYPE_CHECKING, Any

import numpy as np
from numpy.typing import NDArray

from ....algebra.scalars import Numbers, Scalar
from ....errors import InputError, ModelError, unknown_name
from ....formats.fields import csv_cells, strict_float
from ....formats.toml import file_text
from ....model.part_fields import MAX_NAME
from ..smooth import clip, where
from .motions import Lists, as_time, horner, inside

if TYPE_CHECKING:
    from numpy.typing import ArrayLike

# --- Polynomials joined at increasing times, for floats, arrays and traced values ---


MAX_KNOTS = 2000
"""The most times of a compiled reference: each adds a comparison and a selection per coefficient to the traced code."""


def piecewise(times: Numbers, coefficients: Numbers, t: Scalar) -> Lists:
    """Return q, qd, qdd of polynomials between times [n + 1], whose coefficients are [degree + 1, n, coordinates].

    They are in powers of the time since the start of the interval. Before and after all of them, values rest.
    """
    t = as_time(t) - float(times[0])
    T = float(times[-1] - times[0])
    u = clip(t, 0.0, T)
    find = _looked_up if isinstance(u, float | np.ndarray | np.generic) else _chosen
    since, pieces = find(u, times[:-1] - times[0], coefficients)
    q, qd, qdd = [], [], []
    for c in pieces:
        first = [x * float(k) if k > 1 else x for k, x in enumerate(c)][1:]
        second = [x * float(k * (k - 1)) for k, x in enumerate(c)][2:]
        q.append(horner(c, since))
        qd.append(inside(t, T, horner(first, since)))
        qdd.append(inside(t, T, horner(second, since)))
    return q, qd, qdd


def _looked_up(u: Scalar, starts: NDArray, pieces: NDArray):
    """Return the time since the start of the interval of each u, and its polynomials, by binary search."""
    k = np.clip(np.searchsorted(starts, u, side="right") - 1, 0, len(starts) - 1)
    return u - starts[k], [[pieces[p, k, j] for p in range(len(pieces))] for j in range(pieces.shape[2])]


def _chosen(u: Scalar, starts: NDArray, pieces: NDArray):
    """Return the same for a traced u, by a binary tree of selections."""
    if len(starts) + 1 > MAX_KNOTS:
        raise InputError(
            f"Table has {len(starts) + 1} times; at most {MAX_KNOTS} can be compiled; "
            "take fewer of them: a cubic spline needs few"
        )

    def pick(values: list[float]) -> Scalar:
        def part(low: int, high: int) -> Scalar:
            if high - low == 1:
                return values[low]
            middle = (low + high) // 2
            return where(u < float(starts[middle]), part(low, middle), part(middle, high))

        return part(0, len(values))

    picked = [[pick(pieces[p, :, j].tolist()) for p in range(len(pieces))] for j in range(pieces.shape[2])]
    return u - pick(starts.tolist()), picked


RATES = ("qd.", "qdd.")
"""The beginnings of the names of columns with velocities and accelerations."""
ENDS = ("not-a-knot", "natural", "clamped")
"""The conditions at the ends of a spline, by the names of SciPy."""


@dataclass(frozen=True, eq=False)
class Table:
    """Values [times, coordinates] at increasing times [s], joined by a cubic spline that starts and ends at rest.

    Before and after, the reference is at rest. `ends` is the condition at both ends of the spline: "clamped" (zero
    velocity, the default), "natural" (zero acceleration) or "not-a-knot" (the first two cubics are one, as are the last
    two). The last two follow samples of a motion that does not begin or end at rest; its velocity then jumps at the
    ends. With `rates` [times, coordinates] of the values, the cubics meet these too, and `ends` has no effect. With
    `accelerations` as well, polynomials of degree 5 meet all three.
    """

    times: Any
    values: Any
    _: KW_ONLY
    ends: str = "clamped"
    rates: Any = None
    accelerations: Any = None

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
        self._read_rates()

    def _read_rates(self) -> None:
        """Read and check rates and accelerations."""
        for name in ("rates", "accelerations"):
            if getattr(self, name) is None:
                continue
            given = _array(getattr(self, name), name)
            if given.ndim == 1:
                given = given[:, None]
            if given.shape != self.values.shape:
                what = f"the {name} of Table have shape {given.shape}; give that of the values, {self.values.shape}"
                raise InputError(what, path=(name,))
            object.__setattr__(self, name, given)
        if self.accelerations is not None and self.rates is None:
            raise InputError("Table has accelerations and no rates; give both", path=("accelerations",))

    @classmethod
    def from_csv(cls, path: str | Path, *, columns: Sequence[str] | None = None, ends: str = "clamped") -> Table:
        """Read a table: a header whose first cell is t or time, then one line of numbers per time; # starts a comment.

        `columns` are the names of the coordinates in the required order; by default all columns. Columns named qd.NAME
        and qdd.NAME, for every coordinate NAME, are its velocities and accelerations.
        """
        names, rows = _read(file_text(path), str(path))
        at = {name: k for k, name in enumerate(names)}
        plain = [name for name in names[1:] if not name.startswith(RATES)]
        for name in columns or ():
            if name not in plain:
                raise unknown_name("column", name, plain, file=path)
        chosen = list(columns) if columns else plain
        numbers = np.array(rows, dtype=float).reshape(len(rows), len(names))
        more = {key: _rates(at, numbers, chosen, key, path) for key in ("rates", "accelerations")}
        try:
            return cls(numbers[:, 0], numbers[:, [at[name] for name in chosen]], ends=ends, **more)
        except InputError as error:
            raise ModelError(str(error), file=path) from None

    @cached_property
    def coefficients(self) -> NDArray[np.float64]:
        """The polynomial of each interval in powers of the time since its start, [4 or 6, intervals, coordinates]."""
        if self.rates is not None:
            return self._hermite()
        from scipy.interpolate import CubicSpline

        return CubicSpline(self.times, self.values, bc_type=self.ends).c[::-1]

    def _hermite(self) -> NDArray[np.float64]:
        """Return the polynomials that meet values and rates, and accelerations if there are any, at both ends."""
        h = np.diff(self.times)[:, None]
        (a, b), (v, w) = ((x[:-1], x[1:]) for x in (self.values, self.rates))
        way, v, w = b - a, v * h, w * h
        if self.accelerations is None:
            return np.stack([a, v / h, (3 * way - 2 * v - w) / h**2, (v + w - 2 * way) / h**3])
        f, g = self.accelerations[:-1] * h**2, self.accelerations[1:] * h**2
        third = 10 * way - 6 * v - 4 * w - (3 * f - g) / 2
        fourth = -15 * way + 8 * v + 7 * w + (3 * f - 2 * g) / 2
        fifth = 6 * way - 3 * (v + w) - (f - g) / 2
        return np.stack([a, v / h, f / (2 * h**2), third / h**3, fourth / h**4, fifth / h**5])

    def __call__(self, t: Scalar) -> Lists:
        """Return q, qd, qdd."""
        return piecewise(self.times, self.coefficients, t)


def _rates(
    at: dict[str, int], numbers: NDArray[np.float64], chosen: list[str], key: str, path: str | Path
) -> NDArray[np.float64] | None:
    """Return the columns of velocities or accelerations of all chosen coordinates; None if there are none."""
    wanted = [RATES[key == "accelerations"] + name for name in chosen]
    present = [name for name in wanted if name in at]
    if not present:
        return None
    for name in wanted:
        if name not in at:
            raise ModelError(f"there is a column {present[0]}, but none {name}", remedy=f"add {name}", file=path)
    return numbers[:, [at[name] for name in wanted]]


def column_names(path: str | Path) -> list[str]:
    """Return the names of the columns of a table in a CSV file, without the times."""
    return _read(file_text(path), str(path))[0][1:]


def _array(x: ArrayLike, what: str) -> NDArray[np.float64]:
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
    seen: set[str] = set()
    for i, cell in enumerate(cells):
        if not cell or len(cell) > MAX_NAME or cell in seen:
            raise ModelError(
                f"column {i + 1} has no name of its own", remedy="give each column another name", file=file, line=line
            )
        seen.add(cell)
    return cells
