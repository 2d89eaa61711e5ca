"""Runs whose samples stay in the memory of a GPU, as arrays of the library of their start."""

from __future__ import annotations

import time
from dataclasses import dataclass
from math import prod
from typing import TYPE_CHECKING, Any, NamedTuple

import numpy as np

from ..device_starts import runs_first
from ..events import Watch
from ..motion_problem import Problem
from ..run_states import LOST, REASONS
from ..steppers import KernelCloser, Stepper
from .engine import Progress
from .gpu import LOOK, stepper_on
from .pieces import PIECE

if TYPE_CHECKING:
    from ...compiler.runtime.cuda.lane_kernel import LaneKernel
    from ...compiler.runtime.cuda.libraries import Library
    from ...compiler.targets.ptx.driver import Device


class _Held(NamedTuple):
    """Memory of an array of another library, with the array, which keeps it alive."""

    address: int
    size: int
    array: Any


@dataclass(frozen=True)
class DeviceRuns:
    """The samples of runs in the memory of a GPU: q [..., nt, nq] and qd [..., nt, nv] at the times t [nt].

    In memory, neighboring runs are next to each other. Samples that a run did not reach are NaN. `status` is "finished"
    or "stopped: reason", and `failed` has the indices of the runs that stopped early.
    """

    t: np.ndarray
    q: Any
    qd: Any
    status: str
    failed: np.ndarray
    evaluations: int
    method: str


def device_runs(p: Problem, watch: Watch, library: Library, progress: Progress | None) -> DeviceRuns:
    """Integrate over all times, a few intervals per launch; Ctrl-C keeps the samples so far."""
    device = p.device
    assert device is not None, "the system is on a GPU"
    return _Kept(p, device, stepper_on(p, watch, device), library).run(progress)


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

    def run(self, progress: Progress | None) -> DeviceRuns:
        """Launch until all times are reached.

        Fixed steps take more intervals at once while launches are short. The bits of adaptive steps depend on the
        number of intervals, which is that of the CPU.
        """
        adaptive = self.made.adaptive
        at, last, intervals, interrupted = 0, len(self.times) - 1, PIECE if adaptive else 1, False
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
            interrupted = True
        return self._result(at, interrupted)

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
        if isinstance(self.made.closer, KernelCloser) and self.made.adaptive:
            for j in range(begin + 1, end + 1):
                self._close(j, self.made.closer.kernel)
        if self.made.adaptive:
            evaluations, accepted, rejected, self.code, _, self.step = self._read("report")
            self.evaluations, self.steps = self.evaluations + evaluations.sum(), self.steps + accepted + rejected
        else:  # all runs have taken the same number of steps
            steps = float(self._read("report", 1)[0, 0])
            self.evaluations += n * steps * (len(self.made.method.b) if self.made.method else 1)
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

    def _close(self, j: int, kernel: LaneKernel) -> None:
        """Close the loops of the samples at one time, which are interpolated between steps."""
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

    def _result(self, at: int, interrupted: bool) -> DeviceRuns:
        """Return the samples so far; runs whose last state is not finite have failed."""
        p, lead = self.p, self.p.lead
        good = self.library.finite(self.samples["q"][at]) & self.library.finite(self.samples["qd"][at])
        failed, status = np.flatnonzero(~good), "finished"
        if interrupted:
            status = f"stopped: interrupted at t = {p.times[at]:.9g} s"
        elif len(failed):
            reason = REASONS.get(int(self.code[failed[0]]), LOST)
            status = f"stopped: {reason} (run {failed[0]}; {len(failed)} runs in all)"
        q, qd = (runs_first(x[: at + 1], lead) for x in self.samples.values())
        return DeviceRuns(p.times[: at + 1], q, qd, status, failed, int(self.evaluations), p.method.name)

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
