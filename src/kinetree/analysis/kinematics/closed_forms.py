"""Closed forms of inverse kinematics: arms with a spherical wrist, three joints to a point, planar arms.

They return candidates, at zero displacement plus the joints' positions, for one target. Each is refined and checked by
forward kinematics afterwards.
"""

from __future__ import annotations

import math
from dataclasses import dataclass
from typing import Any

import numpy as np

from ...algebra.scalars import Numbers
from ...joints import kind
from ...joints.protocol import ROTATION
from ...model.mechanism import Mechanism
from ...model.scales import characteristic_length
from ...model.topology import path
from ...runtime.compiled import CompiledMechanism

# --- The joints between the ground and a frame as screws at zero displacement: axes and points in the ground's frame


@dataclass(frozen=True)
class Screw:
    """A joint with one degree of freedom: its axis, a point on it (of a rotation), and its entry in q."""

    axis: Numbers
    point: Numbers
    rotates: bool
    place: int


@dataclass(frozen=True)
class ScrewChain:
    """The screws from the ground to a frame at zero displacement, the frame's pose there, and the unit of lengths."""

    screws: tuple[Screw, ...]
    home: Numbers
    length: float


def screw_chain(system: CompiledMechanism, frame: str, parameters: Numbers | None) -> ScrewChain | None:
    """Return the chain to a frame, for one set of parameters; None if its joints are not rotations and translations.

    There is none if loops or couplings make its joints depend on each other.
    """
    m = system.mechanism
    moving = moving_joints(m, frame)
    if moving is None or any(kind(m.joints[k].kind).AXIAL is None for k in moving):
        return None
    more: dict[str, Any] = {} if parameters is None else {"parameters": parameters}
    q = system.neutral()
    q[[m.q_slices[k].start for k in moving]] = 0.0
    home, J = system.pose(q, frame, **more), system.jacobian(q, frame, **more)
    screws = []
    for k in moving:
        w, v = J[:3, m.v_slices[k].start], J[3:, m.v_slices[k].start]
        rotates = kind(m.joints[k].kind).AXIAL == ROTATION
        point = home[:3, 3] + np.cross(w, v)  # v = w x (origin - point)
        screws.append(Screw(w if rotates else v, point, rotates, m.q_slices[k].start))
    return ScrewChain(tuple(screws), home, characteristic_length(m))


def moving_joints(m: Mechanism, frame: str) -> list[int] | None:
    """Return the joints that move between the ground and a frame; None if they depend on each other or on others."""
    on = [k for k in path(m, m.body_indices[m.frame(frame).body]) if kind(m.joints[k].kind).NV]
    names = {m.joints[k].name for k in on}
    coupled = {name for x in m.couplings for name in (x.joint, *(t for t, _ in x.terms))}
    return None if m.loops or names & coupled else on


def rotate_about(axis: Numbers, angle: float, x: Numbers) -> Numbers:
    """Return a vector rotated about a unit axis through the origin."""
    along = axis * (axis @ x)
    return along + (x - along) * np.cos(angle) + np.cross(axis, x) * np.sin(angle)


def angle_about(axis: Numbers, a: Numbers, b: Numbers) -> float:
    """Return the angle about a unit axis from vector a to vector b; zero if one of them is along the axis."""
    a, b = a - axis * (axis @ a), b - axis * (axis @ b)
    if min(np.linalg.norm(a), np.linalg.norm(b)) < 1e-12 * max(np.linalg.norm(a), np.linalg.norm(b), 1e-300):
        return 0.0
    return float(np.arctan2(axis @ np.cross(a, b), a @ b))


def feet(a: Screw, b: Screw) -> tuple[Any, Any]:
    """Return the points of two axes that are nearest to each other; of parallel ones, across from the point of b."""
    between, c = b.point - a.point, float(a.axis @ b.axis)
    if 1.0 - c * c < 1e-18:
        return a.point + a.axis * (a.axis @ between), b.point
    s = (a.axis @ between - c * (b.axis @ between)) / (1.0 - c * c)
    return a.point + s * a.axis, b.point + (s * c - b.axis @ between) * b.axis


