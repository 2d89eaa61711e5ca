"""Control of the mechanism's own actuators: torques by their gears, gains and bounds."""

from __future__ import annotations

import math
from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

import numpy as np

from ...errors import InputError, unknown_name
from ...model.axes import entries
from .drives import evaluate_reference
from .instants import Instant
from .smooth import maximum, minimum


@dataclass(frozen=True)
class ActuatorControl:
    """The torques of the actuators of a mechanism under controls u, in the order of `mechanism.actuators`.

    `control` is a number, one per actuator, numbers by name (zero for others), or a reference: a function of time. The
    force of an actuator is p = gain u + bias . (1, l, dl/dt) with l = gear . q, and its torques are gear p. u and p
    stay within their bounds, and the torques of all actuators of a joint within its effort.
    """

    control: Any

    def torque(self, now: Instant) -> list[Any]:
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
        tau: list[Any] = [0.0] * m.nv
        for actuator, u in zip(m.actuators, controls, strict=True):
            own = entries(m, actuator.joint, 1)
            speed = sum(g * now.qd[k] for g, k in zip(actuator.gear, own, strict=True))
            constant, by_place, by_speed = actuator.bias
            p = actuator.gain * _within(u, actuator.control) + constant + by_speed * speed
            if by_place:
                at = entries(m, actuator.joint, 0)
                p = p + by_place * sum(g * now.q[k] for g, k in zip(actuator.gear, at, strict=True))
            p = _within(p, actuator.force)
            for g, k in zip(actuator.gear, own, strict=True):
                tau[k] = tau[k] + g * p
        for joint, own in zip(m.resolved_joints, m.v_slices, strict=True):
            for k, most in zip(range(own.start, own.stop), joint.limits.effort, strict=False):
                tau[k] = _within(tau[k], (-most, most))
        return tau


def _by_name(given: Mapping[str, Any], names: list[str]) -> list[float]:
    """Return a control per actuator, zero for those that are not named."""
    for name in given:
        if name not in names:
            raise unknown_name("actuator", str(name), names)
    return [float(np.asarray(given.get(name, 0.0)).reshape(-1)[0]) for name in names]


def _within(x: Any, bounds: tuple[float, ...]) -> Any:
    """Return a number within (lower, upper), which may be infinite or, if empty, none."""
    if bounds and math.isfinite(bounds[0]):
        x = maximum(x, bounds[0])
    return minimum(x, bounds[1]) if bounds and math.isfinite(bounds[1]) else x
