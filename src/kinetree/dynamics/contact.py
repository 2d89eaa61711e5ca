"""Contacts: gaps, velocities along the normal and two tangents, and the Delassus matrix by the O(n) factors.

Each candidate of a contact has three rows, those of the velocity of the body relative to the surface at the point of
contact: along the normal, and along two tangents. A unit multiplier of a row is a unit force on the body, and its
reaction on the body of the surface.
"""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import Any

from .. import contact_geometry
from ..algebra.propagation import Pose, Propagation
from ..algebra.scalars import Scalar, absolute
from ..algebra.spatial import Twist, power
from ..algebra.vectors import IDENTITY, ZERO, Matrix, Vector, add, dot, matmul, times, transpose
from ..loops.blocks import Equation
from .closed import Pulls, rested
from .closure import Row, end, of_row, relative, row_of, rows
from .kinematics import place


class Touch:
    """A candidate at one state: its rows (normal and two tangents), its gap, and its geometry in the surface's axes."""

    def __init__(self, record: Any, motion: Any, found: contact_geometry.Candidate) -> None:
        """Make the three rows of a candidate."""
        self.record, self.gap = record, found.gap
        self.rows: list[Row] = [row_of(record, motion, e) for e in found.equations]
        self._place, self._axes, self.normal = add(motion.r, found.arm), found.axes, found.axes[0]

    def placed(self) -> tuple[Vector, Matrix]:
        """Return the point of contact and its axes (rows n, t1, t2) in the ground's frame; bodies have poses T."""
        pose = _pose_of(self.record.a)
        return pose.place(self._place), transpose(matmul(pose.R, transpose(self._axes)))


def touches(tree) -> list[Touch]:
    """Return all candidates of the contacts of the tree's mechanism, in order."""
    out = []
    for record in tree.contacts:
        motion = relative(end(record.chain_a, record.a), end(record.chain_b, record.b))
        found = contact_geometry.candidates(record.contact, motion.r, motion.R, motion.w, motion.v)
        out += [Touch(record, motion, x) for x in found]
    return out


def weights(tree, found: list[Touch]) -> list[Scalar]:
    """Return |g . n| [m/s^2] of candidates whose surface a body carries, and zero of those with the ground."""
    carried = [x.record.a.record is not tree.ground for x in found]
    if any(carried):
        place(tree)
    return [
        absolute(dot(gravity_at(tree, x.record.a), x.normal)) if moves else 0.0
        for x, moves in zip(found, carried, strict=True)
    ]


def gravity_at(tree, frame: Any) -> Vector:
    """Return gravity in the axes of a frame; bodies have poses T."""
    return times(transpose(_pose_of(frame).R), tree.gravity)


def _pose_of(frame: Any) -> Pose:
    """Return the pose of a frame in the ground's frame; bodies have poses T."""
    own = getattr(frame.record, "T", None)
    return (own if isinstance(own, Pose) else Pose()).then(frame.R, frame.r)


class Pair:
    """A body and a surface that it may touch: the motion of the body's working frame in the frame of the surface.

    `units` are the rows of the six entries of the relative twist, `places` and `turns` the positions and axes of the
    shapes in the working frame, by contact.
    """

    def __init__(self, records: list[Any]) -> None:
        """Take the records of the contacts of a body with a surface."""
        first = records[0]
        self.chain_a, self.chain_b, self.a = first.chain_a, first.chain_b, first.a
        self.b = FrameOfBody(first.b.record)
        self.motion = relative(end(self.chain_a, self.a), end(self.chain_b, self.b))
        self.units = [self.row(n, f) for n, f in (*((e, ZERO) for e in IDENTITY), *((ZERO, e) for e in IDENTITY))]

    def row(self, n: Vector, f: Vector) -> Row:
        """Return the row of the rate n . w + f . v of the relative motion."""
        return row_of(self, self.motion, Equation("", "", 0.0, n=n, f=f, dn=ZERO, df=ZERO))

    def entries(self) -> list:
        """Return rotation, position and twist of the body relative to the surface: 18 scalars."""
        m = self.motion
        return [*(x for row in m.R for x in row), *m.r, *m.w, *m.v]

    def surface(self) -> Pose:
        """Return the pose of the surface in the ground's frame; bodies have poses T."""
        return _pose_of(self.a)


@dataclass(frozen=True)
class FrameOfBody:
    """The working frame of a body, as the frame at the end of a chain."""

    record: Any
    r: Vector = ZERO
    R: Matrix = IDENTITY
    A: Propagation = field(default_factory=Propagation)


def contact_motion(tree) -> tuple[list, ...]:
    """Return gaps, velocities J qd, rates dJ/dt qd, J, points and axes of all candidates.

    J qdd + dJ/dt qd is the rate of the velocities. Axes are the rows n, t1, t2 in the axes of the ground.
    """
    found = touches(tree)
    place(tree)
    flat = [row for x in found for row in x.rows]
    J = []
    for row in flat:
        entries = of_row(row)
        J += [entries.get(k, 0.0) for k in range(tree.nv)]
    places = [x.placed() for x in found]
    return (
        [x.gap for x in found],
        [row.rate for row in flat],
        [row.bias for row in flat],
        J,
        [x for point, _ in places for x in point],
        [x for _, axes in places for row in axes for x in row],
    )


