"""Steps of Newton's method for cone problems of many contacts: equations of those that are not open.

A contact that is open in all lanes and has no impulse keeps it at zero: its equations are left out. In a lane where an
open contact stays among the equations because of other lanes, it has no part in the others, so that the numbers of a
lane do not depend on its neighbors.
"""

from __future__ import annotations

from ...compiler.lanes.builder import Builder
from ...compiler.lanes.expressions import Value
from ...compiler.lanes.form import Kind
from .cone_programs import CAUTION, LEAST, PLAY
from .cone_sweeps import Entries, LaneCone
from .lane_solves import LaneSolver


class LargeNewton:
    """The memory and the statements of a step for all contacts that are not open."""

    def __init__(self, k: Builder, cone: LaneCone, u: Entries, lack: Entries, dtype: str) -> None:
        """Declare the memory, for the velocities u and the residual impulses of the problem."""
        self.k, self.cone, self.u, self.lack, self.dtype = k, cone, u, lack, dtype
        self.matrix = LaneSolver(k, cone.rows)
        self.which, self.some = k.block("which", cone.count, Kind.COUNT), k.block("some", kind=Kind.COUNT)
        self.live, self.change = k.block("live", cone.count, Kind.MASK), k.block("change", cone.rows)

    def step(self, worst: Value) -> None:
        """Write the impulses after a step of the lanes that are not solved, with their largest residual [m/s]."""
        k, cone = self.k, self.cone
        self._find()
        self._fill(self._caution(worst))
        with k.loop(self.some.value) as a:
            c = self.which[a]
            for j in range(3):
                self.change[a * 3 + j] = self.lack[c * 3 + j]
        size = self.some.value * 3
        self.matrix.factor(size)
        self.matrix.solve(self.change, k.constant(0, Kind.COUNT), size)
        with k.loop(self.some.value) as a:
            c = self.which[a]
            for j in range(3):
                cone.take(c, j, cone.p[c * 3 + j] - self.change[a * 3 + j])

    def _find(self) -> None:
        """Write which contacts have a part in the equations."""
        k, cone = self.k, self.cone
        self.some.value = 0
        with k.loop(cone.count) as c:
            n, s, t = c * 3, c * 3 + 1, c * 3 + 2
            pushes = cone.p[n] - cone.reach[c] * self.u[n] > 0.0
            left = (abs(self.lack[n]) > 0.0) | (abs(self.lack[s]) > 0.0) | (abs(self.lack[t]) > 0.0)
            self.live[c] = pushes | left
            with k.when(k.any(self.live[c] & cone.busy.value)):
                self.which[self.some.value] = c
                self.some.value = self.some.value + 1

    def _fill(self, play: Value) -> None:
        """Write the matrix from the present velocities."""
        k, cone, A, m = self.k, self.cone, self.matrix.matrix, self.cone.rows
        with k.loop(self.some.value) as a:
            c = self.which[a]
            n, s, t = c * 3, c * 3 + 1, c * 3 + 2
            mu = cone.mu[c]
            push, (x, y), size, radius = self._probe(c, cone.reach[c], mu)
            shut, slips = push > 0.0, size > radius
            part = slips.where(radius / size, 1.0)
            e1, e2 = slips.where(x / size, 0.0), slips.where(y / size, 0.0)
            # the derivative of the nearest point: part (1 - e e^T) along the tangents, mu e along the normal
            T11, T12, T22 = part * (1.0 - e1 * e1), -1.0 * (part * e1 * e2), part * (1.0 - e2 * e2)
            zero = k.constant(0.0, Kind.LANE)
            rn = shut.where(cone.reach[c], zero)
            r11, r12, r22 = rn * T11, rn * T12, rn * T22
            first = a * 3
            with k.loop(self.some.value) as b:
                other = self.which[b]
                live = self.live[other]
                for j in range(3):
                    wn, ws, wt = (cone.w(i, other * 3 + j) for i in (n, s, t))
                    entries = (rn * wn, r11 * ws + r12 * wt, r12 * ws + r22 * wt)
                    for i, entry in enumerate(entries):
                        A[(first + i) * m + b * 3 + j] = live.where(entry, zero)
            one = play + 1.0
            own = {
                (0, 0): shut.where(play, zero + 1.0),
                (1, 0): shut.where(-1.0 * mu * e1, zero),
                (1, 1): shut.where(one - T11, zero + 1.0),
                (1, 2): shut.where(-1.0 * T12, zero),
                (2, 0): shut.where(-1.0 * mu * e2, zero),
                (2, 1): shut.where(-1.0 * T12, zero),
                (2, 2): shut.where(one - T22, zero + 1.0),
            }
            for (i, j), more in own.items():
                at = (first + i) * m + first + j
                A[at] = A[at] + more

    def _caution(self, worst: Value) -> Value:
        """Return the part of the mean compliance that is added to the matrix, as in cone_programs.py."""
        part, least = worst * CAUTION / (self.cone.size + LEAST), PLAY[self.dtype]
        return (part < least).where(least, (part < 1.0).where(part, 1.0))

    def _probe(self, c: Value, r: Value, mu: Value) -> tuple[Value, tuple[Value, Value], Value, Value]:
        """Return p_n - r u_n, p_t - r u_t, its length, and the radius of the disc."""
        p, u, n, s, t = self.cone.p, self.u, c * 3, c * 3 + 1, c * 3 + 2
        push = p[n] - r * u[n]
        x, y = p[s] - r * u[s], p[t] - r * u[t]
        positive = p[n] > 0.0
        return push, (x, y), (x * x + y * y).sqrt(), mu * positive.where(p[n], 0.0)
