"""PTX of functions, cached on disk, and its kernels on each device."""

from __future__ import annotations

import json
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import Any

from ....model.mechanism import Mechanism
from ...ir.program import Program
from ...lower.build import Request
from ...targets import target
from ...targets.ptx.entries import launch
from .. import cache
from ..code_keys import code_key

COMMENT = b"// kinetree "
"""The start of the first line of cached PTX, a comment with the launches of its entries."""
ENTRIES = ("kernel", "rows")


@dataclass(frozen=True)
class Kernels:
    """Code on one device; `launches` has for each entry the threads of a block and its shared memory [bytes]."""

    device: Any
    module: Any
    launches: dict[str, tuple[int, int]]

    def start(self, entry: str, arguments: Sequence[int], samples: int, stream: int) -> None:
        """Launch an entry, with one thread per sample."""
        threads, shared = self.launches[entry]
        blocks = -(-samples // threads)
        self.device.launch(self.module.find(entry), blocks, threads, arguments, shared=shared, stream=stream)


def kernels(device: Any, mechanism: Mechanism, request: Request, program: Callable[[], Program]) -> Kernels:
    """Return the kernels of a request on a device; `program` is called only if the cache has no PTX of it."""
    code = ptx(mechanism, request, program)
    first, _, _ = code.partition(b"\n")
    launches = {entry: tuple(x) for entry, x in json.loads(first.removeprefix(COMMENT)).items()}
    return Kernels(device, device.load(code), launches)


def ptx(mechanism: Mechanism, request: Request, program: Callable[[], Program]) -> bytes:
    """Return the PTX of a request, from the cache if it is there, with the launches of its entries as a comment."""
    chosen = target("ptx")

    def make() -> bytes:
        made = program()
        launches = {entry: launch(made, request.dtype, entry) for entry in ENTRIES}
        return COMMENT + json.dumps(launches).encode() + b"\n" + chosen.build(chosen.emit(made, request.dtype))

    return cache.fetch(code_key(mechanism, request, program, chosen.fingerprint()), make)
