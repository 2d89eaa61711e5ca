"""Programs as CasADi expressions: each operation becomes one of casadi.SX, which CasADi differentiates itself."""

from __future__ import annotations

from typing import Any

from ..ir.operations import FUNCTIONS, Op, apply
from ..ir.program import Program
from .casadi_abi import matrix


def expression(program: Program) -> Any:
    """Return a Program as a casadi.Function of SX, with the matrices of the interface of C (`casadi_abi`)."""
    import casadi as ca

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
