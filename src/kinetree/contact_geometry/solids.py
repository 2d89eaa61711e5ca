"""Solids that shapes touch: spheres, capsules and boxes, each fixed to the ground or to another body.

A shape meets a solid at a fixed number of places, so that the code of time steps has a fixed shape. A place that does
not exist at a position has the gap FAR: the point where two edges cross, for example, while they do not cross. The
nearest points of disjoint solids are always among the places, and so are the corners of the polygon in which two faces
lie on each other. See docs/theory/contact.md.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

from ..algebra.scalars import Scalar, absolute, is_number, logical_and, logical_not, logical_or, maximum, where
from ..algebra.vectors import ZERO, Matrix, Vector, add, cross, dot, scale, sub, times, to_matrix, to_vector, transpose
from .surfaces import FAR

if TYPE_CHECKING:
    from . import Feature

MARGIN = 1e-6
"""The distance beyond the border of a face, relative to its half length, up to which a corner touches it: corners of
equal boxes, one exactly on the other, lie on the border up to rounding."""
STRICT = 1e-7
"""The part of an edge next to each of its ends, relative to its half length, in which no other edge crosses it: corners
touch there. It is less than MARGIN, so that one of the two holds everywhere."""
PARALLEL = 1e-7
"""The sine of the angle between edges or rods below which they are parallel: they cross nowhere, and touch with their
ends. The ends are then within MARGIN of the border."""
OBLIQUE = 0.2
"""The sine by which the normal of two edges may lie outside of the normals of their neighboring faces.

