"""C source of a unit: the target's entry, and the pieces of which exported files consist."""

from __future__ import annotations

from collections.abc import Callable, Iterable
from typing import Any

from ...compiler.ir.program import Program
from ...compiler.lanes import form
from ...compiler.lanes.form import Constant, Kernel, Kind, Operand, Statement, every, operands, visit
from ...errors import InputError
from .. import Unit
from ..abi import arrays_of
from .programs import NOINLINE, REALS, functions, identifier, idle, is_split, number

# --- C functions of kernels of the lane language for one lane: one run per call ---
#
# Values of lanes and uniform values are plain variables, since there is one lane. Memory blocks are local arrays.

BINARY = {
    "add": "+", "sub": "-", "mul": "*", "div": "/", "lt": "<", "le": "<=", "gt": ">", "ge": ">=", "eq": "==",
    "and": "&&", "or": "||",
}  # fmt: skip
"""The operations of the lane language that are operators between two values in C."""

BITS = """\
typedef union {{ {real} x; {whole} i; }} kinetree_bits;
static {real} kinetree_bits_of({real} x) {{ kinetree_bits b; b.x = x; return ({real})b.i; }}
static {real} kinetree_of_bits({real} x) {{ kinetree_bits b; b.i = ({whole})x; return b.x; }}
"""
"""Numbers from bit patterns and back, through an integer type of the same size."""

WHOLE = {"float64": "long long", "float32": "int"}
"""The integer type that is as wide as a number, by dtype."""


def kernel_parts(kernel: Kernel, dtype: str, name: str) -> list[str]:
    """Return the definitions of the functions that a kernel calls: its Programs, and the access to bit patterns."""
    real, _ = REALS[dtype]
    out = [BITS.format(real=real, whole=WHOLE[dtype])] if _uses_bits(kernel.body) else []
    for label, program in kernel.programs:
        out += _called(program, dtype, f"{name}_{identifier(label)}")
    return out


def kernel_statements(kernel: Kernel, dtype: str, name: str) -> list[str]:
    """Return the statements of the body of a kernel's function."""
    writer = _Writer(kernel, dtype, name)
    declared = [f"{writer.type(m.kind)} m_{identifier(m.name)}[{m.size}];" for m in writer.used_memory()]
    given = [*extents(kernel), *(identifier(a.name) for a in kernel.arguments)]
    return [*declared, *idle(given, writer.lines), *writer.lines]


def extents(kernel: Kernel) -> list[str]:
    """Return the C names of the extents that callers give before the arrays."""
    return ["nt"] if "t" in kernel.dimensions else []


def _called(program: Program, dtype: str, name: str) -> list[str]:
    """Return a function from a block of inputs to a block of outputs."""
    real, _ = REALS[dtype]
    sources, at = [], 0
    for a in program.inputs:
        sources.append(f"(source + {at})" if at else "source")
        at += a.size
    targets, at = [], 0
    for a in program.outputs:
        targets.append(f"(target + {at})" if at else "target")
        at += a.size
    parts, lines = functions(program, dtype, name, sources, targets)
    body = "\n".join(f"    {line}" for line in (*idle(["source"], lines), *lines))
    head = f"static void {name}(const {real} *source, {real} *target)"
    return [*parts, f"{head}\n{{\n{body}\n}}\n"]


def _uses_bits(body: Iterable[Statement]) -> bool:
    return any(isinstance(s, form.Let) and s.op in ("bits", "unbits") for s in every(body))


