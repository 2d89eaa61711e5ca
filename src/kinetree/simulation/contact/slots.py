"""Time steps with many contacts: loops over those that are near their surface, each with a slot in the cone problem.

The Programs are those of pairs.py. A step first computes the gaps of all contacts. A contact is near where
the fastest motion could close its gap within the step: with a gap g, it cannot touch while its velocity along the
normal is above -2 g / h. The `limit` of a pair is this velocity. Near contacts get slots, lane by lane, so that a
lane solves for its own contacts alone. Afterwards, the velocity of no point of a pair may be above its limit:
otherwise the limit grows, and the step is solved again. So the equations hold for all contacts, also for those
without a slot.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from itertools import pairwise

from ...compiler.ir.program import Array, Program
from ...compiler.lanes.expressions import Value
from ...compiler.lanes.form import Kind
from ...compiler.lower.contacts import FIELDS, Batch, Sort
from .cone_programs import GRIP, IMPULSE, cone_inputs
from .cone_solves import ConeSolver
from .cone_sweeps import Entries, starts_of, sum_of
from .restitution import ARRIVAL, BOUNCE, BOUND, EXPANSION, STRIKES

CHANGE = "dqd"
"""The name of the changes of the velocities by impulses."""

BODY, PIVOT = 12, 12
"""The numbers of a body (rotation and position in its parent) and of each of its pivots (p and psi)."""

NEAR = 4.0
"""The first limit of a pair, relative to the largest velocity of a contact: impulses seldom give a body more. It
must be above one, so that a contact that would close without impulses is near."""
ROUNDS = 12
"""The most times that limits grow in a step, by a factor of two at least."""
TOUCHED = 7
"""The numbers of a candidate that a Program `touching` returns: its gap, velocity and change of velocity."""
MOVING = tuple(name for name, _ in FIELDS if name not in ("friction", "restitution"))
"""The fields of a feature that determine its motion."""
CHUNK = 6
"""The number of products that are added to an entry of W at once: sums are in memory between them."""


@dataclass(frozen=True)
class Path:
    """The bodies from one that a contact pushes to the ground: places of their numbers, pivots, and last labels."""

    places: tuple[int, ...]
    pivots: tuple[int, ...]
    labels: tuple[int, ...]


@dataclass(frozen=True)
class ManyContacts:
    """The Programs of a time step, and which contacts they are called for.

    `moving` is (t, q, qd, ..., h, dt) -> (pairs, reach, apart, scales, bodies, data, loops, answers, wrenches, ...):
    the motion without impulses. `reach` is the largest distance of a contact of a pair from the origin of its body,
    `apart` the distance of this origin from a ball about the solid of the pair, and `scales` are D^-1/2. `loops` are
    the pulls of loops, times scales, and `answers` the inverse of their W. From the impulses of contacts as `wrenches`
    on the bodies of the pairs, `pushing` returns the changes of velocities and of the twists of the pairs, and `ending`
    the state after the step.

    A sort has two Programs of the same inputs, `inputs`. `touching` returns gap, velocity and its change of each of
    its candidates, `allowing` their equations: see `record`. `carrying` take the wrenches of three rows and the
    numbers of a body with so many pivots, and return the pulls and the wrenches on its parent. `rest` is the velocity
    that is added to those of contacts at rest.
    """

    moving: Program
    pushing: Program
    ending: Program
    touching: tuple[Program, ...]
    allowing: tuple[Program, ...]
    carrying: dict[int, Program]
    inputs: tuple[Array, ...]
    record: tuple[Array, ...]
    sorts: tuple[Sort, ...]
    batches: tuple[Batch, ...]
    paths: tuple[tuple[Path, ...], ...]
    count: int
    rest: float

    @property
    def rows(self) -> int:
        """The number of impulses: three per contact."""
        return 3 * self.count


class Slots:
    """The memory and the statements of the impulses of a step.

    The block `found` consists of the results of the Programs. `most` is the largest number of contacts of a run that
    may be near at the same time; where there are more, `over` is true, and those beyond it are left out.
    """

    def __init__(self, k, many: ManyContacts, dtype: str, most: int) -> None:
        """Declare the memory, and add the Programs to the kernel."""
        self.k, self.many, self.dtype, self.most = k, many, dtype, min(most, many.count)
        k.programs |= {x.name: x for x in (*many.touching, *many.allowing, *many.carrying.values())}
        k.programs |= {"pushing": many.pushing, "ending": many.ending}
        arrays = many.ending.inputs
        self.starts, self.pushed = starts_of(arrays), sum(a.size for a in many.pushing.inputs)
        self.found = k.block("found", sum(a.size for a in arrays))
        names = "pairs", "reach", "apart", "scales", "bodies", "data", "wrenches", CHANGE, "turned"
        at = (Entries(self.found, self.starts[name]) for name in names)
        (
            self.pairs,
            self.reach,
            self.apart,
            self.scales,
            self.bodies,
            self.data,
            self.wrenches,
            self.dqd,
            self.turned,
        ) = at
        sizes = {a.name: a.size for a in arrays}
        self.nv, self.numbers = sizes["scales"], many.inputs[0].size
        self.each = sizes["wrenches"] // len(many.paths)
        self.loops = sizes["loops"] // self.nv if "loops" in sizes else 0
        self.span = -(-(self.nv + self.loops) // CHUNK) * CHUNK
        self._declare(sizes)
        self.solver = ConeSolver(k, self.problem, self._arrays, dtype, self.used)

    def _declare(self, sizes: dict[str, int]) -> None:
        k, many, count = self.k, self.many, self.many.count
        self.fields, self.record = starts_of(many.inputs), starts_of(many.record)
        self.width = sum(a.size for a in many.record)
        self.feature = k.block("feature", sum(a.size for a in many.inputs))
        self.met = k.block("met", TOUCHED * max(x.count for x in many.sorts))
        self.gap, self.near = k.block("gap", count), k.block("near", count, Kind.MASK)
        self.size, self.limit = k.block("largest_velocity"), k.block("limit", len(many.paths))
        self.records = k.block("records", self.width * count)
        self.which, self.pair = k.block("which_near", count, Kind.COUNT), k.block("pair", count, Kind.COUNT)
        self.some, self.used = k.block("near_count", kind=Kind.COUNT), k.block("used", kind=Kind.COUNT)
        self.slot, self.own = k.block("slot", count, Kind.INDEX), k.block("own_count", kind=Kind.INDEX)
        self.pressed, self.over = k.block("pressed", kind=Kind.MASK), k.block("over", kind=Kind.MASK)
        self.grows, self.rounds = k.block("grows", kind=Kind.MASK), k.block("limit_rounds", kind=Kind.COUNT)
        slots = self.most + 1  # the last one takes what is in no slot
        more = [(BOUND, slots)]
        more += [(BOUNCE, slots), (ARRIVAL, 3 * slots)] if "bounce" in self.record else []
        more += [(EXPANSION, slots), (STRIKES, 1), (GRIP, slots)] if "expansion" in self.record else []
        self._arrays = (*cone_inputs(slots), Array("size", (1,)), *(Array(name, (n,)) for name, n in more))
        self.problem = k.block("problem", sum(a.size for a in self._arrays))
        self.parts = {a: Entries(self.problem, at) for a, at in starts_of(self._arrays).items()}
        widest = max((n for chains in many.paths for path in chains for n in path.pivots), default=0)
        self.carried = k.block("carried", 18 + BODY + PIVOT * widest)
        self.onward = k.block("onward", 3 * widest + 18)
        self.pulls = k.block("pulls", 3 * self.span)
        self.rows = k.block("rows", 3 * self.span * slots)
        if self.loops:
            self.answered = k.block("answered", 3 * self.loops)
            self.others = k.block("others", 3 * self.span * slots)
        self.sums, self.one = k.block("sums", 9), k.block("one", kind=Kind.COUNT)
        self.one.value = 1

    @contextmanager
    def loop(self, count: int) -> Iterator[Value]:
        """Nest statements that are one loop for every target, whatever the count."""
        with self.k.loop(self.one.value * count) as i:
            yield i

    def push(self, h: Value, dt: Value, before: Entries) -> None:
        """Write the changes of velocities and the impulses of a step, over the ones of the step before."""
        k = self.k
        self.feature[self.fields["h"]], self.feature[self.fields["dt"]] = h, dt
        self._touch(h)
        with self.loop(len(self.many.paths)) as s:
            self.limit[s] = self.size.value * NEAR
        self.rounds.value = 0
        with k.repeat() as turn:
            self._find(h)
            self.pressed.value = False
            with k.when(self.some.value > 0):
                self._fill(before)
            with self.loop(self.many.pushing.outputs[0].size) as j:
                self.dqd[j] = 0.0
            self.grows.value = False
            with k.when(k.any(self.pressed.value)):
                self._solve(before)
            self.rounds.value = self.rounds.value + 1
            turn.again = k.any(self.grows.value) & (self.rounds.value < ROUNDS)
        with self.loop(self.many.rows) as i:
            before[i] = 0.0
        with k.loop(self.some.value) as a:
            mine = self.near[self.which[a]] & self.pressed.value
            for j in range(3):
                before[self.which[a] * 3 + j] = mine.where(self.parts[IMPULSE][self.slot[a] * 3 + j], 0.0)

    def _touch(self, h: Value) -> None:
        """Write the gaps of all contacts, and the largest velocity.

        Bodies that are too far from a solid to touch it in this step get a lower bound of all their gaps.
        """
        self.size.value = 0.0
        for batch in self.many.batches:
            if not self.many.sorts[batch.sort].solid:
                self._meet(batch)
                continue
            with self.loop(len(batch.candidates)) as f:
                c = self._table(batch.candidates, f, self.many.sorts[batch.sort].count)
                for i in range(self.many.sorts[batch.sort].count):
                    self.gap[c + i] = self.apart[batch.pair] - self.reach[batch.pair]
            free = self.apart[batch.pair] - self.reach[batch.pair]
            with self.k.when(self.k.any(free < self._fastest(batch.pair) * h * NEAR)):
                self._meet(batch)

    def _meet(self, batch: Batch) -> None:
        """Write the gaps of the contacts of a batch, and the largest velocity."""
        sort = self.many.sorts[batch.sort]
        self._pair(batch)
        with self.loop(len(batch.candidates)) as f:
            self._give(batch, f, MOVING)
            self.k.call(self.many.touching[batch.sort].name, self.feature, self.met)
            c = self._table(batch.candidates, f, sort.count)
            for i in range(sort.count):
                at = TOUCHED * i
                self.gap[c + i] = self.met[at]
                for j in range(1, 4):
                    x = abs(self.met[at + j]) + abs(self.met[at + j + 3])
                    self.size.value = (self.size.value < x).where(x, self.size.value)

    def _pair(self, batch: Batch) -> None:
        """Write the numbers of the pair of a batch into the inputs of its Programs."""
        with self.k.loop(self.numbers) as j:
            self.feature[j] = self.pairs[j + batch.pair * self.numbers]

    def _give(self, batch: Batch, f: Value, names: Sequence[str]) -> None:
        """Write fields of a feature into the inputs of its Programs."""
        at = 0
        for name, size in FIELDS:
            for j in range(size if name in names else 0):
                if at + j < len(batch.columns):
                    column = batch.columns[at + j]
                    if column.numbers:
                        x = self.k.cast(self._constant(column.numbers, f), Kind.LANE)
                    else:
                        x = self.data[f + column.first]
                    self.feature[self.fields[name] + j] = x
            at += size

    def _constant(self, numbers: Sequence[float], index: Value) -> Value:
        if len(set(numbers)) == 1:
            return self.k.constant(numbers[0], Kind.SCALAR)
        return self.k.choose(index, numbers)

    def _table(self, counts: Sequence[int], index: Value, step: int = 0) -> Value:
        """Return an entry of a table of counts, which may grow by a constant step."""
        if all(b - a == step for a, b in pairwise(counts)):
            return index * step + counts[0]
        return self.k.whole(self.k.choose(index, [float(x) for x in counts]))

    def _find(self, h: Value) -> None:
        """Write which contacts are near, their equations, and a slot of each in every lane."""
        k = self.k
        self.some.value = 0
        self.feature[self.fields["size"]] = self.size.value
        for batch in self.many.batches:
            count = self.many.sorts[batch.sort].count
            self._pair(batch)
            with self.loop(len(batch.candidates)) as f:
                c = self._table(batch.candidates, f, count)
                reached = self.limit[batch.pair] * h
                for i in range(count):
                    self.near[c + i] = self.gap[c + i] * 2.0 < reached
                some = self.near[c]
                for i in range(1, count):
                    some = some | self.near[c + i]
                with k.when(k.any(some)):
                    self._give(batch, f, [name for name, _ in FIELDS])
                    at = self.some.value
                    k.call(self.many.allowing[batch.sort].name, self.feature, self.records, at * self.width)
                    for i in range(count):
                        self.which[at + i], self.pair[at + i] = c + i, batch.pair
                    self.some.value = at + count
        self.own.value, self.used.value, self.over.value = 0, 0, False
        with k.loop(self.some.value) as a:
            mine = self.near[self.which[a]]
            own = self.own[0]
            if self.most < self.many.count:
                full = own >= self.most
                self.over.value = self.over.value | (mine & full)
                mine = mine & ~full
                self.near[self.which[a]] = mine
            with k.when(k.any(mine & own.equals(self.used.value))):
                self.used.value = self.used.value + 1
            self.slot[a] = mine.where(own, self.most)
            self.own.value = mine.where(own + 1, own)

    def _fill(self, before: Entries) -> None:
        """Write the cone problem but for W, with open contacts in the slots that a lane does not use."""
        k, parts = self.k, self.parts
        one = {"b": (1.0, 0.0, 0.0), "friction": (0.0,), "reach": (1.0,), IMPULSE: (0.0, 0.0, 0.0), BOUND: (0.0,)}
        one |= {BOUNCE: (0.0,), ARRIVAL: (1.0, 0.0, 0.0), EXPANSION: (0.0,), GRIP: (0.0,)}
        with k.loop(self.used.value) as a:
            for name, numbers in one.items():
                for j, x in enumerate(numbers if name in parts else ()):
                    parts[name][a * len(numbers) + j] = x
            with self.loop(3 * self.span) as j:
                self.rows[a * (3 * self.span) + j] = 0.0
                if self.loops:
                    self.others[a * (3 * self.span) + j] = 0.0
        parts["size"][0] = self.size.value + self.many.rest
        named = {"b": "b", "friction": "friction", BOUND: "bound", BOUNCE: "bounce", ARRIVAL: "arrival"}
        named[EXPANSION] = "expansion"
        if STRIKES in parts:
            parts[STRIKES][0] = 0.0
        with k.loop(self.some.value) as a:
            at, c, first = self.slot[a], self.which[a], a * self.width
            for name, field in named.items():
                n = len(one[name])
                for j in range(n if name in parts else 0):
                    parts[name][at * n + j] = self.records[first + self.record[field] + j]
            for j in range(3):
                parts[IMPULSE][at * 3 + j] = before[c * 3 + j]
            if STRIKES in parts:
                hits = self.near[c] & (self.records[first + self.record["hits"]] > 0.5)
                parts[STRIKES][0] = hits.where(1.0, parts[STRIKES][0])
            self._carry(a)
            self.pressed.value = self.pressed.value | (self.near[c] & (self.records[first] < 0.0))
        if STRIKES in parts:
            self._expects()

    def _expects(self) -> None:
        """Write strikes as zero where no contact with Poisson's law touches."""
        strikes, expands = self.parts[STRIKES], self.k.constant(0.0, Kind.LANE)
        self.sums[0] = expands
        with self.k.loop(self.used.value) as a:
            x = self.parts[EXPANSION][a]
            self.sums[0] = (self.sums[0] < x).where(x, self.sums[0])
        strikes[0] = (self.sums[0] > 0.0).where(strikes[0], 0.0)

    def _carry(self, a: Value) -> None:
        """Write D^-1/2 y of the three rows of a near contact into its slot."""
        span = self.span
        with self.loop(3 * span) as j:
            self.pulls[j] = 0.0
        for chain in range(self.each // 6):
            first = a * self.width + (self.record["wrenches"] + 18 * chain)
            with self.loop(18) as j:
                self.carried[j] = self.records[first + j]
            self._inward(chain, self.pair[a])
        for j in range(3):
            with self.loop(self.nv) as i:
                self.pulls[i + j * span] = self.pulls[i + j * span] * self.scales[i]
        if self.loops:
            self._answer()
        with self.loop(3 * span) as j:
            self.rows[self.slot[a] * (3 * span) + j] = self.pulls[j]
        if self.loops:
            with self.loop(self.loops) as i:
                for j in range(3):
                    self.pulls[i + (j * span + self.nv)] = self.answered[i + j * self.loops]
            with self.loop(3 * span) as j:
                self.others[self.slot[a] * (3 * span) + j] = self.pulls[j]

    def _inward(self, chain: int, pair: Value) -> None:
        """Write the pulls of three wrenches on a body of a pair and its ancestors."""
        k = self.k
        paths = [p[chain] if chain < len(p) else None for p in self.many.paths]
        lengths = [0 if p is None else len(p.places) for p in paths]
        firsts = [sum(lengths[:s]) for s in range(len(lengths))]
        places, pivots, labels = (
            [x for p in paths if p is not None for x in getattr(p, name)] for name in ("places", "pivots", "labels")
        )
        if not places:
            return
        first = self._table(firsts, pair)
        with k.loop(self._table(lengths, pair)) as step:
            place = self._table(places, first + step)
            label = self._table(labels, first + step)
            for n, program in self.many.carrying.items():
                here = self._table(pivots, first + step).equals(n)
                with k.when(here):
                    with k.loop(BODY + PIVOT * n) as j:
                        self.carried[j + 18] = self.bodies[place + j]
                    k.call(program.name, self.carried, self.onward)
                    for d in range(n):
                        for j in range(3):
                            at = label + (j * self.span - d)
                            self.pulls[at] = self.pulls[at] + self.onward[3 * d + j]
                    with k.loop(18) as j:
                        self.carried[j] = self.onward[j + 3 * n]

    def _answer(self) -> None:
        """Write what the loops answer to the three rows, so that W = rows . others."""
        nv, span = self.nv, self.span
        loops = Entries(self.found, self.starts["loops"])
        inverse = Entries(self.found, self.starts["answers"])
        with self.loop(self.loops) as i:
            for j in range(3):
                self.sums[j] = 0.0
            with self.loop(nv) as n:
                for j in range(3):
                    self.sums[j] = self.sums[j] + loops[i * nv + n] * self.pulls[n + j * span]
            for j in range(3):
                self.pulls[i + (j * span + nv)] = self.sums[j]
        with self.loop(self.loops) as i:
            for j in range(3):
                self.sums[j] = 0.0
            with self.loop(self.loops) as n:
                for j in range(3):
                    self.sums[j] = self.sums[j] - inverse[i * self.loops + n] * self.pulls[n + (j * span + nv)]
            for j in range(3):
                self.answered[i + j * self.loops] = self.sums[j]

    def _solve(self, before: Entries) -> None:
        """Write the impulses of the lanes in which a contact would close, and the motion that they cause."""
        k = self.k
        self._respond()
        self.solver.solve(self.pressed.value)
        with self.loop(self.each * len(self.many.paths)) as i:
            self.wrenches[i] = 0.0
        with k.loop(self.some.value) as a:
            mine = self.near[self.which[a]] & self.pressed.value
            at, to, first = self.slot[a], self.pair[a] * self.each, a * self.width + self.record["wrenches"]
            p = [mine.where(self.parts[IMPULSE][at * 3 + j], 0.0) for j in range(3)]
            for i in range(self.each):
                chain, e = divmod(i, 6)
                acts = sum_of(self.records[first + (18 * chain + 6 * j + e)] * p[j] for j in range(3))
                self.wrenches[to + i] = self.wrenches[to + i] + acts
        k.call("pushing", self.found, self.found, self.pushed)
        with self.loop(self.nv) as j:
            self.dqd[j] = self.pressed.value.where(self.dqd[j], 0.0)
        self._verify()

    def _respond(self) -> None:
        """Write W and the reach of each contact; one that nothing moves gets the answer of a unit mass."""
        k, span, W, reach = self.k, self.span, self.parts["W"], self.parts["reach"]
        right = self.others if self.loops else self.rows
        size = self.used.value * 3
        with k.loop(self.used.value) as a:
            with k.loop(a + 1) as b:
                for i in range(9):
                    self.sums[i] = 0.0
                with self.loop(span // CHUNK) as part:
                    for i in range(3):
                        left = [self.rows[a * (3 * span) + part * CHUNK + (i * span + n)] for n in range(CHUNK)]
                        for j in range(3):
                            first = b * (3 * span) + part * CHUNK + j * span
                            more = sum_of(x * right[first + n] for n, x in enumerate(left))
                            self.sums[3 * i + j] = self.sums[3 * i + j] + more
                for i in range(3):
                    for j in range(3):
                        x = self.sums[3 * i + j]
                        W[(a * 3 + i) * size + (b * 3 + j)] = x
                        W[(b * 3 + j) * size + (a * 3 + i)] = x
            own = [(a * 3 + i) * size + (a * 3 + i) for i in range(3)]
            total = sum_of(W[i] for i in own)
            still = total.equals(0.0)
            for i in own:
                W[i] = still.where(1.0, W[i])
            reach[a] = k.cast(3.0, Kind.LANE) / still.where(3.0, total)

    def _verify(self) -> None:
        """Write larger limits of the pairs that are faster than theirs, and which lanes have such."""
        with self.loop(len(self.many.paths)) as s:
            fastest = self._fastest(s, self.turned)
            grows = self.pressed.value & (fastest > self.limit[s])
            self.limit[s] = grows.where(fastest * 2.0, self.limit[s])
            self.grows.value = self.grows.value | grows

    def _fastest(self, s: Value | int, turned: Entries | None = None) -> Value:
        """Return a bound of the velocities of all points of a pair after the step, with changes by impulses."""
        speed = []
        for first in (0, 3):
            at = [s * self.numbers + (12 + first + j) for j in range(3)]
            v = [self.pairs[i] + self.pairs[i + 6] for i in at]
            if turned is not None:
                v = [x + turned[s * 6 + (first + j)] for j, x in enumerate(v)]
            speed.append(_length(v))
        return speed[0] * self.reach[s] + speed[1]

    def residuals(self) -> list[Value]:
        """Return the largest residuals of a step; 1 where contacts were left out."""
        left = self.over.value | self.grows.value
        return [left.where(1.0, x) for x in self.solver.residuals()]


def _length(x: Sequence[Value]) -> Value:
    return sum_of(y * y for y in x).sqrt()
