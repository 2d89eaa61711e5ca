"""Loops of a small mechanism in symbols: the equations that close them, and inertia and torques with loops closed.

The motions that loops allow are qd = G x, J G = 0, with x the velocities of independent joints. With J_d and J_i the
columns of J for dependent and independent joints, the rows of G for the former are -J_d^-1 J_i = N / D by Cramer's
rule, D = det J_d. Inertia and torques reduce to G^T I G and G^T tau.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import Any

from ..compiler.lower.loop_pattern import leading_rows
from ..errors import InputError
from ..runtime.compiled import CompiledMechanism
from .fourier import Sum, import_sympy
from .loops.batch_assembly import assemble
from .loops.independence import independent
from .loops.kinematics import LoopKinematics

INDEPENDENT = 1e-6
"""The length of what remains of a row of J, beside the longest row, below which the row depends on those before it."""
REDUCED = ("inertia_matrix", "gravity_torque", "inverse_dynamics")
"""The functions that reduce by G alone; bias torques and convective terms would need its rate."""


@dataclass(frozen=True)
class SymbolicLoops:
    """The equations of loops, with their names as `labels`: `gaps` are zero where they are closed, J has their rates.

    `numbers` are those of the equations that do not hold by themselves, `sums` the entries of a function of the open
    tree, and `printed` returns a Sum as an expression.
    """

    system: CompiledMechanism
    numbers: tuple[int, ...]
    labels: tuple[str, ...]
    gaps: tuple[Any, ...]
    J: tuple[tuple[Sum, ...], ...]
    sums: tuple[Sum, ...]
    printed: Callable[[Sum], Any]

    def reduced(self, joints: str | Sequence[str] = ()) -> tuple[tuple[str, ...], list[Any]]:
        """Return the names of independent joints, and the entries of the function for these."""
        sympy = import_sympy()
        names, leads, N, D = self._rates(joints)
        nv, below = self.system.nv, self.printed(D)
        G = sympy.Matrix(nv, len(leads), lambda k, c: self._ratio(N[k][c], D, below))
        whole = sympy.Matrix(nv, len(self.sums) // nv, [self.printed(x) for x in self.sums])
        columns = [[row[c] for row in N] for c in range(len(leads))]
        if len(self.sums) == nv:
            exact, parts = [self.printed(_dot(column, self.sums)) / below for column in columns], G.T * whole
        else:
            rows = [self.sums[k * nv : (k + 1) * nv] for k in range(nv)]
            moved = [[_dot(row, column) for row in rows] for column in columns]
            exact = [self.printed(_dot(a, b)) / below**2 for a in columns for b in moved]
            parts = G.T * whole * G
        return names, [min(pair, key=lambda x: x.count_ops()) for pair in zip(exact, parts, strict=True)]

    def _ratio(self, n: Sum, d: Sum, below: object) -> Any:
        """Return n / d as an expression."""
        return self.printed(Sum.number(1)) if n is d else import_sympy().factor(self.printed(n) / below)

    def _rates(self, joints: str | Sequence[str]) -> tuple[tuple[str, ...], tuple[int, ...], list[list[Sum]], Sum]:
        """Return names and numbers of independent joints, and the numerators N [nv][joints] and denominator D of G."""
        named = (joints,) if isinstance(joints, str) else tuple(joints)
        q = assemble(self.system)
        found = independent(self.system, q, prefer=named)
        if missing := [name for name in named if name not in found.names]:
            raise InputError(
                f"{missing[0]!r} is not independent beside {', '.join(found.names) or 'no other joint'} where the "
                "mechanism is assembled; name as many joints as it has degrees of freedom, or give another guess"
            )
        leads, rest = found.at, [k for k in range(self.system.nv) if k not in found.at]
        rows = leading_rows(LoopKinematics(self.system).jacobian(q)[list(self.numbers)][:, rest], INDEPENDENT)
        if len(rows) != len(rest):
            raise InputError(f"{', '.join(found.names)} do not determine the other joints by the printed equations")
        dependent = [[self.J[r][k] for k in rest] for r in rows]
        D, zero = determinant(dependent), Sum.number(0)
        N = [[D if k == lead else zero for lead in leads] for k in range(self.system.nv)]
        for n, k in enumerate(rest):
            for c, lead in enumerate(leads):
                swapped = [[*row[:n], -self.J[r][lead], *row[n + 1 :]] for r, row in zip(rows, dependent, strict=True)]
                N[k][c] = determinant(swapped)
        return found.names, leads, N, D


def determinant(rows: Sequence[Sequence[Sum]]) -> Sum:
    """Return a determinant, developed by its first row."""
    if not rows:
        return Sum.number(1)
    total = Sum.number(0)
    for k, x in enumerate(rows[0]):
        if x.terms:
            minor = x * determinant([[*row[:k], *row[k + 1 :]] for row in rows[1:]])
            total = total + minor if k % 2 == 0 else total - minor
    return total


def _dot(a: Sequence[Sum], b: Sequence[Sum]) -> Sum:
    return sum((x * y for x, y in zip(a, b, strict=True) if x.terms and y.terms), start=Sum.number(0))
