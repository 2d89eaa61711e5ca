"""Control computed outside of the compiled dynamics: sampled and held, or by a plain Python function.

A sampled run advances from one sampling instant to the next. Python runs once per instant for all runs of a batch
together, never within a step.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import TYPE_CHECKING, ClassVar

import numpy as np

from ..._support.checks import positive
from ...algebra.scalars import Scalar
from ...compiler.ir.program import Program
from ...errors import InputError, argument
from ...model.axes import entries
from ...model.mechanism import Mechanism, parameter_arguments
from ...runtime.native import native
from ..outcomes import Ending, Outcome, RunStopped, ending_of
from ..run_states import Run
from .controllers import Saturated, Sum
from .driven import Driven, DrivenControl, combine_controls
from .instants import Controller, Instant, trace_function
from .references import sampled

if TYPE_CHECKING:
    from numpy.typing import ArrayLike


@dataclass(frozen=True)
class Sampled:
    """A controller that is evaluated `rate` times per second [1/s]; its torques are held in between."""

    controller: Controller
    rate: float
    outside: ClassVar[bool] = True
    """The torques are computed outside of the compiled rates."""

    def __post_init__(self) -> None:
        """Check the controller and the rate."""
        if getattr(self.controller, "outside", False):
            raise InputError(f"Sampled holds a {type(self.controller).__name__}, which has a rate of its own")
        object.__setattr__(self, "rate", positive(self.rate, argument("rate", "Sampled")))

    def torque(self, now: Instant) -> list[Scalar]:
        """Refuse to be a part of another controller."""
        raise InputError("Sampled cannot be inside another controller; put the others inside of it")


@dataclass(frozen=True)
class PythonControl:
    """A Python function (t, q, qd) -> tau on arrays q [..., nq], qd [..., nv], that is not compiled.

    With a rate [1/s] it is called that often, in order of time, and its torques are held in between. Without a rate it
    is called at every stage of every step, including rejected steps. This is slow, and only for functions that store
    nothing between calls.
    """

    function: Callable[[float, np.ndarray, np.ndarray], ArrayLike]
    rate: float | None = None
    outside: ClassVar[bool] = True
    """The torques are computed outside of the compiled rates."""

    def __post_init__(self) -> None:
        """Check the function and the rate."""
        if not callable(self.function):
            raise InputError("PythonControl needs a function of (t, q, qd)")
        if self.rate is not None:
            object.__setattr__(self, "rate", positive(self.rate, argument("rate", "PythonControl")))

    def torque(self, now: Instant) -> list[Scalar]:
        """Refuse to be a part of another controller."""
        raise InputError("PythonControl cannot be inside another controller; do all of it in one Python function")


class Law:
    """The checked torques of a controller for the present states; wrong torques end a run."""

    def __init__(
        self,
        mechanism: Mechanism,
        control: Sampled | PythonControl,
        parameters: np.ndarray | None,
        compiled: Callable[[Program], np.ufunc] = native,
    ) -> None:
        """Compile the controller, unless it is a Python function."""
        if isinstance(control, PythonControl):
            self._function = control.function
            self._name = getattr(control.function, "__name__", type(control.function).__name__)
            return
        gufunc = compiled(trace_function("law", mechanism, lambda now: _torques(control.controller, now), mechanism.nv))
        more = parameter_arguments(parameters)
        self._function = lambda t, q, qd: gufunc(np.array([t]), q, qd, *more)
        self._name = type(control.controller).__name__

    def torques(self, t: float, q: np.ndarray, qd: np.ndarray) -> np.ndarray:
        """Return the torques [..., nv], which may contain NaN; raise an InputError with the time if the call fails."""
        try:
            with np.errstate(all="ignore"):
                tau = np.asarray(self._function(t, q.copy(), qd.copy()), dtype=float)
        except Exception as error:  # for any error of a user's function, the run so far is kept
            raise RunStopped(self._ending(f"failed at t = {t:.9g} s ({_described(error)})")) from error
        if tau.shape != qd.shape:
            shapes = f"torques of shape {tau.shape} at t = {t:.9g} s; expected {qd.shape}"
            raise RunStopped(self._ending(f"returned {shapes}"))
        return tau

    def not_finite(self, t: float) -> Ending:
        """Return the ending of a run with torques that contain NaN."""
        return self._ending(f"returned torques that are not finite at t = {t:.9g} s")

    def _ending(self, what: str) -> Ending:
        return Ending(Outcome.CONTROL, f"the controller {self._name!r} {what}")

    def __call__(self, result: Run, t: float, q: np.ndarray, qd: np.ndarray) -> np.ndarray | None:
        """Return the torques of all runs; record failures in the result, and return None if no run can continue."""
        first = result.reached == 1
        alive = np.isfinite(q).all(axis=-1) & np.isfinite(qd).all(axis=-1)
        try:
            tau = self.torques(t, q, qd)
        except InputError as error:
            if first:
                raise
            for k in range(max(result.evaluations.size, 1)):
                result.failures.setdefault(k, ending_of(error))
            return None
        bad = alive & ~np.isfinite(tau).all(axis=-1)
        if first and bad.all():
            raise RunStopped(self.not_finite(t))
        for k in np.flatnonzero(np.ravel(bad)):
            result.failures.setdefault(int(k), self.not_finite(t))
        return None if len(result.failures) == max(result.evaluations.size, 1) else tau


def _torques(controller: Controller, now: Instant) -> list[Scalar]:
    torque = list(controller.torque(now))
    if len(torque) != now.mechanism.nv:
        raise InputError(f"the controller returned {len(torque)} torques; expected {now.mechanism.nv}")
    return torque


def _described(error: Exception) -> str:
    return f"{type(error).__name__}: {error}" if str(error) else type(error).__name__


# --- The reference that a controller follows, at given times ---


def sample_reference(mechanism: Mechanism, control: object, times: np.ndarray) -> np.ndarray | None:
    """Return the reference of a controller [nt, nq], NaN for joints that are not driven; None without a reference."""
    control = combine_controls(mechanism, (control,)) if isinstance(control, Driven) else control
    if isinstance(control, DrivenControl):
        return _driven(mechanism, control, times)
    leading = next((c for c in parts_of(control) if hasattr(c, "reference")), None)
    if leading is None:
        return None
    try:
        wanted = sampled(leading.reference, times)[0]
    except Exception:  # a user's function may accept traced scalars only; the run does not need the samples
        return None
    given = [getattr(leading, name, None) for name in ("joints", "actuated")]
    joints = next((names for names in given if names is not None), None)
    if joints is None:
        return wanted if wanted.shape[-1] == mechanism.nq else None
    places = [k for joint in joints for k in entries(mechanism, joint, 0)]
    out = np.full((len(times), mechanism.nq), np.nan)
    out[:, places] = wanted
    return out


def _driven(mechanism: Mechanism, control: DrivenControl, times: np.ndarray) -> np.ndarray | None:
    """Return the motion of the drives, beside the reference of the other controller."""
    out = sample_reference(mechanism, control.controller, times)
    out = np.full((len(times), mechanism.nq), np.nan) if out is None else out.copy()
    try:
        out[:, list(control.drives.q)] = sampled(control.drives.at, times)[0]
    except Exception:  # a user's function may accept traced scalars only; the run does not need the samples
        return None
    return out


def parts_of(control: object) -> list[Scalar]:
    """Return the controllers inside Sum, Saturated, Sampled and beside driven joints."""
    if isinstance(control, Sum):
        return [part for c in control.controllers for part in parts_of(c)]
    return parts_of(control.controller) if isinstance(control, Saturated | Sampled | DrivenControl) else [control]
