"""Values that wait in shared memory: the budget of registers, and places that are free."""

from __future__ import annotations

from itertools import pairwise

import pytest

from kinetree.compiler.ir.operations import BOOLEANS, Op
from kinetree.compiler.ir.program import Program
from kinetree.targets.ptx.schedule import Stay, place_stays, register_stays
from native_program import traced


def there_and_back(count: int) -> Program:
    """Return a program that uses the values of a chain again in the opposite order, so that all are in use."""

    def page(*x):
        forth = [x[0] * 0.5]
        for a in x[1:]:
            forth.append(forth[-1] * 0.9 + a)
        back, out = forth[-1], []
        for a in reversed(forth):
            back = back * 0.9 + a
            out.append(back)
        return out

    return traced(page, count)


@pytest.mark.parametrize("budget", [5, 9, 30])
def test_registers_hold_the_budget(budget):
    """Find each operand in registers when it is used, and never more values there than the budget."""
    program = there_and_back(20)
    found = {s.value: s for s in register_stays(program, budget, {})}
    assert bool(found) == (budget < 20)
    count = [0] * len(program.ops)
    for k, op in enumerate(program.ops):
        uses = [i for i, other in enumerate(program.ops) if other[0] > Op.CONST and k in other[1:]]
        if op[0] is Op.CONST or not uses:
            continue
        stay = found.get(k, Stay(k, len(program.ops), ()))
        ends = [stay.out - 1 if stay.back else max(uses)]
        ends += [max(i for i in uses if i < until) for until in (*stay.back[1:], len(program.ops)) if stay.back]
        spans = list(zip((k, *stay.back), ends, strict=True))
        assert all(any(start <= i <= end for start, end in spans) for i in uses)
        for start, end in spans:
            for i in range(start, end):
                count[i] += 1
    assert max(count) <= budget


def test_conditions_stay_in_registers():
    """Move no condition to a place for numbers, however few registers there are."""

    def page(*x):
        conditions = [a < b for a, b in pairwise(x)]
        sums = [a + b for a, b in pairwise(x)]
        return [c.where(s, -s) for c, s in zip(conditions, reversed(sums), strict=True)]

    program = traced(page, 20)
    found = register_stays(program, 4, {})
    assert found and not any(program.ops[s.value][0] in BOOLEANS for s in found)


def test_values_at_home_are_not_moved_out():
    """Return inputs from their own places, and find free places for the others."""
    found = [Stay(3, 4, (9, 12)), Stay(5, 6, (8,)), Stay(7, 9, (11,)), Stay(1, 2, (10,))]
    busy = [[(0, 3)], [(0, 20)]]
    moves = place_stays(found, {1: 1}, busy, capacity=3)
    got = {(i, m.value, m.place, m.back) for i, x in moves.items() for m in x}
    assert got == {
        (4, 3, 0, False), (9, 3, 0, True), (12, 3, 0, True),
        (6, 5, 2, False), (8, 5, 2, True),
        (9, 7, 2, False), (11, 7, 2, True),
        (10, 1, 1, True),
    }  # fmt: skip
    assert not place_stays([Stay(3, 4, (9,))], {}, [[(0, 20)]], capacity=1)
