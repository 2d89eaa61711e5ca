"""Results of a verification: differences and their bounds by route and quantity."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass

import numpy as np

from ..._support.optional import pip_install
from ..._support.tables import Displayed, Table
from ...algebra.scalars import Numbers
from ...errors import KinetreeError

FACTOR = 20.0
"""The factor of the bound FACTOR * eps * condition, with room for rounding; the conditions are in `_limits`."""
QUANTITIES = ("tau", "I", "gravity", "bias", "qdd")


@dataclass(frozen=True)
class Comparison:
    """A route compared with the recursion in one quantity: the largest relative difference, its bound, their ratio.

    Over several states, difference and bound are taken at the state where their ratio is largest.
    """

    difference: float
    bound: float

    @property
    def ratio(self) -> float:
        """The difference divided by its bound; NaN counts as infinite."""
        if self.difference == 0:
            return 0.0
        ratio = self.difference / self.bound if self.bound > 0 else np.inf
        return ratio if np.isfinite(ratio) else np.inf


@dataclass(frozen=True)
class Row:
    """One route: its comparisons by quantity, or the reason why it did not run, or its error."""

    name: str
    what: str
    comparisons: dict[str, Comparison]
    reason: str = ""
    failure: str = ""

    @property
    def holds(self) -> bool:
        """Whether the route agrees; true also for a route that did not run."""
        return not self.failure and all(c.ratio <= 1.0 for c in self.comparisons.values())

    @property
    def verdict(self) -> str:
        """One of "agrees", "DIFFERS", "FAILED" and "not run"."""
        if self.failure:
            return "FAILED"
        if self.reason:
            return "not run"
        return "agrees" if self.holds else "DIFFERS"


@dataclass(frozen=True, repr=False)
class Verification(Displayed):
    """The result of `arm.verify()`: true if at least one route ran and all that ran agree with the recursion.

    `condition` is the largest condition number of the inertia matrix. It is infinite if no state can be solved for qdd.
    """

    mechanism: str
    states: int
    condition: float
    rows: tuple[Row, ...]
    nothing_moves: bool = False

    def __bool__(self) -> bool:
        """Return whether at least one route ran and all that ran agree."""
        return self.nothing_moves or (all(row.holds for row in self.rows) and any(row.comparisons for row in self.rows))

    def row(self, name: str) -> Row:
        """Return a route's row by name."""
        return next(row for row in self.rows if row.name == name)

    @property
    def worst(self) -> Comparison | None:
        """The comparison nearest to its bound, or farthest beyond it."""
        all_of_them = [c for row in self.rows for c in row.comparisons.values()]
        return max(all_of_them, key=lambda c: c.ratio, default=None)

    def summary(self) -> str:
        """Return the verdict in a sentence."""
        if self.nothing_moves:
            return f"{self.mechanism} has no degrees of freedom: there is nothing to compare."
        ran = [row for row in self.rows if not row.reason]
        if not ran:
            return f"NO ROUTE RAN on {self.mechanism}: nothing was compared."
        bad = [row.name for row in ran if not row.holds]
        if bad:
            return f"{len(bad)} OF {len(ran)} ROUTES DO NOT AGREE with the recursion: {', '.join(bad)}."
        return f"All {len(ran)} routes that ran agree with the recursion, within {FACTOR:g} eps times the condition."

    def display(self) -> list[str | Table]:
        """Return the differences, a row per route and a column per quantity, with reasons, and the verdict."""
        rows = [
            (
                row.name,
                *(_cell(row.comparisons.get(name)) for name in QUANTITIES),
                row.verdict + _colon(row.reason or row.failure),
            )
            for row in self.rows
        ]
        rows.append(("bound", *(_cell(self.bound(name)) for name in QUANTITIES), ""))
        verdict = f"{self.states} states; condition of I: {self.condition:.2g}. {self.summary()}"
        return [Table(("route", *QUANTITIES, "verdict"), tuple(rows)), verdict]

    def table(self) -> str:
        """Return the differences as text, a row per route and a column per quantity, with reasons and the verdict."""
        return str(self)

    def bound(self, quantity: str) -> Comparison | None:
        """Return the tightest bound on a quantity, as a comparison of the quantity with itself."""
        bounds = [row.comparisons[quantity].bound for row in self.rows if quantity in row.comparisons]
        return Comparison(min(bounds), min(bounds)) if bounds else None


def _cell(c: Comparison | None) -> str:
    return "" if c is None else f"{c.difference:.1e}"


def _colon(text: str) -> str:
    return f": {text}" if text else ""


# --- States at which routes to the equations of motion are compared, and the results of a route at a state ---


class NotRun(KinetreeError):
    """A route does not support a mechanism, or is not installed; the message gives the reason."""


@contextmanager
def require_installed() -> Iterator[None]:
    """Raise NotRun in place of the import error of a missing package."""
    try:
        yield
    except ModuleNotFoundError as error:
        if (error.name or "").startswith("kinetree"):
            raise
        raise NotRun(f"{error.name} is not installed; {pip_install(error.name or '')}") from None


@dataclass(frozen=True)
class State:
    """One state: q [nq], qd, qdd and tau [nv], external wrenches [nb, 6], and whether I can be inverted."""

    q: Numbers
    qd: Numbers
    qdd: Numbers
    tau: Numbers
    wrenches: Numbers
    invertible: bool


@dataclass(frozen=True)
class Answers:
    """The results of a route at a state: torques for qdd, inertia matrix, gravity and bias torques, qdd for tau.

    Torques, bias and accelerations include the external wrenches, gravity does not. qdd is None where I is singular.
    """

    tau: Numbers
    I: Numbers  # noqa: E741 - the papers' letter
    gravity: Numbers
    bias: Numbers
    qdd: Numbers | None


Solver = Callable[[State], Answers]
