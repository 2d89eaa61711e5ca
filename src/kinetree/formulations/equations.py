"""The equations of motion at one state, in the form that every formulation returns."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
from numpy.typing import ArrayLike

from .. import joints as joint_kinds
from ..model.mechanism import Mechanism, resolve_parts
from .kinematics import BodyState, Matrix


@dataclass(frozen=True)
class Equations:
    """I qdd + C qd + g = tau + external, at one state.

    `convective` is C qd; C itself is None for formulations that do not compute the matrix. `external` is N^T w_ext.
    """

    I: Matrix  # noqa: E741 - the papers' letter
    convective: Matrix
    g: Matrix
    external: Matrix
    C: Matrix | None = None

    def torque(self, qdd: ArrayLike) -> Matrix:
        """Return tau for given accelerations."""
        return self.I @ np.asarray(qdd, dtype=float) + self.convective + self.g - self.external

    def acceleration(self, tau: ArrayLike) -> Matrix:
        """Return qdd for given joint torques, by a dense solution."""
        acting = np.asarray(tau, dtype=float) + self.external - self.convective - self.g
        return np.asarray(np.linalg.solve(self.I, acting), dtype=np.float64)


def external_wrenches(states: list[BodyState], wrenches: ArrayLike | None) -> list[Matrix]:
    """Return the wrench [n; f] on each body about its origin in the ground's axes, from [nb, 6] in body axes."""
    given = np.zeros((len(states), 6)) if wrenches is None else np.asarray(wrenches, dtype=float)
    return [np.concatenate([s.R @ w[:3], s.R @ w[3:]]) for s, w in zip(states, given, strict=True)]


def armatures(mechanism: Mechanism) -> Matrix:
    """Return the drive inertia of each degree of freedom [nv], which adds to the diagonal of I and to nothing else."""
    joints = resolve_parts(mechanism.joints, mechanism.values())
    return np.array([a for j in joints for a in j.armature or (0.0,) * joint_kinds.kind(j.kind).NV], dtype=float)
