"""The equations of motion linearized at a state, continuous or for a time step."""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass, replace
from typing import Any

import numpy as np
from numpy.typing import ArrayLike

from .._support.checks import leading_shape, real_array
from .._support.tables import Displayed, Table
from ..algebra.scalars import Numbers
from ..errors import InputError
from ..model.axes import axis_labels
from ..model.mechanism import Named, parameter_arguments, parameter_sets
from ..runtime.compiled import CompiledMechanism
from ..runtime.singularity import SingularPositionError
from .loops.constraints import require_speeds
from .loops.doctor import doctor
from .loops.independence import closed_position, consistent_accelerations
from .loops.kinematics import LoopKinematics
from .loops.leaders import Independence, choose_leaders


@dataclass(frozen=True, repr=False)
class Linearization(Displayed):
    """dx/dt = A x + B u near a state, or x(t + dt) = A x + B u(t) with a time step.

    x = [dq; dqd] are small displacements in the tangent space and the changes of the velocities, u the changes of
    the joint torques. `names` are the degrees of freedom of dq and dqd, `inputs` of u. With loops, x has only
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

    @property
    def states(self) -> tuple[str, ...]:
        """The names of the entries of x: "d joint" of displacements, "d joint'" of velocities."""
        return (*(f"d {name}" for name in self.names), *(f"d {name}'" for name in self.rates or self.names))

    def display(self) -> list[str | Table]:
        """Return A and B of one state with the names of their rows and columns, or the shape of many."""
        if self.A.ndim > 2:
            many = f"{math.prod(self.A.shape[:-2]):,} linearizations of shape {self.A.shape[:-2]}"
            return [f"{many}: A [{len(self.states)}, {len(self.states)}], B [{len(self.states)}, {len(self.inputs)}]"]
        law = "dx/dt = A x + B u" if self.dt is None else f"x(t + {self.dt:g} s) = A x + B u"
        A, B = matrix(self.A, self.states, self.states), matrix(self.B, self.states, self.inputs)
        return [law, "A", A, "B", B]


def matrix(values: Numbers, rows: Sequence[str], columns: Sequence[str]) -> Table:
    """Return a matrix as a table with the names of its rows and columns."""
    return Table(("", *columns), tuple((name, *map(float, row)) for name, row in zip(rows, values, strict=True)))


def linearize(
    system: CompiledMechanism,
    q: ArrayLike,
    qd: ArrayLike | None = None,
    tau: ArrayLike | None = None,
    *,
    dt: float | None = None,
    forces: bool = True,
    parameters: Named | None = None,
    wrenches: ArrayLike | None = None,
) -> Linearization:
    """Return the linearization at states q [..., nq], qd [..., nv] under torques tau [..., nv].

    By default the mechanism is at rest, and tau are the torques that keep qd constant, so that dx/dt has no constant
    part: qdd = 0 at all degrees of freedom or, with loops, at the independent ones, where these torques act. At rest
    they balance gravity and springs. tau = 0 leaves a mechanism without drives, which moves unless it hangs still.
    The leading axes of states, torques, parameters and wrenches broadcast. With `forces`, springs, dampers and friction
    of the mechanism act, as in a simulation. With a time step `dt` [s], during which u is constant, A and B are those
    of the exact discrete system. With loops, the independent degrees of freedom are those of the first state.
    """
    values = parameter_sets(system.mechanism, parameters)
    sizes: dict[str, tuple[Any, tuple[int, ...]]] = {
        "q": (q, (system.nq,)),
        "qd": (np.zeros(system.nv) if qd is None else qd, (system.nv,)),
        "tau": (np.zeros(system.nv) if tau is None else tau, (system.nv,)),
    }
    if values is not None:
        sizes["parameters"] = values, values.shape[-1:]
    if wrenches is not None:
        sizes["wrenches"] = wrenches, (len(system.bodies), 6)
    whole = {name: (real_array(x, name), core) for name, (x, core) in sizes.items()}
    lead = leading_shape(((name, x.shape, core) for name, (x, core) in whole.items()), "linearize")
    spread = {name: np.broadcast_to(x, lead + core) for name, (x, core) in whole.items()}
    arrays = [spread[name] for name in ("q", "qd", "tau")]
    if values is not None:  # one set for all states stays one
        values = values if values.ndim == 1 else spread["parameters"]
    if dt is not None and not dt > 0:
        raise InputError(f"linearize: dt is {dt}; expected more than 0 [s], or None for continuous time")
    labels = tuple(axis_labels(system.mechanism, 1))
    every = Independence(labels, (), tuple(range(system.nv)), np.eye(system.nv))
    places, speeds, H = every, every, np.zeros((system.nv, system.nv))
    if system.closures:
        places, speeds, H = _independent_of_all(system, arrays[0], arrays[1], values)
    options: dict[str, Any] = {"parameters": values, "wrenches": wrenches, "forces": None if forces else False}
    given = {k: x for k, x in options.items() if x is not None}
    if tau is None:
        arrays[2] = _holding_torques(system, arrays[0], arrays[1], speeds, values, given)
    try:
        by_q, by_qd, by_tau = system.forward_dynamics_derivatives(*arrays, **given)
    except SingularPositionError as error:  # within some 1e-5 of it, an equation is left out, though its rank is full
        raise InputError(
            f"linearize: {error.fact}; no linear equations describe it there, so move it away from there"
        ) from None
    moved = transport_matrix(system, arrays[0], arrays[1])
    rows, moving, G, V = list(places.at), list(speeds.at), places.G, speeds.G
    top = [(moved @ G + H)[..., rows, :], np.broadcast_to(V[..., rows, :], (moved @ V)[..., rows, :].shape)]
    low = [(by_q @ G + by_qd @ H)[..., moving, :], (by_qd @ V)[..., moving, :]]
    A = np.concatenate([np.concatenate(top, -1), np.concatenate(low, -1)], -2)
    B = np.concatenate([np.zeros_like(by_tau[..., rows, :]), by_tau[..., moving, :]], -2)
    rates = () if speeds.at == places.at else speeds.names
    return Linearization(*((A, B) if dt is None else discrete(A, B, dt)), places.names, labels, G, dt, rates)


def _holding_torques(
    system: CompiledMechanism,
    q: Numbers,
    qd: Numbers,
    speeds: Independence,
    parameters: Numbers | None,
    options: dict[str, Any],
) -> Numbers:
    """Return the torques at the independent degrees of freedom that keep their velocities constant."""
    if not system.closures:
        return np.asarray(system.inverse_dynamics(q, qd, np.zeros(system.nv), **options))
    qdd = consistent_accelerations(system, q, qd, dict.fromkeys(speeds.names, 0.0), parameters=parameters)
    need = np.asarray(system.tree.inverse_dynamics(q, qd, qdd, **options))
    tau = np.zeros(need.shape)
    tau[..., list(speeds.at)] = (np.swapaxes(speeds.G, -1, -2) @ need[..., None])[..., 0]
    return tau


def discrete(A: Numbers, B: Numbers, dt: float | Numbers) -> tuple[Numbers, Numbers]:
    """Return A and B of a time step with constant inputs, by the exponential of [A B; 0 0] dt (Van Loan)."""
    from scipy.linalg import expm

    n, m = B.shape[-2:]
    whole = np.zeros((*A.shape[:-2], n + m, n + m))
    whole[..., :n, :n], whole[..., :n, n:] = A, B
    moved = expm(whole * dt)
    return moved[..., :n, :n], moved[..., :n, n:]


def transport_matrix(system: CompiledMechanism, q: Numbers, qd: Numbers) -> Numbers:
    """Return T with d(dq)/dt = T dq + dqd: zero unless quaternions rotate, whose tangent space rotates with them.

    With the rates R(q) qd of coordinates, R T dq is the change of the rates along dq less the change of R dq along qd.
    """
    lead = np.broadcast_shapes(q.shape[:-1], qd.shape[:-1])
    if system.nq == system.nv:
        return np.zeros((*lead, system.nv, system.nv))
    more = parameter_arguments(system._nominal)
    rate = system.function("coordinate_rate")
    R, along_dq = rate.jacobian("qd")(q, qd, *more), rate.jacobian("q")(q, qd, *more)
    along_qd = rate.jvp("q")(q[..., None, :], np.eye(system.nv), *more, qd[..., None, :])
    return np.linalg.pinv(R) @ (along_dq - np.swapaxes(along_qd, -1, -2))


def _independent_of_all(
    system: CompiledMechanism, q: Numbers, qd: Numbers, parameters: Numbers | None
) -> tuple[Independence, Independence, Numbers]:
    """Return the results of `_independent` at states [..., nq] and [..., nv], for the independent ones of the first."""
    lead, found = q.shape[:-1], []
    prefer: tuple[tuple[str, ...], tuple[str, ...]] = ((), ())
    for at in np.ndindex(*lead):
        own = parameters if parameters is None or parameters.ndim == 1 else parameters[at]
        try:
            found.append(_independent(system, q[at], qd[at], own, *prefer))
        except InputError as error:
            raise InputError(f"sample {list(at)}: {error}") from None if at else error
        prefer = found[0][0].names, found[0][1].names
        if (found[-1][0].names, found[-1][1].names) != prefer:
            raise InputError(
                f"linearize: {', '.join(prefer[0])} of the first state do not determine the motion at state "
                f"{list(at)}; linearize it by itself"
            )
    places, speeds, _ = found[0]
    G, V, H = (np.stack(x).reshape(*lead, *x[0].shape) for x in zip(*((p.G, s.G, h) for p, s, h in found), strict=True))
    return replace(places, G=G), replace(speeds, G=V), H


def _independent(
    system: CompiledMechanism,
    q: Numbers,
    qd: Numbers,
    parameters: Numbers | None,
    prefer_places: tuple[str, ...] = (),
    prefer_speeds: tuple[str, ...] = (),
) -> tuple[Independence, Independence, Numbers]:
    """Return the independent degrees of freedom of positions and of velocities, and H, with the loops closed.

    With their matrices G and V, dq = G x and dqd = V y + H x. From J dqd + dJ qd = 0, H is the solution whose
    independent entries are zero. Positions and velocities differ if equations restrict velocities alone.
    """
    loops = LoopKinematics(system, parameters)
    position = closed_position(loops, q)
    refuse_singular_position(system, position, parameters)
    speeds = choose_leaders(loops, position, prefer_speeds)
    places = choose_leaders(loops, position, prefer_places, positions=True) if system.mechanism.rolls else speeds
    J = loops.call("closure_jacobian", position)
    require_speeds(system, J, qd)
    options = parameter_arguments(system._nominal if loops.parameters is None else loops.parameters)
    dJ = system.function("closure_jacobian").jacobian("q")(position, *options)
    change = np.einsum("kij,i->kj", dJ, qd) @ places.G
    rest = [k for k in range(system.nv) if k not in speeds.at]
    H = np.zeros((system.nv, len(places.at)))
    H[rest] = -np.linalg.lstsq(J[:, rest], change, rcond=1e-9)[0]
    return places, speeds, H


def refuse_singular_position(system: CompiledMechanism, q: Numbers, parameters: Numbers | None) -> None:
    """Raise InputError at a singular position of the loops, where the linear equations do not give small motions."""
    at = system if parameters is None else system.fixed(parameters)
    state = doctor(at, q)
    if state.mobility != state.lasting:
        raise InputError(
            f"{system.mechanism.name!r} is at a singular position of its loops: {state.mobility} degrees of freedom at "
            f"this instant, {state.lasting} nearby; no linear equations describe it, so move it away from there"
        )
