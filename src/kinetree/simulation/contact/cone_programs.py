"""Programs of a cone problem: what is left of its equations, and the steps of Newton's method that solve them.

With p the impulses of all contacts (normal and two tangents each), W the Delassus matrix and b the velocities without
impulses, less those that are allowed along the normals, u = W p + b. The equations are those of [AlartCurnier1991]:

    p_n = max(0, p_n - r u_n),    p_t = the point of the disc of radius mu p_n nearest to p_t - r u_t

with r > 0. Newton's method takes the `reach` of a contact for r, the reciprocal 1 / w of its mean compliance: an error
of p then changes r u about as much. Residuals are those of contact_geometry/cone.py, with an r of their own.

A problem may have a `grip` per contact: impulses along its normal that are given already, and are not among p, hold it
with this friction. The radius of the disc is then mu p_n + grip, and a contact with p_n = 0 still has a disc.
"""

from __future__ import annotations

from collections.abc import Sequence
from functools import cached_property

from ...algebra.definite import Definite
from ...algebra.scalars import Scalar, absolute, maximum, where
from ...compiler.ir.program import Array, Program
from ...compiler.ir.trace import Trace
from ...contact_geometry.cone import Probe, force_unit, length, probe, residual, speed_unit

IMPULSE = "impulse"
"""The name of the impulses among the inputs."""

GRIP = "grip"
"""The name of the friction by impulses that are given, among the inputs of problems that have such."""

PLAY = {"float64": 1e-9, "float32": 1e-4}
"""The least part of the mean compliance that is added to the diagonal of Newton's matrix. Where contacts are redundant,
such as four legs of a rigid table, W is singular. The residual itself is that without it, so the solution is not
changed."""

CAUTION = 0.1
"""The same part far from the solution, relative to the residual relative to the velocities. Where redundant contacts
slip, steps of Newton's method are otherwise far too long: four corners of a box that lands took up to 0.3 of the
velocities as residual. From 0.1 to 1, 97 to 98 percent of such problems are solved within 40 steps."""

BOUND = {"float64": 1e10, "float32": 1e5}
"""The largest impulse of a contact, relative to that which stops it if it moves alike in all directions. Larger ones
are those of contacts that have no solution, as where a body is wedged on a single slide; it then slides without
friction, with a residual. Impulses of a leg on a small mass moment of inertia are larger by the condition number of W:
the bound is that at which PLAY hides the smallest eigenvalue."""

STIFF = 1e20
"""The diagonal of an open contact in Newton's matrix, relative to the mean compliance: its impulse does not change."""


def cone_inputs(count: int) -> tuple[Array, ...]:
    """Return the cone problem of a number of contacts, with impulses as a guess of its solution.

    The Programs of this module take these inputs, and the `size` V of the velocities [m/s], above zero.
    """
    n = 3 * count
    return (
        Array("W", (n, n)),
        Array("b", (n,)),
        Array("friction", (count,)),
        Array("reach", (count,)),
        Array(IMPULSE, (n,)),
    )


def residual_program(count: int, dtype: str = "float64", *, grips: bool = False) -> Program:
    """Return (...) -> (normal, tangent, u, lack): the largest residuals, velocities, and residual impulses."""
    cone = _Cone(count, grips, dtype)
    normal, tangent = cone.residuals
    return cone.program("residual", normal=[normal], tangent=[tangent], u=cone.u, lack=cone.lack)


