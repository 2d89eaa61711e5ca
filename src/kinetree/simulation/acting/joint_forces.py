"""Forces in the joints: springs, dampers, friction, stops and elastic gears, by joint name.

Each is a frozen object with `apply(now)`. Those that store energy also have `energy(now)`. Coefficients are one number,
or one per degree of freedom of the joint, and may be expressions of the parameters of the mechanism.
"""

from __future__ import annotations

import math
from collections.abc import Iterator, Sequence
from dataclasses import KW_ONLY, dataclass
from typing import TYPE_CHECKING, Any

from ..._support.checks import positive
from ...algebra.scalars import Scalar
from ...dynamics.force_laws import SLIP_SPEED, friction, transmission
from ...errors import ModelError, Where, argument
from ...model.checks import require_flat
from ...model.flexible import is_modes
from ...model.mechanism import Mechanism, resolve_parts
from ..arguments import Coefficient, coefficient, coefficients, spread
from .instants import Force, Instant
from .smooth import soft_ramp

if TYPE_CHECKING:
    from ...compiler.lower.tree_records import Record
    from ...model.parts import Joint

SOFTNESS = 1e-3
"""The default distance over which a stop reaches its full stiffness [rad, m]."""


@dataclass(frozen=True)
class JointSpring:
    """A spring in a joint with as many coordinates as velocities: tau = stiffness (rest - q) [N m/rad, N/m]."""

    joint: str
    stiffness: Any
    rest: Any = 0.0

    def __post_init__(self) -> None:
        """Read the numbers."""
        where = f"JointSpring of {self.joint!r}"
        object.__setattr__(self, "stiffness", coefficients(self.stiffness, argument("stiffness", where)))
        object.__setattr__(self, "rest", coefficients(self.rest, argument("rest", where)))

    def apply(self, now: Instant) -> None:
        """Add the torques."""
        for label, k, stretch in self._stretches(now):
            now.tau[label] = now.tau[label] - k * stretch

    def energy(self, now: Instant) -> Scalar:
        """Return the stored energy: stiffness (q - rest)^2 / 2 [J]."""
        return sum(k * stretch * stretch * 0.5 for _, k, stretch in self._stretches(now))

    def _stretches(self, now: Instant) -> Iterator[tuple[int, Scalar, Scalar]]:
        i = record(now, self.joint, "JointSpring")
        require_flat(i.joint, "JointSpring")
        k, rest = per_dof(now, i, self.stiffness, "stiffness"), per_dof(now, i, self.rest, "rest")
        yield from zip(i.labels, k, (q - r for q, r in zip(i.q, rest, strict=True)), strict=True)


@dataclass(frozen=True)
class JointDamper:
    """A viscous damper in a joint: tau = -damping qd [N m s/rad, N s/m]."""

    joint: str
    damping: Any

    def __post_init__(self) -> None:
        """Read the numbers."""
        what = argument("damping", f"JointDamper of {self.joint!r}")
        object.__setattr__(self, "damping", coefficients(self.damping, what, least=0.0))

    def apply(self, now: Instant) -> None:
        """Add the torques."""
        i = record(now, self.joint, "JointDamper")
        for label, c, speed in zip(i.labels, per_dof(now, i, self.damping, "damping"), i.qd, strict=True):
            now.tau[label] = now.tau[label] - c * speed


@dataclass(frozen=True)
class JointFriction:
    """Coulomb friction in a joint, made smooth: tau = -force qd / sqrt(qd^2 + slip_speed^2) [N m, N].

    A joint at rest under a load creeps at a velocity of the order of `slip_speed`. A smaller `slip_speed` is nearer to
    Coulomb's law and requires smaller time steps.
    """

    joint: str
    force: Any
    _: KW_ONLY
    slip_speed: float = SLIP_SPEED

    def __post_init__(self) -> None:
        """Read the numbers."""
        where = f"JointFriction of {self.joint!r}"
        object.__setattr__(self, "force", coefficients(self.force, argument("force", where), least=0.0))
        object.__setattr__(self, "slip_speed", positive(self.slip_speed, argument("slip_speed", where)))

    def apply(self, now: Instant) -> None:
        """Add the torques."""
        i = record(now, self.joint, "JointFriction")
        for label, f, speed in zip(i.labels, per_dof(now, i, self.force, "force"), i.qd, strict=True):
            now.tau[label] = now.tau[label] - friction(speed, f, self.slip_speed)


