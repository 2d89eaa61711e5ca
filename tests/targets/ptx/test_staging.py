"""The layout of shared memory: banks, alignment, and blocks that do not disturb each other."""

from __future__ import annotations

import pytest

import everyday
import kinetree as kt
from kinetree.compiler.ir.operations import Op
from kinetree.targets.ptx.schedule import BUDGET, last_uses
from kinetree.targets.ptx.staging import CHUNK, LIMIT, WARP, Block, Place, layout, row_pitch
from native_program import traced

BANKS, BANK = 32, 4
"""The banks of shared memory, and the bytes of each that are accessed at the same time."""


def conflicts(pitch: int, width: int) -> int:
    """Return the most lanes that use the same bank, where all load `width` bytes with a pitch [bytes].

    The lanes that are served together load 128 bytes.
    """
    together = BANKS * BANK // width
    used = [0] * BANKS
    for lane in range(together):
        for word in range(width // BANK):
            used[(lane * pitch // BANK + word) % BANKS] += 1
    return max(used)


@pytest.mark.parametrize("size", [4, 8])
def test_rows_use_different_banks(size):
    """Load chunks of rows without conflicts, and numbers of other rows with at most two lanes per bank."""
    for count in range(2, 100):
        pitch = row_pitch(count, size)
        assert pitch >= count
        if count * size % CHUNK == 0:
            assert pitch * size % CHUNK == 0 and conflicts(pitch * size, CHUNK) == 1
        else:
            assert pitch == count and conflicts(pitch * size, size) <= 2


def test_columns_use_different_banks():
    """Place numbers of neighboring lanes next to each other."""
    found = layout(traced(lambda *x: [a * 3.0 for a in x], 40), 8, rows=False)
    assert found.inputs == (Block(0, 40, 1, WARP),) and found.outputs == (None,) and found.pitches == [1]


@pytest.mark.parametrize("size", everyday.some([4, 8]))
@pytest.mark.parametrize("name", ["stewart", "three_rrr"])
def test_numbers_do_not_overwrite_others(name, size, monkeypatch):
    """Use each number of a warp's memory for one thing at a time: inputs, waiting values, results."""
    monkeypatch.setitem(BUDGET, size, 30)
    program = kt.load(name).function("forward_dynamics").program
    found = layout(program, size, rows=True)
    assert found.numbers * size <= LIMIT
    taken: dict[int, list[tuple[int, int, int]]] = {}

    def use(place: Place, start: int, end: int) -> None:
        for lane in (0, 1, 30, 31):
            number = place.offset + lane * place.pitch
            assert 0 <= number < found.numbers
            for _, first, last in taken.setdefault(number, []):
                assert start > last or end < first
            taken[number].append((lane, start, end))

    final, last = last_uses(program), len(program.ops)
    at_home = {k for k, op in enumerate(program.ops) if op[0] is Op.INPUT and found.inputs[op[1]] is not None}
    for k in at_home:
        _, group, index = program.ops[k]
        block = found.inputs[group]
        assert block is not None
        use(block.place(index), 0, final.get(k, k))
    for block, entries in zip(found.outputs, program.results, strict=True):
        assert block is not None and block.start * size % CHUNK == 0
        for e, k in enumerate(entries):
            use(block.place(e), k, last)
    moves = [(k, m) for k in sorted(found.moves) for m in found.moves[k]]
    waiting = {m.value for _, m in moves} - at_home
    assert len(waiting) > 20
    for value in waiting:
        own = [(k, m) for k, m in moves if m.value == value]
        assert [m.back for _, m in own] == [False] + [True] * (len(own) - 1)
        assert len({m.place for _, m in own}) == 1
        use(found.places[own[0][1].place], own[0][0], own[-1][0])


def test_early_reads_leave_room_for_results():
    """Place results over inputs that all threads have read."""
    program = traced(lambda *x: [a * 3.0 for a in x], 40)
    found = layout(program, 8, rows=True, early=True)
    assert found.inputs == found.outputs == (Block(0, 40, 42, 1),) and found.numbers == WARP * 42
