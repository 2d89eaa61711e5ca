"""Values of kernels that are used once, in the block of statements that computes them: they can stay on a stack."""

from __future__ import annotations

from collections import Counter
from typing import Any

from ...lanes.form import Call, EachLane, Let, Loop, Operand, Put, Repeat, Statement, Store, When, While


def used_once(body: tuple[Statement, ...]) -> set[int]:
    """Return the values with one use, in the block of statements that computes them."""
    uses: Counter[int] = Counter()
    together: set[int] = set()

    def visit(statements: tuple[Statement, ...], *more: Operand) -> None:
        """Count the uses in a block; `more` are used at its end."""
        made = {s.to for s in statements if isinstance(s, Let)}
        for s in statements:
            for x in _operands(s):
                use(x, made)
            if isinstance(s, While):
                visit(s.test, s.condition)
            if isinstance(s, Loop | While | When | EachLane):
                visit(s.body)
            elif isinstance(s, Repeat):
                visit(s.body, s.again)
        for x in more:
            use(x, made)

    def use(x: Any, made: set[int]) -> None:
        if isinstance(x, int):
            uses[x] += 1
            if x in made:
                together.add(x)

    visit(body)
    return {k for k in together if uses[k] == 1}


def _operands(s: Statement) -> tuple[Any, ...]:
    """Return the operands of a statement that are read in the block of the statement itself."""
    if isinstance(s, Let):
        return s.args
    if isinstance(s, Store):
        return (s.index, s.value)
    if isinstance(s, Put):
        return (*s.indices, s.value)
    if isinstance(s, Loop):
        return (s.stop, s.stop)  # read twice, so that it is a variable
    if isinstance(s, Call):
        return (s.first,)
    return (s.condition,) if isinstance(s, When) else ()
