"""A stand-in for a GPU whose memory is that of the host: kernels of runs are compiled for this processor."""

from __future__ import annotations

import ctypes
import math
from dataclasses import dataclass, field, replace
from types import SimpleNamespace

import numpy as np
import pytest

import gpu_on_cpu
import kinetree as kt
from kinetree.backends.cuda import code, system
from kinetree.targets import ptx, target


@dataclass
class HostDevice:
    """A GPU; `launches` has the threads and arguments of each launch, and `interrupt` is the one that Ctrl-C hits.

    `sources` has the assembly of each kernel that was loaded, from which PTX is made.
    """

    index: int = 0
    name = "a graphics card"
    free: int = 1 << 30
    launches: list[tuple[int, list[int]]] = field(default_factory=list)
    interrupt: int = -1
    sources: list[str] = field(default_factory=list)
    properties: dict[str, int] = field(default_factory=lambda: {"multiprocessors": 2})

    def load(self, ptx: bytes) -> SimpleNamespace:
        """Compile the assembly of a kernel for this processor."""
        self.sources.append(ptx.decode())
        loaded = gpu_on_cpu.hosted(ptx.decode())
        return SimpleNamespace(find=loaded.find, code=loaded, resources=lambda entry: {"registers": 40, "local": 8})

    def launch(self, function: int, blocks: int, threads: int, arguments: list[int], *, stream: int) -> None:
        """Run all threads, one after the other."""
        if len(self.launches) == self.interrupt:
            raise KeyboardInterrupt
        self.launches.append((blocks * threads, arguments))
        call = ctypes.CFUNCTYPE(None, *[ctypes.c_int64] * len(arguments))(function)
        for block in range(blocks):
            gpu_on_cpu.run_block(lambda: call(*arguments), block, threads, together=False)

    def prepare(self, function: int, blocks: int, threads: int, arguments: list[int]) -> SimpleNamespace:
        """Return a launch that is repeated."""
        slots = list(arguments)

        def start(changes, stream: int) -> None:
            for k, x in changes:
                slots[k] = x
            self.launch(function, blocks, threads, slots, stream=stream)

        return SimpleNamespace(start=start)

    def allocate(self, size: int) -> SimpleNamespace:
        """Return memory."""
        buffer = ctypes.create_string_buffer(max(size, 1))
        return SimpleNamespace(address=ctypes.addressof(buffer), size=size, buffer=buffer)

    def upload(self, data: bytes) -> SimpleNamespace:
        """Return memory with some content."""
        memory = self.allocate(len(data))
        ctypes.memmove(memory.address, data, len(data))
        return memory

    def pinned(self, size: int) -> SimpleNamespace:
        """Return memory of the host."""
        memory = np.empty(size, np.uint8)
        return SimpleNamespace(
            size=size,
            array=lambda shape, dtype: memory[: math.prod(shape) * np.dtype(dtype).itemsize].view(dtype).reshape(shape),
        )

    def copy(self, target: int, source: int, size: int, *, kind: str) -> None:
        """Copy bytes."""
        assert kind in ("to device", "to host", "on device")
        ctypes.memmove(target, source, size)

    def synchronize(self, stream: int) -> None:
        """Return at once."""

    def event(self, *, timing: bool) -> SimpleNamespace:
        """Return an event; each comes a second after the former."""
        return SimpleNamespace(record=lambda: None, since=lambda start: 1.0)

    def free_memory(self) -> int:
        """Return the memory that is not allocated [bytes]."""
        return self.free


class HostTarget:
    """The target PTX without its last step: its code is LLVM assembly."""

    def fingerprint(self) -> str:
        """Return a text of its own."""
        return "assembly of PTX"

    def emit(self, unit, dtype: str) -> str:
        """Return the assembly."""
        return target("ptx").emit(unit, dtype)

    def build(self, source: str) -> bytes:
        """Return the assembly as bytes."""
        return source.encode()


def freed(name: str) -> kt.System:
    """Return a mechanism of the library whose parameters are all free."""
    mechanism = kt.load(name).mechanism
    parameters = tuple(replace(p, free=True) for p in mechanism.parameters)
    return kt.System(replace(mechanism, parameters=parameters))


def install(monkeypatch: pytest.MonkeyPatch) -> HostDevice:
    """Replace the driver and the last step of the target PTX; return the only GPU."""
    device = HostDevice()
    found = SimpleNamespace(device=lambda index=0: device)
    monkeypatch.setattr(system, "driver", lambda: found)
    monkeypatch.setattr(ptx.driver, "driver", lambda: found)
    monkeypatch.setattr(code, "target", lambda name: HostTarget())
    monkeypatch.setattr(code, "THREADS", 4)
    monkeypatch.setattr(code, "TOGETHER", 4)
    monkeypatch.setattr(code, "PINNED", (0, 1 << 20))
    return device
