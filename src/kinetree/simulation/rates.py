"""The rates of a state under forces and control as one Program, which every integrator runs."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from functools import cached_property
from typing import Any, Protocol

from ..algebra.spatial import Wrench
from ..algebra.vectors import add, cross, matmul, sub, times, transpose
from ..compiler.ir.program import Array, Program
from ..compiler.ir.trace import Trace
from ..compiler.lower.build import tree_maker
from ..compiler.lower.closed_tree import ClosedTree
from ..compiler.lower.sweeps import Tree
from ..dynamics import closed, hybrid, inverse, kinematics, states
from ..errors import InputError, unknown_name
from ..model.mechanism import Mechanism
from ..model.parts import GROUND
from .drives import Drives, drives_of
from .near_redundancy import guarded
from .stabilization import Baumgarte, Loops, followed, locked_by

Scalars = Sequence[Any]


class Force(Protocol):
    """A force that acts on a moving mechanism."""

    def apply(self, now: Instant) -> None:
        """Add joint torques (`now.tau`) or wrenches (`now.push`) as traced scalars."""
        ...


class Controller(Protocol):
    """A controller: joint torques as a function of the state.

    If it requires further inputs of the compiled rates, it lists them as `inputs` and reads them from `now.given`.
    """

    def torque(self, now: Instant) -> Scalars:
        """Return the torques of all degrees of freedom as traced scalars."""
        ...


class Instant:
    """A mechanism at one instant on traced scalars: the argument of forces and controllers."""

    def __init__(
        self, mechanism: Mechanism, t: Any, q: Scalars, qd: Scalars, parameters: Scalars | None,
        given: Mapping[str, Scalars] | None = None, dtype: str = "float64",
    ) -> None:  # fmt: skip
        """Store the state and all inputs by name, without forces."""
        self._make = tree_maker(mechanism, dtype)
        self.mechanism, self.t, self.q, self.qd = mechanism, t, list(q), list(qd)
        self.tau: list[Any] = [0.0] * mechanism.nv
        self.control: list[Any] = [0.0] * mechanism.nv  # the share of control in tau
        self.given = {} if given is None else given
        self.offsets: dict[str, Any] = {}  # of driven couplings
        self._parameters = parameters
        self._wrenches: dict[str, Wrench] = {}

    @cached_property
    def tree(self) -> Tree:
        """The tree with the pose T and the twist t of the working frame of every body."""
        tree = ClosedTree(self.mechanism, self.inputs(q=self.q, qd=self.qd))
        kinematics.place(tree)
        kinematics.move(tree)
        return tree

    def parameter(self, name: str) -> Any:
        """Return the value of a parameter of the mechanism, a traced scalar if it is free."""
        values = self.mechanism.values(self._parameters)
        if name not in values:
            raise unknown_name("parameter", name, values)
        return values[name]

    def point(self, body: str, place) -> tuple[Any, Any]:
        """Return position [m] and velocity [m/s], in the axes of the ground, of a point in the frame of a body."""
        if body == GROUND:
            return tuple(place), (0.0, 0.0, 0.0)
        i = self._record(body)
        arm = i.to_work @ sub(tuple(place), i.frame.origin)
        velocity = times(i.T.R, add(i.t.v, cross(i.t.w, arm)))
        return i.T.place(arm), velocity

    def push(self, body: str, place, force, moment=(0.0, 0.0, 0.0)) -> None:
        """Add a force [N] and a moment [N m], in the axes of the ground, at a point in the frame of a body."""
        if body == GROUND:
            return
        i = self._record(body)
        to_body = transpose(matmul(i.T.R, i.to_work.matrix()))
        f, n = times(to_body, tuple(force)), times(to_body, tuple(moment))
        known = self._wrenches.get(body, Wrench())
        self._wrenches[body] = known + Wrench(add(n, cross(tuple(place), f)), f)

    def load(self, body: str, entries: Scalars) -> None:
        """Add a wrench [n; f] about the origin of a body, in its frame."""
        known = self._wrenches.get(body, Wrench())
        self._wrenches[body] = known + Wrench(tuple(entries[:3]), tuple(entries[3:]))

    def difference(self, q: Scalars) -> list[Any]:
        """Return the displacement from coordinates q to the present ones, in the tangent space."""
        return states.difference(Tree(self.mechanism, self.inputs(q=list(q), q2=self.q)))

    def inverse_dynamics(self, q: Scalars, qd: Scalars, qdd: Scalars) -> list[Any]:
        """Return the joint torques of any motion of the mechanism, without the forces that act."""
        return inverse.inverse_dynamics(self._tree(q=q, qd=qd, qdd=qdd))

    def gravity_torque(self, q: Scalars) -> list[Any]:
        """Return the joint torques that hold the mechanism at rest."""
        return inverse.inverse_dynamics(self._tree(q=q))

    def accelerations(self, rate: float = 0.0) -> list[Any]:
        """Return qdd under everything that acts; gaps of loops decay at a `rate` [1/s]."""
        more = {"wrenches": self.wrenches()} if self._wrenches else {}
        qdd = closed.forward_dynamics(self._tree(q=self.q, qd=self.qd, tau=self.tau, **more), rate)
        return guarded(self._tree(q=self.q), qdd) if self.mechanism.closures else qdd

    def driven_accelerations(self, drives: Drives) -> list[Any]:
        """Return qdd under everything that acts, with the driven degrees of freedom moved by their references."""
        qdd, _ = hybrid.accelerations(self._driven_tree(drives), drives.locked)
        return guarded(self._tree(q=self.q), qdd, drives.locked) if self.mechanism.closures else qdd

    def driven_torques(self, drives: Drives) -> tuple[list[Any], list[Any]]:
        """Return the torques of all joints and of their control, with those of the drives that their motion takes.

        What other forces contribute in a driven joint, its drive does not have to.
        """
        tree, given = self._driven_tree(drives), list(self.tau)
        qdd, loads = hybrid.accelerations(tree, drives.locked)
        names = [name for name, _ in drives.couplings]
        first = len(loads) - len(self.mechanism.couplings)
        moved = [first + k for k, c in enumerate(self.mechanism.couplings) if c.name in names]
        for k in moved:  # the drive of a coupling acts by torques in its joints
            row, multiplier = loads[k]
            for label, ratio in row.torques.items():
                given[label] = given[label] + ratio * multiplier
        others = [pair for k, pair in enumerate(loads) if k not in moved]
        tau = hybrid.torques(tree, drives.locked, given, qdd, others)
        return tau, [x - (y - c) for x, y, c in zip(tau, self.tau, self.control, strict=True)]

    def _driven_tree(self, drives: Drives) -> Tree:
        more = {"wrenches": self.wrenches()} if self._wrenches else {}
        qdd = drives.accelerations(self.t, self.mechanism.nv)
        return self._tree(q=self.q, qd=self.qd, qdd=qdd, tau=self.tau, **more)

    def wrenches(self) -> list[Any]:
        """Return the wrenches on all bodies, about their origins in their frames, six entries each."""
        return [x for b in self.mechanism.bodies for x in self._wrenches.get(b.name, Wrench()).entries()]

    def inputs(self, **given: Scalars) -> dict[str, Any]:
        """Return inputs of a tree, with the free parameters and the offsets of driven couplings, if there are any."""
        more: dict[str, Any] = {} if self._parameters is None else {"parameters": self._parameters}
        return given | more | ({"offsets": self.offsets} if self.offsets else {})

    def moving_tree(self) -> Tree:
        """Return a tree for joint torques and accelerations, with the state of the instant."""
        return self._tree(q=self.q, qd=self.qd)

    def _tree(self, **given: Scalars) -> Tree:
        """Return a tree for joint torques and accelerations."""
        return self._make(self.mechanism, self.inputs(**given))

    def _record(self, body: str) -> Any:
        names = [b.name for b in self.mechanism.bodies]
        if body not in names:
            self.mechanism.body(body)  # raises the error that lists the known names
        return self.tree.records[names.index(body)]


def rates(
    mechanism: Mechanism, forces: Sequence[Force] = (), control: Controller | None = None, *,
    loops: Loops | None = None, dtype: str = "float64",
) -> Program:  # fmt: skip
    """Return the Program (t, q, qd[, parameters]) -> (dq, dqd) of a mechanism under forces and control.

    `loops` is the way in which they stay closed; a projection is no part of the rates.
    """
    trace = Trace()
    inputs = rate_inputs(mechanism)
    now = acted_on(mechanism, trace, inputs, forces, control, loops, dtype, follow=True)
    qdd = _accelerations(now, control, loops)
    return _program("rates", mechanism, inputs, trace, states.coordinate_rate(now.tree), qdd)


def euler_step(
    mechanism: Mechanism, forces: Sequence[Force] = (), control: Controller | None = None, *,
    loops: Loops | None = None, dtype: str = "float64",
) -> Program:  # fmt: skip
    """Return the Program (t, q, qd[, parameters], h) -> (q, qd) of a semi-implicit Euler step.

    Velocities are advanced first, then the coordinates with the new velocities. Coordinates follow the motion of each
    joint, so that quaternions keep their unit length.
    """
    trace = Trace()
    inputs = [*rate_inputs(mechanism), Array("h", (1,))]
    now = acted_on(mechanism, trace, inputs, forces, control, loops, dtype, follow=True)
    (h,) = now.given["h"]
    qd = [v + h * a for v, a in zip(now.qd, _accelerations(now, control, loops), strict=True)]
    moved = states.integrate(Tree(mechanism, now.inputs(q=now.q, qd=[h * v for v in qd])))
    return _program("euler", mechanism, inputs, trace, moved, qd)


def loads(mechanism: Mechanism, forces: Sequence[Force] = (), control: Controller | None = None) -> Program:
    """Return the Program (t, q, qd[, parameters]) -> (tau, qdd, wrenches) of the loads on a mechanism.

    tau are the joint torques of control and forces together. The wrenches act on the bodies, [nb, 6] in their frames.
    """
    return loads_and_drives(mechanism, forces, control)[0]


def loads_and_drives(
    mechanism: Mechanism, forces: Sequence[Force] = (), control: Controller | None = None
) -> tuple[Program, Program | None]:
    """Return the Program of `loads` and that of the torques of control alone, which is None without control."""
    trace = Trace()
    inputs = rate_inputs(mechanism)
    now = acted_on(mechanism, trace, inputs, forces, control)
    nv, nb = mechanism.nv, len(mechanism.bodies)
    outputs = (Array("tau", (nv,)), Array("qdd", (nv,)), Array("wrenches", (nb, 6)))
    drives = drives_of(control)
    tau, part = (now.tau, now.control) if drives is None else now.driven_torques(drives)
    qdd = _accelerations(now, control)
    acting = Program.of_trace("loads", inputs, outputs, trace, [tau, qdd, now.wrenches()])
    if control is None:
        return acting, None
    return acting, Program.of_trace("drives", inputs, (Array("control", (nv,)),), trace, [part])


def measured(
    mechanism: Mechanism, forces: Sequence[Force], control: Controller | None, function: Callable[[Instant], Any], *,
    loops: Loops | None = None,
) -> Program:  # fmt: skip
    """Return the Program (t, q, qd[, parameters]) -> value of a function of `now`, under forces and control."""
    trace = Trace()
    inputs = rate_inputs(mechanism)
    now = acted_on(mechanism, trace, inputs, forces, control, loops, follow=True)
    return Program.of_trace("measured", inputs, (Array("value", (1,)),), trace, [[function(now)]])


def acting(mechanism: Mechanism, forces: Sequence[Force], control: Controller | None = None) -> Program:
    """Return the Program (t, q, qd[, parameters]) -> (tau, wrenches, control[, motion of drives]), without dynamics."""
    trace = Trace()
    inputs = rate_inputs(mechanism)
    now = acted_on(mechanism, trace, inputs, forces, control)
    nv, nb = mechanism.nv, len(mechanism.bodies)
    outputs = [Array("tau", (nv,)), Array("wrenches", (nb, 6)), Array("control", (nv,))]
    results = [now.tau, now.wrenches(), now.control]
    if (drives := drives_of(control)) is not None:
        moved = [x for entries in drives.offsets(now.t).values() for x in entries]
        results.append([x for entries in drives.at(now.t) for x in entries] + moved)
        outputs.append(Array("motion", (len(results[-1]),)))
    return Program.of_trace("acting", inputs, outputs, trace, results)


def rate_inputs(mechanism: Mechanism) -> list[Array]:
    """Return the inputs of rates: the time, a state and, if there are any, the free parameters."""
    inputs = [Array("t", (1,)), Array("q", (mechanism.nq,)), Array("qd", (mechanism.nv,))]
    if mechanism.free_parameters:
        inputs.append(Array("parameters", (len(mechanism.free_parameters),)))
    return inputs


def acted_on(
    mechanism, trace: Trace, inputs: list[Array], forces, control, loops: Loops | None = None, dtype: str = "float64",
    *, follow: bool = False, state: tuple[list[Any], list[Any]] | None = None,
) -> Instant:  # fmt: skip
    """Return the mechanism with all forces and control applied; inputs of the control are appended to the others.

    With `follow`, driven coordinates are those of the time, and loops determine the coordinates that depend on them. A
    `state` (q, qd) is that of the mechanism instead of the inputs.
    """
    inputs.extend(getattr(control, "inputs", ()))
    given: dict[str, Any] = {a.name: [trace.input(g, k) for k in range(a.size)] for g, a in enumerate(inputs)}
    if state is not None:
        given["q"], given["qd"] = state
    drives, locked = drives_of(control) if follow else None, locked_by(loops)
    if drives is not None:
        given["q"], given["qd"] = drives.placed(given["t"][0], given["q"], given["qd"])
        given["offsets"] = drives.offsets(given["t"][0])
        locked = drives.locked
    if mechanism.closures and (locked or drives is not None):
        known = {name: x for name, x in given.items() if name in ("q", "qd", "parameters", "offsets")}
        given["q"], given["qd"] = followed(mechanism, known, locked, dtype)
    now = Instant(mechanism, given["t"][0], given["q"], given["qd"], given.get("parameters"), given, dtype)
    if (driven := drives_of(control)) is not None:
        now.offsets = driven.offsets(now.t)
    if control is not None:
        torque = list(control.torque(now))
        if len(torque) != mechanism.nv:
            raise InputError(f"the controller returned {len(torque)} torques; expected {mechanism.nv}")
        now.control = torque
        now.tau = [a + b for a, b in zip(now.tau, torque, strict=True)]
    for force in forces:
        force.apply(now)
    return now


def _accelerations(now: Instant, control: Any, loops: Loops | None = None) -> list[Any]:
    """Return qdd; gaps of loops decay if they are kept closed so, unless joints are driven."""
    if (drives := drives_of(control)) is not None:
        return now.driven_accelerations(drives)
    return now.accelerations(loops.rate if isinstance(loops, Baumgarte) else 0.0)


def _program(name: str, mechanism: Mechanism, inputs, trace: Trace, dq, dqd) -> Program:
    outputs = (Array("dq", (mechanism.nq,)), Array("dqd", (mechanism.nv,)))
    return Program.of_trace(name, inputs, outputs, trace, [dq, dqd])
