"""Kernels whose lanes are gathered: several blocks run at once, in phases, and share vectors for a part of them.

All statements before a gathering run for one block after the other, then the gathered lanes in full vectors, then the
statements after it. Each block has its own memory, a frame. The lanes compute the same as block by block, and have the
same bits.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, replace

from ...compiler.lanes.form import (
    Constant,
    Gathered,
    Kernel,
    Kind,
    Let,
    Loop,
    Memory,
    Operand,
    Statement,
    Store,
    When,
    every,
    operands,
)
from .blocks import PARAMETERS, write_arguments
from .lane_statements import Statements
from .writer import Lanes, Text

FRAMES = 8
"""The blocks that run at once. Their memory stays in the second cache, and gathered lanes fill most vectors."""

DENSE = 0.75
"""The part of the lanes of blocks above which lanes stay in place."""


@dataclass(frozen=True)
class Phase:
    """Statements that run for each block, one block after the other."""

    body: tuple[Statement, ...]


@dataclass(frozen=True)
class Turns:
    """A loop over a counter around phases."""

    counter: int
    stop: Operand
    items: tuple[Item, ...]


@dataclass(frozen=True)
class Gathering:
    """Phases that run for the lanes of a mask, gathered from all blocks."""

    lanes: Gathered
    items: tuple[Item, ...]


Item = Phase | Turns | Gathering


def divide(body: Iterable[Statement], common: Mapping[int, Let]) -> tuple[Item, ...] | None:
    """Return the phases of statements; None if no lanes are gathered, except inside of conditions.

    The latter gatherings are left as plain conditions. `common` are values that all blocks share.
    """
    items: list[Item] = []
    plain: list[Statement] = []
    for s in body:
        inner = None
        if isinstance(s, When) and s.gathered:
            inner = divide(s.body, common) or (Phase(s.body),)
        elif isinstance(s, Loop) and (isinstance(s.stop, Constant) or s.stop in common):
            inner = divide(s.body, common)
        if inner is None:
            plain.append(s)
            continue
        items += [Phase(tuple(plain))] if plain else []
        if isinstance(s, Loop):
            items.append(Turns(s.counter, s.stop, inner))
        elif isinstance(s, When) and s.gathered:
            items.append(Gathering(s.gathered, inner))
        plain = []
    if not items:
        return None
    return (*items, Phase(tuple(plain))) if plain else tuple(items)


def common_values(body: Iterable[Statement], known: dict[int, Let]) -> dict[int, Let]:
    """Return the values that follow from shared arguments and constants alone, in order, with those known before."""
    for s in body:
        if isinstance(s, Let) and s.kind.uniform and s.op not in ("load", "own", "any"):
            if all(isinstance(x, Constant) or x in known for x in s.operands):
                known[s.to] = s
        elif isinstance(s, Loop) or (isinstance(s, When) and s.gathered):
            common_values(s.body, known)
    return known


def phases(items: Iterable[Item]) -> Iterator[Phase]:
    """Yield all phases, in order."""
    for item in items:
        if isinstance(item, Phase):
            yield item
        else:
            yield from phases(item.items)


def gatherings(items: Iterable[Item], level: int = 0) -> Iterator[tuple[int, Gathered]]:
    """Yield all gatherings, each with the number of those around it."""
    for item in items:
        if isinstance(item, Gathering):
            yield level, item.lanes
            yield from gatherings(item.items, level + 1)
        elif isinstance(item, Turns):
            yield from gatherings(item.items, level)


def passed_on(items: tuple[Item, ...], common: Mapping[int, Let]) -> dict[int, Kind]:
    """Return the kinds of values that one phase computes and another one uses."""
    kinds = {s.to: s.kind for phase in phases(items) for s in phase.body if isinstance(s, Let)}
    out: dict[int, Kind] = {}
    for phase in phases(items):
        used = {x for s in every(phase.body) for x in operands(s) if isinstance(x, int)}
        made = {s.to for s in every(phase.body) if isinstance(s, Let)}
        out |= {x: kinds[x] for x in sorted(used - made - common.keys()) if x in kinds}
    return out


class Frames:
    """The inner loop of a kernel in phases. Each block has a frame of memory, and gathered lanes have further ones.

    Lanes pass through a queue, which has a row per entry; `starts` has the first place of each frame in it.
    """

    def __init__(self, kernel: Kernel, t: Text, lanes: Lanes, items: tuple[Item, ...], common: dict[int, Let]) -> None:
        """Lay out the frames and the queues."""
        self.t, self.lanes, self.items, self.common = t, lanes, items, common
        self.passed = passed_on(items, common)
        memory = (*kernel.memory, *(Memory(_passing(x), kind, 1) for x, kind in self.passed.items()))
        self.kernel = replace(kernel, memory=memory)
        self.statements = Statements(self.kernel, t, lanes)
        self.offsets: dict[str, int] = {}
        at = 0
        for m in memory:
            self.offsets[m.name] = at
            at += -(-self.statements.width(m.kind) * m.size // 64) * 64
        self.size = (
            at if at % 128 else at + 64
        )  # so that the same entry of all frames is not in the same set of a cache
        self.width = (FRAMES + 1) * lanes.count  # with a place for the end of the last vector
        self.queues: dict[int, int] = {}
        found = list(gatherings(items))
        at = (max(level for level, _ in found) + 2) * FRAMES * self.size
        for level in sorted({level for level, _ in found}):
            rows = max(sum(n for *_, n in x) for k, g in found for x in (g.takes, g.gives) if k == level)
            self.queues[level] = at
            at += FRAMES * 8 + rows * self.width * lanes.bits // 8
        self.total = -(-at // 64) * 64

    def write(self) -> None:
        """Write the kernel; few samples take the code of single blocks."""
        t, count = self.t, FRAMES * self.lanes.count
        t.used |= {"declare ptr @kt_malloc(i64)", "declare void @kt_free(ptr)"}
        t.put(f"define void @kernel{PARAMETERS} #0 {{", "entry:")
        write_arguments(self.kernel, t)
        t.put(
            f"  %many = icmp sgt i64 %n, {self.lanes.count}",
            "  br i1 %many, label %reserve, label %alone",
            "alone:",
            "  call void @single(ptr %args, ptr %dims, ptr %steps, ptr %bad)",
            "  ret void",
            "reserve:",
            f"  %workspace = call ptr @kt_malloc(i64 {self.total + 64})",
            "  %none = icmp eq ptr %workspace, null",
            "  br i1 %none, label %alone, label %ready",
            "ready:",
        )
        place = t.new(f"add i64 {t.new('ptrtoint ptr %workspace to i64')}, 63")
        t.put(f"  %frames = inttoptr i64 {t.new(f'and i64 {place}, -64')} to ptr")
        self.statements.write(self.common.values())
        t.put(
            "  br label %head",
            "head:",
            "  %i = phi i64 [ 0, %ready ], [ %next, %after ]",
            "  %more = icmp slt i64 %i, %n",
            "  br i1 %more, label %start, label %done",
            "start:",
        )
        some = self._vectors(t.new("sub i64 %n, %i"))
        full = t.new(f"icmp slt i64 {some}, {FRAMES}")
        self._run(self.items, 0, t.new(f"select i1 {full}, i64 {some}, i64 {FRAMES}"))
        t.put("  br label %after", "after:", f"  %next = add i64 %i, {count}", "  br label %head", "done:")
        t.put("  call void @kt_free(ptr %workspace)", "  ret void", "}")

    def _vectors(self, lanes: str) -> str:
        """Write the number of vectors for a number of lanes."""
        return self.t.new(f"udiv i64 {self.t.new(f'add i64 {lanes}, {self.lanes.count - 1}')}, {self.lanes.count}")

    def _run(self, items: Iterable[Item], level: int, frames: str, among: tuple[str, ...] = ()) -> None:
        """Write phases on a number of frames of a level, or on those of them with lanes in all of some masks."""
        t = self.t
        for item in items:
            match item:
                case Phase():

                    def phase(frame: str, item: Phase = item) -> None:
                        self._enter(level, frame)
                        if among:
                            t.if_(self._count(self._lanes_of(among))[1], lambda: self._phase(item))
                        else:
                            self._phase(item)

                    t.loop(frames, 1, phase)
                case Turns():
                    stop = self.statements.text(item.stop)

                    def turn(counter: str, item: Turns = item) -> None:
                        self.statements.values[item.counter] = (counter, Kind.COUNT, False)
                        self._run(item.items, level, frames, among)

                    t.if_(t.new(f"icmp sgt i64 {stop}, 0"), lambda stop=stop, turn=turn: t.loop(stop, 1, turn))
                case Gathering():
                    self._gather(item, level, frames, among)

    def _phase(self, phase: Phase) -> None:
        """Write the statements of a phase, with the values that other phases pass on."""
        made = {s.to for s in phase.body if isinstance(s, Let)}
        used = {x for s in every(phase.body) for x in operands(s) if isinstance(x, int)}
        first = Constant(Kind.COUNT, 0)
        for x in sorted((used - made) & self.passed.keys()):
            self.statements.let(Let(x, self.passed[x], "load", (_passing(x), first)))
        for s in phase.body:
            if isinstance(s, Let) and s.to in self.common:
                continue
            self.statements.write([s])
            if isinstance(s, Let) and s.to in self.passed:
                self.statements.store(Store(_passing(s.to), first, s.to))

    def _enter(self, level: int, frame: str) -> None:
        """Write the addresses of the memory of a frame, and its first sample."""
        t = self.t
        base = t.new(f"add i64 {t.new(f'mul i64 {frame}, {self.size}')}, {level * FRAMES * self.size}")
        base = t.new(f"getelementptr i8, ptr %frames, i64 {base}")
        places = self.statements.places
        for name, offset in self.offsets.items():
            places[name] = t.new(f"getelementptr i8, ptr {base}, i64 {offset}")
        if level == 0:
            self.statements.sample = t.new(f"add i64 %i, {t.new(f'mul i64 {frame}, {self.lanes.count}')}")

    def _lanes_of(self, masks: Iterable[str]) -> str:
        """Write the lanes that are in all of some masks of the present frame."""
        t, found, L = self.t, "", self.lanes.count
        for name in masks:
            mask = t.new(f"load <{L} x i8>, ptr {self.statements.places[name]}, align {L}")
            mask = t.new(f"icmp ne <{L} x i8> {mask}, zeroinitializer")
            found = t.new(f"and {self.lanes.mask} {found}, {mask}") if found else mask
        return found

    def _count(self, mask: str) -> tuple[str, str]:
        """Write the number of lanes in a mask, and whether there are any."""
        t, T = self.t, f"i{self.lanes.count}"
        t.used.add(f"declare {T} @llvm.ctpop.{T}({T})")
        bits = t.new(f"bitcast {self.lanes.mask} {mask} to {T}")
        some = t.new(f"icmp ne {T} {bits}, 0")
        return t.new(f"zext {T} {t.new(f'call {T} @llvm.ctpop.{T}({T} {bits})')} to i64"), some

    def _gather(self, item: Gathering, level: int, frames: str, among: tuple[str, ...]) -> None:
        """Write a gathering: the way into the queue, the phases of full vectors, and the way back.

        Where most lanes of blocks take part, they stay in place.
        """
        masks = (*among, item.lanes.mask)
        if level > 0:
            self._move(item, level, frames, masks)
            return
        t = self.t

        def add(frame: str, found: list[str]) -> list[str]:
            self._enter(level, frame)
            return [t.new(f"add i64 {found[0]}, {self._count(self._lanes_of(masks))[0]}")]

        (total,) = t.fold(frames, "i64", ["0"], add)
        enough = t.new(f"mul i64 {frames}, {int(DENSE * self.lanes.count)}")
        t.either(
            t.new(f"icmp sgt i64 {total}, {enough}"),
            lambda: self._run(item.items, level, frames, masks),
            lambda: self._move(item, level, frames, masks),
        )

    def _move(self, item: Gathering, level: int, frames: str, masks: tuple[str, ...]) -> None:
        """Write a gathering of the lanes in all of some masks."""
        t, L, V = self.t, self.lanes.count, self.lanes.vector
        g, size = item.lanes, self.lanes.bits // 8
        rows = t.new(f"getelementptr i8, ptr %frames, i64 {self.queues[level] + FRAMES * 8}")
        starts = t.new(f"getelementptr i8, ptr %frames, i64 {self.queues[level]}")

        def place(row: str, slot: str) -> str:
            return t.new(f"getelementptr {self.lanes.scalar}, ptr {rows}, i64 {t.new(f'add i64 {row}, {slot}')}")

        def each(parts: Sequence[tuple[str, int, int]], copy: Callable[[str, str], None]) -> None:
            """Write a copy for each entry of memory, and the start of its row."""
            at = 0
            for name, first, count in parts:

                def one(k: str, name: str = name, first: int = first, at: int = at) -> None:
                    index, row = t.new(f"add i64 {k}, {first}"), t.new(f"add i64 {k}, {at}")
                    entry = t.new(f"getelementptr {V}, ptr {self.statements.places[name]}, i64 {index}")
                    copy(entry, t.new(f"mul i64 {row}, {self.width}"))

                t.loop(count, 1, one)
                at += count

        def masked(frame: str) -> tuple[str, str, str]:
            """Write the mask of a frame, the number of its lanes, and whether there are any."""
            self._enter(level, frame)
            mask = self._lanes_of(masks)
            return mask, *self._count(mask)

        def join(frame: str, found: list[str]) -> list[str]:
            mask, count, some = masked(frame)
            t.put(f"  store i64 {found[0]}, ptr {t.new(f'getelementptr i64, ptr {starts}, i64 {frame}')}")
            name = f"@llvm.experimental.vector.compress.{self.lanes.suffix}"
            t.used.add(f"declare {V} {name}({V}, {self.lanes.mask}, {V})")

            def copy(entry: str, row: str) -> None:
                x = t.new(f"load {V}, ptr {entry}, align 64")
                x = t.new(f"call {V} {name}({V} {x}, {self.lanes.mask} {mask}, {V} poison)")
                t.put(f"  store {V} {x}, ptr {place(row, found[0])}, align {size}")

            t.if_(some, lambda: each(g.takes, copy))
            return [t.new(f"add i64 {found[0]}, {count}")]

        (total,) = t.fold(frames, "i64", ["0"], join)

        def carry(worker: str, parts: Sequence[tuple[str, int, int]], *, inward: bool) -> None:
            """Write the copies between the queue and the frame of gathered lanes."""
            self._enter(level + 1, worker)
            slot = t.new(f"mul i64 {worker}, {L}")

            def copy(entry: str, row: str) -> None:
                queued = place(row, slot)
                source, target, *align = (queued, entry, size, 64) if inward else (entry, queued, 64, size)
                x = t.new(f"load {V}, ptr {source}, align {align[0]}")
                t.put(f"  store {V} {x}, ptr {target}, align {align[1]}")

            each(parts, copy)
            if inward:
                t.put(f"  store <{L} x i8> splat (i8 1), ptr {self.statements.places[g.mask]}, align {L}")

        def back(frame: str) -> None:
            mask, _, some = masked(frame)
            start = t.new(f"load i64, ptr {t.new(f'getelementptr i64, ptr {starts}, i64 {frame}')}")
            name = f"@llvm.masked.expandload.{self.lanes.suffix}"
            t.used.add(f"declare {V} {name}(ptr, {self.lanes.mask}, {V})")

            def copy(entry: str, row: str) -> None:
                x, old = place(row, start), t.new(f"load {V}, ptr {entry}, align 64")
                x = t.new(f"call {V} {name}(ptr align {size} {x}, {self.lanes.mask} {mask}, {V} {old})")
                t.put(f"  store {V} {x}, ptr {entry}, align 64")

            t.if_(some, lambda: each(g.gives, copy))

        def work() -> None:
            last = t.new(f"sub i64 {total}, 1")

            def repeat(k: str) -> None:
                row = t.new(f"mul i64 {k}, {self.width}")
                x = t.new(f"load {self.lanes.scalar}, ptr {place(row, last)}")
                one = t.new(f"insertelement {V} poison, {self.lanes.scalar} {x}, i32 0")
                x = t.new(f"shufflevector {V} {one}, {V} poison, <{L} x i32> zeroinitializer")
                t.put(f"  store {V} {x}, ptr {place(row, total)}, align {size}")

            t.loop(sum(n for *_, n in g.takes), 1, repeat)  # idle lanes have the numbers of the last one
            workers = self._vectors(total)
            t.loop(workers, 1, lambda worker: carry(worker, g.takes, inward=True))
            self._run(item.items, level + 1, workers)
            t.loop(workers, 1, lambda worker: carry(worker, g.gives, inward=False))
            t.loop(frames, 1, back)

        t.if_(t.new(f"icmp ne i64 {total}, 0"), work)


def _passing(value: int) -> str:
    """Return the name of the memory of a value that one phase passes on to another."""
    return f"passed_{value}"
