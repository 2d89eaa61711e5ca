"""LLVM assembly of a Program on vectors, with one SIMD lane per sample.

The function `body` does the arithmetic. Its inputs and outputs are blocks of memory with one vector per entry. The
function `kernel` is NumPy's inner loop: it copies rows of samples into such a block (blocks.py), runs the body, and
copies the results back. The remainder of a batch runs through the same body, with its last sample repeated in the idle
lanes, so that the bits of a sample do not depend on its neighbors.
"""

from __future__ import annotations

import hashlib
import math
from collections.abc import Mapping, Sequence
from typing import NamedTuple, Protocol

from ...compiler.ir.operations import Op
from ...compiler.ir.program import Program
from . import cache_lines, dense_rows, vector_math
from .blocks import kernel
from .cache_lines import Request, Spread, parameters, requests
from .writer import LANES, Writer, instruction

# --- Tables: trees of selections between constants, by comparisons of one number with constants.
#
# Splines of many knots are written as such trees: the coefficients of the interval of u, by halving. Thresholds and
# leaves are kept as arrays in memory, and the leaf is found by a search: the same bits with far less code.

LEAST = 32
"""The number of leaves from which a search takes less time than all selections."""


class Lookup(NamedTuple):
    """The leaf whose index is the number of thresholds that are not above the value of operation `number`."""

    number: int
    thresholds: tuple[float, ...]
    leaves: tuple[float, ...]


class Tree(NamedTuple):
    """A tree of selections by operation `number`, with its lowest and highest threshold and the count of leaves."""

    number: int
    lowest: float
    highest: float
    leaves: int


def lookups(program: Program) -> tuple[dict[int, Lookup], frozenset[int]]:
    """Return the tables by the operations that they replace, and the operations that nothing needs then."""
    trees = _trees(program)
    if not trees:
        return {}, frozenset()
    found: dict[int, Lookup] = {}
    live = {k for entries in program.results for k in entries}
    for k in range(len(program.ops) - 1, -1, -1):
        if k not in live or program.ops[k][0] <= Op.CONST:
            continue
        if k in trees and trees[k].leaves >= LEAST:
            found[k] = _expanded(program, k, trees[k].number)
            live.add(trees[k].number)
        else:
            live.update(program.ops[k][1:])
    return found, frozenset(range(len(program.ops))) - live if found else frozenset()


def _trees(program: Program) -> dict[int, Tree]:
    """Return the trees of halves with rising thresholds, by the operation at their root.

    Since thresholds rise, no tree contains another one twice, and all of them are expanded in linear time.
    """
    ops, trees = program.ops, {}
    for k, op in enumerate(ops):
        if op[0] is not Op.SELECT:
            continue
        _, condition, *sides = op
        less, *compared = ops[condition]
        if less is not Op.LESS or ops[compared[1]][0] is not Op.CONST:
            continue
        number, at = compared[0], ops[compared[1]][1]
        leaf = Tree(number, math.inf, -math.inf, 1)
        below, above = (leaf if ops[side][0] is Op.CONST else trees.get(side) for side in sides)
        if below is None or above is None or not below.number == number == above.number:
            continue
        if math.isfinite(at) and below.highest < at < above.lowest:
            trees[k] = Tree(number, min(below.lowest, at), max(above.highest, at), below.leaves + above.leaves)
    return trees


def _expanded(program: Program, root: int, number: int) -> Lookup:
    """Return the table of a tree."""
    ops = program.ops
    thresholds: list[float] = []
    leaves: list[float] = []
    stack: list[tuple[int, float | None]] = [(root, None)]  # operations, each with the threshold before it
    while stack:
        k, before = stack.pop()
        if before is not None:
            thresholds.append(before)
        op = ops[k]
        if op[0] is Op.CONST:
            leaves.append(op[1])
        else:
            stack += [(op[3], ops[ops[op[1]][2]][1]), (op[2], None)]
    return Lookup(number, tuple(thresholds), tuple(leaves))


# --- The search in a table, without branches in the lanes of a vector, or in a scalar ---


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


