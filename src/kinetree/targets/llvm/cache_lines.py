"""Whole cache lines: stores of rows by lines, and requests of the next lines while the body computes.

A store across two cache lines takes about twice as long as one within a line, as soon as the rows are not in the first
cache. NumPy aligns arrays to 16 bytes only, and the length of a row is rarely a multiple of a line. Each line of a row
is therefore selected from two consecutive vectors of its entries. The first and the last line of a row are shared with
its neighbors and are stored by a mask. Whole lines can bypass the caches. This requires whole blocks of samples that
follow each other without gaps.

The body requests the cache lines of the next block's inputs and of its own outputs, one by one between its operations.
Requests all at once would fill the processor's buffers of outstanding loads, and the body's own loads would wait.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from functools import cache

import llvmlite.binding as llvm

from ...compiler.ir.operations import Op
from ...compiler.ir.program import Program
from ..abi import LONG, STREAMED
from .dense_rows import raise_top, store_ends, write_transpose
from .writer import Text

FEATURE = "avx512f"
"""The feature of processors with vectors of a cache line, and with a selection from two vectors by a third."""

SELECT = {64: "llvm.x86.avx512.vpermi2var.pd.512", 32: "llvm.x86.avx512.vpermi2var.ps.512"}
"""The selection from two vectors of floats by their size [bits]."""


@cache
def aligns() -> bool:
    """Return whether this processor can store rows by lines."""
    return bool(llvm.get_host_cpu_features().get(FEATURE, False))


def long_outputs(program: Program) -> list[int]:
    """Return the outputs that are stored by lines."""
    return [g for g, a in enumerate(program.outputs) if a.size > LONG] if aligns() else []


def begin_lines(t: Text, lanes, program: Program, longs: Iterable[int]) -> None:
    """Write %packed, whether samples follow each other, and %past, whether their lines bypass the caches."""
    packed, size, total = "%dense", lanes.bits // 8, 0
    for g in longs:
        k, length = len(program.inputs) + g, program.outputs[g].size * size
        follows = t.new(f"icmp eq i64 %s{k}, {length}")
        rest = t.new(f"and i64 {t.new(f'ptrtoint ptr %p{k} to i64')}, {size - 1}")
        begins = t.new(f"icmp eq i64 {rest}, 0")
        packed = t.new(f"and i1 {packed}, {t.new(f'and i1 {follows}, {begins}')}")
        total += length
    t.put(f"  %packed = and i1 {packed}, true")
    t.put(f"  %past = and i1 %packed, {t.new(f'icmp sge i64 %n, {-(-STREAMED // total)}')}")


def store_lines(t: Text, lanes, samples: list[str], k: int, n: int, at: int) -> None:
    """Write the store of the rows of array k by lines, with the entries after their last whole piece."""
    place = t.new(f"getelementptr i8, ptr %p{k}, i64 {t.new(f'mul i64 %i, %s{k}')}")
    slots = t.new(f"getelementptr i64, ptr @slots, i64 {at}")
    t.put(f"  call void @lines{n}(ptr %out, ptr {slots}, ptr {place}, ptr %top_out, i1 %past)")
    store_ends(t, lanes, samples, k, n, at)


def finish(t) -> None:
    """Write the wait for lines that bypass the caches; other threads may read them afterwards."""
    t.used.add("declare void @llvm.x86.sse.sfence()")
    t.put("  call void @llvm.x86.sse.sfence()")


def functions(program: Program, lanes, w) -> list[str]:
    """Return the functions that store rows by lines, one per length of rows, with their constants."""
    lengths = sorted({program.outputs[g].size for g in long_outputs(program)})
    return [_shifts(lanes), *(_function(n, lanes, w) for n in lengths)] if lengths else []


def _shifts(lanes) -> str:
    """Return the indices of the selections: for each place in a line at which a row begins, one index per lane."""
    L = lanes.count
    rows = [[L - begin + lane if lane < begin else L + lane - begin for lane in range(L)] for begin in range(L)]
    entries = ", ".join(f"i{lanes.bits} {x}" for row in rows for x in row)
    return f"!1 = !{{i32 1}}\n@shifts = internal constant [{L * L} x i{lanes.bits}] [{entries}], align 64"


def _function(n: int, lanes, w) -> str:
    """Return the function that stores the whole pieces of a block of rows of n entries.

    `%slots` are the indices of the entries in the block %out. The first row is at %to.
    """
    V, L = lanes.vector, lanes.count
    t = Text()
    t.put(
        f"define internal void @lines{n}(ptr noalias readonly align 64 %out, ptr readonly %slots, ptr noalias %to, "
        "ptr noalias %top_out, i1 %past) noinline #0 {",
        "entry:",
    )
    rows = [_Row(t, lanes, t.new(f"getelementptr {lanes.scalar}, ptr %to, i64 {lane * n}")) for lane in range(L)]

    def piece(number: str) -> list[str]:
        own = t.new(f"getelementptr i64, ptr %slots, i64 {t.new(f'mul i64 {number}, {L}')}")
        slots = (t.new(f"load i64, ptr {t.new(f'getelementptr i64, ptr {own}, i64 {j}')}") for j in range(L))
        return _transposed(t, lanes, [t.new(f"getelementptr {V}, ptr %out, i64 {slot}") for slot in slots])

    def lines(*, past: bool) -> None:
        def line(counter: str, before: list[str]) -> list[str]:
            number = t.new(f"add i64 {counter}, 1")
            now = piece(number)
            for row, x, y in zip(rows, before, now, strict=True):
                row.store_whole(row.line(x, y), number, past=past)
            return now

        last = t.fold(n // L - 1, V, first, line)
        for row, x in zip(rows, last, strict=True):
            row.store(row.line(x, x), str(n // L), row.before_begin())

    first = piece("0")
    for row, x in zip(rows, first, strict=True):
        row.store(row.line(x, x), "0", row.from_begin())
    t.either("%past", lambda: lines(past=True), lambda: lines(past=False))
    t.put("  ret void", "}")
    w.used |= t.used
    return t.text()


class _Row:
    """A row in memory: the line in which it begins, and its place there."""

    def __init__(self, t: Text, lanes, start: str) -> None:
        self.t, self.lanes = t, lanes
        back = t.new(f"and i64 {t.new(f'ptrtoint ptr {start} to i64')}, 63")
        self.first = t.new(f"getelementptr i8, ptr {start}, i64 {t.new(f'sub i64 0, {back}')}")
        self.begin = t.new(f"udiv exact i64 {back}, {lanes.bits // 8}")
        place = t.new(f"getelementptr {lanes.integers}, ptr @shifts, i64 {self.begin}")
        self.index = t.new(f"load {lanes.integers}, ptr {place}, align 64")

    def line(self, before: str, now: str) -> str:
        """Write the selection of a line from the entries of two pieces."""
        V, ints, name = self.lanes.vector, self.lanes.integers, SELECT[self.lanes.bits]
        self.t.used.add(f"declare {V} @{name}({V}, {ints}, {V})")
        return self.t.new(f"call {V} @{name}({V} {before}, {ints} {self.index}, {V} {now})")

    def store_whole(self, x: str, line: str, *, past: bool) -> None:
        """Write the store of a line by its number."""
        past_caches = ", !nontemporal !1" if past else ""
        self.t.put(f"  store {self.lanes.vector} {x}, ptr {self._place(line)}, align 64{past_caches}")

    def store(self, x: str, line: str, mask: str) -> None:
        """Write the store of some entries of a line; no other entry is accessed."""
        lanes = self.lanes
        name = f"llvm.masked.store.v{lanes.count}f{lanes.bits}.p0"
        self.t.used.add(f"declare void @{name}({lanes.vector}, ptr, {lanes.mask})")
        self.t.put(f"  call void @{name}({lanes.vector} {x}, ptr align 64 {self._place(line)}, {lanes.mask} {mask})")

    def from_begin(self) -> str:
        """Write the mask of the entries of the row in its first line."""
        return self._mask(self.t.new(f"shl i64 -1, {self.begin}"))

    def before_begin(self) -> str:
        """Write the mask of the other entries: the end of the row, in the line after its last whole one."""
        return self._mask(self.t.new(f"xor i64 {self.t.new(f'shl i64 -1, {self.begin}')}, -1"))

    def _mask(self, bits: str) -> str:
        L = self.lanes.count
        return self.t.new(f"bitcast i{L} {self.t.new(f'trunc i64 {bits} to i{L}')} to {self.lanes.mask}")

    def _place(self, line: str) -> str:
        return self.t.new(f"getelementptr {self.lanes.vector}, ptr {self.first}, i64 {line}")


def _transposed(t: Text, lanes, places: list[str]) -> list[str]:
    """Write the transpose of a square of vectors in memory, and the largest of their magnitudes.

    Halves of vectors are put together as they are loaded, which saves a third of the shuffles.
    """
    L, size = lanes.count, lanes.bits // 8
    half = L // 2
    H = f"<{half} x {lanes.scalar}>"
    both = ", ".join(f"i32 {j}" for j in range(L))

    def load(k: int, part: int) -> str:
        return t.new(f"load {H}, ptr {t.new(f'getelementptr {H}, ptr {places[k]}, i64 {part}')}, align {half * size}")

    rows = [""] * L
    for k in range(half):
        for part in range(2):
            low, high = load(k, part), load(k + half, part)
            rows[k + part * half] = t.new(f"shufflevector {H} {low}, {H} {high}, <{L} x i32> <{both}>")
    raise_top(t, lanes, "%top_out", rows)
    return write_transpose(t, lanes, rows, half)


# --- Requests of lines: the body reads memory while it computes ---


AHEAD = 1
"""The number of blocks between the one that is computed and the one whose inputs are requested."""

LONGEST = 128
"""The most entries of a prefetched row: large matrices would displace numbers of the body from the cache."""

SPACING = 8
"""The least number of operations per request; shorter bodies have nothing to hide the memory's latency behind."""

