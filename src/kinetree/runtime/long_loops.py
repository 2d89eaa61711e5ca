"""Functions of long closed mechanisms: rolled sweeps, and the equations of a few loops solved densely in NumPy.

The equations stand in dynamics/closure.py and dynamics/closed.py; here they run on the numbers of one state. Rolled
sweeps compute the motion of the bodies at the ends of loops. A row of J consists of the joint torques of the wrenches
of a unit multiplier: inverse dynamics at rest without gravity. I^-1 J^T is forward dynamics under these rows. All rows
are one batch, which takes O(n) per equation with code that does not grow with n.
"""

from __future__ import annotations

import ctypes
import math
from collections.abc import Callable, Sequence
from dataclasses import dataclass, replace
from typing import Any, NoReturn

import numpy as np

from ..algebra.propagation import Pose
from ..algebra.rotations import ONE, Rotation
from ..algebra.scalars import Numbers
from ..algebra.spatial import Twist, TwistRate
from ..algebra.vectors import to_matrix, to_vector
from ..compiler.ir.program import Array
from ..compiler.lower.loop_pattern import DEPENDENT
from ..compiler.lower.tree_records import CouplingRecord, FrameRecord, LoopRecord, loop_frames
from ..compiler.lower.working_frames import WorkingFrame
from ..dynamics import closed
from ..dynamics.closure import End, Row, fixed_to, of_coupling, of_loop
from ..errors import InputError
from ..model.mechanism import Mechanism, resolve_parts
from ..model.parts import GROUND
from .rolled import spread


@dataclass(frozen=True)
class BodyEnd:
    """The body at an end of a loop, by its index (-1: the ground), in its own frame."""

    body: int
    frame: WorkingFrame = WorkingFrame()  # noqa: RUF009 (frozen)
    to_work: Rotation = ONE


@dataclass(frozen=True)
class JointEnd:
    """The coordinate and velocity of a coupled joint, and the index of its degree of freedom."""

    q: tuple[float]
    qd: tuple[float]
    labels: tuple[int]


class DensePulls:
    """The multipliers of one state; X has one row per equation, the accelerations I^-1 J^T of a unit multiplier."""

    def __init__(self, rows: list[Row], J: Numbers, X: Numbers, free: Numbers) -> None:
        """Start with the accelerations `free` of the tree without multipliers."""
        self.rows, self.J, self.X, self.qdd = rows, J, X, free

    def balance(self, rates: Sequence[float]) -> Numbers:
        """Return the multipliers with J qdd = -rates, the smallest where equations depend on each other."""
        found = -_solve(self.J @ self.X.T, self.J @ self.qdd + np.array(rates, dtype=float))
        self.qdd = self.qdd + found @ self.X
        return found

    def accelerate(self) -> Numbers:
        """Return the accelerations."""
        return self.qdd


