"""Stores of whole blocks of rows that follow each other without gaps, the usual layout of batches.

All rows of a block are then at known distances from the first, so that no addresses of rows are computed and kept. For
matrices of arms, this saves a third of the instructions of their stores.
"""

from __future__ import annotations

from collections.abc import Sequence

from ...ir.program import Array, Program
from .block_checks import pieces, raise_top
from .dense_rows import store_piece, transposed
from .writer import Text

SHORTEST, LONGEST = 16, 128
"""The least and the most entries of a row that is stored this way: few have no loop, and many are stored by lines."""

LEAST = 100
"""The least number of entries of all such rows of a sample; for fewer, such as one matrix, nothing is gained."""


def packed_outputs(program: Program) -> list[int]:
    """Return the outputs that are stored as packed rows where their layout permits it."""
    found = [g for g, a in enumerate(program.outputs) if SHORTEST <= a.size <= LONGEST]
    return found if sum(program.outputs[g].size for g in found) >= LEAST else []


def store_packed(t: Text, lanes, k: int, a: Array, at: int, otherwise) -> None:
    """Write the store of the rows of array k, packed if %full and its samples follow each other, else as given."""
    length = a.size * lanes.bits // 8
    packed = t.new(f"and i1 %full, {t.new(f'icmp eq i64 %s{k}, {length}')}")

    def store() -> None:
        to = t.new(f"getelementptr i8, ptr %p{k}, i64 {t.new(f'mul i64 %i, {length}')}")
        offsets = t.new(f"getelementptr i64, ptr @offsets, i64 {at}")
        t.put(f"  call void @packed{a.size}(ptr %out, ptr {offsets}, ptr {to}, ptr %top_out)")

    t.either(packed, store, otherwise)


def functions(program: Program, lanes, w, slots: Sequence[int]) -> list[str]:
    """Return the functions that store packed rows, one per length, and the places of all entries in the block."""
    lengths = sorted({program.outputs[g].size for g in packed_outputs(program)})
    if not lengths:
        return []
    places = ", ".join(f"i64 {j * lanes.count * lanes.bits // 8}" for j in slots)
    table = f"@offsets = internal constant [{len(slots)} x i64] [{places}]"
    return [table, *(_function(n, lanes, w) for n in lengths)]


def _function(n: int, lanes, w) -> str:
    """Return the function that stores a block of rows of n entries, whose places in the block are at %offsets."""
    V, L, S = lanes.vector, lanes.count, lanes.scalar
    t = Text()
    t.put(
        f"define internal void @packed{n}(ptr noalias readonly align 64 %out, ptr noalias readonly %offsets, "
        "ptr noalias %to, ptr noalias align 64 %top_out) noinline #0 {",
        "entry:",
    )

    def piece(start: str, used: int) -> None:
        first, to = (t.new(f"getelementptr {x}, ptr {p}, i64 {start}") for x, p in (("i64", "%offsets"), (S, "%to")))
        columns = []
        for j in range(used):
            offset = t.new(f"load i64, ptr {t.new(f'getelementptr i64, ptr {first}, i64 {j}')}")
            columns.append(t.new(f"load {V}, ptr {t.new(f'getelementptr i8, ptr %out, i64 {offset}')}, align 64"))
        raise_top(t, lanes, "%top_out", columns)
        for lane, x in enumerate(transposed(t, lanes, columns + ["zeroinitializer"] * (L - used))):
            store_piece(t, lanes, t.new(f"getelementptr {S}, ptr {to}, i64 {lane * n}"), x, used)

    pieces(t, n, L, piece)
    t.put("  ret void", "}")
    w.used |= t.used
    return t.text()
