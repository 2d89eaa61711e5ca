"""The equations of a small mechanism in symbols, in textbook form, as SymPy, LaTeX or a Python function."""

from __future__ import annotations

from dataclasses import dataclass
from fractions import Fraction
from typing import Any

from ...compiled import CompiledMechanism
from ...compiler.ir.operations import Op, apply
from ...compiler.ir.program import Program
from ...compiler.lower.build import Request, build
from ...dynamics import ALGORITHMS
from ...errors import InputError, ModelError
from ...joints import kind
from ...model.mechanism import Mechanism
from .fourier import Sum, exact
from .symbols import freed_numbers, import_sympy
from .textbook import textbook

SYMBOLS = ("declared", "all", "none")
"""The numbers that may stay symbols: the declared parameters of the mechanism, all, or none but the state."""
MOST = 6
"""The most degrees of freedom of a mechanism whose equations are printed; beyond, they fill pages."""
SHORT = (Op.ADD, Op.SUB, Op.MUL, Op.DIV, Op.NEG, Op.SIN, Op.COS)
"""The operations that exact sums support."""
MOTION = ("q", "qd", "qdd", "tau", "wrenches")


@dataclass(frozen=True)
class SymbolicFunction:
    """A function of a mechanism in SymPy. `entries` are those of the result, row by row; `shape` is its shape.

    `arguments` holds the symbols of q, qd, ... by name. `parameters` maps the other symbols to their values.
    """

    name: str
    output: str
    shape: tuple[int, ...]
    entries: tuple[Any, ...]
    arguments: dict[str, tuple[Any, ...]]
    parameters: dict[Any, float]

    @property
    def expression(self) -> Any:
        """The result as a SymPy matrix (a column for vectors), or a single expression."""
        sympy = import_sympy()

        if not self.shape:
            return self.entries[0]
        rows, columns = self.shape if len(self.shape) == 2 else (self.shape[0], 1)
        return sympy.Matrix(rows, columns, list(self.entries))

    def latex(self) -> str:
        """Return the equation in LaTeX: the letter of the result, and its entries."""
        sympy = import_sympy()

        left = {"tau": r"\boldsymbol{\tau}", "h": r"\mathbf{h}", "g": r"\mathbf{g}"}.get(self.output)
        left = left or (rf"\mathbf{{{self.output}}}" if self.shape else self.output)
        return f"{left} = {sympy.latex(self.expression, symbol_names=self._names())}"

    def python(self) -> str:
        """Return the source of a Python function that requires only the standard library."""
        sympy = import_sympy()

        shared, entries = sympy.cse(list(self.entries), symbols=sympy.numbered_symbols("x_"))
        code = lambda x: sympy.pycode(x).replace("math.", "")  # noqa: E731 - a short name for a long line
        given = [name for name in self.arguments if self.arguments[name]]
        defaults = ", ".join(repr(value) for value in self.parameters.values())
        more = [f"parameters=({defaults},)"] if self.parameters else []
        lines = [
            "from math import cos, pi, sin, sqrt  # noqa: F401",
            "",
            "",
            f"def {self.name}({', '.join(given + more)}):",
            f'    """Return {self.output}, shape {list(self.shape)}."""',
        ]
        for name in given:
            lines.append(f"    {_unpacked(self.arguments[name])} = {name}")
        if self.parameters:
            lines.append(f"    {_unpacked(tuple(self.parameters))} = parameters")
        lines += [f"    {symbol} = {code(value)}" for symbol, value in shared]
        return "\n".join([*lines, f"    return {_nested([code(x) for x in entries], self.shape)}"]) + "\n"

    def __str__(self) -> str:
        """Return one line for each entry that is not zero."""
        width = self.shape[1] if len(self.shape) == 2 else 1
        lines = []
        for k, entry in enumerate(self.entries):
            index = "".join(f"[{i}]" for i in (divmod(k, width) if len(self.shape) == 2 else (k,)))
            if entry != 0 or len(self.entries) == 1:
                lines.append(f"{self.output}{index if self.shape else ''} = {entry}")
        return "\n".join(lines) or f"{self.output} = 0"

    def _names(self) -> dict[Any, str]:
        dots = {"q": "q", "qd": r"\dot{q}", "qdd": r"\ddot{q}", "tau": r"\tau"}
        names = {
            symbol: f"{dots[name]}_{{{k}}}"
            for name, symbols in self.arguments.items()
            if name in dots
            for k, symbol in enumerate(symbols, 1)
        }
        return names | {symbol: _latex_name(str(symbol)) for symbol in self.parameters}


