"""The problem of a run from the options of `simulate`, checked one after the other."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass, replace
from pathlib import Path
from typing import TYPE_CHECKING, Any

import numpy as np
from numpy.typing import ArrayLike

from ..compiler.lower.build import Request, is_long
from ..compiler.runtime.singular_inertia import refuse_singular
from ..errors import InputError
from ..model.contacts import Contact
from ..model.mechanism import Mechanism
from ..model.parameter_values import Named
from ..numbers import positive
from ..system import System
from .array_arguments import fitting, free_values, on_host, output_times, precision, start_state
from .closed_starts import closed_start
from .contact.given_contacts import touching
from .control.driven import resolved_control
from .control.sampled import PythonControl, Sampled
from .device_starts import device_start, stays
from .driven_states import driven_position, driven_start
from .drives import Drives, drives_of
from .forces.joint_forces import JointSpring
from .forces.point_forces import forces_of
from .instants import Controller, Force
from .integrators import Method, choose
from .motion_problem import Problem, closer_of, default_position
from .option_arguments import (
    control_of,
    device_of,
    flag,
    listed,
    method_name,
    path_of,
    settings_of,
    system_of,
    threads_of,
)
from .stabilization import Loops, projected, settled

if TYPE_CHECKING:
    from ..compiler.runtime.cuda.libraries import Library
    from ..compiler.targets.ptx.driver import Device

Control = Controller | Sampled | PythonControl
"""What determines torques of a run."""


@dataclass(frozen=True, kw_only=True)
class RunOptions:
    """Options of `simulate`, as they are given and described there."""

    duration: float | None = None
    times: ArrayLike | None = None
    control: Control | Sequence[Control] | None = None
    forces: Force | Sequence[Force] | None = None
    passive: bool = True
    contacts: Contact | Sequence[Contact] | None = None
    parameters: Named | None = None
    method: str = "auto"
    dt: float | None = None
    rtol: float = 1e-8
    atol: float = 1e-10
    max_steps: int | None = None
    threads: int = 1
    checkpoint: str | Path | None = None
    loops: Loops | None = None


def problem_of(
    system: System | Mechanism,
    q0: ArrayLike | None,
    qd0: ArrayLike | None,
    options: RunOptions,
    library: Library | None = None,
) -> Problem:
    """Return the checked problem of a run; `library` is that of samples that stay on a GPU."""
    o, device = options, device_of(system, q0)
    system, times = touching(system_of(system), o.contacts), output_times(o.duration, o.times)
    parameters, mechanism = free_values(system, o.parameters), system.mechanism
    if mechanism.contacts and device is not None:
        _refuse_contacts_on_gpu(o.method, library)
    control = resolved_control(mechanism, control_of(o.control))
    drives, begin = drives_of(control), float(times[0])
    begun = system if drives is None or not drives.couplings else System(drives.begun(mechanism, begin))

    def position() -> np.ndarray:
        if drives is None:
            return default_position(system, parameters)
        return driven_position(begun, parameters, drives, begin)

    q, qd, dtype = _start(system, (q0, qd0), position, device, library if drives is None else None)
    values = fitting(system, parameters, q.shape[:-1])
    moved = Request("forward_dynamics") if drives is None else Request("hybrid_dynamics", driven=drives.v)
    refuse_singular(mechanism, moved)
    start = closed_start(begun.mechanism, q, qd, values, function=begun.function, closer=lambda: closer_of(begun))
    loops = settled(system, o.loops, start[0], values)
    forces = (*(forces_of(mechanism) if flag(o.passive, "passive") else ()), *listed(o.forces, "forces", "apply"))
    method = _method(mechanism, forces, o)
    problem = Problem(
        system, start, times, method, settings_of(method, times, o.dt, o.rtol, o.atol, o.max_steps),
        parameters=values, forces=forces, control=control, loops=loops,
        threads=threads_of(o.threads), checkpoint=path_of(o.checkpoint, "checkpoint"), auto=o.method == "auto",
        device=device, dtype=dtype,
    )  # fmt: skip
    return problem if drives is None else _driven(problem, drives, (q0 is not None, qd0 is not None))


def _start(
    system: System,
    given: tuple[Any, Any],
    position: Callable[[], np.ndarray],
    device: Device | None,
    library: Library | None,
) -> tuple[Any, Any, str]:
    """Return q and qd with a common leading shape, and the precision of the run; arrays of a `library` may stay."""
    if device is None:
        return *start_state(system, *given, position), "float64"
    dtype = precision(given)
    if library and stays(library, system, device, given):
        return *device_start(system, library, given, dtype), dtype
    return *start_state(system, *on_host(given), position), dtype


def _method(mechanism: Mechanism, forces: Sequence[Force], options: RunOptions) -> Method:
    springy = is_long(mechanism) and any(isinstance(force, JointSpring) for force in forces)
    return choose(method_name(options.method), options.dt, positive(options.rtol, "rtol"), springy=springy)


def _driven(problem: Problem, drives: Drives, given: tuple[bool, bool]) -> Problem:
    """Return a problem whose driven joints start as their references do."""
    p = problem
    projected(p.loops)
    return replace(p, start=driven_start(p.system, p.start, given, p.parameters, drives, float(p.times[0]), p.closer))


def _refuse_contacts_on_gpu(method: str, library: Library | None) -> None:
    """Raise InputError for runs with contacts that a GPU does not compute."""
    if method != "moreau":
        raise InputError(
            "on a GPU, contacts are simulated by time steps only; give method='moreau' with dt, leave out .on('cuda'), "
            "or give contacts=()"
        )
    if library is not None:
        raise InputError("keep is 'device': samples of runs with contacts are copied to the host; leave out keep")