# --- All positions of three joints that bring a point to another: two rotations, then a rotation or a translation.
#
# The distances of the point from axis 1 and along it do not change by joint 1, and those about axis 2 do not by joint
# 2. With x the point after joints 3 and 2, relative to axis 2, both conditions of axis 1 are linear in its two
# components perpendicular to axis 2. Their known length gives a polynomial for joint 3, of degree 4 in exp(i q3) or in
# q3. Where the axes 1 and 2 are parallel or intersect, one of the conditions alone determines joint 3.

PARALLEL = 1e-9
"""The sine of the angle, and the distance in characteristic lengths, below which axes are parallel or intersect."""
Polynomial = Any
"""Coefficients of a function of joint 3: of powers of exp(i q3) from -k to k if it rotates, else of powers of q3."""
REAL = 1e-5
"""The distance from the unit circle, or from the real axis, of roots that count as real. Two equal solutions are off by
the square root of rounding errors. Candidates that are none fail the check by forward kinematics."""
CLAMP = 1e-9
"""The excess over 1 of a cosine that counts as 1."""


def position_solutions(screws: tuple[Screw, ...], x: Numbers, p: Numbers, length: float) -> list[Numbers] | None:
    """Return all (q1, q2, q3) that move point x, given at zero displacement, to p; None if there are infinitely many.

    The first two screws are rotations.
    """
    first, second, third = screws
    o1, o2 = feet(first, second)
    e1, e2, D = first.axis, second.axis, o2 - o1
    u, v = _perpendicular(e2)
    d = _powers(third, x - o2, o2)  # the point relative to o2, as polynomials
    du, dv, dz = (w @ d for w in (u, v, e2))
    square = _sum(*(np.convolve(a, a) for a in (du, dv, dz)))
    one = _one(du)
    h, r = float((p - o1) @ e1), float((p - o1) @ (p - o1))
    conditions = [
        ((u @ e1, v @ e1), _sum((h - D @ e1) * one, -(e2 @ e1) * dz)),
        (
            (u @ D / length, v @ D / length),
            _sum((r - D @ D) / (2 * length) * _one(square), -square / (2 * length), -(e2 @ D) / length * dz),
        ),
    ]
    strong = [math.hypot(*row) > PARALLEL for row, _ in conditions]
    if not any(strong):
        return None
    if all(strong):
        V = np.linalg.inv(np.array([row for row, _ in conditions]))
        X, Y = (_sum(V[i, 0] * conditions[0][1], V[i, 1] * conditions[1][1]) for i in range(2))
        circle = _sum(np.convolve(X, X), np.convolve(Y, Y), -np.convolve(du, du), -np.convolve(dv, dv))
        thirds = _roots(circle, third.rotates)
        candidates = None if thirds is None else [(q3, _at(X, q3, third), _at(Y, q3, third)) for q3 in thirds]
    else:
        weak, (row, side) = conditions[strong.index(False)][1], conditions[strong.index(True)]
        thirds = _roots(weak, third.rotates)
        candidates = (
            None
            if thirds is None
            else [
                (q3, *xy)
                for q3 in thirds
                for xy in _on_circle(row, _at(side, q3, third), _at(du, q3, third), _at(dv, q3, third))
            ]
        )
    if candidates is None:
        return None
    out = []
    for q3, X3, Y3 in candidates:
        q2 = math.atan2(Y3, X3) - math.atan2(_at(dv, q3, third), _at(du, q3, third))
        there = rotate_about(e2, q2, _moved(third, q3, x) - o2) + o2
        out.append(np.array([angle_about(e1, there - o1, p - o1), q2, q3]))
    return out


def two_rotations(screws: tuple[Screw, ...], x: Numbers, p: Numbers) -> list[Numbers]:
    """Return all (q1, q2) of two parallel axes that move point x, given at zero displacement, to p."""
    first, second = screws
    o1, o2 = feet(first, second)
    e, D, d = second.axis, o2 - o1, x - o2
    u, v = _perpendicular(e)
    height, target = d @ e, p - o1
    flat = target - e * (target @ e)
    side = 0.5 * (flat @ flat - D @ D - d @ d + height * height)
    out = []
    for X, Y in _on_circle((u @ D, v @ D), float(side), float(d @ u), float(d @ v)):
        q2 = math.atan2(Y, X) - math.atan2(d @ v, d @ u)
        there = rotate_about(e, q2, d) + D
        out.append(np.array([angle_about(first.axis, there, target), q2]))
    return out


