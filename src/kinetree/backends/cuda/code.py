"""Code of functions on each device, compiled by its driver."""

from __future__ import annotations

import gc
import json
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, field
from math import prod
from typing import Any, NamedTuple

import numpy as np

from ..._support.progress import compiling
from ...compiler.ir.program import Program
from ...compiler.lanes.form import Argument, Kernel, Meet, every
from ...compiler.lower.build import Request
from ...model.mechanism import Mechanism
from ...runtime import cache
from ...runtime.cache import code_key, fetch
from ...targets import target
from ...targets.ptx.driver import Device, DeviceMemory, Event, PinnedMemory, Prepared
from ...targets.ptx.entries import emit, launch
from .libraries import Library

# --- Pauses of Python's garbage collector ---


@contextmanager
def pause_collector() -> Iterator[None]:
    """Pause the garbage collector.

    Compiling makes many small objects but hardly any cycles. The collector would search all objects of the process
    again and again, which are many where torch or JAX is imported.
    """
    collects = gc.isenabled()
    gc.disable()
    try:
        yield
    finally:
        if collects:
            gc.enable()


COMMENT = b"// kinetree "
"""The start of the first line of cached PTX, a comment with the threads of a block and its shared memory."""


class LoadedEntry(NamedTuple):
    """An entry in the memory of a device, with the threads of a block and its dynamic shared memory [bytes]."""

    module: Any
    kernel: Any
    threads: int
    shared: int


