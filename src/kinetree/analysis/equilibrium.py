"""Positions of equilibrium: at rest under gravity, the mechanism's own forces and given torques."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import replace
from typing import TYPE_CHECKING

import numpy as np
from numpy.typing import ArrayLike

from .._support.checks import leading_shape, real_array
from ..algebra.scalars import Numbers
from ..compiler.lower.build import is_long
from ..errors import InputError
from ..model.axes import axis_labels
from ..model.checks import JOINT_SPRING
from ..model.mechanism import Named, parameter_arguments, parameter_sets, resolve_parts
from ..model.scales import loop_units
from ..runtime.compiled import CompiledMechanism
from .joint_entries import as_list, masks_of_joints
from .loops.batch_assembly import assemble
from .loops.kinematics import LoopKinematics, Mask

if TYPE_CHECKING:
    from numpy.typing import NDArray

    from ..model.parts import ForceElement

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
NEAR = 1e-5
"""The displacement [rad, or lengths of the mechanism] of central differences, for mechanisms too long for compiled
derivatives: the errors of truncation and of rounding are then both some 1e-11 of the stiffness."""
ROUNDED = 1e-6
"""FLAT for a stiffness by differences."""


def equilibrium(
    system: CompiledMechanism,
    q: ArrayLike | None = None,
    *,
    tau: ArrayLike | None = None,
    hold: str | Iterable[str] = (),
    stable: bool = True,
    forces: bool = True,
    parameters: Named | None = None,
) -> Numbers:
    """Return positions [..., nq] near q at which the mechanism stays at rest under constant torques tau, or none.

    The leading axes of q, tau and the parameters broadcast. Joints of `hold` keep their positions, as if locked. With
    `stable`, every step is downhill, so that the position is stable; otherwise it may be any position of equilibrium,
    such as an inverted pendulum. With `forces`, springs of the mechanism act. InputError if none is found.
    """
    if isinstance(hold, Mapping):
        raise InputError(
            f"equilibrium: hold is {repr(hold)[:60]}; give names of joints, which keep their positions in q"
        )
    locked, values = as_list(hold), parameter_sets(system.mechanism, parameters)
    guess = LoopKinematics(system).start(None) if q is None else real_array(q, "q")
    torques = np.zeros(system.nv) if tau is None else real_array(tau, "tau")
    cores = {"q": (guess, (system.nq,)), "tau": (torques, (system.nv,))}
    if values is not None:
        cores["parameters"] = values, values.shape[-1:]
    lead = leading_shape(((name, x.shape, core) for name, (x, core) in cores.items()), "equilibrium")
    for name, (x, _) in cores.items():
        if not np.isfinite(x).all():
            raise InputError(f"equilibrium: {name} has entries that are not finite; give finite numbers")
    flat = {name: np.broadcast_to(x, (*lead, *core)).reshape(-1, *core) for name, (x, core) in cores.items()}
    statics = _Statics(
        system, flat["tau"], flat.get("parameters"), forces, masks_of_joints(system.mechanism, locked)[1]
    )
    position = statics.closed(flat["q"].copy(), np.arange(len(flat["q"])), locked)
    left, residual = np.arange(len(position)), np.zeros((len(position), system.nv))
    for _ in range(STEPS):
        force, stiffness, motions, size = statics.at(position[left], left)
        bends, shapes = np.linalg.eigh(0.5 * (stiffness + np.swapaxes(stiffness, -1, -2)))
        along = _times(np.swapaxes(motions, -1, -2), force)
        residual[left] = _times(motions, along) / statics.speeds**2
        good = np.abs(along).max(axis=-1, initial=0.0) <= BALANCED * size
        if stable:
            good &= bends.min(axis=-1, initial=0.0) >= -statics.flat * np.abs(bends).max(axis=-1, initial=0.0)
        go = ~good
        if not go.any():
            return position.reshape(*lead, system.nq)
        left = left[go]
        stiffness, bends, shapes, along = (x[go] for x in (stiffness, bends, shapes, along))
        step = _downhill(along, bends, shapes, statics.flat) if stable else -_solved(stiffness, along)
        step = _times(motions[go], step)
        far = np.abs(step / statics.speeds).max(axis=-1, initial=0.0, keepdims=True)
        step = step * (STRIDE / np.maximum(STRIDE, far))
        position[left] = statics.closed(statics.moved(position[left], step, left), left, locked)
    n = left[0]
    worst = axis_labels(system.mechanism, 1)[int(np.argmax(np.abs(residual[n])))]
    which = f" (sample {[int(k) for k in np.unravel_index(n, lead)]}; {len(left)} in all)" if lead else ""
    raise InputError(
        f"{system.mechanism.name!r} has no equilibrium near this position{which}: after {STEPS} steps a torque of "
        f"{np.abs(residual[n]).max():.3g} is left, most of it at {worst}; hold joints that nothing supports, or give "
        "another q"
    )


class _Statics:
    """The torques that hold a mechanism at rest less those that act, and their derivatives, along allowed motions.

    For mechanisms of very many bodies, springs of joints are added to gravity_torque, which is compiled as loops over
    bodies, and the stiffness is by central differences.
    """

    def __init__(
        self, system: CompiledMechanism, torques: Numbers, parameters: Numbers | None, forces: bool, locked: Mask
    ) -> None:
        mechanism = system.mechanism
        self.system, self.torques, self.parameters, self.free = system, torques, parameters, np.flatnonzero(~locked)
        self.units, self.speeds = loop_units(mechanism)
        self.differences = is_long(mechanism, closed=False)
        self.flat = ROUNDED if self.differences else FLAT
        apart = [x for x in mechanism.forces if forces and self.differences and x.kind == JOINT_SPRING]
        self.springs = _springs(system, apart, parameters)
        if apart:
            rest = tuple(x for x in mechanism.forces if x not in apart)
            system = type(system)(replace(mechanism, forces=rest), system.report)
        m = system.mechanism
        acts = bool(m.forces) if self.differences else m.has_forces  # no damping acts at rest
        self.function = system.function("gravity_torque", forces=forces and acts)

    def more(self, rows: NDArray | slice | int) -> tuple[Numbers, ...]:
        """Return the parameters of some samples as further arguments."""
        if self.parameters is not None:
            return (self.parameters[rows],)
        return parameter_arguments(self.system._nominal)

    def moved(self, q: Numbers, step: Numbers, rows: NDArray | slice | int) -> Numbers:
        """Return positions after a step."""
        return self.system.function("integrate")(q, step, *self.more(rows))

    def closed(self, q: Numbers, rows: NDArray | slice | int, locked: Sequence[str]) -> Numbers:
        """Return positions with their loops closed."""
        if not self.system.closures:
            return q
        return assemble(self.system, q, locked, parameters=None if self.parameters is None else self.parameters[rows])

    def at(self, q: Numbers, rows: NDArray | slice | int) -> tuple[Numbers, Numbers, Numbers, Numbers]:
        """Return residual, stiffness of the allowed motions, these, and the size of the torques, for each sample.

        There is a column of allowed motions per degree of freedom; those that do not exist are zero.
        """
        more, free = self.more(rows), self.free
        allowed = np.broadcast_to(np.eye(len(free)), (len(q), len(free), len(free)))
        force, pull = self.force(q, rows), np.zeros((len(q), 0))
        if self.system.closures:
            J = self.system.function("closure_jacobian")(q, *more)[..., free]
            allowed = _null(J * self.speeds[free] / self.units[:, None])
            pull = _times(np.linalg.pinv(np.swapaxes(J, -1, -2), rcond=1e-9), force[..., free])
        motions = np.zeros((len(q), len(self.speeds), len(free)))
        motions[:, free] = self.speeds[free, None] * allowed
        stiffness = self.stiffness(q, pull, rows)
        turned = np.swapaxes(motions, -1, -2)
        size = _times(np.abs(turned), np.abs(force) + np.abs(self.torques[rows])).max(axis=-1, initial=0.0)
        weight = np.abs(stiffness).max(axis=(-2, -1), initial=0.0)
        return force, turned @ stiffness @ motions, motions, np.maximum(size, weight)

    def force(self, q: Numbers, rows: NDArray | slice | int) -> Numbers:
        """Return the torques that hold the mechanism at rest less those that act."""
        stiffness, rest, at = self.springs
        out = self.function(q, *self.more(rows)) - self.torques[rows]
        return out + (
            stiffness * (q[..., at] - rest) if self.parameters is None else stiffness[rows] * (q[..., at] - rest[rows])
        )

    def stiffness(self, q: Numbers, pull: Numbers, rows: NDArray | slice | int) -> Numbers:
        """Return the derivative of the force less the loops' force J^T pull, which rotates with them."""
        more = self.more(rows)
        if not self.differences:
            out = self.function.jacobian("q")(q, *more)
            if pull.shape[-1]:
                dJ = self.system.function("closure_jacobian").jacobian("q")(q, *more)
                out = out - np.einsum("nk,nkij->nij", pull, dJ)
            return out
        out = np.empty((len(q), len(self.speeds), len(self.speeds)))
        steps = NEAR * np.diag(self.speeds)
        for n, row in enumerate(np.arange(len(self.torques))[rows]):
            ends = []
            for side in (steps, -steps):
                there = self.moved(q[n], side, row)
                ends.append(self.force(there, row))
                if pull.shape[-1]:
                    J = self.system.function("closure_jacobian")(there, *self.more(row))
                    ends[-1] = ends[-1] - np.einsum("k,nkj->nj", pull[n], J)
            out[n] = (ends[0] - ends[1]).T / (2.0 * NEAR * self.speeds)
        return out


