"""Poisson's law of impact in lanes: a compression of all contacts, then an expansion with given normal impulses.

All vectors are in the frames of the contacts at the middle of the step, normal first. v are the velocities before the
step, b those after its forces without impulses, W the Delassus matrix, and u the least normal velocities of
contact_rates.py. Without lift these are min(u, 0). Each phase is a cone problem of cone_programs.py, with friction of
its own. The two phases are those of [PfeifferGlocker1996], and as problems of a time step those of [AnitescuPotra1997].

    impulses of the arrival      a:  W a + v,         along normals at least min(u, 0)
    compression                  c:  W c + b,         along normals at least min(u, 0)
    expansion                    x:  W (c + x) + b,   along normals at least u, with x_n >= e a_n

The impulses of the step are c + x. In the last problem, x_n = e a_n + p_n: p are impulses as usual, b is replaced by
W (c + e a_n) + b, and the disc of friction has the radius mu p_n + mu e a_n, the last term being its `grip`.

Differs from the papers: x_n is at least e times the impulses that stop the arrival, instead of those of compression,
which contain the forces of the step. A ball on a surface then leaves with e |v|, as by Newton's law; otherwise each
elastic bounce would add the velocity of gravity in a step. For short steps a and c are the same.

With a = c and 0 <= e <= 1 the kinetic energy does not grow. Without friction, x has the least energy of all impulses
with x_n >= e a_n. One of them is x = a, which gives the energy before the impact. With friction and equal e, it becomes
smaller by (1 - e^2) a W a / 2 at least: see docs/theory/contact.md. With friction and unequal e it might grow: see
cone_reductions.py.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence

from ...compiler.ir.program import Array
from ...compiler.lanes.builder import Builder
from ...compiler.lanes.expressions import Block, Value
from ...compiler.lanes.form import Kind
from .cone_programs import GRIP
from .cone_sweeps import Entries, LaneCone, starts_of, sum_of

EXPANSION, STRIKES = "expansion", "strikes"
"""The names of the restitution by Poisson's law of each contact that touches in this step, zero for others, and of a
number that is 1 if there is such a contact and one of any law arrives. They are arrays of mechanisms with Poisson's
law only."""


class Expansion:
    """The memory and the statements of compressions, and of the expansion as a cone problem.

    `part` is the part of restitution that is applied. In lanes without an arrival, the problem is that of other steps.
    """

    def __init__(
        self, k: Builder, found: Block, arrays: Sequence[Array], cone: LaneCone, u: Entries, arrival: Entries,
        lift: Callable[[Value], Value],
    ) -> None:  # fmt: skip
        """Declare the memory; u are velocities of the solver, and the block `found` consists of arrays."""
        self.k, self.cone, self.u, self.arrival, self.lift, starts = k, cone, u, arrival, lift, starts_of(arrays)
        self.restitution, self.strikes = Entries(found, starts[EXPANSION]), Entries(found, starts[STRIKES])
        self.grip = Entries(found, starts[GRIP])
        n = cone.rows
        self.free, self.base = k.block("free", n), k.block("base", n)
        self.first, self.floor, self.answer = k.block("first", n), k.block("floor", cone.count), k.block("answer", n)
        self.part, self.lacked = k.block("part"), k.block("lacked", 2)
        self.expands = k.block("expands", kind=Kind.MASK)

    def compress(self, pressed: Value, bounds: Entries, find: Callable[[Value], None], residuals: Entries) -> None:
        """Write compressions in the lanes of a mask with an arrival, then the problem of the expansion.

        `find` writes the solution in the lanes of a mask, and `residuals` has the two of the last one.
        """
        k, cone, n = self.k, self.cone, self.cone.rows
        self.part.value, self.expands.value = 1.0, pressed & (self.strikes[0] > 0.5)
        with k.loop(n) as i:
            self.free[i], self.base[i], self.first[i], self.answer[i] = cone.b[i], cone.b[i], cone.p[i], 0.0
        with k.loop(cone.count) as c:
            self.floor[c] = 0.0
        for i in range(2):
            self.lacked[i] = 0.0
        with k.when(k.any(self.expands.value)):
            with k.loop(n) as i:
                cone.p[i] = self.expands.value.where(cone.p[i], 0.0)
            with k.loop(2) as phase:
                self._compression(phase.equals(0), bounds)
                find(self.expands.value)
                self._note(phase.equals(0), residuals)
            self._expansion()

    def _compression(self, arrives: Value, bounds: Entries) -> None:
        """Write the problem of the arrival, or that of the compression; other lanes have no closed contact."""
        cone, expands = self.cone, self.expands.value
        with self.k.loop(cone.count) as c:
            n = c * 3
            stopped = arrives.where(self.arrival[n] - bounds[c], self.free[n])
            cone.b[n] = expands.where(stopped + self.lift(c), 1.0)
            for i in (n + 1, n + 2):
                cone.b[i] = expands.where(arrives.where(self.arrival[i], self.free[i]), 0.0)

    def _note(self, arrives: Value, residuals: Entries) -> None:
        """Write the least impulses of the expansion after the arrival, and the larger residuals."""
        cone, expands = self.cone, self.expands.value
        with self.k.loop(cone.count) as c:
            least = expands.where(self.restitution[c] * cone.p[c * 3], 0.0)
            self.floor[c] = arrives.where(least, self.floor[c])
        for i in range(2):
            now, before = residuals[i], self.lacked[i]
            self.lacked[i] = (~(now <= before)).where(now, before)

    def _expansion(self) -> None:
        """Write the problem of the expansion, from the compression, with impulses as a guess of its solution."""
        k, cone, expands = self.k, self.cone, self.expands.value
        with k.loop(cone.rows) as i:
            self.base[i] = expands.where(self.u[i], self.base[i])
            self.first[i] = expands.where(cone.p[i], self.first[i])
            self.answer[i] = sum_of(cone.w(i, 3 * c) * self.floor[c] for c in range(cone.count))
        with k.loop(cone.count) as c:
            n, e = c * 3, self.restitution[c]
            self.base[n] = expands.where(self.base[n] - self.lift(c), self.base[n])
            cone.p[n] = expands.where(0.0, self.first[n])
            for i in (n + 1, n + 2):
                cone.p[i] = expands.where(e * self.first[i], self.first[i])
        self.require(k.constant(1.0, Kind.LANE))

    def require(self, part: Value) -> None:
        """Write the problem with a part of the restitution and of the lift of each lane."""
        cone = self.cone
        self.part.value = part
        with self.k.loop(cone.rows) as i:
            cone.b[i] = self.base[i] + part * self.answer[i]
        with self.k.loop(cone.count) as c:
            cone.b[c * 3] = cone.b[c * 3] + self.lift(c) * (1.0 - part)
            self.grip[c] = part * cone.mu[c] * self.floor[c]

    def impulse(self, i: Value, normal: Value | None, part: Value) -> Value:
        """Return a whole impulse of the step, with the contact whose normal its row is."""
        p, first = self.cone.p[i], self.first[i]
        more = first if normal is None else first + part * self.floor[normal]
        return self.expands.value.where(p + more, p)

    def end(self) -> None:
        """Write the whole impulses of the step."""
        with self.k.loop(self.cone.count) as c:
            n = c * 3
            for i, normal in ((n, c), (n + 1, None), (n + 2, None)):
                self.cone.p[i] = self.impulse(i, normal, self.part.value)