def equations(
    system: CompiledMechanism | Mechanism,
    function: str = "inertia_matrix",
    *,
    symbols: str = "declared",
    frame: str | None = None,
) -> SymbolicFunction:
    """Return a function of a small System (or Mechanism) in symbols, every cancellation done.

    `symbols` selects the numbers that stay symbols: "declared" parameters, "all" numbers (masses m1, centers of mass
    c1x, inertias I1zz, distances l2x, gravity g), or "none". The Program is replayed on exact sums, and numbers become
    fractions.
    """
    sympy = import_sympy()
    if symbols not in SYMBOLS:
        raise InputError(f"symbols is {symbols!r}; expected one of {', '.join(SYMBOLS)}")
    mechanism = system if isinstance(system, Mechanism) else system.mechanism
    request = Request(function, frame).checked(mechanism)
    _refuse(mechanism, request)
    freed, kept = freed_numbers(mechanism, symbols)
    program = build(freed, request)
    roots: dict[str, Any] = {}
    clash = {p.name for p in mechanism.parameters} & {f"{name}{k}" for name in MOTION for k in range(1, 10)}
    if clash:
        raise InputError(f"the parameter {min(clash)!r} has the name of a coordinate; rename it")
    arguments = {a.name: [f"{a.name}{k}" for k in range(1, a.size + 1)] for a in program.inputs if a.name in MOTION}
    inputs = [arguments.get(a.name) for a in program.inputs]
    given = [[Sum.symbol(name) for name in names] if names else _values(freed, kept) for names in inputs]
    results = _replayed(program, given, roots)
    table = {name: sympy.Symbol(name, real=True) for names in arguments.values() for name in names}
    table |= {name: sympy.Symbol(name, real=True) for name in kept}
    used = {name: tuple(table[n] for n in names) for name, names in arguments.items()}
    entries = tuple(textbook(x, table | roots, set(table) - set(kept)) for x in results)
    seen = set().union(*(x.free_symbols for x in entries)) if entries else set()
    declared = {p.name for p in mechanism.parameters}
    parameters = {table[n]: float(value) for n, value in kept.items() if n in declared or table[n] in seen}
    return SymbolicFunction(function, program.outputs[0].name, program.outputs[0].shape, entries, used, parameters)


def _refuse(mechanism: Mechanism, request: Request) -> None:
    if len(ALGORITHMS[request.name].outputs) > 1:
        raise InputError(f"{request.name} has several outputs; choose a function with one output")
    where = f"mechanism {mechanism.name!r}"
    for joint in mechanism.joints:
        if kind(joint.kind).QUATERNION is not None:
            raise ModelError(
                f"joint {joint.name!r} has a quaternion, which no textbook prints",
                where=where,
                remedy=f"use a {kind(joint.kind).ANGLES} joint",
            )
    if ALGORITHMS[request.name].inverts:
        raise InputError(
            f"{request.name} divides by long sums; print inertia_matrix and bias_torque, and solve for qdd"
        )
    if mechanism.nv > MOST:
        raise ModelError(
            f"{mechanism.nv} degrees of freedom give equations that are too long to read",
            where=where,
            remedy=f"print those of a mechanism with {MOST} or fewer; numbers come from the compiled functions",
        )


def _values(mechanism: Mechanism, kept: dict[str, float]) -> list[Sum]:
    """Return each free parameter as a symbol or as its exact number."""
    return [Sum.symbol(p.name) if p.name in kept else exact(p.value) for p in mechanism.free_parameters]


def _replayed(program: Program, inputs: list, roots: dict[str, Any]) -> list[Sum]:
    """Return the entries of a Program's output on exact sums; irrational constants are collected in `roots`."""
    sympy = import_sympy()

    def root(square: Fraction, negative: bool) -> Sum:
        name = f"sqrt({square})"
        roots[name] = sympy.sqrt(sympy.Rational(square.numerator, square.denominator))
        return -Sum.symbol(name) if negative else Sum.symbol(name)

    def on_sums(op: Op, *operands: Sum) -> Sum:
        if op not in SHORT:
            raise InputError(f"{program.name} needs {op.name.lower()}, which has no short form")
        return apply(op, *operands)

    return program.replay(inputs, on_sums, lambda x: exact(x, root))[0]


def _unpacked(symbols: tuple) -> str:
    return ", ".join(map(str, symbols)) + ("," if len(symbols) == 1 else "")


def _nested(entries: list[str], shape: tuple[int, ...]) -> str:
    if not shape:
        return entries[0]
    if len(shape) == 1:
        return f"[{', '.join(entries)}]"
    step = len(entries) // shape[0]
    return "[" + ", ".join(_nested(entries[k * step : (k + 1) * step], shape[1:]) for k in range(shape[0])) + "]"


def _latex_name(name: str) -> str:
    """Return a name in LaTeX: c1x as c_{1x}, Greek letters by their commands."""
    head = name.rstrip("_0123456789xyz") or name
    greek = ("alpha", "beta", "gamma", "delta", "theta", "phi", "psi", "rho", "mu", "omega")
    return (f"\\{head}" if head in greek else head) + (f"_{{{name[len(head) :].strip('_')}}}" if name != head else "")
