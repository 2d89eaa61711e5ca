"""Contact impulses of lanes: Signorini's conditions and Coulomb's exact cone, for every lane separately.

Each contact is open (p = 0, u_n >= 0), sticks (u = 0, p in the cone) or slips (u_n = 0, p on the cone, opposite to
u_t). Newton's method on the equations of cone_programs.py solves all contacts at once, from the impulses of the last
step: first as if no contact slipped, with a symmetric matrix, then in general. Where it does not converge, sweeps over
the contacts, each solved exactly with the impulses of the others, find which contacts are open and which slip, and
Newton's method starts again from there. Proximal steps solve what is left: see cone_proximal.py. Where no impulses
exist, the impact is plastic: see cone_reductions.py.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence

from ...compiler.ir.program import Array
from ...compiler.lanes.builder import Builder
from ...compiler.lanes.expressions import Block, Value
from ...compiler.lanes.form import Kind
from .cone_newton import LargeNewton, NearestPoints
from .cone_programs import newton_program, residual_program, sticking_program
from .cone_proximal import Proximal
from .cone_reductions import Reductions
from .cone_sweeps import Entries, LaneCone, Sweeps

STICKING = 4
"""The most steps of Newton's method without slip; one is usual, and each closed or opened contact takes another."""
NEWTON = 40
"""The most steps of Newton's method in an attempt: one to three where contacts slip, some fifteen where redundant
contacts do."""
PROXIMAL = 300
"""The most proximal steps: some thirty solve most of the problems that Newton's method does not, and 150 all known."""
SWEEPS = (10, 200)
"""The most sweeps after each attempt of Newton's method: those of the first find which contacts are open or slip."""
TOLERANCE = {"float64": 1e-11, "float32": 1e-5}
"""The residual at which impulses are accepted, relative to the velocities of the contacts."""
TINY = {"float64": 1e-13, "float32": 1e-6}
"""The residual [m/s] that is accepted in any case."""
STRAIGHT = 15
"""The most rows of a matrix that is solved by straight-line code, of some thousand operations."""


class ConeSolver:
    """The memory and the statements that solve for the impulses of all contacts."""

    def __init__(self, k: Builder, found: Block, arrays: Sequence[Array], dtype: str) -> None:
        """Declare the memory for a problem in the block `found`, which consists of arrays.

        Among them are the inputs of cone_programs.py and the `size` of the velocities.
        """
        self.cone = cone = LaneCone(k, found, arrays)
        self.k, self.found, self.dtype, self.sweeps = k, found, dtype, Sweeps(cone)
        self.count, self.rows, self.p, self.busy = cone.count, cone.rows, cone.p, cone.busy
        n = self.rows
        self.felt = k.block("felt", 2 + 2 * n)
        self.u = Entries(self.felt, 2)
        self.stuck = k.block("stuck", kind=Kind.MASK)
        self.left = k.block("left", kind=Kind.COUNT)
        self.straight = n <= STRAIGHT
        grips = cone.grip is not None
        programs = [residual_program(cone.count, grips=grips)]
        if self.straight:
            programs.append(sticking_program(cone.count, dtype, grips=grips))
            programs.append(newton_program(cone.count, dtype, grips=grips))
            self.tried, self.before = k.block("tried", n + 1), k.block("before", n)
        k.programs |= {x.name: x.with_inputs(arrays, {}) for x in programs}
        self.large = LargeNewton(k, cone)
        self.nearest = NearestPoints(cone, self.u, Entries(self.felt, 2 + n), lambda: self.worst, dtype)
        self.proximal = Proximal(k, cone, self.u, self.large, dtype)
        self.reductions = Reductions(k, found, arrays, self)

    @property
    def normal(self) -> Value:
        """The largest residual along the normals [m/s]."""
        return self.felt[0]

    @property
    def tangent(self) -> Value:
        """The largest residual along the tangents [m/s]."""
        return self.felt[1]

    @property
    def worst(self) -> Value:
        """The largest residual [m/s]."""
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
        with k.loop(self.rows) as i:
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
        if self.straight:
            self._stick(pressed)
        else:
            self.evaluate()
        with self.k.when(self.k.any(self.busy.value)):
            self._slide()

    def residuals(self) -> list[Value]:
        """Return the largest residuals of a step along normals and tangents [m/s], also those of a compression."""
        found, expansion = [self.normal, self.tangent], self.reductions.expansion
        if expansion is None:
            return found
        return [(x > expansion.lacked[i]).where(x, expansion.lacked[i]) for i, x in enumerate(found)]

    def _stick(self, pressed: Value) -> None:
        """Write steps of Newton's method in the lanes in which no contact slips."""
        k, n = self.k, self.rows
        self.stuck.value, self.left.value = pressed, STICKING
        with k.loop(n) as i:
            self.before[i] = self.p[i]
        with k.repeat() as turn:
            k.call("sticking", self.found, self.tried)
            stuck = self.stuck.value & (self.tried[n] < 0.5)
            with k.loop(n) as i:
                self.p[i] = stuck.where(self.tried[i], self.p[i])
            self.evaluate()
            self.stuck.value, self.left.value = stuck & self.busy.value, self.left.value - 1
            turn.again = k.any(self.stuck.value) & (self.left.value > 0)

    def _slide(self) -> None:
        """Write attempts from the impulses of the step before."""
        k = self.k
        if self.straight:  # from there, Newton's method in general converges more often than from contacts that stick
            with k.loop(self.rows) as i:
                self.p[i] = self.busy.value.where(self.before[i], self.p[i])
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
        self.k.call("residual", self.found, self.felt)
        accepted = self.size * TOLERANCE[self.dtype] + TINY[self.dtype]
        self.busy.value = (self.normal > accepted) | (self.tangent > accepted)

    def improve(self) -> None:
        """Write a step of Newton's method in the lanes that are not solved."""
        k = self.k
        if self.straight:
            k.call("newton", self.found, self.tried)
            with k.loop(self.count) as c:
                for j in range(3):
                    self.cone.take(c, j, self.tried[c * 3 + j])
        else:
            self.large.step(self.nearest)
