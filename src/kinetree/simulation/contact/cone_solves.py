"""Contact impulses of lanes: Signorini's conditions and Coulomb's exact cone, for every lane separately.

Each contact is open (p = 0, u_n >= 0), sticks (u = 0, p in the cone) or slips (u_n = 0, p on the cone, opposite to
u_t). Newton's method on the equations of cone_programs.py solves all contacts at once, from the impulses of the last
step: first as if no contact slipped, with a symmetric matrix, then in general. Where it does not converge, sweeps over
the contacts, each solved exactly with the impulses of the others, find which contacts are open and which slip, and
Newton's method starts again from there. Proximal steps solve what is left: see cone_proximal.py. Where no impulses
exist, the impact is plastic: see restitution.py.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence

from ...compiler.ir.program import Array
from ...compiler.lanes.expressions import Block, Builder, Value
from ...compiler.lanes.form import Kind
from .cone_newton import LargeNewton, NearestPoints, Proximal, Sticking
from .cone_programs import contact_residual_program, newton_program, residual_program, sticking_program
from .cone_sweeps import Entries, LaneCone, Sweeps, sum_of
from .restitution import Reductions

STICKING = 12
"""The most steps of Newton's method without slip; one is usual, and each closed or opened contact takes another. PLAY
that is as large as the smallest eigenvalue of W takes all."""
NEWTON = 40
"""The most steps of Newton's method in an attempt: one to three where contacts slip, some fifteen where redundant
contacts do."""
PROXIMAL = 300
"""The most proximal steps: some thirty solve most of the problems that Newton's method does not, and 150 all known."""
SWEEPS = (10, 200)
"""The most sweeps after each attempt of Newton's method: those of the first find which contacts are open or slip."""
ACCEPTED = {"float64": 1e-11, "float32": 1e-5}
"""The residual at which impulses are accepted."""


