"""Directions in which an input can be displaced: its entries, or the tangent space of its coordinates."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

from ...algebra.scalars import Scalar
from ..ir.program import Array, Program
from .recorded import Recorded, Row


@dataclass(frozen=True)
class Chart:
    """The directions of an input x: `size` of them, and the Program of dx/dt for the rates of all directions.

    Without `rate`, the directions are the entries of x. The inputs of `rate` are x and the rates, in this order. It is
    linear in the rates.
    """

    size: int
    rate: Program | None = None

    @classmethod
    def of_entries(cls, array: Array) -> Chart:
        """Return the chart whose directions are the entries of an array."""
        return cls(array.size)

    def displaced(self, x: Sequence[Scalar], rates: Sequence[Scalar]) -> list[Scalar]:
        """Return the rate of each entry of x for the rates of all directions."""
        if self.rate is None:
            return list(rates)
        at, along = (a.name for a in self.rate.inputs)
        (out,) = Recorded(self.rate, {at: x, along: rates}).outputs().values()
        return out

    def rows(self, x: Sequence[Scalar]) -> list[Row]:
        """Return for each entry of x its derivatives along the directions, by the index of the direction."""
        if self.rate is None:
            return [{k: 1.0} for k in range(self.size)]
        rows: list[Row] = [{} for _ in x]
        for j in range(self.size):
            unit = [1.0 if k == j else 0.0 for k in range(self.size)]
            for row, d in zip(rows, self.displaced(x, unit), strict=True):
                if not (isinstance(d, int | float) and d == 0.0):
                    row[j] = d
        return rows
