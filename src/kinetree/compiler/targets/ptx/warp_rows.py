"""Copies of rows by the threads of a warp together: 32 neighboring numbers at a time."""

from __future__ import annotations

from collections.abc import Callable

from ..llvm.arithmetic import Writer
from .head import GLOBAL, row
from .stage import SHARED, Stage
from .staging import WARP


class WarpRows:
    """Copies between row-major arrays and the rows of a warp.

    %first is the first sample of the warp, %valid the number of its samples. If the rows of an array follow each other
    and there are 32, the address of a number is that of the lane and a constant. Otherwise a loop computes it.
    """

    def __init__(self, w: Writer, stage: Stage) -> None:
        """Store the rows in shared memory."""
        self.w, self.stage, self.pitch = w, stage, stage.pitch
        w.used.add("declare i32 @llvm.umin.i32(i32, i32)")
        w.do(f"%whole = icmp eq i32 %valid, {WARP}")
        w.do("%last = sub i32 %valid, 1")

    def fetch(self, k: int, count: int, at: int) -> None:
        """Write the copy of the rows of an input; rows beyond the last sample repeat it."""
        w, rows = self.w, row(self.w, k, "%first")

        def dense() -> None:
            for j in range(count):
                self.stage.copy(self._lane(rows, j), self._inside(self._sample(count, j), self._number(j), count, at))

        def any_distance(number: str) -> None:
            s = w.new(f"udiv i32 {number}, {count}")
            read = w.new(f"call i32 @llvm.umin.i32(i32 {s}, i32 %last)")
            entry = w.new(f"urem i32 {number}, {count}")
            self.stage.copy(self._outside(k, rows, read, entry), self._inside(s, number, count, at))

        self._either(k, count, dense, any_distance)

    def deliver(self, k: int, count: int, at: int) -> None:
        """Write the copy of an output."""
        w, S, size = self.w, self.w.lanes.scalar, self.w.lanes.bits // 8
        rows = row(w, k, "%first")

        def load(s: str, number: str) -> str:
            return w.new(f"load {S}, {SHARED} {self._inside(s, number, count, at)}, align {size}")

        def dense() -> None:
            for j in range(count):
                x = load(self._sample(count, j), self._number(j))
                w.do(f"store {S} {x}, {GLOBAL} {self._lane(rows, j)}, align {size}")

        def any_distance(number: str) -> None:
            s = w.new(f"udiv i32 {number}, {count}")
            x = load(s, number)
            write, after = w.block("write"), w.block("after")
            w.do(f"br i1 {w.new(f'icmp ult i32 {s}, %valid')}, label %{write}, label %{after}")
            w.begin(write)
            place = self._outside(k, rows, s, w.new(f"urem i32 {number}, {count}"))
            w.do(f"store {S} {x}, {GLOBAL} {place}, align {size}")
            w.do(f"br label %{after}")
            w.begin(after)

        self._either(k, count, dense, any_distance)

    def _either(self, k: int, count: int, dense: Callable[[], None], any_distance: Callable[[str], None]) -> None:
        """Write straight-line copies for 32 dense rows, and a loop over the lane's numbers for others."""
        w = self.w
        follow = w.new(f"icmp eq i64 %s{k}, {count}")
        fast, slow, loop, end = (w.block(hint) for hint in ("dense", "others", "loop", "copied"))
        w.do(f"br i1 {w.new(f'and i1 %whole, {follow}')}, label %{fast}, label %{slow}")
        w.begin(fast)
        dense()
        w.do(f"br label %{end}")
        w.begin(slow)
        w.do(f"br label %{loop}")
        w.begin(loop)
        place = len(w.lines)
        number = w.block("%number")
        any_distance(number)
        following = w.new(f"add i32 {number}, {WARP}")
        w.lines.insert(place, f"  {number} = phi i32 [ %lane, %{slow} ], [ {following}, %{w.label} ]")
        more = w.new(f"icmp ult i32 {following}, {WARP * count}")
        w.do(f"br i1 {more}, label %{loop}, label %{end}")
        w.begin(end)

    def _number(self, j: int) -> str:
        """Write the lane's number among those of the warp in step j."""
        return self.w.new(f"add i32 %lane, {WARP * j}")

    def _sample(self, count: int, j: int) -> str:
        """Write the sample of the lane's number in step j: (lane + 32 j) // count."""
        w, first = self.w, WARP * j // count
        if count >= WARP:  # at most one row ends within a step
            ends = count * (first + 1) - WARP * j
            if ends >= WARP:
                return str(first)
            return w.new(f"select i1 {w.new(f'icmp sge i32 %lane, {ends}')}, i32 {first + 1}, i32 {first}")
        factor = -(-(1 << 16) // count)  # exact for numerators below 32 * 32
        return w.new(f"lshr i32 {w.new(f'mul i32 {self._number(j)}, {factor}')}, 16")

    def _lane(self, rows: str, j: int) -> str:
        """Write the address of the lane's number in step j of dense rows."""
        w, S = self.w, self.w.lanes.scalar
        start = w.new(f"getelementptr {S}, {GLOBAL} {rows}, i64 {w.new('zext i32 %lane to i64')}")
        return w.new(f"getelementptr {S}, {GLOBAL} {start}, i64 {WARP * j}")

    def _inside(self, s: str, number: str, count: int, at: int) -> str:
        """Write the address in shared memory: number + s (pitch - count) + at."""
        w = self.w
        gaps = str(int(s) * (self.pitch - count)) if s.isdigit() else w.new(f"mul i32 {s}, {self.pitch - count}")
        place = w.new(f"add i32 {w.new(f'add i32 {number}, {gaps}')}, {at}")
        return w.new(f"getelementptr {w.lanes.scalar}, {SHARED} %base, i32 {place}")

    def _outside(self, k: int, rows: str, s: str, entry: str) -> str:
        """Write the address of an entry of a sample of the warp."""
        w = self.w
        start = w.new(f"mul i64 {w.new(f'zext i32 {s} to i64')}, %s{k}")
        place = w.new(f"add i64 {start}, {w.new(f'zext i32 {entry} to i64')}")
        return w.new(f"getelementptr {w.lanes.scalar}, {GLOBAL} {rows}, i64 {place}")
