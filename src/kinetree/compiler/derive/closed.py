"""Derivatives of forward dynamics with loops: the implicit function, by one more solution with the same factors.

The accelerations and multipliers satisfy I qdd + h - J^T lambda = tau and J qdd + dJ/dt qd = 0. The derivatives of both
equations at fixed accelerations and multipliers are the right-hand sides. Pivots are chosen by comparisons that depend
on q alone. Each column of a derivative is solved with the same pivots, whose arithmetic is recorded only once, or is
the sum of responses to unit right-hand sides.
"""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from functools import cached_property
from typing import Any

import numpy as np

from ...algebra.scalars import Numbers, Scalar, where
from ...dynamics import closed
from ...dynamics.products import inertia_product, inverse_inertia_product
from ...model.mechanism import Mechanism, kept_with_mechanism
from ..ir.program import Array, Program
from ..lower import build as lower
from ..lower.build import Request, signature, tree_maker
from ..lower.loop_pattern import CLOSE, STRIDE, PlainLoops
from .jacobians import MODES, Charts, differentiate_recorded, directions, jvp, vjp, weight
from .jacobians import derivative as jacobian
from .recorded import Recorded, trace_inputs

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
    trace, given = trace_inputs(inputs)
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


def _right_hand_side(rows: Sequence[Mapping[object, Scalar]], label: object, n: int) -> dict[int, Scalar]:
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
    trace, given = trace_inputs(arrays)

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
    found = differentiate_recorded(recorded, known, wrt, set(equations.results[0]), mode, charts)
    return [found[k] for k in equations.results[0]]


def _solution(mechanism: Mechanism, request: Request, rank: int) -> Program:
    """Return the Program of the accelerations at rest under torques, with J qdd = -rates."""
    skipped = ("qd", "tau", "wrenches")
    others = [a for a in signature(mechanism, request)[0] if a.name not in skipped]
    arrays = (*others, Array("tau", (mechanism.nv,)), Array("rates", (len(mechanism.closures),)))
    trace, given = trace_inputs(arrays)
    tree = tree_maker(mechanism, request.dtype)(mechanism, {k: x for k, x in given.items() if k != "rates"})
    results = closed.response(tree, given["rates"], rank)
    return Program.of_trace("response", arrays, [Array("qdd", (mechanism.nv,))], trace, [results])


# --- Products of the derivatives of forward dynamics of trees, by derivatives of inverse dynamics ---
#
# Accelerations satisfy tau = f(x, qdd) of inverse dynamics, with x for q, qd, wrenches and parameters. Hence
# dqdd = I^-1 (dtau - f_x dx), and a gradient is -f_x^T y with I y = the cotangent. Only inverse dynamics is
# differentiated, not the elimination of forward dynamics. See docs/theory/derivatives.md.


def product_of_accelerations(
    mechanism: Mechanism, request: Request, kind: str, wrt: Sequence[str], charts: Charts
) -> Program | None:
    """Return the Program of a product of forward dynamics of a tree; None for other functions and with loops."""
    if request.name != "forward_dynamics" or mechanism.closures:
        return None
    return _Products(mechanism, request, tuple(wrt), charts).made(kind)