Edges of a box that is about to lie flat are then known before they touch."""
TINY = 1e-12
"""The distance [m] between a center and a solid below which their difference has no direction."""


@dataclass(frozen=True)
class Moving:
    """A scalar and its rate, which all operations carry along."""

    x: Scalar
    d: Scalar = 0.0

    def __add__(self, other):
        """Return the sum."""
        other = _moving(other)
        return Moving(self.x + other.x, self.d + other.d)

    __radd__ = __add__

    def __neg__(self):
        """Return the negative."""
        return Moving(-self.x, -self.d)

    def __sub__(self, other):
        """Return the difference."""
        return self + (-_moving(other))

    def __rsub__(self, other):
        """Return the difference."""
        return _moving(other) - self

    def __mul__(self, other):
        """Return the product."""
        other = _moving(other)
        return Moving(self.x * other.x, self.d * other.x + self.x * other.d)

    __rmul__ = __mul__

    def __truediv__(self, other):
        """Return the quotient."""
        other = _moving(other)
        part = 1.0 / other.x
        x = self.x * part
        return Moving(x, (self.d - x * other.d) * part)

    def sqrt(self):
        """Return the square root of a value above zero."""
        x = self.x**0.5 if is_number(self.x) else self.x.sqrt()
        return Moving(x, self.d * (0.5 / x))


def _moving(x: Scalar) -> Moving:
    return x if isinstance(x, Moving) else Moving(x)


def _choose(condition: Scalar, yes: Scalar, no: Scalar) -> Moving:
    yes, no = _moving(yes), _moving(no)
    return Moving(where(condition, yes.x, no.x), where(condition, yes.d, no.d))


def _chosen(condition: Scalar, yes: Vector, no: Vector) -> Vector:
    return to_vector(_choose(condition, a, b) for a, b in zip(yes, no, strict=True))


def _clamped(x: Scalar, size: Scalar) -> Moving:
    """Return x, or the nearer one of -size and size."""
    x = _moving(x)
    return _choose(size < x.x, size, _choose(x.x < -size, -size, x))


def _sign(x: Scalar) -> Scalar:
    return where(x < 0.0, -1.0, 1.0)


def _all(*conditions: Scalar) -> Scalar:
    whole = conditions[0]
    for x in conditions[1:]:
        whole = logical_and(whole, x)
    return whole


@dataclass(frozen=True)
class Place:
    """A place where a shape meets a solid: the gap, the unit normal out of the solid, and the point of contact.

    Where it does not exist, its gap is FAR, and its point the origin of the shape, so that its velocity is bounded.
    """

    gap: Scalar
    n: Vector
    at: Vector

    def if_(self, exists: Scalar, origin: Vector) -> Place:
        """Return the place where a condition holds."""
        return Place(_choose(exists, self.gap, FAR), _chosen(exists, self.n, UP), _chosen(exists, self.at, origin))


UP: Vector = (0.0, 0.0, 1.0)


def _either(condition: Scalar, yes: Place, no: Place) -> Place:
    vectors = (_chosen(condition, *x) for x in ((yes.n, no.n), (yes.at, no.at)))
    return Place(_choose(condition, yes.gap, no.gap), *vectors)


def _beside(e: Vector, c: Vector, radius: Scalar, other: Scalar) -> Place:
    """Return the place of a ball about c, at a difference e from the center of the nearest ball of the solid."""
    square = dot(e, e)
    apart = TINY * TINY < square.x
    distance = _choose(apart, square, 1.0).sqrt()
    n = _chosen(apart, to_vector(x / distance for x in e), UP)
    return Place(_choose(apart, distance, 0.0) - radius - other, n, sub(c, scale(_moving(radius), n)))


# --- Balls: about the origin of a sphere, about points of a rod, or alone


def _halves(surface: Any) -> Vector:
    return to_vector(0.5 * x for x in surface.size)


def _ball_on_sphere(surface: Any, feature: Feature, c: Vector, R: Matrix) -> list[Place]:
    return [_beside(c, c, feature.radius, surface.size[0])]


def _ball_on_capsule(surface: Any, feature: Feature, c: Vector, R: Matrix) -> list[Place]:
    return [_near_rod(c, feature.radius, surface)]


def _near_rod(c: Vector, radius: Scalar, surface: Any) -> Place:
    foot = _clamped(c[2], 0.5 * surface.size[1])
    return _beside((c[0], c[1], c[2] - foot), c, radius, surface.size[0])


def _ball_on_box(surface: Any, feature: Feature, c: Vector, R: Matrix) -> list[Place]:
    return [_near_box(c, feature.radius, _halves(surface))]


def _near_box(c: Vector, radius: Scalar, half: Vector) -> Place:
    """Return the place of a ball on a box: on a face, an edge or a corner; on the nearest face if c is inside."""
    e = to_vector(x - _clamped(x, h) for x, h in zip(c, half, strict=True))
    return _either(TINY * TINY < dot(e, e).x, _beside(e, c, radius, 0.0), _on_face(c, radius, half, c))


def _point_on_box(surface: Any, feature: Feature, c: Vector, R: Matrix) -> list[Place]:
    half = _halves(surface)
    return [_on_face(c, 0.0, half, c).if_(_above_face(c, half, c), c)]


def _on_face(c: Vector, radius: Scalar, half: Vector, center: Vector, reach: Sequence[Scalar] = (0.0,) * 3) -> Place:
    """Return the place of a ball about c on the face of a box that separates most: see `_faces`."""
    n: Vector = to_vector(where(x, _sign(m.x), 0.0) for x, m in zip(_faces(half, center, reach), center, strict=True))
    size = sum(where(x, h, 0.0) for x, h in zip(_faces(half, center, reach), half, strict=True))
    moving = to_vector(map(_moving, n))
    return Place(dot(moving, c) - size - radius, moving, sub(c, scale(_moving(radius), moving)))


def _faces(half: Vector, center: Vector, reach: Sequence[Scalar]) -> list[Scalar]:
    """Return for each axis whether its face separates a box most from a body about a center.

    `reach` is how far the body extends along each axis.
    """
    x, y, z = (absolute(m.x) - h - a for m, h, a in zip(center, half, reach, strict=True))
    first = logical_not(logical_or(x < y, x < z))
    second = logical_and(logical_not(first), logical_not(y < z))
    return [first, second, logical_not(logical_or(first, second))]


def _above_face(c: Vector, half: Vector, center: Vector, reach: Sequence[Scalar] = (0.0,) * 3) -> Scalar:
    """Return whether a point is above the face that separates most, or no deeper under it than the box's center."""
    found = []
    for face, x, h, m in zip(_faces(half, center, reach), c, half, center, strict=True):
        beside = absolute(x.x) < h * (1.0 + MARGIN)
        found.append(logical_or(logical_and(face, 0.0 < x.x * _sign(m.x)), logical_and(logical_not(face), beside)))
    return _all(*found)


# --- Rods: the axes of capsules


def _rod_on_sphere(surface: Any, feature: Feature, c: Vector, R: Matrix) -> list[Place]:
    a = _column(R, 2)
    p = add(c, scale(_clamped(-dot(c, a), feature.half[2]), a))
    return [_beside(p, p, feature.radius, surface.size[0])]


