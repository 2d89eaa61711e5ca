"""Proximal steps for cone problems in lanes whose contacts are redundant and almost contradict each other.

Four corners of a box that rocks by a hair cannot all stick: their velocities contradict each other in the eighth digit.
One of them slips, and the impulses that have no effect on the motion decide which one: they grow until its friction is
used up. A proximal step adds a compliance to each contact, which is that of a spring unloaded at impulses z:

    p = the point of the cone of y nearest to y = z - (r / s) u,    u = W p + b

with s the `softness`, in parts of the mean compliance 1 / r. Newton's method solves it where s is not too small. Its
solution is the next z, and s becomes smaller with each one. A fixed point, p = z, solves the problem without springs.
Where Newton's method fails, z remains and s grows.
"""

from __future__ import annotations

from collections.abc import Callable

from ...compiler.lanes.builder import Builder
from ...compiler.lanes.expressions import Value
from ...compiler.lanes.form import Kind
from .cone_newton import Disc, LargeNewton, Rows
from .cone_programs import LEAST
from .cone_sweeps import Entries, LaneCone

FIRST, SOFTEST = 1e-3, 1.0
"""The first softness, and the largest."""
STIFFEST = {"float64": 1e-10, "float32": 1e-4}
"""The least softness. Rounding of velocities, divided by it, are errors of the impulses."""
AGAIN = {"float64": 1e-6, "float32": 1e-2}
"""The softness after the least one. A few problems approach their solution slowly with the least one alone."""
SOFTER, STIFFER = 4.0, 0.3
"""The factors of the softness after a failure and after a success. Of 475 problems of boxes that other methods left
with a residual above 1e-10, these solve all in the mean with 32 steps of Newton's method."""
STEPS = 5
"""The most steps of Newton's method with the same softness; one or two are usual."""
ENDED = 1e-5
"""The residual at which a proximal step ends, in parts of the velocities, for a softness of one."""
NOISE = {"float64": 1e-14, "float32": 1e-6}
"""The residual of rounding, in parts of the velocities."""


class Proximal:
    """The memory and the statements of proximal steps; `z` has the impulses at which springs are unloaded."""

    def __init__(self, k: Builder, cone: LaneCone, u: Entries, newton: LargeNewton, dtype: str) -> None:
        """Declare the memory, for the velocities u of the problem."""
        self.k, self.cone, self.u, self.newton, self.dtype = k, cone, u, newton, dtype
        self.z, self.kept = k.block("z", cone.rows), k.block("kept_p", cone.rows)
        self.softness, self.tries, self.lacks = k.block("softness"), k.block("tries"), k.block("lacks")

    def unload(self) -> None:
        """Write the present impulses as those at which springs are unloaded."""
        with self.k.loop(self.cone.rows) as i:
            self.z[i] = self.cone.p[i]

    def start(self) -> None:
        """Write the begin of proximal steps at z, in the lanes that are not solved."""
        self.softness.value, self.tries.value = FIRST, 0.0
        with self.k.loop(self.cone.rows) as i:
            self.kept[i] = self.cone.p[i]
            self.cone.p[i] = self.cone.busy.value.where(self.z[i], self.cone.p[i])

    def end(self) -> None:
        """Write the impulses before proximal steps in the lanes that are still not solved."""
        with self.k.loop(self.cone.rows) as i:
            self.cone.p[i] = self.cone.busy.value.where(self.kept[i], self.cone.p[i])

    def step(self, evaluate: Callable[[], None]) -> None:
        """Write a step of Newton's method, and the next softness; `evaluate` writes velocities and unsolved lanes."""
        k, cone, soft = self.k, self.cone, self.softness
        self.newton.step(self)
        evaluate()
        self.lacks.value = 0.0
        with k.loop(cone.count) as c:
            for j in range(3):
                lack = abs(self.lack(c, j)) / cone.reach[c]
                self.lacks.value = (lack <= self.lacks.value).where(self.lacks.value, lack)
        small = (cone.size + LEAST) * (soft.value * ENDED + NOISE[self.dtype])
        done = self.lacks.value < small
        self.tries.value = self.tries.value + 1.0
        failed = ~done & (self.tries.value > STEPS - 0.5)
        with k.loop(cone.rows) as i:
            self.z[i] = done.where(cone.p[i], self.z[i])
            cone.p[i] = (failed & cone.busy.value).where(self.z[i], cone.p[i])
        self.tries.value = (done | failed).where(0.0, self.tries.value)
        stiffer, softer = soft.value * STIFFER, soft.value * SOFTER
        stiffer = (stiffer > STIFFEST[self.dtype]).where(stiffer, AGAIN[self.dtype])
        soft.value = failed.where((softer < SOFTEST).where(softer, SOFTEST), soft.value)
        soft.value = done.where(stiffer, soft.value)

    def live(self, c: Value) -> Value:
        """Return the lanes in which a contact is not open, or has an impulse."""
        p, n = self.cone.p, c * 3
        moves = (abs(p[n]) > 0.0) | (abs(p[n + 1]) > 0.0) | (abs(p[n + 2]) > 0.0)
        return self.cone.holds(c, self._aim(c, 0) > 0.0) | moves

    def lack(self, c: Value, j: int) -> Value:
        """Return the residual impulse of a row, times the softness where the contact is closed."""
        p, push = self.cone.p[c * 3 + j], self._aim(c, 0)
        if j == 0:
            aim = push
        else:
            x, y = self._aim(c, 1), self._aim(c, 2)
            aim = Disc(x, y, self._radius(c, self.cone.mu[c], push)).part * (x, y)[j - 1]
        acts = push > 0.0 if j == 0 else self.cone.holds(c, push > 0.0)
        return acts.where(self.softness.value * (p - aim), p)

    def rows(self, c: Value) -> Rows:
        """Return the rows of a contact, times the softness where it is closed."""
        cone, mu, zero = self.cone, self.cone.mu[c], self.k.constant(0.0, Kind.LANE)
        push, soft = self._aim(c, 0), self.softness.value
        disc = Disc(self._aim(c, 1), self._aim(c, 2), self._radius(c, mu, push))
        shut = push > 0.0
        rn = shut.where(cone.reach[c], zero)
        holds = cone.holds(c, shut)
        rt = rn if cone.grip is None else holds.where(cone.reach[c], zero)
        r11, r12, r22 = rt * disc.T11, rt * disc.T12, rt * disc.T22
        r1, r2 = rn * mu * disc.e1, rn * mu * disc.e2
        own = shut.where(soft, zero + 1.0)
        tangents = own if cone.grip is None else holds.where(soft, zero + 1.0)

        def answers(wn: Value, ws: Value, wt: Value) -> tuple[Value, Value, Value]:
            return rn * wn, r1 * wn + (r11 * ws + r12 * wt), r2 * wn + (r12 * ws + r22 * wt)

        return Rows(answers, {(0, 0): own, (1, 1): tangents, (2, 2): tangents})

    def _radius(self, c: Value, mu: Value, push: Value) -> Value:
        """Return the radius of the disc of a contact; without a grip it is used only where the push is above zero."""
        cone = self.cone
        return mu * push if cone.grip is None else cone.gripped(c, mu * (push > 0.0).where(push, 0.0))

    def _aim(self, c: Value, j: int) -> Value:
        """Return y = z - (r / s) u in a row of a contact."""
        i = c * 3 + j
        return self.z[i] - self.cone.reach[c] / self.softness.value * self.u[i]
