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
from ...compiler.lanes.expressions import Block, Builder, Part, Value
from ...compiler.lanes.form import Kind
from .cone_newton import LargeNewton, NearestPoints, Proximal, Sticking
from .cone_programs import (
    GRIP,
    IMPULSE,
    cone_inputs,
    contact_residual_program,
    newton_program,
    pair_program,
    residual_program,
    sticking_program,
)
from .cone_sweeps import Entries, LaneCone, Sweeps, starts_of, sum_of
from .restitution import ARRIVAL, BOUNCE, BOUND, EXPANSION, STRIKES, Reductions

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

PROBLEM = ("b", "friction", "reach", "size", IMPULSE, GRIP, BOUND, BOUNCE, ARRIVAL, EXPANSION, STRIKES)
"""The arrays that are a problem beside W, as far as it has them."""


class LaneSteps:
    """Steps that improve impulses p in the lanes that are not solved, of all contacts or of two."""

    k: Builder
    p: Entries
    tried: Block
    busy: Block
    stuck: Block
    left: Block
    returns: Returns

    def evaluate(self) -> None:
        """Write which lanes are not solved."""
        raise NotImplementedError

    def stick(self, program: str, problem: Block, count: int) -> None:
        """Write steps in the stuck lanes as if none of `count` contacts slipped.

        They end where the contacts that are closed are those of two steps before.
        """
        k, n = self.k, 3 * count
        self.returns.start()
        with k.repeat() as turn:
            k.call(program, problem, self.tried)
            stuck = self.stuck.value & (self.tried[n] < 0.5)
            with k.loop(n) as i:
                self.p[i] = stuck.where(self.tried[i], self.p[i])
            self.evaluate()
            again = stuck & self.busy.value & ~self.returns.found(self.p)
            self.stuck.value, self.left.value = again, self.left.value - 1
            turn.again = k.any(self.stuck.value) & (self.left.value > 0)

    def until_solved(self, most: Value | int, better: Callable[[], None]) -> None:
        """Write improvements in the lanes that are not solved, as long as there are any and at most so many."""
        k = self.k
        self.left.value = most

        def unsolved() -> Value:
            return k.any(self.busy.value) & (self.left.value > 0)

        with k.whilst(unsolved):
            better()
            self.evaluate()
            self.left.value = self.left.value - 1


