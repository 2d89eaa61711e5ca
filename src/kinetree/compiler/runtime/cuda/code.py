"""Code of functions on each device: compiled by the driver, or interpreted until it is compiled."""

from __future__ import annotations

import json
import os
from collections.abc import Callable, Sequence
from dataclasses import dataclass, field
from typing import Any, NamedTuple

from ....model.mechanism import Mechanism
from ...ir.program import Program
from ...lower.build import Request
from ...targets import target
from ...targets.ptx.entries import emit, launch
from ...targets.ptx.interpreter import ENTRY, THREADS, Interpreted, interpreted
from .. import cache
from ..code_keys import code_key
from ..garbage import uncollected

COMMENT = b"// kinetree "
"""The start of the first line of cached PTX, a comment with the threads of a block and its shared memory."""


COMPILED = b"compiled by the driver"
"""The content of a file that marks code which the driver has compiled, and has in its own cache on disk."""

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

    Compiling large code takes the driver a second or so. The first call runs an interpreter instead, the second one
    compiles. Both give the same bits. A thread could compile meanwhile, but the driver would launch nothing until it
    has finished, and code of its linker, which does not block, is up to a quarter slower.
    """

    device: Any
    mechanism: Mechanism
    request: Request
    program: Callable[[], Program]
    entries: dict[str, Entry] = field(default_factory=dict)
    interpreters: dict[str, Entry] = field(default_factory=dict)

    def start(self, name: str, arguments: Sequence[int], samples: int, stream: int) -> None:
        """Launch an entry, "kernel" or "rows", with one thread per sample."""
        entry = self.entries.get(name)
        if entry is None:
            entry = self._first(name, capturing=self.device.captures(stream))
        _, kernel, threads, shared, data = entry
        if data:
            arguments = (*arguments, *(memory.address for memory in data))
        self.device.launch(kernel, -(-samples // threads), threads, arguments, shared=shared, stream=stream)

    def settle(self) -> None:
        """Compile all code that is interpreted so far."""
        for name in self.interpreters:
            if name not in self.entries:
                self._first(name, capturing=True)

    def _first(self, name: str, *, capturing: bool) -> Entry:
        """Return an interpreter in the first call of a large function, otherwise compiled code.

        A CUDA graph keeps the kernel that it captures, and is worth the wait. Interpreters stay in memory, for kernels
        that are queued.
        """
        if not capturing and name not in self.interpreters and not self._in_driver_cache(name):
            quick = self._interpreted(name)
            if quick is not None:
                module = self.device.load(quick.ptx)
                data = tuple(self.device.upload(x) for x in (quick.steps, quick.constants))
                self.interpreters[name] = Entry(module, module.find(ENTRY), THREADS, 0, data)
                return self.interpreters[name]
        with self.device.beside_captures():
            self.entries[name] = self._compiled(name)
        return self.entries[name]

    def _interpreted(self, name: str) -> Interpreted | None:
        """Return the interpreter of a large function; None if it is small or has too many values for it."""
        with uncollected():
            program = self.program()
            return interpreted(program, self.request.dtype, name) if len(program.ops) >= LARGE else None

    def _in_driver_cache(self, name: str) -> bool:
        """Return whether an earlier process compiled an entry with this driver, which then has the code on disk."""
        return os.environ.get("CUDA_CACHE_DISABLE") != "1" and cache.stored(self._mark(name)) is not None

    def _compiled(self, name: str) -> Entry:
        """Load PTX, which the driver compiles, and note that it has done so."""
        code = self._ptx(name)
        first, _, _ = code.partition(b"\n")
        threads, shared = json.loads(first.removeprefix(COMMENT))
        module = self.device.load(code)
        cache.keep(self._mark(name), COMPILED)
        return Entry(module, module.find(name), threads, shared)

    def _mark(self, name: str) -> str:
        return self._key(f"{name} compiled {self.device.code_name}")

    def _key(self, more: str) -> str:
        return code_key(self.mechanism, self.request, self.program, f"{target('ptx').fingerprint()} {more}")

    def _ptx(self, name: str) -> bytes:
        """Return the PTX of one entry, from the cache if it is there, with its launch as a comment."""

        def make() -> bytes:
            program = self.program()
            head = COMMENT + json.dumps(launch(program, self.request.dtype, name)).encode()
            return head + b"\n" + target("ptx").build(emit(program, self.request.dtype, (name,)))

        with uncollected():
            return cache.fetch(self._key(name), make)
