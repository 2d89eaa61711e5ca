"""Derivatives of inverse dynamics with respect to positions and velocities, by composite bodies in O(n depth)."""

from __future__ import annotations

from collections.abc import Callable, Container, Mapping
from dataclasses import dataclass

from ..algebra.mass import Coriolis, MassMatrix
from ..algebra.scalars import Scalar, is_plain_zero
from ..algebra.spatial import Twist, Wrench, power, unit_index
from ..algebra.vectors import ZERO, Vector, add, cross, dot, is_zero, scale, times
from .inertia import inertia_matrix
from .inverse import inverse_dynamics, newton_euler

# --- I = U D U^T of a sparse symmetric matrix, last row first: entries between different branches of a tree stay
# zero.

Column = dict[int, Scalar]
"""The entries of a column that are not structurally zero, by row."""

NONE = -1
"""The parent of a row that starts a tree."""


class SparseFactors:
    """U and 1/D of a positive definite matrix, given by its entries (row, column); missing entries are zero."""

    def __init__(self, entries: Mapping[tuple[int, int], Scalar], n: int) -> None:
        """Eliminate the rows from the last to the first.                                  [Saha2013] (28)-(31)"""
        rest = {(i, k): x for (i, k), x in entries.items() if i <= k}
        self.n = n
        self.inverse: list[Scalar] = [0.0] * n
        self.U: list[Column] = [{} for _ in range(n)]  # column k, above its diagonal
        for k in reversed(range(n)):
            self.inverse[k] = 1.0 / rest[k, k]
            above = {i: rest[i, k] for i in range(k) if (i, k) in rest}
            self.U[k] = {i: x * self.inverse[k] for i, x in above.items()}
            for i, u in self.U[k].items():
                for j, x in above.items():
                    if i <= j:
                        rest[i, j] = rest.get((i, j), 0.0) - u * x
        self._parents = [max(column, default=NONE) for column in self.U]
        self._branches: dict[tuple[int, int], Column] = {}

    def solve(self, b: Column) -> list[Scalar]:
        """Return x with U D U^T x = b."""
        y = dict(b)
        for k in reversed(range(self.n)):
            if k in y:
                for i, u in self.U[k].items():
                    y[i] = y.get(i, 0.0) - u * y[k]
        x: list[Scalar] = []
        for k in range(self.n):
            value, row = (y[k] * self.inverse[k], self.U[k]) if k in y else (0.0, self._row(k, y))
            for i, u in row.items():
                value = value - u * x[i]
            x.append(value)
        return x

    def inverse_matrix(self) -> dict[tuple[int, int], Scalar]:
        """Return the entries of the inverse: U^T X = D^-1 U^-1 below the diagonal, where U^-1 is zero."""
        X: dict[tuple[int, int], Scalar] = {}
        for c in range(self.n):
            moved = {c, *self.U[c]}
            for k in range(c, self.n):
                value, row = (self.inverse[k], self.U[k]) if k == c else (0.0, self._row(k, moved))
                for i, u in row.items():
                    value = value - u * X[i, c]
                X[k, c] = X[c, k] = value
        return X

    def _row(self, k: int, moved: Container[int]) -> Column:
        """Return the row by which x[k] follows from the entries before it, without a right-hand side of its own.

        A branch none of whose entries is in `moved` follows the entries before the whole branch, which are fewer.
        """
        root, parent = k, self._parents[k]
        while parent != NONE and parent not in moved:
            root, parent = parent, self._parents[parent]
        return self._following(k, root) if parent != NONE and self._parents.count(parent) > 1 else self.U[k]

    def _following(self, k: int, root: int) -> Column:
        """Return column k of U without the entries of its branch, which starts with `root`: they follow, too."""
        if k == root:
            return self.U[k]
        if (k, root) not in self._branches:
            row = {i: u for i, u in self.U[k].items() if i < root}
            for m, u in self.U[k].items():
                if m >= root:
                    for i, w in self._following(m, root).items():
                        row[i] = row.get(i, 0.0) - u * w
            self._branches[k, root] = row
        return self._branches[k, root]


SLIDES = (3, 4, 5)
"""The unit twists that are translations along x, y and z."""


