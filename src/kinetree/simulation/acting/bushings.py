"""Bushings: springs and dampers in all six directions between two frames, such as rubber mounts and flexures.

With e the position of frame b in frame a, and p the rotation vector of frame b relative to frame a, both on the axes
of frame a, the energy is U = e . K e / 2 + p . G p / 2 with diagonal matrices K and G. The force on b is -K e. Since
dp/dt = V^-1(p) w for the relative angular velocity w, with V as in `sweep` of algebra/quaternions.py, the moment on b
is the exact slope -V^-T(p) G p, and V^-T(p) = V^-1(-p). For small rotations it is -G p. The dampers add -C de/dt and
-D w, which never supply power. What acts on b acts on a in the opposite direction, at the same point.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import KW_ONLY, dataclass
from typing import TYPE_CHECKING, Any

from ...algebra import quaternions
from ...algebra.scalars import Scalar
from ...algebra.vectors import Vector, add, cross, dot, matmul, neg, sub, times, transpose
from ...errors import argument
from ..arguments import coefficients, spread
from .instants import Instant
from .joint_forces import number_in

if TYPE_CHECKING:
    from ...algebra.vectors import Matrix

COEFFICIENTS = ("stiffness", "damping", "torsional_stiffness", "torsional_damping")


@dataclass(frozen=True)
class Bushing:
    """Springs and dampers along and about the axes of frame a, which pull frame b toward the pose of frame a.

    The frames are those of the mechanism by name; every body and "ground" is one. Each coefficient is one number for
    all axes, or three: `stiffness` [N/m], `damping` [N s/m], `torsional_stiffness` [N m/rad] and `torsional_damping`
    [N m s/rad]. The rotation is that of the rotation vector from frame a to frame b, of up to half a revolution.
    """

    frame_a: str
    frame_b: str
    _: KW_ONLY
    stiffness: Any = 0.0
    damping: Any = 0.0
    torsional_stiffness: Any = 0.0
    torsional_damping: Any = 0.0

    def __post_init__(self) -> None:
        """Read the numbers: three of each."""
        for name in COEFFICIENTS:
            what = argument(name, f"Bushing between {self.frame_a!r} and {self.frame_b!r}")
            object.__setattr__(self, name, spread(coefficients(getattr(self, name), what, least=0.0), 3, what))

    def apply(self, now: Instant) -> None:
        """Pull frame b toward frame a, and frame a by the opposite force at the same point."""
        k, c, g, d = (number_in(now, getattr(self, name)) for name in COEFFICIENTS)
        R, e, turn = self._pose(now)
        (a, place), (b, at) = self._origin(now, self.frame_a), self._origin(now, self.frame_b)
        (start, va), (end, vb), wa = now.point(a, place), now.point(b, at), now.angular_velocity(a)
        rate = times(transpose(R), sub(sub(vb, va), cross(wa, sub(end, start))))
        spin = times(transpose(R), sub(now.angular_velocity(b), wa))
        force = neg(add(_product(k, e), _product(c, rate)))
        moment = neg(add(quaternions.unsweep(neg(turn), _product(g, turn)), _product(d, spin)))
        f, n = times(R, force), times(R, moment)
        now.push(b, at, f, n)
        now.push(a, place, neg(f), neg(add(n, cross(sub(end, start), f))))

    def energy(self, now: Instant) -> Scalar:
        """Return the energy of the springs [J]."""
        _, e, turn = self._pose(now)
        k, g = number_in(now, self.stiffness), number_in(now, self.torsional_stiffness)
        return 0.5 * (dot(e, _product(k, e)) + dot(turn, _product(g, turn)))

    def _pose(self, now: Instant) -> tuple[Matrix, Vector, Vector]:
        """Return the rotation of frame a, and position and rotation vector of frame b in frame a."""
        (a, place), (b, at) = self._origin(now, self.frame_a), self._origin(now, self.frame_b)
        R, other = (self._axes(now, name) for name in (self.frame_a, self.frame_b))
        e = times(transpose(R), sub(now.point(b, at)[0], now.point(a, place)[0]))
        return R, e, quaternions.logarithm(quaternions.from_matrix(matmul(transpose(R), other)))

    def _origin(self, now: Instant, name: str) -> tuple[str, Vector]:
        """Return the body of a frame, and the frame's origin there."""
        frame = now.mechanism.frame(name)
        return frame.body, number_in(now, frame.placement.translation)

    def _axes(self, now: Instant, name: str) -> Matrix:
        """Return the rotation of a frame, to the axes of the ground."""
        frame = now.mechanism.frame(name)
        return matmul(now.orientation(frame.body), number_in(now, frame.placement.rotation))


def _product(diagonal: Sequence[Scalar], x: Vector) -> Vector:
    return (diagonal[0] * x[0], diagonal[1] * x[1], diagonal[2] * x[2])
