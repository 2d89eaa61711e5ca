"""Code of functions on each device, compiled by its driver."""

from __future__ import annotations

import gc
import json
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, field
from typing import Any, NamedTuple

from ..._support.progress import compiling
from ...compiler.ir.program import Program
from ...compiler.lower.build import Request
from ...model.mechanism import Mechanism
from ...runtime.cache import code_key, fetch
from ...targets import target
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


class Entry(NamedTuple):
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
    entries: dict[str, Entry] = field(default_factory=dict)

    def start(self, name: str, arguments: Sequence[int], samples: int, stream: int) -> None:
        """Launch an entry, "kernel" or "rows", with one thread per sample."""
        if name not in self.entries:
            with self.device.beside_captures():
                self.entries[name] = self._compiled(name)
        _, kernel, threads, shared = self.entries[name]
        self.device.launch(kernel, -(-samples // threads), threads, arguments, shared=shared, stream=stream)

    def _compiled(self, name: str) -> Entry:
        """Load PTX, which the driver compiles."""
        code = self._ptx(name)
        first, _, _ = code.partition(b"\n")
        threads, shared = json.loads(first.removeprefix(COMMENT))
        module = self.device.load(code)
        return Entry(module, module.find(name), threads, shared)

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
    """A launch for which only addresses are missing, those of some arrays: inputs, then outputs.

    `places` are the positions of these addresses among the arguments. `shapes` are those of the outputs, for
    allocation. `extents` are the first byte and the end of each array, relative to its address.
    """

    launch: Launch
    library: Library
    device: int
    dtype: str
    shapes: tuple[tuple[int, ...], ...]
    places: tuple[int, ...]
    extents: tuple[tuple[int, int], ...]

    def run(self, pointers: list[int], out: Any) -> Any:
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