class LongLoops:
    """The functions of a long closed mechanism, each for one state.

    `make(mechanism, name, wrenches)` returns a compiled function of a tree.
    """

    def __init__(self, mechanism: Mechanism, make: Callable[[Mechanism, str, bool], Callable]) -> None:
        """Compile the sweeps on which the equations depend."""
        self.mechanism = mechanism
        loops = resolve_parts(mechanism.loops, mechanism.values())
        self._couplings = resolve_parts(mechanism.couplings, mechanism.values())
        unknown = mechanism.values([math.nan] * len(mechanism.free_parameters))
        if resolve_parts((mechanism.loops, mechanism.couplings), unknown) != (loops, self._couplings):
            raise InputError(
                f"the loops of {mechanism.name!r} have free parameters, which must be constants for rolled code; "
                "fix them with system.fixed(parameters), or use lowering='unrolled'"
            )
        index = {GROUND: -1} | {b.name: k for k, b in enumerate(mechanism.bodies)}
        self._loops = [
            LoopRecord(x, *loop_frames(x, BodyEnd(index[x.body_a]), BodyEnd(index[x.body_b])), [], []) for x in loops
        ]
        tree = replace(mechanism, loops=(), couplings=())
        floating = replace(tree, gravity=(0.0, 0.0, 0.0))
        self._dynamics, self._response = (make(m, "implicit_dynamics", False) for m in (tree, floating))
        self._moments = make(floating, "gravity_torque", True)
        self._kinematics = tuple(make(tree, name, False) for name in ("poses", "twists", "twist_rates"))
        whole = zip(mechanism.joints, mechanism.q_slices, mechanism.v_slices, strict=True)
        self._at = {joint.name: (q.start, v.start) for joint, q, v in whole}

    def closure_residual(self, q: Numbers, *more: Numbers) -> list[float]:
        """Return the residual of each equation."""
        return [row.residual for row in self.rows(q, np.zeros(self.mechanism.nv), more)]

    def closure_jacobian(self, q: Numbers, *more: Numbers) -> Numbers:
        """Return J."""
        return self.jacobian(self.rows(q, np.zeros(self.mechanism.nv), more), q, more)

    def closure_bias(self, q: Numbers, qd: Numbers, *more: Numbers) -> list[float]:
        """Return dJ/dt qd."""
        return [row.bias for row in self.rows(q, qd, more)]

    def forward_dynamics(self, q: Numbers, qd: Numbers, tau: Numbers, *more: Numbers) -> Numbers:
        """Return the accelerations."""
        return self.implicit_dynamics(q, qd, tau, np.zeros_like(tau), *more)

    def implicit_dynamics(self, q: Numbers, qd: Numbers, tau: Numbers, added: Numbers, *more: Numbers) -> Numbers:
        """Return the accelerations with `added` inertias of the drives."""
        return closed.accelerations(self._driven(q, qd, tau, added, more))

    def multipliers(self, q: Numbers, qd: Numbers, tau: Numbers, *more: Numbers) -> Numbers:
        """Return the multipliers, the smallest where equations depend on each other."""
        return closed.forces(self._driven(q, qd, tau, np.zeros_like(tau), more))

    def closing_step(self, q: Numbers, *more: Numbers) -> Numbers:
        """Return the step dq that closes the loops to first order."""
        return closed.step(self._at_rest(q, np.zeros(self.mechanism.nv), more, positions=True))

    def closing_speed(self, q: Numbers, qd: Numbers, *more: Numbers) -> Numbers:
        """Return the nearest velocities that keep the loops closed."""
        return np.array(closed.velocities(self._at_rest(q, qd, more), qd))

    def rows(self, q: Numbers, qd: Numbers, more: tuple) -> list[Row]:
        """Return the equations of all loops, then of the couplings."""
        states = ((q,), (q, qd), (q, qd, np.zeros_like(qd)))
        moves = [f(*state, *more) for f, state in zip(self._kinematics, states, strict=True)]
        rows = [row for x in self._loops for row in of_loop(x, _motion(x.a, moves), _motion(x.b, moves))]
        joints = {name: JointEnd((float(q[a]),), (float(qd[b]),), (b,)) for name, (a, b) in self._coupled().items()}
        return rows + [of_coupling(CouplingRecord(x, joints)) for x in self._couplings]

    def _coupled(self) -> dict[str, tuple[int, int]]:
        """Return the first coordinate and degree of freedom of each joint that is coupled."""
        names = {name for x in self._couplings for name in (x.joint, *(n for n, _ in x.terms))}
        return {name: self._at[name] for name in names}

    def jacobian(self, rows: Sequence[Row], q: Numbers, more: tuple) -> Numbers:
        """Return J: the joint torques of a unit multiplier of each equation."""
        J = np.zeros((len(rows), self.mechanism.nv))
        pulled = [k for k, row in enumerate(rows) if row.wrenches]
        wrenches = np.zeros((len(pulled), len(self.mechanism.bodies), 6))
        for place, k in zip(wrenches, pulled, strict=True):
            for _, end, w in rows[k].wrenches:
                if end.body >= 0:
                    place[end.body] += (*w.n, *w.f)
        if pulled:
            J[pulled] = -self._moments(q, wrenches, *more)
        for k, row in enumerate(rows):
            for label, torque in row.torques.items():
                J[k, label] += torque
        return J

    def _driven(self, q: Numbers, qd: Numbers, tau: Numbers, added: Numbers, more: tuple) -> DensePulls:
        rows = self.rows(q, qd, more)
        J = self.jacobian(rows, q, more)
        free = self._dynamics(q, qd, tau, added, *more)
        return DensePulls(rows, J, self._responses(q, J, added, more), free)

    def _at_rest(self, q: Numbers, qd: Numbers, more: tuple, *, positions: bool = False) -> DensePulls:
        rows, rest = self.rows(q, qd, more), np.zeros(self.mechanism.nv)
        rows = [row for row in rows if row.holonomic or not positions]
        J = self.jacobian(rows, q, more)
        return DensePulls(rows, J, self._responses(q, J, rest, more), rest)

    def _responses(self, q: Numbers, J: Numbers, added: Numbers, more: tuple) -> Numbers:
        """Return the accelerations at rest under each row of J as joint torques, one row per equation."""
        return self._response(q, np.zeros(self.mechanism.nv), J, added, *more)


