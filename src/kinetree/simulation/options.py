"""The options of `simulate`: their declaration, and the checks of those that are not arrays."""

from __future__ import annotations

import os
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field, fields, replace
from pathlib import Path
from typing import TYPE_CHECKING, Any

import numpy as np
from numpy.typing import ArrayLike

from .._support.checks import positive, whole
from ..backends.mirrored import Mirrored
from ..compiler.lower.build import is_long
from ..errors import InputError, brief, naming, unknown_name, warn_caller
from ..model.contacts import Contact, require_fitting_contacts
from ..model.mechanism import Mechanism, Named
from ..system import System
from .acting.instants import Controller, Force
from .acting.joint_forces import JointSpring
from .acting.sampled import PythonControl, Sampled
from .closing import Loops
from .events import Event
from .methods.fixed_steps import ROUNDING
from .methods.table import METHODS, Method, names_of
from .run_states import Settings

if TYPE_CHECKING:
    from ..algebra.scalars import Scalar
    from ..backends.cuda.libraries import Library
    from ..targets.ptx.driver import Device

ATTEMPTS = 1_000_000
"""The default of max_steps for adaptive methods, in attempts: some seconds for a robot, and more than smooth motions
need."""

FIXED_STEPS = 10**12
"""The default of max_steps for fixed steps: 30 hours for the smallest mechanism. More indicate a mistake in dt."""


def system_of(x: object, who: str = "simulate") -> System:
    """Return the System that a function takes, also behind one on a GPU; a Mechanism gets a new one."""
    if isinstance(x, Mechanism):
        return System(x)
    if isinstance(x, Mirrored):
        x = x.system
    if not isinstance(x, System):
        raise InputError(f"{who} takes a System, not {brief(x)}; load one with kt.load(name or file)")
    return x


def device_of(x: object, q0: object) -> Device | None:
    """Return the GPU of a system on one; None for others.

    A system on any GPU runs where the start is, or on the first GPU if the start is on none.
    """
    if not isinstance(x, Mirrored):
        return None
    from ..backends.cuda.system import CudaSystem
    from ..targets.ptx.driver import driver

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


def kept_by(keep: object, system: object, q0: object) -> Library | None:
    """Return the library of the arrays in which samples stay on a GPU; None if they are copied to the host."""
    if keep == "host":
        return None
    if keep != "device":
        raise InputError(f"keep is {brief(keep)}; give 'host' or 'device'")
    if not isinstance(system, Mirrored):
        raise InputError("keep is 'device': give a system on a GPU, system.on('cuda')")
    from ..backends.cuda.libraries import library_of

    return library_of([("q0", q0)], "simulate")


def list_acting(x: object, what: str, method: str) -> tuple[Scalar, ...]:
    """Return objects that have a given method; a single one counts as a list of one."""
    items = () if x is None else (x,) if hasattr(x, method) else x
    if not isinstance(items, Iterable) or isinstance(items, str):
        raise InputError(f"{what} is {brief(x)}; give a list of objects with {method}(now)")
    items = tuple(items)
    for item in items:
        if not hasattr(item, method) or isinstance(item, type):
            raise InputError(f"{what} has {brief(item)}; give objects with {method}(now)")
    return items


def control_of(x: object) -> tuple[Any, ...]:
    """Return the controllers of a list, or a single one, or none; refuse other objects."""
    items = () if x is None else tuple(x) if isinstance(x, list | tuple) else (x,)
    for item in items:
        if not hasattr(item, "torque") or isinstance(item, type):
            how = "a function goes into kt.TorqueFunction(f) to be compiled, or kt.PythonControl(f)"
            raise InputError(f"control is {brief(x)}; give an object with torque(now): {how}")
    return items


def events_of(x: object) -> tuple[Event, ...]:
    """Return events; a single one counts as a list of one."""
    items = (x,) if isinstance(x, Event) else tuple(x) if isinstance(x, Iterable) else None
    if items is None or not all(isinstance(item, Event) for item in items):
        raise InputError(f"events is {brief(x)}; give a list of kt.Event(function of now)")
    return items


def flag(x: object, what: str) -> bool:
    """Return True or False; refuse anything else, such as the text "no"."""
    if not isinstance(x, bool | np.bool_):
        raise InputError(f"{what} is {brief(x)}; give True or False")
    return bool(x)


