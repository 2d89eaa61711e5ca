"""C functions of Programs; the code of long ones is split into parts, since compilers take long for long functions."""

from __future__ import annotations

import math
import re
from collections.abc import Sequence
from dataclasses import dataclass, field

import numpy as np

from ...compiler.ir.operations import BOOLEANS, OPERATIONS, Op
from ...compiler.ir.program import Program

# --- Types, names and numbers in C ---

REALS = {"float64": ("double", ""), "float32": ("float", "f")}
"""The C type of numbers and the suffix of the C library's functions, by dtype."""

KEYWORDS = frozenset(
    "auto break case char const continue default do double else enum extern float for goto if inline int long "
    "register restrict return short signed sizeof static struct switch typedef union unsigned void volatile while "
    "and and_eq asm bitand bitor bool catch class compl constexpr const_cast decltype delete dynamic_cast explicit "
    "export false friend mutable namespace new noexcept not not_eq nullptr operator or or_eq private protected public "
    "reinterpret_cast static_cast template this throw true try typeid typename using virtual wchar_t xor xor_eq "
    "I".split()
)
"""The keywords of C and C++, since headers serve both, and the macro I of complex.h."""

LOCAL = re.compile(r"[vmn]\d|m_")
"""The beginning of the names of local variables, blocks of memory and extents."""


def identifier(name: str) -> str:
    """Return a valid name in C and C++ that no local variable has."""
    plain = re.sub(r"[^A-Za-z0-9_]", "_", name)
    free = re.match(r"[A-Za-z]", plain) and not LOCAL.match(plain) and plain not in KEYWORDS
    return plain if free else f"a_{plain}"


def number(x: float, suffix: str) -> str:
    """Return a number as a hexadecimal literal that keeps every bit of the type."""
    if suffix:
        with np.errstate(over="ignore"):
            x = float(np.float32(x))
    if not math.isfinite(x):
        return "NAN" if math.isnan(x) else ("INFINITY" if x > 0 else "(-INFINITY)")
    text = float(x).hex() + suffix
    return f"({text})" if text.startswith("-") else text


OPERATORS = {
    Op.ADD: "{} + {}",
    Op.SUB: "{} - {}",
    Op.MUL: "{} * {}",
    Op.DIV: "{} / {}",
    Op.NEG: "-{}",
    Op.LESS: "{} < {}",
    Op.AND: "{} && {}",
    Op.OR: "{} || {}",
    Op.NOT: "!{}",
    Op.SELECT: "{} ? {} : {}",
}
"""The operations that are operators in C; all others are functions of math.h with the names of OPERATIONS."""

PART = 800
"""The number of operations of a part of a long function.

The time of compilers grows faster than the length of a function: GCC at -O2 took 4.7 s for 8,700 operations in one
function, and 1.4 s in parts."""

NOINLINE = """\
#if defined(__GNUC__)
#define KINETREE_PART static __attribute__((noinline))
#else
#define KINETREE_PART static
#endif
"""
"""The storage class of parts: compilers must not merge them again."""


@dataclass
class _Split:
    """The operations of each part, and the places in the work array `m0` of values that later parts read."""

    parts: list[list[int]]
    place: dict[int, int] = field(default_factory=dict)
    size: int = 0


def is_split(program: Program) -> bool:
    """Return whether the code of a Program is split into parts."""
    return len(program.ops) > 2 * PART


