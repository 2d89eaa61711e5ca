"""An agreement between two routes to the same numbers."""

from __future__ import annotations

from dataclasses import dataclass


@dataclass(frozen=True)
class Check:
    """An agreement: what was compared, the largest relative difference, and what it may be."""

    what: str
    residual: float
    bound: float

    @property
    def holds(self) -> bool:
        """Whether the difference is a number within its bound."""
        return self.residual <= self.bound
