"""Values of a kernel in WebAssembly: on the stack until their only use, otherwise in variables.

Loads that wait on the stack are written to variables before any store, so that none is moved past it.
"""

from __future__ import annotations

from collections.abc import Iterable

from ...lanes.form import Constant, Kind, Let, Operand, Statement
from .binary import code, integer, real
from .single_uses import used_once
from .variables import Token

READS = ("load", "own", "shared")
"""The operations that read memory."""

Code = list[Token]


class Values:
    """The code of a function so far, and the place of each value; `number` is the type of floating-point numbers."""

    def __init__(self, body: tuple[Statement, ...], number: str) -> None:
        """Start without code; `body` is that of the whole kernel."""
        self.number = number
        self.code: Code = []
        self.types: dict[int, str] = {}
        self.known: dict[int, int] = {}  # counters of loops that are written as a sequence
        self._once = used_once(body)
        self._pending: dict[int, tuple[Code, bool]] = {}  # code of values on the stack, whether it reads memory
        self._counters: set[int] = set()
        self._shifted: dict[int, tuple[int, int]] = {}  # counters plus constants, for addresses

    def type(self, kind: Kind) -> str:
        """Return the type of values of a kind."""
        if kind in (Kind.LANE, Kind.SCALAR):
            return self.number
        return "i64" if kind in (Kind.INDEX, Kind.COUNT) else "i32"

    def type_of(self, x: Operand) -> str:
        """Return the type of an operand."""
        return self.type(x.kind) if isinstance(x, Constant) else self.types[x]

    def add_counter(self, k: int) -> None:
        """Add the counter of a loop."""
        self.types[k] = "i64"
        self._counters.add(k)

    def is_shift(self, s: Let) -> bool:
        """Return whether an operation adds a constant to a counter."""
        return s.op == "add" and s.args[0] in self._counters and isinstance(s.args[1], Constant)

    def keep_shift(self, s: Let) -> None:
        """Keep a counter plus a constant, which has no code of its own."""
        counter, constant = s.args
        assert isinstance(counter, int) and isinstance(constant, Constant)
        self.types[s.to] = self.type(s.kind)
        self._shifted[s.to] = (counter, int(constant.value))

    def reads_memory(self, s: Let) -> bool:
        """Return whether an operation reads memory, itself or by operands that wait on the stack."""
        return s.op in READS or any(self._pending[x][1] for x in s.args if isinstance(x, int) and x in self._pending)

    def keep(self, s: Let, made: Code, *, reads: bool) -> None:
        """Keep the code of an operation for the only statement that uses it, or write it into a variable."""
        self.types[s.to] = self.type(s.kind)
        if s.to in self._once:
            self._pending[s.to] = (made, reads)
        else:
            self.code += [*made, ("local.set", s.to)]

    def place(self, index: Operand) -> tuple[int | None, int]:
        """Return an index as the sum of a value, None if there is none, and a number."""
        if isinstance(index, Constant):
            return None, int(index.value)
        value, more = self._shifted.get(index, (index, 0))
        return (None, self.known[value] + more) if value in self.known else (value, more)

    def push(self, *operands: Operand | str) -> Code:
        """Return the code that pushes operands on the stack."""
        return [token for x in operands for token in self._pushed(x)]

    def _pushed(self, x: Operand | str) -> Code:
        assert not isinstance(x, str)
        if isinstance(x, Constant):
            kind = self.type(x.kind)
            return [real(float(x.value), kind) if kind == self.number else integer(int(x.value), kind)]
        if x in self._pending:
            return self._pending.pop(x)[0]
        value, more = self.place(x)
        if value is None:
            return [integer(more, "i64")]
        shift = [code(f"i64.const {more} i64.add")] if x in self._shifted else []
        return [("local.get", value), *shift]

    def settle(self) -> None:
        """Write all values on the stack into variables."""
        self._settle([*self._pending])

    def settle_reads(self) -> None:
        """Write the values on the stack that read memory into variables."""
        self._settle([k for k, (_, reads) in self._pending.items() if reads])

    def _settle(self, values: Iterable[int]) -> None:
        for k in values:
            self.code += [*self._pending.pop(k)[0], ("local.set", k)]
