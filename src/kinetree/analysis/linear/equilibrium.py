"""Positions of equilibrium: at rest under gravity, the mechanism's own forces and given torques."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from typing import Any

import numpy as np
from numpy.typing import ArrayLike

from ...algebra.arrays import Numbers
from ...compiled import CompiledMechanism
from ...errors import InputError
from ..joint_entries import held, listed
from ..loops.assembly import assemble
from ..loops.kinematics import LoopKinematics
from .linearization import has_forces

STEPS = 300
"""The most steps of Newton's method; it takes some ten where it converges."""
STRIDE = 0.2
"""The largest step of a degree of freedom [rad, or lengths of the mechanism], so that no valley is passed over."""
FLAT = 1e-9
"""The curvature, relative to the largest, below which a position is neither a valley nor a summit."""
KICK = 1e-3
"""The step away from an unstable position [rad, m]."""
BALANCED = 1e-12
"""The largest torque that is left, relative to those that act."""


def equilibrium(
    system: CompiledMechanism,
    q: ArrayLike | None = None,
    *,
    tau: ArrayLike | None = None,
    hold: str | Iterable[str] = (),
    stable: bool = True,
    forces: bool = True,
    parameters: Any = None,
) -> Numbers:
    """Return a position [nq] near q at which the mechanism stays at rest under constant torques tau (default: none).

    Joints of `hold` keep their positions, as if locked. With `stable`, every step is downhill, so that the position is
    stable; otherwise it may be any position of equilibrium, such as an inverted pendulum. With `forces`, springs of the
    mechanism act. InputError if none is found.
    """
    loops = LoopKinematics(system, parameters)
    if isinstance(hold, Mapping):
        raise InputError(
            f"equilibrium: hold is {repr(hold)[:60]}; give names of joints, which keep their positions in q"
        )
    locked = listed(hold)
    degrees = held(system.mechanism, locked)[1]
    torques = np.zeros(system.nv) if tau is None else np.asarray(tau, dtype=float)
    if torques.shape != (system.nv,):
        raise InputError(f"equilibrium: tau has shape {torques.shape}; expected [{system.nv}]")
    statics = _Statics(loops, torques, forces and has_forces(system), degrees)
    position = assemble(system, q, locked, parameters=parameters) if system.closures else loops.start(q)
    residual, motions = np.zeros(0), np.zeros((system.nv, 0))
    for _ in range(STEPS):
        residual, stiffness, motions, size = statics.at(position)
        values, shapes = np.linalg.eigh(0.5 * (stiffness + stiffness.T))
        balanced = np.abs(residual).max(initial=0.0) <= BALANCED * size
        if balanced and (not stable or values.min(initial=0.0) >= -FLAT * np.abs(values).max(initial=0.0)):
            return position
        step = motions @ (_downhill(residual, values, shapes) if stable else -_solved(stiffness, residual))
        step = step * (STRIDE / max(STRIDE, np.abs(step / loops.speeds).max(initial=0.0)))
        position = loops.call("integrate", position, step)
        if system.closures:
            position = assemble(system, position, locked, parameters=parameters)
    worst = loops.labels[int(np.argmax(np.abs(motions @ residual)))]
    raise InputError(
        f"{system.mechanism.name!r} has no equilibrium near this position: after {STEPS} steps a torque of "
        f"{np.abs(residual).max():.3g} is left, most of it at {worst}; hold joints that nothing supports, or give "
        "another q"
    )


class _Statics:
    """The torques that hold a mechanism at rest less those that act, and their derivatives, along allowed motions."""

    def __init__(self, loops: LoopKinematics, torques: Numbers, forces: bool, locked: Any) -> None:
        self.loops, self.torques, self.locked = loops, torques, locked
        system = loops.system
        self.function = system.function("gravity_torque", forces=forces)
        given = system._nominal if loops.parameters is None else loops.parameters
        self.more = () if given is None else (given,)

    def at(self, q: Numbers) -> tuple[Numbers, Numbers, Numbers, float]:
        """Return the residual and the stiffness of the allowed motions, these, and the size of the torques."""
        loops, more = self.loops, self.more
        J = loops.call("closure_jacobian", q)
        fixed = np.eye(len(self.locked))[self.locked]
        rows = np.concatenate([J * loops.speeds / loops.units[:, None], fixed * loops.speeds])
        motions = loops.speeds[:, None] * _null(rows)
        force = self.function(q, *more) - self.torques
        stiffness = self.function.jacobian("q")(q, *more)
        if len(J):  # the forces of the loops rotate with them
            multipliers = np.linalg.lstsq(np.concatenate([J, fixed]).T, force, rcond=1e-9)[0][: len(J)]
            dJ = loops.system.function("closure_jacobian").jacobian("q")(q, *more)
            stiffness = stiffness - np.einsum("k,kij->ij", multipliers, dJ)
        size = float(np.abs(np.abs(motions.T) @ (np.abs(force) + np.abs(self.torques))).max(initial=0.0))
        weight = float(np.abs(stiffness).max(initial=0.0))
        return motions.T @ force, motions.T @ stiffness @ motions, motions, max(size, weight)


def _downhill(residual: Numbers, values: Numbers, shapes: Numbers) -> Numbers:
    """Return Newton's step with the curvature's magnitude, so that it is downhill; from a summit, a small step."""
    slopes = shapes.T @ residual
    least = FLAT * np.abs(values).max(initial=0.0)
    steps = -slopes / np.maximum(np.abs(values), least if least > 0 else 1.0)
    summit = (values < -least) & (np.abs(steps) * np.abs(shapes).max(axis=0) < KICK)
    return shapes @ np.where(summit, KICK / np.abs(shapes).max(axis=0), steps)


def _solved(stiffness: Numbers, residual: Numbers) -> Numbers:
    return np.linalg.lstsq(stiffness, residual, rcond=1e-12)[0]


def _null(rows: Numbers) -> Numbers:
    """Return an orthonormal basis of the motions that satisfy all equations."""
    if not len(rows):
        return np.eye(rows.shape[1])
    _, sizes, directions = np.linalg.svd(rows)
    return directions[int((sizes > 1e-7 * sizes.max(initial=0.0)).sum()) :].T
