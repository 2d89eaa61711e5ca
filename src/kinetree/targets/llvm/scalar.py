"""LLVM assembly of a Program as one function of plain arrays, for any processor: one sample per call, on scalars."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Set
from typing import NamedTuple, Protocol

from ...compiler.ir.operations import Op
from ...compiler.ir.program import Program
from . import elementary, vector_math
from .arithmetic import FLAGS, operations
from .writer import SCALARS, Writer

# --- Sums that are fused with one of their products to an operation that rounds once, chosen before code is written.
#
# Where several programs compute the same function, such as two kernels of a GPU, the same choice gives the same bits.


class Fusion(NamedTuple):
    """The operations a, b and c of a b + c, where the product or c may be negative."""

    operands: tuple[int, int, int]
    minus_product: bool
    minus_rest: bool


def fusions(program: Program, allowed: Callable[[int, int], bool]) -> dict[int, Fusion]:
    """Return the fusions by their sums; `allowed(product, sum)` returns whether the two may be fused.

    Of two products, the one with fewer uses is taken, as it is more often of no other use.
    """
    ops = program.ops
    uses = [0] * len(ops)
    for op, *x in ops:
        if op > Op.CONST:
            for k in x:
                uses[k] += 1
    found: dict[int, Fusion] = {}
    for i in reversed(range(len(ops))):
        op, *x = ops[i]
        if (op is not Op.ADD and op is not Op.SUB) or x[0] == x[1]:  # a difference that is zero stays zero
            continue
        signs = (1, -1 if op is Op.SUB else 1)
        choices = []
        for k, sign, rest, other in ((x[0], signs[0], x[1], signs[1]), (x[1], signs[1], x[0], signs[0])):
            product, sign = (ops[k][1], -sign) if ops[k][0] is Op.NEG else (k, sign)
            if ops[product][0] is Op.MUL and allowed(k, i) and allowed(product, i):
                choices.append((uses[k], k, Fusion((*ops[product][1:], rest), sign < 0, other < 0)))
        if choices:
            _, k, found[i] = min(choices, key=lambda choice: choice[0])
            uses[k] -= 1
    return found


class Functions(Protocol):
    """A source of elementary functions."""

    def sines(self, w: Writer, x: str) -> tuple[str, str]:
        """Write the sine and cosine of an angle of any size."""
        ...

    def function(self, w: Writer, name: str, arguments: list[str]) -> str:
        """Write another function, by its name in the C library."""
        ...

    def definitions(self, w: Writer) -> list[str]:
        """Return the definitions and declarations of all functions that were written."""
        ...


class OwnFunctions:
    """Functions in LLVM's own arithmetic, without any library."""

    def sines(self, w: Writer, x: str) -> tuple[str, str]:
        """Write the sine and cosine of an angle of any size."""
        return elementary.guarded_sines(w, x)

    def function(self, w: Writer, name: str, arguments: list[str]) -> str:
        """Write the call of an own function."""
        return elementary.call(w, name, arguments)

    def definitions(self, w: Writer) -> list[str]:
        """Return the definitions of own functions, and the declarations of intrinsic ones."""
        own, declared = elementary.definitions(w.used)
        return [*own, *sorted({n for n in w.used if not n.startswith(";")} | declared), vector_math.RARE]


class LibraryFunctions:
    """Functions of the C library of the processor, by their names in math.h."""

    def sines(self, w: Writer, x: str) -> tuple[str, str]:
        """Write calls of sin and cos."""
        return self.function(w, "sin", [x]), self.function(w, "cos", [x])

    def function(self, w: Writer, name: str, arguments: list[str]) -> str:
        """Write the call of a function of math.h."""
        V = w.lanes.vector
        full = name + ("f" if w.lanes.bits == 32 else "")
        # Without side effects, so that a sine or cosine that nothing reads is not computed.
        w.used.add(f"declare {V} @{full}({', '.join([V] * len(arguments))}) memory(none) nounwind willreturn")
        return w.new(f"call {V} @{full}({', '.join(f'{V} {a}' for a in arguments)})")

    def definitions(self, w: Writer) -> list[str]:
        """Return the declarations."""
        return sorted(w.used)


