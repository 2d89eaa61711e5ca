"""The ledger of a run: every torque of a drive as a sum of its causes, and the energy balance that follows from it."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, replace
from typing import Any

import numpy as np

from ..algebra.scalars import Numbers
from ..errors import InputError
from ..joints import kind
from ..model.mechanism import resolve_parts
from ..results.columns import acting_wrenches, call_options
from ..results.trajectory import Trajectory
from ..simulation.acting.joint_forces import SLIP_SPEED
from ..simulation.acting.smooth import smooth_sign
from ..simulation.monitors import spline
from .loads import DriveLoad, ElementLoads, drive_efforts, driven_columns, load_elements, own_elements

# --- Friction, damping and springs of a mechanism, added to a run of inverse dynamics that left them out ---


def with_passive_forces(run: Trajectory) -> Trajectory:
    """Return the same motion with the torques that the drives need if the mechanism's own forces act."""
    if run.control is not None:
        raise InputError("passive=True is for runs of inverse dynamics; this run has the torques of its drives already")
    system, wrenches = run.system, acting_wrenches(run)
    more: dict[str, Any] = {} if run.parameters is None else {"parameters": run.parameters}
    if system.closures:
        more["actuated"] = driven_joints(run)
    efforts = system.inverse_dynamics(run.q, run.qd, run["qdd"], wrenches=wrenches, **more)
    return driven_run(run, efforts)


def driven_run(run: Trajectory, efforts: Numbers) -> Trajectory:
    """Return a motion under the torques of its drives [nt, nv] and the mechanism's own forces."""
    own, wrenches = load_elements(run, own_elements(run)), acting_wrenches(run)
    pushed = own.wrenches if wrenches is None else own.wrenches + wrenches
    return replace(run, control=efforts, torque=efforts + own.torques - friction(run), wrenches=pushed)


def driven_joints(run: Trajectory) -> list[str]:
    """Return the names of the joints with a drive."""
    with_drive = set(driven_columns(drive_efforts(run)))
    pairs = zip(run.system.joints, run.system.mechanism.v_slices, strict=True)
    return [joint.name for joint, own in pairs if with_drive & set(range(own.start, own.stop))]


def friction(run: Trajectory) -> Numbers:
    """Return the torques that friction and damping of the joints take [nt, nv], in the direction of the motion."""
    rubbing = joint_numbers(run, "friction") * smooth_sign(run.qd, SLIP_SPEED)
    return joint_numbers(run, "damping") * run.qd + rubbing


def joint_numbers(run: Trajectory, name: str) -> Numbers:
    """Return a number of the joints, such as their damping, for each degree of freedom."""
    mechanism = run.system.mechanism
    values = mechanism.values(run.constant_parameters)
    joints = resolve_parts(mechanism.joints, values)
    return np.array([x for j in joints for x in (getattr(j, name) or (0.0,) * kind(j.kind).NV)], dtype=float)


CAUSES = {
    "inertia": "acceleration of the masses",
    "convective": "centrifugal and Coriolis forces",
    "gravity": "weight of the bodies",
    "armature": "acceleration of rotors that are part of the model",
    "friction": "friction and damping of the joints",
    "springs": "springs, dampers and actuators of the model",
    "external": "forces and torques from outside the model",
    "loops": "forces through closed loops and couplings",
}
"""The causes of a drive's torque, each with a short explanation."""

SINGULAR = 1e-9
"""Singular values of loop equations below this part of the largest one count as zero: well above rounding."""


@dataclass(frozen=True)
class Causes:
    """The torques of the drives by cause: `shares` has [nt, nv] for each of CAUSES, which add up to the efforts.

    `traced` is whether forces through loops are traced back to their causes: the shares of a drive are then the shares
    of the whole mechanism, as the loops transmit them to it. This needs as many drives as degrees of freedom.
    `rounding` is the largest difference between an effort and the sum of its shares, relative to the largest sum of
    their magnitudes.
    """

    shares: dict[str, Numbers]
    traced: bool
    rounding: float


@dataclass(frozen=True)
class EnergyBalance:
    """Energies over a run [J]: delivered - regenerated = mechanical + friction + springs + external + loops + residual.

    `mechanical` is the change of kinetic and potential energy of the bodies and of rotors in the model. The others
    are energies that the drives spend against a cause: lost in friction, stored or lost in springs and dampers. The
    residual is the error of the integrals over samples. `scale` is the largest of these energies, of the kinetic energy
    and of the span of the potential energy.
    """

    delivered: float
    regenerated: float
    mechanical: float
    friction: float
    springs: float
    external: float
    loops: float
    residual: float
    scale: float

    @property
    def error(self) -> float:
        """The residual relative to the scale."""
        return abs(self.residual) / self.scale if self.scale > 0 else abs(self.residual)


