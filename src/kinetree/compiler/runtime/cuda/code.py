"""Code of functions on each device: compiled and cached on disk, or interpreted until it is compiled."""

from __future__ import annotations

import json
import warnings
from collections.abc import Callable, Sequence
from concurrent.futures import Future, ThreadPoolExecutor
from dataclasses import dataclass, field
from typing import Any, NamedTuple

from ....model.mechanism import Mechanism
from ...ir.program import Program
from ...lower.build import Request
from ...targets import target
from ...targets.ptx.entries import emit, launch
from ...targets.ptx.interpreter import ENTRY, THREADS, interpreted
from .. import cache
from ..code_keys import code_key
from ..garbage import uncollected

COMMENT = b"// kinetree "
"""The start of the first line of cached PTX, a comment with the threads of a block and its shared memory."""


LARGE = 2500
"""The operations of a Program from which it is interpreted first: compiling it takes the driver 0.3 s or more."""


class Entry(NamedTuple):
    """An entry in the memory of a device, with the threads of a block and its dynamic shared memory [bytes].

    `data` is memory whose addresses the kernel takes as its last arguments.
    """

    module: Any
    kernel: Any
    threads: int
    shared: int
    data: tuple[Any, ...] = ()


@dataclass(frozen=True)
class Kernels:
    """The code of a request on one device; each entry is compiled when it is first needed, which halves the time.

    Compiling large code takes a second or more. A thread of its own does that, and calls run an interpreter until it
    has finished. Both give the same bits.
    """

    device: Any
    mechanism: Mechanism
    request: Request
    program: Callable[[], Program]
    entries: dict[str, Entry] = field(default_factory=dict)
    coming: dict[str, Future[Entry]] = field(default_factory=dict)
    former: list[Entry] = field(default_factory=list)

    def start(self, name: str, arguments: Sequence[int], samples: int, stream: int) -> None:
        """Launch an entry, "kernel" or "rows", with one thread per sample."""
        entry = self.entries.get(name) or self._load(name)
        if self.coming:
            entry = self._newest(name, wait=self.device.captures(stream))
        _, kernel, threads, shared, data = entry
        if data:
            arguments = (*arguments, *(memory.address for memory in data))
        self.device.launch(kernel, -(-samples // threads), threads, arguments, shared=shared, stream=stream)

    def settle(self) -> None:
        """Wait until all code is compiled."""
        for name in list(self.coming):
            self._newest(name, wait=True)

    def _load(self, name: str) -> Entry:
        """Load an entry: compiled before, compiled now if it is small, or interpreted until it is compiled."""
        key = self._key(f"{name} {self.device.code_name}")
        if code := cache.stored(key):
            self.entries[name] = self._entry(name, code)
            return self.entries[name]
        with uncollected():
            program = self.program()
            quick = interpreted(program, self.request.dtype, name) if len(program.ops) >= LARGE else None
        if quick is None:
            self.entries[name] = self._compiled(name, key, program)
        else:
            module = self.device.load(quick.ptx)
            data = tuple(self.device.upload(x) for x in (quick.steps, quick.constants))
            self.entries[name] = Entry(module, module.find(ENTRY), THREADS, 0, data)
            self.coming[name] = beside(lambda: self._compiled_beside(name, key, program))
        return self.entries[name]

    def _compiled(self, name: str, key: str, program: Program) -> Entry:
        """Compile an entry for the device, store the code and load it."""
        code = self._ptx(name, program)
        head, _, _ = code.partition(b"\n")
        code = head + b"\n" + self.device.compiled(code)
        cache.keep(key, code)
        return self._entry(name, code)

    def _compiled_beside(self, name: str, key: str, program: Program) -> Entry:
        """Do the same while other threads run, one of which may capture a CUDA graph."""
        with self.device.beside_captures():
            return self._compiled(name, key, program)

    def _entry(self, name: str, code: bytes) -> Entry:
        """Load the device's own code, after a line with its launch, into the memory of the device."""
        first, _, rest = code.partition(b"\n")
        threads, shared = json.loads(first.removeprefix(COMMENT))
        module = self.device.load(rest)
        return Entry(module, module.find(name), threads, shared)

    def _newest(self, name: str, *, wait: bool) -> Entry:
        """Return the compiled entry if it is ready, or after waiting for it; otherwise the one in use.

        A CUDA graph keeps the kernel that it captures, and is worth the wait. The interpreter stays in memory for
        kernels that are queued.
        """
        future = self.coming.get(name)
        if future is None or not (wait or future.done()):
            return self.entries[name]
        error = future.exception()
        if self.coming.pop(name, None) is not None:  # None: another thread was faster
            if error is None:
                self.former.append(self.entries[name])
                self.entries[name] = future.result()
            else:
                text = f"{self.request.title}: the code could not be compiled, so that it is interpreted, which is slow"
                warnings.warn(f"{text}: {error}", RuntimeWarning, stacklevel=2)
        return self.entries[name]

    def _key(self, more: str) -> str:
        return code_key(self.mechanism, self.request, self.program, f"{target('ptx').fingerprint()} {more}")

    def _ptx(self, name: str, program: Program) -> bytes:
        """Return the PTX of one entry, from the cache if it is there, with its launch as a comment."""

        def make() -> bytes:
            head = COMMENT + json.dumps(launch(program, self.request.dtype, name)).encode()
            return head + b"\n" + target("ptx").build(emit(program, self.request.dtype, (name,)))

        with uncollected():
            return cache.fetch(self._key(name), make)


def beside(work: Callable[[], Entry]) -> Future[Entry]:
    """Run a function in a thread of its own, for which Python waits before it exits."""
    threads = ThreadPoolExecutor(1, "kinetree-compiler")
    future = threads.submit(work)
    threads.shutdown(wait=False)
    return future
