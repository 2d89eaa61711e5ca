"""Agreement between two computations of the same numbers."""

from __future__ import annotations

from dataclasses import dataclass


@dataclass(frozen=True)
class Check:
    """An agreement: the compared quantity, the largest relative difference, and its bound."""

    what: str
    residual: float
    bound: float

    @property
    def holds(self) -> bool:
        """Whether the difference is a number within its bound."""
        return self.residual <= self.bound
