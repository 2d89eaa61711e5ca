"""NumPy's inner loop around a body that stores vectors where they belong: samples are next to each other in memory.

The body writes each entry of a block of samples straight from a register, at an address and a stride that it is given.
These are those of the outputs for whole blocks, if in every output samples are next to each other and entries at equal
distances. Other blocks are written to memory of the kernel, and copied from there. If zeros are not stored, this memory
is cleared before.

Results that are not finite are found by the flags of the processor: without input that is not finite, an operation that
makes such a number raises one. If one is raised, the block is computed again in memory of the kernel, and examined.
"""

from __future__ import annotations

import math
from collections.abc import Sequence

from ...ir.operations import Op
from ...ir.program import Array, Program
from ..samples_last import SamplesLast
from . import vector_math
from .aligned_lines import aligns, finish
from .arithmetic import Blocks, Writer, attributes, bare_angles, operations
from .block_checks import check_inputs, reaches, reduce_angles, scan
from .blocks import entry_by_entry, layouts, numbered
from .dense_rows import load_rows, sample_indices, store_rows
from .flags import clear_flags, raised_flags, reported_flags
from .memory import release, reserve
from .number_types import LANES
from .prefetch import LINE, LONGEST
from .sample_vectors import load_vectors, store_vectors
from .writer import Text

AHEAD = 2 * LINE
"""The distance of the line that is requested with each store [bytes]: that of the same entry, two blocks later."""

FLAGGED = frozenset((Op.INPUT, Op.CONST, Op.ADD, Op.SUB, Op.MUL, Op.DIV, Op.NEG, Op.SQRT, Op.SIN, Op.COS))
"""The operations that raise a flag if their result is not finite; C libraries may not."""


def emit_samples_last(unit: SamplesLast, dtype: str) -> str:
    """Return the module's assembly."""
    program, lanes = unit.program, LANES[dtype]
    past = unit.past and aligns()
    w, t = Writer(lanes), Text()
    operations(program, w, _Stores(program, w, past=past, zeros=unit.zeros))
    outputs = "".join(f", ptr noalias %o{g}, i64 %d{g}, i64 %a{g}" for g in range(len(program.outputs)))
    body = [f"define internal void @body(ptr noalias readonly align 64 %in{outputs}) noinline #0 {{", "entry:"]
    body += [*w.lines, "  ret void", "}"]
    _Kernel(t, lanes, program, past=past, zeros=unit.zeros).write()
    count = sum(a.size for a in program.outputs)
    parts = [
        *(["!1 = !{i32 1}"] if past else []),
        f"@slots = internal constant [{count} x i64] [{', '.join(f'i64 {j}' for j in range(count))}]",
        *body,
        t.text(),
        reduce_angles(lanes, w, bare_angles(program)[1]),
        vector_math.exact_functions(lanes, w),
        *sorted(w.used | t.used),
        attributes(),
    ]
    return "\n".join(parts)


class _Stores(Blocks):
    """Results at the addresses %o of the outputs, their entries at the distances %d."""

    def __init__(self, program: Program, w: Writer, *, past: bool, zeros: bool) -> None:
        super().__init__(program, w)
        self.outputs, self.past = program.outputs, past
        self.entries: dict[int, list[tuple[int, int]]] = {}
        for g, results in enumerate(program.results):
            for j, k in enumerate(results):
                if not zeros and is_zero(program, k):
                    continue
                self.entries.setdefault(k, []).append((g, j))

    def store(self, k: int, name: str) -> None:
        w = self.w
        for g, j in self.entries.get(k, ()):
            place = w.new(f"getelementptr i8, ptr %o{g}, i64 {w.new(f'mul i64 %d{g}, {j}')}")
            how = "align 64, !nontemporal !1" if self.past else f"align {w.lanes.bits // 8}"
            w.do(f"store {w.lanes.vector} {name}, ptr {place}, {how}")
            if not self.past and self.outputs[g].size <= LONGEST:
                w.used.add("declare void @llvm.prefetch.p0(ptr, i32, i32, i32)")
                w.do(f"call void @llvm.prefetch.p0(ptr {w.new(f'getelementptr i8, ptr {place}, i64 %a{g}')}, "
                     "i32 1, i32 3, i32 1)")  # fmt: skip