def causes(run: Trajectory, own: ElementLoads) -> tuple[Causes, bool]:
    """Return the efforts of a single run by cause, and whether the passive forces of the mechanism act in it.

    control = I qdd + C qd + g - tau_passive - N^T w - J^T lambda. The passive forces count as acting if the torques
    and wrenches of the run are closer to them than to none, or if there are none.
    """
    options, qdd, efforts, wrenches = call_options(run), run["qdd"], drive_efforts(run), acting_wrenches(run)
    rest, pushes = np.zeros_like(run.qd), own.wrenches if own.wrenches.any() else None
    torques = _inverse(run, wrenches is not None or pushes is not None)
    total, bias, gravity = torques(run.qd, qdd), torques(run.qd, rest), torques(rest, rest)
    armature, rubbed = joint_numbers(run, "armature") * qdd, friction(run)
    in_joints = run["tau"] - efforts
    pushed = np.zeros_like(total) if wrenches is None else torques(run.qd, qdd, wrenches) - total
    springs = (0.0 if pushes is None else torques(run.qd, qdd, pushes) - total) - own.torques
    passive = rubbed + springs
    given = pushed - in_joints  # what the drives need against all other forces
    acts = not passive.any() or bool(np.linalg.norm(given - passive) <= np.linalg.norm(given))
    if not acts:
        rubbed, springs = np.zeros_like(rubbed), np.zeros_like(springs)
    loops = np.zeros_like(total)
    if run.system.closures:
        multipliers = run.system.multipliers(run.q, run.qd, run["tau"], wrenches=wrenches, forces=False, **options)
        J = run.system.closure_jacobian(run.q, **options)
        loops = -(np.swapaxes(J, -1, -2) @ multipliers[..., None])[..., 0]
    external = given - rubbed - springs
    parts = (total - bias - armature, bias - gravity, gravity, armature, rubbed, springs, external, loops)
    shares: dict[str, Numbers] = dict(zip(CAUSES, parts, strict=True))
    basis = _transmission(run, efforts)
    if basis is not None:
        shares = {name: _transmit(basis, share) for name, share in shares.items()}
    size = float(np.sum([np.abs(x) for x in shares.values()], axis=0).max(initial=0.0))
    gap = float(np.abs(np.sum(list(shares.values()), axis=0) - efforts).max(initial=0.0))
    return Causes(shares, basis is not None, gap / size if size > 0 else gap), acts


def _transmission(run: Trajectory, efforts: Numbers) -> tuple[list[int], Numbers] | None:
    """Return the driven degrees of freedom, and how loops transmit torques to them [nt, drives, nv], or None.

    With a basis N of the motions that the loops allow, J N = 0, virtual work gives N_D^T tau_D = N^T tau. It determines
    tau_D if the drives D are as many as the motions.
    """
    if not run.system.closures:
        return None
    J = run.system.closure_jacobian(run.q, **call_options(run))
    sizes = np.linalg.svd(J, compute_uv=False)
    ranks = (sizes > SINGULAR * sizes[..., :1]).sum(axis=-1)
    free = run.system.nv - int(ranks.max(initial=0))
    driven = driven_columns(efforts)
    if not free or len(driven) != free or (ranks != ranks.max(initial=0)).any():
        return None
    N = np.swapaxes(np.linalg.svd(J, full_matrices=True)[2], -1, -2)[..., run.system.nv - free :]
    own = np.swapaxes(N[..., driven, :], -1, -2)
    sizes = np.linalg.svd(own, compute_uv=False)
    if (sizes[..., -1] <= SINGULAR * sizes[..., 0]).any():
        return None
    return driven, np.linalg.solve(own, np.swapaxes(N, -1, -2))


def _transmit(basis: tuple[list[int], Numbers], share: Numbers) -> Numbers:
    driven, T = basis
    out = np.zeros_like(share)
    out[:, driven] = (T @ share[..., None])[..., 0]
    return out


def energy_balance(run: Trajectory, drives: tuple[DriveLoad, ...], found: Causes) -> EnergyBalance:
    """Return the energies of a single run; the causes are integrated as the power of the drives is."""
    spent = {name: _work(run, share) for name, share in found.shares.items()}
    delivered, regenerated = (sum(getattr(d, part) for d in drives) for part in ("delivered", "regenerated"))
    energy = run["energy"]
    mechanical = float(energy[-1] - energy[0])
    rubbed, springs, external, loops = (spent[name] for name in ("friction", "springs", "external", "loops"))
    residual = delivered - regenerated - mechanical - rubbed - springs - external - loops
    scale = max(map(abs, (delivered, regenerated, mechanical, rubbed, springs, external)))
    scale = max(scale, float(run["kinetic_energy"].max()), float(np.ptp(run["potential_energy"])))
    return EnergyBalance(delivered, regenerated, mechanical, rubbed, springs, external, loops, residual, scale)


def _inverse(run: Trajectory, pushed: bool) -> Callable[..., Numbers]:
    """Return inverse dynamics of the tree at the positions of a run, a function of qd, qdd and perhaps wrenches.

    One compiled function serves all calls: with wrenches on the bodies if they are needed in any call.
    """
    none = np.zeros((len(run.system.bodies), 6)) if pushed else None

    def torques(qd: Numbers, qdd: Numbers, wrenches: Numbers | None = none) -> Numbers:
        return run.system.tree.inverse_dynamics(run.q, qd, qdd, wrenches=wrenches, forces=False, **call_options(run))

    return torques


def _work(run: Trajectory, share: Numbers) -> float:
    if len(run) == 1:
        return 0.0
    return float(spline(run.t, (share * run.qd).sum(axis=-1)).integrate(run.t[0], run.t[-1]))
