"""The rates of a state under forces and control, as one Program: what every integrator runs."""

from __future__ import annotations

from collections.abc import Sequence
from functools import cached_property
from typing import Any, Protocol

from ..algebra.spatial import Wrench
from ..algebra.vectors import add, cross, matmul, sub, times, transpose
from ..compiler.program import Array, Program
from ..compiler.sweeps import Tree
from ..compiler.trace import Trace
from ..dynamics import inverse, kinematics, states
from ..dynamics.forward import forward_dynamics
from ..errors import InputError
from ..model.mechanism import Mechanism
from ..model.parts import GROUND

Scalars = Sequence[Any]


class Force(Protocol):
    """Something that acts on a moving mechanism."""

    def apply(self, now: Instant) -> None:
        """Add joint torques (`now.tau`) or wrenches (`now.push`) as traced scalars."""
        ...


class Controller(Protocol):
    """Something that decides on joint torques."""

    def torque(self, now: Instant) -> Scalars:
        """Return the torques of all degrees of freedom as traced scalars."""
        ...


class Instant:
    """A mechanism at one time on traced scalars: what forces and controllers see and act on."""

    def __init__(self, mechanism: Mechanism, t: Any, q: Scalars, qd: Scalars, parameters: Scalars | None) -> None:
        """Hold the state; nothing acts yet."""
        self.mechanism, self.t, self.q, self.qd = mechanism, t, list(q), list(qd)
        self.tau: list[Any] = [0.0] * mechanism.nv
        self._parameters = parameters
        self._wrenches: dict[str, Wrench] = {}

    @cached_property
    def tree(self) -> Tree:
        """The tree with the pose T and the twist t of every body's working frame."""
        tree = self._tree(q=self.q, qd=self.qd)
        kinematics.place(tree)
        kinematics.move(tree)
        return tree

    def point(self, body: str, place) -> tuple[Any, Any]:
        """Return position and velocity in the ground's axes of a point given in a body's frame [m, m/s]."""
        if body == GROUND:
            return tuple(place), (0.0, 0.0, 0.0)
        i = self._record(body)
        arm = i.to_work @ sub(tuple(place), i.frame.origin)
        velocity = times(i.T.R, add(i.t.v, cross(i.t.w, arm)))
        return i.T.place(arm), velocity

    def push(self, body: str, place, force, moment=(0.0, 0.0, 0.0)) -> None:
        """Let a force and a moment, in the ground's axes, act on a body at a point of its frame [N, N m]."""
        if body == GROUND:
            return
        i = self._record(body)
        to_body = transpose(matmul(i.T.R, i.to_work.matrix()))
        f, n = times(to_body, tuple(force)), times(to_body, tuple(moment))
        known = self._wrenches.get(body, Wrench())
        self._wrenches[body] = known + Wrench(add(n, cross(tuple(place), f)), f)

    def inverse_dynamics(self, q: Scalars, qd: Scalars, qdd: Scalars) -> list[Any]:
        """Return the torques of any motion of the mechanism, without the forces that act."""
        return inverse.inverse_dynamics(self._tree(q=q, qd=qd, qdd=qdd))

    def gravity_torque(self, q: Scalars) -> list[Any]:
        """Return the torques that hold the mechanism at rest."""
        return inverse.inverse_dynamics(self._tree(q=q))

    def accelerations(self) -> list[Any]:
        """Return qdd under everything that acts."""
        wrenches = [x for b in self.mechanism.bodies for x in self._wrenches.get(b.name, Wrench()).entries()]
        more = {"wrenches": wrenches} if self._wrenches else {}
        return forward_dynamics(self._tree(q=self.q, qd=self.qd, tau=self.tau, **more))

    def _tree(self, **inputs: Scalars) -> Tree:
        if self._parameters is not None:
            inputs["parameters"] = self._parameters
        tree = Tree(self.mechanism, inputs)
        if self._parameters is None:
            tree.lump()
        return tree

    def _record(self, body: str) -> Any:
        names = [b.name for b in self.mechanism.bodies]
        if body not in names:
            self.mechanism.body(body)  # raises the error that lists the known ones
        return self.tree.records[names.index(body)]


def rates(mechanism: Mechanism, forces: Sequence[Force] = (), control: Controller | None = None) -> Program:
    """Return the Program (t, q, qd[, parameters]) -> (dq, dqd) of a mechanism under forces and control."""
    trace = Trace()
    inputs = [Array("t", (1,)), Array("q", (mechanism.nq,)), Array("qd", (mechanism.nv,))]
    if mechanism.free_parameters:
        inputs.append(Array("parameters", (len(mechanism.free_parameters),)))
    given = [[trace.input(g, k) for k in range(a.size)] for g, a in enumerate(inputs)]
    now = Instant(mechanism, given[0][0], given[1], given[2], given[3] if len(given) > 3 else None)
    if control is not None:
        torque = list(control.torque(now))
        if len(torque) != mechanism.nv:
            raise InputError(f"the controller gave {len(torque)} torques; expected {mechanism.nv}")
        now.tau = [a + b for a, b in zip(now.tau, torque, strict=True)]
    for force in forces:
        force.apply(now)
    qdd = now.accelerations()
    dq = states.coordinate_rate(now.tree)
    outputs = (Array("dq", (mechanism.nq,)), Array("dqd", (mechanism.nv,)))
    return Program.of_trace("rates", inputs, outputs, trace, [dq, qdd])