class Entries:
    """The surroundings of a Program's arithmetic: places of entries, and a source of functions.

    `load(group, index)` writes the load of an entry of an input, `store(output, index, name)` the store of a result.
    `bare` are operations whose values are angles within the limit of `vector_math.sines`. `before(k, names)` writes
    what comes before operation k. If `fusions` are given, these sums are fused with a product and no others; otherwise
    LLVM chooses.
    """

    def __init__(
        self,
        program: Program,
        w: Writer,
        functions: Functions,
        load: Callable[[int, int], str],
        store: Callable[[int, int, str], None],
        bare: Set[int] = frozenset(),
        before: Callable[[int, list[str]], None] | None = None,
        fusions: Mapping[int, Fusion] | None = None,
    ) -> None:
        """Note at which entries of the outputs each operation is stored."""
        self.w, self.functions, self.load, self._store, self.bare = w, functions, load, store, bare
        self._before, self._fusions = before, fusions or {}
        self.flags = FLAGS if fusions is None else ""
        self.places: dict[int, list[tuple[int, int]]] = {}
        for group, entries in enumerate(program.results):
            for index, k in enumerate(entries):
                self.places.setdefault(k, []).append((group, index))

    def before(self, k: int, names: list[str]) -> None:
        """Write what comes before operation k."""
        if self._before is not None:
            self._before(k, names)

    def fused(self, k: int, names: list[str]) -> str | None:
        """Write a sum together with one of its products, rounded once; None if they are separate."""
        if (found := self._fusions.get(k)) is None:
            return None
        w, (a, b, c) = self.w, (names[j] for j in found.operands)
        a, c = (
            w.new(f"fneg {w.lanes.scalar} {x}") if minus else x
            for x, minus in ((a, found.minus_product), (c, found.minus_rest))
        )
        return w.intrinsic("llvm.fma", a, b, c)

    def store(self, k: int, name: str) -> None:
        """Write the stores of the value of operation k, if it is a result."""
        for group, index in self.places.get(k, ()):
            self._store(group, index, name)

    def sines(self, k: int, x: str) -> tuple[str, str]:
        """Write the sine and cosine of the value of operation k."""
        return vector_math.sines(self.w, x) if k in self.bare else self.functions.sines(self.w, x)

    def function(self, name: str, arguments: list[str]) -> str:
        """Write another function."""
        return self.functions.function(self.w, name, arguments)


def scalar_function(program: Program, dtype: str, name: str, functions: Functions) -> str:
    """Return the assembly of `void name(in, ..., out, ...)` with a pointer to a dense array per input and output."""
    lanes = SCALARS[dtype]
    w, S, size = Writer(lanes), lanes.scalar, lanes.bits // 8

    def load(group: int, index: int) -> str:
        return w.new(f"load {S}, ptr {w.new(f'getelementptr {S}, ptr %in{group}, i64 {index}')}, align {size}")

    def store(group: int, index: int, x: str) -> None:
        w.do(f"store {S} {x}, ptr {w.new(f'getelementptr {S}, ptr %out{group}, i64 {index}')}, align {size}")

    operations(program, w, Entries(program, w, functions, load, store), in_memory=True)
    arguments = [f"ptr noalias readonly %in{k}" for k in range(len(program.inputs))]
    arguments += [f"ptr noalias %out{k}" for k in range(len(program.outputs))]
    head = f"define void @{name}({', '.join(arguments)}) #0 {{"
    rest = functions.definitions(w)
    return "\n".join([head, "entry:", *w.lines, "  ret void", "}", *rest, "attributes #0 = { nounwind }"])
