"""A stand-in for GPUs: kernels are interpreted in host memory, on arrays of a stand-in for CuPy."""

from __future__ import annotations

import ctypes
from contextlib import nullcontext
from dataclasses import dataclass, field
from types import ModuleType, SimpleNamespace

import numpy as np
import pytest

from kinetree.backends.cuda import code, system
from kinetree.compiler.ir.program import Program
from kinetree.errors import InputError

NUMBERS = {"float64": ctypes.c_double, "float32": ctypes.c_float}


@dataclass
class Launch:
    """A recorded launch."""

    device: int
    entry: str
    strides: list[tuple[int, int]]
    samples: int
    stream: int
    blocks: int
    threads: int
    shared: int


@dataclass
class FakeDriver:
    """The driver of two GPUs, which keeps every launch.

    Compilations fail if it is `broken`.
    """

    count: int = 2
    launches: list[Launch] = field(default_factory=list)
    loads: int = 0
    compilations: int = 0
    broken: bool = False

    def device(self, index: int = 0) -> FakeDevice:
        """Return a GPU."""
        if not 0 <= index < self.count:
            raise InputError(f"there is no GPU cuda:{index}")
        return FakeDevice(self, index)

    def holding(self, address: int) -> FakeDevice:
        """Return the GPU of an address, always the second one."""
        assert address
        return self.device(1)


@dataclass
class FakeDevice:
    """A GPU whose memory is that of the host."""

    driver: FakeDriver
    index: int

    def load(self, text: bytes) -> FakeModule:
        """Return the program that the stand-in for code contains; code after a comment is compiled."""
        self.driver.loads += 1
        if text.startswith(code.COMMENT):
            self.driver.compilations += 1
            if self.driver.broken:
                raise RuntimeError("no memory")
            text = text.partition(b"\n")[2]
        dtype, _, program = text.decode().partition(" ")
        return FakeModule(Program.loads(program), dtype)

    def beside_captures(self):
        """Return a context without effect."""
        return nullcontext()

    def upload(self, data: bytes) -> SimpleNamespace:
        """Return memory with this content."""
        buffer = ctypes.create_string_buffer(data, len(data))
        return SimpleNamespace(address=ctypes.addressof(buffer), buffer=buffer)

    def launch(self, kernel, blocks, threads, arguments, *, shared=0, stream=0) -> None:
        """Run a kernel on all samples: read every input, then write every output."""
        (program, dtype), entry = kernel
        *places, samples = arguments
        arrays = [tuple(places[k : k + 3]) for k in range(0, len(places), 3)]
        assert all(isinstance(x, int) for x in arguments) and blocks * threads >= samples > (blocks - 1) * threads
        record = Launch(self.index, entry, [x[1:] for x in arrays], samples, stream, blocks, threads, shared)
        self.driver.launches.append(record)
        number, count = NUMBERS[dtype], len(program.inputs)
        assert len(arrays) == count + len(program.outputs)

        def address(at, i, k) -> int:
            pointer, sample, step = at
            assert entry != "rows" or step == 1 or not k
            return pointer + (i * sample + k * step) * ctypes.sizeof(number)

        inputs = [
            np.array([[number.from_address(address(at, i, k)).value for k in range(a.size)] for i in range(samples)])
            for at, a in zip(arrays, program.inputs, strict=False)
        ]
        shaped = [x.reshape(samples, *a.shape) for x, a in zip(inputs, program.inputs, strict=True)]
        for at, a, result in zip(arrays[count:], program.outputs, program.interpret(*shaped), strict=True):
            flat = np.broadcast_to(result, (samples, *a.shape)).reshape(samples, a.size)
            for i in range(samples):
                for k in range(a.size):
                    number.from_address(address(at, i, k)).value = flat[i, k]


@dataclass
class FakeModule:
    """Code on a device."""

    program: Program
    dtype: str

    def find(self, name: str):
        """Return a kernel."""
        return (self.program, self.dtype), name


class FakeTarget:
    """A target whose code is the text of the Program."""

    def fingerprint(self) -> str:
        """Return a text of its own."""
        return "fake PTX"

    def emit(self, unit, dtype: str) -> str:
        """Return the text form of a Program."""
        return f"{dtype} {unit.dumps()}"

    def build(self, source: str) -> bytes:
        """Return the text as bytes."""
        return source.encode()


