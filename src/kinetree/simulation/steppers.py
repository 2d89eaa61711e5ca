"""Integrators as gufuncs: the rates of a state and a method give one native function of whole runs."""

from __future__ import annotations

from dataclasses import dataclass
from functools import cached_property

import numpy as np

from ..compiler.ir.program import Program
from ..compiler.lanes.form import Kernel
from ..compiler.runtime.native import native_kernel
from .kernels.adaptive_steps import adaptive_kernel
from .kernels.fixed_steps import explicit_kernel, map_kernel
from .kernels.implicit_steps import implicit_kernel
from .loop_closing import Closer
from .tableaus import Pair, Tableau


@dataclass(frozen=True)
class Stepper:
    """One method on one program of rates; `method` is None for a program that makes steps by itself.

    `closing` keeps loops closed after each step (closing.py).
    """

    program: Program
    method: Tableau | Pair | None
    quaternions: tuple[int, ...]
    dtype: str = "float64"
    closing: Program | None = None

    @property
    def adaptive(self) -> bool:
        """Whether the method chooses its steps."""
        return isinstance(self.method, Pair)

    @cached_property
    def closer(self) -> Closer | None:
        """What closes the loops of states between steps."""
        return Closer.of_program(self.closing) if self.closing else None

    @cached_property
    def kernel(self) -> Kernel:
        """The loop over time steps in the lane language; the modules of `simulation.kernels` tell its arguments."""
        given = (self.quaternions, self.closing)
        if self.method is None:
            return map_kernel(self.program, *given)
        if isinstance(self.method, Pair):
            return adaptive_kernel(self.program, self.method, *given, dtype=self.dtype)
        if self.method.implicit:
            return implicit_kernel(self.program, self.method, *given, dtype=self.dtype)
        return explicit_kernel(self.program, self.method, *given)

    @cached_property
    def gufunc(self) -> np.ufunc:
        """The native function of the kernel's arguments."""
        return native_kernel(self.kernel, self.dtype)
