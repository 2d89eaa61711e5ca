"""Runs on a GPU: integrator, mechanism, forces and controller are one kernel, with one run per thread.

The runs of a batch are computed in blocks, each over all times. A block fills the GPU, and its samples fit into the
memory of the GPU. A block is continued piece by piece as on the CPU, so that Ctrl-C and progress are handled.
"""

from __future__ import annotations

import time
from dataclasses import dataclass, replace
from math import prod
from typing import TYPE_CHECKING, Any, NamedTuple

import numpy as np

from ..._support.interruption import keep_in_interrupt
from ...errors import InputError
from ..acting.drives import drives_of
from ..closing import CompiledCloser
from ..events import Watch
from ..methods.stepper import Stepper, stepper
from ..methods.table import METHODS
from ..outcomes import OF_KERNEL, Ending, Endings, Outcome
from ..problem import Problem
from ..run_states import Run
from ..starts import runs_first
from .engine import ARRAYS, Motion, Progress, no_checkpoint, run
from .native import acting_on
from .pieces import PIECE, Pace

if TYPE_CHECKING:
    from ...backends.cuda.code import LaneKernel
    from ...backends.cuda.libraries import Library
    from ...targets.ptx.driver import Device


BLOCK = 1 << 19
"""The most runs of a block: several times as many as the largest GPUs execute at the same time."""

SHARE = 0.25
"""The largest part of the free memory of a GPU that a block takes."""

LOOK = 0.15
"""The intended time of a call [s]: short for Ctrl-C, long beside the copies of states."""

CPU = "simulate the system itself, which runs on the CPU"
"""The alternative, for messages."""

LEAST_RTOL = {"float64": 0.0, "float32": 1e-6}
"""The smallest relative tolerance by precision: steps cannot be more accurate than a few units of rounding."""


def run_on_gpu(problem: Problem, watch: Watch | None, progress: Progress | None) -> Motion:
    """Carry out runs of a system on a GPU by a native method, block by block."""
    p, device = problem, problem.device
    assert device is not None, "`takes` is true for systems on a GPU only"
    done = in_blocks(p, device, stepper_on(p, watch, device), p.start, progress)

    def onward(index: tuple[int, ...], k: int, t: float) -> tuple[np.ndarray, np.ndarray]:
        raise AssertionError("events are refused")

    return Motion(done.with_end(), onward, lambda ended: (ended, acting_on(p)))


def stepper_on(p: Problem, watch: Watch | None, device: Device) -> Stepper:
    """Return the integrator of a problem on a GPU; InputError for what runs on the CPU only."""
    _refuse(p)
    refuse_on_gpu(p, watch)
    return p.kept.part(
        ("gpu", device.index, p.dtype, p.method.name, p.loops, p.acting_key),
        lambda: stepper(replace(p.dynamics, dtype=p.dtype), p.method.scheme, device=device),
    )


def refuse_on_gpu(p: Problem, watch: Watch | None) -> None:
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
    if not p.outside and not (p.method.native and p.method.scheme.on_gpu):
        known = ", ".join(name for name, m in METHODS.items() if m.native and m.scheme.on_gpu)
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
            made,
            start[0][rows],
            start[1][rows],
            times,
            p.settings,
            parameters=own,
            result=block,
            progress=_part(progress, first, size, count),
            pace=Pace(growing=False, budget=256.0, look=LOOK, tight=True),
        )
        whole.failures |= {first + k: why for k, why in block.failures.items()}
        whole.reached, whole.interrupted = block.reached, block.interrupted
        if block.interrupted:
            whole.note = f"runs 0 to {first - 1} are finished" if first else ""
            break
    shaped: dict[str, np.ndarray] = {}
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


# --- Runs whose samples stay in the memory of a GPU, as arrays of the library of their start ---


class _Held(NamedTuple):
    """Memory of an array of another library, with the array, which keeps it alive."""

    address: int
    size: int
    array: object


