"""What acts on a closed mechanism at many states: external wrenches, the forces of the mechanism, its parameters."""

from __future__ import annotations

from dataclasses import dataclass, replace
from typing import Any

import numpy as np
from numpy.typing import ArrayLike

from ...algebra.arrays import Numbers
from ...compiled import CompiledMechanism
from ...model.parameter_values import Named
from .placements import parameters_of


@dataclass(frozen=True)
class Acting:
    """A system with external wrenches [..., nb, 6] or None, the forces of the mechanism or not, and parameters."""

    system: CompiledMechanism
    wrenches: Any = None
    forces: bool = False
    parameters: Numbers | None = None

    @classmethod
    def of(
        cls, system: CompiledMechanism, wrenches: ArrayLike | None, forces: bool, parameters: Named | None
    ) -> Acting:
        """Return what acts, with its parameters read."""
        return cls(system, wrenches, forces, parameters_of(system, parameters))

    def spread(self, lead: tuple[int, ...]) -> Acting:
        """Return the same with one set of parameters per state of a leading shape."""
        if self.parameters is None:
            return self
        return replace(self, parameters=np.broadcast_to(self.parameters, (*lead, self.parameters.shape[-1])))

    def torques(self, q: ArrayLike, qd: ArrayLike, qdd: ArrayLike) -> Numbers:
        """Return the torques of a motion with every joint driven, [..., nv]."""
        return self.system.tree.inverse_dynamics(q, qd, qdd, **self.options)

    def call(self, name: str, *arrays: ArrayLike) -> Numbers:
        """Return the result of a function under all that acts."""
        return np.asarray(self.system._with(name, **self.options)(*arrays), dtype=float)

    def poses(self, q: Numbers) -> Numbers:
        """Return the poses of all bodies, [..., nb, 4, 4]."""
        more: dict[str, Any] = {} if self.parameters is None else {"parameters": self.parameters}
        return np.asarray(self.system.poses(q, **more), dtype=float)

    def carried(self, T: Numbers, q: Numbers, qd: Numbers, qdd: Numbers, multipliers: Numbers) -> Numbers:
        """Return the wrenches at joints and loops for a motion and its multipliers, [..., nb + nl, 6], ordered as T."""
        out = (T @ multipliers[..., None, :, None])[..., 0]
        out[..., : len(self.system.bodies), :] += self.call("reactions", q, qd, qdd)
        return out

    @property
    def options(self) -> dict[str, Any]:
        """The options of compiled functions, without those that have their defaults."""
        out: dict[str, Any] = {"forces": self.forces} if self.forces is not False else {}
        if self.wrenches is not None:
            out["wrenches"] = self.wrenches
        return out if self.parameters is None else out | {"parameters": self.parameters}