def _springs(
    system: CompiledMechanism, elements: Sequence[ForceElement], parameters: Numbers | None
) -> tuple[Numbers, Numbers, NDArray]:
    """Return stiffness and rest of springs in joints by degree of freedom, [nv] or [samples, nv], and entries in q."""
    m = system.mechanism
    count = 1 if parameters is None else len(parameters)
    k, rest, at = np.zeros((count, m.nv)), np.zeros((count, m.nv)), np.zeros(m.nv, dtype=int)
    carried = {j.child: n for n, j in enumerate(m.joints)}
    for row in range(count if elements else 0):
        values = m.values(None if parameters is None else parameters[row].tolist())
        for element in resolve_parts(tuple(elements), values):
            given, n = dict(element.coefficients), carried[element.body_b]
            first, place = m.v_slices[n].start, m.q_slices[n].start
            for i in range(m.v_slices[n].stop - first):
                stiffness = given.get(f"stiffness_{i + 1}", 0.0)
                at[first + i] = place + i
                rest[row, first + i] += stiffness * given.get(f"rest_{i + 1}", 0.0)
                k[row, first + i] += stiffness
    rest = np.divide(rest, k, out=np.zeros_like(rest), where=k != 0.0)
    return (k, rest, at) if parameters is not None else (k[0], rest[0], at)