def functions(program: Program, dtype: str, name: str, inputs: Sequence[str], outputs: Sequence[str]) -> tuple:
    """Return the definitions of the parts of a Program, and the statements that compute its outputs.

    `inputs` are the C expressions of pointers to the input arrays, `outputs` of pointers to the output arrays.
    """
    real, _ = REALS[dtype]
    split = _split(program)
    if len(split.parts) == 1:
        return [], _statements(program, dtype, split, split.parts[0], inputs, outputs)
    # A part takes all arrays under names of its own.
    n_in, n_out = [f"n{k}" for k in range(len(inputs))], [f"m{k + 1}" for k in range(len(outputs))]
    arguments = [*(f"const {real} *{x}" for x in n_in), *(f"{real} *{x}" for x in n_out), f"{real} *m0"]
    parts, calls = [], [f"{real} m0[{max(split.size, 1)}];"]
    for k, ops in enumerate(split.parts):
        lines = _statements(program, dtype, split, ops, n_in, n_out)
        body = "\n".join(f"    {line}" for line in (*idle((*n_in, *n_out, "m0"), lines), *lines))
        parts.append(f"KINETREE_PART void {name}_part{k}({', '.join(arguments)})\n{{\n{body}\n}}\n")
        calls.append(f"{name}_part{k}({', '.join((*inputs, *outputs, 'm0'))});")
    return parts, calls


def idle(names: Sequence[str], lines: Sequence[str]) -> list[str]:
    """Return statements that avoid compiler warnings about arguments which the lines do not read."""
    found = set(re.findall(r"\w+", " ".join(lines)))
    return [f"(void){x};" for x in names if x not in found]


def _split(program: Program) -> _Split:
    """Return the parts of a Program, without operations that no result needs."""
    ops = program.ops
    needed = {k for entries in program.results for k in entries}
    for k in range(len(ops) - 1, -1, -1):
        if k in needed and ops[k][0] > Op.CONST:
            needed.update(ops[k][1:])
    counted = [k for k in range(len(ops)) if k in needed and ops[k][0] > Op.CONST]
    step = PART if is_split(program) else max(len(counted), 1)
    parts = [counted[a : a + step] for a in range(0, len(counted), step)] or [[]]
    split = _Split(parts)
    if len(parts) > 1:
        _place(program, split)
    return split


def _place(program: Program, split: _Split) -> None:
    """Give each value that a later part reads a place in the work array; places are used again after the last part."""
    made = {k: p for p, part in enumerate(split.parts) for k in part}
    last: dict[int, int] = {}
    for p, part in enumerate(split.parts):
        for k in part:
            for x in program.ops[k][1:]:
                if x in made and made[x] < p:
                    last[x] = p
    free: list[int] = []
    for p, part in enumerate(split.parts):
        for k in part:
            if k in last:
                split.place[k] = free.pop() if free else split.size
                split.size = max(split.size, split.place[k] + 1)
        free += [split.place[k] for k, end in last.items() if end == p]


def _statements(program: Program, dtype: str, split: _Split, part: list[int], inputs, outputs) -> list[str]:
    """Return the statements of one part: operations, values that later parts read, and outputs."""
    real, suffix = REALS[dtype]
    lines: list[str] = []
    values: dict[int, str] = {}
    own = set(part)

    def value(k: int) -> str:
        op, *x = program.ops[k]
        if op is Op.INPUT:
            return f"{inputs[x[0]]}[{x[1]}]"
        if op is Op.CONST:
            return number(x[0], suffix)
        if k not in values:
            kept = f"m0[{split.place[k]}]"
            values[k] = f"v{k}"
            lines.append(f"const {'int' if op in BOOLEANS else real} v{k} = {kept}{' != 0' * (op in BOOLEANS)};")
        return values[k]

    for k in part:
        op, *x = program.ops[k]
        operands = [value(j) for j in x]
        if op in OPERATORS:
            text = OPERATORS[op].format(*operands)
        else:
            text = f"{OPERATIONS[op].name}{suffix}({', '.join(operands)})"
        values[k] = f"v{k}"
        lines.append(f"const {'int' if op in BOOLEANS else real} v{k} = {text};")
    lines += [
        f"m0[{split.place[k]}] = {f'({real})' * (program.ops[k][0] in BOOLEANS)}v{k};" for k in part if k in split.place
    ]
    last = part is split.parts[-1]
    for name, entries in zip(outputs, program.results, strict=True):
        for j, k in enumerate(entries):
            if k in own or (last and program.ops[k][0] <= Op.CONST):
                lines.append(f"{name}[{j}] = {value(k)};")
    return lines