@dataclass(frozen=True)
class DeviceRuns:
    """The samples of runs in the memory of a GPU: q [..., nt, nq] and qd [..., nt, nv] at the times t [nt].

    In memory, neighboring runs are next to each other. Samples that a run did not reach are NaN. `status` is "finished"
    or "stopped: reason", `outcome` the same as an Outcome, and `failed` has the indices of the runs that stopped early.
    """

    t: np.ndarray
    q: Any
    qd: Any
    endings: Endings
    failed: np.ndarray
    evaluations: int
    method: str

    @property
    def outcome(self) -> Outcome:
        """How the runs ended: the outcome of the first that stopped, otherwise finished."""
        return self.endings.outcome

    @property
    def status(self) -> str:
        """How the runs ended, as text."""
        return self.endings.status(batch=True)


def device_runs(p: Problem, watch: Watch | None, library: Library, progress: Progress | None) -> DeviceRuns:
    """Integrate over all times, a few intervals per launch; Ctrl-C raises KeyboardInterrupt with the samples so far."""
    device = p.device
    assert device is not None, "the system is on a GPU"
    found, pressed = _Kept(p, device, stepper_on(p, watch, device), library).run(progress)
    if pressed:
        text = f"simulate was interrupted at t = {found.t[-1]:.9g} s; the states so far are `run`"
        raise keep_in_interrupt(text, run=found)
    return found


