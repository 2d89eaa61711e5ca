"""The protocol of a joint kind: the fields and functions of its module, in this order.

A kind is a module (or any object) with these fields and functions. Displacement and motion are in canonical axes, and
every function works on scalars of any type. Kinds whose coordinates are plain angles and lengths import rate,
integrate and difference from plain.py. Kinds with one axis import check and frame from single_axis.py, kinds without
any from plain.py. No other part of the library depends on the name of a kind.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any, Protocol

from ..algebra.mass import MassMatrix
from ..algebra.scalars import Scalar
from ..algebra.spatial import Motion
from ..algebra.vectors import Matrix, Vector

ROTATION, TRANSLATION = "rotation", "translation"
"""The types of a single step of a joint: a rotation about an axis, or a translation along it."""

Steps = tuple[tuple[str, Vector], ...]
"""Successive single rotations and translations, each with its axis in the child's frame."""


@dataclass(frozen=True)
class Reversal:
    """A joint whose parent and child are exchanged, with the same set of relative motions.

    `data` has the fields of the joint that change. The velocities and forces of the reversed joint are those of the
    given one times `sign`, in the opposite order if `back`. If `mixed`, they depend on the coordinates, so that limits,
    damping, friction and armature have no equivalent. `convert` returns the coordinates where they are not those of the
    given joint with this sign and order.
    """

    data: Mapping[str, Any] = field(default_factory=dict)
    sign: float = 1.0
    back: bool = False
    mixed: bool = False
    convert: Callable[[Sequence[float]], tuple[float, ...]] | None = None

    def order(self, numbers: Sequence[Scalar]) -> tuple[Scalar, ...]:
        """Return one value per velocity in the order of the reversed joint."""
        return tuple(reversed(numbers)) if self.back else tuple(numbers)

    def coordinates(self, q: Sequence[float]) -> tuple[float, ...]:
        """Return the coordinates of the reversed joint."""
        return self.convert(q) if self.convert else tuple(self.sign * x for x in self.order(q))


class JointKind(Protocol):
    """A kind of joint: its numbers of coordinates, its properties for other modules, and its kinematics."""

    @property
    def NQ(self) -> int:
        """The number of coordinates."""
        ...

    @property
    def NV(self) -> int:
        """The number of velocities."""
        ...

    @property
    def UNITS(self) -> tuple[str, ...]:
        """The units of the integrals of the velocities, "rad", "m" or "C"."""
        ...

    @property
    def NAMES(self) -> tuple[tuple[str, ...], ...]:
        """The names of the coordinates, the velocities and the forces; ("",) if there is only one of each."""
        ...

    @property
    def DATA(self) -> tuple[str, ...]:
        """The fields of a Joint that the kind uses: axis, axis2, pitch, ratio, sequence."""
        ...

    @property
    def QUATERNION(self) -> int | None:
        """The index in q where a unit quaternion (x, y, z, w), the last four coordinates, starts; None without one."""
        ...

    @property
    def ANGLES(self) -> str | None:
        """The kind with the same motions and angles in place of the quaternion; None without a quaternion."""
        ...

    @property
    def AXIAL(self) -> str | None:
        """ROTATION if the displacement is only a rotation about z by q, TRANSLATION if only a translation; or None.

        The working frame of such a body may be shifted without a change of the motion: along the axis for ROTATION,
        anywhere for TRANSLATION.
        """
        ...

    @property
    def PERIODIC(self) -> bool:
        """Whether each angle gives the same displacement again after a full rotation."""
        ...

    @property
    def FLOATS(self) -> tuple[tuple[int, int], ...]:
        """The entries (in q, in qd) of the translations of a child that moves away in more than one direction.

        Those in q are along the x, y and z axes of the parent, in this order. Empty for other kinds. No rod is drawn
        to a child that floats.
        """
        ...

    @property
    def ADVANCES(self) -> bool:
        """Whether the child moves along the axis; if so, a rod is drawn to it."""
        ...

    @property
    def SOLID(self) -> str | None:
        """The solid that is drawn for the joint: "cylinder" or "box" along the axis, "ball", or None."""
        ...

    @property
    def SYMBOL(self) -> str:
        """The letter or word in pictures of kinematic modules: R, P, U, S, or the name."""
        ...

    @property
    def PEERS(self) -> Mapping[str, str]:
        """The equivalent joint of other libraries, by library, for kinds that `steps` does not describe."""
        ...

    def check(self, joint: object, where: str) -> None:
        """Refuse data that do not define a joint."""
        ...

    def frame(self, joint: object) -> Matrix:
        """Return the canonical axes in the child's frame: z along the axis, if there is one."""
        ...

    def steps(self, joint: object) -> Steps | None:
        """Return the rotations and translations whose amounts are the coordinates; None if there are none such."""
        ...

    def displacement(self, joint: object, q: object) -> tuple[Any, Any, Any]:
        """Return (a, E, b): translation a, rotation E, then translation b along the rotated axes."""
        ...

    def motion(self, joint: object, q: object, qd: object) -> Motion:
        """Return P and dP/dt in the child's frame; the child's twist relative to the parent is P qd."""
        ...

    def common(self, mass: MassMatrix) -> MassMatrix:
        """Return the part of the child's mass that could belong to the parent instead, at every q."""
        ...

    def rate(self, joint: object, q: object, qd: object) -> tuple[Scalar, ...]:
        """Return dq/dt."""
        ...

    def neutral(self, joint: object) -> tuple[float, ...]:
        """Return the coordinates at zero displacement."""
        ...

    def integrate(self, joint: object, q: object, dq: object) -> tuple[Scalar, ...]:
        """Return q advanced by dq: exact for a constant twist dq over a unit of time."""
        ...

    def difference(self, joint: object, qa: object, qb: object) -> tuple[Scalar, ...]:
        """Return the dq with integrate(qa, dq) = qb."""
        ...

    def random(self, joint: object, rng: object, size: object = None) -> tuple[Any, ...]:
        """Return random coordinates inside the limits: numbers, or arrays of this shape."""
        ...

    def reverse(self, joint: object) -> Reversal | None:
        """Return the joint seen from its child; None if it cannot be described by a joint of this kind."""
        ...
