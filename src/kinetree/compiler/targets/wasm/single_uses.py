"""Values of kernels that are used once, in the block of statements that computes them: they can stay on a stack."""

from __future__ import annotations

from collections import Counter

from ...lanes.form import Let, Loop, Operand, Repeat, Statement, While
from ...lanes.visiting import nested, operands


def used_once(body: tuple[Statement, ...]) -> set[int]:
    """Return the values with one use, in the block of statements that computes them."""
    uses: Counter[int] = Counter()
    together: set[int] = set()

    def visit(statements: tuple[Statement, ...], *last: Operand) -> None:
        """Count the uses in a block, whose end uses `last`."""
        made = {s.to for s in statements if isinstance(s, Let)}
        for s in statements:
            if isinstance(s, While):
                visit(s.test, s.condition)
                visit(s.body)
            elif isinstance(s, Repeat):
                visit(s.body, s.again)
            else:
                more = (s.stop,) if isinstance(s, Loop) else ()  # it is read twice, and thus a variable
                use((*operands(s), *more), made)
                visit(nested(s))
        use(last, made)

    def use(values: tuple[Operand | str, ...], made: set[int]) -> None:
        numbers = [x for x in values if isinstance(x, int)]
        uses.update(numbers)
        together.update(made.intersection(numbers))

    visit(body)
    return {k for k in together if uses[k] == 1}