class _Kept:
    """The memory of runs on a GPU, and their launches: [entries, runs] for every array of the kernel."""

    def __init__(self, p: Problem, device: Device, made: Stepper, library: Library) -> None:
        """Copy the start to the GPU, and allocate the samples."""
        self.p, self.device, self.made, self.library = p, device, made, library
        self.kernel: Any = made.gufunc
        self.count, self.dtype = prod(p.lead), np.dtype(p.dtype)
        self.times = p.times.astype(self.dtype)
        m = p.mechanism
        self.samples = {
            name: library.empty((len(p.times), size, self.count), p.dtype, device.index)
            for name, size in (("q", m.nq), ("qd", m.nv))
        }
        self.places = {name: library.view(x, name).pointer for name, x in self.samples.items()}
        self.memory: dict[str, Any] = {}
        for name, x in zip(("q0", "qd0"), p.start, strict=True):
            if isinstance(x, np.ndarray):
                self._fill(name, x.reshape(self.count, -1).T)
            else:
                self.memory[name] = _Held(
                    library.view(x, name).pointer, x.shape[-1] * self.count * self.dtype.itemsize, x
                )
        if p.parameters is not None:
            values = np.broadcast_to(p.parameters, (*p.lead, p.parameters.shape[-1]))
            self._fill("parameters", values.reshape(self.count, -1).T)
        for name, size in (("q_end", m.nq), ("qd_end", m.nv), ("report", 6 if made.adaptive else 4)):
            self.memory[name] = device.allocate(size * self.count * self.dtype.itemsize)
        self.evaluations, self.steps = 0.0, np.zeros(self.count)
        self.step, self.code = np.full(self.count, p.settings.first), np.zeros(self.count)

    def run(self, progress: Progress | None) -> tuple[DeviceRuns, bool]:
        """Launch until all times are reached; return the samples, and whether Ctrl-C ended the launches.

        Fixed steps take more intervals at once while launches are short. The bits of adaptive steps depend on the
        number of intervals, which is the same on the CPU.
        """
        adaptive = self.made.adaptive
        at, last, intervals, pressed = 0, len(self.times) - 1, PIECE if adaptive else 1, False
        try:
            while at < last:
                began, end = time.perf_counter(), min(at + intervals, last)
                self._launch(at, end)
                at = end
                if not adaptive and time.perf_counter() - began < LOOK / 2:
                    intervals *= 2
                if progress is not None:
                    progress(at / last)
        except KeyboardInterrupt:
            pressed = True
        return self._result(at, pressed), pressed

    def _launch(self, begin: int, end: int) -> None:
        """Integrate from one time to another; the state at the end is the next start."""
        p, n = self.p, self.count
        shared = {"times": self.times[begin : end + 1]}
        if self.made.adaptive:
            shared |= {"rtol": np.array(p.settings.rtol), "atol": np.array(p.settings.atol)}
            own = {"first": self.step, "most": p.settings.most - self.steps, "begin": np.full(n, self.times[begin])}
        else:
            shared |= {"dt": np.array(p.settings.dt), "skip": np.zeros(()), "budget": np.array(np.inf)}
            own = {}
        for name, x in (shared | own).items():
            self._fill(name, x)
        self.kernel.start(self._places(self.kernel, begin), end + 1 - begin, n)
        closer = self.made.closer if self.made.adaptive else None
        if isinstance(closer, CompiledCloser):
            for j in range(begin + 1, end + 1):
                self._close(j, closer.function)
        if self.made.adaptive:
            evaluations, accepted, rejected, self.code, _, self.step = self._read("report")
            self.evaluations, self.steps = self.evaluations + evaluations.sum(), self.steps + accepted + rejected
        else:  # all runs have taken the same number of steps
            steps = float(self._read("report", 1)[0, 0])
            self.evaluations += n * steps * self.made.method.evaluations
        for name in ("q", "qd"):
            self.memory[f"{name}0"], self.memory[f"{name}_end"] = self.memory[f"{name}_end"], self.memory[f"{name}0"]

    def _places(self, kernel: LaneKernel, begin: int, **instead: int) -> list[int]:
        """Return the places of all arguments of a kernel, with samples from an index on; `instead` has other ones."""
        size, n, places = self.dtype.itemsize, self.count, []
        for a in kernel.kernel.arguments:
            if a.name in self.places:
                width = int(a.shape[1]) * n * size
                places += [self.places[a.name] + begin * width, size, width, n * size]
            else:
                core = [size if a.shared else n * size] * len(a.shape)
                address = instead[a.name] if a.name in instead else self.memory[a.name].address
                places += [address, 0 if a.shared else size, *core]
        return places

    def _close(self, j: int, kernel: Any) -> None:
        """Close the loops of the samples at one time, which are interpolated between steps; no joint is driven."""
        if "t" not in self.memory:
            self._fill("t", np.zeros(self.count))
        rows = {name: x.shape[1] * self.count * self.dtype.itemsize for name, x in self.samples.items()}
        at = {name: self.places[name] + j * rows[name] for name in rows}
        spare = {name: self._spare(name, rows[name]) for name in rows}
        places = self._places(kernel, 0, q0=at["q"], qd0=at["qd"], q_end=spare["q"], qd_end=spare["qd"])
        kernel.start(places, 0, self.count)
        for name in rows:
            self.device.copy(at[name], spare[name], rows[name], kind="on device")

    def _spare(self, name: str, size: int) -> int:
        key = f"spare_{name}"
        if key not in self.memory:
            self.memory[key] = self.device.allocate(size)
        return self.memory[key].address

    def _result(self, at: int, pressed: bool) -> DeviceRuns:
        """Return the samples so far; runs whose last state is not finite have failed."""
        p, lead = self.p, self.p.lead
        good = self.library.finite(self.samples["q"][at]) & self.library.finite(self.samples["qd"][at])
        failed = np.flatnonzero(~good)
        of_code = {code: Ending(OF_KERNEL.get(code, Outcome.LOST)) for code in np.unique(self.code[failed]).tolist()}
        known = {int(k): of_code[int(self.code[k])] for k in failed}
        at_time = f"{Outcome.INTERRUPTED.sentence} at t = {p.times[at]:.9g} s"
        endings = Endings(known, Ending(Outcome.INTERRUPTED, at_time) if pressed else None)
        q, qd = (runs_first(x[: at + 1], lead) for x in self.samples.values())
        return DeviceRuns(p.times[: at + 1], q, qd, endings, failed, int(self.evaluations), p.method.name)

    def _fill(self, name: str, x: np.ndarray) -> None:
        """Copy an array to the GPU."""
        data = np.ascontiguousarray(x, self.dtype)
        if name not in self.memory or self.memory[name].size < data.nbytes:
            self.memory[name] = self.device.allocate(data.nbytes)
        self.device.copy(self.memory[name].address, data.ctypes.data, data.nbytes, kind="to device")
        self.device.synchronize(0)

    def _read(self, name: str, runs: int | None = None) -> np.ndarray:
        """Return an array [entries, runs] of the GPU in the memory of the host, or its first entry of some runs."""
        entries = self.memory[name].size // (self.count * self.dtype.itemsize)
        x = np.empty((entries, self.count) if runs is None else (1, runs), self.dtype)
        self.device.copy(x.ctypes.data, self.memory[name].address, x.nbytes, kind="to host")
        self.device.synchronize(0)
        return x.astype(float)