FLAGS = "nsz contract"
"""The flags of floating-point instructions: a product and a sum may be fused.

nnan and ninf are excluded because NaN and infinities must be visible. Reassociation would be allowed, but it made
larger robots slower by about 5 percent."""


def emit(program: Program, dtype: str) -> str:
    """Return the module's assembly."""
    lanes = LANES[dtype]
    w, found = Writer(lanes), requests(program, lanes)
    arithmetic(program, w, found)
    parts = [
        "define internal void @body(ptr noalias readonly align 64 %in, ptr noalias align 64 %out"
        f"{parameters(found)}) noinline #0 {{",
        "entry:",
        *w.lines,
        "  ret void",
        "}",
        kernel(program, lanes, w, bare_angles(program)[1], slots_of(program), found),
        *dense_rows.functions(program, lanes, w, slots_of(program)),
        *cache_lines.functions(program, lanes, w),
        vector_math.exact_functions(lanes, w),
        *sorted(w.used),
        attributes(),
    ]
    return "\n".join(parts)


def attributes() -> str:
    """Return the attributes of every function: vectors of 64 bytes if the processor has them, and a frame pointer.

    LLVM aligns the stack to the size of a vector only in functions with a frame pointer. Otherwise most vectors that
    are spilled to the stack cross a cache line, which made the code of a humanoid slower by a quarter.
    """
    return (
        'attributes #0 = { "prefer-vector-width"="512" "min-legal-vector-width"="512" "frame-pointer"="all" nounwind }'
    )


def slots_of(program: Program) -> list[int]:
    """Return the index of each entry of the outputs in the body's output block."""
    slot = {k: j for j, k in enumerate(distinct_results(program))}
    return [slot[k] for entries in program.results for k in entries]


def places_of(program: Program) -> dict[int, list[int]]:
    """Return the indices of each operation that is a result among all entries of the outputs."""
    places: dict[int, list[int]] = {}
    for place, k in enumerate(k for entries in program.results for k in entries):
        places.setdefault(k, []).append(place)
    return places


def distinct_results(program: Program) -> list[int]:
    """Return the operations that are results, each once; symmetric matrices and zeros repeat many."""
    return list(dict.fromkeys(k for entries in program.results for k in entries))


def offsets(program: Program) -> list[int]:
    """Return the index of the first entry of each input in a block of all inputs."""
    sizes = [a.size for a in program.inputs]
    return [sum(sizes[:k]) for k in range(len(sizes))]


def bare_angles(program: Program) -> tuple[set[int], list[int]]:
    """Return the sines and cosines of bare angles, and the indices of these inputs in the block.

    A bare angle is an input that is used only in sines and cosines, with or without an added constant. The kernel may
    therefore reduce large ones to one revolution beforehand.
    """
    ops = program.ops
    users: list[list[int]] = [[] for _ in ops]
    for j, (op, *x) in enumerate(ops):
        if op > Op.CONST:
            for k in x:
                users[k].append(j)
    kept = {k for entries in program.results for k in entries}

    def serves_sines(k: int) -> bool:
        return k not in kept and all(ops[j][0] in (Op.SIN, Op.COS) for j in users[k])

    def is_shift(j: int) -> bool:
        return ops[j][0] in (Op.ADD, Op.SUB) and any(ops[k][0] is Op.CONST for k in ops[j][1:]) and serves_sines(j)

    starts = offsets(program)
    bare, places = set(), []
    for k, op in enumerate(ops):
        if op[0] is not Op.INPUT or k in kept or not users[k]:
            continue
        shifts = [j for j in users[k] if is_shift(j)]
        if all(j in shifts or ops[j][0] in (Op.SIN, Op.COS) for j in users[k]):
            bare |= {k, *shifts}
            places.append(starts[op[1]] + op[2])
    return bare, places