class ConeSolver(LaneSteps):
    """The memory and the statements that solve for the impulses of all contacts."""

    def __init__(
        self, k: Builder, found: Block, arrays: Sequence[Array], dtype: str, used: Block | None = None
    ) -> None:
        """Declare the memory for a problem in the block `found`, which consists of arrays.

        Among them are the inputs of cone_programs.py and the `size` of the velocities. With `used`, only so many
        contacts are present, and all statements are loops over them. Otherwise the code has no loops.
        """
        self.cone = cone = LaneCone(k, found, arrays, dtype, used)
        self.k, self.found, self.arrays, self.dtype, self.sweeps = k, found, arrays, dtype, Sweeps(cone)
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
            self.tried, self.returns = k.block("tried", n + 1), Returns(k, "", count)
        else:
            felt = contact_residual_program(dtype, grips=grips)
            k.programs[felt.name] = felt
            self.point = k.block("point", sum(a.size for a in felt.inputs))
            self.lacking, self.loads = k.block("lacking", 5), k.block("loads")
        self.before, self.large = k.block("before", n), LargeNewton(k, cone)
        self.sticking = Sticking(cone, self.u, dtype)
        self.nearest = NearestPoints(cone, self.u, Entries(self.felt, 2 + n), lambda: self.worst, dtype)
        self.proximal = Proximal(k, cone, self.u, self.large, dtype)
        self.pair = Pair(k, found, arrays, cone, dtype) if self.straight and cone.most_contacts > PAIR else None
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
        k, cone = self.k, self.cone
        self.stuck.value = pressed
        self._keep()
        if self.pair is None:
            self._find_all()
            return
        self.pair.solve(pressed)
        with k.when(k.any(self.pair.few.value)):
            self.evaluate()
            done = self.pair.few.value & ~self.busy.value
            with k.loop(cone.rows) as i:  # another contact may have closed
                self.p[i] = done.where(self.p[i], self.before[i])
            self.stuck.value = pressed & ~done
        with k.gathered(self.stuck, self.problem, self.answer):
            self._keep()
            self._find_all()
        self._mark()

    def _keep(self) -> None:
        """Write a copy of the present impulses."""
        with self.k.loop(self.cone.rows) as i:
            self.before[i] = self.p[i]

    def _find_all(self) -> None:
        """Write the impulses of stuck lanes, from the equations of all contacts."""
        self.left.value = STICKING
        if self.straight:
            self.stick("sticking", self.found, self.cone.most_contacts)
        else:
            self._stick_each()
        with self.k.when(self.k.any(self.busy.value)):
            self._slide()

    @property
    def problem(self) -> list[Part]:
        """The entries of memory that are the problem, of W those on and below its diagonal."""
        starts, n = starts_of(self.arrays), 3 * self.cone.most_contacts
        rows = [(self.found, starts["W"] + i * n, i + 1) for i in range(n)]
        return rows + [(self.found, starts[a.name], a.size) for a in self.arrays if a.name in PROBLEM]

    @property
    def answer(self) -> list[Part]:
        """The entries of memory that are the solution: impulses, residuals and velocities."""
        lacked = [] if self.reductions.expansion is None else [(self.reductions.expansion.lacked, 0, 2)]
        return [
            (self.found, starts_of(self.arrays)[IMPULSE], 3 * self.cone.most_contacts),
            (self.felt, 0, self.felt.memory.size),
            *lacked,
        ]

    def residuals(self) -> list[Value]:
        """Return the largest residuals of a step along normals and tangents, compressions included."""
        found, expansion = [self.normal, self.tangent], self.reductions.expansion
        if expansion is None:
            return found
        return [(x > expansion.lacked[i]).where(x, expansion.lacked[i]) for i, x in enumerate(found)]

    def _stick_each(self) -> None:
        """Write steps as if no contact slipped, with loops over the contacts."""
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
            self.until_solved(k.whole(k.choose(attempt, SWEEPS)), self.sweeps.sweep)

    def converge(self) -> None:
        """Write steps of Newton's method in the lanes that are not solved."""
        self.until_solved(self.k.constant(NEWTON, Kind.COUNT), self.improve)

    def _approach(self) -> None:
        """Write proximal steps from the result of sweeps; the lanes that they do not solve are left as they are."""
        self.proximal.start()
        self.evaluate()
        self.until_solved(self.k.constant(PROXIMAL, Kind.COUNT), lambda: self.proximal.step(self.evaluate))
        self.proximal.end()
        self.evaluate()

    def evaluate(self) -> None:
        """Write all velocities, what is left of the equations, and which lanes are not solved."""
        if self.straight:
            self.k.call("residual", self.found, self.felt)
        else:
            self._evaluate_each()
        self._mark()

    def _mark(self) -> None:
        """Write which lanes are not solved."""
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


class Returns:
    """The closed contacts after the last two steps without slip: steps that return to earlier ones do so forever."""

    def __init__(self, k: Builder, name: str, count: int) -> None:
        """Declare the memory."""
        self.k, self.count = k, count
        self.shut, self.past = k.block(f"{name}shut_now", 1), k.block(f"{name}shut_past", 1)

    def start(self) -> None:
        """Write that there was no step yet."""
        self.shut.value, self.past.value = -1.0, -1.0

    def found(self, p: Entries) -> Value:
        """Return where the contacts closed by impulses p differ from those of the last step, and equal those before."""
        zero = self.k.constant(0.0, Kind.LANE)
        shut = sum_of((abs(p[3 * c]) > 0.0).where(zero + 2.0**c, 0.0) for c in range(self.count))
        found = shut.equals(self.past.value) & ~shut.equals(self.shut.value)
        self.past.value, self.shut.value = self.shut.value, shut
        return found


