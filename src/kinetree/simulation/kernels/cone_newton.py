"""Steps of Newton's method for cone problems of many contacts: equations of those that are not open.

A contact that is open in all lanes and has no impulse keeps it at zero: its equations are left out. In a lane where an
open contact stays among the equations because of other lanes, it has no part in the others, so that the numbers of a
lane do not depend on its neighbors.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import Protocol

from ...compiler.lanes.builder import Builder
from ...compiler.lanes.expressions import Value
from ...compiler.lanes.form import Kind
from .cone_programs import CAUTION, LEAST, PLAY
from .cone_sweeps import Entries, LaneCone
from .lane_solves import LaneSolver


@dataclass(frozen=True)
class Rows:
    """Newton's matrix in the three rows of a contact.

    `answers` returns its entries in a column from those of W in these rows, and `own` are terms that are added to the
    columns of the contact itself, by row and column.
    """

    answers: Callable[[Value, Value, Value], tuple[Value, Value, Value]]
    own: dict[tuple[int, int], Value]


class Equations(Protocol):
    """Equations of all contacts for their impulses."""

    def live(self, c: Value) -> Value:
        """Return the lanes in which a contact is not open, or has an impulse."""
        ...

    def rows(self, c: Value) -> Rows:
        """Return the rows of a contact."""
        ...

    def lack(self, c: Value, j: int) -> Value:
        """Return the present residual of a row of a contact."""
        ...


class LargeNewton:
    """The memory and the statements of a step for all contacts that are not open."""

    def __init__(self, k: Builder, cone: LaneCone) -> None:
        """Declare the memory."""
        self.k, self.cone, self.matrix = k, cone, LaneSolver(k, cone.rows)
        self.which, self.some = k.block("which", cone.count, Kind.COUNT), k.block("some", kind=Kind.COUNT)
        self.live, self.change = k.block("live", cone.count, Kind.MASK), k.block("change", cone.rows)

    def step(self, equations: Equations) -> None:
        """Write the impulses of the lanes that are not solved, after a step on equations."""
        k, cone = self.k, self.cone
        self._find(equations)
        self._fill(equations)
        with k.loop(self.some.value) as a:
            c = self.which[a]
            for j in range(3):
                self.change[a * 3 + j] = equations.lack(c, j)
        size = self.some.value * 3
        self.matrix.factor(size)
        self.matrix.solve(self.change, k.constant(0, Kind.COUNT), size)
        with k.loop(self.some.value) as a:
            c = self.which[a]
            for j in range(3):
                cone.take(c, j, cone.p[c * 3 + j] - self.change[a * 3 + j])

    def _find(self, equations: Equations) -> None:
        """Write which contacts have a part in the equations."""
        k, cone = self.k, self.cone
        self.some.value = 0
        with k.loop(cone.count) as c:
            self.live[c] = equations.live(c)
            with k.when(k.any(self.live[c] & cone.busy.value)):
                self.which[self.some.value] = c
                self.some.value = self.some.value + 1

    def _fill(self, equations: Equations) -> None:
        """Write the matrix from the present velocities."""
        k, cone, A, m = self.k, self.cone, self.matrix.matrix, self.cone.rows
        with k.loop(self.some.value) as a:
            c = self.which[a]
            rows, first = equations.rows(c), a * 3
            with k.loop(self.some.value) as b:
                other = self.which[b]
                live = self.live[other]
                for j in range(3):
                    answers = rows.answers(*(cone.w(c * 3 + i, other * 3 + j) for i in range(3)))
                    for i, entry in enumerate(answers):
                        A[(first + i) * m + b * 3 + j] = live.where(entry, 0.0)
            for (i, j), more in rows.own.items():
                at = (first + i) * m + first + j
                A[at] = A[at] + more


class NearestPoints:
    """The equations of cone_programs.py, with a part of the mean compliance on the diagonal of Newton's matrix."""

    def __init__(self, cone: LaneCone, u: Entries, lack: Entries, worst: Callable[[], Value], dtype: str) -> None:
        """Refer to the velocities, the residual impulses, and the largest residual [m/s]."""
        self.cone, self.u, self.lacks, self.worst, self.dtype = cone, u, lack, worst, dtype

    def live(self, c: Value) -> Value:
        """Return the lanes in which a contact is not open, or has an impulse."""
        cone, n = self.cone, c * 3
        pushes = cone.holds(c, cone.p[n] - cone.reach[c] * self.u[n] > 0.0)
        return pushes | any_of(abs(self.lacks[n + j]) > 0.0 for j in range(3))

    def lack(self, c: Value, j: int) -> Value:
        """Return the residual impulse of a row."""
        return self.lacks[c * 3 + j]

    def rows(self, c: Value) -> Rows:
        """Return the rows of a contact."""
        cone, u, n, s, t = self.cone, self.u, c * 3, c * 3 + 1, c * 3 + 2
        p, r, mu, play = cone.p, cone.reach[c], cone.mu[c], self._caution()
        push, x, y = p[n] - r * u[n], p[s] - r * u[s], p[t] - r * u[t]
        loaded = p[n] > 0.0 if cone.grip is None else (p[n] > 0.0) & (push > 0.0)
        disc = Disc(x, y, cone.gripped(c, mu * loaded.where(p[n], 0.0)))
        shut, zero, one = push > 0.0, cone.k.constant(0.0, Kind.LANE), play + 1.0
        holds, rn = cone.holds(c, shut), shut.where(r, zero)
        rt = rn if cone.grip is None else holds.where(r, zero)
        r11, r12, r22 = rt * disc.T11, rt * disc.T12, rt * disc.T22
        own = {
            (0, 0): shut.where(play, zero + 1.0),
            (1, 0): shut.where(-1.0 * mu * disc.e1, zero),
            (1, 1): holds.where(one - disc.T11, zero + 1.0),
            (1, 2): holds.where(-1.0 * disc.T12, zero),
            (2, 0): shut.where(-1.0 * mu * disc.e2, zero),
            (2, 1): holds.where(-1.0 * disc.T12, zero),
            (2, 2): holds.where(one - disc.T22, zero + 1.0),
        }
        return Rows(lambda wn, ws, wt: (rn * wn, r11 * ws + r12 * wt, r12 * ws + r22 * wt), own)

    def _caution(self) -> Value:
        """Return the part of the mean compliance that is added to the matrix, as in cone_programs.py."""
        part, least = self.worst() * CAUTION / (self.cone.size + LEAST), PLAY[self.dtype]
        return (part < least).where(least, (part < 1.0).where(part, 1.0))


class Disc:
    """The point (x, y) and that of a disc of some radius nearest to it, with its derivative.

    The nearest point is part (x, y). Its derivative is T = part (1 - e e^T) with respect to (x, y), and e with respect
    to the radius; e is zero inside.
    """

    def __init__(self, x: Value, y: Value, radius: Value) -> None:
        """Compute the derivatives."""
        size = (x * x + y * y).sqrt()
        slips = size > radius
        self.part = part = slips.where(radius / size, 1.0)
        self.e1, self.e2 = e1, e2 = slips.where(x / size, 0.0), slips.where(y / size, 0.0)
        self.T11, self.T12, self.T22 = part * (1.0 - e1 * e1), -1.0 * (part * e1 * e2), part * (1.0 - e2 * e2)


def any_of(masks) -> Value:
    """Return where one of some masks holds."""
    first, *rest = masks
    for x in rest:
        first = first | x
    return first