def _downhill(residual: Numbers, values: Numbers, shapes: Numbers, flat: float) -> Numbers:
    """Return Newton's step with the curvature's magnitude, so that it is downhill; from a summit, a small step."""
    slopes = _times(np.swapaxes(shapes, -1, -2), residual)
    least = flat * np.abs(values).max(axis=-1, initial=0.0, keepdims=True)
    steps = -slopes / np.maximum(np.abs(values), np.where(least > 0.0, least, 1.0))
    largest = np.abs(shapes).max(axis=-2)
    summit = (values < -least) & (np.abs(steps) * largest < KICK)
    return _times(shapes, np.where(summit, KICK / largest, steps))


def _solved(stiffness: Numbers, residual: Numbers) -> Numbers:
    return _times(np.linalg.pinv(stiffness, rcond=1e-12), residual)


def _times(A: Numbers, x: Numbers) -> Numbers:
    return (A @ x[..., None])[..., 0]


def _null(rows: Numbers) -> Numbers:
    """Return an orthonormal basis of the motions that satisfy all equations as columns, and columns of zeros."""
    _, sizes, directions = np.linalg.svd(rows)
    known = sizes > 1e-7 * sizes.max(axis=-1, initial=0.0, keepdims=True)
    lost = np.zeros(directions.shape[:-1], dtype=bool)
    lost[..., : known.shape[-1]] = known
    return np.swapaxes(np.where(lost[..., None], 0.0, directions), -1, -2)