PAIR = 2
"""The contacts of the smaller problem that is tried first. Its steps have a fifth of the operations of those with
four, and most states of walking and falling robots have no more contacts."""
SLIDING = 8
"""The most steps of Newton's method for two contacts: four or five are usual."""


class Pair(LaneSteps):
    """The memory and the statements that solve for two contacts, as if all others were open and stayed so.

    Their impulses are inserted into the equations of all contacts afterwards. Lanes that have more contacts, or that
    are not solved, keep the impulses of the last step.
    """

    def __init__(self, k: Builder, found: Block, arrays: Sequence[Array], cone: LaneCone, dtype: str) -> None:
        """Declare the memory; the block `found` consists of arrays."""
        self.k, self.found, self.cone, self.accepted = k, found, cone, ACCEPTED[dtype]
        grips, n = cone.grip is not None, 3 * PAIR
        picked = pair_program(cone.most_contacts, dtype, grips=grips)
        starts = starts_of(picked.outputs)
        self.problem = k.block("pair", sum(a.size for a in picked.outputs))
        self.p, self.reach, self.size, self.first, self.second, self.enough = (
            Entries(self.problem, starts[name]) for name in (IMPULSE, "reach", "size", "first", "second", "few")
        )
        given = (*cone_inputs(PAIR), Array("size", (1,)), *([Array(GRIP, (PAIR,))] if grips else []))
        k.programs["pair"] = picked.with_inputs(arrays, {})
        for make in (residual_program, sticking_program, newton_program):
            made = make(PAIR, dtype, grips=grips)
            k.programs[f"pair_{made.name}"] = made.with_inputs(given, {})
        self.felt, self.tried, self.before = (
            k.block(f"pair_{name}", size) for name, size in (("felt", 2 + 2 * n), ("tried", n + 1), ("before", n))
        )
        self.few, self.busy, self.stuck = (k.block(f"pair_{x}", kind=Kind.MASK) for x in ("few", "busy", "stuck"))
        self.returns = Returns(k, "pair_", PAIR)
        self.left = k.block("pair_left", kind=Kind.COUNT)

    def solve(self, pressed: Value) -> None:
        """Write the impulses of the lanes of a mask that have at most two contacts; `few` becomes their mask."""
        k, zero = self.k, self.k.constant(0.0, Kind.LANE)
        k.call("pair", self.found, self.problem)
        self.few.value = pressed & (self.enough[0] > 0.5)
        with k.when(k.any(self.few.value)):
            with k.loop(3 * PAIR) as i:
                self.before[i] = self.p[i]
            self.stuck.value, self.left.value = self.few.value, STICKING
            self.stick("pair_sticking", self.problem, PAIR)
            with k.when(k.any(self.busy.value)):
                self._slide()
            with k.loop(self.cone.count) as c:
                first, second = self.first[c] > 0.5, self.second[c] > 0.5
                for j in range(3):
                    p = first.where(self.p[j], second.where(self.p[3 + j], zero))
                    self.cone.p[c * 3 + j] = self.few.value.where(p, self.cone.p[c * 3 + j])

    def _slide(self) -> None:
        """Write steps of Newton's method from the impulses of the last step."""
        k = self.k
        with k.loop(3 * PAIR) as i:
            self.p[i] = self.busy.value.where(self.before[i], self.p[i])

        def better() -> None:
            k.call("pair_newton", self.problem, self.tried)
            with k.loop(PAIR) as c:
                most = self.reach[c] * self.size[0] * self.cone.bound
                for j in range(3):
                    i = c * 3 + j
                    usable = self.busy.value & (abs(self.tried[i]) < most)
                    self.p[i] = usable.where(self.tried[i], self.p[i])

        self.until_solved(SLIDING, better)

    def evaluate(self) -> None:
        """Write which lanes are not solved."""
        self.k.call("pair_residual", self.problem, self.felt)
        solved = (self.felt[0] <= self.accepted) & (self.felt[1] <= self.accepted)
        self.busy.value = self.few.value & ~solved
