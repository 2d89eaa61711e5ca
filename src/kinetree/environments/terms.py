"""Terms of rewards and limits of episodes by name, for tasks in Python and in files."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass
from typing import Any

from .._support.checks import number, positive
from ..algebra.scalars import Scalar, absolute, exp, sqrt
from ..errors import InputError, brief, unknown_name
from .tasks import Moment

Names = str | tuple[str, ...]
"""The name of a value, or several names: see Moment.value."""


def squares(values: Iterable[Scalar]) -> Scalar:
    """Return the sum of the squares of some values."""
    return _sum(x * x for x in values)


def near(error: Scalar, width: float) -> Scalar:
    """Return exp(-error / width^2) of a sum of squares: 1 without an error, and 0 far away."""
    return exp(-(error * (1.0 / width**2)))


def _sum(values: Iterable[Scalar]) -> Scalar:
    total: Scalar = 0.0
    for x in values:
        total = total + x
    return total


MEASURES: dict[str, Callable[[list[Scalar], float], Scalar]] = {
    "sum": lambda values, _: _sum(values),
    "squares": lambda values, _: squares(values),
    "distance": lambda values, _: sqrt(squares(values)),
    "absolute": lambda values, _: _sum(absolute(x) for x in values),
    "near": lambda values, width: near(squares(values), width),
}
"""What becomes of the differences between two lists of values, by the kind of a term."""
WIDTH = ("near",)
"""The kinds with a width."""


@dataclass(frozen=True)
class Term:
    """A term of a reward: `weight` times a measure of the values `of` some names, less those `to` which they should be.

    The kinds are "sum", "squares" (their sum), "distance" (its root), "absolute" (the sum of absolute values) and
    "near": exp(-squares / width^2), which is 1 where all are as they should be. `of` and `to` are names of values or
    lists of them, and `to` may have numbers; see `Moment.value` for the names. A constant term has no `of`: its value
    is its weight.
    """

    kind: str = "sum"
    of: Names = ()
    to: Any = 0.0
    weight: float = 1.0
    width: float | None = None

    def __post_init__(self) -> None:
        """Check the kind, the names and the numbers."""
        if self.kind not in MEASURES:
            raise unknown_name("kind of term", str(self.kind), MEASURES)
        object.__setattr__(self, "of", _listed(self.of, "of"))
        to = self.to if isinstance(self.to, list | tuple) else (self.to,)
        object.__setattr__(self, "to", tuple(x if isinstance(x, str) else number(x, "to") for x in to))
        object.__setattr__(self, "weight", number(self.weight, "weight"))
        if (self.width is None) == (self.kind in WIDTH):
            wanted = "needs a width, such as width=0.1" if self.kind in WIDTH else "has no width; leave it out"
            raise InputError(f"a term of kind {self.kind!r} {wanted}")
        if self.width is not None:
            object.__setattr__(self, "width", positive(self.width, "width"))
        if not self.of and (self.kind, self.to) != ("sum", (0.0,)):
            raise InputError(f"a term of kind {self.kind!r} needs the names of its values: give of")

    def __call__(self, now: Moment) -> Scalar:
        """Return the term at a moment."""
        if not self.of:
            return self.weight
        return self.weight * MEASURES[self.kind](_differences(now, self.of, self.to), self.width or 1.0)


@dataclass(frozen=True)
class Limit:
    """A condition that ends an episode: a value `of` a name is below or above a bound, or one of several values is.

    With a `kind` of terms, the condition is about the measure of all values, such as their "distance" `to` others.
    """

    of: Names
    below: float | None = None
    above: float | None = None
    kind: str | None = None
    to: Any = 0.0

    def __post_init__(self) -> None:
        """Check the bounds."""
        if self.kind in WIDTH:
            raise InputError(f"a limit has no kind {self.kind!r}; take 'distance' or 'squares'")
        object.__setattr__(self, "of", _listed(self.of, "of"))
        for name in ("below", "above"):
            if getattr(self, name) is not None:
                object.__setattr__(self, name, number(getattr(self, name), name))
        if self.below is None and self.above is None:
            raise InputError(f"a limit of {', '.join(self.of)} has no bound; give below or above")
        Term("sum" if self.kind is None else self.kind, self.of, self.to)

    def __call__(self, now: Moment) -> Any:
        """Return the condition at a moment."""
        to = Term(self.kind or "sum", self.of, self.to).to
        values = _differences(now, self.of, to)
        if self.kind is not None:
            values = [MEASURES[self.kind](values, 1.0)]
        found = [x < self.below for x in values if self.below is not None]
        found += [x > self.above for x in values if self.above is not None]
        whole = found[0]
        for one in found[1:]:
            whole = whole | one
        return whole


def _listed(names: Any, key: str) -> tuple[str, ...]:
    found = (names,) if isinstance(names, str) else tuple(names) if isinstance(names, list | tuple) else (names,)
    if not all(isinstance(x, str) for x in found):
        raise InputError(f"{key} is {brief(names)}; give the name of a value, or a list of names")
    return found


def _differences(now: Moment, of: Sequence[str], to: Sequence[str | float]) -> list[Scalar]:
    """Return the values of names, less others or numbers; a single one is that of all."""
    values, wanted = (_values(now, x) for x in (of, to))
    if len(wanted) == 1:
        wanted = wanted * len(values)
    if len(wanted) != len(values):
        raise InputError(f"{', '.join(of)} has {len(values)} numbers, and to has {len(wanted)}; give as many, or one")
    return [x - y for x, y in zip(values, wanted, strict=True)]


def _values(now: Moment, names: Sequence[str | float]) -> list[Scalar]:
    out: list[Scalar] = []
    for name in names:
        found = now.value(name) if isinstance(name, str) else name
        out += found if isinstance(found, list) else [found]
    return out
