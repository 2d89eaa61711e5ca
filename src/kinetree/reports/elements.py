"""Springs, dampers and linear actuators over a run: force, length and speed of each, and the wrenches on the bodies."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass, field
from typing import Any

import numpy as np

from ..algebra.arrays import Numbers
from ..dynamics.force_laws import TINY, spring_damper
from ..errors import InputError, brief
from ..model.axes import entries
from ..model.mechanism import resolve_parts
from ..model.parts import GROUND
from ..results.derived import call_options
from ..results.trajectory import Trajectory
from ..simulation.acting.joint_forces import JointSpring
from ..simulation.acting.point_forces import LinearActuator, SpringDamper, from_element
from .measures import Extreme, extreme, highest, rms, work


@dataclass(frozen=True)
class ElementLoad:
    """A force element between two points over a run.

    `force` [nt] pushes the points apart if positive, and pulls them together if negative [N]. `length` [nt] is their
    distance [m], `speed` its rate [m/s]. `delivered` is the work that the element does, `absorbed` that which is done
    on it, both positive [J].
    """

    name: str
    sort: str
    peak: Extreme
    rms: float
    shortest: Extreme
    longest: Extreme
    peak_speed: Extreme
    peak_power: Extreme
    delivered: float
    absorbed: float
    t: Numbers = field(repr=False)
    force: Numbers = field(repr=False)
    length: Numbers = field(repr=False)
    speed: Numbers = field(repr=False)


@dataclass(frozen=True)
class Acting:
    """Loads of force elements, and what they exert: joint torques [nt, nv] and wrenches on bodies [nt, nb, 6]."""

    loads: tuple[ElementLoad, ...]
    torques: Numbers
    wrenches: Numbers


def own_elements(run: Trajectory) -> list[tuple[str, Any]]:
    """Return the force elements of a run's mechanism as (name, force)."""
    mechanism = run.system.mechanism
    carried = {j.child: j for j in mechanism.joints}
    return [(element.name, from_element(element, carried)) for element in mechanism.forces]


def name_forces(forces: Iterable[Any]) -> list[tuple[str, Any]]:
    """Return forces that were given to `simulate` as (name, force), or raise an InputError for other kinds."""
    out = []
    for k, force in enumerate(forces, 1):
        if not isinstance(force, SpringDamper | LinearActuator):
            raise InputError(
                f"forces has {brief(force)}; a load report takes SpringDamper and LinearActuator, whose forces follow "
                "from the states of a run"
            )
        out.append((f"{type(force).__name__} {k}", force))
    return out


def acting(run: Trajectory, elements: Iterable[tuple[str, Any]]) -> Acting:
    """Return the loads of force elements at all samples of a single run."""
    mechanism = run.system.mechanism
    values = mechanism.values(run.constant_parameters)
    torques = np.zeros((len(run), mechanism.nv))
    wrenches = np.zeros((len(run), len(mechanism.bodies), 6))
    loads, pairs = [], list(elements)
    twists = _twists(run) if any(not isinstance(force, JointSpring) for _, force in pairs) else np.zeros(0)
    for name, force in pairs:
        if isinstance(force, JointSpring):
            at, coordinates = (entries(mechanism, force.joint, which) for which in (1, 0))
            k, rest = (np.array(resolve_parts(x, values), dtype=float) for x in (force.stiffness, force.rest))
            torques[:, at] += k * (rest - run.q[:, coordinates])
        else:
            loads.append(_between_points(run, name, force, values, wrenches, twists))
    return Acting(tuple(loads), torques, wrenches)


def _between_points(
    run: Trajectory, name: str, force: Any, values: dict[str, Any], wrenches: Numbers, twists: Numbers
) -> ElementLoad:
    """Return the load of an element, and add its wrenches to those on the bodies."""
    a, va = _point_motion(run, force.body_a, resolve_parts(force.point_a, values), twists)
    b, vb = _point_motion(run, force.body_b, resolve_parts(force.point_b, values), twists)
    d = b - a
    length = np.sqrt((d * d).sum(axis=-1) + TINY**2)
    direction = d / length[:, None]
    speed = (direction * (vb - va)).sum(axis=-1)
    if isinstance(force, SpringDamper):
        numbers = resolve_parts((force.stiffness, force.damping, force.free_length, force.preload), values)
        push = spring_damper(length, speed, *numbers)  # type: ignore[arg-type]
    elif callable(force.force):
        law: Any = force.force
        push = np.array([float(law(float(t))) for t in run.t])
    else:
        push = np.full(len(run), resolve_parts(force.force, values), dtype=float)
    for body, point, sign in ((force.body_a, force.point_a, -1.0), (force.body_b, force.point_b, 1.0)):
        if body != GROUND:
            k = [x.name for x in run.system.bodies].index(body)
            own = (np.swapaxes(run["poses"][:, k, :3, :3], -1, -2) @ direction[..., None])[..., 0]
            f = sign * push[:, None] * own
            arm = np.array(resolve_parts(point, values), dtype=float)
            wrenches[:, k] += np.concatenate([np.cross(arm, f), f], axis=-1)
    delivered, absorbed = work(run.t, push * speed)
    sort = "spring and damper" if isinstance(force, SpringDamper) else "linear actuator"
    low, high = highest(run.t, -length), highest(run.t, length)
    return ElementLoad(
        name, sort, extreme(run.t, push), rms(run.t, push), Extreme(-low.value, low.t), high,
        extreme(run.t, speed), extreme(run.t, push * speed), delivered, absorbed, run.t, push, length, speed,
    )  # fmt: skip


def _point_motion(run: Trajectory, body: str, point: Any, twists: Numbers) -> tuple[Numbers, Numbers]:
    """Return positions [nt, 3] and velocities [nt, 3] of a point of a body, in the axes of the ground."""
    place = np.array(point, dtype=float)
    if body == GROUND:
        return np.broadcast_to(place, (len(run), 3)), np.zeros((len(run), 3))
    k = [b.name for b in run.system.bodies].index(body)
    pose, twist = run["poses"][:, k], twists[:, k]
    velocity = twist[:, 3:] + np.cross(twist[:, :3], place)
    return pose[:, :3, :3] @ place + pose[:, :3, 3], (pose[:, :3, :3] @ velocity[..., None])[..., 0]


def _twists(run: Trajectory) -> Numbers:
    return run.system.twists(run.q, run.qd, **call_options(run))