def path_of(x: object, what: str) -> Path | None:
    """Return the path of a file, or None; refuse other objects."""
    if x is not None and not isinstance(x, str | os.PathLike):
        raise InputError(f"{what} is {brief(x)}; give the path of a file, or None")
    return None if x is None else Path(x)


def method_name(x: object) -> str:
    """Return the name of a method; refuse anything but text."""
    if not isinstance(x, str):
        raise InputError(f"method is {brief(x)}; give one of auto, {', '.join(METHODS)}")
    return x


def threads_of(x: object) -> int:
    """Return a number of threads; 0 means all cores."""
    return whole(x, "threads", least=0, of="cores, 0 for all") or os.cpu_count() or 1


def choose(name: str, dt: float | None, rtol: float, *, springy: bool = False) -> Method:
    """Return a method by name; `auto` is rk4 if a step is given, else an embedded pair chosen by the tolerance.

    If a step is given, a long mechanism with springs in its joints (`springy`) is treated as stiff.
    """
    if name == "auto" and dt is not None:
        name = "implicit_midpoint" if springy else "rk4"
    elif name == "auto":
        name = "dop853" if rtol <= 1e-7 else "dopri5"
    if name not in METHODS:
        raise unknown_name("method", name, ["auto", *METHODS])
    return METHODS[name]


def settings_of(
    method: Method, times: np.ndarray, dt: float | None, rtol: float, atol: float, max_steps: int | None
) -> Settings:
    """Return the settings of a method: a step, or tolerances."""
    step = None if dt is None else positive(dt, "dt")
    rtol, atol = positive(rtol, "rtol"), positive(atol, "atol")
    most = None if max_steps is None else whole(max_steps, "max_steps")
    if method.adaptive:
        if dt is not None:
            text = f"{method.name} chooses its steps: leave {{dt}} out, or use {names_of(adaptive=False)}"
            raise InputError(naming(text, dt=""))
        first = 1e-3 * float(times[-1] - times[0])
        return Settings(rtol=rtol, atol=atol, first=first, most=most or ATTEMPTS)
    if step is None:
        raise InputError(naming(f"{method.name} takes fixed steps: give {{dt}} [s]", dt=""))
    with np.errstate(over="ignore"):
        count = np.maximum(np.floor(np.diff(times) / step - ROUNDING["float64"]) + 1, 1).sum()
    if count > (most or FIXED_STEPS):
        raise InputError(
            naming(
                f"{{dt}} is {step:g} s: the run takes {count:.3g} steps, more than {{max_steps}} = "
                f"{most or FIXED_STEPS}; give a larger {{dt}}, or a larger {{max_steps}}",
                dt="",
                max_steps="",
            )
        )
    return Settings(dt=step)


Control = Controller | Sampled | PythonControl
"""What determines torques of a run."""


_FIXED = tuple(name for name, method in METHODS.items() if not method.adaptive)
_ADAPTIVE = tuple(name for name, method in METHODS.items() if method.adaptive)

_KINDS = {"float": "number", "int": "whole", "bool": "flag", "str": "choice"}
"""The kinds of values that a form can state, by their types."""


