"""Controllers: torques as functions of time and state, compiled together with the mechanism.

Each is a frozen object with `torque(now)`. Gains are one number, or one per degree of freedom. They may be expressions
of the parameters of the mechanism. Controllers that compare coordinates require joints with as many coordinates as
velocities.

In a closed mechanism, torques that follow from its dynamics are those of the `actuated` joints, which the loops
transmit to the others (dynamics/actuated.py). These joints determine the motion, and the references are theirs. If
they are more than the degrees of freedom, the torques are those of least effort, the sum of `weights` times their
squares: by joint, one number or one per axis, by default 1, for forces the square of the mechanism's length. With
`forces`, the springs, dampers and friction of the mechanism itself are compensated too.

With flexible bodies the joints follow the wanted accelerations while the modes move freely, by hybrid dynamics at the
present modal coordinates.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import KW_ONLY, dataclass
from typing import Any

import numpy as np

from ..._support.checks import items, numbers, positive
from ...algebra.scalars import Scalar
from ...analysis.loops.leaders import leaders_among
from ...compiler.ir.trace import Trace
from ...compiler.lower.build import is_long
from ...errors import InputError, Where, argument, brief, unknown_name
from ...model.axes import entries
from ...model.drives import shaft_joint
from ...model.flexible import is_modes
from ...model.scales import loop_units
from ..arguments import coefficients, spread
from .drives import evaluate_reference
from .instants import HINT, Controller, Instant, require_arguments
from .joint_forces import number_in, require_flat
from .references import Reference
from .smooth import clip, maximum, minimum


@dataclass(frozen=True)
class PD:
    """tau = k (q_d - q) + c (qd_d - qd), joint by joint [N m/rad, N m s/rad].                    [Wolinski2015] (32)

    `joints` are the names of the driven joints, in the order of the reference and the gains; by default all. The
    others, such as a floating base, get no torque.
    """

    k: Any
    c: Any
    reference: Reference
    _: KW_ONLY
    joints: Sequence[str] | None = None

    def __post_init__(self) -> None:
        """Read the gains."""
        _read_gains(self)

    def torque(self, now: Instant) -> list[Scalar]:
        """Return the torques."""
        e = _Errors(now, self)
        tau: list[Scalar] = [0.0] * now.mechanism.nv
        for label, k, c, dq, dqd in zip(e.labels, e.k, e.c, e.q, e.qd, strict=True):
            tau[label] = k * dq + c * dqd
        return tau


@dataclass(frozen=True)
class PDGravity:
    """PD control plus the torque that holds the driven joints against gravity at the present position.

    In a closed mechanism the `actuated` joints hold it, and PD control acts in them unless `joints` are given.
    """

    k: Any
    c: Any
    reference: Reference
    _: KW_ONLY
    joints: Sequence[str] | None = None
    actuated: str | Sequence[str] | None = None
    weights: Mapping[str, Any] | None = None
    forces: bool = False

    def __post_init__(self) -> None:
        """Read the gains and the actuated joints."""
        _read_gains(self)
        _read_actuation(self)

    def torque(self, now: Instant) -> list[Scalar]:
        """Return the torques."""
        actuation, still = _Actuation.of(now, self), [0.0] * now.mechanism.nv
        joints = self.actuated if self.joints is None else self.joints
        tau = PD(self.k, self.c, self.reference, joints=joints).torque(now)
        if actuation is not None:
            held = actuation.torques(now, (now.q, still), dict.fromkeys(actuation.labels, 0.0))
            return [x + y for x, y in zip(tau, held, strict=True)]
        held = now.inverse_dynamics(now.q, still, still, forces=True) if self.forces else now.gravity_torque(now.q)
        for label in locate_joints(now, self.joints, "PDGravity")[1]:
            tau[label] = tau[label] + held[label]
        return tau


@dataclass(frozen=True)
class ComputedTorque:
    """tau = ID(q, qd, qdd_d + c (qd_d - qd) + k (q_d - q)): the error of a coordinate follows e'' + c e' + k e = 0.

    The gains k and c have the units 1/s^2 and 1/s. With k = w^2 and c = 2 w an error decays without overshoot. Forces
    other than gravity are not compensated, unless `forces` is True. In a closed mechanism, the coordinates and torques
    are those of the `actuated` joints. Those of flexible bodies are those of the joints, and modes move freely.
    """

    k: Any
    c: Any
    reference: Reference
    _: KW_ONLY
    actuated: str | Sequence[str] | None = None
    weights: Mapping[str, Any] | None = None
    forces: bool = False

    def __post_init__(self) -> None:
        """Read the gains and the actuated joints."""
        _read_gains(self)
        _read_actuation(self)

    def torque(self, now: Instant) -> list[Scalar]:
        """Return the torques."""
        actuation = _Actuation.of(now, self)
        e = _Errors(now, self)
        qdd = [a + c * v + k * x for a, k, c, x, v in zip(e.qdd, e.k, e.c, e.q, e.qd, strict=True)]
        if actuation is None:
            return list(now.inverse_dynamics(now.q, now.qd, qdd, forces=self.forces))
        return actuation.torques(now, (now.q, now.qd), dict(zip(e.labels, qdd, strict=True)))


@dataclass(frozen=True)
class FeedForward:
    """tau = ID(q_d, qd_d, qdd_d): the torques of the reference motion, independent of the state.

    Modes of flexible bodies, of which there is no reference, are those of the present state.

    In a closed mechanism the reference is that of the `actuated` joints. The others follow by Newton's method from
    the present position, which must be near the motion, such as where a PD keeps it there.
    """

    reference: Reference
    _: KW_ONLY
    actuated: str | Sequence[str] | None = None
    weights: Mapping[str, Any] | None = None
    forces: bool = False

    def __post_init__(self) -> None:
        """Read the actuated joints."""
        _read_actuation(self)

    def torque(self, now: Instant) -> list[Scalar]:
        """Return the torques."""
        actuation = _Actuation.of(now, self)
        places, labels = locate_joints(now, self.actuated, "FeedForward")
        q, qd, qdd = evaluate_reference(self.reference, now.t, len(places))
        if actuation is None:
            return list(now.inverse_dynamics(q, qd, qdd, forces=self.forces))
        if now.mechanism.has_flexible and now.mechanism.closures:
            raise InputError(
                f"FeedForward: the position of {now.mechanism.name!r}, whose loops pass through flexible bodies, does "
                "not follow from the actuated joints; use ComputedTorque"
            )
        if now.mechanism.rolls:
            raise InputError(
                f"FeedForward: {now.mechanism.name!r} has equations of velocities alone, such as rolling: its position "
                "does not follow from the actuated joints; use ComputedTorque"
            )
        state = now.closed_state(
            actuation.leaders, dict(zip(places, q, strict=True)), dict(zip(labels, qd, strict=True))
        )
        return actuation.torques(now, state, dict(zip(labels, qdd, strict=True)))


@dataclass(frozen=True)
class Sum:
    """The sum of several controllers, such as FeedForward and PD."""

    controllers: Sequence[Controller]

    def torque(self, now: Instant) -> list[Scalar]:
        """Return the torques."""
        tau: list[Scalar] = [0.0] * now.mechanism.nv
        for controller in self.controllers:
            tau = [a + b for a, b in zip(tau, controller.torque(now), strict=True)]
        return tau


@dataclass(frozen=True)
class Saturated:
    """A controller with torques clipped to +- limit, by default the effort limits of the joints [N m, N]."""

    controller: Controller
    limit: Any = None

    def __post_init__(self) -> None:
        """Read the limit."""
        if self.limit is not None:
            limit = numbers(self.limit, argument("limit", "Saturated"), least=0.0, infinite=True)
            object.__setattr__(self, "limit", limit)

    def torque(self, now: Instant) -> list[Scalar]:
        """Return the torques."""
        limits = self.limit if self.limit is not None else self._efforts(now)
        bounds = spread(limits, now.mechanism.nv, argument("limit", "Saturated"))
        tau = self.controller.torque(now)
        return [x if b == float("inf") else clip(x, -b, b) for x, b in zip(tau, bounds, strict=True)]

    @staticmethod
    def _efforts(now: Instant) -> list[float]:
        efforts = [(i.joint.limits.effort or (float("inf"),) * i.kind.NV) for i in now.tree.records]
        flat = [float(x) for effort in efforts for x in effort]
        if flat and min(flat) == float("inf"):
            raise InputError(
                f"no joint of {now.mechanism.name!r} has an effort limit; "
                "give Saturated a limit, or the joints limits of effort",
                path=("limit",),
            )
        return flat


@dataclass(frozen=True)
class TorqueFunction:
    """A function of (t, q, qd), with q and qd as lists of scalars, that returns one torque per degree of freedom.

    It is called with traced scalars, and its operations are compiled. It cannot store a value for a later call; a
    PythonControl can.
    """

    function: Callable[[Scalar, list[Scalar], list[Scalar]], Iterable[Scalar]]

    def torque(self, now: Instant) -> list[Scalar]:
        """Return the torques."""
        name = getattr(self.function, "__name__", type(self.function).__name__)
        require_arguments(self.function, "t, q, qd", f"the controller {name!r}")
        try:
            list(self.function(*_scratch(now)))  # a value stored in this call causes an error in the next
            tau = list(self.function(now.t, list(now.q), list(now.qd)))
        except (TypeError, AttributeError) as error:
            raise InputError(f"the controller {name!r} cannot be compiled ({error}); {HINT}") from error
        if len(tau) != now.mechanism.nv:
            raise InputError(f"the controller {name!r} returned {len(tau)} torques; expected {now.mechanism.nv}")
        return tau


def _scratch(now: Instant) -> tuple[Scalar, list[Scalar], list[Scalar]]:
    """Return (t, q, qd) of a trace that is discarded."""
    trace = Trace()
    t, q, qd = ([trace.input(g, k) for k in range(n)] for g, n in enumerate((1, len(now.q), len(now.qd))))
    return t[0], q, qd


def locate_joints(
    now: Instant, joints: Sequence[str] | None, who: str, *remedy: str, key: str = "joints"
) -> tuple[list[int], list[int]]:
    """Return the indices in q and in qd of joints or axes; refuse joints with nq != nv.

    The default is all joints, without modes of flexible bodies, which no drive moves, and circuits of motors.
    """
    m = now.mechanism
    known = [joint.name for joint in m.joints]
    others = {motor.circuit for motor in m.motors} | {joint.name for joint in m.joints if is_modes(joint)}
    names = [name for name in known if name not in others] if joints is None else list(joints)
    places: list[int] = []
    labels: list[int] = []
    for k, name in enumerate(names):
        joint = name if name in known else name.rpartition(".")[0]
        if joint not in known:
            raise unknown_name("joint", name, known, where=Where(who, (key,)))
        if name in names[:k] or joint in names[:k]:
            raise InputError(f"{who} drives the joint {name!r} twice; name it once", path=(key,))
        require_flat(m.joint(joint), who, *remedy, key=key)
        places += entries(m, name, 0)
        labels += entries(m, name, 1)
    return places, labels


@dataclass(frozen=True)
class _Actuation:
    """The degrees of freedom of actuated joints, the ones that determine the motion, and weights of all."""

    labels: tuple[int, ...]
    leaders: frozenset[int]
    weights: dict[int, float]
    forces: bool

    def torques(
        self, now: Instant, state: tuple[list[Scalar], list[Scalar]], wanted: dict[int, Scalar]
    ) -> list[Scalar]:
        """Return the torques that give the actuated degrees of freedom the wanted accelerations at a state."""
        return now.actuated_torques(*state, wanted, self.leaders, self.weights, forces=self.forces)

    @classmethod
    def of(cls, now: Instant, controller: PDGravity | ComputedTorque | FeedForward) -> _Actuation | None:
        """Return the actuation of a controller; None for one that drives all joints of an open tree."""
        m, who = now.mechanism, type(controller).__name__
        if controller.actuated is None:
            if m.closures:
                raise InputError(
                    f"{who} on {m.name!r}, which has loops: name the joints with a drive, actuated=[...]; the "
                    "reference and the gains are theirs, and the loops move the other joints",
                    path=("actuated",),
                )
            if not m.has_flexible or isinstance(controller, PDGravity):
                return None
        if is_long(m):
            raise InputError(f"{who}: actuated= takes mechanisms with unrolled code, and {m.name!r} is too long for it")
        remedy = () if controller.actuated else ("name the joints to drive by actuated=",)
        labels = tuple(locate_joints(now, controller.actuated, who, *remedy, key="actuated")[1])
        weights = {k: float(x) ** 2 for k, x in enumerate(loop_units(m)[1])}
        for name, value in controller.weights or ():
            own = entries(m, name, 1)
            if not set(own) <= set(labels):
                raise InputError(f"{who}: weight of {name!r}, which is not actuated; leave it out", path=("weights",))
            weights |= zip(own, spread(value, len(own), argument("weights", who, "")), strict=True)
        leaders = frozenset(leaders_among(m, labels, who))
        if m.has_flexible and len(leaders) < len(labels):
            raise InputError(
                f"{who} on {m.name!r}, which has flexible bodies such as {m.flexible_name!r}: {len(labels)} actuated "
                f"degrees of freedom for a motion of {len(leaders)} press against each other through bodies that give "
                f"way; actuate {len(leaders)}",
                path=("actuated",),
            )
        return cls(labels, leaders, weights, controller.forces)


class _Errors:
    """The reference minus the state, and the gains: one entry per driven degree of freedom."""

    def __init__(self, now: Instant, controller: PD | PDGravity | ComputedTorque) -> None:
        who = type(controller).__name__
        given = [name for name in ("joints", "actuated") if hasattr(controller, name)]
        names = next((x for x in (getattr(controller, name) for name in given) if x is not None), None)
        places, self.labels = locate_joints(now, names, who, *(f"name the joints to drive by {x}=" for x in given[:1]))
        count = len(places)
        self.k = number_in(now, spread(controller.k, count, argument("k", who, "")))
        self.c = number_in(now, spread(controller.c, count, argument("c", who, "")))
        q, qd, self.qdd = evaluate_reference(controller.reference, now.t, count)
        self.q = [want - now.q[k] for want, k in zip(q, places, strict=True)]
        self.qd = [want - now.qd[k] for want, k in zip(qd, self.labels, strict=True)]


def _read_gains(controller: PD | PDGravity | ComputedTorque) -> None:
    who = type(controller).__name__
    object.__setattr__(controller, "k", coefficients(controller.k, argument("k", who, "")))
    object.__setattr__(controller, "c", coefficients(controller.c, argument("c", who, "")))
    if not callable(controller.reference):
        raise InputError(f"the reference of {who} is not a function of time; give one, or Hold(q) for a set point")


def _read_actuation(controller: PDGravity | ComputedTorque | FeedForward) -> None:
    """Store the names of the actuated joints and the weights as tuples."""
    who, given = type(controller).__name__, controller.actuated
    if given is not None:
        names = (given,) if isinstance(given, str) else tuple(given)
        if not names or not all(isinstance(x, str) for x in names):
            raise InputError(f"{who}: actuated is {brief(given)}; give names of joints", path=("actuated",))
        object.__setattr__(controller, "actuated", names)
    if controller.weights is not None:
        if given is None or not isinstance(controller.weights, Mapping):
            raise InputError(f"{who}: weights are numbers by actuated joint, with actuated=[...]", path=("weights",))
        what = argument("weights", who, "")
        read = {name: tuple(positive(w, what) for w in items(x, what)) for name, x in controller.weights.items()}
        object.__setattr__(controller, "weights", tuple(read.items()))
    if not isinstance(controller.forces, bool):
        raise InputError(f"{who}: forces is {brief(controller.forces)}; give True or False", path=("forces",))


# --- Control of the mechanism's own actuators: torques by their gears, gains and bounds ---


@dataclass(frozen=True)
class ActuatorControl:
    """The torques of the actuators of a mechanism under controls u, in the order of `mechanism.actuators`.

    `control` is a number, one per actuator, numbers by name (zero for others), or a reference: a function of time. The
    force of an actuator is p = gain u + bias . (1, l, dl/dt) with l = gear . q, and its torques are gear p. u and p
    stay within their bounds, and the torques of all actuators of a joint within its effort. Those of an elastic joint
    act on its motor.
    """

    control: Reference | Mapping[str, float] | float | Sequence[float]

    def torque(self, now: Instant) -> list[Scalar]:
        """Return the torques."""
        m = now.mechanism
        if not m.actuators:
            raise InputError(f"{m.name!r} has no actuators; give a controller of torques, such as kt.PD")
        count = len(m.actuators)
        if callable(self.control):
            controls = list(evaluate_reference(self.control, now.t, count)[0])
        elif isinstance(self.control, Mapping):
            controls = _by_name(self.control, [a.name for a in m.actuators])
        else:
            given = np.asarray(self.control, dtype=float)
            if given.shape not in ((), (count,)):
                names = ", ".join(a.name for a in m.actuators[:10])
                raise InputError(f"control has shape {given.shape}; give a number, or one per actuator: {names}")
            controls = np.broadcast_to(given, (count,)).tolist()
        tau: list[Scalar] = [0.0] * m.nv
        for actuator, u in zip(m.actuators, controls, strict=True):
            joint = shaft_joint(m, actuator.joint)
            own = entries(m, joint, 1)
            speed = sum(g * now.qd[k] for g, k in zip(actuator.gear, own, strict=True))
            constant, by_place, by_speed = actuator.bias
            p = actuator.gain * _within(u, actuator.control) + constant + by_speed * speed
            if by_place:
                at = entries(m, joint, 0)
                p = p + by_place * sum(g * now.q[k] for g, k in zip(actuator.gear, at, strict=True))
            p = _within(p, actuator.force)
            for g, k in zip(actuator.gear, own, strict=True):
                tau[k] = tau[k] + g * p
        for joint, own in zip(m.resolved_joints, m.v_slices, strict=True):
            for k, most in zip(range(own.start, own.stop), joint.limits.effort, strict=False):
                tau[k] = _within(tau[k], (-most, most))
        return tau


def _by_name(given: Mapping[str, float], names: list[str]) -> list[float]:
    """Return a control per actuator, zero for those that are not named."""
    for name in given:
        if name not in names:
            raise unknown_name("actuator", str(name), names)
    return [float(np.asarray(given.get(name, 0.0)).reshape(-1)[0]) for name in names]


def _within(x: Scalar, bounds: tuple[float, ...]) -> Scalar:
    """Return a number within (lower, upper), which may be infinite or, if empty, none."""
    if bounds and math.isfinite(bounds[0]):
        x = maximum(x, bounds[0])
    return minimum(x, bounds[1]) if bounds and math.isfinite(bounds[1]) else x
