"""The Program of a derivative: by sweeps or inverse dynamics where possible, else by rules of differentiation."""

from __future__ import annotations

import math
from collections.abc import Callable, Iterable, Iterator, Sequence
from dataclasses import replace
from typing import Any

from ...dynamics.derivatives import forward_dynamics_derivatives, inverse_dynamics_derivatives
from ...model.mechanism import Mechanism
from ..ir.operations import Op
from ..ir.program import Array, Program
from ..ir.staging import depth_first, some_outputs
from ..lower import build as lower
from ..lower.build import COORDINATES, Derivative, Request, signature, tree_maker
from .closed import closed_accelerations, guard_rank, product_of_accelerations, required_rank
from .jacobians import Chart, Charts, cheapest, derivative, hvp, jvp, vjp
from .recorded import trace_inputs

# --- Pages of sweeps for Jacobians of dynamics, in O(n depth), for trees whose joint motions are constant in the child

# --- Sums as chains that add their products last, so that each product is fused with an addition ---
#
# In a b + c d + (e + f g), written as a tree, the outer additions are operations of their own. The chain
# ((e + f g) + c d) + a b takes three operations on processors that multiply and add at once, and the tree takes five.
# Values change by rounding only.

SUMS = (Op.ADD, Op.SUB)
Term = tuple[bool, int]
"""Whether a term of a sum is negative, and its operation."""


def chain_sums(program: Program) -> Program:
    """Return a Program of the same values up to rounding, whose sums with products are chains."""
    ops, uses = program.ops, _uses(program)
    inner = {k for op in ops if op[0] in SUMS for k in op[1:] if ops[k][0] in SUMS and uses[k] == 1}
    absorbed: set[int] = set()
    chains: dict[int, list[Term]] = {}
    for k in range(len(ops)):
        if ops[k][0] in SUMS and k not in inner:
            terms, within = _terms(program, k, inner, uses)
            if len(terms) > 2 and any(_is_product(ops[j], uses[j]) for _, j in terms):
                chains[k] = sorted(terms, key=lambda term: (_is_product(ops[term[1]], uses[term[1]]), term[1]))
                absorbed |= within
    new: list[tuple] = []
    place: dict[int, int] = {}
    for k, op in enumerate(ops):
        if k in chains:
            place[k] = _write(new, [(minus, place[j]) for minus, j in chains[k]])
        elif k not in absorbed:
            new.append(op if op[0] <= Op.CONST else (op[0], *(place[j] for j in op[1:])))
            place[k] = len(new) - 1
    results = tuple(tuple(place[k] for k in entries) for entries in program.results)
    made = Program(program.name, program.inputs, program.outputs, tuple(new), results)
    return some_outputs(made, range(len(results)))  # without negations that became subtractions


def _terms(program: Program, k: int, inner: set[int], uses: list[int]) -> tuple[list[Term], set[int]]:
    """Return the terms of a sum, and the sums within it that serve no other purpose."""
    terms: list[Term] = []
    within: set[int] = set()
    stack = [(False, k)]
    while stack:
        minus, j = stack.pop()
        op = program.ops[j]
        if op[0] in SUMS and (j == k or j in inner):
            within.add(j)
            stack += [(minus != (op[0] is Op.SUB), op[2]), (minus, op[1])]
        elif op[0] is Op.NEG and uses[j] == 1:
            stack.append((not minus, op[1]))
        else:
            terms.append((minus, j))
    return terms, within - {k}


def _write(ops: list[tuple], terms: list[Term]) -> int:
    """Append the operations of a chain, which begins with the first positive term; return the number of the last."""
    first = next((j for j, (minus, _) in enumerate(terms) if not minus), 0)
    minus, value = terms[first]
    for other, k in (*terms[:first], *terms[first + 1 :]):
        if minus and not other:
            ops.append((Op.SUB, k, value))
            minus = False
        else:
            ops.append((Op.SUB if other and not minus else Op.ADD, value, k))
        value = len(ops) - 1
    if minus:
        ops.append((Op.NEG, value))
    return len(ops) - 1


def _is_product(op: tuple, uses: int) -> bool:
    """Return whether an operation is a product of no other use, which can be fused."""
    return op[0] is Op.MUL and uses == 1


def _uses(program: Program) -> list[int]:
    """Return how often each value is used, as an operand or as a result."""
    uses = [0] * len(program.ops)
    for operands in (*_operands(program), *program.results):
        for k in operands:
            uses[k] += 1
    return uses


def _operands(program: Program) -> Iterable[tuple[int, ...]]:
    return (op[1:] for op in program.ops if op[0] > Op.CONST)


# --- The order of a Program's operations: values that are computed when they are needed occupy registers for less
# time.
#
# Code with fewer values in use at a time has fewer moves between registers and stack. Orders have no effect on results,
# and sums as chains change them by rounding only.

WORTH = 0.94
"""The ratio of values in use below which another order is taken, even if its sums are not chains.

Chains of sums take fewer operations, and orders with almost as many values in use are equally fast."""


def compact(program: Program) -> Program:
    """Return a Program of square matrices with few values in use, with its sums as chains or as they are.

    Its operations are ordered by pairs of entries, or by columns, or stay in their order.
    """
    best, least = program, math.inf
    for found in (x for sums in (chain_sums(program), program) for x in _orders(sums)):
        if (count := values_in_use(found)) < WORTH * least:
            best, least = found, count
    return best


def _orders(program: Program) -> Iterator[Program]:
    n = program.outputs[0].shape[0]
    pairs = [e for k in reversed(range(n)) for x in range(k, -1, -1) for e in (x * n + k, k * n + x)]
    columns = [n * i + j for j in reversed(range(n)) for i in range(n)]
    for entries in (pairs, columns):
        yield depth_first(program, [r[e] for e in entries for r in program.results])
    yield program


