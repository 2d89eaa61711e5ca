"""A mechanism at one instant, on traced scalars: the argument of forces, controllers and functions of `now`."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from functools import cached_property
from typing import Any, Protocol

from ..algebra.spatial import Wrench
from ..algebra.vectors import add, cross, matmul, sub, times, transpose
from ..compiler.lower.build import tree_maker
from ..compiler.lower.closed_tree import ClosedTree
from ..compiler.lower.sweeps import Tree
from ..dynamics import closed, hybrid, inverse, kinematics, states
from ..errors import unknown_name
from ..model.mechanism import Mechanism
from ..model.parts import GROUND
from .drives import Drives
from .near_redundancy import guarded

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
