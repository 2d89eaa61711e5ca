"""Programs of a cone problem: what is left of its equations, and the steps of Newton's method that solve them.

With p the impulses of all contacts (normal and two tangents each), W the Delassus matrix and b the velocities without
impulses, less those that are allowed along the normals, u = W p + b. The equations are those of [AlartCurnier1991]:

    p_n = max(0, p_n - r u_n),    p_t = the point of the disc of radius mu p_n nearest to p_t - r u_t

with r the reciprocal of the mean compliance of a contact, its `reach`.
"""

from __future__ import annotations

from collections.abc import Sequence
from functools import cached_property
from typing import Any

from ...algebra.definite import Definite
from ...algebra.scalars import sqrt, where
from ...compiler.ir.program import Array, Program
from ...compiler.ir.trace import Trace

IMPULSE = "impulse"
"""The name of the impulses among the inputs."""

PLAY = {"float64": 1e-9, "float32": 1e-4}
"""The part of the mean compliance that is added to the diagonal of Newton's matrix. Where contacts are redundant, such
as four legs of a rigid table, W is singular. The residual itself is that without it, so the solution is not changed."""

STIFF = 1e20
"""The diagonal of an open contact in Newton's matrix, in parts of the mean compliance: its impulse does not change."""


def cone_inputs(count: int) -> tuple[Array, ...]:
    """Return the inputs of all Programs of this module, for a number of contacts."""
    n = 3 * count
    return (
        Array("W", (n, n)),
        Array("b", (n,)),
        Array("friction", (count,)),
        Array("reach", (count,)),
        Array(IMPULSE, (n,)),
    )


def residual_program(count: int) -> Program:
    """Return (...) -> (normal, tangent, u, lack): the largest residuals [m/s], velocities, and residual impulses."""
    cone = _Cone(count)
    normal: Any = None
    tangent: Any = None
    lack = []
    for c in range(count):
        n, s, t = range(3 * c, 3 * c + 3)
        push, x, y, size, radius = cone.probe(c)
        shut = push > 0.0
        slips = radius < size
        part = where(slips, radius, 1.0) / where(slips, size, 1.0)
        aims = (where(shut, push, 0.0), where(shut, x * part, 0.0), where(shut, y * part, 0.0))
        own = [cone.p[k] - aim for k, aim in zip((n, s, t), aims, strict=True)]
        sizes = [abs_of(z) * cone.compliance(c) for z in own]
        normal = larger(normal, sizes[0])
        tangent = larger(larger(tangent, sizes[1]), sizes[2])
        lack += own
    return cone.program("residual", normal=[normal], tangent=[tangent], u=cone.u, lack=lack)


