"""The Program of a derivative: by sweeps or inverse dynamics where possible, else by rules of differentiation."""

from __future__ import annotations

from dataclasses import replace

from ...model.mechanism import Mechanism
from ..ir.program import Program
from ..lower import build as lower
from ..lower.build import Request, signature
from ..lower.derivatives import COORDINATES, Derivative
from .closed import closed_accelerations, product_of_accelerations
from .jacobians import Chart, Charts, cheapest, derivative, hvp, jvp, vjp
from .pages import page
from .singular_loops import guard_rank, required_rank

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