@dataclass(frozen=True)
class _Products:
    mechanism: Mechanism
    request: Request
    wrt: tuple[str, ...]
    charts: Charts

    def made(self, kind: str) -> Program:
        """Return the Program of a product: the inputs of the function, then cotangents, then tangents."""
        forward = lower.build(self.mechanism, self.request)
        inverse = lower.build(self.mechanism, replace(self.request, name="inverse_dynamics"))
        arrays = [*forward.inputs]
        if kind != "jvp":
            arrays.append(Array("cotangent", (self.mechanism.nv,)))
        if kind != "vjp":
            arrays += [Array(f"tangent_{x}", (directions(forward, x, self.charts).size,)) for x in self.wrt]
        trace, given = trace_inputs(arrays)
        known = {**given, "qdd": _output(forward, given)}
        results = {"jvp": self._jvp, "vjp": self._vjp, "hvp": self._hvp}[kind](inverse, known)
        outputs = [Array(f"result_{k}", (len(x),)) for k, x in enumerate(results)]
        return Program.of_trace(f"{kind}_of_{self.request.name}", arrays, outputs, trace, results)

    @property
    def _moved(self) -> tuple[str, ...]:
        """The inputs on which inverse dynamics depends, too."""
        return tuple(x for x in self.wrt if x != "tau")

    def _jvp(self, inverse: Program, known: Scalars) -> list[list[Scalar]]:
        """Return I^-1 (dtau - f_x dx)."""
        n = self.mechanism.nv
        torques = list(known["tangent_tau"]) if "tau" in self.wrt else [0.0] * n
        if self._moved:
            changes = _output(jvp(inverse, self._moved, charts=self.charts), known)
            torques = [a - b for a, b in zip(torques, changes, strict=True)]
        return [self._solved(known, torques)]

    def _vjp(self, inverse: Program, known: Scalars) -> list[list[Scalar]]:
        """Return -f_x^T y for every x, and y for tau, with y = I^-1 times the cotangent."""
        y = self._solved(known, known["cotangent"])
        if not self._moved:
            return [y]
        program = vjp(inverse, self._moved, charts=self.charts)
        return self._ordered(_outputs_of_accelerations(program, {**known, "cotangent_tau": y}), y)

    def _hvp(self, inverse: Program, known: Scalars) -> list[list[Scalar]]:
        """Return the derivatives of `_vjp`; I y stays, so that dy = -I^-1 dI y."""
        y = self._solved(known, known["cotangent"])
        (dqdd,) = self._jvp(inverse, known)
        dy = [0.0] * self.mechanism.nv
        product = self._program(inertia_product, "qdd")
        if shared := [x for x in self._moved if any(x == a.name for a in product.inputs)]:
            changes = _output(jvp(product, shared, charts=self.charts), {**known, "qdd": y})
            dy = self._solved(known, [-x for x in changes])
        if not self._moved:
            return [dy]
        gradient = vjp(inverse, self._moved, charts=self.charts)
        program = jvp(gradient, (*self._moved, "qdd", "cotangent_tau"), charts=self.charts)
        found = _outputs_of_accelerations(
            program, {**known, "cotangent_tau": y, "tangent_qdd": dqdd, "tangent_cotangent_tau": dy}
        )
        return self._ordered(found, dy)

    def _ordered(self, of_moved: list[list[Scalar]], of_tau: list[Scalar]) -> list[list[Scalar]]:
        """Return the results in the order of `wrt`; results of inverse dynamics change their sign."""
        named = dict(zip(self._moved, of_moved, strict=True))
        return [of_tau if x == "tau" else [-e for e in named[x]] for x in self.wrt]

    def _solved(self, known: Scalars, torques: Sequence[Scalar]) -> list[Scalar]:
        """Return I^-1 times torques, with the pivots of forward dynamics, which are recorded once."""
        return _output(self._program(inverse_inertia_product, "tau"), {**known, "tau": torques})

    def _program(self, page, name: str) -> Program:
        """Return the Program of a product of the inertia matrix or its inverse with the input `name`."""
        inputs = [a for a in signature(self.mechanism, self.request)[0] if a.name in ("q", "parameters")]
        arrays = (*inputs, Array(name, (self.mechanism.nv,)))
        trace, given = trace_inputs(arrays)
        tree = tree_maker(self.mechanism, self.request.dtype)(self.mechanism, given)
        return Program.of_trace("product", arrays, [Array("out", (self.mechanism.nv,))], trace, [page(tree)])


def _outputs_of_accelerations(program: Program, known: Scalars) -> list[list[Scalar]]:
    return list(Recorded(program, known).outputs().values())


def _output(program: Program, known: Scalars) -> list[Scalar]:
    (out,) = _outputs_of_accelerations(program, known)
    return out


# --- Singular positions of loops, at which accelerations and forces have no derivatives: these are NaN there ---
#
# A position is singular where the equations of the loops have a smaller rank than at closed positions nearby. The
# rank is the number of pivots that the code itself takes, so that it costs a comparison per equation. Generated code
# compares it with the usual rank of the mechanism. A mechanism may have branches of motion with more freedom, where
# the rank is smaller and no position nearby has a larger one: `Ranks.nearby` tells these from singular positions.

SOLVED = ("forward_dynamics", "implicit_dynamics", "multipliers", "closing_speed", "closing_step", "hybrid_dynamics")
"""The functions that solve the equations of the loops: of positions for closing_step, of all loops otherwise."""
WALKS = 3
"""The steps of each length to closed positions near a position."""