def _rod_on_capsule(surface: Any, feature: Feature, c: Vector, R: Matrix) -> list[Place]:
    """Return the nearest points of two rods, and the ends of the part of one that is beside the other.

    An end of this part is an end of one rod, with the point of the other that is nearest to it.
    """
    a, length, other = _column(R, 2), feature.half[2], 0.5 * surface.size[1]
    radius, border = feature.radius, STRICT * length
    k, along = a[2], dot(a, c)
    square = 1.0 - k * k
    crosses = PARALLEL * PARALLEL < square.x
    s = _clamped((k * c[2] - along) / _choose(crosses, square, 1.0), length)
    t = _clamped(c[2] + k * s, other)
    s = _clamped(k * t - along, length)
    sign = _sign(k.x)
    found, ends = [], []
    for side in (-1.0, 1.0):
        t_end = side * sign * other
        x = _clamped(k * t_end - along, length)
        p, mine = add(c, scale(x, a)), add(c, scale(_moving(side * length), a))
        ended = logical_not(absolute(x.x) < length)
        place = _beside((p[0], p[1], p[2] - t_end), p, radius, surface.size[0])
        found.append(_either(ended, _near_rod(mine, radius, surface), place))
        ends.append(x.x)
    beside = ends[0] + border < ends[1]
    within = _all(crosses, ends[0] + border < s.x, s.x < ends[1] - border)
    p = add(c, scale(s, a))
    first = _beside((p[0], p[1], p[2] - t), p, radius, surface.size[0])
    return [first.if_(logical_or(within, logical_not(beside)), c), *(x.if_(beside, c) for x in found)]


def _rod_on_box(surface: Any, feature: Feature, c: Vector, R: Matrix) -> list[Place]:
    """Return the point of a rod nearest to a box, if it is beside an edge, and the ends of the part above a face.

    These are ends of the rod, or places where it crosses the border of the face.
    """
    half, a, length = _halves(surface), _column(R, 2), feature.half[2]
    p = add(c, scale(_nearest_of_rod(c, a, length, half), a))
    faces = _faces(half, p, (0.0,) * 3)
    up = to_vector(where(face, _sign(x.x), 0.0) for face, x in zip(faces, p, strict=True))
    found, above, limits = [], True, []
    for x, d, h in zip(c, a, half, strict=True):
        leans = TINY < absolute(d.x)
        limits.append((leans, tuple((y * h * _sign(d.x) - x.x) / where(leans, d.x, 1.0) for y in (-1.0, 1.0))))
    for face, (leans, _), x, h in zip(faces, limits, c, half, strict=True):
        above = logical_and(above, logical_or(logical_or(face, leans), absolute(x.x) < h * (1.0 + MARGIN)))
    ends = []
    for n, side in enumerate((-1.0, 1.0)):
        end, out = side * length, [0.0, 0.0, 0.0]
        for j, (face, (leans, at)) in enumerate(zip(faces, limits, strict=True)):
            sooner = _all(leans, logical_not(face), side * at[n] < side * end)
            end = where(sooner, at[n], end)
            out = [where(sooner, side * _sign(a[j].x) if i == j else 0.0, y) for i, y in enumerate(out)]
        ends.append(end)
        tip = _near_box(add(c, scale(_moving(side * length), a)), feature.radius, half)
        crosses = 0.5 < absolute(out[0]) + absolute(out[1]) + absolute(out[2])
        found.append(_either(crosses, _over_border(c, a, feature, half, up, to_vector(out)), tip))
    above = logical_and(above, ends[0] + STRICT * length < ends[1])
    beyond = [where(h * (1.0 + STRICT) < absolute(x.x), 1.0, 0.0) for x, h in zip(p, half, strict=True)]
    corner = 1.5 < beyond[0] + beyond[1] + beyond[2]
    first = _near_box(p, feature.radius, half).if_(logical_or(corner, logical_not(above)), c)
    return [first, *(x.if_(above, c) for x in found)]


def _over_border(c: Vector, a: Vector, rod: Feature, half: Vector, up: Vector, out: Vector) -> Place:
    """Return the place of a rod that crosses an edge of a box, between the faces with the normals `up` and `out`."""
    b = cross(up, out)
    side = to_vector((x + y) * h for x, y, h in zip(up, out, half, strict=True))
    s, n, D = _between_lines(c, a, side, b)
    away = dot(n, up).x < 0.0
    n = _chosen(away, to_vector(-x for x in n), n)
    length, radius = rod.half[2], _moving(rod.radius)
    t = dot(D, b).x + s.x * dot(a, b).x
    size = sum((absolute(x) * h for x, h in zip(b, half, strict=True)), start=0.0)
    crosses = logical_and(absolute(s.x) < length * (1.0 + MARGIN), absolute(t) < size * (1.0 + MARGIN))
    return Place(dot(n, D) - radius, n, sub(add(c, scale(s, a)), scale(radius, n))).if_(crosses, c)


