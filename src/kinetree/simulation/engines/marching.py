"""Steps in Python around compiled functions: long mechanisms, and steps implicit in the springs of joints.

For a long mechanism the Python code takes little time beside the compiled functions. Implicit steps are solved in O(n):
springs k and dampers c of the joints at the end of a step h add h^2 k + h c to the joint inertias in forward dynamics.
At the middle of a step they add h^2 k / 4 + h c / 2.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any

import numpy as np

from ...algebra.arrays import Numbers
from ...compiler.lower.build import Request, is_long
from ...compiler.runtime.function import Function
from ...compiler.runtime.native import native
from ...errors import InputError
from ...model.axes import quaternion_places
from ...model.mechanism import Mechanism
from ..control.sampled import Law
from ..forces.joint_law import joint_law
from ..instants import Controller, Force
from ..loads_at_samples import zeros
from ..loop_closing import Closer
from ..rates import loads_and_drives
from ..run_states import LOST, OPEN, Run, Settings, blank_run
from ..stabilization import Loops
from ..tableaus import RK4

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
        """Compile the functions for the steps; a `Law` is control by Python, `function` that of a System."""
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
            program, self._drives = loads_and_drives(mechanism, others, traced)
            self._others = native(program)
        self._flat = mechanism.nq == mechanism.nv
        self._quaternions = np.array(quaternion_places(mechanism), dtype=int)[:, None] + np.arange(4)
        self._closer = Closer.of_functions(mechanism, function) if mechanism.closures else None
        self._make = function or (lambda name, wrenches=False: Function(mechanism, Request(name, wrenches=wrenches)))
        self._functions: dict[tuple[str, bool], Any] = {}
        self._before: Numbers | None = None
        self._evaluations = 0

    def run(
        self, q0: Numbers, qd0: Numbers, times: Numbers, settings: Settings, parameters: Numbers | None = None,
        *, progress: Callable[[float], None] | None = None,
    ) -> Run:  # fmt: skip
        """Integrate from states [..., nq], [..., nv] over the times."""
        more = () if parameters is None else (parameters,)
        if parameters is not None:
            self._law = joint_law(self.mechanism, self._forces, parameters)[0]
        result = blank_run((q0, qd0), times)
        self._before, self._evaluations = None, 0
        try:
            with np.errstate(all="ignore"):  # a state that is not finite is reported in the status
                self._march(result, settings.dt, more, progress or (lambda part: None))
        except KeyboardInterrupt:
            result.interrupted = True
        except InputError as error:  # of a controller; the states computed so far are kept
            if result.reached == 1:
                raise
            for k in range(result.steps.size):
                result.failures.setdefault(k, str(error))
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
                    q, qd = self._closer.close(q, qd, *more)
                result.end = float(times[j] + (m + 1) * span / count), q, qd
            result.end = None
            result.q[..., j + 1, :], result.qd[..., j + 1, :] = q, qd
            result.steps += count
            result.reached = j + 2
            good = np.isfinite(q).all(axis=-1) & np.isfinite(qd).all(axis=-1)
            why = f"{OPEN if self._closer else LOST}; the last good state is at t = {times[j]:.9g} s"
            for k in np.flatnonzero(~np.ravel(good)):
                result.failures.setdefault(int(k), why)
            progress((times[j + 1] - times[0]) / (times[-1] - times[0]))
            if not np.any(good):
                break

    def acting(self, t: Numbers, q: Numbers, qd: Numbers, parameters: Numbers | None) -> dict[str, Any]:
        """Return the loads at the samples of a run as fields of its Trajectory, [..., nt, .]."""
        more = () if parameters is None else (parameters[..., None, :],)
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
            self._functions[key] = self._make(name, wrenches=wrenches).gufunc
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
        for c, weights in zip(RK4.c, RK4.a, strict=True):
            x, v = _advanced((q, qd), h, weights, k)
            k.append((self._rate(x, v, more), self._explicit(t + c * h, x, v, more)))
        q, qd = _advanced((q, qd), h, RK4.b, k)
        if len(self._quaternions):
            parts = q[..., self._quaternions]
            q[..., self._quaternions] = parts / np.linalg.norm(parts, axis=-1, keepdims=True)
        return q, qd

    def _euler(self, t: float, h: float, q, qd, more: tuple) -> State:
        """Take one semi-implicit Euler step with explicit forces."""
        return self._semi_implicit(h, q, qd, self._explicit(t, q, qd, more), more)

    def _semi_implicit(self, h: float, q, qd, a, more: tuple) -> State:
        """Advance the velocities, then the coordinates with the new velocities."""
        qd = qd + h * a
        return self._moved(q, h * qd, more), qd

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
        law, a = self._law, np.zeros_like(qd) if self._before is None else self._before
        for _ in range(2 if self._before is None else 1):
            speed = qd + h / 2 * a
            middle = self._moved(q, h / 2 * speed, more)
            added = h * h / 4 * law.stiffness + h / 2 * law.resistance(speed)
            a = self._accelerations(t + h / 2, middle, speed, law.torque(middle, speed) + added * a, added, more)
        self._before = a
        return self._moved(q, h * (qd + h / 2 * a), more), qd + h * a

    def _rate(self, q, qd, more: tuple) -> Numbers:
        return qd if self._flat else self._call("coordinate_rate", q, qd, *more)

    def _moved(self, q, dq, more: tuple) -> Numbers:
        return q + dq if self._flat else self._call("integrate", q, dq, *more)


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