def _motion(frame: FrameRecord, moves: Sequence[Numbers]) -> End:
    """Return the motion of a loop's frame relative to the ground, from poses, twists and twist rates of all bodies."""
    end: Any = frame.record
    if end.body < 0:
        return fixed_to(frame, Pose(), Twist(), TwistRate())
    T, t, dt = (tuple(x[end.body].tolist()) for x in moves)
    w, v = t[:3], t[3:]
    pose = Pose(to_matrix(row[:3] for row in T[:3]), to_vector(row[3] for row in T[:3]))
    return fixed_to(frame, pose, Twist(w, v), TwistRate(w, dt[:3], dt[3:]))


def _solve(S: Numbers, b: Numbers) -> Numbers:
    """Return the x of least norm with S x = b, by scaled rows, without singular directions; NaN for NaN."""
    if not (np.isfinite(S).all() and np.isfinite(b).all()):  # LAPACK would raise an error
        return np.full_like(b, np.nan)
    scale = 1.0 / np.sqrt(np.maximum(np.diag(S), DEPENDENT * np.diag(S).max(initial=1e-300)))
    return scale * np.linalg.lstsq(scale[:, None] * S * scale, scale * b, rcond=DEPENDENT)[0]


class LongFunction:
    """A function of a long closed mechanism that replaces a gufunc: it broadcasts, and runs one state after the other.

    The second count counts the calls with results that are not finite.
    """

    kernel, workspace = None, 0

    def __init__(self, loops: LongLoops, name: str, inputs: Sequence[Array], output: Array, dtype: str) -> None:
        """Store one of the functions, with the shapes of its arrays."""
        self._one, self._name, self._of = getattr(loops, name), name, loops.mechanism.name
        self._inputs, self._output, self._dtype = inputs, output, dtype
        self.counts = (ctypes.c_int64 * 2)()

    @property
    def program(self) -> NoReturn:
        """Raise InputError: there is no program."""
        raise InputError(
            f"{self._name} of {self._of!r} is solved in NumPy around compiled sweeps and has no program "
            "of its own; make the function with lowering='unrolled'"
        )

    def failures(self) -> int:
        """Return 0."""
        return 0

    def gufunc(self, *arguments: object, out: object = None) -> Numbers:
        """Return the results of a batch."""
        wide, result = spread(self._inputs, self._output, self._dtype, arguments, out)
        for index in np.ndindex(*result.shape[: result.ndim - len(self._output.shape)]):
            state = [np.asarray(x[index], dtype=float) for x in wide]
            fine = all(np.isfinite(x).all() for x in state)
            result[index] = self._one(*state) if fine else np.nan
        self.counts[1] += not np.isfinite(result).all()
        return result
