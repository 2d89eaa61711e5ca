"""The loops of a System on numbers: gaps by loop, motions that keep the loops closed, and Newton's method.

Distances are measured in units of a length of the mechanism. This makes equations and degrees of freedom in meters
comparable with those in radians, for mechanisms of any size.
"""

from __future__ import annotations

import math
from collections.abc import Mapping
from dataclasses import dataclass
from functools import cached_property
from typing import TYPE_CHECKING, Any

import numpy as np
from numpy.typing import ArrayLike, NDArray

from ... import loops as loop_kinds
from ...algebra.scalars import Numbers
from ...compiler.lower.loop_pattern import RANK, newton
from ...errors import InputError
from ...model.axes import axis_labels, axis_names
from ...model.mechanism import Closure, Mechanism, one_set, resolve_parts
from ...model.scales import characteristic_length, loop_units
from ...runtime.compiled import CompiledMechanism
from .tolerances import CLOSED

if TYPE_CHECKING:
    from ...algebra.scalars import Scalar

Mask = NDArray[np.bool_]


@dataclass(frozen=True)
class Gap:
    """The gap of a loop or coupling: its distance [m] and angle [rad]."""

    loop: str
    distance: float
    angle: float

    def spoken(self, per: str = "") -> str:
        """Return the gap as text, such as "loop 'pin' by 26.1 mm"; `per` is "/s" for the rate of a gap."""
        return f"{self.loop} by {millimetres_and_degrees(self.distance, self.angle, per)}"

    def __str__(self) -> str:
        """Return the name of the loop and the size of the gap."""
        return self.spoken()


@dataclass(frozen=True)
class Motions:
    """J at a position: its rank, its singular values, and the motions with all loops closed, in units of the length.

    `motions` [nv, mobility] are orthonormal; `rows` [nv, nv] are the directions of the singular values, largest first.
    """

    rank: int
    sizes: Numbers
    motions: Numbers
    rows: Numbers

    @property
    def mobility(self) -> int:
        """The number of motions that keep the loops closed at this instant."""
        return self.motions.shape[1]


