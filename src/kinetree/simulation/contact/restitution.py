"""Restitution: the laws of Newton and Poisson on any scalars, and impacts in lanes whose laws allow no rebound.

The laws serve impacts in event-driven runs (transitions.py) and in time steps (rates.py, and below). Newton's
restitution is a velocity, Poisson's an impulse. With friction, both may require what no impulses give, and Newton's may
add energy.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import TYPE_CHECKING, Protocol

from ...algebra.scalars import is_number
from ...compiler.ir.program import Array
from ...compiler.lanes.expressions import Block, Builder, Value
from ...compiler.lanes.form import Kind
from .cone_programs import GRIP
from .cone_sweeps import Entries, LaneCone, starts_of

if TYPE_CHECKING:
    from ...algebra.scalars import Scalar
    from ...model.contacts import Contact


def leaving_velocity(e: Scalar, arrival: Scalar) -> Scalar:
    """Return the least normal velocity after an impact by Newton's law, from the velocity of arrival (below zero)."""
    return -(e * arrival)


def expansion_impulse(e: Scalar, compression: Scalar) -> Scalar:
    """Return the least normal impulse of the expansion by Poisson's law, from the impulse of the compression."""
    return e * compression


def expands(laws: Contact) -> bool:
    """Return whether a contact has restitution by Poisson's law."""
    return laws.law == "poisson" and not (is_number(laws.restitution) and laws.restitution == 0.0)


# --- Impacts in lanes whose laws allow no rebound: plastic where no impulses exist, and reduced where energy grows ---
#
# The lift of a contact is the velocity along its normal that is required of it above zero, by restitution or to open
# a gap. A body that is wedged has no impulses for it: friction keeps it from going back. Without lift there are always
# some, since a state at rest satisfies all laws. Newton's law with friction may also add energy. The lift is then
# multiplied by the largest factor with which it adds none, as `impact` of transitions.py does.

# --- Poisson's law of impact in lanes: a compression of all contacts, then an expansion with given normal impulses.
#
# All vectors are in the frames of the contacts at the middle of the step, normal first. v are the velocities before
# the
# step, b those after its forces without impulses, W the Delassus matrix, and u the least normal velocities of
# contact/rates.py. Without lift these are min(u, 0). Each phase is a cone problem of cone_programs.py, with friction
# of
# its own. The two phases are those of [PfeifferGlocker1996], and as problems of a time step those of
# [AnitescuPotra1997].
#
#     impulses of the arrival      a:  W a + v,         along normals at least min(u, 0)
#     compression                  c:  W c + b,         along normals at least min(u, 0)
#     expansion                    x:  W (c + x) + b,   along normals at least u, with x_n >= e a_n
#
# The impulses of the step are c + x. In the last problem, x_n = e a_n + p_n: p are impulses as usual, b is replaced by
# W (c + e a_n) + b, and the disc of friction has the radius mu p_n + mu e a_n, the last term being its `grip`.
#
# Differs from the papers: x_n is at least e times the impulses that stop the arrival, instead of those of
# compression,
# which contain the forces of the step. A ball on a surface then leaves with e |v|, as by Newton's law; otherwise each
# elastic bounce would add the velocity of gravity in a step. For short steps a and c are the same.
#
# With a = c and 0 <= e <= 1 the kinetic energy does not grow. Without friction, x has the least energy of all impulses
# with x_n >= e a_n. One of them is x = a, which gives the energy before the impact. With friction and equal e, it
# becomes smaller by (1 - e^2) a W a / 2 at least: see docs/theory/contact.md. With friction and unequal e it might
# grow: see restitution.py.

EXPANSION, STRIKES = "expansion", "strikes"
"""The names of the restitution by Poisson's law of each contact that touches in this step, zero for others, and of a
number that is 1 if there is such a contact and one of any law arrives. They are arrays of mechanisms with Poisson's
law only."""


