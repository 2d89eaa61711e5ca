"""Programs evaluated with 50 digits, and differences of them that are exact to more than 30."""

from __future__ import annotations

from collections.abc import Sequence

import mpmath
import numpy as np

from kinetree.compiler.ir.operations import OPERATIONS, Op
from kinetree.compiler.ir.program import Program

DIGITS = 50
STEP = mpmath.mpf(10) ** -16
"""The step of central differences: their error is 1e-32 relative, and their rounding 1e-34."""

SPECIAL = {
    Op.ATAN2: mpmath.atan2,
    Op.SELECT: lambda condition, yes, no: yes if condition else no,
    Op.AND: lambda a, b: a and b,
    Op.OR: lambda a, b: a or b,
    Op.NOT: lambda a: not a,
}


def _apply(op: Op, *x):
    if op in SPECIAL:
        return SPECIAL[op](*x)
    function = OPERATIONS[op].function
    return function(*x) if hasattr(function, "__self__") or len(x) == 2 or op is Op.NEG else _elementary(op, *x)


def _elementary(op: Op, x):
    return getattr(mpmath, op.name.lower())(x)


def evaluate(program: Program, *inputs: Sequence) -> list[list]:
    """Return the entries of all outputs for one sample, with 50 digits."""
    with mpmath.workdps(DIGITS):
        flat = [[mpmath.mpf(x) for x in np.ravel(np.asarray(a, dtype=object))] for a in inputs]
        return program.replay(flat, _apply, mpmath.mpf)


def difference(program: Program, inputs: Sequence, directions: Sequence) -> list[np.ndarray]:
    """Return the derivative of all outputs along a direction of all inputs, by a central difference."""
    with mpmath.workdps(DIGITS):
        ends = []
        for side in (1, -1):
            moved = [
                [mpmath.mpf(a) + side * STEP * mpmath.mpf(b) for a, b in zip(np.ravel(x), np.ravel(d), strict=True)]
                for x, d in zip(inputs, directions, strict=True)
            ]
            ends.append(evaluate(program, *moved))
        return [
            np.array([float((a - b) / (2 * STEP)) for a, b in zip(up, down, strict=True)]).reshape(out.shape)
            for up, down, out in zip(*ends, program.outputs, strict=True)
        ]