@dataclass(frozen=True, kw_only=True)
class RunOptions:
    """The declaration of the options of `simulate`, which describes them.

    Options of experiments, studies, derivatives of runs, the command line and the studio's form follow from it. Those
    with a help have values that files and command lines can state. `label` and `unit` are those of forms, and
    `methods` are the methods that have an option, if not all have it.
    """

    duration: float | None = field(
        default=None, metadata={"help": "The duration in seconds.", "label": "duration", "unit": "s"}
    )
    times: ArrayLike | None = field(
        default=None, metadata={"help": "The output times in seconds. Default: 1001 over the duration."}
    )
    control: Control | Sequence[Control] | None = None
    forces: Force | Sequence[Force] | None = None
    passive: bool = field(
        default=True,
        metadata={"help": "Damping, friction, springs of the mechanism, or not.", "label": "passive forces"},
    )
    contacts: Contact | Sequence[Contact] | None = None
    parameters: Named | Mapping[str, Any] | None = None
    method: str = field(
        default="auto",
        metadata={
            "help": f"auto, {', '.join(x for x in _FIXED if x != 'moreau')} (with --dt), {', '.join(_ADAPTIVE)}, or "
            "moreau for contacts.",
            "label": "method",
            "choices": {"auto": "chosen by the library"} | {name: method.what for name, method in METHODS.items()},
        },
    )
    dt: float | None = field(
        default=None,
        metadata={
            "help": "The step in seconds, for methods with fixed steps.",
            "label": "time step",
            "unit": "s",
            "methods": _FIXED,
        },
    )
    rtol: float = field(
        default=1e-8,
        metadata={
            "help": "The relative error per step, for the other methods.",
            "label": "relative tolerance",
            "methods": ("auto", *_ADAPTIVE),
        },
    )
    atol: float = field(
        default=1e-10,
        metadata={
            "help": "The absolute error per step, for the other methods.",
            "label": "absolute tolerance",
            "methods": ("auto", *_ADAPTIVE),
        },
    )
    max_steps: int | None = field(
        default=None,
        metadata={
            "help": "The largest number of steps. Default: 10^6, and 10^12 steps of a fixed length.",
            "label": "most steps",
        },
    )
    threads: int = 1
    checkpoint: str | Path | None = None
    loops: Loops | None = field(
        default=None,
        metadata={
            "help": "Method to keep loops closed: projection, baumgarte, baumgarte=RATE, minimal or minimal=JOINTS."
        },
    )

    @classmethod
    def names(cls, *without: str) -> tuple[str, ...]:
        """Return the names of the options besides some of them."""
        return tuple(x.name for x in fields(cls) if x.name not in without)

    @classmethod
    def written(cls) -> dict[str, str]:
        """Return the options whose values files and command lines can state, with their help there."""
        return {x.name: x.metadata["help"] for x in fields(cls) if x.metadata}

    @classmethod
    def form(cls) -> list[dict[str, Any]]:
        """Return the options that are a number, a name or a switch, as a form needs them.

        Each has a name, a kind ("number", "whole", "flag" or "choice"), a default and a help, and those of label, unit,
        choices and methods that it has.
        """
        kinds = {x.name: _KINDS.get(str(x.type).removesuffix(" | None")) for x in fields(cls) if x.metadata}
        return [
            {"name": x.name, "kind": kinds[x.name], "default": x.default, **x.metadata}
            for x in fields(cls)
            if kinds.get(x.name)
        ]


def method_of(mechanism: Mechanism, forces: Sequence[Force], options: RunOptions) -> Method:
    """Return the method of a run."""
    springy = is_long(mechanism) and any(isinstance(force, JointSpring) for force in forces)
    return choose(method_name(options.method), options.dt, positive(options.rtol, "rtol"), springy=springy)


# --- The contacts of a run: given to `simulate`, or from the mechanism ---

PARTS = {"box": "its corners", "capsule": "its two ends"}
"""The parts of shapes that touch a surface; between them, shapes have an extent that does not."""
ROUGH = {"steps": ("outer edges of the steps", "spheres"), "heights": ("hills", "points")}
"""What of a surface reaches between the parts of a shape, and the shapes that touch it."""


def with_contacts(system: System, contacts: object) -> System:
    """Return a System with given contacts; with None, the System itself. It is kept with the given one."""
    found = system.mechanism.contacts if contacts is None else require_fitting_contacts(system.mechanism, contacts)
    for contact in found:
        _warn_of_sides(contact)
    if found == system.mechanism.contacts:
        return system
    made = lambda: System(replace(system.mechanism, contacts=found), system.report)  # noqa: E731
    return system._parts.part(("contacts", found), made)


def _warn_of_sides(contact: Contact) -> None:
    """Warn that edges of steps, or hills, pass unnoticed through the sides of a shape."""
    if contact.shape not in PARTS or contact.surface.kind not in ROUGH:
        return
    rough, remedy = ROUGH[contact.surface.kind]
    warn_caller(
        f"contact {contact.name!r}: a {contact.shape} touches {contact.surface.kind} with {PARTS[contact.shape]} only, "
        f"and {rough} pass through its sides without a force; where they may get there, add contacts of {remedy} along "
        "the sides"
    )
