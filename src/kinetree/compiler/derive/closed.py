"""Derivatives of forward dynamics with loops: the implicit function, by one more solution with the same factors.

The accelerations and multipliers satisfy I qdd + h - J^T lambda = tau and J qdd + dJ/dt qd = 0. The derivatives of both
equations at fixed accelerations and multipliers are the right-hand sides. Pivots are chosen by comparisons that depend
on q alone. Each column of a derivative is solved with the same pivots, whose arithmetic is recorded only once, or is
the sum of responses to unit right-hand sides.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import replace
from typing import Any

from ...algebra.scalars import Scalar
from ...dynamics import closed
from ...model.mechanism import Mechanism
from ..ir.program import Array, Program
from ..lower import build as lower
from ..lower.build import Request, signature, tree_maker
from .jacobians import MODES, Charts, differentiated, directions, weight
from .jacobians import derivative as jacobian
from .recorded import Recorded, traced

Scalars = Mapping[str, Sequence[Scalar]]


def closed_accelerations(
    mechanism: Mechanism, request: Request, wrt: Sequence[str], charts: Charts, rank: int = 0
) -> Program | None:
    """Return the Jacobians of the accelerations of a mechanism with loops; None for other functions and trees.

    They are NaN at positions where the equations of the loops have less than a `rank`.
    With the forces of the mechanism, which may act in any way, the whole function is differentiated instead.
    """
    if request.name != "forward_dynamics" or not mechanism.closures or request.forces:
        return None
    inputs, _ = signature(mechanism, request)
    trace, given = traced(inputs)
    qdd, multipliers = (
        _outputs(lower.build(mechanism, replace(request, name=name)), given)
        for name in ("forward_dynamics", "multipliers")
    )
    known = {**given, "qdd": qdd, "lambda": multipliers}
    equations = _equations(mechanism, request)
    moved = [name for name in wrt if name != "tau"]
    rows = _differentiated(equations, known, moved, charts)
    solve = _solution(mechanism, request, rank)
    n, count = mechanism.nv, len(mechanism.closures)
    sizes = {name: n if name == "tau" else directions(equations, name, charts).size for name in wrt}
    changes = {
        (name, j): {j: 1.0} if name == "tau" else _right_hand_side(rows, (name, j), n)
        for name, size in sizes.items()
        for j in range(size)
    }

    def response(sides: Mapping[int, Scalar]) -> list[Scalar]:
        both = [sides.get(k, 0.0) for k in range(n + count)]
        return _outputs(solve, {**given, "tau": both[:n], "rates": both[n:]})

    if n + count <= len(changes):  # responses to unit sides serve all columns, whose sides are sparse
        units = {k: response({k: 1.0}) for k in sorted({k for sides in changes.values() for k in sides})}
        columns = {label: _combined(units, sides, n) for label, sides in changes.items()}
    else:
        columns = {label: response(sides) for label, sides in changes.items()}
    arrays = [Array(f"dqdd_d{name}", (n, size)) for name, size in sizes.items()]
    results = [[columns[name, j][k] for k in range(n) for j in range(size)] for name, size in sizes.items()]
    return Program.of_trace(f"jacobian_of_{request.name}", inputs, arrays, trace, results)


def _right_hand_side(rows: Sequence[Mapping[Any, Scalar]], label: Any, n: int) -> dict[int, Scalar]:
    """Return the torques and then the rates that a change of an input is equal to, where they are not zero."""
    return {k: -row[label] if k < n else row[label] for k, row in enumerate(rows) if label in row}


def _combined(units: Mapping[int, Sequence[Scalar]], sides: Mapping[int, Scalar], n: int) -> list[Scalar]:
    """Return the response to right-hand sides as the sum of the responses to unit ones."""
    out: list[Scalar] = [0.0] * n
    for k, x in sides.items():
        out = [a + x * b for a, b in zip(out, units[k], strict=True)]
    return out


def _outputs(program: Program, given: Scalars) -> list[Scalar]:
    """Record a Program with one output, and return its entries."""
    (out,) = Recorded(program, given).outputs().values()
    return out


def _equations(mechanism: Mechanism, request: Request) -> Program:
    """Return the Program of I qdd + h - J^T lambda and J qdd + dJ/dt qd, one after the other."""
    count = len(mechanism.closures)
    inputs = [a for a in signature(mechanism, request)[0] if a.name != "tau"]
    arrays = (*inputs, Array("qdd", (mechanism.nv,)), Array("lambda", (count,)))
    trace, given = traced(arrays)

    def of(name: str, wrenches: bool = False) -> list[Scalar]:
        return _outputs(lower.build(mechanism, Request(name, wrenches=wrenches).checked(mechanism)), given)

    J, n = of("closure_jacobian"), mechanism.nv
    torques = of("inverse_dynamics", request.wrenches)
    rates = of("closure_bias")
    for k in range(count):
        for j in range(n):
            torques[j] = torques[j] - J[n * k + j] * given["lambda"][k]
            rates[k] = rates[k] + J[n * k + j] * given["qdd"][j]
    return Program.of_trace("equations", arrays, [Array("left", (n + count,))], trace, [[*torques, *rates]])


def _differentiated(equations: Program, known: Scalars, wrt: Sequence[str], charts: Charts) -> list[dict[Any, Scalar]]:
    """Return the derivatives of all equations by (input, direction), in the mode with the fewest operations."""
    if not wrt:
        return [{} for _ in equations.results[0]]
    mode = min(MODES, key=lambda m: weight(jacobian(equations, wrt, mode=m, charts=charts)))
    recorded = Recorded(equations, known)
    found = differentiated(recorded, known, wrt, set(equations.results[0]), mode, charts)
    return [found[k] for k in equations.results[0]]


def _solution(mechanism: Mechanism, request: Request, rank: int) -> Program:
    """Return the Program of the accelerations at rest under torques, with J qdd = -rates."""
    skipped = ("qd", "tau", "wrenches")
    others = [a for a in signature(mechanism, request)[0] if a.name not in skipped]
    arrays = (*others, Array("tau", (mechanism.nv,)), Array("rates", (len(mechanism.closures),)))
    trace, given = traced(arrays)
    tree = tree_maker(mechanism, request.dtype)(mechanism, {k: x for k, x in given.items() if k != "rates"})
    results = closed.response(tree, given["rates"], rank)
    return Program.of_trace("response", arrays, [Array("qdd", (mechanism.nv,))], trace, [results])
