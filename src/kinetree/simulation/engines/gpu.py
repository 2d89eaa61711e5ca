"""Runs on a GPU: integrator, mechanism, forces and controller are one kernel, with one run per thread.

The runs of a batch are computed in blocks, each over all times. A block fills the GPU, and its samples fit into the
memory of the GPU. A block is continued piece by piece as on the CPU, so that Ctrl-C and progress are handled.
"""

from __future__ import annotations

from dataclasses import replace
from math import prod
from typing import TYPE_CHECKING, Any

import numpy as np

from ...errors import InputError
from ..drives import drives_of
from ..events import Watch
from ..integrators import METHODS, stepper
from ..motion_problem import Problem
from ..run_states import Run
from ..steppers import Stepper
from .checkpoints import ARRAYS
from .engine import Motion, Progress, no_checkpoint
from .native import acting_on
from .pieces import PIECE, Pace
from .runs import run

if TYPE_CHECKING:
    from ...compiler.targets.ptx.driver import Device

BLOCK = 1 << 19
"""The most runs of a block: several times as many as the largest GPUs execute at the same time."""

SHARE = 0.25
"""The largest part of the free memory of a GPU that a block takes."""

LOOK = 0.15
"""The intended time of a call [s]: short for Ctrl-C, long beside the copies of states."""

CPU = "simulate the system itself, which runs on the CPU"
"""The alternative, for messages."""

STIFF = ("rodas5p",)
"""Native methods without a kernel for GPUs: the matrices of their runs do not fit into registers."""

LEAST_RTOL = {"float64": 0.0, "float32": 1e-6}
"""The smallest relative tolerance by precision: steps cannot be more accurate than a few units of rounding."""


class Gpu:
    """The engine for systems on a GPU, by the methods with a tableau or a step of their own."""

    def takes(self, problem: Problem) -> bool:
        """Return whether the system is on a GPU."""
        return problem.device is not None

    def run(self, problem: Problem, watch: Watch, progress: Progress | None) -> Motion:
        """Integrate block by block."""
        p, device = problem, problem.device
        assert device is not None, "`takes` is true for systems on a GPU only"
        done = in_blocks(p, device, stepper_on(p, watch, device), p.start, progress)

        def onward(index: tuple[int, ...], k: int, t: float) -> tuple[np.ndarray, np.ndarray]:
            raise AssertionError("events are refused")

        return Motion(done.with_end(), onward, lambda ended: (ended, acting_on(p)))


def stepper_on(p: Problem, watch: Watch, device: Device) -> Stepper:
    """Return the integrator of a problem on a GPU; InputError for what runs on the CPU only."""
    _refuse(p)
    refuse_on_gpu(p, watch)
    return p.kept.part(
        ("gpu", device.index, p.dtype, p.method.name, p.loops, p.acting_key),
        lambda: stepper(p.mechanism, p.method, p.forces, p.control, loops=p.loops, dtype=p.dtype, device=device),
    )


def refuse_on_gpu(p: Problem, watch: Watch) -> None:
    """Raise InputError for options that no engine on a GPU supports."""
    if watch:
        raise InputError(f"events are located on the CPU only; leave them out, or {CPU}")
    if p.outside:
        raise InputError(
            f"{type(p.control).__name__} is evaluated between the steps, on the CPU only; use a controller that is "
            f"compiled, such as kt.PD or kt.TorqueFunction, or {CPU}"
        )
    if p.is_long:
        raise InputError(
            f"{p.mechanism.name!r} has {len(p.mechanism.bodies)} bodies, too many for the kernel of a GPU; {CPU}"
        )
    if p.threads != 1:
        raise InputError(f"threads is {p.threads}: it is for the CPU; leave it out for a GPU")
    no_checkpoint(p, "a run on a GPU")


def _refuse(p: Problem) -> None:
    """Raise InputError for methods that run on the CPU only."""
    if not p.outside and (p.method.scheme is None or p.method.name in STIFF):
        known = ", ".join(name for name, m in METHODS.items() if m.scheme and name not in STIFF)
        raise InputError(f"{p.method.name} runs on the CPU only; on a GPU use {known}, or {CPU}")
    if p.method.adaptive and drives_of(p.control) is not None:
        raise InputError(f"{p.method.name} cannot drive joints on a GPU; use fixed steps, such as dt=1e-3, or {CPU}")
    if p.method.adaptive and p.settings.rtol < LEAST_RTOL[p.dtype]:
        raise InputError(
            f"rtol is {p.settings.rtol:g}, too small for float32; give {LEAST_RTOL[p.dtype]:g} or more, such as "
            "rtol=1e-5, atol=1e-6, or start from float64 arrays"
        )


def in_blocks(
    p: Problem, device: Device, made: Stepper, state: tuple[np.ndarray, np.ndarray], progress: Progress | None
) -> Run:
    """Return the runs from a state, which may have further entries after the velocities, of all blocks as one."""
    count = prod(p.lead)
    start = tuple(x.reshape(count, x.shape[-1]) for x in state)
    values = p.parameters
    if values is not None and values.ndim > 1:
        values = values.reshape(count, -1)
    times = p.times.astype(p.dtype).astype(float)  # the times that the kernel compares with
    whole = _blank(start, times, p.settings.first)
    size = max(1, min(BLOCK, int(SHARE * device.free_memory() / _bytes(p, start)), count))
    for first in range(0, count, size):
        rows = slice(first, first + size)
        own = values[rows] if values is not None and values.ndim > 1 else values
        block = replace(whole, failures={}, reached=1, **{name: getattr(whole, name)[rows] for name in ARRAYS})
        run(
            made, start[0][rows], start[1][rows], times, p.settings, parameters=own, result=block,
            progress=_part(progress, first, size, count), pace=Pace(growing=False, budget=256.0, look=LOOK, tight=True),
        )  # fmt: skip
        whole.failures |= {first + k: why for k, why in block.failures.items()}
        whole.reached, whole.interrupted = block.reached, block.interrupted
        if block.interrupted:
            whole.note = f"runs 0 to {first - 1} are finished" if first else ""
            break
    shaped: dict[str, Any] = {}
    for name in ARRAYS:
        x = getattr(whole, name)
        shaped[name] = x.reshape((*p.lead, *x.shape[1:]))
    return replace(whole, t=p.times, **shaped)


def _bytes(p: Problem, start: tuple[np.ndarray, ...]) -> int:
    """Return the memory of a run on the GPU: its samples of a piece, its state, and as much again."""
    samples = min(len(p.times), PIECE + 1)
    return 2 * (samples + 4) * sum(x.shape[-1] for x in start) * np.dtype(p.dtype).itemsize


def _blank(start: tuple[np.ndarray, ...], times: np.ndarray, first: float) -> Run:
    """Return runs with NaN after the start; neighboring runs are next to each other in memory, as a GPU writes them."""
    count = len(start[0])
    q, qd = (np.moveaxis(np.full((len(times), x.shape[-1], count), np.nan), -1, 0) for x in start)
    q[:, 0], qd[:, 0] = start
    return Run(times, q, qd, np.zeros(count), np.zeros(count), np.full(count, first))


def _part(progress: Progress | None, first: int, size: int, count: int) -> Progress | None:
    """Return the progress of a block as a part of the whole."""
    if progress is None:
        return None
    return lambda part: progress((first + part * min(size, count - first)) / count)
