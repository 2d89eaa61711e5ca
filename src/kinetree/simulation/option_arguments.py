"""Options of `simulate`: the method and its settings, forces, control, events, threads."""

from __future__ import annotations

import os
from collections.abc import Iterable
from pathlib import Path
from typing import TYPE_CHECKING, Any

import numpy as np

from ..devices.mirrored import Mirrored
from ..errors import InputError, brief
from ..model.mechanism import Mechanism
from ..numbers import positive, whole
from ..system import System
from .events import Event
from .integrators import METHODS, Method
from .kernels.fixed_steps import ROUNDING
from .run_states import Settings

if TYPE_CHECKING:
    from ..compiler.runtime.cuda.libraries import Library
    from ..compiler.targets.ptx.driver import Device

ATTEMPTS = 1_000_000
"""The default of max_steps for adaptive methods, in attempts: some seconds for a robot, and more than smooth motions
need."""

FIXED_STEPS = 10**12
"""The default of max_steps for fixed steps: 30 hours for the smallest mechanism. More indicate a mistake in dt."""


def system_of(x: Any, who: str = "simulate") -> System:
    """Return the System that a function takes, also of one on a GPU; that of a Mechanism is created."""
    if isinstance(x, Mechanism):
        return System(x)
    if isinstance(x, Mirrored):
        x = x.system
    if not isinstance(x, System):
        raise InputError(f"{who} takes a System, not {brief(x)}; load one with kt.load(name or file)")
    return x


def device_of(x: Any, q0: Any) -> Device | None:
    """Return the GPU of a system on one; None for others.

    A system on any GPU runs on that of the start, or on the first if the start is on none.
    """
    if not isinstance(x, Mirrored):
        return None
    from ..compiler.targets.ptx.driver import driver
    from ..devices.cuda import CudaSystem

    if not isinstance(x, CudaSystem):
        raise InputError(
            f"simulate takes a System or system.on('cuda'), not {x!r}; give its .system. Runs with gradients in torch "
            "and JAX are those of kt.run_function(system, ...)"
        )
    place = getattr(q0, "device", None) if hasattr(q0, "__cuda_array_interface__") else None
    own = getattr(place, "id", getattr(place, "index", None))  # of CuPy, of torch
    if x.index is not None and own not in (None, x.index):
        raise InputError(f"q0 is on cuda:{own}, and the system on {x.place}; give both on one device")
    return driver().device(own or x.index or 0)


def kept_by(keep: Any, system: Any, q0: Any) -> Library | None:
    """Return the library of the arrays in which samples stay on a GPU; None if they are copied to the host."""
    if keep == "host":
        return None
    if keep != "device":
        raise InputError(f"keep is {brief(keep)}; give 'host' or 'device'")
    if not isinstance(system, Mirrored):
        raise InputError("keep is 'device': give a system on a GPU, system.on('cuda')")
    from ..compiler.runtime.cuda.libraries import library_of

    return library_of([("q0", q0)], "simulate")


def listed(x: Any, what: str, method: str) -> tuple[Any, ...]:
    """Return objects that have a given method; a single one counts as a list of one."""
    items = () if x is None else (x,) if hasattr(x, method) else x
    if not isinstance(items, Iterable) or isinstance(items, str):
        raise InputError(f"{what} is {brief(x)}; give a list of objects with {method}(now)")
    items = tuple(items)
    for item in items:
        if not hasattr(item, method) or isinstance(item, type):
            raise InputError(f"{what} has {brief(item)}; give objects with {method}(now)")
    return items


def control_of(x: Any) -> tuple[Any, ...]:
    """Return the controllers of a list, or a single one, or none; refuse other objects."""
    items = () if x is None else tuple(x) if isinstance(x, list | tuple) else (x,)
    for item in items:
        if not hasattr(item, "torque") or isinstance(item, type):
            how = "a function goes into kt.TorqueFunction(f) to be compiled, or kt.PythonControl(f)"
            raise InputError(f"control is {brief(x)}; give an object with torque(now): {how}")
    return items


def events_of(x: Any) -> tuple[Event, ...]:
    """Return events; a single one counts as a list of one."""
    items = (x,) if isinstance(x, Event) else tuple(x) if isinstance(x, Iterable) else None
    if items is None or not all(isinstance(item, Event) for item in items):
        raise InputError(f"events is {brief(x)}; give a list of kt.Event(function of now)")
    return items


def flag(x: Any, what: str) -> bool:
    """Return True or False; refuse anything else, such as the text "no"."""
    if not isinstance(x, bool | np.bool_):
        raise InputError(f"{what} is {brief(x)}; give True or False")
    return bool(x)


def path_of(x: Any, what: str) -> Path | None:
    """Return the path of a file, or None; refuse other objects."""
    if x is not None and not isinstance(x, str | os.PathLike):
        raise InputError(f"{what} is {brief(x)}; give the path of a file, or None")
    return None if x is None else Path(x)


def method_name(x: Any) -> str:
    """Return the name of a method; refuse anything but text."""
    if not isinstance(x, str):
        raise InputError(f"method is {brief(x)}; give one of auto, {', '.join(METHODS)}")
    return x


def threads_of(x: Any) -> int:
    """Return a number of threads; 0 means all cores."""
    return whole(x, "threads", least=0, of="cores, 0 for all") or os.cpu_count() or 1


def settings_of(
    method: Method, times: np.ndarray, dt: float | None, rtol: float, atol: float, max_steps: int | None
) -> Settings:
    """Return the settings of a method: a step, or tolerances."""
    step = None if dt is None else positive(dt, "dt")
    rtol, atol = positive(rtol, "rtol"), positive(atol, "atol")
    most = None if max_steps is None else whole(max_steps, "max_steps")
    if method.adaptive:
        if dt is not None:
            raise InputError(f"{method.name} chooses its steps: leave dt out, or use rk4, euler, midpoint or gauss")
        first = 1e-3 * float(times[-1] - times[0])
        return Settings(rtol=rtol, atol=atol, first=first, most=most or ATTEMPTS)
    if step is None:
        raise InputError(f"{method.name} takes fixed steps: give dt [s]")
    with np.errstate(over="ignore"):
        count = np.maximum(np.floor(np.diff(times) / step - ROUNDING["float64"]) + 1, 1).sum()
    if count > (most or FIXED_STEPS):
        raise InputError(
            f"dt is {step:g} s: the run takes {count:.3g} steps, more than max_steps = {most or FIXED_STEPS}; "
            "give a larger dt, or a larger max_steps (--max-steps on the command line)"
        )
    return Settings(dt=step)
