"""The interface of CasADi's `external` around a C function: dense matrices in column-major order."""

from __future__ import annotations

from collections.abc import Sequence
from math import prod
from typing import Any

from ..._support.optional import casadi
from ...targets.abi import arrays_of
from ...targets.c.programs import identifier
from ..ir.operations import FUNCTIONS, Op, apply
from ..ir.program import Program
from ..lanes.form import Kernel

HEAD = """\
#ifdef KINETREE_CASADI
/* The interface of CasADi's external(), with matrices in column-major order. A null argument is zero. */
#undef {name}
#ifndef casadi_real
#define casadi_real double
#endif
#ifndef casadi_int
#define casadi_int long long int
#endif
#ifdef _WIN32
#define KINETREE_SYMBOL __declspec(dllexport)
#else
#define KINETREE_SYMBOL
#endif
"""

TAIL = """\
KINETREE_SYMBOL casadi_int {name}_n_in(void) {{ return {n_in}; }}
KINETREE_SYMBOL casadi_int {name}_n_out(void) {{ return {n_out}; }}
KINETREE_SYMBOL void {name}_incref(void) {{ }}
KINETREE_SYMBOL void {name}_decref(void) {{ }}
KINETREE_SYMBOL int {name}_work(casadi_int *sz_arg, casadi_int *sz_res, casadi_int *sz_iw, casadi_int *sz_w)
{{
    if (sz_arg) *sz_arg = {n_in};
    if (sz_res) *sz_res = {n_out};
    if (sz_iw) *sz_iw = 0;
    if (sz_w) *sz_w = 0;
    return 0;
}}
#endif
"""


Shape = tuple[int | str, ...]


def interface(unit: Program | Kernel, real: str, nominal: Sequence[tuple[str, Shape]] = ()) -> str:
    """Return the C source of the interface; empty for functions whose arrays have no fixed size.

    `nominal` are the outputs of the function whose Jacobian this is. CasADi passes them after the inputs, and they are
    not read.
    """
    arrays = arrays_of(unit)
    if any("t" in shape for _, shape, _ in arrays):
        return ""
    name = identifier(unit.name)
    given = [(label, matrix(shape)) for label, shape, output in arrays if not output]
    made = [(label, matrix(shape)) for label, shape, output in arrays if output]
    writes = [_written(k, r, c) for k, (_, (r, c)) in enumerate(made)]
    if nominal:
        pairs = [(o, matrix(shape), label, m) for o, shape in nominal for label, m in given]
        made = [(f"jac_{o}_{label}", (prod(rows), prod(columns))) for o, rows, label, columns in pairs]
        writes = [_written_jacobian(k, rows, columns) for k, (_, rows, _, columns) in enumerate(pairs)]
    lines = [HEAD.format(name=name), _evaluation(name, real, [m for _, m in given], [m for _, m in made], writes)]
    given += [(f"out_{label}", matrix(shape)) for label, shape in nominal]
    for which, listed in (("in", given), ("out", made)):
        lines += [_names(name, which, [label for label, _ in listed]), _sparsity(name, which, [m for _, m in listed])]
    lines.append(TAIL.format(name=name, n_in=len(given), n_out=len(made)))
    return "\n".join(lines)


def matrix(shape: tuple[int | str, ...]) -> tuple[int, int]:
    """Return rows and columns in CasADi: a vector is a column, and the matrices of a stack lie below each other."""
    sizes = [int(n) for n in shape]
    return (prod(sizes), 1) if len(sizes) < 2 else (prod(sizes[:-1]), sizes[-1])


def _written(k: int, r: int, c: int) -> str:
    """Return the statement that writes output k in column-major order."""
    return (
        f"    if (res[{k}]) for (i = 0; i < {r}; ++i) for (j = 0; j < {c}; ++j) "
        f"res[{k}][i + j * {r}] = (casadi_real)y{k}[i * {c} + j];"
    )


