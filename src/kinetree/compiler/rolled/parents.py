"""What a step sees beside its body: the parent outward and inward, the ground, and a frame."""

from __future__ import annotations

from typing import Any

from ...algebra.propagation import Propagation
from ...algebra.rotations import Full, Rotation
from ...algebra.spatial import Twist
from .fields import RollError, mapped

GLOBAL = ("global",)
"""The group of inputs that all bodies share: gravity, and the place of a frame on its body."""


class Outward:
    """The parent in an outward step: its fields of the same sweep, handed on from body to body."""

    def __init__(self, tree: Any, sweep: Any) -> None:
        """Belong to a sweep."""
        self._tree, self._sweep = tree, sweep

    def __getattr__(self, name: str) -> Any:
        """Return a field, of the form that all parents share."""
        if name not in self._sweep.patterns:
            base = self._sweep.base[name] = self._tree.ground.given(name)
            self._sweep.patterns.begin(name, base)
        return self._tree.carry(self._sweep, name)


class Inward:
    """The parent in an inward step, which only takes sums."""

    def __init__(self, sweep: Any, step: int, out: dict[str, Any]) -> None:
        """Belong to a step of a sweep; `out` gets what is added."""
        self.__dict__.update(_sweep=sweep, _step=step, _out=out)

    def __getattr__(self, name: str) -> Any:
        """Return what a sum begins with."""
        return _Sum(None)

    def __setattr__(self, name: str, total: Any) -> None:
        """Keep what was added."""
        if not isinstance(total, _Sum):
            raise RollError(f"the parent's {name!r} is set inward, where only += is possible")
        self._out[name] = total.value
        self._sweep.owner[name] = self._step
        if name not in self._sweep.patterns:  # a tip gets nothing from children
            self._sweep.patterns.begin(name, mapped(total.value, lambda x: 0.0))


class _Sum:
    def __init__(self, value: Any) -> None:
        self.value = value

    def __add__(self, other: Any) -> _Sum:
        return _Sum(other if self.value is None else self.value + other)


class GroundRecord:
    """The record of the ground: what a page gave it, and what inward sweeps brought."""

    def __init__(self, tree: Any) -> None:
        """Start at rest."""
        self.__dict__.update(_tree=tree, _given={"t": Twist()})

    def given(self, name: str) -> Any:
        """Return what a page gave."""
        if name not in self._given:
            raise RollError(f"the ground has no {name!r}")
        return self._given[name]

    def __setattr__(self, name: str, value: Any) -> None:
        """Take a field."""
        self._given[name] = value

    def __getattr__(self, name: str) -> Any:
        """Return a field with what the bodies added to it."""
        sweep = self._tree.carried(name, "inward")
        base = self.given(name)
        return base if sweep is None else base + self._tree.row(sweep, name, "ground")


class RolledFrame:
    """A named frame; `record` has what outward sweeps left in its body."""

    def __init__(self, tree: Any) -> None:
        """Make the frame's place an input."""
        number = tree.trace.input
        self.record = _FrameBody(tree)
        self.r: Any = tuple(number(GLOBAL, f"r{k}") for k in range(3))
        self.R: Any = tuple(tuple(number(GLOBAL, f"R{a}{b}") for b in range(3)) for a in range(3))
        self.A = Propagation(self.r, Rotation((Full(self.R),)))


class _FrameBody:
    def __init__(self, tree: Any) -> None:
        self._tree = tree

    def __getattr__(self, name: str) -> Any:
        sweep = self._tree.carried(name, "outward")
        if sweep is None:
            raise RollError(f"no outward sweep carries {name!r}")
        return self._tree.row(sweep, name, "frame")
