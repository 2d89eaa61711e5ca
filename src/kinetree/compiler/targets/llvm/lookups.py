"""Tables in memory: a search without branches in the lanes of a vector, or in a scalar."""

from __future__ import annotations

import hashlib
import math
from collections.abc import Sequence

from ...ir.lookups import Lookup
from .instructions import Writer


class Tables:
    """The tables of one function; those with equal thresholds of one number share the search."""

    def __init__(self, w: Writer) -> None:
        """Start without tables."""
        self.w = w
        self.found: dict[tuple[int, tuple[float, ...]], str] = {}

    def leaf(self, table: Lookup, u: str) -> str:
        """Write the lookup for the value u of the operation `table.number`, and return the name of the leaf."""
        key = (table.number, table.thresholds)
        if key not in self.found:
            self.found[key] = self._index(table.thresholds, u)
        size = 1 << len(table.thresholds).bit_length()
        return self._entry([*table.leaves, *[table.leaves[-1]] * (size - len(table.leaves))], self.found[key])

    def _index(self, thresholds: Sequence[float], u: str) -> str:
        """Write the search for the number of thresholds that are not above u; NaN is above all, as in the selections.

        Thresholds are filled up with infinities to a power of two less one, and leaves with the last one.
        """
        w, integers = self.w, self.w.lanes.integers
        steps = len(thresholds).bit_length()
        padded = [*thresholds, *[math.inf] * ((1 << steps) - 1 - len(thresholds))]
        index = w.lanes.whole(0)
        for step in (1 << k for k in reversed(range(steps))):
            above = w.new(f"add {integers} {index}, {w.lanes.whole(step)}")
            place = w.new(f"add {integers} {index}, {w.lanes.whole(step - 1)}")
            less = w.new(f"fcmp olt {w.lanes.vector} {u}, {self._entry(padded, place)}")
            index = w.new(f"select {w.lanes.mask} {less}, {integers} {index}, {integers} {above}")
        return index

    def _entry(self, numbers: Sequence[float], index: str) -> str:
        """Write the read of one entry per lane of an array of constants."""
        w, scalar, vector = self.w, self.w.lanes.scalar, self.w.lanes.vector
        entries = ", ".join(f"{scalar} {w.lanes.number(x)}" for x in numbers)
        name = f"@table_{hashlib.sha256(f'{scalar}{entries}'.encode()).hexdigest()[:24]}"
        w.used.add(f"{name} = private unnamed_addr constant [{len(numbers)} x {scalar}] [{entries}], align 64")
        if w.lanes.count == 1:
            return w.new(
                f"load {scalar}, ptr {w.new(f'getelementptr {scalar}, ptr {name}, {w.lanes.integers} {index}')}"
            )
        count, mask = w.lanes.count, w.lanes.mask
        gather = f"@llvm.masked.gather.{w.lanes.suffix}.v{count}p0"
        w.used.add(f"declare {vector} {gather}(<{count} x ptr>, i32, {mask}, {vector})")
        places = w.new(f"getelementptr {scalar}, ptr {name}, {w.lanes.integers} {index}")
        given = f"<{count} x ptr> {places}, i32 {w.lanes.bits // 8}, {mask} {w.lanes.true}, {vector} zeroinitializer"
        return w.new(f"call {vector} {gather}({given})")
