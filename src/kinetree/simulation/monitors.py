"""Monitors of a finished run: balances of energy and momentum; limits of joints are in `limits`.

Work and impulse are integrals over the samples of a run: `sample_integrals` states their error.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import numpy as np

from ..errors import InputError
from ..joints import kind
from ..model.mechanism import resolved
from ..model.parts import GROUND
from .limits import LimitReport, Violation, limit_violations
from .sample_integrals import integral

DOUBTFUL = 1e-3
"""The residual, relative to the energy in motion, above which the samples are checked for coarseness. Samples that are
too coarse leave far larger residuals. Fast motions with little work may be sampled coarsely without harm."""

COARSE = 0.05
"""The largest difference between velocities and the integral of the accelerations, relative to the largest velocity,
for which samples are fine enough for work. On a damped pendulum the error of the work was below 1 % up to here."""


@dataclass(frozen=True, eq=False)
class EnergyBalance:
    """Energy against work [J], [..., nt]: residual = energy - energy(0) - joint_work - wrench_work.

    The joint work is that of control and of all forces in joints, dampers included. The wrench work is that of forces
    between points and of external wrenches. Per run, `scale` is the larger of the energy in motion and the work, and
    `coarseness` is the difference between velocities and the integral of the accelerations, relative to the largest
    velocity. Above COARSE the samples are too far apart to integrate work: the residual is the error of the integral.
    """

    t: np.ndarray
    energy: np.ndarray
    joint_work: np.ndarray
    wrench_work: np.ndarray
    residual: np.ndarray
    scale: np.ndarray
    coarseness: np.ndarray

    @property
    def too_coarse(self) -> bool:
        """Whether the samples of any run are too coarse to integrate work."""
        return bool((self.coarseness > COARSE).any())

    @property
    def error(self) -> float:
        """The largest residual of all runs, relative to the scale; NaN if the samples of all runs are too coarse."""
        fine = np.where(self.coarseness > COARSE, np.nan, 1.0)
        return _largest(self.residual * fine[..., None], self.scale[..., None])

    def __str__(self) -> str:
        """Return one line with the error and the work, or with the coarseness of the samples."""
        if self.too_coarse:
            count, size = int((self.coarseness > COARSE).sum()), self.coarseness.size
            runs = f" in {count} of {size} runs" if size > 1 else ""
            return (
                f"energy balance: the samples are too coarse to integrate work{runs} (accelerations at the samples "
                f"give the velocities only to {_most(self.coarseness):.2g} of their size); simulate with more output "
                "times"
            )
        return (
            f"energy balance: largest residual {_most(self.residual):.3g} J, {self.error:.3g} of the energy in motion; "
            f"work in joints {_ends(self.joint_work)} J, of wrenches {_ends(self.wrench_work)} J"
        )


@dataclass(frozen=True, eq=False)
class MomentumBalance:
    """Momentum [angular; linear] about the ground's origin against the impulse of gravity and wrenches, [..., nt, 6].

    residual = momentum - momentum(0) - impulse [N m s, N s].
    """

    t: np.ndarray
    momentum: np.ndarray
    impulse: np.ndarray
    residual: np.ndarray

    def __str__(self) -> str:
        """Return one line with the largest residuals."""
        angular, linear = _most(self.residual[..., :3]), _most(self.residual[..., 3:])
        return f"momentum balance: largest residual {angular:.3g} N m s angular, {linear:.3g} N s linear"


def energy_balance(run: Any) -> EnergyBalance:
    """Return the energy of a Trajectory less the work of the torques and wrenches that acted."""
    energy = run["energy"]
    joint_work = integral(run.t, (run["tau"] * run.qd).sum(axis=-1))
    wrench_work = np.zeros_like(energy)
    if run.wrenches is not None and np.any(run.wrenches):
        power = (run.wrenches * run.system.twists(run.q, run.qd, **_options(run))).sum(axis=(-1, -2))
        wrench_work = integral(run.t, power)
    residual = energy - energy[..., :1] - joint_work - wrench_work
    potential = run["potential_energy"]
    sizes = (
        _highest(run["kinetic_energy"]), _highest(potential) + _highest(-potential),
        _highest(np.abs(joint_work)), _highest(np.abs(wrench_work)),
    )  # fmt: skip
    scale = np.max(sizes, axis=0)
    return EnergyBalance(run.t, energy, joint_work, wrench_work, residual, scale, _coarseness(run, residual, scale))


def _coarseness(run: Any, residual: np.ndarray, scale: np.ndarray) -> np.ndarray:
    """Return the coarseness of each run; 0 if its residual is small."""
    doubted = _highest(np.abs(residual)) > DOUBTFUL * scale
    if run.accelerations is None or not np.any(doubted):
        return np.zeros(run.shape)
    gap, size = np.zeros(run.shape), np.zeros(run.shape)
    for k in range(run.qd.shape[-1]):
        speed = run.qd[..., k]
        reached = speed[..., :1] + integral(run.t, run.accelerations[..., k])
        gap = np.fmax(gap, _highest(np.abs(speed - reached)))
        size = np.fmax(size, _highest(np.abs(speed)))
    return np.where(doubted, gap / np.where(size > 0, size, 1.0), 0.0)


def momentum_balance(run: Any) -> MomentumBalance:
    """Return the momentum of a free-floating Trajectory less the impulse of gravity and of the wrenches that acted."""
    mechanism = run.system.mechanism
    for joint, own in zip(mechanism.joints, mechanism.v_slices, strict=True):
        if joint.parent == GROUND:
            if kind(joint.kind).NV != 6:
                raise InputError(f"the joint {joint.name!r} ({joint.kind}) holds {mechanism.name!r} to the ground")
            if run.torque is not None and np.nan_to_num(run.torque[..., own]).any():
                raise InputError(f"the free joint {joint.name!r} has torques of its own; use an ExternalWrench")
    weight = np.empty((*run.shape, 1, 3))
    for index in np.ndindex(*run.shape):
        values = run.parameters
        own = mechanism.values(None if values is None else values[index] if values.ndim > 1 else values)
        now = resolved(mechanism, own)
        weight[index] = sum(b.mass for b in now.bodies) * np.array(now.gravity, dtype=float)
    force = np.broadcast_to(weight, (*run.q.shape[:-1], 3))
    total = np.concatenate([np.cross(run["center_of_mass"], force), force], axis=-1)
    if run.wrenches is not None:
        R, p = run["poses"][..., :3, :3], run["poses"][..., :3, 3]
        n, f = (np.einsum("...ij,...j->...i", R, part) for part in (run.wrenches[..., :3], run.wrenches[..., 3:]))
        total = total + np.concatenate([n + np.cross(p, f), f], axis=-1).sum(axis=-2)
    momentum = run["momentum"]
    impulse = np.stack([integral(run.t, total[..., k]) for k in range(6)], axis=-1)
    return MomentumBalance(run.t, momentum, impulse, momentum - momentum[..., :1, :] - impulse)


def _options(run: Any) -> dict[str, Any]:
    """Return the options of functions of a System for a run."""
    options: dict[str, Any] = {"check": False}
    return options if run.parameters is None else options | {"parameters": run.parameters[..., None, :]}


def _highest(x: np.ndarray) -> np.ndarray:
    return np.fmax.reduce(x, axis=-1)


def _most(x: np.ndarray) -> float:
    return float(np.fmax.reduce(np.abs(x), axis=None))


def _largest(residual: np.ndarray, scale: np.ndarray) -> float:
    return _most(residual / np.where(scale > 0, scale, 1.0))


def _ends(work: np.ndarray) -> str:
    """Return the last finite value of one run, or the range of those of a batch, as text."""
    last = [row[np.isfinite(row)][-1] for row in np.atleast_2d(work).reshape(-1, work.shape[-1])]
    return f"{last[0]:.6g}" if len(last) == 1 else f"{min(last):.6g} to {max(last):.6g}"


__all__ = [
    "EnergyBalance",
    "LimitReport",
    "MomentumBalance",
    "Violation",
    "energy_balance",
    "limit_violations",
    "momentum_balance",
]
