"""A mechanism at one instant, on traced scalars: the argument of forces, controllers and functions of `now`."""

from __future__ import annotations

import math
from collections.abc import Callable, Mapping, Sequence
from functools import cached_property
from inspect import signature
from typing import TYPE_CHECKING, Any, Protocol

from ...algebra.scalars import Scalar, where
from ...algebra.spatial import Wrench
from ...algebra.vectors import IDENTITY, ZERO, Matrix, Vector, add, cross, matmul, sub, times, transpose
from ...compiler.ir.program import Array, Program
from ...compiler.ir.trace import Trace
from ...compiler.lower.build import ClosedTree, tree_maker, with_forces
from ...compiler.lower.closing_steps import gap_in_parts
from ...compiler.lower.sweeps import Tree
from ...dynamics import centered, closed, closure, hybrid, inverse, kinematics
from ...dynamics.actuated import computed_torques
from ...errors import InputError, unknown_name
from ...model.flexible import with_modal_forces
from ...model.mechanism import Mechanism
from ...model.parts import GROUND
from ..closing import close_from_locked, guard_accelerations
from .drives import Drives, driven_of, replace_entries

if TYPE_CHECKING:
    pass

Scalars = Sequence[Scalar]

ROUNDS = 5
"""The rounds of Newton's method from the present position to a reference: enough from some tenths of a
radian."""
OPEN = 1e4
"""The gap, relative to rounding, beyond which they did not close the loops."""


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
        self,
        mechanism: Mechanism,
        t: Scalar,
        q: Scalars,
        qd: Scalars,
        parameters: Scalars | None,
        given: Mapping[str, Scalars] | None = None,
        dtype: str = "float64",
    ) -> None:
        """Store the state and all inputs by name, without forces."""
        self._make = tree_maker(mechanism, dtype)
        self.mechanism, self.t, self.q, self.qd, self.dtype = mechanism, t, list(q), list(qd), dtype
        self.tau: list[Scalar] = [0.0] * mechanism.nv
        self.control: list[Scalar] = [0.0] * mechanism.nv  # the share of control in tau
        self.given = {} if given is None else given
        self.offsets: dict[str, Scalar] = {}  # of driven couplings
        self._parameters = parameters
        self._wrenches: dict[str, Wrench] = {}

    @cached_property
    def tree(self) -> Tree:
        """The tree with the pose T and the twist t of the working frame of every body."""
        tree = ClosedTree(self.mechanism, self.inputs(q=self.q, qd=self.qd))
        kinematics.place(tree)
        kinematics.move(tree)
        return tree

    def parameter(self, name: str) -> Scalar:
        """Return the value of a parameter of the mechanism, a traced scalar if it is free."""
        values = self.mechanism.values(self._parameters)
        if name not in values:
            raise unknown_name("parameter", name, values)
        return values[name]

    def point(self, body: str, place) -> tuple[Scalar, Scalar]:
        """Return position [m] and velocity [m/s], in the axes of the ground, of a point in the frame of a body."""
        if body == GROUND:
            return tuple(place), (0.0, 0.0, 0.0)
        i = self._record(body)
        arm = i.to_work @ sub(tuple(place), i.frame.origin)
        velocity = times(i.T.R, add(i.t.v, cross(i.t.w, arm)))
        return i.T.place(arm), velocity

    def orientation(self, body: str) -> Matrix:
        """Return the rotation from the frame of a body to the axes of the ground."""
        if body == GROUND:
            return IDENTITY
        i = self._record(body)
        return matmul(i.T.R, i.to_work.matrix())

    def angular_velocity(self, body: str) -> Vector:
        """Return the angular velocity of a body [rad/s], in the axes of the ground."""
        if body == GROUND:
            return ZERO
        i = self._record(body)
        return times(i.T.R, i.t.w)

    def push(self, body: str, place, force, moment=(0.0, 0.0, 0.0)) -> None:
        """Add a force [N] and a moment [N m], in the axes of the ground, at a point in the frame of a body."""
        if body == GROUND:
            return
        to_body = transpose(self.orientation(body))
        f, n = times(to_body, tuple(force)), times(to_body, tuple(moment))
        known = self._wrenches.get(body, Wrench())
        self._wrenches[body] = known + Wrench(add(n, cross(tuple(place), f)), f)

    def load(self, body: str, entries: Scalars) -> None:
        """Add a wrench [n; f] about the origin of a body, in its frame."""
        known = self._wrenches.get(body, Wrench())
        self._wrenches[body] = known + Wrench(tuple(entries[:3]), tuple(entries[3:]))

    def difference(self, q: Scalars) -> list[Scalar]:
        """Return the displacement from coordinates q to the present ones, in the tangent space."""
        return kinematics.difference(Tree(self.mechanism, self.inputs(q=list(q), q2=self.q)))

    def inverse_dynamics(self, q: Scalars, qd: Scalars, qdd: Scalars, *, forces: bool = False) -> list[Scalar]:
        """Return the joint torques of any motion of the open tree, without the forces that act.

        With `forces`, the mechanism's own springs, dampers and friction help to make the motion.
        """
        state, tau = self._loaded({"q": q, "qd": qd, "qdd": qdd}, forces)
        needed = inverse.inverse_dynamics(self._make(self.mechanism, state))
        return [x - y for x, y in zip(needed, tau, strict=True)] if forces else needed

    def gravity_torque(self, q: Scalars) -> list[Scalar]:
        """Return the joint torques that hold the open tree at rest."""
        return inverse.inverse_dynamics(self._tree(q=q))

    def actuated_torques(
        self,
        q: Scalars,
        qd: Scalars,
        wanted: Mapping[int, Scalar],
        leaders: frozenset[int],
        weights: Mapping[int, float],
        *,
        forces: bool = False,
    ) -> list[Scalar]:
        """Return the torques of actuated joints, of least effort, that give them accelerations; the loops move others.

        Accelerations and weights are by degree of freedom. NaN where the actuated joints do not determine the motion.
        Modes of flexible bodies move freely under their springs and damping, which act without `forces` too.
        """
        state, tau = self._loaded({"q": q, "qd": qd}, forces)
        if not forces and self.mechanism.has_flexible:
            state, tau = with_forces(with_modal_forces(self.mechanism), state)
        return computed_torques(self._make(self.mechanism, state | {"tau": tau}), leaders, wanted, weights)

    def closed_state(
        self, leaders: frozenset[int], q: Mapping[int, Scalar], qd: Mapping[int, Scalar]
    ) -> tuple[list[Scalar], list[Scalar]]:
        """Return the state in which actuated joints have given entries of q and qd; the loops determine the others.

        The position is on the assembly branch of the present one, and NaN where Newton's method does not close the
        loops from there.
        """
        state = self.inputs(
            q=replace_entries(self.q, [*q], [*q.values()]), qd=replace_entries(self.qd, [*qd], [*qd.values()])
        )
        if not self.mechanism.closures:
            return list(state["q"]), list(state["qd"])
        place, speed = close_from_locked(self.mechanism, state, leaders, self.dtype, rounds=ROUNDS)
        gap = gap_in_parts(
            self.mechanism, closure.closure_residual(Tree(self.mechanism, state | {"q": place})), self.dtype
        )
        one = where(gap < OPEN, 1.0, math.nan)
        return [x * one for x in place], speed

    def _loaded(self, given: dict[str, Scalars], forces: bool) -> tuple[dict[str, Any], list[Scalar]]:
        """Return the inputs of a tree, with the forces of the mechanism if they act, and their joint torques."""
        state = self.inputs(**given)
        return with_forces(self.mechanism, state) if forces else (state, [0.0] * self.mechanism.nv)

    def accelerations(self, rate: float = 0.0) -> list[Scalar]:
        """Return qdd under everything that acts; gaps of loops decay at a `rate` [1/s]."""
        return self._motion(rate, None)[1]

    def driven_accelerations(self, drives: Drives) -> list[Scalar]:
        """Return qdd under everything that acts, with the driven degrees of freedom moved by their references."""
        return self._motion(0.0, drives)[1]

    def centered_accelerations(
        self, rate: float = 0.0, drives: Drives | None = None, own: frozenset[int] = frozenset()
    ) -> list[Scalar]:
        """Return the same with accelerations of centers of mass for floating roots, except for `own` coordinates.

        Without loops, the others do not depend on the velocities of the roots' translations, which are left out.
        """
        still: frozenset[int] = frozenset()
        if not self.mechanism.closures:
            still = centered.translations(Tree(self.mechanism, self.inputs(q=self.q, qd=self.qd)), own)
        tree, qdd, loads = self._motion(rate, drives, still)
        return centered.center_accelerations(tree, qdd, loads, own)

    def _motion(
        self, rate: float, drives: Drives | None, still: frozenset[int] = frozenset()
    ) -> tuple[Tree, list[Scalar], list]:
        """Return the tree under everything that acts, its qdd, and the equations of loops with their multipliers.

        Velocities that are `still` are taken as zero.
        """
        if drives is None:
            more = {"wrenches": self.wrenches()} if self._wrenches else {}
            qd = [0.0 if k in still else v for k, v in enumerate(self.qd)]
            tree = self._tree(q=self.q, qd=qd, tau=self.tau, **more)
            qdd, loads = closed.loaded_motion(tree, rate)
        else:
            tree = self._driven_tree(drives)
            qdd, loads = hybrid.accelerations(tree, drives.locked)
        if self.mechanism.closures:
            qdd = guard_accelerations(self._tree(q=self.q), qdd, driven_of(drives))
        return tree, qdd, loads

    def driven_torques(self, drives: Drives) -> tuple[list[Scalar], list[Scalar]]:
        """Return the torques of all joints and of their control, including what the motion takes from the drives.

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

    def wrenches(self) -> list[Scalar]:
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


# --- Functions of the present state, compiled: those of events and of sampled control ---

HINT = (
    "write it with the functions of kt.smooth (sin, cos, sqrt, where, clip, ...) "
    "in the place of if, abs, min, max and those of math"
)
"""The remedy for a function that cannot be compiled."""


def require_arguments(function: Callable[..., object], arguments: str, what: str) -> None:
    """Raise InputError unless a function takes these arguments, such as "t, q, qd"."""
    try:
        signature(function).bind(*arguments.split(", "))
    except TypeError as error:
        raise InputError(f"{what} is no function of ({arguments}): {error}") from None
    except ValueError:  # functions of C may have no signature
        return


def trace_function(
    name: str, mechanism: Mechanism, function: Callable[[Instant], Sequence[Scalar]], size: int
) -> Program:
    """Return the Program (t, q, qd[, parameters]) -> values [size] of a function of `now`."""
    trace = Trace()
    inputs = [Array("t", (1,)), Array("q", (mechanism.nq,)), Array("qd", (mechanism.nv,))]
    if free := len(mechanism.free_parameters):
        inputs.append(Array("parameters", (free,)))
    t, q, qd, *more = ([trace.input(g, k) for k in range(a.size)] for g, a in enumerate(inputs))
    values = function(Instant(mechanism, t[0], q, qd, more[0] if more else None))
    return Program.of_trace(name, inputs, [Array("values", (size,))], trace, [values])