def sticking_program(count: int, dtype: str) -> Program:
    """Return (...) -> (impulse, slides): a step of Newton's method for contacts that are open or stick.

    Newton's matrix is then symmetric. A contact without an impulse so far sticks when it closes; `slides` is 1 if
    another one leaves its cone, for which the step is not meant.
    """
    cone, n = _Cone(count), 3 * count
    M = [[cone.W[i][j] for j in range(i + 1)] for i in range(n)]
    wanted, shut, slides = [], [], 0.0
    for c in range(count):
        push, x, y, _, radius = cone.probe(c)
        shut.append(push > 0.0)
        leaves = shut[c] & (cone.p[3 * c] > 0.0) & (radius * radius < x * x + y * y)
        slides = where(leaves, 1.0, slides)
        mean = cone.compliance(c)
        stiff = mean * STIFF
        for k in range(3 * c, 3 * c + 3):
            M[k][k] = M[k][k] + where(shut[c], mean * PLAY[dtype], stiff)
            wanted.append(where(shut[c], -cone.u[k], -(stiff * cone.p[k])))
    change = Definite(M, [0.0] * n, [1.0] * n).solve(wanted)
    p = [where(shut[k // 3], cone.p[k] + change[k], 0.0) for k in range(n)]
    return cone.program("sticking", impulse=p, slides=[slides])


def newton_program(count: int, dtype: str) -> Program:
    """Return (...) -> impulse: a step of Newton's method for contacts of any kind, without exchange of rows."""
    cone = _Cone(count)
    A: list[list[Any]] = []
    lack = []
    for c in range(count):
        first, one = 3 * c, 1.0 + PLAY[dtype]
        push, x, y, size, radius = cone.probe(c)
        shut, slips = push > 0.0, radius < size
        inverse = where(slips, 1.0, 0.0) / where(slips, size, 1.0)
        part, e1, e2 = where(slips, radius * inverse, 1.0), x * inverse, y * inverse
        # the derivative of the nearest point: part (1 - e e^T) along the tangents, mu e along the normal
        T11, T12, T22 = part * (1.0 - e1 * e1), -(part * e1 * e2), part * (1.0 - e2 * e2)
        r = where(shut, cone.r[c], 0.0)
        wn, ws, wt = cone.W[first : first + 3]
        own = [
            [r * a for a in wn],
            [r * T11 * a + r * T12 * b for a, b in zip(ws, wt, strict=True)],
            [r * T12 * a + r * T22 * b for a, b in zip(ws, wt, strict=True)],
        ]
        mu = cone.mu[c]
        added = [
            [where(shut, PLAY[dtype], 1.0), 0.0, 0.0],
            [where(shut, -(mu * e1), 0.0), where(shut, one - T11, 1.0), where(shut, -T12, 0.0)],
            [where(shut, -(mu * e2), 0.0), where(shut, -T12, 0.0), where(shut, one - T22, 1.0)],
        ]
        for row, more in zip(own, added, strict=True):
            row[first : first + 3] = [a + b for a, b in zip(row[first : first + 3], more, strict=True)]
        A += own
        lack += [
            cone.p[first] - where(shut, push, 0.0),
            cone.p[first + 1] - where(shut, x * part, 0.0),
            cone.p[first + 2] - where(shut, y * part, 0.0),
        ]
    return cone.program("newton", impulse=[p - z for p, z in zip(cone.p, solved(A, lack), strict=True)])


class _Cone:
    """The inputs of a cone problem as traced scalars."""

    def __init__(self, count: int) -> None:
        self.inputs, self.trace, n = cone_inputs(count), Trace(), 3 * count
        W, self.b, self.mu, self.r, self.p = (
            [self.trace.input(g, k) for k in range(a.size)] for g, a in enumerate(self.inputs)
        )
        self.W = [[W[max(i, j) * n + min(i, j)] for j in range(n)] for i in range(n)]

    @cached_property
    def u(self) -> list[Any]:
        """The velocities u = W p + b."""
        return [
            sum((w * p for w, p in zip(row, self.p, strict=True)), start=b)
            for row, b in zip(self.W, self.b, strict=True)
        ]

    def compliance(self, c: int) -> Any:
        """Return the mean compliance of a contact, 1 / r."""
        return (self.W[3 * c][3 * c] + self.W[3 * c + 1][3 * c + 1] + self.W[3 * c + 2][3 * c + 2]) * (1.0 / 3.0)

    def probe(self, c: int) -> tuple[Any, Any, Any, Any, Any]:
        """Return p_n - r u_n, p_t - r u_t, the length of the latter, and the radius of the disc."""
        (pn, ps, pt), (un, us, ut), r = self.p[3 * c : 3 * c + 3], self.u[3 * c : 3 * c + 3], self.r[c]
        x, y = ps - r * us, pt - r * ut
        return pn - r * un, x, y, sqrt(x * x + y * y), self.mu[c] * where(pn > 0.0, pn, 0.0)

    def program(self, name: str, **outputs: list[Any]) -> Program:
        """Return the Program of some outputs."""
        arrays = [Array(label, (len(x),)) for label, x in outputs.items()]
        return Program.of_trace(name, self.inputs, arrays, self.trace, list(outputs.values()))


def solved(A: list[list[Any]], b: Sequence[Any]) -> list[Any]:
    """Return x with A x = b by elimination without exchange of rows; a pivot of zero gives infinities or NaN."""
    n, A, x = len(b), [list(row) for row in A], list(b)
    for c in range(n):
        inverse = 1.0 / A[c][c]
        for i in range(c + 1, n):
            factor = A[i][c] * inverse
            x[i] = x[i] - factor * x[c]
            for j in range(c + 1, n):
                A[i][j] = A[i][j] - factor * A[c][j]
        A[c][c] = inverse
    for i in reversed(range(n)):
        for j in range(i + 1, n):
            x[i] = x[i] - A[i][j] * x[j]
        x[i] = x[i] * A[i][i]
    return x


def larger(a: Any | None, b: Any) -> Any:
    """Return the larger of two scalars; the second if there is no first."""
    return b if a is None else where(a < b, b, a)


def abs_of(x: Any) -> Any:
    """Return the magnitude of a scalar."""
    return where(x < 0.0, -x, x)
