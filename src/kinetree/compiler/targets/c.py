"""The target C99: a Program as one function of plain arrays that allocates no memory and includes only math.h."""

from __future__ import annotations

import math
import re

import numpy as np

from ...errors import InputError
from ..ir.operations import BOOLEANS, OPERATIONS, Op
from ..ir.program import Array, Program
from .protocol import Unit

REALS = {"float64": ("double", ""), "float32": ("float", "f")}
"""The C type of numbers and the suffix of the C library's functions, by dtype."""

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

KEYWORDS = frozenset(
    "auto break case char const continue default do double else enum extern float for goto if inline int long "
    "register restrict return short signed sizeof static struct switch typedef union unsigned void volatile "
    "while".split()
)


class C:
    """The target C99."""

    def emit(self, unit: Unit, dtype: str) -> str:
        """Return the C source of a Program."""
        if not isinstance(unit, Program):
            raise InputError(
                f"C source is written for a Program, not for a {type(unit).__name__}; use lowering='unrolled'"
            )
        return source(unit, dtype)


def source(program: Program, dtype: str = "float64") -> str:
    """Return a file with one function, whose arguments are the inputs, then the outputs, as row-major arrays."""
    real, _ = REALS[dtype]
    names = {a.name: identifier(a.name) for a in (*program.inputs, *program.outputs)}
    arguments = [f"const {real} *restrict {names[a.name]}" for a in program.inputs]
    arguments += [f"{real} *restrict {names[a.name]}" for a in program.outputs]
    read = {op[1] for op in program.ops if op[0] is Op.INPUT}
    idle = [
        f"(void){names[a.name]};" for k, a in enumerate(program.inputs) if k not in read
    ]  # avoids compiler warnings
    lines, values = _body(program, dtype, [names[a.name] for a in program.inputs])
    for a, entries in zip(program.outputs, program.results, strict=True):
        lines += [f"{names[a.name]}[{j}] = {values[k]};" for j, k in enumerate(entries)]
    head = f"void {identifier(program.name)}({', '.join(arguments)})"
    body = [f"    {x}" for x in (*idle, *lines)]
    return "\n".join([_comment(program, names), "#include <math.h>", "", head, "{", *body, "}\n"])


def identifier(name: str) -> str:
    """Return a valid C name that differs from those of local variables (v0, v1, ...)."""
    plain = re.sub(r"[^A-Za-z0-9_]", "_", name)
    return f"a_{plain}" if plain in KEYWORDS or not re.match(r"[A-Za-z]", plain) or re.match(r"v\d", plain) else plain


def _comment(program: Program, names: dict[str, str]) -> str:
    def listed(arrays: tuple[Array, ...]) -> str:
        return ", ".join(names[a.name] + "".join(f"[{n}]" for n in a.shape or (1,)) for a in arrays)

    return (
        f"/* {program.name}, written by Kinetree: {listed(program.inputs)} -> {listed(program.outputs)}.\n"
        "   Arrays are dense and row-major, in SI units; inputs and outputs do not overlap.\n"
        "   No memory is allocated and nothing is checked: numbers that are not finite pass through. */"
    )


def _body(program: Program, dtype: str, inputs: list[str]) -> tuple[list[str], list[str]]:
    """Return the statements, and the C expression of each operation's value."""
    real, suffix = REALS[dtype]
    lines: list[str] = []
    values: list[str] = []
    for op, *x in program.ops:
        if op is Op.INPUT:
            values.append(f"{inputs[x[0]]}[{x[1]}]")
        elif op is Op.CONST:
            values.append(_number(x[0], suffix))
        else:
            operands = [values[k] for k in x]
            if op in OPERATORS:
                text = OPERATORS[op].format(*operands)
            else:
                text = f"{OPERATIONS[op].name}{suffix}({', '.join(operands)})"
            values.append(f"v{len(lines)}")
            lines.append(f"const {'int' if op in BOOLEANS else real} {values[-1]} = {text};")
    return lines, values


def _number(x: float, suffix: str) -> str:
    """Return a number as a hexadecimal literal that keeps every bit of the type."""
    if suffix:
        with np.errstate(over="ignore"):
            x = float(np.float32(x))
    if not math.isfinite(x):
        return "NAN" if math.isnan(x) else ("INFINITY" if x > 0 else "(-INFINITY)")
    text = float(x).hex() + suffix
    return f"({text})" if x < 0 or text.startswith("-") else text
