"""The equations of a small mechanism in symbols, in textbook form, as SymPy, LaTeX or a Python function."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass, field, replace
from fractions import Fraction
from types import ModuleType
from typing import Any

from ..compiler.ir.operations import Op, apply
from ..compiler.ir.program import Program
from ..compiler.lower.build import Request, build
from ..dynamics import ALGORITHMS
from ..errors import InputError, ModelError, naming
from ..joints import kind
from ..model.axes import axis_labels
from ..model.mechanism import Mechanism
from ..runtime.compiled import CompiledMechanism
from .fourier import Monomial, Sum, exact, freed_numbers, import_sympy
from .reduction import REDUCED, SymbolicLoops

# --- Exact sums in textbook form: SymPy expressions in the shortest of a few forms ---


def textbook(x: Sum, table: dict[str, Any], motion: set[str]) -> Any:
    """Return a sum in SymPy in its shortest form: with sums of angles, or with products of sines and cosines."""
    sympy = import_sympy()

    angles = {name for name in table if any(f"~{name}" in dict(m) for m in x.terms)}
    trigonometry = {f"{f} {name}": getattr(sympy, f)(table[name]) for name in angles for f in ("cos", "sin")}
    forms = [_by_angles(sympy, x, table, motion)]
    if angles:
        forms += [_by_products(sympy, x.products(keep), table | trigonometry, motion) for keep in ("cos", "sin")]
    return min(forms, key=lambda form: form.count_ops())


def _by_angles(sympy: ModuleType, x: Sum, table: dict[str, Any], motion: set[str]) -> Any:
    total = sympy.Integer(0)
    for angle, what, terms in x.harmonics():
        argument = sympy.Add(*(k * table[name] for name, k in angle.items()))
        total += _collected(sympy, terms, table, motion) * getattr(sympy, what)(argument)
    return total


def _by_products(sympy: ModuleType, x: Sum, table: dict[str, Any], motion: set[str]) -> Any:
    groups: dict[Monomial, dict[Monomial, Fraction]] = {}
    for monomial, (c, _) in x.terms.items():
        angular = tuple((name, power) for name, power in monomial if " " in name)
        rest = tuple((name, power) for name, power in monomial if " " not in name)
        groups.setdefault(angular, {})[rest] = c
    return sympy.Add(
        *(
            _product(sympy, angular, Fraction(1), table) * _collected(sympy, terms, table, motion)
            for angular, terms in groups.items()
        )
    )


def _collected(sympy: ModuleType, terms: dict[Monomial, Fraction], table: dict[str, Any], motion: set[str]) -> Any:
    """Return the sum of terms as constant factors times functions of the motion, with equal factors collected."""
    coefficients: dict[Monomial, dict[Monomial, Fraction]] = {}
    for monomial, c in terms.items():
        moving = tuple((name, power) for name, power in monomial if name in motion)
        rest = tuple((name, power) for name, power in monomial if name not in motion)
        coefficients.setdefault(moving, {})[rest] = c
    factors: dict[Any, Any] = {}  # of SymPy's expressions
    for moving, rest in coefficients.items():
        whole = sympy.factor(sympy.expand(sympy.Add(*(_product(sympy, m, c, table) for m, c in rest.items()))))
        number, factor = whole.as_coeff_Mul()
        factors[factor] = factors.get(factor, 0) + number * _product(sympy, moving, Fraction(1), table)
    return sympy.Add(*(_signed(factor, sympy.factor(moving)) for factor, moving in factors.items()))


def _signed(factor: Any, moving: Any) -> Any:
    """Return the product with its sign in front, -a (x + y) rather than a (-x - y)."""
    negative = moving.could_extract_minus_sign() and not factor.is_Add and factor != 1
    return -factor * -moving if negative else factor * moving


def _product(sympy: ModuleType, monomial: Monomial, c: Fraction, table: dict[str, Any]) -> Any:
    factors = [table[name] ** power for name, power in monomial]
    return sympy.Mul(sympy.Rational(c.numerator, c.denominator), *factors)


SYMBOLS = ("declared", "all", "none")
"""The numbers that may stay symbols: the declared parameters of the mechanism, all, or none but the state."""
MOST = 6
"""The most degrees of freedom of a mechanism whose equations are printed; beyond, they fill pages."""
LONGEST = 20_000
"""The most characters of an equation that notebooks show in LaTeX."""
SHORT = (Op.ADD, Op.SUB, Op.MUL, Op.DIV, Op.NEG, Op.SIN, Op.COS)
"""The operations that exact sums support."""
MOTION = ("q", "qd", "qdd", "tau", "wrenches")


@dataclass(frozen=True, repr=False)
class SymbolicFunction:
    """A function of a mechanism in SymPy. `entries` are those of the result, row by row; `shape` is its shape.

    `arguments` holds the symbols of q, qd, ... by name. `parameters` maps the other symbols to their values, and
    `legend` all symbols to what they are. A function of a closed mechanism is that of the open tree: `loops` has what
    closes it, and `reduced()` returns the function of independent joints. `notes` say what the equations leave out.
    """

    name: str
    output: str
    shape: tuple[int, ...]
    entries: tuple[Any, ...]
    arguments: dict[str, tuple[Any, ...]]
    parameters: dict[Any, float]
    legend: dict[Any, str] = field(default_factory=dict)
    loops: SymbolicLoops | None = None
    notes: tuple[str, ...] = ()

    def reduced(self, joints: str | Sequence[str] = ()) -> SymbolicFunction:
        """Return the function with the loops closed, for independent joints: G^T I G and G^T tau, with qd = G x.

        By default the joints are those of `arm.independent()`. q, qd and qdd remain the vectors of all joints, which
        the loops determine: `assemble`, `consistent_speeds` and `consistent_accelerations` return them.
        """
        if self.loops is None or self.name not in REDUCED:
            raise InputError(
                f"{self.name} has no reduced form here; {', '.join(REDUCED)} of a closed mechanism have one, if its "
                "loops have short equations"
            )
        names, entries = self.loops.reduced(joints)
        shape = (len(names),) * len(self.shape)
        note = f"Loops are closed: entries are those of {', '.join(names)}, and q satisfies {self._closed()}."
        return replace(
            self, name=f"reduced_{self.name}", shape=shape, entries=tuple(entries), loops=None, notes=(note,)
        )

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
        names = self._names()
        equation = f"{left} = {sympy.latex(self.expression, symbol_names=names)}"
        if self.loops is None:
            return equation
        gaps = r",\quad ".join(f"{sympy.latex(x, symbol_names=names)} = 0" for x in self.loops.gaps)
        return rf"{equation} \quad\text{{(open tree; loops close where }} {gaps}\text{{)}}"

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
            f'    """Return {" ".join([f"{self.output}, shape {list(self.shape)}.", *self.notes])}"""',
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
        lines = lines or [f"{self.output} = 0"]
        lines += self.notes
        seen = set().union(*(x.free_symbols for x in (*self.entries, *(self.loops.gaps if self.loops else ()))))
        used = [s for s in self.parameters if s in seen]
        width = max((len(str(s)) for s in used), default=0)
        lines += [f"  {s!s:<{width}} = {self.parameters[s]:.6g}: {self.legend[s]}" for s in used if s in self.legend]
        return "\n".join(lines)

    def _closed(self) -> str:
        """Return the equations that close the loops, as text."""
        if self.loops is None:
            return ""
        return ", ".join(f"{x} = 0 ({label})" for x, label in zip(self.loops.gaps, self.loops.labels, strict=True))

    def __repr__(self) -> str:
        """Return the lines, for consoles."""
        return str(self)

    def _repr_latex_(self) -> str | None:
        """Return the equation for notebooks; None if it is too long to be read, and its lines are shown instead."""
        text = self.latex()
        return f"$\\displaystyle {text}$" if len(text) <= LONGEST else None

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
    c1x, inertias I1zz, lengths of links l1, gravity g), or "none". The Program is replayed on exact sums, and numbers
    become fractions. Functions of closed mechanisms are those of the open tree, with the equations that close it;
    `reduced()` of the result has the loops closed. The mechanism's own forces are left out.
    """
    sympy = import_sympy()
    if symbols not in SYMBOLS:
        raise InputError(naming(f"{{symbols}} is {symbols!r}; expected one of {', '.join(SYMBOLS)}", symbols=""))
    mechanism = system if isinstance(system, Mechanism) else system.mechanism
    request = Request(function, frame).checked(mechanism)
    _refuse(mechanism, request)
    freed, kept, texts = freed_numbers(mechanism, symbols)
    program = build(freed, request)
    roots: dict[str, Any] = {}
    clash = {p.name for p in mechanism.parameters} & {f"{name}{k}" for name in MOTION for k in range(1, 10)}
    if clash:
        raise InputError(f"the parameter {min(clash)!r} has the name of a coordinate; rename it")
    arguments = {a.name: [f"{a.name}{k}" for k in range(1, a.size + 1)] for a in program.inputs if a.name in MOTION}
    results = _replayed(program, freed, kept, roots)
    table = {name: sympy.Symbol(name, real=True) for names in arguments.values() for name in names}
    table |= {name: sympy.Symbol(name, real=True) for name in kept}

    def printed(x: Sum) -> Any:
        return textbook(x, table | roots, set(table) - set(kept))

    used = {name: tuple(table[n] for n in names) for name, names in arguments.items()}
    entries = tuple(map(printed, results))
    loops = None
    if mechanism.closures and not function.startswith("closure_"):
        system = CompiledMechanism(mechanism) if isinstance(system, Mechanism) else system
        loops = _loops(system, freed, kept, roots, tuple(results), printed)
    seen = set().union(*(x.free_symbols for x in (*entries, *(loops.gaps if loops else ())))) if entries else set()
    declared = {p.name for p in mechanism.parameters}
    parameters = {table[n]: float(value) for n, value in kept.items() if n in declared or table[n] in seen}
    made = SymbolicFunction(
        function,
        program.outputs[0].name,
        program.outputs[0].shape,
        entries,
        used,
        parameters,
        {table[n]: text for n, text in texts.items() if n in table} | _coordinates(mechanism, arguments, table),
        loops,
    )
    return replace(made, notes=tuple(_notes(mechanism, made)))


