"""Column: an array that stands for one scalar of the algebra, of many bodies or many states at once."""

from __future__ import annotations

from collections.abc import Callable, Iterable
from typing import Any

import numpy as np

from ..algebra.scalars import Scalar


class Column:
    """An array that behaves as one scalar; unlike an array it has no truth, and equals nothing but itself."""

    __slots__ = ("x",)

    def __init__(self, x: np.ndarray) -> None:
        """Hold an array."""
        self.x = x

    def where(self, yes: object, no: object) -> Column:
        """Return `yes` where this is true."""
        return Column(np.where(self.x, plain(yes), plain(no)))

    def atan2(self, x: object) -> Column:
        """Return the angles of the points (x, self)."""
        return Column(np.arctan2(self.x, plain(x)))

    def ratan2(self, y: object) -> Column:
        """Return the angles of the points (self, y)."""
        return Column(np.arctan2(plain(y), self.x))

    def __neg__(self) -> Column:
        return Column(-self.x)


def plain(a: object) -> Any:
    """Return the array of a column; numbers as they are."""
    return a.x if isinstance(a, Column) else a


def _function(name: str, array: Callable[..., Any]) -> Callable[[Column], Column]:
    def method(self: Column) -> Column:
        return Column(array(self.x))

    method.__name__, method.__doc__ = name, f"Return {name}(x)."
    return method


def _operator(name: str) -> Callable[[Column, Scalar], Column]:
    def method(self: Column, other: object) -> Column:
        return Column(getattr(self.x, name)(plain(other)))

    return method


_FUNCTIONS = {
    "sqrt": np.sqrt, "sin": np.sin, "cos": np.cos, "tan": np.tan, "asin": np.arcsin, "acos": np.arccos,
    "atan": np.arctan, "exp": np.exp, "log": np.log,
}  # fmt: skip
for _name, _array in _FUNCTIONS.items():
    setattr(Column, _name, _function(_name, _array))
for _name in ("add", "sub", "mul", "truediv"):
    for _full in (f"__{_name}__", f"__r{_name}__"):
        setattr(Column, _full, _operator(_full))
for _full in ("__lt__", "__gt__"):
    setattr(Column, _full, _operator(_full))


def columns(rows: Iterable[object]) -> Any:
    """Return rows of numbers as a tuple of columns."""
    table = np.array(list(rows), dtype=float)
    return tuple(map(Column, np.ascontiguousarray(table.T))) if table.size else ()


def column_matrix(matrices: Iterable[object]) -> Any:
    """Return 3x3 matrices as one of columns."""
    table = np.ascontiguousarray(np.array(list(matrices), dtype=float).reshape(-1, 9).T)
    return tuple(tuple(Column(table[3 * a + b]) for b in range(3)) for a in range(3))