def of_accelerations(tree, rows: list[Row], qdd: list) -> list:
    """Return J qdd of rows, by the accelerations of the bodies: no row of J is formed."""
    tree.ground.mu = Twist()

    @tree.outward
    def accelerate(i, p):
        i.mu = i.A @ p.mu
        for label, pk in zip(i.labels, i.P.columns, strict=True):
            i.mu += pk * qdd[label]

    return [
        sum((power(w, tip.mu) for _, tip, w in row.wrenches if isinstance(tip.mu, Twist)), start=0.0) for row in rows
    ]


def contact_response(tree) -> tuple[list, list]:
    """Return the Delassus matrix W = J I^-1 J^T and the accelerations X = I^-1 J^T of unit contact forces.

    In a mechanism with loops, these are those of the constrained system: the loops answer to each unit force.
    """
    answers = Answers(tree, [row for x in touches(tree) for row in x.rows])
    W = answers.delassus()
    return [x for row in W for x in row], answers.responses()


class Answers:
    """The answers of a tree at rest to unit forces along rows, with the loops closed.

    y = U^-1 J^T has a column per row, of loops and contacts alike: W = y^T D^-1 y. With the blocks of the loops (l)
    and the contacts (c), the constrained matrix is W_cc - W_cl W_ll^-1 W_lc.
    """

    def __init__(self, tree, more: list[Row]) -> None:
        """Eliminate the tree and carry all rows inward."""
        rested(tree)
        own = rows(tree)
        self.tree, self.pulls, self.first, self.count = tree, Pulls(tree, own, more), len(own), len(more)
        self._loops: list[dict[int, Scalar]] = [self._answered(c) for c in range(self.count)] if own else []

    def _answered(self, c: int) -> dict[int, Scalar]:
        """Return the multipliers of the loops that a unit force along row c causes."""
        kept = self.tree.closing.kept
        if not hasattr(self, "_factors"):
            self._factors = self.pulls.factors()
        solved = self._factors.solve([self.pulls.product(k, self.first + c) for k in kept])
        return {k: -x for k, x in zip(kept, solved, strict=True)}

    def delassus(self) -> list[list]:
        """Return W, row by row; it is symmetric to the last bit."""
        W: list[list] = [[0.0] * self.count for _ in range(self.count)]
        for k in range(self.count):
            for m in range(k + 1):
                W[k][m] = W[m][k] = self._entry(k, m)
        return W

    def _entry(self, k: int, m: int) -> Scalar:
        value = self._product(k, m)
        for j, x in self._loops[m].items() if self._loops else ():
            value = value + x * self.pulls.product(j, self.first + k)
        return value

    def _product(self, k: int, m: int) -> Scalar:
        """Return y_k^T D^-1 y_m of two rows of contacts, with D^-1 y_m formed once."""
        total: Scalar = 0.0
        for i in self.tree.records:
            for (_, pivot, _), y in zip(i.pivots, i.pulls, strict=True):
                if self.first + k in y and self.first + m in y:
                    total = total + y[self.first + k] * (y[self.first + m] * pivot.inverse)
        return total

    def moved(self, impulses: list) -> list:
        """Return the changes of the velocities by impulses along the rows, loops closed: X p without X."""
        total = {self.first + c: x for c, x in enumerate(impulses)}
        for c, x in enumerate(impulses):
            for j, answer in self._loops[c].items() if self._loops else ():
                total[j] = total[j] + answer * x if j in total else answer * x
        self.pulls.act(total)
        return self.pulls.accelerate()

    def responses(self) -> list:
        """Return X [nv, rows], row by row: the accelerations of unit forces, loops closed."""
        columns: dict[tuple[int, int], Scalar] = {}
        tree, first = self.tree, self.first
        tree.ground.mu = {}

        @tree.outward
        def accelerate(i, p):
            i.mu = {c: i.A @ mu for c, mu in p.mu.items()}
            for label, (pk, pivot, _), y in zip(i.labels, reversed(i.pivots), reversed(i.pulls), strict=True):
                for c in dict.fromkeys((*i.mu, *y)):
                    mu = i.mu.get(c, Twist())
                    value = y.get(c, 0.0) * pivot.inverse - power(pivot.psi, mu)
                    i.mu[c] = mu + pk * value
                    columns[label, c] = value

        out = []
        for label in range(tree.nv):
            for c in range(self.count):
                value = columns.get((label, first + c), 0.0)
                for j, x in self._loops[c].items() if self._loops else ():
                    value = value + x * columns.get((label, j), 0.0)
                out.append(value)
        return out