def contact_residual_program(dtype: str = "float64", *, grips: bool = False) -> Program:
    """Return (p, u, friction, reach, size, loads[, grip]) -> (lack, normal, tangent) of one contact.

    `loads` is the largest w |p| of all contacts.
    """
    sizes = {IMPULSE: 3, "u": 3, "friction": 1, "reach": 1, "size": 1, "loads": 1} | ({GRIP: 1} if grips else {})
    inputs, trace = tuple(Array(name, (size,)) for name, size in sizes.items()), Trace()
    p, u, (mu,), (reach,), (size,), (loads,), *rest = (
        [trace.input(g, k) for k in range(a.size)] for g, a in enumerate(inputs)
    )
    grip = rest[0][0] if grips else None
    unit = force_unit(length(p), 1.0 / reach, size)
    normal, tangent = residual(probe(p, u, mu, unit / speed_unit([loads], size, dtype), grip).lacks(p), unit)
    lack = probe(p, u, mu, reach, grip).lacks(p)
    outputs = (Array("lack", (3,)), Array("normal", (1,)), Array("tangent", (1,)))
    return Program.of_trace("contact_residual", inputs, outputs, trace, [list(lack), [normal], [tangent]])


def sticking_program(count: int, dtype: str, *, grips: bool = False) -> Program:
    """Return (...) -> (impulse, slides): a step of Newton's method for contacts that are open or stick.

    Newton's matrix is then symmetric. A contact without an impulse so far sticks when it closes; `slides` is 1 if
    another one leaves its cone, for which the step is not meant, or if contacts cannot stick together, as those of a
    body on a single slide: impulses would be beyond all bounds.
    """
    cone, n = _Cone(count, grips, dtype), 3 * count
    M = [[cone.W[i][j] for j in range(i + 1)] for i in range(n)]
    wanted, shut, slides = [], [], 0.0
    for c, at in enumerate(cone.probes):
        closed, holds = at.shut, at.holds
        shut += [closed, holds, holds]
        loaded = closed & (cone.p[3 * c] > 0.0)
        leaves = (loaded | (holds & ~closed) if grips else loaded) & (at.radius < at.size)
        slides = where(leaves, 1.0, slides)
        mean = cone.compliance(c)
        stiff = mean * STIFF
        for k in range(3 * c, 3 * c + 3):
            M[k][k] = M[k][k] + where(shut[k], mean * PLAY[dtype], stiff)
            wanted.append(where(shut[k], -cone.u[k], -(stiff * cone.p[k])))
    factors = Definite(M, [0.0] * n, [1.0] * n)
    change = factors.solve(wanted)
    left = [where(shut[k], x * (cone.compliance(k // 3) * PLAY[dtype]), 0.0) for k, x in enumerate(change)]
    change = [x + more for x, more in zip(change, factors.solve(left), strict=True)]  # as if without play
    p = [where(shut[k], cone.p[k] + change[k], 0.0) for k in range(n)]
    most = maximum(*(absolute(x) * cone.compliance(k // 3) for k, x in enumerate(p)))
    slides = where(most < cone.size * BOUND[dtype], slides, 1.0)
    return cone.program("sticking", impulse=p, slides=[slides])


def pair_program(count: int, dtype: str, *, grips: bool = False) -> Program:
    """Return (...) -> (W, b, friction, reach, impulse, size[, grip], first, second, few): the problem of two contacts.

    They are those that would close without impulses, or have one already; beside a single one, a neighbor is the other.
    `first` and `second` are 1 at their places. `few` is 1 if there are no others.
    """
    cone = _Cone(count, grips, dtype)
    may = [(cone.b[3 * c] < 0.0) | (cone.p[3 * c] > 0.0) for c in range(count)]
    may = [x | (cone.grip[c] > 0.0) for c, x in enumerate(may)] if cone.grip else may
    before: list[Scalar] = [0.0]
    for x in may:
        before.append(before[-1] + where(x, 1.0, 0.0))
    single, last = before[-1] < 1.5, count - 1
    lead = [x & (n < 0.5) for x, n in zip(may, before[:-1], strict=True)]
    follow = [x & (n > 0.5) & (n < 1.5) for x, n in zip(may, before[:-1], strict=True)]
    first, second = lead[:last], [(single & x) | y for x, y in zip(lead, follow[1:], strict=False)]
    first[-1], second[-1] = first[-1] | (single & may[last]), second[-1] | (single & may[last])

    def chosen(values: Sequence[Scalar], masks: Sequence[Scalar]) -> Scalar:
        found = values[-1]
        for x, mask in zip(reversed(values[:-1]), reversed(masks[:-1]), strict=True):
            found = where(mask, x, found)
        return found

    def of_both(values: Sequence[Scalar], size: int) -> list[Scalar]:
        rows = [values[c * size : (c + 1) * size] for c in range(count)]
        one = [chosen(x, first) for x in zip(*rows[:-1], strict=True)]
        return one + [chosen(x, second) for x in zip(*rows[1:], strict=True)]

    def entry(i: int, j: int) -> Scalar:
        i, j = max(i, j), min(i, j)
        if i < 3:
            return chosen([cone.W[3 * c + i][3 * c + j] for c in range(last)], first)
        if j >= 3:
            return chosen([cone.W[3 * c + i - 3][3 * c + j - 3] for c in range(1, count)], second)
        columns = [[cone.W[3 * c + i - 3][3 * a + j] for c in range(a + 1, count)] for a in range(last)]
        return chosen([chosen(x, second[a:]) for a, x in enumerate(columns)], first)

    zero: list[Scalar] = [0.0]
    ones = [[where(x, 1.0, 0.0) for x in masks] for masks in (first, second)]
    outputs = {
        "W": [entry(i, j) for i in range(6) for j in range(6)],
        "b": of_both(cone.b, 3), "friction": of_both(cone.mu, 1), "reach": of_both(cone.reach, 1),
        IMPULSE: of_both(cone.p, 3), "size": [cone.size], **({GRIP: of_both(cone.grip, 1)} if cone.grip else {}),
        "first": ones[0] + zero, "second": zero + ones[1], "few": [where(before[-1] < 2.5, 1.0, 0.0)],
    }  # fmt: skip
    return cone.program("pair", **outputs)


def newton_program(count: int, dtype: str, *, grips: bool = False) -> Program:
    """Return (...) -> impulse: a step of Newton's method for contacts of any kind, without exchange of rows."""
    cone = _Cone(count, grips, dtype)
    play = caution(*cone.residuals, dtype)
    A: list[list[Scalar]] = []
    for c, at in enumerate(cone.probes):
        first, one = 3 * c, 1.0 + play
        shut, holds, slips = at.shut, at.holds, at.radius < at.size
        inverse = where(slips, 1.0, 0.0) / where(slips, at.size, 1.0)
        part, e1, e2 = where(slips, at.radius * inverse, 1.0), at.x * inverse, at.y * inverse
        # the derivative of the nearest point: part (1 - e e^T) along the tangents, mu e along the normal
        T11, T12, T22 = part * (1.0 - e1 * e1), -(part * e1 * e2), part * (1.0 - e2 * e2)
        r = where(shut, cone.reach[c], 0.0)
        rt = where(holds, cone.reach[c], 0.0)
        wn, ws, wt = cone.W[first : first + 3]
        own = [
            [r * a for a in wn],
            [rt * T11 * a + rt * T12 * b for a, b in zip(ws, wt, strict=True)],
            [rt * T12 * a + rt * T22 * b for a, b in zip(ws, wt, strict=True)],
        ]
        mu = cone.mu[c]
        added = [
            [where(shut, play, 1.0), 0.0, 0.0],
            [where(shut, -(mu * e1), 0.0), where(holds, one - T11, 1.0), where(holds, -T12, 0.0)],
            [where(shut, -(mu * e2), 0.0), where(holds, -T12, 0.0), where(holds, one - T22, 1.0)],
        ]
        for row, more in zip(own, added, strict=True):
            row[first : first + 3] = [a + b for a, b in zip(row[first : first + 3], more, strict=True)]
        A += own
    return cone.program("newton", impulse=[p - z for p, z in zip(cone.p, solve_small(A, cone.lack), strict=True)])


def caution(normal: Scalar, tangent: Scalar, dtype: str) -> Scalar:
    """Return the part that is added to the diagonal of Newton's matrix, for the residuals."""
    part = maximum(normal, tangent) * CAUTION
    return where(part < PLAY[dtype], PLAY[dtype], where(part < 1.0, part, 1.0))


class _Cone:
    """The inputs of a cone problem as traced scalars."""

    def __init__(self, count: int, grips: bool, dtype: str) -> None:
        more = (Array(GRIP, (count,)),) if grips else ()
        self.inputs, self.trace, self.count = (*cone_inputs(count), Array("size", (1,)), *more), Trace(), count
        n = 3 * count
        W, self.b, self.mu, self.reach, self.p, (self.size,), *rest = (
            [self.trace.input(g, k) for k in range(a.size)] for g, a in enumerate(self.inputs)
        )
        self.grip: list[Scalar] | None = rest[0] if grips else None
        self.W, self.dtype = [[W[max(i, j) * n + min(i, j)] for j in range(n)] for i in range(n)], dtype

    @cached_property
    def u(self) -> list[Scalar]:
        """The velocities u = W p + b."""
        return [
            sum((w * p for w, p in zip(row, self.p, strict=True)), start=b)
            for row, b in zip(self.W, self.b, strict=True)
        ]

    @cached_property
    def probes(self) -> list[Probe]:
        """The points p - r u of all contacts, by their reach."""
        return [self.probe(c, self.reach[c]) for c in range(self.count)]

    @cached_property
    def lack(self) -> list[Scalar]:
        """The differences between the impulses and those by the equations."""
        return [x for c, at in enumerate(self.probes) for x in at.lacks(self.impulse(c))]

    @cached_property
    def residuals(self) -> tuple[Scalar, Scalar]:
        """The largest residual along normals and along tangents."""
        sizes, w = [length(self.impulse(c)) for c in range(self.count)], [*map(self.compliance, range(self.count))]
        speed = speed_unit([x * size for x, size in zip(w, sizes, strict=True)], self.size, self.dtype)
        inverse, found = 1.0 / speed, []
        for c, size in enumerate(sizes):
            unit = force_unit(size, w[c], self.size)
            found.append(residual(self.probe(c, unit * inverse).lacks(self.impulse(c)), unit))
        normals, tangents = zip(*found, strict=True)
        return maximum(*normals), maximum(*tangents)

    def impulse(self, c: int) -> list[Scalar]:
        """Return the impulse of a contact."""
        return self.p[3 * c : 3 * c + 3]

    def probe(self, c: int, r: Scalar) -> Probe:
        """Return the point p - r u of a contact."""
        return probe(self.impulse(c), self.u[3 * c : 3 * c + 3], self.mu[c], r, self.grip and self.grip[c])

    def compliance(self, c: int) -> Scalar:
        """Return the mean compliance w of a contact."""
        return (self.W[3 * c][3 * c] + self.W[3 * c + 1][3 * c + 1] + self.W[3 * c + 2][3 * c + 2]) * (1.0 / 3.0)

    def program(self, name: str, **outputs: list[Scalar]) -> Program:
        """Return the Program of some outputs."""
        arrays = [Array(label, (len(x),)) for label, x in outputs.items()]
        return Program.of_trace(name, self.inputs, arrays, self.trace, list(outputs.values()))


def solve_small(A: list[list[Scalar]], b: Sequence[Scalar]) -> list[Scalar]:
    """Return x with A x = b by elimination without exchange of rows; a pivot of zero gives infinities or NaN."""
    n, A, x = len(b), [list(row) for row in A], list(b)
    for c in range(n):
        inverse = 1.0 / A[c][c]
        for i in range(c + 1, n):
            factor = A[i][c] * inverse
            x[i] = x[i] - factor * x[c]
            for j in range(c + 1, n):
                A[i][j] = A[i][j] - factor * A[c][j]
        A[c][c] = inverse
    for i in reversed(range(n)):
        for j in range(i + 1, n):
            x[i] = x[i] - A[i][j] * x[j]
        x[i] = x[i] * A[i][i]
    return x
