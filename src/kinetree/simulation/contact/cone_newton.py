"""Steps of Newton's method for cone problems of many contacts: equations of those that are not open.

A contact that is open in all lanes and has no impulse keeps it at zero: its equations are left out. In a lane where an
open contact stays among the equations because of other lanes, it has no part in the others, so that the numbers of a
lane do not depend on its neighbors.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import Protocol

from ...compiler.lanes.expressions import Builder, Value
from ...compiler.lanes.form import Kind
from ..methods.lane_states import LaneSolver
from .cone_programs import CAUTION, PLAY
from .cone_sweeps import Entries, LaneCone


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
        most = cone.most_contacts
        self.k, self.cone, self.matrix = k, cone, LaneSolver(k, 3 * most)
        self.which, self.some = k.block("which", most, Kind.COUNT), k.block("some", kind=Kind.COUNT)
        self.live, self.change = k.block("live", most, Kind.MASK), k.block("change", 3 * most)
        self.more = k.block("more_change", 3 * most)

    def step(self, equations: Equations, added: Callable[[Value, int], Value] | None = None) -> None:
        """Write the impulses of the lanes that are not solved, after a step on equations.

        Of what was `added` to the diagonal of the matrix, by contact and row, the first-order effect is undone.
        """
        k, cone = self.k, self.cone
        self._find(equations)
        self._fill(equations)
        with k.loop(self.some.value) as a:
            c = self.which[a]
            for j in range(3):
                self.change[a * 3 + j] = equations.lack(c, j)
        size = self.some.value * 3
        self.matrix.factor(size)
        first = k.constant(0, Kind.COUNT)
        self.matrix.solve(self.change, first, size)
        if added is not None:
            with k.loop(self.some.value) as a:
                for j in range(3):
                    self.more[a * 3 + j] = self.change[a * 3 + j] * added(self.which[a], j)
            self.matrix.solve(self.more, first, size)
            with k.loop(size) as i:
                self.change[i] = self.change[i] + self.more[i]
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
        k, cone, A, m = self.k, self.cone, self.matrix.matrix, self.some.value * 3
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


class Sticking:
    """The equations of contacts that are open or stick, as in `sticking_program`."""

    def __init__(self, cone: LaneCone, u: Entries, dtype: str) -> None:
        """Refer to the velocities."""
        self.cone, self.u, self.dtype = cone, u, dtype

    def slips(self, c: Value) -> Value:
        """Return the lanes in which a contact with an impulse leaves its cone: the equations are not meant for them."""
        cone, n = self.cone, c * 3
        x, y = (cone.p[n + j] - cone.reach[c] * self.u[n + j] for j in (1, 2))
        shut, pn = self._shut(c), cone.p[n]
        loaded = shut & (pn > 0.0)
        radius = cone.gripped(c, cone.mu[c] * loaded.where(pn, 0.0))
        if cone.grip is not None:
            loaded = loaded | (cone.holds(c, shut) & ~shut)
        return loaded & (radius < (x * x + y * y).sqrt())

    def live(self, c: Value) -> Value:
        """Return the lanes in which a contact is not open, or has an impulse."""
        return self.cone.holds(c, self._shut(c)) | any_of(abs(self.cone.p[c * 3 + j]) > 0.0 for j in range(3))

    def lack(self, c: Value, j: int) -> Value:
        """Return the velocity of a row times the reach, or the impulse of a row that is open."""
        i = c * 3 + j
        return self._closed(c, j).where(self.cone.reach[c] * self.u[i], self.cone.p[i])

    def rows(self, c: Value) -> Rows:
        """Return the rows of a contact."""
        zero, least = self.cone.k.constant(0.0, Kind.LANE), PLAY[self.dtype]
        r = [self._closed(c, j).where(self.cone.reach[c], zero) for j in range(3)]
        own = {(j, j): self._closed(c, j).where(least, zero + 1.0) for j in range(3)}
        return Rows(lambda wn, ws, wt: (r[0] * wn, r[1] * ws, r[2] * wt), own)

    def added(self, c: Value, j: int) -> Value:
        """Return what is added to the diagonal of a row that is closed."""
        return self._closed(c, j).where(PLAY[self.dtype], self.cone.k.constant(0.0, Kind.LANE))

    def _shut(self, c: Value) -> Value:
        return self.cone.p[c * 3] - self.cone.reach[c] * self.u[c * 3] > 0.0

    def _closed(self, c: Value, j: int) -> Value:
        return self._shut(c) if j == 0 else self.cone.holds(c, self._shut(c))


class NearestPoints:
    """The equations of cone_programs.py, with a part of the mean compliance on the diagonal of Newton's matrix."""

    def __init__(self, cone: LaneCone, u: Entries, lack: Entries, worst: Callable[[], Value], dtype: str) -> None:
        """Refer to the velocities, the residual impulses, and the largest residual."""
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
        part, least = self.worst() * CAUTION, PLAY[self.dtype]
        return (part < least).where(least, (part < 1.0).where(part, 1.0))


class Disc:
    """The point (x, y), and the point of a disc of some radius nearest to it, with its derivative.

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


# --- Proximal steps for cone problems in lanes whose contacts are redundant and almost contradict each other ---
#
# Four corners of a box that rocks by a hair cannot all stick: their velocities contradict each other in the eighth
# digit. One of them slips, and the impulses that have no effect on the motion decide which one: they grow until its
# friction is used up. A proximal step adds a compliance to each contact, which is that of a spring unloaded at impulses
# z:
#
#     p = the point of the cone of y nearest to y = z - (r / s) u,    u = W p + b
#
# with s the `softness`, relative to the mean compliance 1 / r. Newton's method solves it where s is not too small. Its
# solution is the next z, and s becomes smaller with each one. A fixed point, p = z, solves the problem without springs.
# Where Newton's method fails, z remains and s grows.

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
"""The residual at which a proximal step ends, relative to the velocities, for a softness of one."""
NOISE = {"float64": 1e-14, "float32": 1e-6}
"""The residual of rounding, relative to the velocities."""


class Proximal:
    """The memory and the statements of proximal steps; `z` has the impulses at which springs are unloaded."""

    def __init__(self, k: Builder, cone: LaneCone, u: Entries, newton: LargeNewton, dtype: str) -> None:
        """Declare the memory, for the velocities u of the problem."""
        self.k, self.cone, self.u, self.newton, self.dtype = k, cone, u, newton, dtype
        self.z, self.kept = k.block("z", 3 * cone.most_contacts), k.block("kept_p", 3 * cone.most_contacts)
        self.softness, self.tries, self.lacks = k.block("softness"), k.block("tries"), k.block("lacks")

    def unload(self) -> None:
        """Write the present impulses as those at which springs are unloaded."""
        with self.k.loop(self.cone.rows) as i:
            self.z[i] = self.cone.p[i]

    def start(self) -> None:
        """Write the start of proximal steps at z, in the lanes that are not solved."""
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
        small = cone.size * (soft.value * ENDED + NOISE[self.dtype])
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
