"""A time step whose torques, gains, set points and wrenches are inputs, for programs in which people change them."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace
from typing import Any

from .. import joints as joint_kinds
from ..compiler.ir.operations import Op
from ..compiler.ir.program import Array, Program
from ..compiler.lanes.form import Kernel
from ..model.mechanism import Mechanism
from ..simulation.acting.instants import Force, Instant
from ..simulation.acting.rates import centered_rates, centered_scheme
from ..simulation.methods.fixed_steps import RK4
from ..simulation.methods.protocol import FixedScheme
from ..simulation.methods.stepper import step_kernel, stepper_of

LIVE = "live"
"""The name of the input, before it is appended to the parameters."""


@dataclass(frozen=True)
class LiveInputs:
    """The inputs of a live step: their places [first, count] in its argument `tau`, by name.

    tau = torque + stiffness (target - q) - damping qd for joints with as many coordinates as velocities, and torque for
    the others. Wrenches [nb, 6] of external forces are about the origins of the bodies in their frames.
    """

    mechanism: Mechanism

    @property
    def places(self) -> dict[str, tuple[int, int]]:
        """The first entry and the count of each input."""
        nv, out, at = self.mechanism.nv, {}, 0
        for name, count in [(n, nv) for n in ("torque", "stiffness", "damping", "target")] + [("wrenches", self._rows)]:
            out[name] = (at, count)
            at += count
        return out

    @property
    def inputs(self) -> tuple[Array, ...]:
        """The further input of the rates, as the protocol of controllers requires it."""
        return (Array(LIVE, (4 * self.mechanism.nv + self._rows,)),)

    @property
    def _rows(self) -> int:
        return 6 * len(self.mechanism.bodies)

    def torque(self, now: Instant) -> list[Any]:
        """Return the joint torques."""
        given = {name: now.given[LIVE][a : a + n] for name, (a, n) in self.places.items()}
        tau = list(given["torque"])
        for label, k in coordinates(self.mechanism).items():
            moved = given["stiffness"][label] * (given["target"][label] - now.q[k])
            tau[label] = tau[label] + (moved - given["damping"][label] * now.qd[label])
        for i, body in enumerate(self.mechanism.bodies):
            now.load(body.name, given["wrenches"][6 * i : 6 * i + 6])
        return tau


def coordinates(mechanism: Mechanism) -> dict[int, int]:
    """Return the coordinate of each velocity, for joints with as many coordinates as velocities."""
    out: dict[int, int] = {}
    for joint, q, v in zip(mechanism.joints, mechanism.q_slices, mechanism.v_slices, strict=True):
        kind = joint_kinds.kind(joint.kind)
        if kind.QUATERNION is None and kind.NQ == kind.NV:
            out |= dict(zip(range(v.start, v.stop), range(q.start, q.stop), strict=True))
    return out


def live_step(mechanism: Mechanism, forces: Sequence[Force], name: str = "time_step") -> tuple[Kernel, LiveInputs]:
    """Return one step of the classical Runge-Kutta method with live inputs, and the places of these in `tau`.

    Loops stay closed by projection after the step.
    """
    live = LiveInputs(mechanism)
    scheme = centered_scheme(RK4, mechanism)
    assert isinstance(scheme, FixedScheme)
    program = _together(centered_rates(mechanism, forces, live), mechanism)
    whole = stepper_of(mechanism, program, scheme)
    timed = any(op[0] is Op.INPUT and op[1] == 0 for op in program.ops)
    kernel = step_kernel(
        program,
        scheme,
        whole.quaternions,
        whole.closing,
        dtype="float64",
        held=live.inputs[0].size,
        timed=timed,
        many=True,
    )
    return replace(kernel, name=name), live


def _together(program: Program, mechanism: Mechanism) -> Program:
    """Return the rates with parameters [free parameters, live inputs]."""
    free = len(mechanism.free_parameters)
    size = sum(a.size for a in program.inputs if a.name == LIVE)
    together = Array("parameters", (free + size,))
    others = [a for a in program.inputs if a.name not in (LIVE, together.name)]
    return program.with_inputs((*others[:3], together, *others[3:]), {LIVE: (together.name, free)})