def three_rotations(axes: Numbers, R: Numbers) -> list[Numbers]:
    """Return all (a, b, c) with Rot(axis1, a) Rot(axis2, b) Rot(axis3, c) = R, of axes [3, 3] at zero displacement.

    Where the first and third axes are aligned, their angles are not unique: the first is zero.
    """
    e4, e5, e6 = axes
    f = e6 - e5 * (e5 @ e6)
    row = (float(e4 @ f), float(e4 @ np.cross(e5, f)))
    side = float(e4 @ R @ e6 - (e4 @ e5) * (e5 @ e6))
    out = []
    for b in _angles(row, side):
        a = angle_about(e4, rotate_about(e5, b, e6), R @ e6)
        other = _perpendicular(e6)[0]
        back = rotate_about(e5, -b, rotate_about(e4, -a, R @ other))
        out.append(np.array([a, b, angle_about(e6, other, back)]))
    return out


def _angles(row: tuple[float, float], side: float) -> list[float]:
    """Return the angles with row[0] cos + row[1] sin = side."""
    size = math.hypot(*row)
    if size == 0.0 or abs(side) > size * (1.0 + CLAMP):
        return []
    middle, way = math.atan2(row[1], row[0]), math.acos(max(-1.0, min(1.0, side / size)))
    return [middle + way, middle - way]


def _on_circle(row: tuple[float, float], side: float, du: float, dv: float) -> list[tuple[float, float]]:
    """Return the points (X, Y) of the circle through (du, dv) on the line row . (X, Y) = side."""
    radius = math.hypot(du, dv)
    if radius == 0.0:
        return []
    angles = _angles((row[0] * radius, row[1] * radius), side)
    return [(radius * math.cos(a), radius * math.sin(a)) for a in angles]


def _perpendicular(e: Numbers) -> tuple[Any, Any]:
    """Return two unit vectors that complete a unit vector to right-handed axes (u, v, e)."""
    u = np.cross(np.eye(3)[np.argmin(np.abs(e))], e)
    u = u / np.linalg.norm(u)
    return u, np.cross(e, u)


def _moved(screw: Screw, q: float, x: Numbers) -> Numbers:
    if not screw.rotates:
        return x + screw.axis * q
    return screw.point + rotate_about(screw.axis, q, x - screw.point)


def _powers(screw: Screw, d: Numbers, origin: Numbers) -> Polynomial:
    """Return the point moved by a screw as coefficients [3, k]: of 1/z, 1, z with z = exp(i q), or of 1, q."""
    if not screw.rotates:
        return np.stack([d, screw.axis], axis=-1)
    arm = d + origin - screw.point
    along = screw.axis * (screw.axis @ arm)
    c, s = arm - along, np.cross(screw.axis, arm)
    return np.stack([(c + 1j * s) / 2, screw.point - origin + along, (c - 1j * s) / 2], axis=-1)