def values_in_use(program: Program) -> int:
    """Return the number of values that are computed and needed later, summed over all operations."""
    last = list(range(len(program.ops)))
    for k, op in enumerate(program.ops):
        if op[0] > Op.CONST:
            for i in op[1:]:
                last[i] = k
    return sum(end - k for k, (end, op) in enumerate(zip(last, program.ops, strict=True)) if op[0] is not Op.CONST)


PAGES: dict[str, tuple[Callable[..., Any], tuple[str, ...]]] = {
    "inverse_dynamics": (inverse_dynamics_derivatives, ("q", "qd", "qdd")),
    "forward_dynamics": (forward_dynamics_derivatives, ("q", "qd", "tau")),
}
"""The page of a function's Jacobians, and the inputs that these are with respect to, in order."""

CACHED = 512
"""The most values in use on average for which motions are computed once: vectors of 64 bytes in the first cache."""


def page(mechanism: Mechanism, request: Request, wrt: Sequence[str]) -> Program | None:
    """Return the Program of the Jacobians of a function by its page of sweeps; None if no page applies.

    Pages leave out the forces of the mechanism and flexible bodies; the page of forward dynamics leaves out loops.
    """
    found = PAGES.get(request.name)
    if found is None or mechanism.has_flexible or not set(wrt) <= set(found[1]) or request.forces:
        return None
    if mechanism.closures and request.name == "forward_dynamics":
        return None
    made = _recorded(mechanism, request, wrt, *found)
    if made is not None and request.name == "forward_dynamics" and values_in_use(made) > CACHED * len(made.ops):
        made = _recorded(mechanism, request, wrt, *found, twice=True)
    return None if made is None else compact(made)


def _recorded(
    mechanism: Mechanism,
    request: Request,
    wrt: Sequence[str],
    run: Callable[..., Any],
    order: Sequence[str],
    *,
    twice: bool = False,
) -> Program | None:
    """Return the Program of a page in the order of its sweeps; with `twice`, the motion is computed again midway."""
    inputs, (output,) = signature(mechanism, request)
    trace, scalars = trace_inputs(inputs)
    maker = tree_maker(mechanism, request.dtype)
    tree = maker(mechanism, scalars)
    if any(i.P.rates is not None for i in tree.records):
        return None

    def renewed() -> Any:
        trace.begin_again()
        return maker(mechanism, scalars)

    results = dict(zip(order, run(tree, renewed) if twice else run(tree), strict=True))
    n = mechanism.nv
    outputs = [Array(f"d{output.name}_d{name}", (n, n)) for name in wrt]
    return Program.of_trace(f"jacobian_of_{request.name}", inputs, outputs, trace, [list(results[x]) for x in wrt])


SHORT = 400
"""The most operations of a function that is also differentiated itself if there is another way to its derivative.

Pages of sweeps and inverse dynamics take fewer operations for all longer ones that were tried, from six joints on."""


def build(mechanism: Mechanism, request: Request) -> Program:
    """Return the Program of a checked request for a derivative, traced on a mechanism."""
    wanted = request.derivative
    assert wanted is not None
    inputs, outputs = signature(mechanism, request)
    found = _derived(mechanism, request, wanted)
    return replace(found, name=f"{wanted.kind}_of_{request.name}", inputs=inputs, outputs=outputs)


def _derived(mechanism: Mechanism, request: Request, wanted: Derivative) -> Program:
    plain = replace(request, derivative=None)
    charts = tangent_charts(mechanism, plain) if wanted.tangent else {}
    rank = required_rank(mechanism, request)
    if wanted.kind == "jacobian":
        if wanted.tangent and (found := closed_accelerations(mechanism, plain, wanted.wrt, charts, rank)):
            return found
        return guard_rank(mechanism, request, _jacobian(mechanism, plain, wanted, charts), rank)
    return guard_rank(mechanism, request, _product(mechanism, plain, wanted, charts), rank)


def _product(mechanism: Mechanism, plain: Request, wanted: Derivative, charts: Charts) -> Program:
    """Return the Program of a product with tangents or cotangents."""
    program = lower.build(mechanism, plain)
    implicit = product_of_accelerations(mechanism, plain, wanted.kind, wanted.wrt, charts)
    if implicit is not None and len(program.ops) > SHORT:
        return implicit
    found = {"jvp": jvp, "vjp": vjp, "hvp": hvp}[wanted.kind](program, wanted.wrt, charts=charts)
    return found if implicit is None else cheapest([implicit, found])


def _jacobian(mechanism: Mechanism, plain: Request, wanted: Derivative, charts: Charts) -> Program:
    """Return the Program of a Jacobian with the fewest operations of all ways to compute it."""
    program = lower.build(mechanism, plain)
    sweeps = page(mechanism, plain, wanted.wrt) if wanted.tangent else None
    if sweeps is None:
        return derivative(program, wanted.wrt, charts=charts)
    if len(program.ops) > SHORT:
        return sweeps
    return cheapest([sweeps, derivative(program, wanted.wrt, charts=charts)])


def tangent_charts(mechanism: Mechanism, request: Request) -> dict[str, Chart]:
    """Return the directions of the coordinates among the inputs of a request: the joint velocities."""
    names = [a.name for a in signature(mechanism, request)[0] if a.name in COORDINATES]
    if not names:
        return {}
    rate = lower.build(mechanism, Request("coordinate_rate").checked(mechanism))
    chart = Chart(mechanism.nv, replace(rate, inputs=rate.inputs[:2]))  # free parameters do not enter
    return dict.fromkeys(names, chart)
