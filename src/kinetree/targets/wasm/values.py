"""Values of a kernel in WebAssembly: on the stack until their only use, otherwise in variables.

Loads that wait on the stack are written to variables before any store, so that none is moved past it.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Mapping, Sequence

from ...compiler.lanes.form import (
    Constant,
    Kind,
    Let,
    Loop,
    Operand,
    Repeat,
    Statement,
    While,
    nested_statements,
    operands,
)
from ...errors import InputError
from .module import code, indexed_instruction, integer, real

# --- Values of kernels that are used once, in the block of statements that computes them: they can stay on a stack.


def used_once(body: tuple[Statement, ...]) -> set[int]:
    """Return the values with one use, in the block of statements that computes them."""
    uses: Counter[int] = Counter()
    together: set[int] = set()

    def visit(statements: tuple[Statement, ...], *last: Operand) -> None:
        """Count the uses in a block, whose end uses `last`."""
        made = {s.to for s in statements if isinstance(s, Let)}
        for s in statements:
            if isinstance(s, While):
                visit(s.test, s.condition)
                visit(s.body)
            elif isinstance(s, Repeat):
                visit(s.body, s.again)
            else:
                more = (s.stop,) if isinstance(s, Loop) else ()  # it is read twice, and thus a variable
                use((*operands(s), *more), made)
                visit(nested_statements(s))
        use(last, made)

    def use(values: tuple[Operand | str, ...], made: set[int]) -> None:
        numbers = [x for x in values if isinstance(x, int)]
        uses.update(numbers)
        together.update(made.intersection(numbers))

    visit(body)
    return {k for k in together if uses[k] == 1}


# --- Local variables of a WebAssembly function: values share few variables, each free again after the last use.

Token = bytes | tuple[str, int]
"""Code, or an access to a value by its number: ("local.get", k), ("local.set", k) or ("local.tee", k)."""

MOST_VARIABLES = 50_000
"""The largest number of local variables that V8 accepts in a function."""

MOST_BYTES = 7_654_321
"""The largest function that V8 accepts [bytes]."""


def assign(
    tokens: Sequence[Token],
    types: Mapping[int, str],
    parameters: int,
    name: str,
    loops: Sequence[tuple[int, int]] = (),
) -> tuple[list[tuple[int, str]], bytes]:
    """Return the counts of variables by type, and the code with values replaced by variables.

    Every value is written before it is read. `loops` are the first and last places of loops among the tokens, inner
    ones first. Variables that are accessed often have small indices, which take fewer bytes.
    """
    last = _last_uses(tokens, loops)
    ends: dict[int, list[int]] = {}
    for value, at in last.items():
        ends.setdefault(at, []).append(value)
    made: list[str] = []
    free: dict[str, list[int]] = {kind: [] for kind in types.values()}
    place: dict[int, int] = {}
    accesses: Counter[int] = Counter()
    for at, token in enumerate(tokens):
        if not isinstance(token, bytes):
            value = token[1]
            if value not in place:
                pool = free[types[value]]
                place[value] = pool.pop() if pool else len(made)
                if place[value] == len(made):
                    made.append(types[value])
            accesses[place[value]] += 1
        for value in ends.get(at, ()):
            free[types[value]].append(place[value])
    _refuse_large(name, len(made) + parameters, MOST_VARIABLES, "variables")
    kinds = sorted(set(made), key=lambda kind: -sum(n for k, n in accesses.items() if made[k] == kind))
    order = sorted(range(len(made)), key=lambda k: (kinds.index(made[k]), -accesses[k]))
    index = {k: parameters + at for at, k in enumerate(order)}
    code = b"".join(
        t if isinstance(t, bytes) else indexed_instruction(t[0], index[place[t[1]]]) for t in _joined(tokens, last)
    )
    _refuse_large(name, len(code), MOST_BYTES, "bytes")
    return [(made.count(kind), kind) for kind in kinds], code


def _last_uses(tokens: Sequence[Token], loops: Sequence[tuple[int, int]]) -> dict[int, int]:
    """Return the place of the last access to each value; in a loop, values from before are used until its end."""
    first: dict[int, int] = {}
    last: dict[int, int] = {}
    for at, token in enumerate(tokens):
        if not isinstance(token, bytes):
            first.setdefault(token[1], at)
            last[token[1]] = at
    for start, end in loops:
        for value, at in last.items():
            if first[value] < start <= at < end:
                last[value] = end
    return last


def _joined(tokens: Sequence[Token], last: Mapping[int, int]) -> list[Token]:
    """Replace each write that is directly followed by a read of the same value by one instruction, or by none."""
    out: list[Token] = []
    for at, token in enumerate(tokens):
        if out and not isinstance(token, bytes) and token[0] == "local.get" and out[-1] == ("local.set", token[1]):
            out.pop()
            if last[token[1]] > at:
                out.append(("local.tee", token[1]))
        else:
            out.append(token)
    return out


def _refuse_large(name: str, count: int, most: int, what: str) -> None:
    if count > most:
        raise InputError(
            f"{name} takes {count:,} {what} in WebAssembly; browsers accept at most {most:,} per function: export a "
            "mechanism of fewer bodies"
        )


READS = ("load", "own", "shared")
"""The operations that read memory."""

Code = list[Token]


class Values:
    """The code of a function so far, and the place of each value; `number` is the type of floating-point numbers."""

    def __init__(self, body: tuple[Statement, ...], number: str) -> None:
        """Start without code; `body` is the body of the whole kernel."""
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
