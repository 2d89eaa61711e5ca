"""Array arguments of `simulate`: output times, the start, values of free parameters."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import Any

import numpy as np
from numpy.typing import ArrayLike

from ..errors import InputError
from ..model.axes import quaternion_places
from ..model.parameter_values import Named, in_order
from ..numbers import plain, real_array
from ..system import System
from .run_states import check_times

OUTPUTS = 1001
"""The default number of output times: one sample per pixel in a picture that is a thousand pixels wide."""


def output_times(duration: float | None, times: ArrayLike | None) -> np.ndarray:
    """Return the output times: those given, or evenly spaced ones over a duration [s]."""
    if (duration is None) == (times is None):
        raise InputError("duration and times: give one of them, either a duration or output times")
    if times is not None:
        return check_times(real_array(times, "times"))
    end = plain(duration)
    if end is None or not 0.0 < end < np.inf:
        raise InputError(f"duration is {duration!r}; expected a positive number of seconds")
    return np.linspace(0.0, end, OUTPUTS)


def precision(arrays: tuple[Any, Any]) -> str:
    """Return the precision of a run on a GPU: float32 if an array of its start is, otherwise float64."""
    single = any(str(getattr(x, "dtype", "")).removeprefix("torch.") == "float32" for x in arrays)
    return "float32" if single else "float64"


def on_host(arrays: tuple[Any, Any]) -> tuple[Any, Any]:
    """Return the start of a run on a GPU in the memory of the host."""
    q, qd = (_copied(x) if hasattr(x, "__cuda_array_interface__") else x for x in arrays)
    return q, qd


def _copied(x: Any) -> np.ndarray:
    """Return an array of CuPy or torch on a GPU in the memory of the host."""
    return x.get() if hasattr(x, "get") else x.detach().cpu().numpy()


def start_state(
    system: System, q0: ArrayLike | None, qd0: ArrayLike | None, default: Callable[[], np.ndarray]
) -> tuple[np.ndarray, np.ndarray]:
    """Return q [..., nq] and qd [..., nv] with a common leading shape; `default` returns q where none is given."""
    given = (
        ("q0", default() if q0 is None else q0, system.nq),
        ("qd0", np.zeros(system.nv) if qd0 is None else qd0, system.nv),
    )
    arrays = []
    for name, value, size in given:
        array = real_array(value, name, _by_name(system, name, value))
        check_shape(name, array.shape, size)
        check_finite(name, bool(np.isfinite(array).all()))
        arrays.append(array)
    lead = common_lead(system, arrays[0].shape, arrays[1].shape)
    q, qd = (np.ascontiguousarray(np.broadcast_to(a, (*lead, a.shape[-1]))) for a in arrays)
    check_rotations(system, lambda at: bool(np.abs(q[..., at : at + 4]).max(axis=-1, initial=0.0).all()))
    return q, qd


def check_shape(name: str, shape: tuple[int, ...], size: int) -> None:
    """Raise InputError for a start that does not have one number per coordinate or degree of freedom."""
    if not shape or shape[-1] != size:
        raise InputError(f"{name} has shape {shape}; expected [..., {size}]")


def check_finite(name: str, finite: bool) -> None:
    """Raise InputError for a start that is not finite."""
    if not finite:
        raise InputError(f"{name} has entries that are not finite")


def common_lead(system: System, q: tuple[int, ...], qd: tuple[int, ...]) -> tuple[int, ...]:
    """Return the leading shape of a start, given the shapes of q0 and qd0."""
    try:
        lead = np.broadcast_shapes(q[:-1], qd[:-1])
    except ValueError:
        raise InputError(f"q0 {q} and qd0 {qd} do not fit together") from None
    if system.nv == 0:
        raise InputError(
            f"{system.mechanism.name!r} cannot move: it has no degrees of freedom; add a joint, or let the root link "
            'of a URDF float: base="free" (command line: --base free)'
        )
    return lead


def check_rotations(system: System, nonzero: Callable[[int], bool]) -> None:
    """Raise InputError if a quaternion is zero; `nonzero` has the index in q at which one starts."""
    for at in quaternion_places(system.mechanism):
        if not nonzero(at):
            raise InputError(f"q0 has a quaternion of zeros in its entries {at} to {at + 3}; no rotation is 0, 0, 0, 1")


def free_values(system: System, parameters: Named | None) -> np.ndarray | None:
    """Return values of the free parameters [..., np], given in order or by name; None if none are given."""
    if parameters is None:
        return None
    if not system.mechanism.free_parameters:
        raise InputError(f"{system.mechanism.name!r} has no free parameters")
    return real_array(in_order(system.mechanism, parameters), "parameters")


def fitting(system: System, values: np.ndarray | None, lead: tuple[int, ...]) -> np.ndarray | None:
    """Return the values of all free parameters, [np] or [..., np]; None if there are none."""
    free = system.mechanism.free_parameters
    if values is None:
        return np.array([p.value for p in free]) if free else None
    if values.shape not in ((len(free),), (*lead, len(free))):
        raise InputError(f"parameters have shape {values.shape}; expected [{len(free)}] or {[*lead, len(free)]}")
    if not np.isfinite(values).all():
        raise InputError("parameters have entries that are not finite")
    return values


def _by_name(system: System, name: str, value: Any) -> str:
    """Return the remedy for numbers by joint, if the mechanism is closed; else an empty text."""
    if not (isinstance(value, Mapping) and system.closures):
        return ""
    by = "assemble(hold={joint: position})" if name == "q0" else "consistent_speeds(q0, {joint: speed})"
    return f"; numbers by joint make one with system.{by}"