class Surroundings(Protocol):
    """The code around the arithmetic of a Program: its loads, its stores, and its elementary functions.

    `flags` are the flags of floating-point instructions.
    """

    flags: str

    def before(self, k: int, names: list[str], /) -> None:
        """Write what comes before operation k; it may rename earlier values in `names`."""
        ...

    def load(self, group: int, index: int, /) -> str:
        """Write the load of an entry of an input, and return its name."""
        ...

    def store(self, k: int, name: str, /) -> None:
        """Write the stores of the value of operation k, if it is a result."""
        ...

    def fused(self, k: int, names: list[str], /) -> str | None:
        """Write operation k, if it is a sum, together with one of its products; None if they are separate."""
        ...

    def sines(self, k: int, x: str) -> tuple[str, str]:
        """Write the sine and cosine of the value x of operation k."""
        ...

    def function(self, name: str, arguments: list[str]) -> str:
        """Write another function, by its name in the C library."""
        ...


def operations(program: Program, w: Writer, around: Surroundings, *, in_memory: bool = False) -> None:
    """Write the operations of a program, on vectors or on scalars; with `in_memory`, its tables are arrays."""
    names: list[str] = []
    trig: dict[int, tuple[str, str]] = {}
    tables, unused = lookups(program) if in_memory else ({}, frozenset())
    read = Tables(w)
    for k, (op, *x) in enumerate(program.ops):
        around.before(k, names)
        if k in unused:
            names.append("")
            continue
        if k in tables:
            name = read.leaf(tables[k], names[tables[k].number])
        elif op is Op.INPUT:
            name = around.load(*x)
        elif op is Op.CONST:
            name = w.lanes.constant(x[0])
        elif op in (Op.SIN, Op.COS):
            if x[0] not in trig:
                trig[x[0]] = around.sines(x[0], names[x[0]])
            name = trig[x[0]][op is Op.COS]
        else:
            given = [names[j] for j in x]
            name = around.fused(k, names) or instruction(w, op, given, around.flags)
            name = name or around.function(op.name.lower(), given)
        names.append(name)
        around.store(k, name)  # immediately, because values in use longer are spilled to the stack


class Blocks:
    """Inputs in the block %in, results in the block %out, angles that the kernel keeps within LIMIT."""

    flags = FLAGS

    def __init__(
        self,
        program: Program,
        w: Writer,
        found: Sequence[Request] = (),
        places: Mapping[int, Sequence[int]] | None = None,
    ) -> None:
        """Spread requests for rows over the operations; `places` as in `arithmetic`."""
        self.w, self.offsets, self.spread = w, offsets(program), Spread(program, w, found)
        self.bare, _ = bare_angles(program)
        self.places = {k: [j] for j, k in enumerate(distinct_results(program))} if places is None else places

    def before(self, k: int, names: list[str]) -> None:
        """Write the requests that come before operation k."""
        self.spread.before(k)

    def fused(self, k: int, names: list[str]) -> None:
        """Return None: LLVM chooses, as the flags allow."""
        return None

    def load(self, group: int, index: int) -> str:
        """Write the load of an entry of an input."""
        V = self.w.lanes.vector
        p = self.w.new(f"getelementptr {V}, ptr %in, i64 {self.offsets[group] + index}")
        return self.w.new(f"load {V}, ptr {p}, align 64")

    def store(self, k: int, name: str) -> None:
        """Write the stores of the value of operation k, if it is a result."""
        V = self.w.lanes.vector
        for place in self.places.get(k, ()):
            self.w.do(f"store {V} {name}, ptr {self.w.new(f'getelementptr {V}, ptr %out, i64 {place}')}, align 64")

    def sines(self, k: int, x: str) -> tuple[str, str]:
        """Write the sine and cosine of the value of operation k."""
        return (vector_math.sines if k in self.bare else vector_math.guarded_sines)(self.w, x)

    def function(self, name: str, arguments: list[str]) -> str:
        """Write another function."""
        return vector_math.by_library(self.w, name, arguments)


def arithmetic(
    program: Program, w: Writer, found: Sequence[Request] = (), *, places: Mapping[int, Sequence[int]] | None = None
) -> None:
    """Write the operations of a program, from the block %in to the block %out, with requests for rows in between.

    `places` are the indices of each result in the block %out; by default each distinct one has one (slots_of).
    """
    operations(program, w, Blocks(program, w, found, places), in_memory=True)