class _Writer:
    """The lines of a kernel's body; values that nested blocks assign are declared at the beginning."""

    def __init__(self, kernel: Kernel, dtype: str, name: str) -> None:
        self.kernel, self.name = kernel, name
        self.real, self.suffix = REALS[dtype]
        self.arguments = {a.name: a for a in kernel.arguments}
        self.values: dict[int, str] = {}
        self.used: set[str] = set()
        self.lines: list[str] = []
        self.depth = 0
        self.read = _needed(kernel.body)
        self.write(kernel.body)

    def used_memory(self):
        """Return the blocks of memory that statements access."""
        return [m for m in self.kernel.memory if m.name in self.used]

    def type(self, kind: Kind) -> str:
        """Return the C type of values of a kind."""
        if kind in (Kind.LANE, Kind.SCALAR):
            return self.real
        return "long long" if kind in (Kind.INDEX, Kind.COUNT) else "int"

    def put_line(self, text: str) -> None:
        self.lines.append("    " * self.depth + text)

    def write(self, body: Iterable[Statement]) -> None:
        visit(self, body)

    def nested(self, body: Iterable[Statement]) -> None:
        self.depth += 1
        self.write(body)
        self.depth -= 1

    def text(self, x: Operand) -> str:
        if not isinstance(x, Constant):
            return self.values[x]
        if x.kind in (Kind.LANE, Kind.SCALAR):
            return number(float(x.value), self.suffix)
        return str(int(x.value))

    def let(self, s: form.Let) -> None:
        if s.to in self.read:
            self.values[s.to] = f"v{s.to}"
            self.put_line(f"const {self.type(s.kind)} v{s.to} = {self._operation(s)};")

    def _operation(self, s: form.Let) -> str:
        if s.op == "load":
            return self._entry(s.array, s.operands[0])
        if s.op in ("own", "shared"):
            return self._element(s.array, s.operands)
        if s.op == "extent":
            return "nt"
        x = [self.text(a) for a in s.operands]
        if s.op == "choose":
            return f"((const {self.real}[]){{{', '.join(x[1:])}}})[{x[0]}]"
        if s.op in BINARY:
            return f"{x[0]} {BINARY[s.op]} {x[1]}"
        if s.op == "select":
            return f"{x[0]} ? {x[1]} : {x[2]}"
        if s.op in ("abs", "sqrt"):
            return f"{'fabs' if s.op == 'abs' else 'sqrt'}{self.suffix}({x[0]})"
        if s.op in ("bits", "unbits"):
            return f"kinetree_{'bits_of' if s.op == 'bits' else 'of_bits'}({x[0]})"
        plain = {"not": "!{}", "any": "{}", "splat": "{}", "number": f"({self.real}){{}}", "whole": "(long long){}"}
        return plain[s.op].format(x[0])

    def _entry(self, memory: str, index: Any) -> str:
        self.used.add(memory)
        return f"m_{identifier(memory)}[{self.text(index)}]"

    def _element(self, name: str, indices: Iterable[Any]) -> str:
        """Return an entry of an array in row-major order; only the first axis may be the axis of times."""
        flat = ""
        for size, index in zip(self.arguments[name].shape, indices, strict=True):
            flat = f"({flat}) * {size} + {self.text(index)}" if flat else self.text(index)
        return f"{identifier(name)}[{flat or '0'}]"

    def store(self, s: form.Store) -> None:
        self.put_line(f"{self._entry(s.memory, s.index)} = {self.text(s.value)};")

    def put(self, s: form.Put) -> None:
        self.put_line(f"{self._element(s.argument, s.indices)} = {self.text(s.value)};")

    def call(self, s: form.Call) -> None:
        self.used |= {s.source, s.target}
        target = f"m_{identifier(s.target)} + {self.text(s.first)}"
        self.put_line(f"{self.name}_{identifier(s.program)}(m_{identifier(s.source)}, {target});")

    def loop(self, s: form.Loop) -> None:
        counter = self.values[s.counter] = f"v{s.counter}"
        head = f"long long {counter} = 0; {counter} < {self.text(s.stop)}; ++{counter}"
        self.block(f"for ({head}) {{", s.body)

    def repeat(self, s: form.Repeat) -> None:
        # The condition is computed inside the braces, where a test after them could not read it.
        self.block("for (;;) {", s.body, lambda: self.put_line(f"if (!({self.text(s.again)})) break;"))

    def while_(self, s: form.While) -> None:
        self.put_line("for (;;) {")
        self.nested(s.test)
        self.depth += 1
        self.put_line(f"if (!({self.text(s.condition)})) break;")
        self.write(s.body)
        self.depth -= 1
        self.put_line("}")

    def when(self, s: form.When) -> None:
        self.block(f"if ({self.text(s.condition)}) {{", s.body)

    def each_lane(self, s: form.EachLane) -> None:
        self.block("{", s.body)

    def block(self, head: str, body: Iterable[Statement], end: Callable[[], None] | None = None) -> None:
        """Write a block in braces, with further lines at its end."""
        self.put_line(head)
        self.depth += 1
        self.write(body)
        if end:
            end()
        self.depth -= 1
        self.put_line("}")


