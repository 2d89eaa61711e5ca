"""Ranges of joints for searches: limits, middles, starts, and angles moved by whole revolutions into the range."""

from __future__ import annotations

import math
from collections.abc import Iterable
from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray

from ..._support.checks import real_array
from ...algebra.scalars import Numbers
from ...errors import InputError
from ...joints import draw_coordinates, kind
from ...model.axes import axis_names
from ...model.flexible import is_modes, modal_entries
from ...model.scales import characteristic_length, loop_units
from ...runtime.compiled import CompiledMechanism
from ..joint_entries import masks_of_joints
from ..loops.kinematics import Mask

APART = 0.3
"""The largest distance of the first start from the middle of the ranges [rad, characteristic lengths]: the middle is
often singular, such as a stretched arm."""
FAR = 3.0
"""The largest length of random starts, for joints without limits [characteristic lengths]."""
TWO_PI = 2 * math.pi
Places = NDArray[np.intp]


@dataclass(frozen=True)
class Ranges:
    """Limits of the coordinates [nq] and velocities' entries [nv] of a mechanism, and those that may move.

    Modal coordinates of flexible bodies stay where a search starts: no drive moves them.
    """

    system: CompiledMechanism
    lower: Numbers
    upper: Numbers
    free: Numbers
    q_places: Places
    v_places: Places
    angles: Mask

    @classmethod
    def of(cls, system: CompiledMechanism, *, limits: bool, hold: str | Iterable[str]) -> Ranges:
        """Return the ranges of all joints; with `limits` false, they are infinite."""
        m, nv = system.mechanism, system.nv
        lower, upper = np.full(nv, -np.inf), np.full(nv, np.inf)
        flat, angles = [], np.zeros(nv, dtype=bool)
        for joint, own_q, own_v in zip(m.resolved_joints, m.q_slices, m.v_slices, strict=True):
            of = kind(joint.kind)
            if of.QUATERNION is not None:
                continue
            flat += zip(range(own_q.start, own_q.stop), range(own_v.start, own_v.stop), strict=True)
            angles[own_v] = [of.PERIODIC and unit == "rad" for unit in of.UNITS]
            for target, values in ((lower, joint.limits.lower), (upper, joint.limits.upper)):
                if limits and values and not is_modes(joint):
                    target[own_v] = values
        at = np.array(flat, dtype=int).reshape(-1, 2)
        free = (~masks_of_joints(m, hold)[1]).astype(float)
        free[modal_entries(m, 1)] = 0.0
        return cls(system, lower, upper, free, at[:, 0], at[:, 1], angles)

    def middle(self) -> Numbers:
        """Return the middle of the ranges [nq]; zero displacement for joints without two limits."""
        q = self.system.neutral()
        low, high = self.lower[self.v_places], self.upper[self.v_places]
        both = np.isfinite(low) & np.isfinite(high)
        with np.errstate(invalid="ignore"):
            q[self.q_places] = np.where(both, 0.5 * (low + high), np.clip(q[self.q_places], low, high))
        return q

    def clipped(self, q: Numbers) -> Numbers:
        """Return positions within the limits."""
        out = np.array(q, dtype=float)
        out[..., self.q_places] = np.clip(q[..., self.q_places], self.lower[self.v_places], self.upper[self.v_places])
        return out

    def start(self) -> Numbers:
        """Return the start without a guess [nq]: near the middle of the ranges, where no joint is stretched."""
        step = APART * np.cos(2.0 * np.arange(self.system.nv)) * loop_units(self.system.mechanism)[1]
        return self.clipped(self.system.integrate(self.middle(), step * self.free))

    def starts(self, count: int, rng: np.random.Generator) -> Numbers:
        """Return random positions within the limits [count, nq], with flexible bodies at rest."""
        joints = ((j, kind(j.kind)) for j in self.system.mechanism.resolved_joints)
        q = draw_coordinates(joints, rng, (count,))
        q[:, modal_entries(self.system.mechanism, 0)] = 0.0
        return self.clipped(q)

    def scattered(self, count: int, rng: np.random.Generator) -> Numbers:
        """Return random starts of searches [count, nq]: lengths without limits in proportion to the mechanism."""
        m = self.system.mechanism
        free = np.array([unit == "m" for _, _, unit in axis_names(m, 0)], dtype=bool)
        limited = np.isfinite(self.lower[self.v_places]) | np.isfinite(self.upper[self.v_places])
        free[self.q_places[limited]] = False
        return self.starts(count, rng) * np.where(free, FAR * characteristic_length(m), 1.0)

    def held_places(self) -> list[int]:
        """Return the entries of q that belong to degrees of freedom that are held."""
        flat = dict(zip(self.v_places.tolist(), self.q_places.tolist(), strict=True))
        m, out = self.system.mechanism, [flat[k] for k in np.flatnonzero(self.free == 0).tolist() if k in flat]
        for own_q, own_v in zip(m.q_slices, m.v_slices, strict=True):
            if own_q.stop - own_q.start != own_v.stop - own_v.start and not self.free[own_v].all():
                out += range(own_q.start, own_q.stop)
        return out

    def near(self, q: Numbers, wanted: Numbers) -> Numbers:
        """Return the same positions with angles moved by whole revolutions, nearest to those wanted, within limits."""
        out = np.array(q, dtype=float)
        for at, k in zip(self.q_places, self.v_places, strict=True):
            if self.angles[k] and self.free[k]:
                best = out[..., at] + TWO_PI * np.round((wanted[..., at] - out[..., at]) / TWO_PI)
                inside = (best >= self.lower[k]) & (best <= self.upper[k])
                for shift in (-TWO_PI, TWO_PI):
                    other = best + shift
                    good = ~inside & (other >= self.lower[k]) & (other <= self.upper[k])
                    best, inside = np.where(good, other, best), inside | good
                out[..., at] = np.where(inside, best, out[..., at])
        return out

    def inside(self, q: Numbers, tolerance: float = 0.0) -> Mask:
        """Return whether every coordinate is within its limits, [...]."""
        x = q[..., self.q_places]
        low, high = self.lower[self.v_places], self.upper[self.v_places]
        return np.asarray(np.all((x >= low - tolerance) & (x <= high + tolerance), axis=-1))

    def at_limit(self, q: Numbers) -> Mask:
        """Return whether each degree of freedom is at a limit of its joint, [..., nv]."""
        out = np.zeros((*q.shape[:-1], self.system.nv), dtype=bool)
        x = q[..., self.q_places]
        out[..., self.v_places] = (x <= self.lower[self.v_places]) | (x >= self.upper[self.v_places])
        return out


