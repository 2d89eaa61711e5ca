"""PTX of functions, cached on disk, and its kernels on each device."""

from __future__ import annotations

import json
from collections.abc import Callable, Sequence
from dataclasses import dataclass, field
from typing import Any, NamedTuple

from ....model.mechanism import Mechanism
from ...ir.program import Program
from ...lower.build import Request
from ...targets import target
from ...targets.ptx.entries import emit, launch
from .. import cache
from ..code_keys import code_key
from ..garbage import uncollected

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
        _, kernel, threads, shared = self.entries.get(name) or self._load(name)
        self.device.launch(kernel, -(-samples // threads), threads, arguments, shared=shared, stream=stream)

    def _load(self, name: str) -> Entry:
        code = ptx(self.mechanism, self.request, self.program, name)
        first, _, _ = code.partition(b"\n")
        threads, shared = json.loads(first.removeprefix(COMMENT))
        module = self.device.load(code)
        self.entries[name] = Entry(module, module.find(name), threads, shared)
        return self.entries[name]


def ptx(mechanism: Mechanism, request: Request, program: Callable[[], Program], entry: str) -> bytes:
    """Return the PTX of one entry, from the cache if it is there, with its threads and shared memory as a comment."""
    chosen = target("ptx")

    def make() -> bytes:
        made = program()
        head = COMMENT + json.dumps(launch(made, request.dtype, entry)).encode()
        return head + b"\n" + chosen.build(emit(made, request.dtype, (entry,)))

    with uncollected():
        return cache.fetch(code_key(mechanism, request, program, f"{chosen.fingerprint()} {entry}"), make)