def _needed(body: Iterable[Statement]) -> set[int]:
    """Return the values that statements read, unless only unread values are made of them."""
    statements = list(every(body))
    needed = {s.to for s in statements if isinstance(s, form.Let)}
    while (read := _read(statements, needed)) != needed:
        needed = read
    return needed


def _read(statements: Iterable[Statement], needed: set[int]) -> set[int]:
    """Return the values that statements read, without those that are not needed themselves."""
    used = (s for s in statements if not isinstance(s, form.Let) or s.to in needed)
    return {x for s in used for x in operands(s) if isinstance(x, int)}


class C:
    """The target C99."""

    def emit(self, unit: Unit, dtype: str) -> str:
        """Return the C source of a Program, or of a kernel for one run per call."""
        return source(unit, dtype)


def source(unit: Unit, dtype: str = "float64") -> str:
    """Return a file with one function."""
    return "\n".join([comment(unit), "#include <math.h>\n", definitions(unit, dtype)])


def definitions(unit: Unit, dtype: str) -> str:
    """Return the function of a unit, after the functions that it calls."""
    if not isinstance(unit, Program | Kernel):
        raise InputError(f"C source is not written for a {type(unit).__name__}; use lowering='unrolled'")
    name = identifier(unit.name)
    if isinstance(unit, Program):
        names = [identifier(a.name) for a in (*unit.inputs, *unit.outputs)]
        count = len(unit.inputs)
        parts, lines = functions(unit, dtype, name, names[:count], names[count:])
        lines, split = [*idle(names[:count], lines), *lines], is_split(unit)
    else:
        parts, lines = kernel_parts(unit, dtype, name), kernel_statements(unit, dtype, name)
        split = any(is_split(program) for _, program in unit.programs)
    body = "\n".join(f"    {line}" for line in lines)
    return "\n".join([*([NOINLINE] if split else []), *parts, f"{prototype(unit, dtype)}\n{{\n{body}\n}}\n"])


def prototype(unit: Program | Kernel, dtype: str) -> str:
    """Return the head of the function: extents, inputs, then outputs, as pointers to row-major arrays."""
    real, _ = REALS[dtype]
    arguments = [f"int {n}" for n in (extents(unit) if isinstance(unit, Kernel) else ())]
    for name, _, output in arrays_of(unit):
        arguments.append(f"{'' if output else 'const '}{real} *{identifier(name)}")
    return f"void {identifier(unit.name)}({', '.join(arguments)})"


def comment(unit: Unit) -> str:
    """Return the comment at the beginning of a file."""
    if not isinstance(unit, Program | Kernel):
        return ""
    given = [(identifier(name), shape, output) for name, shape, output in arrays_of(unit)]

    def listed(outputs: bool) -> str:
        chosen = [(name, shape) for name, shape, output in given if output is outputs]
        return ", ".join(
            name + "".join(f"[{'nt' if n == 't' else n}]" for n in shape or (1,)) for name, shape in chosen
        )

    return (
        f"/* {unit.name}, written by Kinetree: {listed(False)} -> {listed(True)}.\n"
        "   Arrays are dense and row-major, in SI units; inputs and outputs do not overlap.\n"
        "   No memory is allocated and nothing is checked: numbers that are not finite pass through. */"
    )
