"""C source of a unit: the target's entry, and the pieces of which exported files consist."""

from __future__ import annotations

from ...errors import InputError
from ..ir.program import Program
from ..lanes.form import Kernel
from .arrays import arrays_of
from .c99.kernels import extents, kernel_parts, kernel_statements
from .c99.names import REALS, identifier
from .c99.programs import NOINLINE, functions, idle, is_split
from .protocol import Unit


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