def _one(like: Polynomial) -> Polynomial:
    """Return the polynomial 1 with as many coefficients."""
    out = np.zeros_like(like)
    out[len(like) // 2 if np.iscomplexobj(like) else 0] = 1.0
    return out


def _sum(*terms: Polynomial) -> Polynomial:
    """Return the sum of polynomials, in z centered at the power 0, in q from the power 0."""
    size = max(map(len, terms))
    out = np.zeros(size, dtype=np.result_type(*terms))
    for x in terms:
        first = (size - len(x)) // 2 if np.iscomplexobj(out) else 0
        out[first : first + len(x)] += x
    return out


def _at(polynomial: Polynomial, q: float, screw: Screw) -> float:
    """Return the value of a polynomial at a joint's position."""
    if not screw.rotates:
        return float(np.polynomial.polynomial.polyval(q, polynomial))
    half = len(polynomial) // 2
    return float((polynomial @ np.exp(1j * q * np.arange(-half, half + 1))).real)


def _roots(polynomial: Polynomial, rotates: bool) -> list[float] | None:
    """Return the real positions at which a polynomial is zero; None if it is zero everywhere."""
    size = np.abs(polynomial).max(initial=0.0)
    if size < 1e-12:
        return None
    kept = np.where(np.abs(polynomial) < 1e-14 * size, 0.0, polynomial)
    found = np.roots(kept[::-1])
    if rotates:
        return [float(np.angle(z)) for z in found if abs(abs(z) - 1.0) < REAL]
    return [float(z.real) for z in found if abs(z.imag) < REAL * max(1.0, abs(z.real))]


POSITION, POSE = (False, False, False, True, True, True), (True,) * 6


def closed_form(chain: ScrewChain, T: Numbers, used: tuple[bool, ...]) -> tuple[str, list[Numbers]] | None:
    """Return the name of the closed form and its candidates [joints of the chain]; None if there is no closed form."""
    s, count = chain.screws, len(chain.screws)
    X = T @ np.linalg.inv(chain.home)
    if used == POSE and count == 6 and _two_first(s) and all(x.rotates for x in s[3:]):
        wrist = _common_point(s[3:], chain.length)
        return None if wrist is None else _named("spherical wrist", _wrist_solutions(chain, X, wrist))
    if used == POSE and count == 3 and _all_parallel(s):
        return _named("planar arm", _planar_solutions(chain, X))
    if used == POSITION and count == 3 and _two_first(s) and not _all_parallel(s):
        at = chain.home[:3, 3]
        return _named("three joints to a point", position_solutions(s, at, T[:3, 3], chain.length))
    if used == POSITION and count == 2 and _all_parallel(s):
        return _named("planar arm", two_rotations(s, chain.home[:3, 3], T[:3, 3]))
    return None


def _named(name: str, found: list[Numbers] | None) -> tuple[str, list[Numbers]] | None:
    return None if found is None else (name, found)


def _two_first(screws: tuple[Screw, ...]) -> bool:
    return screws[0].rotates and screws[1].rotates


def _all_parallel(screws: tuple[Screw, ...]) -> bool:
    e = screws[0].axis
    return all(x.rotates and np.linalg.norm(np.cross(e, x.axis)) < PARALLEL for x in screws)


def _common_point(screws: tuple[Screw, ...], length: float) -> Numbers | None:
    """Return the point in which axes intersect; None if they do not, or if it is not unique."""
    across = [np.eye(3) - np.outer(x.axis, x.axis) for x in screws]
    S, b = sum(across), sum(P @ x.point for P, x in zip(across, screws, strict=True))
    if np.linalg.svd(S)[1][-1] < PARALLEL:
        return None
    point = np.linalg.solve(S, b)
    off = max(np.linalg.norm(P @ (point - x.point)) for P, x in zip(across, screws, strict=True))
    return point if off < PARALLEL * length else None


def _wrist_solutions(chain: ScrewChain, X: Numbers, wrist: Numbers) -> list[Numbers] | None:
    """Return the positions of six joints: the first three bring the wrist to its place, the others rotate it."""
    arms = position_solutions(chain.screws[:3], wrist, X[:3, :3] @ wrist + X[:3, 3], chain.length)
    if arms is None:
        return None
    axes = np.array([x.axis for x in chain.screws[3:]])
    out = []
    for arm in arms:
        R = X[:3, :3]
        for screw, q in zip(chain.screws[:3], arm, strict=True):
            if screw.rotates:
                R = _rotation(screw.axis, -q) @ R
        out += [np.concatenate([arm, hand]) for hand in three_rotations(axes, R)]
    return out


def _planar_solutions(chain: ScrewChain, X: Numbers) -> list[Numbers]:
    """Return the positions of three parallel rotations: two bring the third axis to its place, which then rotates."""
    s = chain.screws
    point = s[2].point
    out = []
    for pair in two_rotations(s[:2], point, X[:3, :3] @ point + X[:3, 3]):
        R = X[:3, :3]
        e = s[0].axis
        total = float(np.arctan2(e @ [R[2, 1] - R[1, 2], R[0, 2] - R[2, 0], R[1, 0] - R[0, 1]], np.trace(R) - 1.0))
        signs = [float(np.sign(e @ x.axis)) for x in s]
        out.append(np.array([*pair, signs[2] * (total - signs[0] * pair[0] - signs[1] * pair[1])]))
    return out


def _rotation(axis: Numbers, angle: float) -> Numbers:
    return np.stack([rotate_about(axis, angle, column) for column in np.eye(3)], axis=-1)
