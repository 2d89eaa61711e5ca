"""Cone problems in lanes, and sweeps over their contacts: each is solved exactly with the impulses of the others."""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING

from ...compiler.ir.program import Array
from ...compiler.lanes.expressions import Block, Builder, Value
from ...compiler.lanes.form import Kind
from .cone_programs import BOUND, GRIP, IMPULSE

if TYPE_CHECKING:
    from ...compiler.lanes.expressions import Index

TURNS = 3
"""The number of corrections of a slip in a sweep. It converges together with the sweeps."""


class Entries:
    """Some entries of a block, from a first one on."""

    def __init__(self, block: Block, first: int) -> None:
        """Refer to the block."""
        self.block, self.first = block, first

    def __getitem__(self, index: Index) -> Value:
        return self.block[self._at(index)]

    def __setitem__(self, index: Index, value: object) -> None:
        self.block[self._at(index)] = value

    def _at(self, index: Index) -> Index:
        return index + self.first if self.first else index


def starts_of(arrays: Sequence[Array]) -> dict[str, int]:
    """Return the first entry of each array, by its name, in a block of memory that consists of them."""
    sizes = [a.size for a in arrays]
    return {a.name: sum(sizes[:i]) for i, a in enumerate(arrays)}


class LaneCone:
    """A cone problem per lane in a block of memory, which consists of arrays, and the lanes that are not solved.

    Among the arrays are the inputs of cone_programs.py and the `size` of the velocities.
    """

    def __init__(
        self, k: Builder, found: Block, arrays: Sequence[Array], dtype: str, used: Block | None = None
    ) -> None:
        """Find the arrays by name; with `used`, only so many contacts are present, and W has their rows alone."""
        starts = starts_of(arrays)
        names = ("W", "b", "friction", "reach", "size", IMPULSE)
        self.W, self.b, self.mu, self.reach, self._size, self.p = (Entries(found, starts[name]) for name in names)
        self.k, self.bound, self._used = k, BOUND[dtype], used
        self.most_contacts = next(a.size for a in arrays if a.name == "friction")
        self.busy, self._sum = k.block("busy", kind=Kind.MASK), k.block("velocity")
        self.grip = Entries(found, starts[GRIP]) if GRIP in starts else None

    @property
    def count(self) -> Index:
        """The number of contacts."""
        return self.most_contacts if self._used is None else self._used.value

    @property
    def rows(self) -> Index:
        """The number of rows of W."""
        return self.count * 3

    @property
    def size(self) -> Value:
        """The velocity [m/s] with which residuals are compared."""
        return self._size[0]

    def w(self, i: Value, j: Value) -> Value:
        """Return an entry of W; without `used`, one on or below the diagonal, which equals that above."""
        if self._used is not None:
            return self.W[i * self.rows + j]
        above = i < j
        return self.W[above.where(j, i) * self.rows + above.where(i, j)]

    def holds(self, c: Value, shut: Value) -> Value:
        """Return whether friction may act at a contact, which is closed or not."""
        return shut if self.grip is None else shut | (self.grip[c] > 0.0)

    def gripped(self, c: Value, radius: Value) -> Value:
        """Return the radius of the disc of a contact, from that by its own impulse along the normal."""
        return radius if self.grip is None else radius + self.grip[c]

    def velocity(self, row: Value) -> Value:
        """Return u of one row."""
        self._sum.value = self.b[row]
        with self.k.loop(self.count) as c:
            n = c * 3
            acts = sum_of(self.w(row, n + j) * self.p[n + j] for j in range(3))
            self._sum.value = self._sum.value + acts
        return self._sum.value

    def most(self, c: Value) -> Value:
        """Return the impulse of a contact above which its matrix is taken for singular, and the impulse is not used."""
        return self.reach[c] * self.size * self.bound

    def take(self, c: Value, j: int, new: Value) -> None:
        """Write an impulse of a contact in the lanes that are not solved, unless it is beyond all bounds."""
        i = c * 3 + j
        usable = self.busy.value & (abs(new) < self.most(c))
        self.p[i] = usable.where(new, self.p[i])


