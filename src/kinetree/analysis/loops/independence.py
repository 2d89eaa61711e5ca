"""Independent degrees of freedom of closed mechanisms; velocities and accelerations that keep the loops closed."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping
from math import prod
from typing import Any

import numpy as np
from numpy.typing import ArrayLike, NDArray

from ...algebra.scalars import Numbers
from ...errors import InputError
from ...model.mechanism import Named, inputs_of
from ...model.scales import rate_sizes
from ...runtime.compiled import CompiledMechanism
from ..joint_entries import numbers
from .batch_assembly import assemble
from .constraints import require_speeds
from .driven_programs import NativeLoops, with_parameters
from .kinematics import LoopKinematics, Mask
from .leaders import Independence, choose_leaders
from .samples import Samples
from .tolerances import CLOSED, SLIP


def independent(
    system: CompiledMechanism,
    q: ArrayLike | None = None,
    *,
    prefer: str | Iterable[str] = (),
    parameters: ArrayLike | None = None,
) -> Independence:
    """Return degrees of freedom that determine all velocities at a closed position (default: assembled from the guess).

    Preferred ones come first, unless they are near a dead center; `leading` describes the choice.
    """
    loops = LoopKinematics(system, parameters)
    return choose_leaders(loops, closed_position(loops, q), prefer)


def consistent_speeds(
    system: CompiledMechanism, q: ArrayLike, speeds: Mapping[str, ArrayLike], *, parameters: Named | None = None
) -> Numbers:
    """Return qd [..., nv] with J qd = 0 and the given velocities by joint or axis [rad/s, m/s].

    If these do not determine the motion, it is the one of least kinetic energy. q, the velocities and the parameters
    may have leading axes. Velocities that contradict each other raise an InputError with the nearest consistent ones.
    """

    def one(loops: LoopKinematics, x: dict[str, Numbers], given: dict[int, float]) -> Numbers:
        return _solved(loops, x["q"], 0.0, given, "velocities")

    def many(native: NativeLoops, q: Numbers, given: Numbers, *more: Numbers) -> tuple[Numbers, Mask]:
        qd, gap, opens, rank = native.speeds(q, given, *more)
        return qd, (gap[:, 0] <= CLOSED) & (opens[:, 0] <= SLIP) & (rank[:, 0] == native.passive)

    return _each(system, {"q": q}, speeds, parameters, one, many)


def consistent_accelerations(
    system: CompiledMechanism,
    q: ArrayLike,
    qd: ArrayLike,
    accelerations: Mapping[str, ArrayLike],
    *,
    parameters: Named | None = None,
) -> Numbers:
    """Return qdd [..., nv] with J qdd + dJ/dt qd = 0 and the given accelerations by joint or axis.    [Saha2013] (53)

    If these do not determine qdd, it is the smallest in the norm of the inertia matrix, qdd^T I qdd.
    """

    def one(loops: LoopKinematics, x: dict[str, Numbers], given: dict[int, float]) -> Numbers:
        require_speeds(system, loops.call("closure_jacobian", x["q"]), x["qd"])
        bias = loops.call("closure_bias", x["q"], x["qd"]) / loops.units
        sizes = rate_sizes(system.mechanism, x["qd"], np.zeros(system.nv)) / loops.units
        bias = np.where(np.abs(bias) > 1e-13 * sizes, bias, 0.0)  # rounding need not be in the range of J
        return _solved(loops, x["q"], bias, given, "accelerations", float(sizes.max(initial=0.0)))

    def many(native: NativeLoops, q: Numbers, qd: Numbers, given: Numbers, *more: Numbers) -> tuple[Numbers, Mask]:
        qdd, gap, opens, rank = native.accelerations(q, qd, given, *more)
        return qdd, (gap[:, 0] <= CLOSED) & (opens <= SLIP).all(axis=-1) & (rank[:, 0] == native.passive)

    return _each(system, {"q": q, "qd": qd}, accelerations, parameters, one, many)


def nearest_speeds(loops: LoopKinematics, q: Numbers, qd: Numbers) -> Numbers:
    """Return the joint velocities with J qd = 0 that differ from qd by the least kinetic energy."""
    motions = loops.speeds[:, None] * loops.motions(q).motions
    weights = motions.T @ loops.call("inertia_matrix", q)
    return motions @ (np.linalg.pinv(weights @ motions, hermitian=True) @ (weights @ qd))


def closed_position(loops: LoopKinematics, q: ArrayLike | None) -> Numbers:
    """Return a closed position, assembled if none is given; an open one is refused."""
    if q is None:
        return assemble(loops.system, parameters=loops.parameters)
    position = loops.start(q)
    worst = max(loops.gaps(position), key=loops.size, default=None)
    if worst is not None and loops.size(worst) > 1e3 * CLOSED:
        raise InputError(f"q is open at {worst}; close it first: q = arm.assemble(q)")
    return position


def _each(
    system: CompiledMechanism,
    arrays: Mapping[str, Any],
    given: Mapping[str, ArrayLike],
    parameters: Named | None,
    one: Callable[..., Numbers],
    many: Callable[..., tuple[Numbers, Mask]],
) -> Numbers:
    """Return the results of `one` for each state; in batches, native code of `many` computes those it finds good."""
    sizes = {"q": system.nq, "qd": system.nv}
    values = numbers(system.mechanism, given, 1)
    whole = {}
    for name, x in arrays.items():
        whole[name] = np.asarray(x, dtype=float)
        if whole[name].shape[-1:] != (sizes[name],):
            raise InputError(f"{name} has shape {whole[name].shape}; expected [..., {sizes[name]}]")
    samples = Samples.of({**whole, "parameters": inputs_of(system.mechanism, parameters)}, {"given": values})
    out = np.empty((prod(samples.lead), system.nv))
    at = [k for places in values for k in places]
    native = NativeLoops.of(system, at)
    for piece in samples.pieces():
        states: list[Any] = [piece.array(name) for name in whole]
        wanted = piece.placed("given", np.broadcast_to(0.0, (piece.count, system.nv)))
        own = piece.array("parameters")
        good = np.zeros(piece.count, dtype=bool)
        if native.determined:
            out[piece.rows], good = many(native, *with_parameters((*states, wanted), own))
        for n in np.flatnonzero(~good):
            loops = LoopKinematics(system, None if own is None else own[n])
            state = {name: x[n] for name, x in zip(whole, states, strict=True)}
            try:
                out[piece.rows.start + n] = one(loops, state, {k: float(wanted[n, k]) for k in at})
            except InputError as error:
                if not samples.lead:
                    raise
                sample = [int(k) for k in np.unravel_index(piece.rows.start + n, samples.lead)]
                raise InputError(f"sample {sample}: {error}") from None
    return out.reshape(*samples.lead, system.nv)


def _solved(
    loops: LoopKinematics, q: Numbers, bias: Numbers | float, given: dict[int, float], what: str, size: float = 0.0
) -> Numbers:
    """Return x with J x + bias = 0 and the given entries; of several, the smallest in the norm of I.

    `size` is that of a bias whose terms do not cancel, to which its rounding errors are proportional.
    """
    q = closed_position(loops, q)
    motions = loops.motions(q).motions
    x = np.zeros(len(loops.labels))
    if np.any(bias):
        J = loops.jacobian(q)
        x = -np.linalg.lstsq(J, bias, rcond=1e-7)[0]
        left = np.abs(J @ x + bias).max()
        if left > max(1e-6 * np.abs(bias).max(), SLIP * size):
            raise InputError(f"no accelerations keep the loops closed at this singular position; {left:.3g} is left")
    at = list(given)
    wanted = np.array([given[k] / loops.speeds[k] for k in at]) - x[at]
    y = np.linalg.lstsq(motions[at], wanted, rcond=1e-9)[0] if at and motions.size else np.zeros(motions.shape[1])
    if at and np.abs(motions[at] @ y - wanted).max() > SLIP * max(np.abs(wanted).max(), np.abs(y).max(initial=0.0)):
        raise _contradiction(loops, given, (x + motions @ y) * loops.speeds, what)
    weights = loops.speeds[:, None] * loops.call("inertia_matrix", q) * loops.speeds
    free = _null(motions[at])
    rest = motions @ free
    x = x + motions @ y
    x = x - rest @ (np.linalg.pinv(rest.T @ weights @ rest, hermitian=True) @ (rest.T @ weights @ x))
    out = x * loops.speeds
    out[at] = [given[k] for k in at]
    return out


def _contradiction(loops: LoopKinematics, given: dict[int, float], found: Numbers, what: str) -> InputError:
    pairs = ", ".join(f"{loops.labels[k]} = {found[k]:.6g} instead of {v:.6g}" for k, v in given.items())
    return InputError(f"the loops do not allow these {what} together; nearest: {pairs}. Give fewer, or these")


def _null(A: NDArray) -> Numbers:
    """Return an orthonormal basis of the null space of A."""
    if not A.size:
        return np.eye(A.shape[1])
    _, sizes, rows = np.linalg.svd(A)
    return rows[int((sizes > 1e-9 * max(1.0, sizes.max(initial=0.0))).sum()) :].T