@dataclass(frozen=True)
class Kernels:
    """The code of a request on one device; each entry is compiled when it is first needed, which halves the time."""

    device: Any
    mechanism: Mechanism
    request: Request
    program: Callable[[], Program]
    entries: dict[str, LoadedEntry] = field(default_factory=dict)

    def start(self, name: str, arguments: Sequence[int], samples: int, stream: int) -> None:
        """Launch an entry, "kernel" or "rows", with one thread per sample."""
        if name not in self.entries:
            with self.device.beside_captures():
                self.entries[name] = self._compiled(name)
        _, kernel, threads, shared = self.entries[name]
        self.device.launch(kernel, -(-samples // threads), threads, arguments, shared=shared, stream=stream)

    def _compiled(self, name: str) -> LoadedEntry:
        """Load PTX, which the driver compiles."""
        code = self._ptx(name)
        first, _, _ = code.partition(b"\n")
        threads, shared = json.loads(first.removeprefix(COMMENT))
        module = self.device.load(code)
        return LoadedEntry(module, module.find(name), threads, shared)

    def _ptx(self, name: str) -> bytes:
        """Return the PTX of one entry, from the cache if it is there, with its launch as a comment."""

        def make() -> bytes:
            program = self.program()
            head = COMMENT + json.dumps(launch(program, self.request.dtype, name)).encode()
            return head + b"\n" + target("ptx").build(emit(program, self.request.dtype, (name,)))

        key = code_key(self.mechanism, self.request, self.program, f"{target('ptx').fingerprint()} {name}")
        with pause_collector(), compiling(self.request.title):
            return fetch(key, make)


# --- Plans: calls prepared for arrays of certain shapes, strides, precision and device, so that the next one is
# quick.


@dataclass(frozen=True)
class Launch:
    """A kernel with its arguments: for each array its address and two strides, and last the number of samples."""

    kernels: Kernels
    entry: str
    arguments: tuple[int, ...]

    @property
    def samples(self) -> int:
        """The number of samples."""
        return self.arguments[-1]

    def start(self, stream: int) -> None:
        """Queue the kernel on a stream."""
        if self.samples:
            self.kernels.start(self.entry, self.arguments, self.samples, stream)


@dataclass(frozen=True)
class Plan:
    """A launch that lacks only the addresses of some arrays: inputs, then outputs.

    `places` are the positions of these addresses among the arguments. `shapes` are the shapes of the outputs, for
    allocation. `extents` are the first byte and the end of each array, relative to its address.
    """

    launch: Launch
    library: Library
    device: int
    dtype: str
    shapes: tuple[tuple[int, ...], ...]
    places: tuple[int, ...]
    extents: tuple[tuple[int, int], ...]

    def run(self, pointers: list[int], out: object) -> Any:
        """Start the kernel on these addresses and return `out`, or new arrays; None if `out` may overlap an input."""
        if out is None:
            results = [self.library.empty(shape, self.dtype, self.device) for shape in self.shapes]
            pointers += [self.library.pointer(x) for x in results]
            out = results[0] if len(results) == 1 else tuple(results)
        elif self._may_overlap(pointers):
            return None
        launch = self.launch
        if launch.samples:
            arguments = list(launch.arguments)
            for place, pointer in zip(self.places, pointers, strict=True):
                arguments[place] = pointer
            launch.kernels.start(launch.entry, arguments, launch.samples, self.library.stream(self.device))
        return out

    def _may_overlap(self, pointers: Sequence[int]) -> bool:
        spans = [(p + a, p + b) for p, (a, b) in zip(pointers, self.extents, strict=True)]
        count = len(spans) - len(self.shapes)
        for a, b in spans[count:]:
            for c, d in spans[:count]:
                if a < d and c < b:
                    return True
        return False


# --- Kernels of the lane language ---


THREADS, TOGETHER, FEWEST = 128, 256, 32
"""The most threads of a block: fewer leave multiprocessors without work, more do not fit beside each other; the most
for kernels whose threads wait for each other; and the least, for launches of few runs."""

PINNED = (1 << 20, 1 << 30)
"""The smallest and the largest output [bytes] that is copied to page-locked memory, which is several times as fast."""


class LaneKernel:
    """A kernel on one GPU; a call copies its arrays there, waits, and returns the outputs in memory of the host.

    Neighboring runs are next to each other in the memory of outputs, so that a warp writes whole lines of the cache.
    Memory is kept for the next call, which overwrites the outputs of this one except for the report.
    """

    def __init__(self, kernel: Kernel, dtype: str, device: Device) -> None:
        """Compile the kernel, or read its PTX from the cache, and load it."""
        self.kernel, self.dtype, self.device = kernel, np.dtype(dtype), device
        chosen = target("ptx")
        name = cache.digest(kernel.hash, dtype, chosen.fingerprint())
        with compiling(kernel.name):
            self._module = device.load(cache.fetch(name, lambda: chosen.build(chosen.emit(kernel, dtype))))
        self._memory: dict[str, DeviceMemory] = {}
        self._pinned: dict[str, PinnedMemory] = {}

    def __call__(self, *arrays: object, around: tuple[Event, Event] | None = None) -> tuple[np.ndarray, ...]:
        """Return the outputs [..., core] for inputs with a leading shape, or without one: the same for all runs.

        The two events `around` are recorded before and after the kernel, to measure its time.
        """
        inputs = self.kernel.arguments[: self.kernel.arity[0]]
        given = [np.asarray(x, self.dtype) for x in arrays]
        lead = np.broadcast_shapes(*(x.shape[: x.ndim - len(a.shape)] for a, x in zip(inputs, given, strict=True)))
        runs = prod(lead)
        extent = next((len(x) for a, x in zip(inputs, given, strict=True) if a.shape == ("t",)), 0)
        places: list[int] = []
        for a, x in zip(inputs, given, strict=True):
            places += self._brought(a, x)
        results = [self._room(a, extent, runs) for a in self.kernel.arguments[len(inputs) :]]
        for x, memory in results:
            places += [memory.address, x.strides[-1], *x.strides[:-1]]
        for event in (around or ())[:1]:
            event.record()
        self.start(places, extent, runs)
        for event in (around or ())[1:]:
            event.record()
        for x, memory in results:
            self.device.copy(x.ctypes.data, memory.address, x.nbytes, kind="to host")
        self.device.synchronize(0)
        return tuple(_runs_first(x, lead) for x, _ in results)

    def start(self, places: list[int], extent: int, runs: int, stream: int = 0) -> None:
        """Queue the kernel for a number of times, the `extent`.

        `places` has for each argument its address, and the distances between runs and along its axes [bytes].
        """
        if runs:
            blocks, threads = self._grid(runs)
            self.device.launch(self._module.find("kernel"), blocks, threads, [*places, extent, runs], stream=stream)

    def prepare(self, places: list[int], runs: int) -> Prepared:
        """Return a launch that is repeated, of a kernel without an axis of times; see `start`."""
        return self.device.prepare(self._module.find("kernel"), *self._grid(runs), [*places, 0, runs])

    def _grid(self, runs: int) -> tuple[int, int]:
        """Return the blocks of a launch, and the threads of each."""
        threads = TOGETHER if any(isinstance(s, Meet) for s in every(self.kernel.body)) else THREADS
        while threads > FEWEST and runs < threads * self.device.properties["multiprocessors"]:
            threads //= 2  # so that all multiprocessors have some
        return -(-runs // threads), threads

    def resources(self) -> dict[str, int]:
        """Return what a thread takes: registers, and local memory [bytes]."""
        return self._module.resources("kernel")

    def _brought(self, a: Argument, x: np.ndarray) -> list[int]:
        """Copy an input to the GPU; return its address, and the distances between runs and along its axes [bytes]."""
        own = x.ndim > len(a.shape)
        x = x.reshape(-1, *x.shape[x.ndim - len(a.shape) :]) if own else x
        near = own and x.strides[0] == x.itemsize  # neighboring runs are next to each other, and stay so
        x = np.asarray(x.T, order="C").T if near else np.asarray(x, order="C")
        strides = x.strides if own else (0, *x.strides)
        memory = self._kept(a.name, x.nbytes)
        self.device.copy(memory.address, x.ctypes.data, x.nbytes, kind="to device")
        return [memory.address, *strides]

    def _room(self, a: Argument, extent: int, runs: int) -> tuple[np.ndarray, DeviceMemory]:
        """Return memory for an output, of the host and of the GPU."""
        shape = (*(extent if n == "t" else int(n) for n in a.shape), runs)
        size = prod(shape) * self.dtype.itemsize
        if a.name == "report" or not PINNED[0] <= size <= PINNED[1]:
            return np.empty(shape, self.dtype), self._kept(a.name, size)
        staged = self._pinned.get(a.name)
        if staged is None or staged.size < size:
            self._pinned.pop(a.name, None)
            staged = self._pinned[a.name] = self.device.pinned(size)
        return staged.array(shape, self.dtype), self._kept(a.name, size)

    def _kept(self, name: str, size: int) -> DeviceMemory:
        """Return the memory of an argument, allocated anew if the former is too small."""
        found = self._memory.get(name)
        if found is None or found.size < size:
            found = None
            self._memory.pop(name, None)  # freed before the new memory is allocated
            found = self._memory[name] = self.device.allocate(size)
        return found


def _runs_first(x: np.ndarray, lead: tuple[int, ...]) -> np.ndarray:
    """Return a view [..., core] of an array [core, runs]."""
    core = x.ndim - 1
    return np.moveaxis(x.reshape(*x.shape[:-1], *lead), range(core), range(-core, 0))