def _between_lines(c: Vector, a: Vector, side: Vector, b: Vector) -> tuple[Moving, Vector, Vector]:
    """Return where a line through c along a is nearest to one along b, their normal, and c from the other line."""
    k, D = _moving(dot(a, b)), sub(c, side)
    square = 1.0 - k * k
    square = _choose(PARALLEL * PARALLEL < square.x, square, 1.0)
    size = square.sqrt()
    return (k * dot(D, b) - dot(a, D)) / square, to_vector(_moving(x) / size for x in cross(a, b)), D


def _nearest_of_rod(c: Vector, a: Vector, length: Scalar, half: Vector) -> Moving:
    """Return the parameter of the point of a rod that is nearest to a box.

    The derivative of half the squared distance is piecewise linear, and does not decrease. Its zero lies between the
    last of the ends of its pieces with a negative value, and the first one without.
    """
    ends: list[Scalar] = [Moving(-length), Moving(length)]
    for x, d, h in zip(c, a, half, strict=True):
        leans = TINY < absolute(d.x)
        ends += [_clamped(_choose(leans, (_moving(y) - x) / _choose(leans, d, 1.0), 0.0), length) for y in (-h, h)]
    slopes = []
    for s in ends:
        p = add(c, scale(s, a))
        slopes.append(dot(a, to_vector(x - _clamped(x, h) for x, h in zip(p, half, strict=True))))
    low, below = ends[0], slopes[0]
    high, over = ends[1], slopes[1]
    for s, slope in zip(ends[2:], slopes[2:], strict=True):
        falls = slope.x < 0.0
        later = logical_and(falls, low.x < s.x)
        low, below = _choose(later, s, low), _choose(later, slope, below)
        sooner = logical_and(logical_not(falls), s.x < high.x)
        high, over = _choose(sooner, s, high), _choose(sooner, slope, over)
    rise = over - below
    turns = _all(below.x < 0.0, 0.0 < over.x, 0.0 < rise.x)
    between = low - below * (high - low) / _choose(turns, rise, 1.0)
    return _choose(turns, between, _choose(below.x < 0.0, high, low))


# --- Boxes: corners of each on faces of the other, and edges that cross


def _column(R: Matrix, k: int) -> Vector:
    return to_vector(row[k] for row in R)


def _corner_on_box(surface: Any, feature: Feature, c: Vector, R: Matrix) -> list[Place]:
    """Return the place of a corner of the shape on the face of the solid that separates the two most."""
    half = _halves(surface)
    reach = _reach(R, feature.half)
    p = add(c, times(R, feature.mark))
    found = _on_face(p, 0.0, half, c, reach)
    counts = _counts(found, half, feature.half, c, R)
    return [found.if_(logical_and(counts, _above_face(p, half, c, reach)), c)]


def _reach(R: Matrix, half: Vector) -> list[Scalar]:
    """Return how far a box extends along each of the axes in which R is its rotation."""
    return [sum((absolute(x.x) * h for x, h in zip(row, half, strict=True)), start=0.0) for row in R]


def _counts(place: Place, half: Vector, own: Vector, c: Vector, R: Matrix) -> Scalar:
    """Return whether a gap is above zero, or two boxes overlap along it little more than along a normal of a face."""
    turned = transpose(R)
    across = [absolute(x.x) - h - y for x, h, y in zip(c, half, _reach(R, own), strict=True)]
    center = times(turned, c)
    across += [absolute(x.x) - h - y for x, h, y in zip(center, own, _reach(turned, half), strict=True)]
    return logical_or(0.0 < place.gap.x, 2.0 * maximum(*across) - MARGIN * maximum(*half) < place.gap.x)


def _socket_on_box(surface: Any, feature: Feature, c: Vector, R: Matrix) -> list[Place]:
    """Return the place of a corner of the solid on the face of the shape that separates the two most."""
    half, turned = _halves(surface), transpose(R)
    corner = to_vector(_moving(m * h) for m, h in zip(feature.mark, half, strict=True))
    center = times(turned, to_vector(-x for x in c))
    p = times(turned, sub(corner, c))
    reach = _reach(turned, half)
    found = _on_face(p, 0.0, feature.half, center, reach)
    n = to_vector(-x for x in times(R, found.n))
    counts = _counts(found, half, feature.half, c, R)
    return [Place(found.gap, n, corner).if_(logical_and(counts, _above_face(p, feature.half, center, reach)), c)]


def _edges_on_box(surface: Any, feature: Feature, c: Vector, R: Matrix) -> list[Place]:
    """Return the places where the four parallel edges of the shape along z may cross edges of the solid.

    The normal determines one of the two faces beside an edge. The places are the edges of that face, in an order that
    does not depend on which of the two it is: by the product of the signs of the edge's position.
    """
    return [
        _crossing(_halves(surface), feature.half, c, R, j, mine, other)
        for j in range(3)
        for other in (1.0, -1.0)
        for mine in (1.0, -1.0)
    ]


