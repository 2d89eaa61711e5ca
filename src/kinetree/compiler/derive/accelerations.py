"""Products of the derivatives of forward dynamics of trees, by those of inverse dynamics.

Accelerations satisfy tau = f(x, qdd) of inverse dynamics, with x for q, qd, wrenches and parameters. Hence
dqdd = I^-1 (dtau - f_x dx), and a gradient is -f_x^T y with I y = the cotangent. Only inverse dynamics is
differentiated, not the elimination of forward dynamics. See docs/theory/derivatives.md.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace

from ...algebra.scalars import Scalar
from ...dynamics.products import inertia_product, inverse_inertia_product
from ...model.mechanism import Mechanism
from ..ir.program import Array, Program
from ..lower import build as lower
from ..lower.build import Request, signature, tree_maker
from . import products
from .jacobians import Charts, directions
from .recorded import Recorded, traced

Scalars = Mapping[str, Sequence[Scalar]]


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
        trace, given = traced(arrays)
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
            changes = _output(products.jvp(inverse, self._moved, charts=self.charts), known)
            torques = [a - b for a, b in zip(torques, changes, strict=True)]
        return [self._solved(known, torques)]

    def _vjp(self, inverse: Program, known: Scalars) -> list[list[Scalar]]:
        """Return -f_x^T y for every x, and y for tau, with y = I^-1 times the cotangent."""
        y = self._solved(known, known["cotangent"])
        if not self._moved:
            return [y]
        program = products.vjp(inverse, self._moved, charts=self.charts)
        return self._ordered(_outputs(program, {**known, "cotangent_tau": y}), y)

    def _hvp(self, inverse: Program, known: Scalars) -> list[list[Scalar]]:
        """Return the derivatives of `_vjp`; I y stays, so that dy = -I^-1 dI y."""
        y = self._solved(known, known["cotangent"])
        (dqdd,) = self._jvp(inverse, known)
        dy = [0.0] * self.mechanism.nv
        product = self._program(inertia_product, "qdd")
        if shared := [x for x in self._moved if any(x == a.name for a in product.inputs)]:
            changes = _output(products.jvp(product, shared, charts=self.charts), {**known, "qdd": y})
            dy = self._solved(known, [-x for x in changes])
        if not self._moved:
            return [dy]
        gradient = products.vjp(inverse, self._moved, charts=self.charts)
        program = products.jvp(gradient, (*self._moved, "qdd", "cotangent_tau"), charts=self.charts)
        found = _outputs(program, {**known, "cotangent_tau": y, "tangent_qdd": dqdd, "tangent_cotangent_tau": dy})
        return self._ordered(found, dy)

    def _ordered(self, of_moved: list[list[Scalar]], of_tau: list[Scalar]) -> list[list[Scalar]]:
        """Return the results in the order of `wrt`, those of inverse dynamics with the opposite sign."""
        named = dict(zip(self._moved, of_moved, strict=True))
        return [of_tau if x == "tau" else [-e for e in named[x]] for x in self.wrt]

    def _solved(self, known: Scalars, torques: Sequence[Scalar]) -> list[Scalar]:
        """Return I^-1 times torques, with the pivots of forward dynamics, which are recorded once."""
        return _output(self._program(inverse_inertia_product, "tau"), {**known, "tau": torques})

    def _program(self, page, name: str) -> Program:
        """Return the Program of a product of the inertia matrix or its inverse with the input `name`."""
        inputs = [a for a in signature(self.mechanism, self.request)[0] if a.name in ("q", "parameters")]
        arrays = (*inputs, Array(name, (self.mechanism.nv,)))
        trace, given = traced(arrays)
        tree = tree_maker(self.mechanism, self.request.dtype)(self.mechanism, given)
        return Program.of_trace("product", arrays, [Array("out", (self.mechanism.nv,))], trace, [page(tree)])


def _outputs(program: Program, known: Scalars) -> list[list[Scalar]]:
    return list(Recorded(program, known).outputs().values())


def _output(program: Program, known: Scalars) -> list[Scalar]:
    (out,) = _outputs(program, known)
    return out
