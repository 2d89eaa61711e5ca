"""The problem that an engine solves, and how it is stated by the arguments of `simulate`, checked one by one."""

from __future__ import annotations

from collections.abc import Hashable, Mapping, Sequence
from dataclasses import dataclass, replace
from functools import cached_property
from pathlib import Path
from typing import TYPE_CHECKING, Any

import numpy as np
from numpy.typing import ArrayLike

from .._support.identity import Unidentified, value_text
from ..compiler.lower.build import Request, is_long
from ..errors import InputError
from ..model.mechanism import Mechanism, parameter_arguments, parameter_sets
from ..runtime.native import CompiledParts
from ..runtime.singularity import refuse_singular
from ..system import System
from .acting.driven import combine_controls
from .acting.driven_states import driven_position, driven_start
from .acting.drives import Drives
from .acting.instants import Force
from .acting.point_forces import forces_of
from .acting.rates import ForcedMechanism, acting
from .closing import Closer, CompiledCloser, Loops, choose_independent, closer_of, closing_program, require_projection
from .methods.table import Method
from .options import (
    RunOptions,
    control_of,
    device_of,
    flag,
    list_acting,
    method_of,
    path_of,
    settings_of,
    system_of,
    threads_of,
    with_contacts,
)
from .run_states import Settings, output_times
from .starts import closed_start, default_position, parameter_values, start_of

if TYPE_CHECKING:
    from ..backends.cuda.libraries import Library
    from ..targets.ptx.driver import Device


# Objects of this package are functions of their fields, so that equal fields give equal code. Any other object, such as
# a user's function, may depend on data that change between two calls. It is traced again, without the dynamics, and the
# digest of its operations is the key.


def key_of(mechanism: Mechanism, forces: Sequence[Force], control: Any = None) -> Hashable:
    """Return the key of forces and a compiled controller: their values, or the digest of their operations."""
    try:
        return tuple(map(value_text, forces)), value_text(control)
    except Unidentified:
        return acting(ForcedMechanism(mechanism, forces, control)).hash


@dataclass(frozen=True, eq=False)
class Problem:
    """A System, its start q [..., nq] and qd [..., nv], output times, forces, control, and the method.

    All arguments are checked. `parameters` are [np] or [..., np], None without free parameters. `control` is compiled
    with the rates, or evaluated outside of them (`outside`). With `auto` the method may be changed. With a `device`, a
    GPU, the runs are computed there in a precision `dtype`.
    """

    system: System
    start: tuple[np.ndarray, np.ndarray]
    times: np.ndarray
    method: Method
    settings: Settings
    parameters: np.ndarray | None = None
    forces: tuple[Force, ...] = ()
    control: Any = None
    loops: Loops | None = None
    threads: int = 1
    checkpoint: str | Path | None = None
    auto: bool = False
    device: Device | None = None
    dtype: str = "float64"

    @property
    def kept(self) -> CompiledParts:
        """The compiled parts that are kept with the System."""
        return self.system._parts

    @property
    def mechanism(self) -> Mechanism:
        """The mechanism that moves."""
        return self.system.mechanism

    @property
    def lead(self) -> tuple[int, ...]:
        """The shape of the batch; () for a single run."""
        return self.start[0].shape[:-1]

    @property
    def is_long(self) -> bool:
        """Whether the mechanism has too many bodies for compiled rates."""
        return is_long(self.mechanism)

    @property
    def drives(self) -> Drives | None:
        """The driven degrees of freedom; None without any."""
        return getattr(self.control, "drives", None)

    @property
    def outside(self) -> bool:
        """Whether the torques of control are computed outside of the compiled rates."""
        return getattr(self.control, "outside", False)

    @property
    def more(self) -> tuple[np.ndarray, ...]:
        """The parameters as further arguments of compiled functions of samples [..., nt, .]."""
        return parameter_arguments(self.parameters, samples=True)

    @cached_property
    def acting_key(self) -> Hashable:
        """The key of the forces, and of the control if it is compiled with the rates."""
        return key_of(self.mechanism, self.forces, None if self.outside else self.control)

    @property
    def dynamics(self) -> ForcedMechanism:
        """The mechanism with all that acts on it, in double precision."""
        return ForcedMechanism(self.mechanism, self.forces, self.control, self.loops)

    @property
    def closer(self) -> Closer:
        """The compiled closing of the loops of states, with driven coordinates at their values of a time."""
        if (drives := self.drives) is None:
            return closer_of(self.system)
        made = lambda: CompiledCloser.of_program(closing_program(self.mechanism, drives=drives))  # noqa: E731
        return self.kept.part(("closer", self.acting_key), made)