def given_start(system: CompiledMechanism, q0: object) -> Numbers:
    """Return a checked start [..., nq]."""
    q = real_array(q0, "q0")
    if q.shape[-1:] != (system.nq,):
        raise InputError(f"q0 has shape {q.shape}; expected [..., {system.nq}]")
    if not np.isfinite(q).all():
        raise InputError("q0 has entries that are not finite; give finite numbers")
    return q


# --- Velocities that leave a frame at rest: the null space of its Jacobian and of the loops ---

RANK = 1e-7
"""The ratio to the largest singular value below which a singular value of the Jacobian counts as zero."""


def scaled_jacobian(
    system: CompiledMechanism, frame: str, used: tuple[bool, ...], q: Numbers, parameters: Numbers | None
) -> Numbers:
    """Return the Jacobian of a frame and of the loops [..., n, nv], without units, for positions q [..., nq].

    Rows are in the frame's axes, which are the target's where it is reached, and only those used. Columns of modal
    coordinates are zero: no drive moves them.
    """
    m = system.mechanism
    more: dict[str, Any] = {} if parameters is None else {"parameters": parameters}
    length, (equations, units) = characteristic_length(m), loop_units(m)
    J = system.jacobian(q, frame, axes="body", **more)[..., np.array(used), :]
    J = J / np.repeat([1.0, length], 3)[np.array(used)][:, None] * units
    if m.closures:
        J = np.concatenate([J, system.closure_jacobian(q, **more) * units / equations[:, None]], axis=-2)
    J[..., modal_entries(m, 1)] = 0.0
    return J


def null_motions(
    system: CompiledMechanism, frame: str, used: tuple[bool, ...], q: Numbers, parameters: Numbers | None
) -> Numbers:
    """Return a basis [nv, k] of the velocities that do not move the frame in the axes used, at one position."""
    rigid = np.setdiff1d(np.arange(system.nv), modal_entries(system.mechanism, 1))
    _, s, V = np.linalg.svd(scaled_jacobian(system, frame, used, q, parameters)[:, rigid])
    basis = V[int((s > RANK * s.max(initial=0.0)).sum()) :]
    out = np.zeros((system.nv, len(basis)))
    out[rigid] = basis.T
    return out * loop_units(system.mechanism)[1][:, None]
