"""Torques that are held: inputs of the compiled rates, behind the free parameters."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass, replace
from typing import Any

import numpy as np

from ...compiler.ir.program import Array, Program
from ...model.mechanism import Mechanism
from ..acting import Acting
from ..events import Onward
from ..rates import Force, Instant, loads
from .runs import Run

HELD = "held"
"""The name of the input of held torques, before they join the parameters."""


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
    """The controller of a compiled run whose torques come from outside, as an input of its own."""

    def __init__(self, count: int) -> None:
        self.inputs = (Array(HELD, (count,)),)

    def torque(self, now: Instant) -> list[Any]:
        return list(now.given[HELD])


def held(make: Callable[..., Program], mechanism: Mechanism, forces: Sequence[Force]) -> Program:
    """Return rates, euler_step or loads with parameters [free parameters, held torques]."""
    program = make(mechanism, forces, _HeldTorque(mechanism.nv))
    free = len(mechanism.free_parameters)
    together = Array("parameters", (free + mechanism.nv,))
    others = [a for a in program.inputs if a.name not in (HELD, together.name)]
    return program.with_inputs((*others[:3], together, *others[3:]), {HELD: (together.name, free)})


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
