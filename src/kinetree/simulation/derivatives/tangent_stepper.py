"""The native integrator of states with their derivatives, and the closing of their loops between steps."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from functools import cached_property
from typing import Any

import numpy as np

from ...algebra.arrays import Numbers
from ...compiler.ir.program import Program
from ...compiler.lanes.form import Kernel
from ...runtime.native import native, native_kernel
from ..closing import CompiledCloser
from ..methods.protocol import Scheme
from ..methods.tangent_states import Varied
from .programs import along


@dataclass(frozen=True)
class TangentStepper:
    """The integrator of states [q, its derivatives] and [qd, its derivatives], as `Stepper` is that of states.

    `program` are the rates, or the step of a method that is one. `closing` closes loops after a step.
    """

    program: Program
    closing: Program | None
    varied: Varied
    method: Scheme
    quaternions: tuple[int, ...]

    @cached_property
    def kernel(self) -> Kernel:
        """The loop over time steps in the lane language."""
        return self.method.tangent_kernel(self.program, self.varied, self.quaternions)

    @cached_property
    def gufunc(self) -> Callable[..., Any]:
        """The compiled function of the arguments of the kernel."""
        return native_kernel(self.kernel)

    @cached_property
    def closer(self) -> TangentCloser | None:
        """The closing of loops for states between steps; None without loops."""
        return None if self.closing is None else TangentCloser(self.closing, self.varied)


class TangentCloser:
    """The closing of loops for batches of states with their derivatives."""

    def __init__(self, closing: Program, varied: Varied) -> None:
        """Compile the closing and its derivative along a tangent."""
        inputs = [a for a in closing.inputs if a.name != "h"]  # the length of a step has no effect
        alone = closing.with_inputs(inputs, {})
        self.varied, self.inputs = varied, inputs
        self._closer, self._along = CompiledCloser.of_program(alone), native(along(alone))

    def close(self, q: Numbers, qd: Numbers, parameters: Numbers | None, t: Numbers) -> tuple[Numbers, Numbers]:
        """Return states with their loops closed; NaN if the loops do not close."""
        nq, nv = (a.size for a in self.inputs[1:3])
        closed = self._closer.close(q[..., :nq], qd[..., :nv], parameters, t)
        columns = [split_columns(x, n)[1] for x, n in ((q, nq), (qd, nv))]
        moved = self.columns(t, *closed, parameters, *columns)
        return join_columns(closed[0], moved[0]), join_columns(closed[1], moved[1])

    def columns(
        self, t: Numbers, q: Numbers, qd: Numbers, parameters: Numbers | None, dq: Numbers, dqd: Numbers
    ) -> tuple[Numbers, Numbers]:
        """Return columns [..., columns, .] of closed states: tangents of the motions that the loops allow."""
        more: tuple[Any, ...] = ()
        units: tuple[Any, ...] = ()
        if parameters is not None:
            more, units = (parameters[..., None, :],), (unit_columns(self.varied, parameters.shape[-1]),)
        given = np.asarray(t)[..., None, :], q[..., None, :], qd[..., None, :], *more
        with np.errstate(all="ignore"):
            dq, _ = self._along(*given, dq, dqd, *units)
            _, dqd = self._along(*given, dq, dqd, *units)
        return dq, dqd


def unit_columns(varied: Varied, count: int) -> Numbers:
    """Return the tangents of all parameters in each column, [columns, count]."""
    units = np.zeros((varied.columns, count))
    first = varied.columns - len(varied.parameters)
    for k, entry in enumerate(varied.parameters):
        units[first + k, entry] = 1.0
    return units


def split_columns(x: Numbers, size: int) -> tuple[Numbers, Numbers]:
    """Return a state [..., size] and the columns of its derivatives [..., columns, size]."""
    return x[..., :size], x[..., size:].reshape(*x.shape[:-1], -1, size)


def join_columns(x: Numbers, columns: Numbers) -> Numbers:
    """Return a state with the columns of its derivatives as one array, the reverse of `split_columns`."""
    flat = columns.reshape(*columns.shape[:-2], -1)
    lead = np.broadcast_shapes(x.shape[:-1], flat.shape[:-1])
    return np.concatenate([np.broadcast_to(y, (*lead, y.shape[-1])) for y in (x, flat)], axis=-1)
