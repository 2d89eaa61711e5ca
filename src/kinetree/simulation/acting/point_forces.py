"""Forces at points and frames of bodies: spring-dampers, linear actuators, external wrenches, bushings."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import KW_ONLY, dataclass
from typing import TYPE_CHECKING, Any

from ..._support.checks import positive
from ...algebra import quaternions
from ...algebra.scalars import Scalar, is_number, sqrt, where
from ...algebra.vectors import ZERO, Vector, add, cross, dot, matmul, neg, scale, sub, times, transpose
from ...dynamics import force_laws
from ...dynamics.force_laws import SLIP_SPEED
from ...errors import InputError, ModelError, Where, argument, path_of, unknown_name
from ...model.checks import JOINT_SPRING, TRANSMISSION, coefficient_names, spring_joint, transmission_joints
from ...model.mechanism import Mechanism, resolve_parts
from ...model.part_fields import axis_of
from ...model.parts import GROUND, ForceElement, Joint
from ..arguments import Coefficient, coefficient, coefficients, mechanism_of, spread, vector
from .instants import Force, Instant
from .joint_forces import JointSpring, Transmission, number_in, passive

if TYPE_CHECKING:
    from ...algebra.vectors import Matrix
    from ...system import System


@dataclass(frozen=True)
class SpringDamper:
    """A spring and a damper between a point of a body and one of another (or of "ground"), in the bodies' frames [m].

    The force that pushes the points apart is stiffness (free_length - length) + preload - damping d(length)/dt.
                                                                                             [Goncalves2023] (35)
    An extension spring that was wound with initial tension has a negative preload.
    """

    body_a: str
    body_b: str
    point_a: Vector = ZERO
    point_b: Vector = ZERO
    _: KW_ONLY
    stiffness: Coefficient = 0.0
    damping: Coefficient = 0.0
    free_length: Coefficient = 0.0
    preload: Coefficient = 0.0

    def __post_init__(self) -> None:
        """Read the numbers."""
        _read_points(self)
        for name, least in (("stiffness", 0.0), ("damping", 0.0), ("free_length", 0.0), ("preload", -float("inf"))):
            value = coefficient(getattr(self, name), argument(name, _label(self)), least=least)
            object.__setattr__(self, name, value)

    def apply(self, now: Instant) -> None:
        """Push the two points."""
        k, c, free, preload = number_in(now, (self.stiffness, self.damping, self.free_length, self.preload))
        length, rate, direction = line(now, self)
        push_apart(now, self, force_laws.spring_damper(length, rate, k, c, free, preload), direction)

    def energy(self, now: Instant) -> Scalar:
        """Return the energy of the spring: stiffness (length - free_length)^2 / 2 - preload length [J]."""
        k, free, preload = number_in(now, (self.stiffness, self.free_length, self.preload))
        length = line(now, self)[0]
        stretch = length - free
        return k * stretch * stretch * 0.5 - preload * length


@dataclass(frozen=True)
class LinearActuator:
    """A force [N] that pushes two points apart: a number, or a function of the time t."""

    body_a: str
    body_b: str
    point_a: Vector = ZERO
    point_b: Vector = ZERO
    _: KW_ONLY
    force: Scalar | Callable[[Scalar], Scalar] = 0.0

    def __post_init__(self) -> None:
        """Read the numbers."""
        _read_points(self)
        if not callable(self.force):
            object.__setattr__(self, "force", coefficient(self.force, argument("force", _label(self))))

    def apply(self, now: Instant) -> None:
        """Push the two points."""
        force = self.force(now.t) if callable(self.force) else number_in(now, self.force)
        push_apart(now, self, force, line(now, self)[2])


@dataclass(frozen=True)
class ExternalWrench:
    """A force [N] at a point of a body, given in its frame [m], and a moment [N m], both in the ground's axes.

    Each is three numbers, or a function of (t, now) that returns three scalars. `now` has the state (`now.q`,
    `now.qd`), and `now.point(body, place)` returns the position and the velocity of a point.
    """

    body: str
    point: Vector = ZERO
    _: KW_ONLY
    force: Vector | Callable[[Scalar, Instant], Vector] = ZERO
    moment: Vector | Callable[[Scalar, Instant], Vector] = ZERO

    def __post_init__(self) -> None:
        """Read the numbers."""
        if self.body == GROUND:
            raise InputError("ExternalWrench acts on the ground, which cannot move; name a body", path=("body",))
        object.__setattr__(self, "point", vector(self.point, argument("point", f"ExternalWrench on {self.body!r}")))
        for name in ("force", "moment"):
            given = getattr(self, name)
            if not callable(given):
                object.__setattr__(self, name, vector(given, argument(name, f"ExternalWrench on {self.body!r}")))

    def apply(self, now: Instant) -> None:
        """Push the body."""
        _known(now, self.body, Where("ExternalWrench", ("body",)))
        force, moment = (self._entries(now, name) for name in ("force", "moment"))
        now.push(self.body, number_in(now, self.point), force, moment)

    def _entries(self, now: Instant, name: str) -> tuple[Scalar, ...]:
        given = getattr(self, name)
        if not callable(given):
            return number_in(now, given)
        entries: Any = given(now.t, now)
        if not isinstance(entries, Iterable) or len(entries := tuple(entries)) != 3:
            raise InputError(
                f"the {name} of ExternalWrench on {self.body!r} is a function that does not return three scalars",
                path=(name,),
            )
        return entries


def line(now: Instant, pair: SpringDamper | LinearActuator) -> tuple[Scalar, Scalar, Vector]:
    """Return the distance of two points, its rate, and the direction from a to b (shorter than one near zero)."""
    for key in ("body_a", "body_b"):
        _known(now, getattr(pair, key), Where(type(pair).__name__, (key,)))
    a, va = now.point(pair.body_a, number_in(now, pair.point_a))
    b, vb = now.point(pair.body_b, number_in(now, pair.point_b))
    return force_laws.line(a, va, b, vb)


def push_apart(now: Instant, pair: SpringDamper | LinearActuator, force: Scalar, direction: Vector) -> None:
    """Apply a force along the direction to b, and its opposite to a."""
    f = scale(force, direction)
    now.push(pair.body_b, number_in(now, pair.point_b), f)
    now.push(pair.body_a, number_in(now, pair.point_a), neg(f))


def forces_of(mechanism: Mechanism | System, *, slip_speed: float = SLIP_SPEED) -> list[Force]:
    """Return the passive forces of a mechanism: damping and friction of its joints, and its force elements."""
    mechanism = mechanism_of(mechanism)
    carried = {j.child: j for j in mechanism.joints}
    return [*passive(mechanism, slip_speed=slip_speed), *(from_element(x, carried) for x in mechanism.forces)]


KINDS: dict[str, type] = {"spring_damper": SpringDamper, "linear_actuator": LinearActuator}
"""The classes of forces between two points, by kind of element; coefficients are arguments of the same names."""


def from_element(element: ForceElement, carried: Mapping[str, Joint]) -> Force:
    """Return the force of an element of a mechanism; `carried` has its joints by the names of their child bodies."""
    names, given = coefficient_names(element, carried), dict(element.coefficients)
    if element.kind == JOINT_SPRING:
        numbers = tuple(given.get(name, 0.0) for name in names)
        count = len(numbers) // 2
        return JointSpring(spring_joint(element, carried).name, numbers[:count], numbers[count:])
    if element.kind == TRANSMISSION:
        motor, joint = transmission_joints(element, carried)
        return Transmission(motor.name, joint.name, **{"stiffness": 0.0} | given)
    try:
        return KINDS[element.kind](element.body_a, element.body_b, element.point_a, element.point_b, **given)
    except InputError as error:
        raise ModelError(str(error), where=f"force {element.name!r}") from None


def _label(pair: SpringDamper | LinearActuator) -> str:
    return f"{type(pair).__name__} between {pair.body_a!r} and {pair.body_b!r}"


def _read_points(pair: SpringDamper | LinearActuator) -> None:
    for name in ("point_a", "point_b"):
        object.__setattr__(pair, name, vector(getattr(pair, name), argument(name, _label(pair), "")))


def _known(now: Instant, body: str, who: Where) -> None:
    names = [*(b.name for b in now.mechanism.bodies), GROUND]
    if body not in names:
        raise unknown_name("body", body, names, where=who)


# --- Ground as a spring and a damper: a compiled force for feet, with friction that is smooth at rest ---
#
# The law is that of ReDySim's legged robots: a spring and a damper along the normal, and pseudo-Coulomb friction. Feet
# sink in by their load over the stiffness, and creep where friction holds them. Hard contact without either is
# `Contact`.


@dataclass(frozen=True)
class GroundForce:
    """The force of a flat ground on a point of a body, given in the body's frame [m].

    `up` is the direction out of the ground: three numbers in the ground's axes, of any length, or a letter such as "y";
    by default z. The ground consists of all positions p with up . p < height [m], up being a unit vector. There, with
    the depth d = height - up . p, it pushes along `up` by N = stiffness d + damping d', never downward, and by friction
    N v / sqrt(v^2 + slip_speed^2) against the velocity v of the point along the ground.
    """

    body: str
    point: Vector = ZERO
    _: KW_ONLY
    stiffness: Coefficient
    damping: Coefficient = 0.0
    friction: Coefficient = 0.0
    height: Coefficient = 0.0
    up: str | Vector | None = None
    slip_speed: float = SLIP_SPEED

    def __post_init__(self) -> None:
        """Read the numbers."""
        label = f"GroundForce on {self.body!r}"
        if self.body == GROUND:
            raise InputError("GroundForce acts on the ground, which cannot move; name a body", path=("body",))
        object.__setattr__(self, "point", vector(self.point, argument("point", label)))
        for name, least in (("stiffness", 0.0), ("damping", 0.0), ("friction", 0.0), ("height", -float("inf"))):
            value = coefficient(getattr(self, name), argument(name, label), least=least)
            object.__setattr__(self, name, value)
        if self.up is not None:
            object.__setattr__(self, "up", _direction(self.up, argument("up", label)))
        object.__setattr__(self, "slip_speed", positive(self.slip_speed, "slip_speed"))

    def apply(self, now: Instant) -> None:
        """Push the point."""
        names = [b.name for b in now.mechanism.bodies]
        if self.body not in names:
            raise unknown_name("body", self.body, names, where=Where("GroundForce", ("body",)))
        k, c, mu, height = number_in(now, (self.stiffness, self.damping, self.friction, self.height))
        place = number_in(now, self.point)
        up = number_in(now, self.up) if self.up is not None else self._upward(now)
        up = scale(1.0 / sqrt(dot(up, up)), up)
        position, velocity = now.point(self.body, place)
        depth, rising = height - dot(up, position), dot(up, velocity)
        load = k * depth - c * rising
        load = where(depth > 0.0, where(load > 0.0, load, 0.0), 0.0)
        along = sub(velocity, scale(rising, up))
        drag = mu * load / sqrt(dot(along, along) + self.slip_speed * self.slip_speed)
        now.push(self.body, place, sub(scale(load, up), scale(drag, along)))

    def _upward(self, now: Instant) -> tuple[float, float, float]:
        """Return z; refuse it where gravity does not pull down along it."""
        gravity = resolve_parts(now.mechanism.gravity, now.mechanism.values())
        if any(gravity) and not gravity[2] < 0.0:
            listed, wanted = (", ".join(f"{s * x + 0.0:g}" for x in gravity) for s in (1.0, -1.0))
            raise InputError(
                f"GroundForce on {self.body!r} pushes along z, but the gravity ({listed}) of {now.mechanism.name!r} "
                f"does not pull against it; give the direction out of the ground, such as up=({wanted})",
                path=("up",),
            )
        return 0.0, 0.0, 1.0


def _direction(x: object, what: str) -> Vector:
    """Return a direction from a letter, or from three numbers or expressions that are not all zero."""
    if isinstance(x, str):
        return axis_of(x, what)
    found = vector(x, what)
    if all(is_number(a) and a == 0.0 for a in found):
        raise InputError(f"{what} is zero; give a direction out of the ground, such as (0, 0, 1)", path=path_of(what))
    return found


# --- Bushings: springs and dampers in all six directions between two frames, such as rubber mounts and flexures ---


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
