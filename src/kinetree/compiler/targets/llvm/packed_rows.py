"""Rows of whole blocks of samples that follow each other without gaps, the usual layout of batches.

All rows are at known distances from the first, and all vectors of a block at known places. Each array is therefore
copied by straight-line code without addresses to compute, which takes half as many instructions as loops over pieces of
rows. Constant entries, such as the zeros of matrices, are not read from the block.
"""

from __future__ import annotations

from collections.abc import Sequence

from ...ir.operations import Op
from ...ir.program import Array, Program
from .block_checks import raise_top
from .dense_rows import load_piece, store_piece, transposed
from .writer import Text

LONGEST = 128
"""The most entries of a row that is copied by straight-line code: longer ones take too much of it."""


def begin_packed(t: Text, lanes, program: Program) -> None:
    """Write %packed_in and %packed_out: whether the samples of all inputs, or outputs, follow each other."""
    size, first = lanes.bits // 8, 0
    for name, arrays in (("in", program.inputs), ("out", program.outputs)):
        packed = "%dense"
        for k, a in enumerate(arrays, first):
            packed = t.new(f"and i1 {packed}, {t.new(f'icmp eq i64 %s{k}, {a.size * size}')}")
        t.put(f"  %packed_{name} = and i1 {packed}, true")
        first += len(arrays)


def load_packed(t: Text, k: int, at: int, a: Array, lanes) -> None:
    """Write the load of the rows of array k into vectors from number `at` on."""
    t.put(f"  call void @load_packed{k}(ptr {_rows(t, k, a, lanes)}, ptr {_vector(t, lanes, '%in', at)}, ptr %top)")


def store_packed(t: Text, k: int, a: Array, lanes) -> None:
    """Write the store of the rows of array k."""
    t.put(f"  call void @store_packed{k}(ptr {_rows(t, k, a, lanes)}, ptr %out, ptr %top_out)")


def functions(program: Program, lanes, w, slots: Sequence[int]) -> list[str]:
    """Return the functions that load and store rows, one per array; `slots` are the vectors of the outputs' entries."""
    made = [_loads(k, a.size, lanes, w) for k, a in enumerate(program.inputs) if a.size <= LONGEST]
    at, checked = 0, set[int]()
    for k, (a, entries) in enumerate(zip(program.outputs, program.results, strict=True), len(program.inputs)):
        if a.size <= LONGEST:
            made.append(_stores(k, program, entries, slots[at : at + a.size], checked, lanes, w))
        at += a.size
    return made


def _rows(t: Text, k: int, a: Array, lanes) -> str:
    return t.new(f"getelementptr i8, ptr %p{k}, i64 {t.new(f'mul i64 %i, {a.size * lanes.bits // 8}')}")


def _vector(t: Text, lanes, block: str, number: int) -> str:
    return t.new(f"getelementptr {lanes.vector}, ptr {block}, i64 {number}")


def _loads(k: int, n: int, lanes, w) -> str:
    """Return the function that loads the rows of an array of n entries into vectors."""
    V, L, S = lanes.vector, lanes.count, lanes.scalar
    t = Text()
    t.put(
        f"define internal void @load_packed{k}(ptr noalias readonly %from, ptr noalias align 64 %in, "
        "ptr noalias align 64 %top) noinline #0 {",
        "entry:",
    )
    for start in range(0, n, L):
        used = min(L, n - start)
        places = (t.new(f"getelementptr {S}, ptr %from, i64 {lane * n + start}") for lane in range(L))
        columns = transposed(t, lanes, [load_piece(t, lanes, p, used) for p in places])[:used]
        raise_top(t, lanes, "%top", columns)
        for j, x in enumerate(columns, start):
            t.put(f"  store {V} {x}, ptr {_vector(t, lanes, '%in', j)}, align 64")
    return _ended(t, w)


def _stores(k: int, program: Program, entries: Sequence[int], slots: Sequence[int], checked: set[int], lanes, w) -> str:
    """Return the function that stores the rows of an array; vectors that are checked elsewhere are left out."""
    V, L, S, n = lanes.vector, lanes.count, lanes.scalar, len(entries)
    t = Text()
    t.put(
        f"define internal void @store_packed{k}(ptr noalias %to, ptr noalias readonly align 64 %out, "
        "ptr noalias align 64 %top_out) noinline #0 {",
        "entry:",
    )

    def entry(j: int) -> str:
        op = program.ops[entries[j]]
        if op[0] is Op.CONST:
            return lanes.constant(op[1])
        return t.new(f"load {V}, ptr {_vector(t, lanes, '%out', slots[j])}, align 64")

    for start in range(0, n, L):
        used = min(L, n - start)
        columns = [entry(j) for j in range(start, start + used)]
        fresh = {slots[start + j]: x for j, x in enumerate(columns) if slots[start + j] not in checked}
        checked.update(fresh)
        if fresh:
            raise_top(t, lanes, "%top_out", list(fresh.values()))
        rows = transposed(t, lanes, columns + ["zeroinitializer"] * (L - used))
        for lane, x in enumerate(rows):
            store_piece(t, lanes, t.new(f"getelementptr {S}, ptr %to, i64 {lane * n + start}"), x, used)
    return _ended(t, w)


def _ended(t: Text, w) -> str:
    t.put("  ret void", "}")
    w.used |= t.used
    return t.text()