class ConeSolver:
    """The memory and the statements that solve for the impulses of all contacts."""

    def __init__(
        self, k: Builder, found: Block, arrays: Sequence[Array], dtype: str, used: Block | None = None
    ) -> None:
        """Declare the memory for a problem in the block `found`, which consists of arrays.

        Among them are the inputs of cone_programs.py and the `size` of the velocities. With `used`, only so many
        contacts are present, and all statements are loops over them. Otherwise the code has no loops.
        """
        self.cone = cone = LaneCone(k, found, arrays, dtype, used)
        self.k, self.found, self.dtype, self.sweeps = k, found, dtype, Sweeps(cone)
        self.p, self.busy, self.straight = cone.p, cone.busy, used is None
        n = 3 * cone.most_contacts
        self.felt = k.block("felt", 2 + 2 * n)
        self.u = Entries(self.felt, 2)
        self.stuck = k.block("stuck", kind=Kind.MASK)
        self.left = k.block("left", kind=Kind.COUNT)
        grips = cone.grip is not None
        if self.straight:
            count = cone.most_contacts
            programs = [residual_program(count, dtype, grips=grips), sticking_program(count, dtype, grips=grips)]
            programs.append(newton_program(count, dtype, grips=grips))
            k.programs |= {x.name: x.with_inputs(arrays, {}) for x in programs}
            self.tried = k.block("tried", n + 1)
        else:
            felt = contact_residual_program(dtype, grips=grips)
            k.programs[felt.name] = felt
            self.point = k.block("point", sum(a.size for a in felt.inputs))
            self.lacking, self.loads = k.block("lacking", 5), k.block("loads")
        self.before, self.large = k.block("before", n), LargeNewton(k, cone)
        self.sticking = Sticking(cone, self.u, dtype)
        self.nearest = NearestPoints(cone, self.u, Entries(self.felt, 2 + n), lambda: self.worst, dtype)
        self.proximal = Proximal(k, cone, self.u, self.large, dtype)
        self.reductions = Reductions(k, found, arrays, self)

    @property
    def normal(self) -> Value:
        """The largest residual along the normals."""
        return self.felt[0]

    @property
    def tangent(self) -> Value:
        """The largest residual along the tangents."""
        return self.felt[1]

    @property
    def worst(self) -> Value:
        """The largest residual."""
        return (self.normal > self.tangent).where(self.normal, self.tangent)

    @property
    def size(self) -> Value:
        """The velocity [m/s] with which residuals are compared."""
        return self.cone.size

    def solve(self, pressed: Value) -> None:
        """Write the impulses of the lanes of a mask, from the present ones: those of the step before.

        The impulses of other lanes are zero.
        """
        k = self.k
        with k.loop(self.cone.rows) as i:
            self.p[i] = pressed.where(self.p[i], 0.0)
        expansion = self.reductions.expansion
        if expansion is not None:
            expansion.compress(pressed, self.reductions.bound, self._find, Entries(self.felt, 0))
        self._find(pressed)
        self.reductions.reduce()
        if expansion is not None:
            expansion.end()

    def _find(self, pressed: Value) -> None:
        """Write the impulses of the lanes of a mask for the laws as they are, from the present ones."""
        self.stuck.value, self.left.value = pressed, STICKING
        with self.k.loop(self.cone.rows) as i:
            self.before[i] = self.p[i]
        if self.straight:
            self._stick()
        else:
            self._stick_each()
        with self.k.when(self.k.any(self.busy.value)):
            self._slide()

    def residuals(self) -> list[Value]:
        """Return the largest residuals of a step along normals and tangents, compressions included."""
        found, expansion = [self.normal, self.tangent], self.reductions.expansion
        if expansion is None:
            return found
        return [(x > expansion.lacked[i]).where(x, expansion.lacked[i]) for i, x in enumerate(found)]

    def _stick(self) -> None:
        """Write steps of Newton's method in the lanes in which no contact slips."""
        k, n = self.k, self.cone.rows
        with k.repeat() as turn:
            k.call("sticking", self.found, self.tried)
            stuck = self.stuck.value & (self.tried[n] < 0.5)
            with k.loop(n) as i:
                self.p[i] = stuck.where(self.tried[i], self.p[i])
            self.evaluate()
            self.stuck.value, self.left.value = stuck & self.busy.value, self.left.value - 1
            turn.again = k.any(self.stuck.value) & (self.left.value > 0)

    def _stick_each(self) -> None:
        """Write the same with loops over the contacts."""
        k, cone = self.k, self.cone
        self.evaluate()
        self.stuck.value = self.stuck.value & self.busy.value
        with k.whilst(lambda: k.any(self.stuck.value) & (self.left.value > 0)):
            with k.loop(cone.count) as c:
                self.stuck.value = self.stuck.value & ~self.sticking.slips(c)
            self.busy.value = self.stuck.value
            with k.when(k.any(self.stuck.value)):
                self.large.step(self.sticking, self.sticking.added)
            self.evaluate()
            self.stuck.value, self.left.value = self.stuck.value & self.busy.value, self.left.value - 1

    def _slide(self) -> None:
        """Write attempts from the impulses of the step before."""
        k = self.k
        # from there, Newton's method in general converges more often than from contacts that stick
        with k.loop(self.cone.rows) as i:
            self.p[i] = self.busy.value.where(self.before[i], self.p[i])
        if not self.straight:
            self.evaluate()
        self.attempt()

    def attempt(self) -> None:
        """Write attempts of Newton's method and of sweeps, in the lanes that are not solved."""
        k = self.k
        self.sweeps.start()
        with k.loop(len(SWEEPS)) as attempt:
            self.proximal.unload()
            self.converge()
            with k.when((attempt > 0) & k.any(self.busy.value)):
                self._approach()
            self._until_solved(k.whole(k.choose(attempt, SWEEPS)), self.sweeps.sweep)

    def converge(self) -> None:
        """Write steps of Newton's method in the lanes that are not solved."""
        self._until_solved(self.k.constant(NEWTON, Kind.COUNT), self.improve)

    def _approach(self) -> None:
        """Write proximal steps from the result of sweeps; the lanes that they do not solve are left as they are."""
        self.proximal.start()
        self.evaluate()
        self._until_solved(self.k.constant(PROXIMAL, Kind.COUNT), lambda: self.proximal.step(self.evaluate))
        self.proximal.end()
        self.evaluate()

    def _until_solved(self, most: Value, better: Callable[[], None]) -> None:
        """Write improvements in the lanes that are not solved, as long as there are any and at most so many."""
        k = self.k
        self.left.value = most

        def unsolved() -> Value:
            return k.any(self.busy.value) & (self.left.value > 0)

        with k.whilst(unsolved):
            better()
            self.evaluate()
            self.left.value = self.left.value - 1

    def evaluate(self) -> None:
        """Write all velocities, what is left of the equations, and which lanes are not solved."""
        if self.straight:
            self.k.call("residual", self.found, self.felt)
        else:
            self._evaluate_each()
        accepted = ACCEPTED[self.dtype]
        self.busy.value = (self.normal > accepted) | (self.tangent > accepted)

    def _evaluate_each(self) -> None:
        """Write the velocities and what is left of the equations, contact by contact."""
        k, cone, felt = self.k, self.cone, self.felt
        lack = 2 + 3 * cone.most_contacts
        self.loads.value, felt[0], felt[1] = 0.0, 0.0, 0.0
        with k.loop(cone.count) as c:
            p = [cone.p[c * 3 + j] for j in range(3)]
            load = sum_of(x * x for x in p).sqrt() / cone.reach[c]
            self.loads.value = larger(load, self.loads.value)
            for j in range(3):
                self.u[c * 3 + j] = cone.velocity(c * 3 + j)
        with k.loop(cone.count) as c:
            given = [x[c * 3 + j] for x in (cone.p, self.u) for j in range(3)]
            given += [cone.mu[c], cone.reach[c], cone.size, self.loads.value]
            for i, x in enumerate([*given, *([] if cone.grip is None else [cone.grip[c]])]):
                self.point[i] = x
            k.call("contact_residual", self.point, self.lacking)
            for j in range(3):
                felt[c * 3 + (lack + j)] = self.lacking[j]
            for j in range(2):
                felt[j] = larger(self.lacking[3 + j], felt[j])

    def improve(self) -> None:
        """Write a step of Newton's method in the lanes that are not solved."""
        k = self.k
        if self.straight:
            k.call("newton", self.found, self.tried)
            with k.loop(self.cone.count) as c:
                for j in range(3):
                    self.cone.take(c, j, self.tried[c * 3 + j])
        else:
            self.large.step(self.nearest)


def larger(x: Value, before: Value) -> Value:
    """Return the larger of two numbers of lanes; the first one if it is not a number."""
    return (~(x <= before)).where(x, before)
