"""Sums of the magnitudes of all terms of inertias and torques: the scale of their rounding errors."""

from __future__ import annotations

from dataclasses import replace

import numpy as np

from interpreted import compute
from kinetree.formulations.spatial_operators import spatial_operators
from kinetree.model import Mechanism

EPS = float(np.finfo(float).eps)


def inertia_scale(mechanism: Mechanism, q) -> float:
    """Return the largest sum of absolute terms of an entry of I."""
    s = spatial_operators(mechanism, q)
    V = np.abs(s.Phi @ s.H)
    return float((V.T @ np.abs(s.M) @ V).max(initial=0.0))


def convective_scale(mechanism: Mechanism, q, qd) -> float:
    """Return the largest sum of absolute terms of an entry of C."""
    s = spatial_operators(mechanism, q, qd)
    V, dV = _velocities(s)
    return float((V.T @ (np.abs(s.M) @ dV + np.abs(s.Omega) @ V)).max(initial=0.0))


def torque_scale(mechanism: Mechanism, q, qd, qdd=None, wrenches=None) -> float:
    """Return the largest sum of absolute terms of a torque: of inertia, motion, gravity and external wrenches."""
    return float(torque_scales(mechanism, q, qd, qdd, wrenches).max(initial=0.0))


def torque_scales(mechanism: Mechanism, q, qd, qdd=None, wrenches=None) -> np.ndarray:
    """Return the sums of absolute terms of all torques, [nv]."""
    s = spatial_operators(mechanism, q, qd, wrenches)
    V, dV = _velocities(s)
    speeds = np.abs(qd)
    rates = dV @ speeds + (V @ np.abs(qdd) if qdd is not None else 0.0)
    terms = np.abs(s.M) @ rates + np.abs(s.Omega) @ (V @ speeds) + np.abs(s.F_G) + np.abs(s.F_Q)
    return V.T @ terms


def per_sample(scale, mechanism: Mechanism, *states) -> np.ndarray:
    """Return one of these scales per sample of a batch, [n]; 1 where every term is zero."""
    values = np.array([scale(mechanism, *sample) for sample in zip(*states, strict=True)])
    return np.where(values > 0, values, 1.0)


def dynamics_scale(mechanism: Mechanism, name: str, q, qd, force) -> float:
    """Return the scale of rounding errors of forward or inverse dynamics of a batch, with its condition."""
    if name == "inverse_dynamics":
        return max(torque_scale(mechanism, *x) for x in zip(q, qd, force, strict=True))
    tree = replace(mechanism, loops=(), couplings=())  # the multipliers of loops may cancel its accelerations
    size = max(np.abs(compute(m, name, q, qd, force)).max() for m in (mechanism, tree))
    return max(dynamics_condition(mechanism, q), 8.0) * float(size)


def dynamics_condition(mechanism: Mechanism, q) -> float:
    """Return the largest condition number of the inertia matrices, multiplied by that of the loops."""
    inertia = compute(mechanism, "inertia_matrix", q)
    if not mechanism.closures:
        return float(np.linalg.cond(inertia).max())
    s = np.linalg.svd(compute(mechanism, "closure_jacobian", q), compute_uv=False)
    least = np.where(s > 1e-9 * s.max(axis=-1, keepdims=True), s, np.inf).min(axis=-1)
    return float((np.linalg.cond(inertia) * s.max(axis=-1) / least).max())


def _velocities(s) -> tuple[np.ndarray, np.ndarray]:
    V = np.abs(s.Phi @ s.H)
    return V, np.abs(s.Phi) @ (np.abs(s.dB) @ V + np.abs(s.dH))
