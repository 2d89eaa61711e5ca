"""Other algorithms as pages of sweeps, whose operations are counted as those of Kinetree's own pages are.

They run on joints of one axis. Joints of several axes are revolute joints on massless bodies for them, whose zeros are
known: constants fold and zeros vanish here too. `lumped` assigns masses to the bodies nearest to the ground, as
Kinetree does for joint torques and accelerations; no paper's table names it.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any

from ...algebra.rotations import ONE
from ...algebra.scalars import Scalar
from ...algebra.vectors import ZERO, add, cross, dot, from_moments, matmul, neg, scale, sub, times, transpose
from ...analysis.cost import Cost, in_revolutes
from ...compiler.ir.program import Array, Program
from ...compiler.ir.trace import Trace
from ...compiler.lower.build import ClosedTree
from ...dynamics.inertia import inertia_matrix
from ...dynamics.inverse import inverse_dynamics
from ...model.mechanism import Mechanism

Page = Callable[[Any], Sequence[Any]]
INPUTS = {"inverse_dynamics": ("q", "qd", "qdd"), "forward_dynamics": ("q", "qd", "tau")}


def count_page(page: Page, mechanism: Mechanism, function: str, *, lumped: bool) -> Cost:
    """Return the operations of a page that computes a function, on a mechanism of tree structure."""
    parts, trace = in_revolutes(mechanism), Trace()
    arrays = [Array(name, (parts.nv,)) for name in INPUTS[function]]
    given = {a.name: [trace.input(g, k) for k in range(a.size)] for g, a in enumerate(arrays)}
    results = [list(page(_tree(parts, given, lumped=lumped)))]
    program = Program.of_trace(function, arrays, [Array("result", (parts.nv,))], trace, results)
    return Cost(function, **program.cost())


def compute_page(page: Page, mechanism: Mechanism, inputs: dict[str, Sequence[float]], *, lumped: bool) -> list[float]:
    """Return the numbers that a page computes: q, qd, and qdd or tau of a mechanism with joints of one axis."""
    return [float(x) for x in page(_tree(mechanism, inputs, lumped=lumped))]


def _tree(mechanism: Mechanism, inputs: dict[str, Any], *, lumped: bool) -> ClosedTree:
    tree = ClosedTree(mechanism, inputs)
    if lumped:
        tree.lump()
    return tree


def ground_axes(tree: Any) -> list[Any]:
    """Newton-Euler equations about the centers of mass, all vectors in the axes of the ground."""
    tree.ground.R, tree.ground.w, tree.ground.dw = ONE.matrix(), ZERO, ZERO
    tree.ground.a = neg(tree.gravity)
    tree.ground.f, tree.ground.n = ZERO, ZERO

    @tree.outward
    def motion(i, p):
        i.R = matmul(p.R, i.A.E.matrix())
        i.r = times(p.R, i.A.offset)
        i.a = add(p.a, _carry(p.w, p.dw, i.r))
        (column,) = i.P.columns
        i.turns = any(column.w)
        i.z = times(i.R, column.w if i.turns else column.v)
        i.w, i.dw = p.w, p.dw
        if i.turns:
            rate = scale(i.qd[0], i.z)
            i.w = add(p.w, rate)
            i.dw = add(add(p.dw, cross(p.w, rate)), scale(i.qdd[0], i.z))
        else:
            i.a = add(i.a, add(scale(2.0 * i.qd[0], cross(p.w, i.z)), scale(i.qdd[0], i.z)))

    @tree.each
    def balance(i):
        turned = i.to_work.matrix()
        c = times(i.R, times(turned, sub(i.body.com, i.frame.origin)))
        R = matmul(i.R, turned)
        inertia = matmul(matmul(R, from_moments(i.body.inertia)), transpose(R))
        i.f = scale(i.body.mass, add(i.a, _carry(i.w, i.dw, c)))
        i.n = add(add(times(inertia, i.dw), cross(i.w, times(inertia, i.w))), cross(c, i.f))

    @tree.inward
    def torques(i, p):
        (armature,) = i.armature
        i.tau = [dot(i.z, i.n if i.turns else i.f) + armature * i.qdd[0]]
        p.n = add(p.n, add(i.n, cross(i.r, i.f)))
        p.f = add(p.f, i.f)

    return tree.joints("tau")


def composite_bodies(tree: Any) -> list[Any]:
    """Accelerations from the inertia matrix by composite bodies and its factors L D L^T, in O(n^3) operations."""
    given, n = tree.joints("tau"), tree.nv

    @tree.each
    def rest(i):
        i.qdd = (0.0,) * len(i.labels)

    bias = inverse_dynamics(tree)
    entries = inertia_matrix(tree)
    rows = [list(entries[n * k : n * (k + 1)]) for k in range(n)]
    x = [a - b for a, b in zip(given, bias, strict=True)]
    inverses: list[object] = []
    for k in range(n):  # L D L^T, row by row; rows[k][j] is L_kj below the diagonal
        products = []
        for j in range(k):
            products.append(rows[k][j] - _sum([rows[j][m] * products[m] for m in range(j)]))
            rows[k][j] = products[j] * inverses[j]
        inverses.append(1.0 / (rows[k][k] - _sum([rows[k][m] * products[m] for m in range(k)])))
        x[k] = x[k] - _sum([rows[k][m] * x[m] for m in range(k)])
    x = [a * b for a, b in zip(x, inverses, strict=True)]
    for k in reversed(range(n)):
        x[k] = x[k] - _sum([rows[m][k] * x[m] for m in range(k + 1, n)])
    return x


def _carry(w, dw, r):
    """Return dw x r + w x (w x r)."""
    return add(cross(dw, r), cross(w, cross(w, r)))


def _sum(terms: Sequence[Scalar]) -> Scalar:
    out: Scalar = 0.0
    for term in terms:
        out = out + term
    return out
