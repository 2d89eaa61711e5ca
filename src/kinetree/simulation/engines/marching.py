"""Steps in Python around compiled functions: long mechanisms, and steps implicit in the springs of joints.

For a long mechanism the Python code takes little time beside the compiled functions. Implicit steps are solved in O(n):
springs k and dampers c of the joints at the end of a step h add h^2 k + h c to the joint inertias in forward dynamics.
At the middle of a step they add h^2 k / 4 + h c / 2.

Floating trees take steps in centered states (z, u), as in native code: see docs/theory/center-of-mass.md.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass, replace
from typing import TYPE_CHECKING, Any

import numpy as np

from ... import joints as joint_kinds
from ...algebra.scalars import Numbers
from ...compiler.lower.build import Request, is_long
from ...errors import InputError
from ...model.axes import quaternion_places
from ...model.mechanism import Mechanism, parameter_arguments, resolve_parts
from ...runtime.function import Function
from ...runtime.native import native
from ..acting.drives import drives_of
from ..acting.instants import Controller, Force
from ..acting.joint_forces import JointDamper, JointFriction, JointSpring, require_flat
from ..acting.rates import ForcedMechanism, kept_by_closing, loads_and_drives
from ..acting.sampled import Law
from ..arguments import spread
from ..closing import LongCloser, Loops
from ..events import Watch
from ..methods.fixed_steps import RK4
from ..outcomes import CLOSING_LOST, Ending, Outcome, ending_of
from ..problem import Problem
from ..run_states import Run, Settings, Stop, blank_run, zeros
from .engine import Fields, Motion, Progress, no_checkpoint, onward_by

if TYPE_CHECKING:
    from ...algebra.scalars import Scalar

# --- Springs, dampers and friction of all joints as arrays, for long mechanisms and implicit steps ---


@dataclass(frozen=True, eq=False)
class JointLaw:
    """tau = k (rest - q) - (c + f / sqrt(qd^2 + slip^2)) qd of every degree of freedom, arrays [..., nv].

    `at` [nv] is the index in q of the coordinate of each degree of freedom.
    """

    stiffness: Numbers
    rest: Numbers
    damping: Numbers
    friction: Numbers
    slip: Numbers
    at: np.ndarray

    def torque(self, q: Numbers, qd: Numbers) -> Numbers:
        """Return the torques [..., nv]."""
        return self.stiffness * (self.rest - q[..., self.at]) - self.resistance(qd) * qd

    def resistance(self, qd: Numbers) -> Numbers:
        """Return the factor of the velocities: the damping plus the share of friction [N m s/rad, N s/m]."""
        return self.damping + self.friction / np.sqrt(qd * qd + self.slip**2) if self.friction.any() else self.damping

    def energy(self, q: Numbers) -> Numbers:
        """Return the energy of the springs [J], shape [...]."""
        return 0.5 * (self.stiffness * (q[..., self.at] - self.rest) ** 2).sum(axis=-1)


def joint_law(
    mechanism: Mechanism, forces: Sequence[Force], parameters: Numbers | None = None
) -> tuple[JointLaw, list[Force]]:
    """Return the law of all springs, dampers and frictions in joints among the forces, and the list of other forces.

    The free parameters are [np], or [..., np] for the laws of many runs; by default those of the mechanism.
    """
    if parameters is not None and parameters.ndim > 1:
        return _stacked(mechanism, forces, parameters)
    values, nv = mechanism.values(parameters), mechanism.nv
    whole = zip(mechanism.joints, mechanism.q_slices, mechanism.v_slices, strict=True)
    places = {joint.name: (joint, q.start, v) for joint, q, v in whole}
    k, rest, damping, friction = np.zeros((4, nv))
    slip, at, others = np.ones(nv), np.zeros(nv, dtype=int), []

    def numbers(given: Sequence[Scalar], count: int, what: str, joint: str) -> Numbers:
        return np.array(resolve_parts(spread(given, count, f"the {what} of {joint!r}"), values), dtype=float)

    for force in forces:
        if not isinstance(force, JointSpring | JointDamper | JointFriction):
            others.append(force)
            continue
        if force.joint not in places:
            mechanism.joint(force.joint)  # raises the error that lists the known names
        joint, first, mine = places[force.joint]
        count = mine.stop - mine.start
        if isinstance(force, JointSpring):
            require_flat(joint, "JointSpring")
            more = numbers(force.stiffness, count, "stiffness", joint.name)
            both = k[mine] + more  # parallel springs: stiffnesses add, and the rest is the weighted mean
            pull = k[mine] * rest[mine] + more * numbers(force.rest, count, "rest", joint.name)
            rest[mine] = np.divide(pull, both, out=np.zeros(count), where=both != 0)
            k[mine] = both
            at[mine] = np.arange(first, first + count)
        elif isinstance(force, JointDamper):
            damping[mine] += numbers(force.damping, count, "damping", joint.name)
        elif friction[mine].any() and (slip[mine] != force.slip_speed).any():
            others.append(force)  # two slip speeds in a joint cannot be replaced by one
        else:
            friction[mine] += numbers(force.force, count, "force", joint.name)
            slip[mine] = force.slip_speed
    return JointLaw(k, rest, damping, friction, slip, at), others


def _stacked(mechanism: Mechanism, forces: Sequence[Force], parameters: Numbers) -> tuple[JointLaw, list[Force]]:
    """Return a law with the leading shape of the parameters."""
    found = [joint_law(mechanism, forces, row) for row in parameters.reshape(-1, parameters.shape[-1])]
    laws, lead = [law for law, _ in found], parameters.shape[:-1]
    names = ("stiffness", "rest", "damping", "friction", "slip")
    stacked = {x: np.stack([getattr(law, x) for law in laws]).reshape(*lead, -1) for x in names}
    return JointLaw(**stacked, at=laws[0].at), found[0][1]


State = tuple[Numbers, Numbers]
STEPS = ("rk4", "euler", "implicit_euler", "implicit_midpoint")
"""The methods with steps in Python."""


class March:
    """The steps of one method on one mechanism under forces and control."""

    def __init__(
        self,
        mechanism: Mechanism,
        method: str,
        forces: Sequence[Force],
        control: Controller | Law | None = None,
        loops: Loops | None = None,
        *,
        function: Callable[..., Function] | None = None,
    ) -> None:
        """Compile the functions for the steps; a `Law` is control by Python, `function` is the one of a System."""
        if loops is not None and not loops.projects:
            raise InputError(
                f"{method} of {mechanism.name!r} closes loops by Projection, not {type(loops).__name__}; "
                "leave loops out"
            )
        self.mechanism, self._forces = mechanism, forces
        self._step = getattr(self, f"_{method}")
        self._law, others = joint_law(mechanism, forces)
        self._outside = control if isinstance(control, Law) else None
        traced = None if isinstance(control, Law) else control
        if (others or traced is not None) and is_long(mechanism):
            who = type(others[0] if others else traced).__name__
            raise InputError(
                f"{who} cannot act on {mechanism.name!r}, which has {len(mechanism.bodies)} bodies: only "
                "springs, dampers and friction of joints act, and control by a PythonControl without a rate"
            )
        self._others = self._drives = None
        if others or traced is not None:
            program, self._drives = loads_and_drives(ForcedMechanism(mechanism, others, traced))
            self._others = native(program)
        self._flat = mechanism.nq == mechanism.nv
        self._quaternions = np.array(quaternion_places(mechanism), dtype=int)[:, None] + np.arange(4)
        self._make = function or (lambda name, **options: Function(mechanism, Request(name, **options)))
        self._closer = LongCloser(mechanism, self._make) if mechanism.closures else None
        self._functions: dict[tuple[str, bool], Any] = {}
        self._before: State | None = None
        self._evaluations = 0
        self._roots = floating_roots(mechanism)
        self._keeps = bool(self._roots) and kept_by_closing(ForcedMechanism(mechanism)) is not None

    def run(
        self,
        q0: Numbers,
        qd0: Numbers,
        times: Numbers,
        settings: Settings,
        parameters: Numbers | None = None,
        *,
        progress: Callable[[float], None] | None = None,
    ) -> Run:
        """Integrate from states [..., nq], [..., nv] over the times."""
        more = parameter_arguments(parameters)
        if parameters is not None:
            self._law = joint_law(self.mechanism, self._forces, parameters)[0]
        result = blank_run((q0, qd0), times)
        self._before, self._evaluations = None, 0
        try:
            with np.errstate(all="ignore"):  # a state that is not finite is reported in the status
                for root in self._roots:
                    root.begin(self._call, q0, more)
                self._march(result, settings.dt, more, progress or (lambda part: None))
        except KeyboardInterrupt:
            result.interrupted = True
        except InputError as error:  # of a controller; the states computed so far are kept
            if result.reached == 1:
                raise
            for k in range(result.steps.size):
                result.failures.setdefault(k, ending_of(error))
        result.evaluations += self._evaluations
        return result

    def _march(self, result: Run, dt: float, more: tuple, progress: Callable[[float], None]) -> None:
        """Advance from one output time to the next by equal steps, none longer than dt."""
        times, q, qd = result.t, result.q[..., 0, :], result.qd[..., 0, :]
        for j in range(len(times) - 1):
            span = times[j + 1] - times[j]
            count = max(int(np.floor(span / dt - 1e-9)) + 1, 1)
            for m in range(count):
                q, qd = self._step(times[j] + m * span / count, span / count, q, qd, more)
                if self._closer is not None:
                    q, qd = self._closed(q, qd, more)
                result.stop = Stop(float(times[j] + (m + 1) * span / count), q, qd)
            result.stop = None
            result.q[..., j + 1, :], result.qd[..., j + 1, :] = q, qd
            result.steps += count
            result.reached = j + 2
            good = np.isfinite(q).all(axis=-1) & np.isfinite(qd).all(axis=-1)
            why = replace(CLOSING_LOST if self._closer else Ending(Outcome.LOST), last=float(times[j]))
            for k in np.flatnonzero(~np.ravel(good)):
                result.failures.setdefault(int(k), why)
            progress((times[j + 1] - times[0]) / (times[-1] - times[0]))
            if not np.any(good):
                break

    def _closed(self, q, qd, more: tuple) -> State:
        """Return a state with its loops closed; those within floating trees leave centers of mass alone."""
        assert self._closer is not None
        if not self._keeps:
            return self._closer.close(q, qd, *more)
        before = self._centered(q, qd, more)
        after = self._centered(*self._closer.close(q, qd, *more), more)
        z = _replaced(after[0], [(r.places, before[0][..., r.places]) for r in self._roots])
        u = _replaced(after[1], [(r.labels, before[1][..., r.labels]) for r in self._roots])
        return self._uncentered(z, u, more)

    def acting(self, t: Numbers, q: Numbers, qd: Numbers, parameters: Numbers | None) -> dict[str, Any]:
        """Return the loads at the samples of a run as fields of its Trajectory, [..., nt, .]."""
        more = parameter_arguments(parameters, samples=True)
        with np.errstate(all="ignore"):  # runs that failed have NaN from then on
            tau = joint_law(self.mechanism, self._forces, *more)[0].torque(q, qd)
        control = zeros(qd.shape)
        if self._outside is not None:
            control = np.full(qd.shape, np.nan)
            for k in np.flatnonzero(np.isfinite(q).all(axis=-1).reshape(-1, len(t)).any(axis=0)):
                control[..., k, :] = self._outside.torques(float(t[k]), q[..., k, :], qd[..., k, :])
            tau = tau + control
        if self._others is None:
            wrenches = zeros((*q.shape[:-1], len(self.mechanism.bodies), 6))
            qdd = self._call("forward_dynamics", q, qd, tau, *more)
        else:
            with np.errstate(all="ignore"):
                extra, _, wrenches = self._others(t[:, None], q, qd, *more)
                control = control if self._drives is None else native(self._drives)(t[:, None], q, qd, *more)
            tau = tau + extra
            qdd = self._call("forward_dynamics", q, qd, tau, wrenches, *more, wrenches=True)
        return {"torque": tau, "control": control, "accelerations": qdd, "wrenches": wrenches}

    def _call(self, name: str, *arguments: Numbers, wrenches: bool = False) -> Numbers:
        key = name, wrenches
        if key not in self._functions:
            self._functions[key] = self._make(name, wrenches=wrenches, forces=False).gufunc
        with np.errstate(all="ignore"):
            return self._functions[key](*arguments)

    def _accelerations(self, t: float, q, qd, tau, added, more: tuple) -> Numbers:
        """Return qdd under joint torques, added inertias, and all forces except springs and dampers of joints."""
        self._evaluations += 1
        wrenches = ()
        if self._others is not None:
            extra, _, w = self._others(np.array([t]), q, qd, *more)
            tau, wrenches = tau + extra, (w,)
        if self._outside is not None:
            tau = tau + self._outside.torques(t, q, qd)
        name, inertia = ("forward_dynamics", ()) if added is None else ("implicit_dynamics", (added,))
        return self._call(name, q, qd, tau, *inertia, *wrenches, *more, wrenches=bool(wrenches))

    def _explicit(self, t: float, q, qd, more: tuple) -> Numbers:
        return self._accelerations(t, q, qd, self._law.torque(q, qd), None, more)

    def _rk4(self, t: float, h: float, q, qd, more: tuple) -> State:
        """Take one step of the classical Runge-Kutta method."""
        k: list[State] = []
        start = self._centered(q, qd, more)
        for c, weights in zip(RK4.c, RK4.a, strict=True):
            z, u = _advanced(start, h, weights, k)
            x, v = self._uncentered(z, u, more)
            a = self._explicit(t + c * h, x, v, more)
            k.append((self._rate(x, v, u, more), self._centered_rates(x, v, a, more)))
        q, qd = self._uncentered(*_advanced(start, h, RK4.b, k), more)
        if len(self._quaternions):
            parts = q[..., self._quaternions]
            q[..., self._quaternions] = parts / np.linalg.norm(parts, axis=-1, keepdims=True)
        return q, qd

    def _euler(self, t: float, h: float, q, qd, more: tuple) -> State:
        """Take one semi-implicit Euler step with explicit forces."""
        return self._semi_implicit(h, q, qd, self._explicit(t, q, qd, more), more)

    def _semi_implicit(self, h: float, q, qd, a, more: tuple) -> State:
        """Advance the velocities, then the coordinates with the new velocities."""
        z, u = self._centered(q, qd, more)
        u = u + h * self._centered_rates(q, qd, a, more)
        return self._uncentered(self._moved(z, h * u, more), u, more)

    def _implicit_euler(self, t: float, h: float, q, qd, more: tuple) -> State:
        """Take springs and dampers at the end of the step: I a = tau - k (q + h qd - rest) - c qd - (h^2 k + h c) a."""
        law = self._law
        tau = law.torque(q, qd) - h * law.stiffness * qd
        a = self._accelerations(t + h, q, qd, tau, h * h * law.stiffness + h * law.resistance(qd), more)
        return self._semi_implicit(h, q, qd, a, more)

    def _implicit_midpoint(self, t: float, h: float, q, qd, more: tuple) -> State:
        """Take all forces at the middle, springs and dampers implicitly: second order, no numerical damping.

        With the acceleration a0 of the step before, vm = qd + h a0 / 2 and qm = q + h vm / 2, the state at the middle
        of this step is qm + h^2 (a - a0) / 4 and vm + h (a - a0) / 2:
        I a = tau - k (qm - rest) - c vm - (h^2 k / 4 + h c / 2)(a - a0).
        """
        law, (z, u) = self._law, self._centered(q, qd, more)
        a, du = (np.zeros_like(qd),) * 2 if self._before is None else self._before
        for _ in range(2 if self._before is None else 1):
            half = u + h / 2 * du
            middle, speed = self._uncentered(self._moved(z, h / 2 * half, more), half, more)
            added = h * h / 4 * law.stiffness + h / 2 * law.resistance(speed)
            a = self._accelerations(t + h / 2, middle, speed, law.torque(middle, speed) + added * a, added, more)
            du = self._centered_rates(middle, speed, a, more)
        self._before = a, du
        return self._uncentered(self._moved(z, h * (u + h / 2 * du), more), u + h * du, more)

    def _rate(self, q, qd, u, more: tuple) -> Numbers:
        """Return dz/dt."""
        rate = qd if self._flat else self._call("coordinate_rate", q, qd, *more)
        return _replaced(rate, [(root.places, u[..., root.labels]) for root in self._roots])

    def _moved(self, z, du, more: tuple) -> Numbers:
        """Return z displaced by du: centers of mass move straight."""
        still = _replaced(du, [(root.labels, 0.0) for root in self._roots])
        moved = z + still if self._flat else self._call("integrate", z, still, *more)
        return _replaced(moved, [(r.places, z[..., r.places] + du[..., r.labels]) for r in self._roots])

    def _centered(self, q, qd, more: tuple) -> State:
        """Return (z, u) of a state."""
        places = [(root.places, root.center(self._call, q, more)) for root in self._roots]
        speeds = [(root.labels, root.velocity(self._call, q, qd, more)[0]) for root in self._roots]
        return _replaced(q, places), _replaced(qd, speeds)

    def _uncentered(self, z, u, more: tuple) -> State:
        """Return the state of (z, u)."""
        apart = [(r.places, 2.0 * z[..., r.places] - r.center(self._call, z, more)) for r in self._roots]
        q, still, speeds = _replaced(z, apart), _replaced(u, [(root.labels, 0.0) for root in self._roots]), []
        for root in self._roots:
            known, along = root.velocity(self._call, q, still, more)
            left = (u[..., root.labels] - known)[..., None]
            speeds.append((root.labels, np.linalg.solve(np.swapaxes(along, -1, -2), left)[..., 0]))
        return q, _replaced(u, speeds)

    def _centered_rates(self, q, qd, a, more: tuple) -> Numbers:
        """Return du/dt from the accelerations: the forces that they require move the center of mass."""
        if not self._roots:
            return a
        required = self._call("inverse_dynamics", q, qd, a, *more)
        return _replaced(a, [(r.labels, r.rate(self._call, q, required, more)) for r in self._roots])


class FloatingRoot:
    """A floating root of a mechanism; its center of mass is that of the mechanism when the other trees stay.

    `places` are the entries of its translations in q and `labels` those in qd; `own_q` and `own_qd` those of its tree.
    """

    def __init__(self, places: list[int], labels: list[int], own_q: Numbers, own_qd: Numbers) -> None:
        """Store the entries."""
        self.places, self.labels, self.own_q, self.own_qd = places, labels, own_q, own_qd

    def begin(self, call: Callable[..., Numbers], q0: Numbers, more: tuple) -> None:
        """Compute the directions of the translations, the share of the mass, and gravity along these directions."""
        self.start, units = q0, np.eye(q0.shape[-1])[self.places]
        wide = tuple(x[..., None, :] for x in more)
        here, there = (call("center_of_mass", x, *wide) for x in (q0[..., None, :], q0[..., None, :] + units))
        self.share = np.linalg.norm((there - here)[..., :1, :], axis=-1)
        self.axes = (there - here) / self.share[..., None]
        self.gravity = np.zeros(len(self.labels))
        nothing = np.zeros((*q0.shape[:-1], len(self.own_qd)))
        self.gravity = -self.rate(call, q0, call("inverse_dynamics", q0, nothing, nothing, *more), more)

    def center(self, call: Callable[..., Numbers], q: Numbers, more: tuple) -> Numbers:
        """Return the center of mass along the axes, up to a constant."""
        found = call("center_of_mass", np.where(self.own_q, q, self.start), *more)
        return (self.axes @ found[..., None])[..., 0] / self.share

    def velocity(self, call: Callable[..., Numbers], q: Numbers, qd: Numbers, more: tuple) -> State:
        """Return the velocity of the center of mass along the axes, and of each unit translation, row by row."""
        units = np.broadcast_to(np.eye(len(self.own_qd))[self.labels], (*qd.shape[:-1], len(self.labels), qd.shape[-1]))
        moves = np.concatenate([np.where(self.own_qd, qd, 0.0)[..., None, :], units], axis=-2)
        found = call("momentum", q[..., None, :], moves, *(x[..., None, :] for x in more))[..., 3:]
        along = found @ np.swapaxes(self.axes, -1, -2)
        mass = np.linalg.norm(found[..., 1, :], axis=-1)[..., None, None]
        return along[..., 0, :] / mass[..., 0], along[..., 1:, :] / mass

    def rate(self, call: Callable[..., Numbers], q: Numbers, required: Numbers, more: tuple) -> Numbers:
        """Return the acceleration of the center of mass along the axes from the forces that a motion requires."""
        units = np.eye(len(self.own_qd))[self.labels]
        found = call("momentum", q[..., None, :], units, *(x[..., None, :] for x in more))[..., 3:]
        mass = np.linalg.norm(found[..., :1, :], axis=-1, keepdims=True)
        along = found @ np.swapaxes(self.axes, -1, -2) / mass
        return (required[..., None, self.labels] @ along / mass)[..., 0, :] + self.gravity


def floating_roots(mechanism: Mechanism) -> list[FloatingRoot]:
    """Return the floating roots of a mechanism, by the conditions of dynamics/centered.py."""
    trees: dict[int, list[int]] = {}
    tree_of: list[int | None] = []
    stands: list[bool] = []
    for k, (joint, parent) in enumerate(zip(mechanism.joints, mechanism.parents, strict=True)):
        kind = joint_kinds.kind(joint.kind)
        fixed = parent < 0 or stands[parent]
        stands.append(fixed and kind.NV == 0)
        light = all(isinstance(x, int | float) and x == 0 for x in joint.armature)
        root = k if kind.FLOATS and fixed and light else None if parent < 0 else tree_of[parent]
        tree_of.append(root)
        if root is not None:
            trees.setdefault(root, []).append(k)
    return [_floating_root(mechanism, bodies) for bodies in trees.values()]


def _floating_root(mechanism: Mechanism, bodies: list[int]) -> FloatingRoot:
    root, own = bodies[0], (np.zeros(mechanism.nq, dtype=bool), np.zeros(mechanism.nv, dtype=bool))
    for slices, entries in zip((mechanism.q_slices, mechanism.v_slices), own, strict=True):
        for k in bodies:
            entries[slices[k]] = True
    pairs = joint_kinds.kind(mechanism.joints[root].kind).FLOATS
    places = [mechanism.q_slices[root].start + k for k, _ in pairs]
    return FloatingRoot(places, [mechanism.v_slices[root].start + v for _, v in pairs], *own)


def _replaced(x: Numbers, parts: Sequence[tuple[list[int], Numbers | float]]) -> Numbers:
    """Return an array with some entries of its last axis replaced."""
    if not parts:
        return x
    out = np.array(x)
    for places, values in parts:
        out[..., places] = values
    return out


def _advanced(state: State, h: float, weights: Sequence[float], rates: Sequence[State]) -> State:
    """Return y + h sum of weight k, with the weights as multiples of the least: often whole numbers."""
    used = [(w, k) for w, k in zip(weights, rates, strict=True) if w]
    if not used:
        return state
    least = 1.0 / min(abs(w) for w, _ in used)
    y = []
    for part, value in enumerate(state):
        (w, k), *rest = used
        total = (w * least) * k[part]
        for w, k in rest:
            total = total + (w * least) * k[part]
        y.append(value + h / least * total)
    return y[0], y[1]


# --- The engine with steps in Python: long mechanisms, and methods implicit in the springs and dampers of joints.


def run_marching(problem: Problem, watch: Watch | None, progress: Progress | None) -> Motion:
    """Carry out runs of long mechanisms, or by a method that is implicit in joints; all of a batch together."""
    p, bodies = problem, len(problem.system.bodies)
    if p.outside and p.control.rate is not None:
        if not p.is_long:
            raise InputError(f"{p.method.name} cannot hold sampled torques; use a native method")
        raise InputError(
            f"{p.mechanism.name!r} has {bodies} bodies: too many for torques that are sampled; "
            "use a PythonControl without a rate"
        )
    if drives_of(p.control) is not None:
        what = f"{bodies} bodies are too many" if p.is_long else f"{p.method.name} has no steps"
        raise InputError(f"{p.mechanism.name!r}: {what} for driven joints; use PD control with large gains instead")
    no_checkpoint(p, "this run")
    if p.method.name not in STEPS:
        raise InputError(
            f"{p.method.name} cannot be compiled for the {bodies} bodies of {p.mechanism.name!r}; use "
            f"{', '.join(STEPS[:-1])} or {STEPS[-1]}, with a step dt"
        )
    control: Any = Law(p.mechanism, p.control, p.parameters) if p.outside else p.control
    made = March(p.mechanism, p.method.name, p.forces, control, p.loops, function=p.system.function)

    def again(q, qd, t, more) -> Run:
        return made.run(q, qd, t, p.settings, more)

    done = made.run(*p.start, p.times, p.settings, p.parameters, progress=progress).with_end()

    def complete(ended: Run) -> tuple[Run, Fields]:
        return ended, made.acting(ended.t, ended.q, ended.qd, p.parameters)

    return Motion(done, onward_by(p, done, again), complete)