@dataclass(frozen=True)
class JointStops:
    """Springs and dampers beyond the limits of a joint, or (`joint=None`) of all joints that have limits.

    With x the distance of a coordinate beyond a limit and v = dx/dt, the stop pushes back by stiffness h(x) + damping
    h'(x) v. h(x) is 0 inside the limit, x^2 / (2 softness) over the first `softness` [rad, m], and x - softness / 2
    beyond. The elastic force and its slope are continuous, and damping increases gradually. A coordinate that leaves
    the stop fast may be held back slightly.
    """

    joint: str | None = None
    stiffness: Any = 1e4
    damping: Any = 0.0
    _: KW_ONLY
    softness: float = SOFTNESS

    def __post_init__(self) -> None:
        """Read the numbers."""
        where = "JointStops" if self.joint is None else f"JointStops of {self.joint!r}"
        object.__setattr__(self, "stiffness", coefficients(self.stiffness, argument("stiffness", where), least=0.0))
        object.__setattr__(self, "damping", coefficients(self.damping, argument("damping", where), least=0.0))
        object.__setattr__(self, "softness", positive(self.softness, argument("softness", where)))

    def apply(self, now: Instant) -> None:
        """Add the torques."""
        for label, k, c, x, v, sign in self._contacts(now):
            _, h, slope = soft_ramp(x, self.softness)
            now.tau[label] = now.tau[label] - sign * (k * h + c * slope * v)

    def energy(self, now: Instant) -> Scalar:
        """Return the stored energy [J]."""
        return sum(k * soft_ramp(x, self.softness)[0] for _, k, _, x, _, _ in self._contacts(now))

    def _contacts(self, now: Instant) -> Iterator[tuple[int, Scalar, Scalar, Scalar, Scalar, float]]:
        """Yield (degree of freedom, stiffness, damping, x, dx/dt, sign) for each limit."""
        for i in self._records(now):
            require_flat(i.joint, "JointStops")
            stiffness = per_dof(now, i, self.stiffness, "stiffness")
            damping = per_dof(now, i, self.damping, "damping")
            for sign, limits in ((1.0, i.joint.limits.upper), (-1.0, i.joint.limits.lower)):
                for at, limit in enumerate(limits):
                    if isinstance(limit, float | int) and math.isinf(limit):
                        continue
                    x, v = sign * (i.q[at] - limit), sign * i.qd[at]
                    yield i.labels[at], stiffness[at], damping[at], x, v, sign

    def _records(self, now: Instant) -> list[Any]:
        if self.joint is None:
            return [i for i in now.tree.records if has_limits(i.joint) and not is_modes(i.joint)]
        i = record(now, self.joint, "JointStops")
        if not has_limits(i.joint):
            raise ModelError(
                "the joint has no limits",
                where=Where(f"JointStops of {self.joint!r}", ("joint",)),
                remedy="give it a lower or upper limit",
            )
        return [i]


@dataclass(frozen=True)
class Transmission:
    """An elastic gear between the coordinates of two joints: x = q[motor] - q[joint] twists it.

    It pulls the joint by stiffness x + damping dx/dt and the motor by the opposite [N m, N]. With `backlash`, the play
    from end to end, it is loose for |x| < backlash / 2 (the law is in dynamics/force_laws.py).
    """

    motor: str
    joint: str
    _: KW_ONLY
    stiffness: Coefficient
    damping: Coefficient = 0.0
    backlash: Coefficient = 0.0

    def __post_init__(self) -> None:
        """Read the numbers."""
        where = f"Transmission of {self.joint!r}"
        for key in ("stiffness", "damping", "backlash"):
            object.__setattr__(self, key, coefficient(getattr(self, key), argument(key, where), least=0.0))

    def apply(self, now: Instant) -> None:
        """Add the torques."""
        a, b = self._records(now)
        pull, _ = self._law(now, a, b)
        for i, sign in ((a, -1.0), (b, 1.0)):
            now.tau[i.labels[0]] = now.tau[i.labels[0]] + sign * pull

    def energy(self, now: Instant) -> Scalar:
        """Return the stored energy [J]."""
        return self._law(now, *self._records(now))[1]

    def _law(self, now: Instant, a: Record, b: Record) -> tuple[Scalar, Scalar]:
        numbers = number_in(now, (self.stiffness, self.damping, self.backlash))
        return transmission(a.q[0] - b.q[0], a.qd[0] - b.qd[0], *numbers)

    def _records(self, now: Instant) -> list[Any]:
        found = [record(now, name, "Transmission") for name in (self.motor, self.joint)]
        for i in found:
            if (i.kind.NQ, i.kind.NV) != (1, 1):
                raise ModelError(
                    f"the joint {i.joint.name!r} is {i.joint.kind} and has more than one coordinate",
                    where="Transmission",
                    remedy="use revolute, prismatic or helical joints",
                )
        return found


def passive(mechanism: Mechanism, *, slip_speed: float = SLIP_SPEED) -> list[Force]:
    """Return the damping and friction of the joints of a mechanism as forces."""
    out: list[Force] = []
    for joint in mechanism.joints:
        if any(x != 0.0 for x in joint.damping):
            out.append(JointDamper(joint.name, joint.damping))
        if any(x != 0.0 for x in joint.friction):
            out.append(JointFriction(joint.name, joint.friction, slip_speed=slip_speed))
    return out


def has_limits(joint: Joint) -> bool:
    """Return whether a joint has a finite limit of a coordinate."""
    bounds = (*joint.limits.lower, *joint.limits.upper)
    return any(not isinstance(x, float | int) or math.isfinite(x) for x in bounds)


def record(now: Instant, joint: str, who: str) -> Any:
    """Return the record of a joint by name: its q, qd, labels and resolved data."""
    for i in now.tree.records:
        if i.joint.name == joint:
            return i
    try:
        now.mechanism.joint(joint)
    except ModelError as error:
        raise type(error)(error.what, where=Where(who, ("joint",)), remedy=error.remedy) from None
    raise AssertionError(f"no record of {joint!r}")


def number_in(now: Instant, x: Any) -> Any:
    """Return the value of a number or an expression of the parameters."""
    return resolve_parts(x, now.mechanism.values(now.inputs().get("parameters")))


def per_dof(now: Instant, i: Record, values: Sequence[Scalar], key: str) -> tuple[Scalar, ...]:
    """Return one resolved number per degree of freedom of a joint."""
    return number_in(now, spread(values, i.kind.NV, argument(key, repr(i.joint.name))))
