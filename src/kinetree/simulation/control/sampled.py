"""Control from outside of the compiled dynamics: sampled and held, or by a plain Python function.

A sampled run goes from one sampling instant to the next: Python is at work once an instant for all runs of a batch
together, never within a step.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass, replace
from itertools import pairwise
from typing import Any

import numpy as np

from ...compiler.runtime.native import native
from ...errors import InputError
from ...model.mechanism import Mechanism
from ..arguments import positive
from ..engines.held_torques import HeldRun, blank_run, held, joined
from ..engines.runs import Run, Settings, run
from ..events import Watch, observed, of_run
from ..integrators import Method, stepper_of
from ..rates import Controller, Force, Instant, euler_step, rates

NEAR = 1e-9
"""A sampling instant that is this part of a period from an output time is that time."""


@dataclass(frozen=True)
class Sampled:
    """A controller that is asked `rate` times a second [1/s]; its torques are held in between."""

    controller: Controller
    rate: float

    def __post_init__(self) -> None:
        """Check the rate."""
        if isinstance(self.controller, Sampled | PythonControl):
            raise InputError(f"Sampled holds a {type(self.controller).__name__}, which has a rate of its own")
        object.__setattr__(self, "rate", positive(self.rate, "the rate of Sampled"))

    def torque(self, now: Instant) -> list[Any]:
        """Refuse to be a part of another controller."""
        raise InputError("Sampled cannot be inside another controller; put the others inside of it")


@dataclass(frozen=True)
class PythonControl:
    """A Python function (t, q, qd) -> tau on arrays q [..., nq], qd [..., nv], that need not be compiled.

    With a rate [1/s] it is asked so often, in time's order, and its torques are held. Without one it is asked at every
    stage of every step, also of steps that are thrown away: slow, and only for functions without a memory.
    """

    function: Callable[[float, np.ndarray, np.ndarray], Any]
    rate: float | None = None

    def __post_init__(self) -> None:
        """Check function and rate."""
        if not callable(self.function):
            raise InputError("PythonControl needs a function of (t, q, qd)")
        if self.rate is not None:
            object.__setattr__(self, "rate", positive(self.rate, "the rate of PythonControl"))

    def torque(self, now: Instant) -> list[Any]:
        """Refuse to be a part of another controller."""
        raise InputError("PythonControl cannot be inside another controller; do all of it in one Python function")


def run_held(
    mechanism: Mechanism,
    method: Method,
    forces: Sequence[Force],
    control: Sampled | PythonControl,
    start: tuple[np.ndarray, np.ndarray],
    times: np.ndarray,
    settings: Settings,
    *,
    parameters: np.ndarray | None = None,
    threads: int = 1,
    progress: Callable[[float], None] | None = None,
    watch: Watch | None = None,
) -> HeldRun:
    """Integrate under control from outside, over the times and all sampling instants between them."""
    law = Law(mechanism, control, parameters)
    if control.rate is None:
        from ..engines.scipy_control import run_python

        return run_python(
            mechanism, method, forces, law, start, times, settings,
            parameters=parameters, progress=progress, watch=watch,
        )  # fmt: skip
    if method.scheme is None:
        raise InputError(f"{method.name} cannot hold sampled torques; use a native method")
    scheme = method.scheme()
    program = held(euler_step if scheme is None else rates, mechanism, forces)
    stepper = stepper_of(mechanism, program, scheme)
    instants = sampling_instants(times, control.rate)
    grid = np.union1d(times, instants)
    result = blank_run(start, grid)
    torque = np.full((*start[0].shape[:-1], len(grid), mechanism.nv), np.nan)
    marks = np.append(np.searchsorted(grid, instants), len(grid) - 1)

    def onward(index: tuple[int, ...], k: int, t: float) -> tuple[np.ndarray, np.ndarray]:
        own = None if parameters is None else of_run(parameters, index)
        more = joined(own, torque[(*index, k)])
        near = replace(settings, first=t - grid[k])
        short = run(
            stepper, result.q[(*index, k)], result.qd[(*index, k)], np.array([grid[k], t]), near, parameters=more
        )
        return short.q[-1], short.qd[-1]

    try:
        for a, b in pairwise(marks):
            tau = law(result, float(grid[a]), result.q[..., a, :], result.qd[..., a, :])
            if tau is None:
                break
            piece = run(
                stepper, result.q[..., a, :], result.qd[..., a, :], grid[a : b + 1],
                replace(settings, first=float(grid[b] - grid[a])), parameters=joined(parameters, tau), threads=threads,
            )  # fmt: skip
            _append(result, piece, a, b)
            torque[..., a : b + 1, :] = tau[..., None, :]
            if progress is not None:
                progress((grid[b] - grid[0]) / (grid[-1] - grid[0]))
            if piece.interrupted or len(result.failures) == max(result.evaluations.size, 1):
                break
            if watch and watch.stops(result):
                break
    except KeyboardInterrupt:
        result.interrupted = True
    return HeldRun(result, torque, onward)


def sampling_instants(times: np.ndarray, rate: float) -> np.ndarray:
    """Return the instants from the first time to before the last, moved to output times that are next to them."""
    count = int(np.ceil((times[-1] - times[0]) * rate - NEAR))
    instants = times[0] + np.arange(count) / rate
    above = np.clip(np.searchsorted(times, instants), 1, len(times) - 1)
    nearest = np.where(instants - times[above - 1] < times[above] - instants, times[above - 1], times[above])
    return np.where(np.abs(nearest - instants) <= NEAR / rate, nearest, instants)


class Law:
    """The torques of a controller for the present states, checked: what is wrong with them ends a run."""

    def __init__(self, mechanism: Mechanism, control: Sampled | PythonControl, parameters: np.ndarray | None) -> None:
        """Compile what can be compiled."""
        if isinstance(control, PythonControl):
            self._function = control.function
            self._name = getattr(control.function, "__name__", type(control.function).__name__)
            return
        gufunc = native(observed("law", mechanism, lambda now: _torques(control.controller, now), mechanism.nv))
        more = () if parameters is None else (parameters,)
        self._function = lambda t, q, qd: gufunc(np.array([t]), q, qd, *more)
        self._name = type(control.controller).__name__

    def ask(self, t: float, q: np.ndarray, qd: np.ndarray) -> np.ndarray:
        """Return the torques [..., nv], which may have NaN; raise an InputError that names the time for others."""
        try:
            with np.errstate(all="ignore"):
                tau = np.asarray(self._function(t, q.copy(), qd.copy()), dtype=float)
        except Exception as error:  # whatever a user's function raises, the run so far is kept
            raise InputError(f"the controller {self._name!r} failed at t = {t:.9g} s ({_said(error)})") from error
        if tau.shape != qd.shape:
            shapes = f"torques of shape {tau.shape} at t = {t:.9g} s; expected {qd.shape}"
            raise InputError(f"the controller {self._name!r} gave {shapes}")
        return tau

    def not_finite(self, t: float) -> str:
        """Return what to say of torques with NaN."""
        return f"the controller {self._name!r} gave torques that are not finite at t = {t:.9g} s"

    def __call__(self, result: Run, t: float, q: np.ndarray, qd: np.ndarray) -> np.ndarray | None:
        """Return the torques of all runs; note failures in the result, and return None if no run can go on."""
        first = result.reached == 1
        alive = np.isfinite(q).all(axis=-1) & np.isfinite(qd).all(axis=-1)
        try:
            tau = self.ask(t, q, qd)
        except InputError as error:
            if first:
                raise
            for k in range(max(result.evaluations.size, 1)):
                result.failures.setdefault(k, str(error))
            return None
        bad = alive & ~np.isfinite(tau).all(axis=-1)
        if first and bad.all():
            raise InputError(self.not_finite(t))
        for k in np.flatnonzero(np.ravel(bad)):
            result.failures.setdefault(int(k), self.not_finite(t))
        return None if len(result.failures) == max(result.evaluations.size, 1) else tau


def _torques(controller: Controller, now: Instant) -> list[Any]:
    torque = list(controller.torque(now))
    if len(torque) != now.mechanism.nv:
        raise InputError(f"the controller gave {len(torque)} torques; expected {now.mechanism.nv}")
    return torque


def _append(result: Run, piece: Run, a: int, b: int) -> None:
    """Put the samples a + 1 to b of a piece into the result."""
    result.q[..., a + 1 : b + 1, :], result.qd[..., a + 1 : b + 1, :] = piece.q[..., 1:, :], piece.qd[..., 1:, :]
    result.evaluations += piece.evaluations
    result.steps += piece.steps
    result.reached = a + piece.reached
    result.interrupted = piece.interrupted
    for k, reason in piece.failures.items():
        result.failures.setdefault(k, reason)


def _said(error: Exception) -> str:
    return f"{type(error).__name__}: {error}" if str(error) else type(error).__name__
