"""Runs with held torques: sampled control computes them at instants, and they are constant in between.

Held torques are inputs of the compiled rates, after the free parameters. A run has samples at the output times and at
all sampling instants between them.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import replace
from itertools import pairwise

import numpy as np

from ...algebra.scalars import Scalar
from ...compiler.ir.program import Array, Program
from ...errors import InputError
from ...model.mechanism import Mechanism
from ..acting.instants import Instant
from ..acting.rates import ForcedMechanism, centered_scheme, loads
from ..acting.sampled import Law
from ..events import Watch
from ..methods.stepper import Stepper, stepper_of
from ..problem import Problem
from ..run_states import LoadPrograms, Run, blank_run, of_run
from .engine import Fields, Motion, Progress, no_checkpoint, run

HELD = "held"
"""The name of the input of held torques, before they are appended to the parameters."""

NEAR = 1e-9
"""The distance, relative to a period, within which a sampling instant is set to an output time: above rounding."""


def run_held_torques(problem: Problem, watch: Watch | None, progress: Progress | None) -> Motion:
    """Carry out runs whose control is evaluated at a rate, from one sampling instant to the next."""
    p = problem
    refuse_outside(p)
    if not p.method.native:
        raise InputError(f"{p.method.name} cannot hold sampled torques; use a native method")
    law = Law(p.mechanism, p.control, p.parameters, p.kept.native)
    made = p.kept.part(("held", p.method.name, p.acting_key), lambda: _stepper(p))
    instants = sampling_instants(p.times, p.control.rate)
    grid = np.union1d(p.times, instants)
    result = blank_run(p.start, grid)
    torque = np.full((*p.lead, len(grid), p.mechanism.nv), np.nan)
    marks = np.append(np.searchsorted(grid, instants), len(grid) - 1)

    def onward(index: tuple[int, ...], k: int, t: float) -> tuple[np.ndarray, np.ndarray]:
        own = None if p.parameters is None else of_run(p.parameters, index)
        near, more = replace(p.settings, first=t - grid[k]), join_columns(own, torque[(*index, k)])
        state = result.q[(*index, k)], result.qd[(*index, k)]
        short = run(made, *state, np.array([grid[k], t]), near, parameters=more)
        if short.interrupted:
            raise KeyboardInterrupt
        return short.q[-1], short.qd[-1]

    try:
        for a, b in pairwise(marks):
            state = result.q[..., a, :], result.qd[..., a, :]
            tau = law(result, float(grid[a]), *state)
            if tau is None:
                break
            near, more = replace(p.settings, first=float(grid[b] - grid[a])), join_columns(p.parameters, tau)
            piece = run(made, *state, grid[a : b + 1], near, parameters=more, threads=p.threads)
            _append(result, piece, a, b)
            torque[..., a : b + 1, :] = tau[..., None, :]
            if progress is not None:
                progress((grid[b] - grid[0]) / (grid[-1] - grid[0]))
            if piece.interrupted or result.all_failed or (watch and watch.stops(result)):
                break
    except KeyboardInterrupt:
        result.interrupted = True
    return Motion(result, onward, lambda ended: complete_run(p, result, ended, torque))


def refuse_outside(problem: Problem) -> None:
    """Raise an InputError for options that control outside of the compiled rates does not support."""
    who = type(problem.control).__name__
    no_checkpoint(problem, who)
    if problem.loops is not None and not problem.loops.projects:
        raise InputError(f"{who} closes loops by Projection alone; leave loops out")


def complete_run(problem: Problem, whole: Run, ended: Run, torque: np.ndarray) -> tuple[Run, Fields]:
    """Return the samples at the output times, and at an event that ended the run, with the loads there.

    `torque` is the torque of control that is held from each sample of the whole run on, [..., nt, nv].
    """
    p, count, cut = problem, len(ended.t), ended is not whole
    if cut:
        torque = torque[[*range(count - 1), max(count - 2, 0)]]
    rows = np.flatnonzero(np.isin(ended.t, p.times) | (cut & (np.arange(count) == count - 1)))
    done = replace(ended, t=ended.t[rows], q=ended.q[..., rows, :], qd=ended.qd[..., rows, :])
    done.reached = int(np.searchsorted(rows, ended.reached))
    acting = p.kept.part(
        ("held loads", p.acting_key), lambda: LoadPrograms(with_held_torques(loads, p.dynamics), held=True)
    )
    return done, acting.fields() | {"control": torque[..., rows, :]}


def _stepper(problem: Problem) -> Stepper:
    dynamics = ForcedMechanism(problem.mechanism, problem.forces)
    scheme = centered_scheme(problem.method.scheme, dynamics)
    return stepper_of(problem.mechanism, with_held_torques(scheme.make_program, dynamics), scheme)


class HeldTorque:
    """The controller of a compiled run whose torques are a separate input."""

    def __init__(self, count: int) -> None:
        """Declare the input."""
        self.inputs = (Array(HELD, (count,)),)

    def torque(self, now: Instant) -> list[Scalar]:
        """Return the input."""
        return list(now.given[HELD])


def with_held_torques(make: Callable[[ForcedMechanism], Program], dynamics: ForcedMechanism) -> Program:
    """Return rates, a step or loads with parameters [free parameters, held torques], which replace the control."""
    m = dynamics.mechanism
    return held_as_parameters(make(replace(dynamics, control=HeldTorque(m.nv))), m)


def held_as_parameters(program: Program, mechanism: Mechanism) -> Program:
    """Return a Program with parameters [free parameters, held inputs]."""
    free, count = len(mechanism.free_parameters), sum(a.size for a in program.inputs if a.name == HELD)
    together = Array("parameters", (free + count,))
    others = [a for a in program.inputs if a.name not in (HELD, together.name)]
    return program.with_inputs((*others[:3], together, *others[3:]), {HELD: (together.name, free)})


def join_columns(parameters: np.ndarray | None, torque: np.ndarray) -> np.ndarray:
    """Return [free parameters, held torques] with the leading shape of the torques."""
    if parameters is None:
        return torque
    return np.concatenate([np.broadcast_to(parameters, (*torque.shape[:-1], parameters.shape[-1])), torque], axis=-1)


def sampling_instants(times: np.ndarray, rate: float) -> np.ndarray:
    """Return the instants from the first time to before the last; those next to an output time are set to it."""
    count = int(np.ceil((times[-1] - times[0]) * rate - NEAR))
    instants = times[0] + np.arange(count) / rate
    above = np.clip(np.searchsorted(times, instants), 1, len(times) - 1)
    nearest = np.where(instants - times[above - 1] < times[above] - instants, times[above - 1], times[above])
    return np.where(np.abs(nearest - instants) <= NEAR / rate, nearest, instants)


def _append(result: Run, piece: Run, a: int, b: int) -> None:
    """Copy the samples a + 1 to b of a piece into the result."""
    result.q[..., a + 1 : b + 1, :], result.qd[..., a + 1 : b + 1, :] = piece.q[..., 1:, :], piece.qd[..., 1:, :]
    result.evaluations += piece.evaluations
    result.steps += piece.steps
    result.reached = a + piece.reached
    result.interrupted = piece.interrupted
    for k, reason in piece.failures.items():
        result.failures.setdefault(k, reason)