class FakeArray:
    """An array of the stand-in for CuPy."""

    def __init__(self, host: np.ndarray, device: int = 0) -> None:
        """Store an array in the memory of a device."""
        self.host = host
        self.data = SimpleNamespace(ptr=host.ctypes.data, device_id=device)
        self.shape, self.strides, self.dtype = host.shape, host.strides, host.dtype
        self.device = FakeCurrentDevice(device)

    def __getitem__(self, key) -> FakeArray:
        """Return a view."""
        return FakeArray(self.host[key], self.device.id)

    @property
    def T(self) -> FakeArray:
        """The transposed view."""
        return FakeArray(self.host.T, self.device.id)

    def reshape(self, shape) -> FakeArray:
        """Return an array of another shape."""
        return FakeArray(self.host.reshape(shape), self.device.id)

    def transpose(self, axes) -> FakeArray:
        """Return a view with permuted axes."""
        return FakeArray(self.host.transpose(axes), self.device.id)

    def __ne__(self, other) -> FakeArray:  # type: ignore[override]
        """Compare with a number."""
        return FakeArray(self.host != other, self.device.id)

    __hash__ = None  # type: ignore[assignment]

    def all(self, axis) -> FakeArray:
        """Return whether all entries along an axis are true."""
        return FakeArray(self.host.all(axis), self.device.id)

    def any(self, axis) -> FakeArray:
        """Return whether an entry along an axis is true."""
        return FakeArray(self.host.any(axis), self.device.id)

    def get(self) -> np.ndarray:
        """Return a copy in the memory of the host."""
        return self.host.copy()


@dataclass
class FakeCurrentDevice:
    """A device of the stand-in for CuPy, as a context."""

    id: int

    def __enter__(self):
        fake_cupy.current = self.id

    def __exit__(self, *_):
        fake_cupy.current = 0


def _spread(x: FakeArray, shape) -> FakeArray:
    return FakeArray(np.broadcast_to(x.host, shape), x.device.id)


def _made_cupy() -> ModuleType:
    module = ModuleType("cupy")
    module.current = 0
    module.allocations = 0
    module.ndarray = FakeArray

    def made(host) -> FakeArray:
        module.allocations += 1
        return FakeArray(host, module.current)

    module.empty = lambda shape, dtype: made(np.full(shape, np.nan, dtype))
    module.broadcast_to = _spread
    module.ascontiguousarray = lambda x: made(x.host.copy(order="C"))
    module.array = lambda x, dtype, order: made(np.array(x.host, dtype, order=order))
    module.isfinite = lambda x: FakeArray(np.isfinite(x.host), x.device.id)
    module.asarray = lambda x, dtype=None: x if isinstance(x, FakeArray) else made(np.asarray(x, dtype))
    module.broadcast_arrays = lambda *xs: [
        FakeArray(h, module.current) for h in np.broadcast_arrays(*(x.host for x in xs))
    ]
    module.stack = lambda xs, axis: made(np.stack([x.host for x in xs], axis))
    streams = {0: 7001, 1: 7002}
    module.cuda = SimpleNamespace(
        Device=FakeCurrentDevice,
        get_device_id=lambda: module.current,
        get_current_stream=lambda device: SimpleNamespace(ptr=streams[device]),
    )
    return module


fake_cupy = _made_cupy()


def install(monkeypatch: pytest.MonkeyPatch) -> FakeDriver:
    """Replace the driver, the target PTX and CuPy; return the driver."""
    driver = FakeDriver()
    monkeypatch.setattr(system, "driver", lambda: driver)
    monkeypatch.setattr(code, "target", lambda name: FakeTarget())
    monkeypatch.setattr(code, "emit", lambda program, dtype, entries: FakeTarget().emit(program, dtype))
    monkeypatch.setattr(code, "launch", lambda program, dtype, entry: (4, 0) if entry == "kernel" else (3, 96))
    monkeypatch.setitem(__import__("sys").modules, "cupy", fake_cupy)
    return driver


def install_arrays(monkeypatch: pytest.MonkeyPatch) -> None:
    """Replace CuPy alone, with arrays that describe themselves as those of a GPU do."""
    monkeypatch.setitem(__import__("sys").modules, "cupy", fake_cupy)
    monkeypatch.setattr(FakeArray, "__cuda_array_interface__", {}, raising=False)


def on_gpu(*arrays, device: int = 0, dtype="float64") -> list[FakeArray]:
    """Return arrays of the stand-in for CuPy."""
    return [FakeArray(np.array(x, dtype), device) for x in arrays]