LINE = 64
"""The size of a cache line [bytes]; where lines are longer, some are requested twice."""

FIRST_LEVEL, SECOND_LEVEL = 3, 2
"""The caches that prefetched lines go to, as LLVM numbers them."""


@dataclass(frozen=True)
class Request:
    """A cache line of the rows of an array, by the array's number and an offset [bytes]."""

    array: int
    offset: int
    output: bool


def requests(program: Program, lanes) -> list[Request]:
    """Return the cache lines of a block, the outputs' first; none if the Program is too short."""
    found = []
    for k, a in reversed(list(enumerate((*program.inputs, *program.outputs)))):
        if a.size <= LONGEST:
            size = lanes.count * a.size * lanes.bits // 8
            found += [Request(k, offset, k >= len(program.inputs)) for offset in range(0, size, LINE)]
    operations = sum(op[0] > Op.CONST for op in program.ops)
    return found if operations >= SPACING * len(found) else []


def parameters(found: Sequence[Request]) -> str:
    """Return the parameters of a body with requests: a pointer to the rows of each array."""
    return "".join(f", ptr %rows{k}" for k in _arrays(found))


def arguments(t, lanes, program: Program, found: Sequence[Request]) -> str:
    """Write the rows that the body requests; return the arguments of its call.

    If the batch is not dense, or if no later block follows, these are the body's own inputs, which are in the cache.
    """
    if not found:
        return ""
    later = t.new(f"add i64 %i, {AHEAD * lanes.count}")
    follows = t.new(f"and i1 %dense, {t.new(f'icmp slt i64 {later}, %n')}")
    out = ""
    for k in _arrays(found):
        sample = later if k < len(program.inputs) else "%i"
        rows = t.new(f"getelementptr i8, ptr %p{k}, i64 {t.new(f'mul i64 {sample}, %s{k}')}")
        out += f", ptr {t.new(f'select i1 {follows}, ptr {rows}, ptr %in')}"
    return out


class Spread:
    """The requests of a body, evenly spread over its operations."""

    def __init__(self, program: Program, w, found: Sequence[Request]) -> None:
        """Begin before the first operation."""
        self.w, self.found, self.count, self.done = w, found, len(program.ops), 0

    def before(self, k: int) -> None:
        """Write the requests that come before operation k."""
        while self.done < len(self.found) and k * len(self.found) >= self.done * self.count:
            r = self.found[self.done]
            p = self.w.new(f"getelementptr i8, ptr %rows{r.array}, i64 {r.offset}")
            level = FIRST_LEVEL if r.output else SECOND_LEVEL
            self.w.do(f"call void @llvm.prefetch.p0(ptr {p}, i32 {int(r.output)}, i32 {level}, i32 1)")
            self.w.used.add("declare void @llvm.prefetch.p0(ptr, i32, i32, i32)")
            self.done += 1


def _arrays(found: Sequence[Request]) -> list[int]:
    """Return the numbers of the arrays with requests."""
    return sorted({r.array for r in found})
