"""Integrators as gufuncs: native functions that compute whole runs, made from the rates of a state and a method."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from functools import cached_property
from typing import TYPE_CHECKING, Any

from ...compiler.ir.program import Program
from ...compiler.lanes.form import Kernel
from ...model.axes import quaternion_places
from ...model.mechanism import Mechanism
from ...runtime.native import native_kernel
from ..acting.drives import Drives, drives_of
from ..acting.instants import Controller, Force
from ..acting.rates import centered_scheme
from ..closing import Closer, CompiledCloser, closing_program
from ..stabilization import Baumgarte, Loops, locked_by
from .protocol import Integrator, Scheme

if TYPE_CHECKING:
    from ...backends.cuda.lane_kernel import LaneKernel
    from ...targets.ptx.driver import Device


@dataclass(frozen=True)
class Stepper:
    """The integrator of one Program of rates, or of one that is a step, by one method.

    `closing` is the Program that closes loops after each step (`closing.closing_program`). With a `device`, a GPU,
    runs are computed there.
    """

    program: Program
    method: Integrator
    quaternions: tuple[int, ...]
    dtype: str = "float64"
    closing: Program | None = None
    device: Device | None = None

    @property
    def adaptive(self) -> bool:
        """Whether the method controls the length of its steps."""
        return self.method.adaptive

    @cached_property
    def closer(self) -> Closer | None:
        """The closing of loops for states between steps; None without loops."""
        if self.closing is None:
            return None
        build = native_kernel if self.device is None else lambda kernel, _: self._on_device(kernel)
        return CompiledCloser.of_program(self.closing, self.dtype, build)

    @cached_property
    def kernel(self) -> Kernel:
        """The loop over time steps in the lane language; its arguments are listed in the modules of `kernels`."""
        return self._kernel(in_registers=False)

    @cached_property
    def register_kernel(self) -> Kernel:
        """The same loop for processors that keep the state of a run in registers, such as graphics cards."""
        return self._kernel(in_registers=True)

    def _kernel(self, *, in_registers: bool) -> Kernel:
        return self.method.kernel(
            self.program, self.quaternions, self.closing, dtype=self.dtype, in_registers=in_registers
        )

    @cached_property
    def gufunc(self) -> Callable[..., Any]:
        """The compiled function of the arguments of the kernel: a gufunc, or a kernel on a GPU."""
        if self.device is None:
            return native_kernel(self.kernel, self.dtype)
        return self._on_device(self.register_kernel)

    def _on_device(self, kernel: Kernel) -> LaneKernel:
        from ...backends.cuda.lane_kernel import LaneKernel

        assert self.device is not None, "a kernel on a GPU requires one"
        return LaneKernel(kernel, self.dtype, self.device)


def stepper(
    mechanism: Mechanism,
    scheme: Scheme,
    forces: Sequence[Force] = (),
    control: Controller | None = None,
    *,
    loops: Loops | None = None,
    dtype: str = "float64",
    device: Device | None = None,
) -> Stepper:
    """Return the native integrator of a mechanism under forces and control; `loops` are projected by default.

    With a `device`, it runs on that GPU.
    """
    scheme = centered_scheme(scheme, mechanism, control, loops)
    program = scheme.make_program(mechanism, forces, control, loops=loops, dtype=dtype)
    return stepper_of(mechanism, program, scheme, loops, dtype, device, drives=drives_of(control))


def stepper_of(
    mechanism: Mechanism,
    program: Program,
    scheme: Integrator,
    loops: Loops | None = None,
    dtype: str = "float64",
    device: Device | None = None,
    drives: Drives | None = None,
) -> Stepper:
    """Return the native integrator of a Program of rates, or of one that is a step."""
    alone = drives is None and (isinstance(loops, Baumgarte) or not mechanism.closures)
    closing = None if alone else closing_program(mechanism, locked_by(loops), drives=drives, dtype=dtype)
    return Stepper(program, scheme, tuple(quaternion_places(mechanism)), dtype, closing, device)