@dataclass(frozen=True)
class Change:
    """A change of the motion of all bodies outboard of a joint, in the frame of the joint's body.

    A point at r from the origin, which moves away from it with u = dr/dt, is accelerated by dv + a x r + 2 w x u.
    See docs/theory/derivatives.md.
    """

    w: Vector = ZERO
    a: Vector = ZERO
    dv: Vector = ZERO

    def wrench(self, M: MassMatrix, B: Coriolis) -> Wrench:
        """Return the change of the wrench of composite bodies: M [a; dv] + 2 B [w; 0]."""
        return M @ Twist(self.a, self.dv) + B @ Twist(scale(2.0, self.w))

    def torque(self, F: Wrench, G: Vector) -> Scalar:
        """Return the change of a torque with the rows F = M p and G = 2 B^T p of its own composite body."""
        return power(F, Twist(self.a, self.dv)) + dot(G, self.w)


def inverse_dynamics_derivatives(tree):
    """Return dtau/dq, dtau/dqd and dtau/dqdd = I, entry by entry; docs/theory/derivatives.md.

    The change of a joint's motion is one change of the motion of the composite body outboard of it. X, Y and F are the
    wrenches of unit changes of q, qd and qdd, which propagate inward and give the columns of the joints before. F and
    G give the rows: the torque of a joint under changes of the motions of the joints before. Displacements of joints
    are in the tangent space. The motion P of every joint must be constant in its child.
    """
    by_q, by_qd, inertia = {}, {}, {}
    newton_euler(tree)

    @tree.each
    def begin(i):
        i.Mtilde, i.B = i.M, i.M.coriolis(i.t)
        i.F, i.G, i.X, i.Y = {}, {}, {}, {}

    @tree.inward
    def columns(i, p):
        moved, sped = position_changes(i, p), velocity_changes(i, p)
        for k in i.labels:
            for outer, F in i.F.items():
                by_q[outer, k] = moved[k].torque(F, i.G[outer])
                by_qd[outer, k] = sped[k].torque(F, i.G[outer])
        for k, pk in zip(i.labels, i.P.columns, strict=True):
            i.F[k] = i.Mtilde @ pk
            i.G[k] = scale(2.0, i.B.transpose_times(pk).n)
            i.X[k] = moved[k].wrench(i.Mtilde, i.B)
            i.Y[k] = sped[k].wrench(i.Mtilde, i.B)
        for k, pk, armature in zip(i.labels, i.P.columns, i.armature, strict=True):
            for outer in i.F:
                by_q[k, outer] = power(i.X[outer], pk)
                by_qd[k, outer] = power(i.Y[outer], pk)
                inertia[k, outer] = inertia[outer, k] = power(i.F[outer], pk)
            inertia[k, k] += armature
        for k, pk in zip(i.labels, i.P.columns, strict=True):
            i.X[k] += rotate_wrench(i.w, pk)  # the wrench through the joint moves with its child
        carry(i, p)

    return tree.matrix(by_q), tree.matrix(by_qd), tree.matrix(inertia)


def position_changes(i, p) -> dict[int, Change]:
    """Return the change of motion for a unit displacement of each degree of freedom of a joint."""
    parent = i.A @ p.dt  # the motion of the parent's frame at the joint
    own = i.P @ i.qd
    U = i.dt.U if len(i.labels) == 1 else parent.U  # equal along the only axis, and U of the child is known
    out = {}
    for k, pk in zip(i.labels, i.P.columns, strict=True):
        w = cross(parent.w, pk.w)
        dv = add(add(cross(parent.dv, pk.w), times(parent.U, pk.v)), cross(scale(2.0, w), own.v))
        out[k] = Change(w, times(U, pk.w), dv)
    return out


def velocity_changes(i, p) -> dict[int, Change]:
    """Return the change of motion for a unit velocity of each degree of freedom of a joint."""
    parent = i.A @ p.dt
    own = i.P @ i.qd
    out = {}
    for k, pk in zip(i.labels, i.P.columns, strict=True):
        dv = add(cross(pk.w, own.v), cross(add(scale(2.0, parent.w), own.w), pk.v))
        out[k] = Change(pk.w, cross(add(parent.w, i.dt.w), pk.w), dv)
    return out


