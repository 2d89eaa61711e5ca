"""Controllers: torques as functions of time and state, compiled together with the mechanism.

Each is a frozen object with `torque(now)`. Gains are one number, or one per degree of freedom. They may be expressions
of the parameters of the mechanism. Controllers that compare coordinates require joints with as many coordinates as
velocities.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Sequence
from dataclasses import KW_ONLY, dataclass
from typing import Any

from ...compiler.ir.trace import Trace
from ...errors import InputError, Where, argument, unknown_name
from ...numbers import numbers
from ..arguments import coefficients, spread
from ..drives import desired
from ..forces.joint_forces import number_in, require_flat
from ..functions_of_now import HINT
from ..instants import Controller, Instant
from ..references import Reference
from ..smooth import clip


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

    def torque(self, now: Instant) -> list[Any]:
        """Return the torques."""
        e = _Errors(now, self)
        tau: list[Any] = [0.0] * now.mechanism.nv
        for label, k, c, dq, dqd in zip(e.labels, e.k, e.c, e.q, e.qd, strict=True):
            tau[label] = k * dq + c * dqd
        return tau


@dataclass(frozen=True)
class PDGravity:
    """PD control plus the torque that holds the driven joints against gravity at the present position."""

    k: Any
    c: Any
    reference: Reference
    _: KW_ONLY
    joints: Sequence[str] | None = None

    def __post_init__(self) -> None:
        """Read the gains."""
        _read_gains(self)

    def torque(self, now: Instant) -> list[Any]:
        """Return the torques."""
        tau = PD(self.k, self.c, self.reference, joints=self.joints).torque(now)
        gravity = now.gravity_torque(now.q)
        for label in driven(now, self.joints, "PDGravity")[1]:
            tau[label] = tau[label] + gravity[label]
        return tau


@dataclass(frozen=True)
class ComputedTorque:
    """tau = ID(q, qd, qdd_d + c (qd_d - qd) + k (q_d - q)): the error of a coordinate follows e'' + c e' + k e = 0.

    The gains k and c have the units 1/s^2 and 1/s. With k = w^2 and c = 2 w an error decays without overshoot. Forces
    other than gravity are not compensated.
    """

    k: Any
    c: Any
    reference: Reference

    def __post_init__(self) -> None:
        """Read the gains."""
        _read_gains(self)

    def torque(self, now: Instant) -> list[Any]:
        """Return the torques."""
        e = _Errors(now, self)
        qdd = [a + c * v + k * x for a, k, c, x, v in zip(e.qdd, e.k, e.c, e.q, e.qd, strict=True)]
        return list(now.inverse_dynamics(now.q, now.qd, qdd))


@dataclass(frozen=True)
class FeedForward:
    """tau = ID(q_d, qd_d, qdd_d): the torques of the reference motion, independent of the state."""

    reference: Reference

    def torque(self, now: Instant) -> list[Any]:
        """Return the torques."""
        coordinates, _ = driven(now, None, "FeedForward")
        q, qd, qdd = desired(self.reference, now.t, len(coordinates))
        return list(now.inverse_dynamics(q, qd, qdd))


@dataclass(frozen=True)
class Sum:
    """The sum of several controllers, such as FeedForward and PD."""

    controllers: Sequence[Controller]

    def torque(self, now: Instant) -> list[Any]:
        """Return the torques."""
        tau: list[Any] = [0.0] * now.mechanism.nv
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

    def torque(self, now: Instant) -> list[Any]:
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
class Function:
    """A function of (t, q, qd), with q and qd as lists of scalars, that returns one torque per degree of freedom.

    It is called with traced scalars, and its operations are compiled. It cannot store a value for a later call; a
    PythonControl can.
    """

    function: Callable[[Any, list[Any], list[Any]], Iterable[Any]]

    def torque(self, now: Instant) -> list[Any]:
        """Return the torques."""
        name = getattr(self.function, "__name__", type(self.function).__name__)
        try:
            list(self.function(*_scratch(now)))  # a value stored in this call causes an error in the next
            tau = list(self.function(now.t, list(now.q), list(now.qd)))
        except (TypeError, AttributeError) as error:
            raise InputError(f"the controller {name!r} cannot be compiled ({error}); {HINT}") from error
        if len(tau) != now.mechanism.nv:
            raise InputError(f"the controller {name!r} returned {len(tau)} torques; expected {now.mechanism.nv}")
        return tau


def _scratch(now: Instant) -> tuple[Any, list[Any], list[Any]]:
    """Return (t, q, qd) of a trace that is discarded."""
    trace = Trace()
    t, q, qd = ([trace.input(g, k) for k in range(n)] for g, n in enumerate((1, len(now.q), len(now.qd))))
    return t[0], q, qd


def driven(now: Instant, joints: Sequence[str] | None, who: str, *remedy: str) -> tuple[list[int], list[int]]:
    """Return the indices in q and in qd of the named joints (all by default); refuse joints with nq != nv."""
    m = now.mechanism
    whole = zip(m.joints, m.q_slices, m.v_slices, strict=True)
    places = {joint.name: (range(q.start, q.stop), range(v.start, v.stop)) for joint, q, v in whole}
    names = list(places) if joints is None else list(joints)
    for k, name in enumerate(names):
        if name not in places:
            raise unknown_name("joint", name, places, where=Where(who, ("joints",)))
        if name in names[:k]:
            raise InputError(f"{who} drives the joint {name!r} twice; name it once", path=("joints",))
        require_flat(now.mechanism.joint(name), who, *remedy, key="joints")
    chosen = [places[name] for name in names]
    return [k for q, _ in chosen for k in q], [k for _, v in chosen for k in v]


class _Errors:
    """The reference minus the state, and the gains: one entry per driven degree of freedom."""

    def __init__(self, now: Instant, controller: Any) -> None:
        who = type(controller).__name__
        choice = ("name the joints to drive by joints=",) if hasattr(controller, "joints") else ()
        places, self.labels = driven(now, getattr(controller, "joints", None), who, *choice)
        count = len(places)
        self.k = number_in(now, spread(controller.k, count, argument("k", who, "")))
        self.c = number_in(now, spread(controller.c, count, argument("c", who, "")))
        q, qd, self.qdd = desired(controller.reference, now.t, count)
        self.q = [want - now.q[k] for want, k in zip(q, places, strict=True)]
        self.qd = [want - now.qd[k] for want, k in zip(qd, self.labels, strict=True)]


def _read_gains(controller: Any) -> None:
    who = type(controller).__name__
    object.__setattr__(controller, "k", coefficients(controller.k, argument("k", who, "")))
    object.__setattr__(controller, "c", coefficients(controller.c, argument("c", who, "")))
    if not callable(controller.reference):
        raise InputError(f"the reference of {who} is not a function of time; give one, or Hold(q) for a set point")
