"""DeNOC: one algorithm per file, each a page of sweeps over the tree, and the table of all of them."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

from . import (
    closed,
    closure,
    convective,
    energy,
    hybrid,
    inertia,
    inverse,
    jacobians,
    kinematics,
    recursion,
    regressor,
)


@dataclass(frozen=True)
class Algorithm:
    """A page with its inputs and the shape of its output.

    A page with several outputs returns a list of scalars for each; `output` has their names, `shape` their shapes.
    Shapes are in terms of nq, nv, nb (bodies), 10 nb (their inertial parameters), nc (equations of loops) and
    numbers. `axes` are the default axes where there is a choice. `wrenches` is true if external wrenches matter,
    `frame` if a frame is required, `driven` if driven joints can be chosen, `inverts` if the inertia matrix must be
    invertible. `lumps` is true if only the torques matter, so that masses may be counted to whichever body is cheaper.
    `unrolled` is true if the page reads whole records rather than sweeps, so that no loops over bodies can run it.
    """

    page: Callable
    inputs: tuple[str, ...]
    output: str | tuple[str, ...]
    shape: tuple[str | int | tuple[str | int, ...], ...]
    wrenches: bool = False
    frame: bool = False
    axes: str | None = None
    inverts: bool = False
    lumps: bool = False
    driven: bool = False
    unrolled: bool = False

    @property
    def outputs(self) -> tuple[tuple[str, Any], ...]:
        """The names of the outputs, each with its shape."""
        if isinstance(self.output, str):
            return ((self.output, self.shape),)
        return tuple(zip(self.output, self.shape, strict=True))


ALGORITHMS: dict[str, Algorithm] = {
    "inverse_dynamics": Algorithm(
        inverse.inverse_dynamics, ("q", "qd", "qdd"), "tau", ("nv",), wrenches=True, lumps=True
    ),
    "bias_torque": Algorithm(inverse.inverse_dynamics, ("q", "qd"), "h", ("nv",), wrenches=True, lumps=True),
    "gravity_torque": Algorithm(inverse.inverse_dynamics, ("q",), "g", ("nv",), wrenches=True, lumps=True),
    "reactions": Algorithm(inverse.reactions, ("q", "qd", "qdd"), "w", ("nb", 6), wrenches=True),
    "forward_dynamics": Algorithm(
        closed.forward_dynamics, ("q", "qd", "tau"), "qdd", ("nv",), wrenches=True, inverts=True, lumps=True
    ),
    "implicit_dynamics": Algorithm(
        closed.forward_dynamics, ("q", "qd", "tau", "added"), "qdd", ("nv",), wrenches=True, inverts=True, lumps=True
    ),
    "hybrid_dynamics": Algorithm(
        hybrid.hybrid_dynamics,
        ("q", "qd", "qdd", "tau"),
        ("qdd", "tau"),
        (("nv",), ("nv",)),
        wrenches=True,
        inverts=True,
        lumps=True,
        driven=True,
    ),
    "regressor": Algorithm(regressor.regressor, ("q", "qd", "qdd"), "Y", ("nv", "10 nb"), unrolled=True),
    "energy_regressor": Algorithm(
        regressor.energy_regressor, ("q", "qd"), ("K", "V"), (("10 nb",), ("10 nb",)), unrolled=True
    ),
    "inverse_recursion": Algorithm(
        recursion.inverse_recursion,
        ("q", "qd", "qdd"),
        ("t", "dt", "w", "wtilde", "tau"),
        (("nb", 6), ("nb", 6), ("nb", 6), ("nb", 6), ("nv",)),
    ),
    "forward_recursion": Algorithm(
        recursion.forward_recursion,
        ("q", "qd", "tau"),
        ("Mhat", "psi", "mhat", "tauhat", "mu", "qdd"),
        (("nb", 6, 6), ("nv", 6), ("nv",), ("nv",), ("nb", 6), ("nv",)),
        inverts=True,
    ),
    "inertia_matrix": Algorithm(inertia.inertia_matrix, ("q",), "I", ("nv", "nv"), lumps=True),
    "inverse_inertia_matrix": Algorithm(
        inertia.inverse_inertia_matrix, ("q",), "Iinv", ("nv", "nv"), inverts=True, lumps=True
    ),
    "inertia_logdet": Algorithm(inertia.inertia_logdet, ("q",), "logdet", (), inverts=True, lumps=True),
    "convective_matrix": Algorithm(convective.convective_matrix, ("q", "qd"), "C", ("nv", "nv"), lumps=True),
    "pose": Algorithm(kinematics.pose, ("q",), "T", (4, 4), frame=True),
    "poses": Algorithm(kinematics.poses, ("q",), "T", ("nb", 4, 4)),
    "twist": Algorithm(kinematics.twist, ("q", "qd"), "t", (6,), frame=True, axes="body"),
    "twists": Algorithm(kinematics.twists, ("q", "qd"), "t", ("nb", 6)),
    "twist_rate": Algorithm(kinematics.twist_rate, ("q", "qd", "qdd"), "dt", (6,), frame=True, axes="body"),
    "twist_rates": Algorithm(kinematics.twist_rates, ("q", "qd", "qdd"), "dt", ("nb", 6)),
    "jacobian": Algorithm(jacobians.jacobian, ("q",), "J", (6, "nv"), frame=True, axes="world"),
    "jacobian_rate": Algorithm(jacobians.jacobian_rate, ("q", "qd"), "dJ", (6, "nv"), frame=True, axes="world"),
    "kinetic_energy": Algorithm(energy.kinetic_energy, ("q", "qd"), "T", ()),
    "potential_energy": Algorithm(energy.potential_energy, ("q",), "U", ()),
    "momentum": Algorithm(energy.momentum, ("q", "qd"), "h", (6,)),
    "center_of_mass": Algorithm(energy.center_of_mass, ("q",), "c", (3,)),
    "closure_residual": Algorithm(closure.closure_residual, ("q",), "gap", ("nc",)),
    "closure_jacobian": Algorithm(closure.closure_jacobian, ("q",), "J", ("nc", "nv")),
    "closure_bias": Algorithm(closure.closure_bias, ("q", "qd"), "bias", ("nc",)),
    "multipliers": Algorithm(
        closed.multipliers, ("q", "qd", "tau"), "lambda", ("nc",), wrenches=True, inverts=True, lumps=True
    ),
    "closing_step": Algorithm(closed.closing_step, ("q",), "dq", ("nv",), inverts=True, lumps=True),
    "closing_speed": Algorithm(closed.closing_speed, ("q", "qd"), "qd", ("nv",), inverts=True, lumps=True),
    "integrate": Algorithm(kinematics.integrate, ("q", "qd"), "q", ("nq",)),
    "difference": Algorithm(kinematics.difference, ("q", "q2"), "dq", ("nv",)),
    "coordinate_rate": Algorithm(kinematics.coordinate_rate, ("q", "qd"), "dq", ("nq",)),
}
"""Every compiled function of a System, by name."""

__all__ = ["ALGORITHMS", "Algorithm"]
