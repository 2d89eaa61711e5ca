"""The torques of actuated joints that make a given motion under given forces, as Programs."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

from ..compiler.ir.program import Array, Program
from ..compiler.ir.trace import Trace
from ..model.mechanism import Mechanism
from ..simulation.instants import Force, Instant


@dataclass(frozen=True)
class Actuated:
    """Actuated degrees of freedom with the accelerations of a motion, in the form of driven ones."""

    v: tuple[int, ...]
    qdd: Sequence[Any]
    couplings: tuple = ()

    @property
    def locked(self) -> frozenset[int]:
        """The actuated degrees of freedom."""
        return frozenset(self.v)

    def accelerations(self, t: Any, count: int) -> list[Any]:
        """Return qdd of all degrees of freedom; those that are not actuated follow from the loops."""
        return [self.qdd[k] if k in self.v else 0.0 for k in range(count)]


def torque_programs(
    mechanism: Mechanism, forces: Sequence[Force], actuated: tuple[int, ...]
) -> tuple[Program, Program]:
    """Return the Programs (t, q, qd, qdd[, parameters]) -> control and -> (tau, wrenches) of a motion.

    `control` are the torques of the actuated joints, tau those of all that acts in the joints, [nv] each. The wrenches
    are those of the forces on the bodies, [nb, 6] in their frames.
    """
    nv, nb = mechanism.nv, len(mechanism.bodies)
    trace = Trace()
    inputs = [Array("t", (1,)), Array("q", (mechanism.nq,)), Array("qd", (nv,)), Array("qdd", (nv,))]
    if mechanism.free_parameters:
        inputs.append(Array("parameters", (len(mechanism.free_parameters),)))
    given = {a.name: [trace.input(g, k) for k in range(a.size)] for g, a in enumerate(inputs)}
    now = Instant(mechanism, given["t"][0], given["q"], given["qd"], given.get("parameters"), given)
    for force in forces:
        force.apply(now)
    tau, control = now.driven_torques(Actuated(actuated, given["qdd"]))  # type: ignore[arg-type]
    control = [x if k in actuated else 0.0 for k, x in enumerate(control)]
    alone = Program.of_trace("control", inputs, (Array("control", (nv,)),), trace, [control])
    outputs = (Array("tau", (nv,)), Array("wrenches", (nb, 6)))
    return alone, Program.of_trace("loads", inputs, outputs, trace, [tau, now.wrenches()])