def _written_jacobian(k: int, rows: tuple[int, int], columns: tuple[int, int]) -> str:
    """Return the statement that writes a Jacobian, whose rows and columns are entries of matrices in CasADi's order."""
    (ro, co), (ri, ci) = rows, columns
    m, n = ro * co, ri * ci
    return (
        f"    if (res[{k}]) for (i = 0; i < {m}; ++i) for (j = 0; j < {n}; ++j) res[{k}][i + j * {m}] = "
        f"(casadi_real)y{k}[((i % {ro}) * {co} + i / {ro}) * {n} + (j % {ri}) * {ci} + j / {ri}];"
    )


def _evaluation(
    name: str, real: str, given: list[tuple[int, int]], made: list[tuple[int, int]], writes: list[str]
) -> str:
    """Return the function that CasADi calls; `writes` are the statements that write its outputs."""
    lines = [
        f"KINETREE_SYMBOL int {name}("
        "const casadi_real **arg, casadi_real **res, casadi_int *iw, casadi_real *w, int mem)",
        "{",
        *(f"    {real} x{k}[{r * c}];" for k, (r, c) in enumerate(given)),
        *(f"    {real} y{k}[{r * c}];" for k, (r, c) in enumerate(made)),
        "    int i, j;",
        "    (void)iw; (void)w; (void)mem;",
    ]
    for k, (r, c) in enumerate(given):
        lines.append(
            f"    for (i = 0; i < {r}; ++i) for (j = 0; j < {c}; ++j) "
            f"x{k}[i * {c} + j] = arg[{k}] ? ({real})arg[{k}][i + j * {r}] : 0;"
        )
    arguments = [*(f"x{k}" for k in range(len(given))), *(f"y{k}" for k in range(len(made)))]
    lines.append(f"    {name}_kinetree({', '.join(arguments)});")
    return "\n".join([*lines, *writes, "    return 0;", "}"])


def _names(name: str, which: str, labels: list[str]) -> str:
    cases = "".join(f' case {k}: return "{identifier(label)}";' for k, label in enumerate(labels))
    head = f"KINETREE_SYMBOL const char *{name}_name_{which}(casadi_int i)"
    return f"{head}\n{{\n    switch (i) {{{cases} default: return 0; }}\n}}"


def _sparsity(name: str, which: str, matrices: list[tuple[int, int]]) -> str:
    """Return the function of patterns: rows, columns, and 1 for a dense matrix."""
    rows = ", ".join(f"{{{r}, {c}, 1}}" for r, c in matrices)
    return (
        f"KINETREE_SYMBOL const casadi_int *{name}_sparsity_{which}(casadi_int i)\n{{\n"
        f"    static const casadi_int dense[{len(matrices)}][3] = {{{rows}}};\n"
        f"    return i >= 0 && i < {len(matrices)} ? dense[i] : 0;\n}}"
    )


# --- Programs as CasADi expressions: each operation becomes one of casadi.SX, which CasADi differentiates itself.


def expression(program: Program) -> Any:
    """Return a Program as a casadi.Function of SX, with the matrices of the interface of C (`casadi_abi`)."""
    ca = casadi()

    own = {Op.SELECT: ca.if_else, Op.AND: ca.logic_and, Op.OR: ca.logic_or, Op.NOT: ca.logic_not, Op.ATAN2: ca.atan2}
    own |= {op: getattr(ca, op.name.lower()) for op in FUNCTIONS}
    inputs = [ca.SX.sym(a.name, *matrix(a.shape)) for a in program.inputs]
    results = program.replay(
        [ca.vertsplit(ca.vec(x.T)) for x in inputs], lambda op, *x: own[op](*x) if op in own else apply(op, *x), ca.SX
    )
    outputs = []
    for a, entries in zip(program.outputs, results, strict=True):
        rows, columns = matrix(a.shape)
        outputs.append(ca.reshape(ca.vertcat(*entries), columns, rows).T)
    return ca.Function(
        program.name, inputs, outputs, [a.name for a in program.inputs], [a.name for a in program.outputs]
    )