def problem_of(
    system: System | Mechanism,
    q0: ArrayLike | None,
    qd0: ArrayLike | None,
    options: RunOptions,
    library: Library | None = None,
    beside: Mapping[str, tuple[int, ...]] | None = None,
) -> Problem:
    """Return the checked problem of a run; a `library` is given for samples that stay on a GPU.

    The leading axes of q0, qd0, the parameters and all arrays `beside` them, given by their leading shapes, broadcast.
    What does not depend on the state is kept with the System.
    """
    o, device = options, device_of(system, q0)
    system, times = with_contacts(system_of(system), o.contacts), output_times(o.duration, o.times)
    parameters, mechanism = parameter_sets(system.mechanism, o.parameters), system.mechanism
    leads = dict(beside or {}) | ({} if parameters is None else {"parameters": parameters.shape[:-1]})
    if mechanism.contacts and device is not None:
        _refuse_contacts_on_gpu(o.method, library)
    control = None if o.control is None else combine_controls(mechanism, control_of(o.control))
    drives, begin = getattr(control, "drives", None), float(times[0])
    begun = system if drives is None or not drives.couplings else System(drives.begun(mechanism, begin))

    def position() -> np.ndarray:
        if drives is None:
            return default_position(system, parameters)
        return driven_position(begun, parameters, drives, begin)

    q, qd, dtype = start_of(system, (q0, qd0), position, leads, device, library if drives is None else None)
    values = parameter_values(system, parameters, q.shape[:-1])
    _require_inertia(system, drives)
    start = closed_start(begun, q, qd, values) if mechanism.closures else (q, qd)
    loops = None if o.loops is None else choose_independent(system, o.loops, start[0], values)
    forces = (*_passive_forces(system, o.passive), *list_acting(o.forces, "forces", "apply"))
    method = method_of(mechanism, forces, o)
    problem = Problem(
        system, start, times, method, settings_of(method, times, o.dt, o.rtol, o.atol, o.max_steps),
        parameters=values, forces=forces, control=control, loops=loops,
        threads=threads_of(o.threads), checkpoint=path_of(o.checkpoint, "checkpoint"), auto=o.method == "auto",
        device=device, dtype=dtype,
    )  # fmt: skip
    return problem if drives is None else _driven(problem, drives, (q0 is not None, qd0 is not None))


def _require_inertia(system: System, drives: Drives | None) -> None:
    """Raise ModelError if no inertia resists the motion of a joint that is not driven."""
    driven = () if drives is None else drives.v
    request = Request("hybrid_dynamics", driven=driven) if driven else Request("forward_dynamics")
    system._parts.part(("has inertia", driven), lambda: refuse_singular(system.mechanism, request))


def _passive_forces(system: System, passive: bool) -> tuple[Force, ...]:
    """Return the passive forces of the mechanism, if they act."""
    if not flag(passive, "passive"):
        return ()
    return system._parts.part("passive forces", lambda: tuple(forces_of(system.mechanism)))


def _driven(problem: Problem, drives: Drives, given: tuple[bool, bool]) -> Problem:
    """Return a problem whose driven joints start as their references do."""
    p = problem
    require_projection(p.loops)
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
