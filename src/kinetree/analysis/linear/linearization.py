"""The equations of motion linearized at a state, continuous or for a time step."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import ArrayLike

from ...algebra.arrays import Numbers
from ...compiled import CompiledMechanism
from ...compiler.runtime.singular_loops import SingularPositionError
from ...errors import InputError
from ...model.axes import axis_labels
from ..loops.doctor import doctor
from ..loops.independence import closed_position
from ..loops.kinematics import LoopKinematics
from ..loops.leaders import Independence, leading


@dataclass(frozen=True)
class Linearization:
    """dx/dt = A x + B u near a state, or x(t + dt) = A x + B u(t) with a time step.

    x = [dq; dqd] are small displacements in the tangent space and the changes of the velocities, u the changes of
    the joint torques. `names` are the degrees of freedom of dq and dqd, `inputs` those of u. With loops, x has only
    independent degrees of freedom: all displacements are G dq. A has shape [..., 2 n, 2 n] and B [..., 2 n, nv].
    Where equations restrict velocities alone, as rolling does, dqd has fewer entries than dq: those of `rates`, which
    is empty otherwise.
    """

    A: Numbers
    B: Numbers
    names: tuple[str, ...]
    inputs: tuple[str, ...]
    G: Numbers
    dt: float | None = None
    rates: tuple[str, ...] = ()


def linearize(
    system: CompiledMechanism,
    q: ArrayLike,
    qd: ArrayLike,
    tau: ArrayLike,
    *,
    dt: float | None = None,
    forces: bool = True,
    parameters: Any = None,
    wrenches: ArrayLike | None = None,
) -> Linearization:
    """Return the linearization at states q [..., nq], qd [..., nv] under torques tau [..., nv]; one state with loops.

    With `forces`, springs, dampers and friction of the mechanism act, as in a simulation. With a time step `dt` [s],
    during which u is constant, A and B are those of the exact discrete system.
    """
    arrays = [np.asarray(x, dtype=float) for x in (q, qd, tau)]
    for name, x, n in zip(("q", "qd", "tau"), arrays, (system.nq, system.nv, system.nv), strict=True):
        if x.shape[-1:] != (n,):
            raise InputError(f"linearize: {name} has shape {x.shape}; expected [..., {n}]")
    if dt is not None and not dt > 0:
        raise InputError(f"linearize: dt is {dt}; expected more than 0 [s], or None for continuous time")
    labels = tuple(axis_labels(system.mechanism, 1))
    every = Independence(labels, (), tuple(range(system.nv)), np.eye(system.nv))
    places, speeds, H = every, every, np.zeros((system.nv, system.nv))
    if system.closures:
        places, speeds, H = _independent(system, arrays[0], arrays[1], parameters)
    options: dict[str, Any] = {"parameters": parameters, "wrenches": wrenches, "forces": forces and has_forces(system)}
    given = {k: x for k, x in options.items() if x is not None and x is not False}
    try:
        by_q, by_qd, by_tau = system.forward_dynamics_derivatives(*arrays, **given)
    except SingularPositionError as error:  # within some 1e-5 of it, an equation is left out, though its rank is full
        raise InputError(
            f"linearize: {error.fact}; no linear equations describe it there, so move it away from there"
        ) from None
    moved = transported(system, arrays[0], arrays[1])
    rows, moving, G, V = list(places.at), list(speeds.at), places.G, speeds.G
    top = [(moved @ G + H)[..., rows, :], np.broadcast_to(V[rows], (moved @ V)[..., rows, :].shape)]
    low = [(by_q @ G + by_qd @ H)[..., moving, :], (by_qd @ V)[..., moving, :]]
    A = np.concatenate([np.concatenate(top, -1), np.concatenate(low, -1)], -2)
    B = np.concatenate([np.zeros_like(by_tau[..., rows, :]), by_tau[..., moving, :]], -2)
    rates = () if speeds.at == places.at else speeds.names
    return Linearization(*((A, B) if dt is None else discrete(A, B, dt)), places.names, labels, G, dt, rates)


def discrete(A: Numbers, B: Numbers, dt: float | Numbers) -> tuple[Numbers, Numbers]:
    """Return A and B of a time step with constant inputs, by the exponential of [A B; 0 0] dt (Van Loan)."""
    from scipy.linalg import expm

    n, m = B.shape[-2:]
    whole = np.zeros((*A.shape[:-2], n + m, n + m))
    whole[..., :n, :n], whole[..., :n, n:] = A, B
    moved = expm(whole * dt)
    return moved[..., :n, :n], moved[..., :n, n:]


def transported(system: CompiledMechanism, q: Numbers, qd: Numbers) -> Numbers:
    """Return T with d(dq)/dt = T dq + dqd: zero unless quaternions rotate, whose tangent space rotates with them.

    With the rates R(q) qd of coordinates, R T dq is the change of the rates along dq less the change of R dq along qd.
    """
    lead = np.broadcast_shapes(q.shape[:-1], qd.shape[:-1])
    if system.nq == system.nv:
        return np.zeros((*lead, system.nv, system.nv))
    more = () if system._nominal is None else (system._nominal,)
    rate = system.function("coordinate_rate")
    R, along_dq = rate.jacobian("qd")(q, qd, *more), rate.jacobian("q")(q, qd, *more)
    along_qd = rate.jvp("q")(q[..., None, :], np.eye(system.nv), *more, qd[..., None, :])
    return np.linalg.pinv(R) @ (along_dq - np.swapaxes(along_qd, -1, -2))


def has_forces(system: CompiledMechanism) -> bool:
    """Return whether a mechanism has force elements, or joints with damping or friction."""
    m = system.mechanism
    return bool(m.forces) or any(any(j.damping) or any(j.friction) for j in m.joints)


def _independent(
    system: CompiledMechanism, q: Numbers, qd: Numbers, parameters: Any
) -> tuple[Independence, Independence, Numbers]:
    """Return the independent degrees of freedom of positions and of velocities, and H, with the loops closed.

    With their matrices G and V, dq = G x and dqd = V y + H x. From J dqd + dJ qd = 0, H is the solution whose
    independent entries are zero. Positions and velocities differ if equations restrict velocities alone.
    """
    if q.ndim != 1 or qd.ndim != 1:
        raise InputError(f"linearize: q has shape {q.shape}; with loops, give one state [{system.nq}]")
    loops = LoopKinematics(system, parameters)
    position = closed_position(loops, q)
    refuse_singular(system, position, parameters)
    speeds = leading(loops, position)
    places = leading(loops, position, positions=True) if system.mechanism.rolls else speeds
    J = loops.call("closure_jacobian", position)
    slide = np.abs(J @ qd / loops.units).max(initial=0.0)
    if slide > 1e-6 * max(1.0, np.abs(qd / loops.speeds).max(initial=0.0)):
        raise InputError("linearize: qd opens the loops; close it first: qd = arm.closing_speed(q, qd)")
    options = () if system._nominal is None else (system._nominal if loops.parameters is None else loops.parameters,)
    dJ = system.function("closure_jacobian").jacobian("q")(position, *options)
    change = np.einsum("kij,i->kj", dJ, qd) @ places.G
    rest = [k for k in range(system.nv) if k not in speeds.at]
    H = np.zeros((system.nv, len(places.at)))
    H[rest] = -np.linalg.lstsq(J[:, rest], change, rcond=1e-9)[0]
    return places, speeds, H


def refuse_singular(system: CompiledMechanism, q: Numbers, parameters: Any) -> None:
    """Raise InputError at a singular position of the loops, at which small motions are not those of its equations."""
    at = system if parameters is None else system.fixed(parameters)
    state = doctor(at, q)
    if state.mobility != state.lasting:
        raise InputError(
            f"{system.mechanism.name!r} is at a singular position of its loops: {state.mobility} degrees of freedom at "
            f"this instant, {state.lasting} nearby; no linear equations describe it, so move it away from there"
        )