def is_guarded(mechanism: Mechanism, request: Request) -> bool:
    """Return whether a request is a derivative that does not exist at singular positions of the loops."""
    wanted = request.derivative
    return request.name in SOLVED and bool(mechanism.closures) and wanted is not None and not wanted.everywhere


def required_rank(mechanism: Mechanism, request: Request) -> int:
    """Return the rank of the equations of loops below which a derivative is NaN; 0 if it exists everywhere."""
    return ranks_of(mechanism, request).usual if is_guarded(mechanism, request) else 0


def guard_rank(mechanism: Mechanism, request: Request, program: Program, rank: int) -> Program:
    """Return the Program of a derivative with NaN at positions of less than a rank, and the same bits elsewhere."""
    if not rank:
        return program
    trace, given = trace_inputs(program.inputs)
    results = list(Recorded(program, given).outputs().values())
    inputs = signature(mechanism, replace(request, derivative=None))[0]
    here = ranks_of(mechanism, request).of({a.name: given[a.name] for a in inputs})
    one = where(here < rank - 0.5, math.nan, 1.0)
    return Program.of_trace(
        program.name, program.inputs, program.outputs, trace, [[x * one for x in entries] for entries in results]
    )


def ranks_of(mechanism: Mechanism, request: Request) -> Ranks:
    """Return the ranks of the equations that a function solves."""
    return Ranks(mechanism, request.dtype, frozenset(request.driven), positions=request.name == "closing_step")


@dataclass(frozen=True)
class Ranks:
    """The rank of the equations of a mechanism's loops, in the precision of the code.

    Driven degrees of freedom, by label, are held. With `positions`, only the equations of positions take part.
    """

    mechanism: Mechanism
    dtype: str = "float64"
    driven: frozenset = frozenset()
    positions: bool = False

    @cached_property
    def usual(self) -> int:
        """The largest rank at closed positions near the guess; 0 if the loops do not close from there."""
        values = np.array([p.value for p in self.mechanism.free_parameters], dtype=float)
        return max((int(self.at(q, values)) for q in _closed_positions(self.mechanism)), default=0)

    def at(self, q: Numbers, values: Numbers) -> Numbers:
        """Return the ranks [...] at positions [..., nq] for values [..., np] of the free parameters."""
        (found,) = self._program.interpret(*((q, values) if self.mechanism.free_parameters else (q,)))
        return found

    def nearby(self, q: Numbers, values: Numbers) -> int:
        """Return the largest rank at q and at closed positions around it.

        The joint that moves most is held there, so that Newton's method cannot return to q.
        """
        loops = PlainLoops(self.mechanism.fixed(values) if self.mechanism.free_parameters else self.mechanism)
        rng = np.random.default_rng(3)
        most = here = int(self.at(q, values))
        with_all = replace(self, driven=frozenset(), positions=False) if self.driven or self.positions else self
        free = np.linalg.svd(loops.of_positions(q))[2][int(with_all.at(q, values)) :]
        for length in (STRIDE, STRIDE / 10) * WALKS:
            step = rng.normal(size=len(free)) @ free
            step *= length / max(np.abs(step).max(initial=0.0), 1e-300)
            held = np.abs(step) == np.abs(step).max(initial=0.0)
            around, gap = loops.closed(loops.move(q, step), held=held)
            if gap <= CLOSE:
                most = max(most, int(self.at(around, values)))
            if most > here:
                break
        return most

    def of(self, given: Mapping[str, Sequence[Scalar]]) -> Any:
        """Return the number of pivots of J I^-1 J^T that the functions of SOLVED take, by the same arithmetic."""
        tree = tree_maker(self.mechanism, self.dtype)(self.mechanism, given)
        return closed.at_rest(tree, self.driven, positions=self.positions).rank()

    @cached_property
    def _program(self) -> Program:
        arrays = signature(self.mechanism, Request("forward_dynamics"))[0]
        inputs = [a for a in arrays if a.name in ("q", "parameters")]
        trace, given = trace_inputs(inputs)
        return Program.of_trace("rank", inputs, [Array("rank", ())], trace, [[self.of(given)]])


@kept_with_mechanism
def _closed_positions(mechanism: Mechanism) -> list[Numbers]:
    loops = PlainLoops(mechanism)
    return [q for q, _ in loops.positions() if np.abs(loops.residual(q)).max(initial=0.0) <= CLOSE]