class _Kernel:
    """The code around the body: its arguments, its memory, and the loop over blocks of samples."""

    def __init__(self, t: Text, lanes, program: Program, *, past: bool, zeros: bool) -> None:
        self.t, self.lanes, self.program, self.past, self.zeros = t, lanes, program, past, zeros
        self.L, self.size, self.block = lanes.count, lanes.bits // 8, lanes.count * lanes.bits // 8
        self.inputs, self.outputs = numbered(program.inputs), numbered(program.outputs, len(program.inputs))
        self.count = sum(a.size for a in program.outputs)

    def write(self) -> None:
        t, L = self.t, self.L
        entries = sum(a.size for a in self.program.inputs)
        t.put("define void @kernel(ptr %args, ptr %dims, ptr %steps, ptr %bad) #0 {", "entry:")
        heap = reserve(
            t, {"in": entries * self.block, "out": self.count * self.block, "top": self.block, "top_out": self.block}
        )
        t.put("  %seen = load i64, ptr %bad", "  %n = load i64, ptr %dims")
        self.cores, self.dense = layouts(t, (*self.program.inputs, *self.program.outputs), self.size)
        self.next = [t.new(f"icmp eq i64 %s{k}, {self.size}") for k in range(len(self.cores))]
        t.put(f"  %straight = and i1 {self._straight()}, true")
        t.put("  %last = sub i64 %n, 1", "  br label %head", "head:")
        t.put(f"  %i = phi i64 [ 0, %{'ready' if heap else 'entry'} ], [ %next, %after ]")
        t.put("  %more = icmp slt i64 %i, %n", "  br i1 %more, label %start, label %done", "start:")
        for top in ("%top", "%top_out"):
            t.put(f"  store {self.lanes.integers} zeroinitializer, ptr {top}, align 64")
        t.put(f"  %full = icmp sle i64 {t.new(f'add i64 %i, {L}')}, %n")
        samples = sample_indices(t, self.lanes)
        for k, a, at in self.inputs:
            self._load(samples, k, a, at)
        scan(t, self.lanes, "%in", entries, "%top")
        check_inputs(t, self.lanes)
        t.either(t.new("and i1 %straight, %full"), self._straight_block, lambda: self._other_block(samples))
        place = t.new("getelementptr i64, ptr %bad, i64 1")
        not_finite = reaches(t, self.lanes, "%top_out", math.inf)
        t.if_(not_finite, lambda: t.new(f"atomicrmw add ptr {place}, i64 1 monotonic"))
        t.put("  br label %after", "after:", f"  %next = add i64 %i, {L}", "  br label %head", "done:")
        # Input that is not finite is reported by the caller, so NumPy must not warn about operations on it.
        t.if_(t.new(f"icmp ne i64 {t.new('load i64, ptr %bad')}, %seen"), lambda: clear_flags(t))
        if self.past:
            finish(t)
        if heap:
            release(t)
        t.put("  ret void", "}")

    def _straight(self) -> str:
        """Write whether the body can store whole blocks where they belong."""
        t = self.t
        if not raises_flags(self.program):
            return "false"
        good = "true"
        for k, a, _ in self.outputs:
            distance = self._distance(k, a)
            good = t.new(f"and i1 {good}, {self.next[k]}")
            expected = 1
            for d in reversed(range(len(a.shape))):
                if a.shape[d] > 1:
                    wanted = t.new(f"mul i64 {distance}, {expected}")
                    good = t.new(f"and i1 {good}, {t.new(f'icmp eq i64 {self.cores[k][d]}, {wanted}')}")
                expected *= a.shape[d]
            if self.past:
                both = t.new(f"or i64 {t.new(f'ptrtoint ptr %p{k} to i64')}, {distance}")
                begins = t.new(f"icmp eq i64 {t.new(f'and i64 {both}, {LINE - 1}')}, 0")
                good = t.new(f"and i1 {good}, {begins}")
        return good

    def _distance(self, k: int, a: Array) -> str:
        """Return the distance between entries [bytes]: the stride of the last core dimension with several."""
        return next((self.cores[k][d] for d in reversed(range(len(a.shape))) if a.shape[d] > 1), "0")

    def _load(self, samples: list[str], k: int, a: Array, at: int) -> None:
        copy = (self.t, self.lanes, k, a.shape, self.cores[k], at)

        def other() -> None:
            self.t.either(
                self.dense[k],
                lambda: load_rows(self.t, self.lanes, samples, k, a.size, at),
                lambda: entry_by_entry(*copy, store=False),
            )

        self.t.either(self._vectors(k), lambda: load_vectors(*copy), other)

    def _vectors(self, k: int) -> str:
        return self.t.new(f"and i1 %full, {self.next[k]}")

    def _straight_block(self) -> None:
        """Write the body for a block that is stored where it belongs."""
        t = self.t
        places = [t.new(f"getelementptr i8, ptr %p{k}, i64 {t.new(f'mul i64 %i, %s{k}')}") for k, _, _ in self.outputs]
        self._run(places, [self._distance(k, a) for k, a, _ in self.outputs])

        def again() -> None:
            self._run_inside()
            scan(t, self.lanes, "%out", self.count, "%top_out")

        t.if_(raised_flags(t), again)

    def _other_block(self, samples: list[str]) -> None:
        """Write the body for any other block, and the copies of its results."""
        t = self.t
        self._run_inside()
        scan(t, self.lanes, "%out", self.count, "%top_out")
        for k, a, at in self.outputs:
            copy = (t, self.lanes, k, a.shape, self.cores[k], at)

            def other(k: int = k, a: Array = a, at: int = at, copy=copy) -> None:
                t.either(
                    self.dense[k],
                    lambda: store_rows(t, self.lanes, samples, k, a.size, at),
                    lambda: entry_by_entry(*copy, store=True),
                )

            t.either(self._vectors(k), lambda copy=copy: store_vectors(*copy), other)

    def _run_inside(self) -> None:
        t, block = self.t, self.block
        if not self.zeros:
            t.used.add("declare void @llvm.memset.p0.i64(ptr, i8, i64, i1)")
            t.put(f"  call void @llvm.memset.p0.i64(ptr align 64 %out, i8 0, i64 {self.count * block}, i1 false)")
        places = [t.new(f"getelementptr i8, ptr %out, i64 {at * block}") for _, _, at in self.outputs]
        self._run(places, [str(block)] * len(places))

    def _run(self, places: Sequence[str], distances: Sequence[str]) -> None:
        given = ""
        for (_, a, _), p, d in zip(self.outputs, places, distances, strict=True):
            narrow = self.t.new(f"icmp eq i64 {d}, {LINE}")
            ahead = self.t.new(f"select i1 {narrow}, i64 {a.size * LINE}, i64 {AHEAD}")
            given += f", ptr {p}, i64 {d}, i64 {ahead}"
        self.t.put(f"  call void @body(ptr %in{given})")


def is_zero(program: Program, k: int) -> bool:
    """Return whether operation k is the constant zero, with the sign that cleared memory has."""
    op, *x = program.ops[k]
    return op is Op.CONST and x[0] == 0.0 and math.copysign(1.0, x[0]) > 0.0


def raises_flags(program: Program) -> bool:
    """Return whether flags show if a result is not finite."""
    known = all(op[0] in FLAGGED and (op[0] is not Op.CONST or math.isfinite(op[1])) for op in program.ops)
    return known and reported_flags() != 0
