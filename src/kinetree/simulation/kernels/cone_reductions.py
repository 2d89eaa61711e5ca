"""Impacts in lanes whose laws allow no rebound: plastic where no impulses exist, and reduced where energy grows.

The lift of a contact is the velocity along its normal that is required of it above zero, by restitution or to open a
gap. A body that is wedged has no impulses for it: friction keeps it from going back. Without lift there are always
some, since a state at rest satisfies all laws. Newton's law with friction may also add energy. The lift is then
multiplied by the largest factor with which it adds none, as in ../contact/impacts.py.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Protocol

from ...compiler.ir.program import Array
from ...compiler.lanes.builder import Builder
from ...compiler.lanes.expressions import Block, Value
from ...compiler.lanes.form import Kind
from .cone_expansion import EXPANSION, Expansion
from .cone_sweeps import Entries, LaneCone, starts_of

BOUND, BOUNCE, ARRIVAL = "bound", "bounce", "arrival"
"""The names of the least velocity of each contact along its normal, of that by restitution or zero, and of all
velocities before the step. The latter two are arrays of mechanisms with restitution only."""
LOST = 0.01
"""The residual of a problem without solution, in parts of the largest lift. It is about as large as the lift; that of a
solution which is only not found to the last digits is far smaller."""
UNEXPANDED = 1e-7
"""The same for mechanisms with Poisson's law, in parts of the velocity of an expansion. Friction takes most of it in a
body that is almost wedged: one of 100 random mechanisms was left with a residual of 0.003 of the velocities."""
ADDED = {"float64": 1e-9, "float32": 1e-4}
"""The energy that errors of the impulses may add, in parts of their work without regard to signs."""
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
        """The largest residual [m/s]."""
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
        n, count = self.cone.rows, self.cone.count
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
        """Write the impulses of lanes whose lifts are reduced; those of other lanes do not change."""
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
        """Return where the residual is that of a problem without solution, and there is a lift."""
        part = LOST if self.expansion is None else UNEXPANDED
        self._largest(self._driven)
        return (self.most.value > 0.0) & (self.solver.worst > self.most.value * part)

    def _lift(self, c: Value) -> Value:
        """Return the lift of a contact."""
        bound = self.bound[c]
        return (bound > 0.0).where(bound, 0.0)

    def _bounces(self, c: Value) -> Value:
        """Return a number above zero if a contact bounces."""
        return self.bounce[c] if self.expansion is None else self.bounce[c] + self.expansion.floor[c]

    def _driven(self, c: Value) -> Value:
        """Return the velocity with which a contact would leave alone: its lift, and that of its expansion."""
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