def _crossing(half: Vector, own: Vector, c: Vector, R: Matrix, j: int, mine: float, other: float) -> Place:
    """Return the place of an edge of the shape along its z axis and an edge of the solid along axis j."""
    u, v = (j + 1) % 3, (j + 2) % 3
    a, b = _column(R, 2), to_vector(1.0 if i == j else 0.0 for i in range(3))
    k = a[j]
    crosses = PARALLEL * PARALLEL < 1.0 - k.x * k.x
    n = _between_lines(c, a, ZERO, b)[1]
    away = dot(n, c).x < 0.0
    n = _chosen(away, to_vector(-x for x in n), n)
    inward = to_vector(-x for x in times(transpose(R), n))
    su, sv = _signs(n[u].x, n[v].x, other)
    sx, sy = _signs(inward[0].x, inward[1].x, mine)
    edge = add(c, times(R, (sx * own[0], sy * own[1], 0.0)))
    side = to_vector({u: su * half[u], v: sv * half[v]}.get(i, 0.0) for i in range(3))
    s, _, D = _between_lines(edge, a, side, b)
    t = D[j] + k * s
    at, gap = add(edge, scale(s, a)), dot(n, D)
    depth = [at[i].x * sign for i, sign in ((u, su), (v, sv))]
    inside = _all(*(x < half[i] * (1.0 + MARGIN) for x, i in zip(depth, (u, v), strict=True)))
    exists = _all(
        crosses,
        absolute(s.x) < own[2] * (1.0 - STRICT),
        absolute(t.x) < half[j] * (1.0 - STRICT),
        *(-OBLIQUE < x * sign for x, sign in ((n[u].x, su), (n[v].x, sv), (inward[0].x, sx), (inward[1].x, sy))),
        *(-half[i] < x for x, i in zip(depth, (u, v), strict=True)),
        logical_or(0.0 < gap.x, inside),
    )
    found = Place(gap, n, at)
    return found.if_(logical_and(exists, _counts(found, half, own, c, R)), c)


def _signs(x: Scalar, y: Scalar, product: float) -> tuple[Scalar, Scalar]:
    """Return the signs of an edge on the face of the larger one of two components of a normal, with a product."""
    first = absolute(y) < absolute(x)
    return where(first, _sign(x), product * _sign(y)), where(first, product * _sign(x), _sign(y))


# --- The kinds of solids


Meets = Callable[..., list[Place]]


@dataclass(frozen=True)
class SolidKind:
    """A solid: the meaning of its sizes, and by sort of feature the labels of its places and their function."""

    sizes: tuple[str, ...]
    meets: dict[str, tuple[tuple[str, ...], Meets]]


ONE, ROD, CROSSINGS = ("",), ("nearest", "end1", "end2"), tuple(str(k + 1) for k in range(12))
"""The labels of the places of features with one, of rods, and of edges."""

SOLIDS: dict[str, SolidKind] = {
    "sphere": SolidKind(
        ("radius",),
        {"point": (ONE, _ball_on_sphere), "ball": (ONE, _ball_on_sphere), "rod": (ONE, _rod_on_sphere)},
    ),
    "capsule": SolidKind(
        ("radius", "length"),
        {"point": (ONE, _ball_on_capsule), "ball": (ONE, _ball_on_capsule), "rod": (ROD, _rod_on_capsule)},
    ),
    "box": SolidKind(
        ("x", "y", "z"),
        {
            "point": (ONE, _point_on_box),
            "ball": (ONE, _ball_on_box),
            "rod": (ROD, _rod_on_box),
            "corner": (ONE, _corner_on_box),
            "socket": (ONE, _socket_on_box),
            "edges": (CROSSINGS, _edges_on_box),
        },
    ),
}
"""The solids by name, which are shapes too."""


def places(surface: Any, feature: Feature, r: Vector, R: Matrix, w: Vector, v: Vector) -> list[Place]:
    """Return where a feature meets a solid, for position, rotation and twist of its frame in that of the solid."""
    swung = transpose(to_matrix(cross(w, column) for column in transpose(R)))
    turned = zip(feature.turned(R), feature.turned(swung), strict=True)
    moving = to_matrix(map(Moving, row, rates) for row, rates in turned)
    origin = to_vector(map(Moving, r, v))
    _, meets = SOLIDS[surface.kind].meets[feature.sort]
    return meets(surface, feature, add(origin, times(moving, feature.at)), moving)
