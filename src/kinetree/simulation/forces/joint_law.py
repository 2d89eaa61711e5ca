"""Springs, dampers and friction of all joints as arrays, for long mechanisms and implicit steps."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np

from ...algebra.arrays import Numbers
from ...model.mechanism import Mechanism, resolved
from ..arguments import spread
from .joint_forces import JointDamper, JointFriction, JointSpring, require_flat


@dataclass(frozen=True, eq=False)
class JointLaw:
    """tau = k (rest - q) - (c + f / sqrt(qd^2 + slip^2)) qd of every degree of freedom, arrays [..., nv].

    `at` [nv] is the index in q of the coordinate of each degree of freedom.
    """

    stiffness: Numbers
    rest: Numbers
    damping: Numbers
    friction: Numbers
    slip: Numbers
    at: np.ndarray

    def torque(self, q: Numbers, qd: Numbers) -> Numbers:
        """Return the torques [..., nv]."""
        return self.stiffness * (self.rest - q[..., self.at]) - self.resistance(qd) * qd

    def resistance(self, qd: Numbers) -> Numbers:
        """Return the factor of the velocities: the damping plus the share of friction [N m s/rad, N s/m]."""
        return self.damping + self.friction / np.sqrt(qd * qd + self.slip**2) if self.friction.any() else self.damping

    def energy(self, q: Numbers) -> Numbers:
        """Return the energy of the springs [J], shape [...]."""
        return 0.5 * (self.stiffness * (q[..., self.at] - self.rest) ** 2).sum(axis=-1)


def joint_law(
    mechanism: Mechanism, forces: Sequence[Any], parameters: Numbers | None = None
) -> tuple[JointLaw, list[Any]]:
    """Return the law of all springs, dampers and frictions in joints among the forces, and the list of other forces.

    The free parameters are [np], or [..., np] for the laws of many runs; by default those of the mechanism.
    """
    if parameters is not None and parameters.ndim > 1:
        return _stacked(mechanism, forces, parameters)
    values, nv = mechanism.values(parameters), mechanism.nv
    whole = zip(mechanism.joints, mechanism.q_slices, mechanism.v_slices, strict=True)
    places = {joint.name: (joint, q.start, v) for joint, q, v in whole}
    k, rest, damping, friction = np.zeros((4, nv))
    slip, at, others = np.ones(nv), np.zeros(nv, dtype=int), []

    def numbers(given: Any, count: int, what: str, joint: str) -> Numbers:
        return np.array(resolved(spread(given, count, f"the {what} of {joint!r}"), values), dtype=float)

    for force in forces:
        if not isinstance(force, JointSpring | JointDamper | JointFriction):
            others.append(force)
            continue
        if force.joint not in places:
            mechanism.joint(force.joint)  # raises the error that lists the known names
        joint, first, mine = places[force.joint]
        count = mine.stop - mine.start
        if isinstance(force, JointSpring):
            require_flat(joint, "JointSpring")
            more = numbers(force.stiffness, count, "stiffness", joint.name)
            both = k[mine] + more  # parallel springs: stiffnesses add, and the rest is the weighted mean
            pull = k[mine] * rest[mine] + more * numbers(force.rest, count, "rest", joint.name)
            rest[mine] = np.divide(pull, both, out=np.zeros(count), where=both != 0)
            k[mine] = both
            at[mine] = np.arange(first, first + count)
        elif isinstance(force, JointDamper):
            damping[mine] += numbers(force.damping, count, "damping", joint.name)
        elif friction[mine].any() and (slip[mine] != force.slip_speed).any():
            others.append(force)  # two slip speeds in a joint cannot be replaced by one
        else:
            friction[mine] += numbers(force.force, count, "force", joint.name)
            slip[mine] = force.slip_speed
    return JointLaw(k, rest, damping, friction, slip, at), others


def _stacked(mechanism: Mechanism, forces: Sequence[Any], parameters: Numbers) -> tuple[JointLaw, list[Any]]:
    """Return a law with the leading shape of the parameters."""
    found = [joint_law(mechanism, forces, row) for row in parameters.reshape(-1, parameters.shape[-1])]
    laws, lead = [law for law, _ in found], parameters.shape[:-1]
    names = ("stiffness", "rest", "damping", "friction", "slip")
    stacked = {x: np.stack([getattr(law, x) for law in laws]).reshape(*lead, -1) for x in names}
    return JointLaw(**stacked, at=laws[0].at), found[0][1]
