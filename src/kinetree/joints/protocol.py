"""The protocol of a joint kind: what its module has, in this order.

A kind is a module (or any object) with these fields and functions. Displacement and motion are in canonical axes, and
every function works on scalars of any type. Kinds whose coordinates are plain angles and lengths take rate, integrate
and difference from flat.py. No other part of the library asks for the name of a kind.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any, Protocol

from ..algebra.mass import MassMatrix
from ..algebra.spatial import Motion
from ..algebra.vectors import Matrix, Vector

ROTATION, TRANSLATION = "rotation", "translation"
"""What a single step of a joint is: a rotation about an axis, or a translation along it."""

Steps = tuple[tuple[str, Vector], ...]
"""Single rotations and translations, one after the other, each with its axis in the child's frame."""


class JointKind(Protocol):
    """A kind of joint: numbers of coordinates, what it looks like from outside, and its kinematics."""

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
        """The units of the velocities' integrals, "rad" or "m"."""
        ...

    @property
    def NAMES(self) -> tuple[tuple[str, ...], ...]:
        """The names of the coordinates, of the velocities and of the forces; ("",) where there is one."""
        ...

    @property
    def DATA(self) -> tuple[str, ...]:
        """The fields of a Joint that the kind uses: axis, axis2, pitch, sequence."""
        ...

    @property
    def QUATERNION(self) -> int | None:
        """Where a unit quaternion (x, y, z, w) starts in q, the last four coordinates; None without one."""
        ...

    @property
    def ANGLES(self) -> str | None:
        """The kind with the same motions by angles instead of a quaternion; None without a quaternion."""
        ...

    @property
    def AXIAL(self) -> str | None:
        """ROTATION where the displacement is a rotation about z by q and nothing else, TRANSLATION likewise; or None.

        The working frame of such a body may be moved along the axis, or anywhere, without a change of the motion.
        """
        ...

    @property
    def PERIODIC(self) -> bool:
        """Whether each angle leads back to the same displacement after a full turn."""
        ...

    @property
    def FLOATS(self) -> bool:
        """Whether the child moves away from the joint in more than one direction; no rod is drawn to it."""
        ...

    @property
    def ADVANCES(self) -> bool:
        """Whether the child moves along the axis; a rod is drawn to it."""
        ...

    @property
    def SOLID(self) -> str | None:
        """How the joint is drawn: "cylinder" or "box" along the axis, "ball", or not at all."""
        ...

    @property
    def SYMBOL(self) -> str:
        """The letter or word in pictures of kinematic modules: R, P, U, S, or the name."""
        ...

    @property
    def PEERS(self) -> Mapping[str, str]:
        """The joint of another library, by library, where `steps` does not describe it."""
        ...

    def check(self, joint: Any, where: str) -> None:
        """Refuse data that make no joint."""
        ...

    def frame(self, joint: Any) -> Matrix:
        """Return the canonical axes in the child's frame: z along the axis, where there is one."""
        ...

    def steps(self, joint: Any) -> Steps | None:
        """Return the rotations and translations whose amounts are the coordinates; None where they are not."""
        ...

    def displacement(self, joint: Any, q: Any) -> tuple[Any, Any, Any]:
        """Return (a, E, b): translation a, rotation E, then translation b along the rotated axes."""
        ...

    def motion(self, joint: Any, q: Any, qd: Any) -> Motion:
        """Return P and dP/dt as seen in the child, whose twist is P qd."""
        ...

    def common(self, mass: MassMatrix) -> MassMatrix:
        """Return the part of the child's mass that the parent could carry as well, at every q."""
        ...

    def rate(self, joint: Any, q: Any, qd: Any) -> tuple[Any, ...]:
        """Return dq/dt."""
        ...

    def neutral(self, joint: Any) -> tuple[float, ...]:
        """Return the coordinates of no displacement."""
        ...

    def integrate(self, joint: Any, q: Any, dq: Any) -> tuple[Any, ...]:
        """Return q moved on by dq: exactly, for a constant twist dq over a unit of time."""
        ...

    def difference(self, joint: Any, qa: Any, qb: Any) -> tuple[Any, ...]:
        """Return the dq with integrate(qa, dq) = qb."""
        ...

    def random(self, joint: Any, rng: Any, size: Any = None) -> tuple[Any, ...]:
        """Return random coordinates inside the limits: numbers, or arrays of this shape."""
        ...
