"""Visits of the statements of a kernel, for targets and checks: one by one, all that are nested, and their operands."""

from __future__ import annotations

from collections.abc import Iterable, Iterator

from .form import Call, EachLane, Let, Loop, Operand, Put, Repeat, Statement, Store, When, While

METHODS = {
    Let: "let", Store: "store", Put: "put", Call: "call", Loop: "loop", Repeat: "repeat", While: "while_",
    When: "when", EachLane: "each_lane",
}  # fmt: skip
"""The method of a visitor for each kind of statement, which is its only argument."""


def visit(visitor: object, body: Iterable[Statement]) -> None:
    """Call the method of each statement in order; statements inside of others are left to these methods."""
    for statement in body:
        getattr(visitor, METHODS[type(statement)])(statement)


def nested(s: Statement) -> tuple[Statement, ...]:
    """Return the statements directly inside of a statement."""
    if isinstance(s, While):
        return (*s.test, *s.body)
    return s.body if isinstance(s, Loop | Repeat | When | EachLane) else ()


def every(body: Iterable[Statement]) -> Iterator[Statement]:
    """Yield all statements, each before those inside of it."""
    for s in body:
        yield s
        yield from every(nested(s))


def operands(s: Statement) -> tuple[Operand | str, ...]:
    """Return the operands of a statement without those of the statements inside of it."""
    match s:
        case Let():
            return s.args
        case Store():
            return (s.index, s.value)
        case Put():
            return (*s.indices, s.value)
        case Call():
            return (s.first,)
        case Loop():
            return (s.stop,)
        case Repeat():
            return (s.again,)
        case While() | When():
            return (s.condition,)
        case EachLane():
            return ()