class Expansion:
    """The memory and the statements of compressions, and of the expansion as a cone problem.

    `part` is the part of restitution that is applied. In lanes without an arrival, the problem is that of other steps.
    """

    def __init__(
        self,
        k: Builder,
        found: Block,
        arrays: Sequence[Array],
        cone: LaneCone,
        u: Entries,
        arrival: Entries,
        lift: Callable[[Value], Value],
    ) -> None:
        """Declare the memory; u are velocities of the solver, and the block `found` consists of arrays."""
        self.k, self.cone, self.u, self.arrival, self.lift, starts = k, cone, u, arrival, lift, starts_of(arrays)
        self.restitution, self.strikes = Entries(found, starts[EXPANSION]), Entries(found, starts[STRIKES])
        self.grip = Entries(found, starts[GRIP])
        n = 3 * cone.most_contacts
        self.free, self.base = k.block("free", n), k.block("base", n)
        self.first, self.floor, self.answer = k.block("first", n), k.block("floor", n // 3), k.block("answer", n)
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
        """Write the problem of the arrival, or of the compression; other lanes have no closed contact."""
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
            least = expands.where(expansion_impulse(self.restitution[c], cone.p[c * 3]), 0.0)
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
            self.answer[i] = 0.0
            with k.loop(cone.count) as c:
                self.answer[i] = self.answer[i] + cone.w(i, c * 3) * self.floor[c]
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


BOUND, BOUNCE, ARRIVAL = "bound", "bounce", "arrival"
"""The names of the least velocity of each contact along its normal, of that by restitution or zero, and of all
velocities before the step. The latter two are arrays of mechanisms with restitution only."""
LOST = 0.01
"""The residual of a problem without solution, relative to the largest lift. It is about as large as the lift; that of a
solution which is only not found to the last digits is far smaller."""
UNEXPANDED = 1e-7
"""The same for mechanisms with Poisson's law, relative to the velocity of an expansion. Friction takes most of it in a
body that is almost wedged: one of 100 random mechanisms was left with a residual of 0.003 of the velocities."""
ADDED = {"float64": 1e-9, "float32": 1e-4}
"""The energy that errors of the impulses may add, relative to their work without regard to signs."""
POLISHED = 2
"""The number of further steps of Newton's method after a reduction: a wedged body hardly moves, and the residual that
is accepted in any case may be large for its velocity."""
HALVINGS = {"float64": 30, "float32": 14}
"""The number of halvings of the interval of the factor."""


class Solves(Protocol):
    """The solution of cone problems in the lanes that are not solved."""

    cone: LaneCone
    u: Entries
    dtype: str

    @property
    def worst(self) -> Value:
        """The largest residual."""
        ...

    def evaluate(self) -> None:
        """Write the residuals, and which lanes are not solved."""
        ...

    def attempt(self) -> None:
        """Write all attempts to solve the lanes."""
        ...

    def converge(self) -> None:
        """Write steps of Newton's method until the lanes are solved."""
        ...

    def improve(self) -> None:
        """Write one step of Newton's method."""
        ...


class Reductions:
    """The memory and the statements that reduce lifts."""

    def __init__(self, k: Builder, found: Block, arrays: Sequence[Array], solver: Solves) -> None:
        """Declare the memory; the block `found` consists of arrays."""
        self.k, self.solver, self.cone, starts = k, solver, solver.cone, starts_of(arrays)
        self.bound = Entries(found, starts[BOUND])
        count = self.cone.most_contacts
        n = 3 * count
        self.most, self.kept, self.given = k.block("most"), k.block("kept", n), k.block("given", count)
        self.reduced = k.block("reduced", kind=Kind.MASK)
        self.bounces = BOUNCE in starts
        if self.bounces:
            self.bounce, self.arrival = Entries(found, starts[BOUNCE]), Entries(found, starts[ARRIVAL])
            self.gains, self.best = k.block("gains", kind=Kind.MASK), k.block("best", n)
            self.work = k.block("work", 3)
            self.low, self.high = k.block("low"), k.block("high")
        self.expansion: Expansion | None = None
        if EXPANSION in starts:
            self.expansion = Expansion(k, found, arrays, self.cone, solver.u, self.arrival, self._lift)

    def reduce(self) -> None:
        """Write the impulses of lanes whose lifts are reduced; other lanes do not change."""
        k, zero = self.k, self.k.constant(0.0, Kind.LANE)
        self.reduced.value = zero > 0.0
        with k.when(k.any(self.cone.busy.value)):
            self.reduced.value = self.cone.busy.value & self._lost()
        if self.bounces:
            self._largest(self._bounces)
            self.gains.value = (self.most.value > 0.0) & ~self.cone.busy.value
            with k.when(k.any(self.gains.value)):
                self.gains.value = self.gains.value & self._grows(zero + 1.0)
                self.reduced.value = self.reduced.value | self.gains.value
        with k.when(k.any(self.reduced.value)):
            self._reduce()

    def _lost(self) -> Value:
        """Return where the residual shows a problem without solution, and there is a lift."""
        part = LOST if self.expansion is None else UNEXPANDED
        self._largest(self._driven)
        return (self.most.value > 0.0) & (self.solver.worst * self.cone.size > self.most.value * part)

    def _lift(self, c: Value) -> Value:
        """Return the lift of a contact."""
        bound = self.bound[c]
        return (bound > 0.0).where(bound, 0.0)

    def _bounces(self, c: Value) -> Value:
        """Return a number above zero if a contact bounces."""
        return self.bounce[c] if self.expansion is None else self.bounce[c] + self.expansion.floor[c]

    def _driven(self, c: Value) -> Value:
        """Return the velocity with which a contact would leave alone, by its lift and by its expansion."""
        lift = self._lift(c)
        return lift if self.expansion is None else lift + self.expansion.floor[c] / self.cone.reach[c]

    def _largest(self, of: Callable[[Value], Value]) -> None:
        """Write the largest of the values of all contacts."""
        self.most.value = 0.0
        with self.k.loop(self.cone.count) as c:
            x = of(c)
            self.most.value = (self.most.value < x).where(x, self.most.value)

    def _grows(self, part: Value) -> Value:
        """Return where an impact with a part of its lift adds energy, by the work of impulses with mean velocities.

        Without impulses, velocities are those before the step, or those after the forces of the step have acted. Both
        differ by a step: energy grows where it does so for both. Velocities that open a gap are left out: they are no
        impact.
        """
        cone, k, work = self.cone, self.k, self.work
        for i in range(3):
            work[i] = 0.0
        with k.loop(cone.count) as c:
            n, s, t = c * 3, c * 3 + 1, c * 3 + 2
            lift, more = self._lift(c), self.expansion
            if more is None:
                free, given = cone.b[n] + self.bound[c] - lift * (1.0 - part), cone.b
            else:
                free, given = more.free[n] + self.bound[c], more.free
            after = self.bound[c] - lift + self.bounce[c] * part
            after = after if more is None else after + self.solver.u[n]
            rows = ((n, c, free, after), (s, None, given[s], self.solver.u[s]), (t, None, given[t], self.solver.u[t]))
            for i, normal, v, u in rows:
                p = cone.p[i] if more is None else more.impulse(i, normal, part)
                work[0] = work[0] + p * (self.arrival[i] + u)
                work[1] = work[1] + p * (v + u)
                work[2] = work[2] + abs(p) * (abs(v) + abs(u))
        added = work[2] * ADDED[self.solver.dtype]
        return (work[0] > added) & (work[1] > added)

    def _reduce(self) -> None:
        """Write plastic impacts, then the largest factors of those that add energy."""
        k, cone, solver, reduced = self.k, self.cone, self.solver, self.reduced
        zero = k.constant(0.0, Kind.LANE)
        with k.loop(cone.rows) as i:
            self.kept[i] = cone.p[i]
            cone.p[i] = reduced.value.where(0.0, cone.p[i])
        with k.loop(cone.count) as c:
            self.given[c] = cone.b[c * 3]
        self._require(zero)
        solver.evaluate()
        solver.attempt()
        reduced.value = reduced.value & ~cone.busy.value
        if self.bounces:
            self._search()
        with k.loop(cone.rows) as i:
            cone.p[i] = reduced.value.where(cone.p[i], self.kept[i])
        self._require(self.low.value if self.bounces else zero)
        solver.evaluate()
        with k.loop(POLISHED):
            self._polish()

    def _polish(self) -> None:
        """Write a step of Newton's method in the lanes that are reduced, where it makes the residual smaller."""
        k, cone, solver = self.k, self.cone, self.solver
        with k.loop(cone.rows) as i:
            self.kept[i] = cone.p[i]
        before = solver.worst
        cone.busy.value = self.reduced.value
        solver.improve()
        solver.evaluate()
        self.reduced.value = self.reduced.value & (solver.worst < before)
        with k.loop(cone.rows) as i:
            cone.p[i] = self.reduced.value.where(cone.p[i], self.kept[i])
        solver.evaluate()

    def _require(self, part: Value) -> None:
        """Write the velocities of the lanes with a part of their lift."""
        cone = self.cone
        if self.expansion is not None:
            self.expansion.require(self.reduced.value.where(part, 1.0))
            return
        with self.k.loop(cone.count) as c:
            less = self.given[c] + self._lift(c) * (1.0 - part)
            cone.b[c * 3] = self.reduced.value.where(less, self.given[c])

    def _search(self) -> None:
        """Write the largest factors without growth of energy, and their impulses."""
        k, cone, solver = self.k, self.cone, self.solver
        self.gains.value = self.gains.value & self.reduced.value
        self.low.value, self.high.value = 0.0, self.gains.value.where(k.constant(1.0, Kind.LANE), 0.0)
        with k.loop(cone.rows) as i:
            self.best[i] = cone.p[i]
        with k.when(k.any(self.gains.value)), k.loop(HALVINGS[solver.dtype]):
            middle = (self.low.value + self.high.value) * 0.5
            self._require(middle)
            solver.evaluate()
            solver.converge()
            good = ~cone.busy.value & ~self._grows(middle)
            self.low.value = good.where(middle, self.low.value)
            self.high.value = good.where(self.high.value, middle)
            with k.loop(cone.rows) as i:
                self.best[i] = good.where(cone.p[i], self.best[i])
        with k.loop(cone.rows) as i:
            cone.p[i] = self.best[i]