@dataclass(frozen=True)
class LoopKinematics:
    """Residual, Jacobian and closing of the loops of a System, with distances in units of `length`."""

    system: CompiledMechanism
    parameters: Any = None
    many: bool = False
    """Whether the parameters are sets of a batch, [..., np], checked already."""

    def __post_init__(self) -> None:
        """Read the parameters, in order or by name, and check that they are one set."""
        if not self.many:
            object.__setattr__(self, "parameters", one_set(self.mechanism, self.parameters, "one position"))

    @property
    def mechanism(self) -> Mechanism:
        """The mechanism."""
        return self.system.mechanism

    @cached_property
    def length(self) -> float:
        """The mechanism's characteristic length [m]."""
        return characteristic_length(self.mechanism)

    @cached_property
    def labels(self) -> list[str]:
        """The names of the degrees of freedom."""
        return axis_labels(self.mechanism, 1)

    @cached_property
    def speeds(self) -> Numbers:
        """The unit of each degree of freedom in SI units: a radian, or the length in meters."""
        return loop_units(self.mechanism)[1]

    @cached_property
    def units(self) -> Numbers:
        """The unit of each equation in SI units."""
        return loop_units(self.mechanism)[0]

    @cached_property
    def holonomic(self) -> Mask:
        """Which equations restrict positions; the others restrict velocities alone."""
        return np.array([e.holonomic for e in self.mechanism.closures], dtype=bool)

    @cached_property
    def groups(self) -> list[tuple[str, slice]]:
        """The equations of each loop and coupling, by a name such as "loop 'pin'"."""
        out, at, values = [], 0, self.mechanism.values()  # the counts of equations do not depend on parameters
        for loop in resolve_parts(self.mechanism.loops, values):
            count = len(loop_kinds.labels(loop))
            out.append((f"loop {loop.name!r}", slice(at, at + count)))
            at += count
        for coupling in self.mechanism.couplings:
            out.append((f"coupling {coupling.name!r}", slice(at, at + 1)))
            at += 1
        return out

    @cached_property
    def values(self) -> Mapping[str, Scalar]:
        """The values of all parameters by name."""
        if self.parameters is None or not self.mechanism.free_parameters:
            return self.mechanism.values()
        return self.mechanism.values([float(x) for x in self.parameters])

    def residual(self, q: Numbers) -> Numbers:
        """Return the residual of every equation [m, rad]."""
        return self.call("closure_residual", q)

    def jacobian(self, q: Numbers) -> Numbers:
        """Return J in units of the length."""
        return self.call("closure_jacobian", q) * self.speeds / self.units[:, None]

    def move(self, q: Numbers, step: Numbers) -> Numbers:
        """Return q moved by a step in units of the length."""
        return self.call("integrate", q, self.speeds * step)

    def step(self, qa: Numbers, qb: Numbers) -> Numbers:
        """Return the step from qa to qb in units of the length."""
        return self.call("difference", qa, qb) / self.speeds

    def gap(self, q: Numbers) -> float:
        """Return the largest residual, in units of the length; infinite if an axis points backward."""
        residual = np.abs(self.residual(q) / self.units)
        return float(residual.max(initial=0.0)) if np.isfinite(residual).all() else math.inf

    def gaps(self, q: Numbers) -> tuple[Gap, ...]:
        """Return the gaps of all loops and couplings, in their order."""
        residual = self.residual(q)
        return tuple(gap_of(name, residual[at], self.mechanism.closures[at]) for name, at in self.groups)

    def size(self, gap: Gap) -> float:
        """Return the size of a gap: the larger of its distance, in units of the length, and its angle."""
        return max(gap.distance / self.length, gap.angle)

    def close(self, q: Numbers, held: Mask, rows: NDArray[np.int_] | None = None) -> tuple[Numbers, float]:
        """Return the closed position found by Newton's method, and the remaining gap, in units of the length.

        `held` degrees of freedom do not move. If `rows` are given, only these equations count.
        """
        pick = slice(None) if rows is None else rows
        if not (np.isfinite(self.residual(q)).all() and np.isfinite(self.jacobian(q)).all()):
            return q, math.inf
        found, _ = newton(
            lambda x: self.residual(x)[pick] / self.units[pick],
            lambda x: np.where(self.holonomic[:, None], self.jacobian(x), 0.0)[pick],
            self.move,
            q,
            held=held,
        )
        left = np.abs(self.residual(found) / self.units)[pick]
        return found, float(left.max(initial=0.0)) if np.isfinite(left).all() else math.inf

    def motions(self, q: Numbers) -> Motions:
        """Return rank and null spaces of J at a position.

        A singular position is accurate only to the square root of its gap, and so are zero singular values.
        """
        return self._split(q, self.jacobian(q))

    def displacements(self, q: Numbers) -> Motions:
        """Return rank and null spaces of J of the equations of positions; those of velocities alone are left out."""
        return self._split(q, self.jacobian(q)[self.holonomic])

    def _split(self, q: Numbers, J: Numbers) -> Motions:
        count, nv = J.shape
        if not count or not nv:
            return Motions(0, np.zeros(0), np.eye(nv), np.eye(nv))
        _, sizes, rows = np.linalg.svd(J)
        relative = float(np.abs(self.residual(q) / self.units).max())
        rank = int((sizes > max(RANK, min(10 * math.sqrt(relative), 1e-3)) * sizes.max()).sum())
        return Motions(rank, sizes, rows[rank:].T, rows)

    def start(self, q: ArrayLike | None) -> Numbers:
        """Return a position as numbers, by default the guess of the mechanism."""
        if q is None:
            return self.system.neutral()
        try:
            out = np.array(q, dtype=float)
        except (ValueError, TypeError):
            raise InputError(f"q is not an array of real numbers: {q!r}") from None
        if out.shape != (self.mechanism.nq,):
            raise InputError(f"q has shape {out.shape}; expected one position, ({self.mechanism.nq},)")
        if not np.isfinite(out).all():
            k = int(np.flatnonzero(~np.isfinite(out))[0])
            raise InputError(f"q[{k}] is {out[k]}; give finite numbers")
        return out

    def shown(self, index: int, value: float) -> str:
        """Return a coordinate with its unit, such as "crank = 0.52 rad"."""
        unit = list(axis_names(self.mechanism, 0))[index][2]
        return f"{axis_labels(self.mechanism, 0)[index]} = {value:.6g}" + ("" if unit == "1" else f" {unit}")

    def call(self, name: str, *arrays: Numbers) -> Numbers:
        """Return the result of a function of the System for the parameters."""
        options = {} if self.parameters is None else {"parameters": self.parameters}
        return np.asarray(getattr(self.system, name)(*arrays, **options), dtype=float)


def millimetres_and_degrees(distance: float, angle: float, per: str = "") -> str:
    """Return a distance [m] and an angle [rad] as text in mm and degrees, without one that is zero."""
    if not (math.isfinite(distance) and math.isfinite(angle)):
        return "180 deg"
    parts = [(distance, f"{_short(1e3 * distance)} mm{per}"), (angle, f"{_short(math.degrees(angle))} deg{per}")]
    shown = [text for size, text in parts if size > CLOSED] or [max(parts)[1]]
    return " and ".join(shown)


def _short(x: float) -> str:
    return f"{x:.3g}" if x < 999.5 else f"{x:.0f}"


def gap_of(name: str, residual: Numbers, equations: tuple[Closure, ...]) -> Gap:
    """Return the gap of one loop from its residual, in which rotations are 2 tan(angle / 2)."""
    sizes = {u: math.hypot(*(x for x, e in zip(residual, equations, strict=True) if e.unit == u)) for u in ("m", "rad")}
    coupled = equations[0].label == "coupling"
    return Gap(name, sizes["m"], sizes["rad"] if coupled else 2 * math.atan(sizes["rad"] / 2))
