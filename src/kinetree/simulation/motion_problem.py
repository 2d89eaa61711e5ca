"""The problem that an engine solves: a System, its start, output times, forces, control, method and settings."""

from __future__ import annotations

from collections.abc import Hashable, Sequence
from dataclasses import dataclass
from functools import cached_property
from pathlib import Path
from typing import TYPE_CHECKING, Any

import numpy as np

from .._support.identity import Unidentified, value_text
from ..compiler.lower.build import is_long
from ..model.mechanism import Mechanism, parameter_arguments
from ..runtime.native import CompiledParts
from ..system import System
from .acting.drives import Drives, drives_of
from .acting.instants import Force
from .acting.rates import acting
from .closing import Closer, closing_program
from .methods.table import Method
from .run_states import Settings
from .stabilization import Loops

if TYPE_CHECKING:
    from ..targets.ptx.driver import Device


# Objects of this package are functions of their fields, so that equal fields give equal code. Any other object, such as
# a user's function, may depend on data that change between two calls. It is traced again, without the dynamics, and the
# digest of its operations is the key.


def key_of(mechanism: Mechanism, forces: Sequence[Any], control: Any = None) -> Hashable:
    """Return the key of forces and a compiled controller: their values, or the digest of their operations."""
    try:
        return tuple(map(value_text, forces)), value_text(control)
    except Unidentified:
        return acting(mechanism, forces, control).hash


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
    def closer(self) -> Closer:
        """The compiled closing of the loops of states, with driven coordinates at their values of a time."""
        if (drives := drives_of(self.control)) is None:
            return closer_of(self.system)
        return driven_closer(self.system, self.acting_key, drives)


def closer_of(system: System) -> Closer:
    """Return the compiled closing of the loops of a System."""
    return system._parts.part("closer", lambda: Closer.of_program(closing_program(system.mechanism)))


def driven_closer(system: System, key: Hashable, drives: Drives) -> Closer:
    """Return the compiled closing of the loops of a System with driven joints."""
    made = lambda: Closer.of_program(closing_program(system.mechanism, drives=drives))  # noqa: E731
    return system._parts.part(("closer", key), made)


def default_position(system: System, parameters: np.ndarray | None) -> np.ndarray:
    """Return zero displacements; for a closed mechanism, the closed position nearest to its guess, found only once."""
    if not system.closures:
        return system.neutral()
    key = "start", value_text(parameters)
    return system._parts.part(key, lambda: system.assemble(parameters=parameters)).copy()
