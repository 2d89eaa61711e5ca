"""Controllers written in CasADi: their instructions are replayed into the trace."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from functools import partial
from typing import Any

from ..._support.optional import casadi
from ...algebra.scalars import Scalar
from ...compiler.ir.operations import FUNCTIONS, Op, apply
from ...errors import InputError
from . import smooth
from .instants import Instant
from .smooth import absolute, exp, log, maximum, minimum, sqrt, where

MAX_EXPONENT = 64
"""The largest whole exponent that is expanded to products; larger ones are computed by exp and log."""
OPAQUE = "without callbacks, integrators and interpolants"
"""The remedy for CasADi functions whose operations cannot be read."""


@dataclass(frozen=True, eq=False)
class FromCasadi:
    """A casadi.Function (t, q, qd) -> tau, such as an optimal or a learned controller."""

    function: Any

    def torque(self, now: Instant) -> list[Scalar]:
        """Return the torques."""
        nq, nv = now.mechanism.nq, now.mechanism.nv
        f = _expanded(self.function, {"t": 1, "q": nq, "qd": nv}, {"tau": nv})
        return replay(f, [[now.t], now.q, now.qd])[0]


def replay(f: Any, inputs: list[list[Scalar]]) -> list[list[Scalar]]:
    """Return the outputs of an expanded casadi.Function for dense inputs of any scalars."""
    ca = casadi()

    names = {getattr(ca, n): n for n in dir(ca) if n.startswith("OP_")}
    dense_in = [_places(f.sparsity_in(k)) for k in range(f.n_in())]
    dense_out = [_places(f.sparsity_out(k)) for k in range(f.n_out())]
    outputs: list[list[Scalar]] = [[0.0] * f.numel_out(k) for k in range(f.n_out())]
    work: dict[int, Scalar] = {}
    for k in range(f.n_instructions()):
        name, read, write = names.get(f.instruction_id(k), "?"), f.instruction_input(k), f.instruction_output(k)
        if name == "OP_CONST":
            work[write[0]] = float(f.instruction_constant(k))
        elif name == "OP_INPUT":
            work[write[0]] = inputs[read[0]][dense_in[read[0]][read[1]]]
        elif name == "OP_OUTPUT":
            outputs[write[0]][dense_out[write[0]][write[1]]] = work[read[0]]
        elif name in KNOWN:
            work[write[0]] = KNOWN[name](*(work[r] for r in read))
        else:
            known = ", ".join(n.removeprefix("OP_").lower() for n in KNOWN)
            remedy = f"write it {OPAQUE}" if name == "OP_CALL" else f"write it with {known}"
            raise InputError(f"the CasADi function {f.name()!r} uses {name}, which cannot be compiled; {remedy}")
    return outputs


def _expanded(f: Any, inputs: dict[str, int], outputs: dict[str, int]) -> Any:
    """Return the function expanded to scalars, with its arguments checked."""
    ca = casadi()

    if not isinstance(f, ca.Function):
        raise InputError(f"FromCasadi has a {type(f).__name__}; give a casadi.Function of (t, q, qd) that returns tau")
    found_in = {f.name_in(k): f.numel_in(k) for k in range(f.n_in())}
    found_out = {f.name_out(k): f.numel_out(k) for k in range(f.n_out())}
    for found, expected, what in ((found_in, inputs, "inputs"), (found_out, outputs, "outputs")):
        if list(found.values()) != list(expected.values()):
            raise InputError(
                f"the CasADi function {f.name()!r} has the {what} {_sizes(found)}; expected {_sizes(expected)}"
            )
    if f.has_free():
        raise InputError(
            f"the CasADi function {f.name()!r} has the free variables {', '.join(map(str, f.get_free()))}; "
            "make them numbers"
        )
    try:
        return f if f.is_a("SXFunction") else f.expand()
    except RuntimeError as error:
        reason = str(error).strip().splitlines()[-1]
        raise InputError(
            f"the CasADi function {f.name()!r} cannot be expanded to scalars ({reason}); write it {OPAQUE}"
        ) from None


def _sizes(found: dict[str, int]) -> str:
    return ", ".join(f"{name} [{size}]" for name, size in found.items()) or "none"


def _places(sparsity: Any) -> list[int]:
    """Return the index of each nonzero among the dense entries, column by column."""
    return [int(k) for k in sparsity.find()]


def _nonzero(c: Scalar, yes: Scalar, no: Scalar) -> Scalar:
    return where(0.0 < c, yes, where(c < 0.0, yes, no))


def _power(x: Scalar, exponent: Scalar) -> Scalar:
    if not isinstance(exponent, float):
        raise InputError("OP_POW with an exponent that is not a number cannot be compiled; write exp(y * log(x))")
    whole = int(exponent)
    if exponent == whole and abs(whole) <= MAX_EXPONENT:
        out, square, left = 1.0, x, abs(whole)
        while left:
            out = out * square if left & 1 else out
            square, left = square * square, left >> 1
        return out if whole >= 0 else 1.0 / out
    return sqrt(x) if exponent == 0.5 else exp(log(x) * exponent)


SHARED = (Op.ADD, Op.SUB, Op.MUL, Op.DIV, Op.NEG, Op.ATAN2, *FUNCTIONS)
"""The operations that have the same names in CasADi."""

KNOWN: dict[str, Callable[..., Scalar]] = {f"OP_{op.name}": partial(apply, op) for op in SHARED} | {
    "OP_ASSIGN": lambda x: x,
    "OP_SQ": lambda x: x * x,
    "OP_TWICE": lambda x: x + x,
    "OP_INV": lambda x: 1.0 / x,
    "OP_POW": _power,
    "OP_CONSTPOW": _power,
    "OP_HYPOT": lambda x, y: sqrt(x * x + y * y),
    "OP_EXPM1": smooth.expm1,
    "OP_LOG1P": smooth.log1p,
    "OP_SINH": smooth.sinh,
    "OP_COSH": smooth.cosh,
    "OP_TANH": smooth.tanh,
    "OP_FABS": absolute,
    "OP_SIGN": lambda x: where(x < 0.0, -1.0, where(0.0 < x, 1.0, 0.0)),
    "OP_COPYSIGN": lambda x, y: where(y < 0.0, -absolute(x), absolute(x)),
    "OP_FMIN": minimum,
    "OP_FMAX": maximum,
    "OP_LT": lambda x, y: where(x < y, 1.0, 0.0),
    "OP_LE": lambda x, y: where(y < x, 0.0, 1.0),
    "OP_EQ": lambda x, y: where(x < y, 0.0, where(y < x, 0.0, 1.0)),
    "OP_NE": lambda x, y: where(x < y, 1.0, where(y < x, 1.0, 0.0)),
    "OP_NOT": lambda x: _nonzero(x, 0.0, 1.0),
    "OP_AND": lambda x, y: _nonzero(x, _nonzero(y, 1.0, 0.0), 0.0),
    "OP_OR": lambda x, y: _nonzero(x, 1.0, _nonzero(y, 1.0, 0.0)),
    "OP_IF_ELSE_ZERO": lambda c, x: _nonzero(c, x, 0.0),
}
"""The operations of CasADi that can be compiled; comparisons are 1 or 0, as in CasADi."""
