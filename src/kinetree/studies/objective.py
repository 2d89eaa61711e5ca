"""The objective of an optimization: costs of designs in the unit cube and their violations of bounds, in batches."""

from __future__ import annotations

from dataclasses import dataclass, field

import numpy as np

from ..algebra.arrays import Numbers
from .choosing import Bounds, violation
from .evaluating import evaluate_values
from .plan import Plan


@dataclass(frozen=True, eq=False)
class Judged:
    """Designs [n, d] with their measures by name, costs [n] and total violations of bounds [n].

    Violations are relative to the size of a bound. Designs that failed have infinite cost and violation.
    """

    x: Numbers
    measures: dict[str, Numbers]
    cost: Numbers
    violation: Numbers

    def __len__(self) -> int:
        """Return the number of designs."""
        return len(self.x)

    def row(self, k: int) -> Judged:
        """Return one design as a batch of one."""
        return self.rows(np.array([k]))

    def rows(self, at: np.ndarray) -> Judged:
        """Return some designs."""
        return Judged(self.x[at], {name: m[at] for name, m in self.measures.items()}, self.cost[at], self.violation[at])

    @property
    def best(self) -> int:
        """The design that violates least, and of these the one with the smallest cost."""
        return int(np.lexsort((self.cost, self.violation))[0])


def better(a: Judged, b: Judged) -> np.ndarray:
    """Return where the designs of `a` are better than those of `b`: less violation, or equal and a smaller cost."""
    return (a.violation < b.violation) | ((a.violation == b.violation) & (a.cost < b.cost))


@dataclass(eq=False)
class Objective:
    """A measure to minimize within bounds of other measures, over intervals of the varied quantities."""

    plan: Plan
    minimize: str
    subject_to: dict[str, Bounds]
    lo: Numbers
    hi: Numbers
    evaluations: int = field(default=0)

    def judged(self, x: Numbers) -> Judged:
        """Return designs of the unit cube [n, d] with cost and violation, by native batches."""
        x = np.atleast_2d(x)
        block = evaluate_values(self.plan, dict(zip(self.plan.space.names, self.quantities(x).T, strict=True)))
        self.evaluations += len(x)
        cost = np.where(np.isnan(block.measures[self.minimize]), np.inf, block.measures[self.minimize])
        total = np.where(np.isinf(cost), np.inf, 0.0)
        for name, bounds in self.subject_to.items():
            total = total + violation(block.measures[name], bounds) / scale(bounds)
        return Judged(x, block.measures, cost, total)

    def quantities(self, x: Numbers) -> Numbers:
        """Return the values of the quantities of designs in the unit cube."""
        return np.clip(self.lo + (self.hi - self.lo) * x, np.minimum(self.lo, self.hi), np.maximum(self.lo, self.hi))

    def unit(self, values: Numbers) -> Numbers:
        """Return designs of the unit cube for values of the quantities."""
        return (values - self.lo) / (self.hi - self.lo)

    def margins(self, measures: dict[str, Numbers]) -> Numbers:
        """Return the distances of measures from their bounds, relative to these; negative if violated, [n, bounds]."""
        out = []
        for name, (low, high) in self.subject_to.items():
            size = scale((low, high))
            out += [] if low is None else [(measures[name] - low) / size]
            out += [] if high is None else [(high - measures[name]) / size]
        count = len(next(iter(measures.values())))
        return np.stack(out, axis=-1) if out else np.zeros((count, 0))


def scale(bounds: Bounds) -> float:
    """Return the size of bounds, by which violations are divided."""
    return max([abs(x) for x in bounds if x is not None], default=1.0) or 1.0
