"""Torques, accelerations, wrenches and control at the samples of a run, each computed when it is first read."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from dataclasses import dataclass
from functools import cached_property
from math import prod
from typing import TYPE_CHECKING, Any

import numpy as np

from ..compiler.ir.program import Program
from ..compiler.ir.trace import Op
from ..runtime.native import native

if TYPE_CHECKING:
    pass

FIELDS = {"torque": "tau", "accelerations": "qdd", "wrenches": "wrenches", "control": "control"}
"""Fields of a run, and the outputs of the Programs that compute them."""

BLOCK = 65_536
"""Samples per native call: enough to make its overhead negligible, and about 50 MB for the largest robots."""


@dataclass(frozen=True)
class LoadPrograms:
    """The torques, accelerations, wrenches and control of a run as functions of its states.

    `loads` is a Program with the outputs tau, qdd and wrenches. `drives` has the output control; None means that no
    control acts. With `held` torques, the control of a run is given: `loads` takes it after the free parameters.
    """

    loads: Program
    drives: Program | None = None
    held: bool = False

    def fields(self) -> dict[str, LoadPrograms]:
        """Return this object for every field that it computes."""
        return dict.fromkeys(("torque", "accelerations", "wrenches") if self.held else FIELDS, self)

    def __call__(self, field: str, run: Any) -> np.ndarray:
        """Return the array of a field at the samples of a run, [..., nt, .]."""
        program = self.drives if field == "control" else self.loads
        if program is None:
            return zeros(run.qd.shape)
        place = [output.name for output in program.outputs].index(FIELDS[field])
        shape = (*run.q.shape[:-1], *program.outputs[place].shape)
        if _is_zero(program, place):
            return zeros(shape)
        out = np.empty((prod(run.shape), len(run.t), *program.outputs[place].shape))
        for rows, times, arguments in self._blocks(run):
            with np.errstate(all="ignore"):  # runs that failed have NaN from then on
                results = self._compiled[program.name](*arguments)
            out[rows, times] = results[place] if len(program.outputs) > 1 else results
        return out.reshape(shape)

    @cached_property
    def _compiled(self) -> Compiled:
        return Compiled({program.name: program for program in (self.loads, self.drives) if program is not None})

    def _blocks(self, run: Any) -> Iterator[tuple[slice, slice, tuple[np.ndarray, ...]]]:
        """Yield blocks of runs and samples as slices, with the arguments of the Programs for them."""
        count = prod(run.shape)
        q, qd = (x.reshape(count, *x.shape[len(run.shape) :]) for x in (run.q, run.qd))
        control = run.control.reshape(qd.shape) if self.held else None
        values = run.constant_parameters
        if values is not None and values.ndim > 1:
            values = values.reshape(count, -1)
        span = min(len(run.t), BLOCK)
        step = max(1, BLOCK // span)
        for first in range(0, count, step):
            rows = slice(first, first + step)
            more = [] if values is None else [values[rows, None, :] if values.ndim > 1 else values]
            for start in range(0, len(run.t), span):
                times = slice(start, start + span)
                if control is not None:
                    more = [_joined(values, rows, control[rows, times])]
                yield rows, times, (run.t[times, None], q[rows, times], qd[rows, times], *more)


class Compiled:
    """Programs by name, compiled when they are first called; pickles contain only the Programs."""

    def __init__(self, programs: dict[str, Program]) -> None:
        """Store the Programs."""
        self._programs = programs
        self._functions: dict[str, Callable[..., Any]] = {}

    def __getitem__(self, name: str) -> Callable[..., Any]:
        if name not in self._functions:
            self._functions[name] = native(self._programs[name])
        return self._functions[name]

    def __reduce__(self):
        return (Compiled, (self._programs,))


def zeros(shape: tuple[int, ...]) -> np.ndarray:
    """Return a read-only array of zeros of any shape that takes no memory."""
    return np.broadcast_to(np.float64(0.0), shape)


def _is_zero(program: Program, place: int) -> bool:
    """Return whether an output is zero for all inputs."""
    return all(program.ops[k][0] is Op.CONST and program.ops[k][1] == 0.0 for k in program.results[place])


def _joined(values: np.ndarray | None, rows: slice, control: np.ndarray) -> np.ndarray:
    """Return [free parameters, held torques] for some runs and samples."""
    if values is None:
        return control
    own = values[rows, None, :] if values.ndim > 1 else values
    return np.concatenate([np.broadcast_to(own, (*control.shape[:-1], own.shape[-1])), control], axis=-1)
