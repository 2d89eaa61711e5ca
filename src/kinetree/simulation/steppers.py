"""Integrators as gufuncs: native functions that compute whole runs, made from the rates of a state and a method."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from functools import cached_property
from typing import TYPE_CHECKING, Any

import numpy as np

from ..algebra.arrays import Numbers
from ..compiler.ir.program import Program
from ..compiler.lanes.form import Kernel
from ..compiler.runtime.native import native_kernel
from .kernels.adaptive_steps import adaptive_kernel
from .kernels.closing_states import closing_kernel
from .kernels.contact_steps import Moreau, contact_kernel
from .kernels.fixed_steps import explicit_kernel, map_kernel
from .kernels.implicit_steps import implicit_kernel
from .kernels.rosenbrock_steps import rosenbrock_kernel
from .loop_closing import Closer
from .rosenbrock import Rosenbrock
from .tableaus import Pair, Tableau

if TYPE_CHECKING:
    from ..compiler.runtime.cuda.lane_kernel import LaneKernel
    from ..compiler.targets.ptx.driver import Device


@dataclass(frozen=True)
class Stepper:
    """The integrator of one Program of rates by one method; `method` is None for a Program that is a step itself.

    `closing` is the Program that closes loops after each step (`loop_closing.closing_program`). With a `device`, a GPU,
    runs are computed there.
    """

    program: Program
    method: Tableau | Pair | Moreau | None
    quaternions: tuple[int, ...]
    dtype: str = "float64"
    closing: Program | None = None
    device: Device | None = None

    @property
    def adaptive(self) -> bool:
        """Whether the method controls the length of its steps."""
        return isinstance(self.method, Pair)

    @cached_property
    def closer(self) -> Closer | KernelCloser | None:
        """The closing of loops for states between steps; None without loops."""
        if self.closing is None:
            return None
        if self.device is None:
            return Closer.of_program(self.closing)
        return KernelCloser(self._on_device(closing_kernel(self.closing, dtype=self.dtype)))

    @cached_property
    def kernel(self) -> Kernel:
        """The loop over time steps in the lane language; its arguments are listed in the modules of `kernels`."""
        return self._kernel(in_registers=False)

    @cached_property
    def register_kernel(self) -> Kernel:
        """The same loop for processors that keep the state of a run in registers, such as graphics cards."""
        return self._kernel(in_registers=True)

    def _kernel(self, *, in_registers: bool) -> Kernel:
        given = (self.quaternions, self.closing)
        if self.method is None:
            return map_kernel(self.program, *given, dtype=self.dtype)
        if isinstance(self.method, Moreau):
            return contact_kernel(self.program, self.method, *given, dtype=self.dtype)
        if isinstance(self.method, Rosenbrock):
            return rosenbrock_kernel(self.program, self.method, *given, dtype=self.dtype)
        if isinstance(self.method, Pair):
            return adaptive_kernel(self.program, self.method, *given, dtype=self.dtype)
        if self.method.implicit:
            return implicit_kernel(self.program, self.method, *given, dtype=self.dtype)
        return explicit_kernel(self.program, self.method, *given, dtype=self.dtype, in_registers=in_registers)

    @cached_property
    def gufunc(self) -> Callable[..., Any]:
        """The compiled function of the arguments of the kernel: a gufunc, or a kernel on a GPU."""
        if self.device is None:
            return native_kernel(self.kernel, self.dtype)
        return self._on_device(self.register_kernel)

    def _on_device(self, kernel: Kernel) -> LaneKernel:
        from ..compiler.runtime.cuda.lane_kernel import LaneKernel

        assert self.device is not None, "a kernel on a GPU requires one"
        return LaneKernel(kernel, self.dtype, self.device)


class KernelCloser:
    """The closing of loops on a GPU, for states at several times."""

    def __init__(self, kernel: LaneKernel) -> None:
        """Store the kernel of `closing_states`."""
        self.kernel = kernel

    def close(
        self, q: Numbers, qd: Numbers, parameters: Numbers | None = None, t: Numbers | None = None
    ) -> tuple[Numbers, Numbers]:
        """Return states [..., nt, .] with their loops closed; NaN if the loops do not close. No joint is driven."""
        more = () if parameters is None else (parameters[..., 0, :],)
        closed = np.empty_like(q), np.empty_like(qd)
        for j in range(q.shape[-2]):
            _, _, *found, _ = self.kernel(q[..., j, :], qd[..., j, :], *more, np.zeros(0))
            for x, y in zip(closed, found, strict=True):
                x[..., j, :] = y
        return closed