class Sweeps:
    """The statements of sweeps, with the slip of each contact, from which the next sweep starts."""

    def __init__(self, cone: LaneCone) -> None:
        """Declare the memory."""
        self.k, self.cone, self.slip = cone.k, cone, cone.k.block("slip", cone.most_contacts)

    def start(self) -> None:
        """Write contacts without slip."""
        with self.k.loop(self.cone.count) as c:
            self.slip[c] = 0.0

    def sweep(self) -> None:
        """Write the exact solution of one contact after the other, with the impulses of the others as they are."""
        k, cone = self.k, self.cone
        with k.loop(cone.count) as c:
            n, s, t = c * 3, c * 3 + 1, c * 3 + 2
            own = [cone.p[x] for x in (n, s, t)]
            W = [[cone.w(x, y) for y in (n, s, t)] for x in (n, s, t)]
            free = [cone.velocity(x) - sum_of(W[i][j] * own[j] for j in range(3)) for i, x in enumerate((n, s, t))]
            found = self._one(c, W, free)
            for x, y, before in zip((n, s, t), found, own, strict=True):
                cone.p[x] = cone.busy.value.where(y, before)

    def _one(self, c: Value, W, free) -> list[Value]:
        """Return the impulse of one contact with the velocity `free` without it.

        Along the tangents, (S + x 1) p_t = -v with S = W_tt - W_tn W_nt / W_nn and v = free_t - W_tn free_n / W_nn;
        u_t = -x p_t. The contact sticks with x = 0 if p is in the cone; else x is where p lies on it.
        """
        k, cone, mu = self.k, self.cone, self.cone.mu[c]
        stiff = k.cast(1.0, Kind.LANE) / W[0][0]
        S11, S12 = W[1][1] - W[0][1] * W[0][1] * stiff, W[1][2] - W[0][1] * W[0][2] * stiff
        S22 = W[2][2] - W[0][2] * W[0][2] * stiff
        v1, v2 = free[1] - W[0][1] * free[0] * stiff, free[2] - W[0][2] * free[0] * stiff

        def tangent(x, a, b) -> tuple[Value, Value]:
            return _shifted(k, (S11, S12, S22), x, a, b)

        def at(x) -> tuple[Value, Value, Value, Value]:
            p1, p2 = tangent(x, -1.0 * v1, -1.0 * v2)
            pn = -1.0 * (free[0] + W[0][1] * p1 + W[0][2] * p2) * stiff
            return pn, p1, p2, (p1 * p1 + p2 * p2).sqrt()

        pn, p1, p2, length = at(0.0)
        most = cone.most(c)
        sticks = (length <= cone.gripped(c, mu * pn)) & (pn < most)
        x = self.slip[c]
        for _ in range(TURNS):  # Newton's method on mu p_n / |p_t| = 1, which is almost linear in x
            n, a, b, size = at(x)
            da, db = tangent(x, -1.0 * a, -1.0 * b)
            dn = -1.0 * (W[0][1] * da + W[0][2] * db) * stiff
            over = size - cone.gripped(c, mu * n)
            slope = mu * dn - cone.gripped(c, mu * n) * (a * da + b * db) / (size * size)
            step = x + over / slope
            good = (step > 0.0) & (size > 0.0) & (mu > 0.0)
            x = good.where(step, x * 0.5)
        self.slip[c] = sticks.where(0.0, x)
        n, a, b, size = at(x)
        onto = (size > 0.0).where(cone.gripped(c, mu * n) / size, 0.0)
        straight = -1.0 * free[0] * stiff
        usable = (n > 0.0) & (n < most) & (mu > 0.0)
        slid = [usable.where(n, straight), usable.where(a * onto, 0.0), usable.where(b * onto, 0.0)]
        if cone.grip is None:
            apart = free[0] >= 0.0
            return [apart.where(0.0, sticks.where(y, z)) for y, z in zip((pn, p1, p2), slid, strict=True)]
        h1, h2 = self._held(cone.grip[c], self.slip[c], W, free)
        apart, sticks = free[0] + W[0][1] * h1 + W[0][2] * h2 >= 0.0, sticks & (pn > 0.0)
        closed = [sticks.where(y, z) for y, z in zip((pn, p1, p2), slid, strict=True)]
        return [apart.where(x, y) for x, y in zip((k.constant(0.0, Kind.LANE), h1, h2), closed, strict=True)]

    def _held(self, grip: Value, x: Value, W, free) -> tuple[Value, Value]:
        """Return the tangential impulses of a contact that is open but for its grip: (W_tt + x 1) p_t = -free_t."""
        k = self.k
        S, v1, v2 = (W[1][1], W[1][2], W[2][2]), -1.0 * free[1], -1.0 * free[2]
        s1, s2 = _shifted(k, S, 0.0, v1, v2)
        sticks = (s1 * s1 + s2 * s2).sqrt() <= grip
        for _ in range(TURNS):  # Newton's method on grip / |p_t| = 1
            a, b = _shifted(k, S, x, v1, v2)
            size = (a * a + b * b).sqrt()
            da, db = _shifted(k, S, x, -1.0 * a, -1.0 * b)
            step = x - (size - grip) * size * size / (grip * (a * da + b * db))
            x = (step > 0.0).where(step, x * 0.5)
        a, b = _shifted(k, S, x, v1, v2)
        size = (a * a + b * b).sqrt()
        onto = (size > 0.0).where(grip / size, 0.0)
        slips = (grip > 0.0) & (size > 0.0)
        f1, f2 = (sticks.where(y, slips.where(z * onto, 0.0)) for y, z in ((s1, a), (s2, b)))
        return f1, f2


def _shifted(k: Builder, S, x, a: Value, b: Value) -> tuple[Value, Value]:
    """Return the solution of (S + x 1) y = (a, b) for a symmetric S = (S11, S12, S22)."""
    S11, S12, S22 = S
    d1, d2 = S11 + x, S22 + x
    inverse = k.cast(1.0, Kind.LANE) / (d1 * d2 - S12 * S12)
    return (d2 * a - S12 * b) * inverse, (d1 * b - S12 * a) * inverse


def sum_of(terms) -> Value:
    """Return the sum of values."""
    first, *rest = terms
    for x in rest:
        first = first + x
    return first
