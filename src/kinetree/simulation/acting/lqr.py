"""Linear-quadratic regulators: gains from the linearized mechanism, as compiled controllers.

States are differences in the tangent space, so that rotations by quaternions are regulated as angles are. With loops,
only independent degrees of freedom are compared.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

import numpy as np
from numpy.typing import ArrayLike

from ..._support import tables
from ..._support.checks import real_array, whole
from ...algebra.scalars import Numbers, Scalar
from ...analysis.linearization import Linearization, discrete, linearize, matrix
from ...errors import InputError, unknown_name
from ...model.axes import entries
from ...system import System
from .instants import Instant
from .joint_forces import require_flat
from .references.table import Table, piecewise

if TYPE_CHECKING:
    from ...model.mechanism import Named
    from ...results.trajectory import Trajectory

AT_REST = 1e-6
"""The largest acceleration at a state that a regulator holds, relative to the joints without torques."""

SLOWEST = 1e-8
"""The least decay of a closed loop, relative to its fastest pole: above rounding of a pole that is zero."""


@dataclass(frozen=True, init=False, eq=False, repr=False)
class LQR(tables.Displayed):
    """tau = tau_0 - K [difference(q_0, q); qd], with the gains K that minimize the integral of x^T Q x + u^T R u.

    x are the differences of position and velocity from rest at q_0, and u those of the torques of the driven joints.
    """

    q: Numbers
    tau: Numbers
    K: Numbers
    cost: Numbers
    poles: Numbers
    plant: Linearization
    at: tuple[int, ...]
    driven: tuple[int, ...]

    def __init__(
        self,
        system: System,
        q: ArrayLike,
        *,
        Q: ArrayLike = 1.0,
        R: ArrayLike = 1.0,
        joints: str | Sequence[str] | None = None,
        dt: float | None = None,
        forces: bool = True,
        parameters: Named | None = None,
    ) -> None:
        """Compute the gains at rest at coordinates q [nq].

        `joints` are driven, by default all; with loops, the independent ones. Q weighs [dq; dqd] and R the torques of
        the driven joints: a number, one per entry, or a matrix. With a sampling time `dt` [s] the gains are those of a
        regulator whose torques are held, for kt.Sampled(regulator, 1 / dt). Springs and dampers of the mechanism act
        unless `forces` is False. The torques u that hold q are found; of several, those with the least u^T R u.
        """
        position = _position(system, q)
        driven = driven_joints(system, position, joints, parameters)
        R = weights(R, len(driven), "R")
        tau = _holding(system, position, driven, R, forces, parameters)
        plant = linearize(system, position, np.zeros(system.nv), tau, dt=dt, forces=forces, parameters=parameters)
        if plant.rates:
            raise InputError(
                f"LQR: {system.mechanism.name!r} has equations of velocities alone, such as rolling: no feedback of "
                "small displacements holds its position; control its velocities, or follow a path"
            )
        at = tuple(plant.inputs.index(name) for name in plant.names)
        B = plant.B[:, list(driven)]
        Q = weights(Q, len(plant.A), "Q")
        K, cost = gains(plant.A, B, Q, R, discrete=dt is not None, joints=[plant.inputs[k] for k in driven])
        values = {
            "q": position,
            "tau": tau,
            "K": K,
            "cost": cost,
            "poles": np.linalg.eigvals(plant.A - B @ K),
            "plant": plant,
            "at": at,
            "driven": driven,
        }
        for name, value in values.items():
            object.__setattr__(self, name, value)

    def display(self) -> list[str | tables.Table]:
        """Return the torques at rest, the gains, and the poles of the closed loop."""
        driven = [self.plant.inputs[k] for k in self.driven]
        held = ", ".join(f"{name} {self.tau[k]:.4g}" for name, k in zip(driven, self.driven, strict=True))
        discrete = "" if self.plant.dt is None else f" of steps of {self.plant.dt:g} s"
        poles = tuple((float(x.real), float(x.imag)) for x in self.poles)
        return [
            f"LQR at rest under {held}; gains K",
            matrix(self.K, driven, self.plant.states),
            f"poles{discrete}",
            tables.Table(("real part", "imaginary part"), poles),
        ]

    def torque(self, now: Instant) -> list[Scalar]:
        """Return the torques."""
        if len(self.q) != len(now.q) or len(self.tau) != now.mechanism.nv:
            raise InputError(
                f"this LQR is that of a mechanism with {len(self.q)} coordinates, and {now.mechanism.name!r} has "
                f"{len(now.q)}; make one for it"
            )
        away = now.difference(self.q.tolist())
        x = [*(away[k] for k in self.at), *(now.qd[k] for k in self.at)]
        return subtract_feedback(self.tau.tolist(), self.K.tolist(), x, self.driven)


def subtract_feedback(
    tau: Sequence[Scalar], K: Sequence[Sequence[Scalar]], x: Sequence[Scalar], driven: Sequence[int]
) -> list[Scalar]:
    """Return torques tau - K x, the latter in the driven degrees of freedom."""
    out = list(tau)
    for k, row in zip(driven, K, strict=True):
        for gain, entry in zip(row, x, strict=True):
            out[k] = out[k] - gain * entry
    return out


def gains(
    A: Numbers, B: Numbers, Q: Numbers, R: Numbers, *, discrete: bool, joints: Sequence[str]
) -> tuple[Numbers, Numbers]:
    """Return K and the matrix S of the cost x^T S x; InputError if no gains bring the state to rest."""
    from scipy.linalg import solve_continuous_are, solve_discrete_are

    K, S = np.zeros(B.T.shape), Q
    try:
        S = (solve_discrete_are if discrete else solve_continuous_are)(A, B, Q, R)
        K = np.linalg.solve(R + B.T @ S @ B, B.T @ S @ A) if discrete else np.linalg.solve(R, B.T @ S)
        poles = np.linalg.eigvals(A - B @ K)
        most = np.abs(poles).max() - 1.0 if discrete else poles.real.max() / np.abs(poles).max()
        steady = bool(most < -SLOWEST)
    except (np.linalg.LinAlgError, ValueError):
        steady = False
    if not steady:
        raise InputError(
            f"LQR: no gains of the driven joints ({', '.join(joints)}) keep the mechanism there: they do not affect a "
            "motion that grows or stays, or Q does not weigh it; drive other joints, or give Q larger entries"
        )
    return K, S


def _position(system: System, q: ArrayLike) -> Numbers:
    """Return one position of a System."""
    if not isinstance(system, System):
        raise InputError(f"LQR takes a System first, not {repr(system)[:60]}; load one with kt.load(name or file)")
    position = real_array(q, "q")
    if position.shape != (system.nq,):
        raise InputError(f"LQR: q has shape {position.shape}; expected one position [{system.nq}]")
    return position


def driven_joints(
    system: System, q: Numbers, joints: str | Sequence[str] | None, parameters: Named | None
) -> tuple[int, ...]:
    """Return the driven degrees of freedom."""
    if joints is None:
        return tuple(system.independent(q, parameters=parameters).at) if system.closures else tuple(range(system.nv))
    names = [joints] if isinstance(joints, str) else list(joints)
    known = [joint.name for joint in system.joints]
    for name in names:
        if name not in known:
            raise unknown_name("joint", name, known)
    places = tuple(k for name in names for k in entries(system.mechanism, name, 1))
    if not places or len(set(places)) < len(places):
        raise InputError(f"LQR: joints is {', '.join(map(repr, names))}; give each driven joint once, at least one")
    return places


def _holding(
    system: System, q: Numbers, driven: tuple[int, ...], R: Numbers, forces: bool, parameters: Named | None
) -> Numbers:
    """Return the torques u of the driven joints that hold the mechanism at rest, with the least u^T R u.

    With R = L L^T and u = L^-T y, the shortest y is wanted. InputError if no torques hold it.
    """
    options: dict[str, Any] = {} if parameters is None else {"parameters": parameters}
    if not forces:
        options["forces"] = False
    zero, at = np.zeros(system.nv), list(driven)
    alone = np.asarray(system.forward_dynamics(q, zero, zero, **options))
    units = np.asarray(system.forward_dynamics(q, zero, np.eye(system.nv)[at], **options)) - alone
    tau = zero.copy()
    shares = np.linalg.inv(np.linalg.cholesky(R)).T
    tau[at] = shares @ np.linalg.lstsq(units.T @ shares, -alone, rcond=1e-9)[0]
    left = np.asarray(system.forward_dynamics(q, zero, tau, **options))
    if np.abs(left).max(initial=0.0) > AT_REST * max(1.0, np.abs(alone).max(initial=0.0)):
        worst = int(np.argmax(np.abs(left)))
        name = system.joints[_joint_at(system, worst)].name
        raise InputError(
            f"LQR: no torques of the driven joints hold q: {name} accelerates by {left[worst]:.3g}; find a position of "
            "rest by kt.equilibrium(arm, q, stable=False)"
        )
    return tau


def _joint_at(system: System, place: int) -> int:
    return next(k for k, part in enumerate(system.mechanism.v_slices) if part.start <= place < part.stop)


def weights(x: ArrayLike, n: int, what: str) -> Numbers:
    """Return a symmetric matrix of weights: of a number, of one number per entry, or as given."""
    given = real_array(x, what)
    matrix = np.diag(np.broadcast_to(given, n)) if given.ndim == 0 or given.shape == (n,) else given
    if matrix.shape != (n, n):
        raise InputError(f"LQR: {what} has shape {given.shape}; expected a number, [{n}] or [{n}, {n}]")
    sizes = np.linalg.eigvalsh((matrix + matrix.T) / 2.0) if np.isfinite(matrix).all() else np.array([np.nan])
    least = sizes.min(initial=1.0)
    fine = least > 0.0 if what == "R" else least >= -1e-12 * max(1.0, sizes.max(initial=0.0))
    if not fine or not np.allclose(matrix, matrix.T, rtol=1e-9, atol=0.0):
        kind = "positive definite" if what == "R" else "positive semidefinite"
        raise InputError(
            f"LQR: {what} is not symmetric and {kind}; give weights of at least zero"
            + (", and more than zero for torques" if what == "R" else "")
        )
    return matrix


# --- Regulators along a motion: gains that change with time ---


KNOTS = 41
"""The default number of times at which gains are computed. Between them, they are interpolated by cubic splines, each
interval of which adds selections to the compiled rates."""


@dataclass(frozen=True, init=False, eq=False, repr=False)
class TrackingLQR(tables.Displayed):
    """tau = tau(t) - K(t) [q - q(t); qd - qd(t)] along a run, with the gains of the linearized motion.

    K(t) minimizes the sum of x^T Q x + u^T R u over the rest of the run plus x^T S x at its end. After the end of the
    run, the last values stay. `held` are the torques of the intervals between its times, if these are constant there.
    """

    table: Table
    K: Numbers
    driven: tuple[int, ...]
    held: Numbers | None

    def __init__(
        self,
        run: Trajectory,
        *,
        torques: ArrayLike | None = None,
        Q: ArrayLike = 1.0,
        R: ArrayLike = 1.0,
        S: ArrayLike | None = None,
        joints: str | Sequence[str] | None = None,
        knots: int | None = None,
    ) -> None:
        """Compute the gains along a single run of a tree, whose control gives the torques tau(t).

        A Trajectory of an optimal control without `control` takes them as `torques`: [nt, nv] at its times, or
        [nt - 1, nv], each held until the next time. Gains are computed at `knots` of the times, by default 41, or all
        where torques are held. `joints` are driven, by default all. Q, R and S are as those of LQR; S is Q times 1 s
        unless it is given.
        """
        _refuse(run)
        system = run.system
        given = _torques(run, torques)
        held = given if len(given) < len(run.t) else None
        if held is not None and knots is not None:
            raise InputError("knots are given, and torques that are held in each interval; leave knots out")
        count = len(run.t) if held is not None else whole(KNOTS if knots is None else knots, "knots", least=4)
        driven = driven_joints(system, run.q[0], joints, None)
        n, rows = system.nv, np.unique(np.linspace(0, len(run.t) - 1, count).astype(int))
        t, q, qd, tau = run.t[rows], run.q[rows], run.qd[rows], given[np.minimum(rows, len(given) - 1)]
        plant = linearize(system, q, qd, tau, parameters=run.constant_parameters)
        matrices = weights(Q, 2 * n, "Q"), weights(R, len(driven), "R"), weights(Q if S is None else S, 2 * n, "S")
        K = _backward(t, plant.A, plant.B[..., list(driven)], *matrices)
        columns = np.concatenate([q, qd, tau, K.reshape(len(t), -1)], axis=-1)
        table = Table(t, columns, ends="not-a-knot")
        for name, value in {"table": table, "K": K, "driven": driven, "held": held}.items():
            object.__setattr__(self, name, value)

    def display(self) -> list[str]:
        """Return the number of gains and the interval of time on one line."""
        t, (count, driven, states) = self.table.times, self.K.shape
        return [f"TrackingLQR: gains [{driven}, {states}] at {count} times from {t[0]:.4g} s to {t[-1]:.4g} s"]

    def torque(self, now: Instant) -> list[Scalar]:
        """Return the torques."""
        n, count = now.mechanism.nv, len(self.driven)
        values, _, _ = self.table(now.t)
        if len(values) != 3 * n + 2 * n * count:
            raise InputError(
                f"this TrackingLQR is that of another mechanism than {now.mechanism.name!r}; make one of a run of it"
            )
        q, qd, tau, flat = values[:n], values[n : 2 * n], values[2 * n : 3 * n], values[3 * n :]
        if self.held is not None:
            still = np.zeros_like(self.held)
            tau, _, _ = piecewise(self.table.times, np.stack([self.held, still, still]), now.t)
        away = [x - y for x, y in zip((*now.q, *now.qd), (*q, *qd), strict=True)]
        return subtract_feedback(tau, [flat[k : k + 2 * n] for k in range(0, len(flat), 2 * n)], away, self.driven)


def _backward(t: Numbers, A: Numbers, B: Numbers, Q: Numbers, R: Numbers, S: Numbers) -> Numbers:
    """Return the gains at all times, by the Riccati recursion from the last time to the first."""
    steps = np.diff(t)
    moved, pushed = discrete(A[:-1], B[:-1], steps[:, None, None])
    K = np.zeros((len(t), B.shape[-1], A.shape[-1]))
    for k in reversed(range(len(steps))):
        a, b, h = moved[k], pushed[k], steps[k]
        K[k] = np.linalg.solve(h * R + b.T @ S @ b, b.T @ S @ a)
        S = h * Q + a.T @ S @ (a - b @ K[k])
        S = (S + S.T) / 2.0  # rounding would grow from step to step
    K[-1] = K[-2]
    return K


def _torques(run: Trajectory, given: ArrayLike | None) -> Numbers:
    """Return the torques of the drives at the times of a run, [nt, nv], or held between them, [nt - 1, nv]."""
    shape = (len(run.t), run.system.nv)
    if given is None:
        if run.control is None:
            raise InputError(
                "TrackingLQR: the trajectory has no control, the torques of its drives; give them as torques=... "
                f"{list(shape)} at its times, or {[shape[0] - 1, shape[1]]}, held from one time to the next"
            )
        return np.asarray(run.control, dtype=float)
    found = real_array(given, "torques")
    if found.shape not in (shape, (shape[0] - 1, shape[1])):
        raise InputError(
            f"TrackingLQR: torques have shape {found.shape}; expected {shape} at the times of the trajectory, or "
            f"{(shape[0] - 1, shape[1])}, held from one time to the next"
        )
    if not np.isfinite(found).all():
        raise InputError("TrackingLQR: torques have entries that are not finite; give finite numbers")
    return found


def _refuse(run: Trajectory) -> None:
    """Raise an InputError for a run that has no gains of this kind."""
    who = "TrackingLQR"
    if not all(hasattr(run, name) for name in ("system", "t", "q", "qd", "control")):
        raise InputError(f"{who} takes a run first, not {repr(run)[:60]}; compute one with kt.simulate")
    if run.q.ndim != 2 or len(run.t) < 4:
        raise InputError(f"{who} takes a single run of at least 4 samples; q has shape {run.q.shape}")
    if run.system.closures:
        raise InputError(f"{who}: {run.system.mechanism.name!r} has loops; only runs of trees are followed")
    for joint in run.system.joints:
        require_flat(joint, who)
