"""Programs as WebAssembly functions: values that are used once stay on the stack, others are local variables.

Sines come first, since a call moves all values from registers to memory, and two at a time. Then the results are
computed in order, each value where it is first needed.
"""

from __future__ import annotations

import struct
from collections import Counter
from collections.abc import Iterator, Mapping, Sequence

from ...compiler.ir.operations import BOOLEANS, OPERATIONS, Op
from ...compiler.ir.program import Program
from .elementary import SIZES as GROUPS
from .module import PLAIN, Module, access, body, code, indexed_instruction, integer, real
from .values import Token, assign

REALS = {"float64": "f64", "float32": "f32"}
"""The type of numbers by dtype."""

SIZES = {"f64": 8, "f32": 4, "i64": 8, "i32": 4}
"""The bytes of a value by type."""

SINES = (Op.SIN, Op.COS)

NUMBERS = {Op.ADD: "add", Op.SUB: "sub", Op.MUL: "mul", Op.DIV: "div", Op.NEG: "neg", Op.SQRT: "sqrt", Op.LESS: "lt"}
"""The operations that are instructions of the type of numbers."""

TRUTH = {Op.AND: "i32.and", Op.OR: "i32.or", Op.NOT: "i32.eqz", Op.SELECT: "select"}
"""The operations on booleans, which are integers 0 and 1."""

CALLED = frozenset(OPERATIONS) - {*NUMBERS, *TRUTH, *SINES}
"""The operations that are functions of float64, in both precisions."""

Place = tuple[int, int]
"""The address of an array: the parameter of the function that has it, and an offset in bytes."""


def program_body(
    program: Program, dtype: str, places: Sequence[Place], parameters: int, functions: Mapping[str, int], module: Module
) -> bytes:
    """Return a function's entry of the code section, for arrays at `places`: the inputs, then the outputs.

    Its constants are in the memory of the module.

    `functions` has the indices of the functions of float64 that operations call, by name; "sines" has two results, and
    "sines of 2" or "of 4" have vectors of them.
    """
    w = _Writer(program, REALS[dtype], places, functions, module)
    w.write()
    types = {k: "i32" if op[0] in BOOLEANS else w.kind for k, op in enumerate(program.ops)} | {w.vector: "v128"}
    return body(*assign(w.tokens, types, parameters, program.name))


def groups_of_angles(ops: Sequence[tuple]) -> list[tuple[int, ...]]:
    """Return groups of angles of sines that do not depend on other sines.

    The last ones come first: the inward recursion of a mechanism begins at its last joints.
    """
    free: list[bool] = []
    for op in ops:
        free.append(op[0] not in SINES and (op[0] <= Op.CONST or all(free[k] for k in op[1:])))
    angles = list(dict.fromkeys(op[1] for op in reversed(ops) if op[0] in SINES and free[op[1]]))
    groups = []
    for size in GROUPS:
        while len(angles) >= size:
            groups.append(tuple(angles[:size]))
            del angles[:size]
    return groups


