"""The result of `ground_forces`: torques, forces, missing forces, and a verdict per instant."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from ...algebra.arrays import Numbers
from .cones import OPEN, SLIP, used

REALIZED = 1e-9
"""Missing forces relative to those required, below which they count as rounding."""
LIMIT = 1.0 - 1e-9
"""The part of friction from which a sticking contact is at the limit of its cone."""


@dataclass(frozen=True)
class GroundForces:
    """Joint torques and ground forces of a motion: `tau` [..., nv] and `forces` [..., nc, 3] along normal and tangents.

    `residual` [..., nv] are the generalized forces that no force in the cones supplies, and `missing` [...] their size
    relative to those required, or to 1e-4 of the weight if these are less. `modes` [..., nc] are 0 (open), 1 (stick) or
    2 (slip); `inward` [..., nc] marks contacts that the motion moves into their surface, which no rigid body can do.
    `points` [..., nc, 3] and `axes` [..., nc, 3, 3], by rows normal and tangents, are in the frame of the ground.
    `settled` [...] marks forces that are the smallest ones up to rounding. `grounded` [nc] marks contacts with
    the ground, not with other bodies. `contacts` are the names, `labels` and `units` those of the axes.
    """

    tau: Numbers
    forces: Numbers
    residual: Numbers
    missing: Numbers
    modes: np.ndarray
    inward: np.ndarray
    settled: np.ndarray
    points: Numbers
    axes: Numbers
    friction: Numbers
    grounded: np.ndarray
    contacts: tuple[str, ...]
    labels: tuple[str, ...]
    units: tuple[str, ...]

    @property
    def realized(self) -> np.ndarray:
        """Whether torques and ground forces realize the motion exactly, up to rounding [...]."""
        return (self.missing <= REALIZED) & ~self.inward.any(axis=-1)

    @property
    def used(self) -> Numbers:
        """The part of friction that each force uses, |t| / (mu n) [..., nc]: 1 at the border of the cone."""
        return used(self.forces, self.friction)

    @property
    def at_limit(self) -> np.ndarray:
        """The sticking contacts whose force is on the border of its cone [..., nc]."""
        return (self.modes != OPEN) & (self.modes != SLIP) & (self.used >= LIMIT)

    @property
    def unloaded(self) -> np.ndarray:
        """The touching contacts without a force: more of it would have to pull [..., nc]."""
        return (self.modes != OPEN) & (self.forces[..., 0] <= 0.0)

    @property
    def world(self) -> Numbers:
        """The forces on the bodies in axes of the ground [..., nc, 3] in N."""
        return np.einsum("...ck,...ckj->...cj", self.forces, self.axes)

    @property
    def wrench(self) -> Numbers:
        """The total wrench [n; f] of the ground on the mechanism about the origin of the ground [..., 6]."""
        f = np.where(self.grounded[:, None], self.world, 0.0)
        return np.concatenate([np.cross(self.points, f).sum(axis=-2), f.sum(axis=-2)], axis=-1)

    @property
    def status(self) -> np.ndarray:
        """One sentence per instant [...]: "realized", or what is missing and which contacts are at their limits."""
        out = np.empty(self.missing.shape, dtype=object)
        for at in np.ndindex(*out.shape):
            out[at] = self._sentence(at)
        return out

    def _sentence(self, at: tuple[int, ...]) -> str:
        def named(flags: np.ndarray) -> str:
            return ", ".join(name for name, flag in zip(self.contacts, flags[at], strict=True) if flag)

        if self.realized[at]:
            return "realized"
        parts = [f"{name} moves into its surface" for name in [named(self.inward)] if name]
        if self.missing[at] > REALIZED:
            k = int(np.argmax(np.abs(self.residual[at])))
            lack = f"{self.residual[at][k]:.4g} {self.units[k]} are missing at {self.labels[k]}"
            parts.append(f"{lack}, {self.missing[at]:.3g} of all that is required")
            parts += [f"friction is at its limit at {name}" for name in [named(self.at_limit)] if name]
            parts += [f"{name} would have to pull" for name in [named(self.unloaded)] if name]
            if not (self.modes[at] != OPEN).any():
                parts.append("nothing touches the ground")
        return "; ".join(parts)

    def __str__(self) -> str:
        """Return the number of instants that are realized, and the status of the worst one."""
        good, count = int(self.realized.sum()), self.realized.size
        if good == count:
            return f"ground forces: all of {count} instants are realized"
        bad = np.where(self.realized, -1.0, self.missing)
        at = tuple(int(k) for k in np.unravel_index(int(np.argmax(bad)), bad.shape)) if bad.shape else ()
        where = f" (worst at {', '.join(map(str, at))})" if at else ""
        return f"ground forces: {good} of {count} instants are realized{where}: {self._sentence(at)}"
