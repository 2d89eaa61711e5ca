"""Torques that are held: inputs of the compiled rates, behind the free parameters."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass, replace
from typing import Any

import numpy as np

from ...compiler.ir.program import Array, Program
from ...compiler.ir.trace import Op
from ...model.mechanism import Mechanism
from ..acting import Acting
from ..events import Onward
from ..rates import Force, Instant, loads
from .runs import Run

HELD = 1000
"""The number of the input group of held torques in a trace, before they join the parameters."""


@dataclass
class HeldRun:
    """A run, the torque of control from each sample on [..., nt, nv], and how to go on from a sample."""

    run: Run
    torque: np.ndarray
    onward: Onward

    def cut_to(self, ended: Run, times: np.ndarray) -> HeldRun:
        """Return the samples of `ended` (this run, or its part before an event) at the times, and its end."""
        count = len(ended.t)
        torque = self.torque
        cut = ended is not self.run
        if cut:
            torque = torque[[*range(count - 1), max(count - 2, 0)]]
        rows = np.flatnonzero(np.isin(ended.t, times) | (cut & (np.arange(count) == count - 1)))
        kept = replace(ended, t=ended.t[rows], q=ended.q[..., rows, :], qd=ended.qd[..., rows, :])
        kept.reached = int(np.searchsorted(rows, ended.reached))
        return HeldRun(kept, torque[..., rows, :], self.onward)


class _HeldTorque:
    """The controller of a compiled run whose torques come from outside."""

    def torque(self, now: Instant) -> list[Any]:
        return [now.t.trace.input(HELD, k) for k in range(now.mechanism.nv)]


def held(make: Callable[..., Program], mechanism: Mechanism, forces: Sequence[Force]) -> Program:
    """Return rates, euler_step or loads with parameters [free parameters, held torques]."""
    program = make(mechanism, forces, _HeldTorque())
    free = len(mechanism.free_parameters)
    place = {HELD: (3, free)} | ({} if free else {3: (4, 0)})  # without free parameters, h moves on by one

    def moved(op: tuple) -> tuple:
        if op[0] is not Op.INPUT or op[1] not in place:
            return op
        group, first = place[op[1]]
        return (Op.INPUT, group, first + op[2])

    after = program.inputs[4 if free else 3 :]
    inputs = (*program.inputs[:3], Array("parameters", (free + mechanism.nv,)), *after)
    return replace(program, inputs=inputs, ops=tuple(map(moved, program.ops)))


def held_loads(mechanism: Mechanism, forces: Sequence[Force], done: HeldRun) -> dict[str, Any]:
    """Return what acted in a run with held torques: fields of its Trajectory."""
    return Acting(held(loads, mechanism, forces), held=True).fields() | {"control": done.torque}


def blank_run(start: tuple[np.ndarray, np.ndarray], times: np.ndarray) -> Run:
    """Return a run of which nothing but the start is done."""
    lead = start[0].shape[:-1]
    q, qd = (np.full((*lead, len(times), x.shape[-1]), np.nan) for x in start)
    q[..., 0, :], qd[..., 0, :] = start
    return Run(times, q, qd, np.zeros(lead), np.zeros(lead), np.zeros(lead))


def joined(parameters: np.ndarray | None, torque: np.ndarray) -> np.ndarray:
    """Return [free parameters, held torques] with the leading shape of the torques."""
    if parameters is None:
        return torque
    return np.concatenate([np.broadcast_to(parameters, (*torque.shape[:-1], parameters.shape[-1])), torque], axis=-1)