def _notes(mechanism: Mechanism, made: SymbolicFunction) -> Iterator[str]:
    """Yield what the equations leave out: loops, and forces of the mechanism."""
    if mechanism.closures and not made.name.startswith("closure_"):
        cut = ", ".join(repr(x.name) for x in (*mechanism.loops, *mechanism.couplings))
        if made.loops is None:
            rest = "by equations without a short form"
        else:
            rest = f"where {made._closed()}" + ("; see reduced()" if made.name in REDUCED else "")
        yield f"This is {made.output} of the open tree, every joint free; closed by {cut} {rest}."
    if mechanism.has_forces and ALGORITHMS[made.name].wrenches:
        yield "Springs, damping and friction of the mechanism are left out."


def _coordinates(mechanism: Mechanism, arguments: dict[str, list[str]], table: dict[str, Any]) -> dict[Any, str]:
    """Return what the symbols of the motion are."""
    words = {"q": 0, "qd": 1, "qdd": 1, "tau": 1}
    return {
        table[n]: f"{name} of {label}"
        for name, names in arguments.items()
        if name in words
        for n, label in zip(names, axis_labels(mechanism, words[name]), strict=True)
    }


def _loops(
    system: CompiledMechanism,
    freed: Mechanism,
    kept: dict[str, float],
    roots: dict[str, Any],
    sums: tuple[Sum, ...],
    printed: Callable[[Sum], Any],
) -> SymbolicLoops | None:
    """Return the equations that close the loops; None if they have no short form."""
    try:
        residual, J = (
            _replayed(build(freed, Request(name).checked(freed)), freed, kept, roots)
            for name in ("closure_residual", "closure_jacobian")
        )
    except InputError:
        return None
    rows = [tuple(J[k * system.nv : (k + 1) * system.nv]) for k in range(len(residual))]
    numbers = tuple(k for k, row in enumerate(rows) if any(x.terms for x in row))
    labels = tuple(f"{c.name}, {c.label}" for c in system.closures)
    return SymbolicLoops(
        system,
        numbers,
        tuple(labels[k] for k in numbers),
        tuple(printed(residual[k]) for k in numbers),
        tuple(rows[k] for k in numbers),
        sums,
        printed,
    )


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


def _replayed(program: Program, freed: Mechanism, kept: dict[str, float], roots: dict[str, Any]) -> list[Sum]:
    """Return the entries of a Program's output on exact sums; irrational constants are collected in `roots`."""
    sympy = import_sympy()
    inputs = [
        [Sum.symbol(f"{a.name}{k}") for k in range(1, a.size + 1)] if a.name in MOTION else _values(freed, kept)
        for a in program.inputs
    ]

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
