"""Prefetch of rows by the body: memory is read while the body computes.

The body requests the cache lines of the next block's inputs and of its own outputs, one by one between its operations.
Requests all at once would fill the processor's buffers of outstanding loads, and the body's own loads would wait.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

from ...compiler.ir.operations import Op
from ...compiler.ir.program import Program

AHEAD = 1
"""The number of blocks between the one that is computed and the one whose inputs are requested."""

LONGEST = 128
"""The most entries of a prefetched row: those of large matrices would displace numbers of the body from the cache."""

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