def rotate_wrench(w: Wrench, p: Twist) -> Wrench:
    """Return the change of a wrench that moves along a unit twist p with its body."""
    return Wrench(add(cross(p.w, w.n), cross(p.v, w.f)), cross(p.w, w.f))


def carry(i, p) -> None:
    """Propagate the columns, the rows and the composite bodies to the parent."""
    E, r = i.A.E, i.A.offset
    dr = add(cross(p.t.w, r), E @ (i.P @ i.qd).v)
    F = {k: i.A.T @ x for k, x in i.F.items()}
    p.G |= {k: add(E @ x, cross(scale(2.0, dr), F[k].f)) for k, x in i.G.items()}
    p.F |= F
    p.X |= {k: i.A.T @ x for k, x in i.X.items()}
    p.Y |= {k: i.A.T @ x for k, x in i.Y.items()}
    p.B += i.B.carried(i.Mtilde, E, r, dr)
    p.Mtilde += i.A.T @ i.Mtilde @ i.A
    p.w += i.A.T @ i.w


def forward_dynamics_derivatives(tree, renewed: Callable | None = None):
    """Return dqdd/dq, dqdd/dqd and dqdd/dtau = I^-1 of a tree, entry by entry.

    With tau = f(q, qd, qdd) of inverse dynamics, dqdd/dq = -I^-1 df/dq at the accelerations of forward dynamics. One
    factorisation I = U D U^T serves the accelerations and all columns. `renewed` returns the same tree again: its
    motion is then computed twice, once for the accelerations and once for the derivatives, and need not be kept.
    """
    torques = tree.joints("tau")
    for i in tree.records:
        i.qdd = (0.0,) * len(i.labels)
    bias = inverse_dynamics(tree)
    factors = SparseFactors(_entries(inertia_matrix(tree), tree.nv), tree.nv)
    qdd = factors.solve({k: t - h for k, (t, h) in enumerate(zip(torques, bias, strict=True))})
    tree = renewed() if renewed else tree
    for i in tree.records:
        i.qdd = tuple(qdd[k] for k in i.labels)
    by_q, by_qd, _ = inverse_dynamics_derivatives(tree)
    solved = (
        _solved(factors, _entries(matrix, tree.nv), _followed(tree, changes))
        for matrix, changes in ((by_q, position_changes), (by_qd, velocity_changes))
    )
    return *(tree.matrix(x) for x in solved), tree.matrix(factors.inverse_matrix())


def _followed(tree, changes) -> dict[int, dict]:
    """Return the columns of changes that a free base follows: it accelerates by the opposite, and no other joint does.

    These are changes dv of the acceleration of the whole mechanism: of gravity in the axes of a rotated base, and of
    the Coriolis acceleration of its velocity.
    """
    columns = {}
    for i in (i for i in tree.records if i.parent is tree.ground):
        axes = [unit_index(pk) for pk in i.P.columns]
        slides = [i.labels[axes.index(x)] for x in SLIDES if x in axes and is_plain_zero(i.armature[axes.index(x)])]
        if len(slides) == len(SLIDES):
            for k, change in changes(i, i.parent).items():
                if is_zero(change.w) and is_zero(change.a):
                    columns[k] = {row: -x for row, x in zip(slides, change.dv, strict=True)}
    return columns


def _entries(matrix, n: int) -> dict:
    """Return the entries of a matrix that are not structurally zero, by row and column."""
    return {divmod(k, n): x for k, x in enumerate(matrix) if not is_plain_zero(x)}


def _solved(factors: SparseFactors, entries: dict, known: dict[int, dict]) -> dict:
    """Return -I^-1 times a matrix; some of its columns are already known."""
    columns: dict[int, dict] = {}
    for (row, column), x in entries.items():
        columns.setdefault(column, {})[row] = -x
    solved = {k: dict(enumerate(factors.solve(column))) for k, column in columns.items() if k not in known}
    return {(row, k): x for k, column in (solved | known).items() for row, x in column.items()}
