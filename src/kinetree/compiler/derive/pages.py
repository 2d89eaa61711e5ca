"""Pages of sweeps for Jacobians of dynamics, in O(n depth), for trees whose joint motions are constant in the child."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any

from ...dynamics.derivatives import forward_dynamics_derivatives, inverse_dynamics_derivatives
from ...model.mechanism import Mechanism
from ..ir.program import Array, Program
from ..lower.build import Request, signature, tree_maker
from .order import compact, values_in_use
from .recorded import traced

PAGES: dict[str, tuple[Callable[..., Any], tuple[str, ...]]] = {
    "inverse_dynamics": (inverse_dynamics_derivatives, ("q", "qd", "qdd")),
    "forward_dynamics": (forward_dynamics_derivatives, ("q", "qd", "tau")),
}
"""The page of a function's Jacobians, and the inputs that these are with respect to, in order."""

CACHED = 512
"""The most values in use on average for which motions are computed once: vectors of 64 bytes in the first cache."""


def page(mechanism: Mechanism, request: Request, wrt: Sequence[str]) -> Program | None:
    """Return the Program of the Jacobians of a function by its page of sweeps; None if no page applies.

    Pages are without the forces of the mechanism, and that of forward dynamics is without loops.
    """
    found = PAGES.get(request.name)
    if found is None or not set(wrt) <= set(found[1]) or request.forces:
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
    trace, scalars = traced(inputs)
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