class _Writer:
    """The code of one Program in tokens; `done` are the values that are variables by now."""

    def __init__(
        self, program: Program, kind: str, places: Sequence[Place], functions: Mapping[str, int], module: Module
    ) -> None:
        self.ops, self.kind, self.functions, self.places, self.module = program.ops, kind, functions, places, module
        self.vector = len(self.ops)  # the number of the variable with two sines or two cosines
        self.tokens: list[Token] = []
        self.done: set[int] = set()
        self.stores: dict[int, list[Place]] = {}
        for (parameter, base), entries in zip(places[len(program.inputs) :], program.results, strict=True):
            for j, k in enumerate(entries):
                self.stores.setdefault(k, []).append((parameter, base + SIZES[kind] * j))
        self.uses: Counter[int] = Counter(k for op in self.ops if op[0] > Op.CONST for k in op[1:])
        self.uses.update(k for entries in program.results for k in entries)
        self.pairs: dict[int, dict[Op, int]] = {}
        for k, op in enumerate(self.ops):
            if op[0] in SINES:
                self.pairs.setdefault(op[1], {})[op[0]] = k

    def write(self) -> None:
        for angles in groups_of_angles(self.ops):
            self._expand(self._sines_together(angles))
        for angle in self.pairs:
            self._expand(self._sines(angle))
        for k, places in self.stores.items():
            for parameter, offset in places:
                self.tokens.append(indexed_instruction("local.get", parameter))
                self._expand(self._push(k))
                self.tokens.append(access(f"{self.kind}.store", offset))

    def _expand(self, first: Iterator[int | Token]) -> None:
        """Write nested code without recursion: sums of many terms are deep."""
        stack = [first]
        while stack:
            item = next(stack[-1], None)
            if item is None:
                stack.pop()
            elif isinstance(item, int):
                stack.append(self._push(item))
            else:
                self.tokens.append(item)

    def _push(self, k: int) -> Iterator[int | Token]:
        """Return the code that pushes a value on the stack; integers in it are values to push."""
        op, *x = self.ops[k]
        if k in self.done:
            yield "local.get", k
            return
        if op in SINES:  # of an angle that is computed from other sines
            yield from self._sines(x[0])
            yield "local.get", k
            return
        if op is Op.SELECT:
            yield from (x[1], x[2], x[0])
        elif op > Op.CONST:
            for operand in x:
                yield operand
                if self.kind == "f32" and op in CALLED:
                    yield PLAIN["f64.promote_f32"]
        made = self._code(op, x)
        yield made
        further = self.uses[k] - 1
        if further and (op is not Op.CONST or further * (len(made) - 2) > 2):  # where a variable takes fewer bytes
            self.done.add(k)
            yield "local.tee", k

    def _code(self, op: Op, x: list) -> bytes:
        if op is Op.CONST:
            return self._constant(x[0])
        if op is Op.INPUT:
            parameter, base = self.places[x[0]]
            return indexed_instruction("local.get", parameter) + access(
                f"{self.kind}.load", base + SIZES[self.kind] * x[1]
            )
        if op in NUMBERS:
            return PLAIN[f"{self.kind}.{NUMBERS[op]}"]
        if op in TRUTH:
            return PLAIN[TRUTH[op]]
        call = indexed_instruction("call", self.functions[OPERATIONS[op].name])
        return call if self.kind == "f64" else call + PLAIN["f32.demote_f64"]

    def _constant(self, x: float) -> bytes:
        """Return the code of a constant: in the code if it is short there, else in memory, where functions share it.

        V8 takes two instructions for a constant in the code, and one or none for a load.
        """
        made = real(x, self.kind)
        if self.kind == "f32" or len(made) < 6:
            return made
        return integer(0) + access("f64.load", self.module.number(struct.pack("<d", x)))

    def _sines_together(self, angles: tuple[int, ...]) -> Iterator[int | Token]:
        """Return the code for sines and cosines of several angles, by one call."""
        for angle in angles:
            yield angle
            if self.kind == "f32":
                yield PLAIN["f64.promote_f32"]
        yield indexed_instruction("call", self.functions[f"sines of {len(angles)}"])
        for op in (Op.COS, Op.SIN):
            for first in range(len(angles) - 2, -1, -2):
                yield "local.set", self.vector
                for lane, angle in enumerate(angles[first : first + 2]):
                    k = self.pairs[angle].get(op)
                    if k is None:
                        continue
                    yield "local.get", self.vector
                    yield code(f"f64x2.extract_lane {lane}")
                    if self.kind == "f32":
                        yield PLAIN["f32.demote_f64"]
                    self.done.add(k)
                    yield "local.set", k

    def _sines(self, angle: int) -> Iterator[int | Token]:
        """Return the code for sine and cosine of an angle, by one call."""
        pair = self.pairs[angle]
        if self.done.issuperset(pair.values()):
            return
        yield angle
        narrow = self.kind == "f32"
        if narrow:
            yield PLAIN["f64.promote_f32"]
        yield indexed_instruction("call", self.functions["sines"])
        for op in (Op.COS, Op.SIN):
            if op not in pair:
                yield PLAIN["drop"]
                continue
            if narrow:
                yield PLAIN["f32.demote_f64"]
            self.done.add(pair[op])
            yield "local.set", pair[op]
