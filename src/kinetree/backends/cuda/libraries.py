"""Libraries of arrays on GPUs: how each describes, allocates and copies arrays, and which stream it uses."""

from __future__ import annotations

import sys
from collections.abc import Callable, Hashable, Sequence
from dataclasses import dataclass
from functools import cached_property
from itertools import pairwise
from math import prod
from types import ModuleType
from typing import Any, NamedTuple, Protocol, TypeAlias

import numpy as np

from ..._support import optional
from ...compiler.ir.program import Array
from ...errors import InputError, brief

# --- Views: the addresses, shapes and strides of arrays on a device, and the two strides that kernels take ---

DTYPES = ("float64", "float32")


@dataclass(frozen=True)
class View:
    """An array in the memory of a device; strides are in numbers, not in bytes."""

    pointer: int
    shape: tuple[int, ...]
    strides: tuple[int, ...]
    dtype: str
    device: int

    def lead(self, array: Array) -> tuple[int, ...]:
        """Return the leading shape, without the dimensions of one sample."""
        return self.shape[: len(self.shape) - len(array.shape)]


class Layout(NamedTuple):
    """The arguments of a kernel for one array: address, stride between samples, stride between entries."""

    pointer: int
    sample: int
    entry: int


def common(name: str, labels: Sequence[str], views: Sequence[View], index: int | None) -> tuple[int, str]:
    """Return the device and the precision of all arrays of a call; InputError if they differ, or are not suitable.

    `index` is the device on which they must be; None stands for any.
    """
    first = views[0]
    for label, view in zip(labels, views, strict=True):
        if view.dtype not in DTYPES:
            raise InputError(f"{name}: {label} has dtype {view.dtype}; expected float64 or float32")
        if view.dtype != first.dtype:
            raise InputError(
                f"{name}: {labels[0]} has dtype {first.dtype} and {label} has {view.dtype}; give all arrays of one "
                "dtype"
            )
        if view.device != first.device:
            raise InputError(
                f"{name}: {labels[0]} is on cuda:{first.device} and {label} on cuda:{view.device}; give all arrays on "
                "one device"
            )
    if index is not None and first.device != index:
        raise InputError(
            f"{name}: {labels[0]} is on cuda:{first.device}; this function is for cuda:{index}, and that of on('cuda') "
            "for arrays on any GPU"
        )
    return first.device, first.dtype


def layout(view: View, array: Array, lead: Sequence[int]) -> Layout | None:
    """Return the layout of a view that is broadcast to a leading shape; None if it has no such two strides."""
    count = len(view.shape) - len(array.shape)
    missing = len(lead) - count
    strides = (
        [0] * missing
        + [
            s if n == wide else 0  # an axis of length one is repeated
            for s, n, wide in zip(view.strides, view.shape, lead[missing:], strict=False)
        ]
    )
    sample = one_stride(lead, strides)
    entry = one_stride(array.shape, view.strides[count:])
    return None if sample is None or entry is None else Layout(view.pointer, sample, entry)


def one_stride(shape: Sequence[int], strides: Sequence[int]) -> int | None:
    """Return the stride between consecutive entries of some axes, the last running fastest; None if there is none."""
    axes = [(n, s) for n, s in zip(shape, strides, strict=True) if n != 1]
    if not axes:
        return 0
    for (_, outer), (n, inner) in pairwise(axes):
        if outer != n * inner:
            return None
    return axes[-1][1]


def overlaps(out: Layout, out_size: int, other: Layout, other_size: int, samples: int, itemsize: int) -> bool:
    """Return whether two arrays have a number in common, or could have; columns of one array have none."""
    (a0, a1), (b0, b1) = (extent(x, n, samples, itemsize) for x, n in ((out, out_size), (other, other_size)))
    if out.pointer + a0 >= other.pointer + b1 or other.pointer + b0 >= out.pointer + a1:
        return False
    if out.sample != other.sample or out.sample <= 0 or min(out.entry, other.entry) < 0:
        return True
    shift = (other.pointer - out.pointer) // itemsize % out.sample
    return shift <= (out_size - 1) * out.entry or shift + (other_size - 1) * other.entry >= out.sample


def extent(at: Layout, size: int, samples: int, itemsize: int) -> tuple[int, int]:
    """Return the first byte of an array and its end, relative to its address."""
    if not size or not samples:
        return 0, 0
    ends = ((samples - 1) * at.sample, (size - 1) * at.entry)
    return sum(min(e, 0) for e in ends) * itemsize, (sum(max(e, 0) for e in ends) + 1) * itemsize


DeviceArray: TypeAlias = Any
"""An array of CuPy or a tensor of torch; neither package needs to be installed."""


class Library(Protocol):
    """What kernels require of a library of arrays."""

    name: str
    module: str

    def owns(self, module: ModuleType, x: DeviceArray) -> bool:
        """Return whether an object is an array of this library, given its module."""
        ...

    def view(self, x: DeviceArray, label: str) -> View:
        """Return the view of an array; InputError with its label if it is not in the memory of a GPU."""
        ...

    def sort(self, x: DeviceArray) -> tuple[int, Hashable] | None:
        """Return quickly the address of an array, and all else that its view depends on; None if it needs checks."""
        ...

    def pointer(self, x: DeviceArray) -> int:
        """Return the address of an array."""
        ...

    def stream(self, device: int) -> int:
        """Return the handle of the caller's current stream on a device."""
        ...

    def empty(self, shape: tuple[int, ...], dtype: str, device: int) -> DeviceArray:
        """Return a new array."""
        ...

    def spread(self, x: DeviceArray, shape: tuple[int, ...]) -> DeviceArray:
        """Return a dense copy of an array, broadcast to a shape."""
        ...

    def columns(self, values: Sequence[Any], dtype: str, device: int) -> DeviceArray:
        """Return numbers and arrays, broadcast to a common shape, as columns of one array."""
        ...

    def entries_first(self, x: DeviceArray, lead: tuple[int, ...], dtype: str) -> DeviceArray:
        """Return a dense copy [entries, samples] of an array [..., entries] that is broadcast to a leading shape."""
        ...

    def finite(self, x: DeviceArray) -> np.ndarray:
        """Return for each sample of [entries, samples] whether all entries are finite, in the memory of the host."""
        ...

    def nonzero(self, x: DeviceArray) -> np.ndarray:
        """Return for each sample of [entries, samples] whether an entry is not zero, in the memory of the host."""
        ...


class CuPy:
    """Arrays of CuPy."""

    name, module = "CuPy", "cupy"

    def owns(self, module: ModuleType, x: DeviceArray) -> bool:
        """Return whether an object is an array of CuPy."""
        return isinstance(x, module.ndarray)

    def view(self, x: DeviceArray, label: str) -> View:
        """Return the view of an array."""
        size = x.dtype.itemsize
        if any(s % size for s in x.strides):
            raise InputError(f"{label} has strides {x.strides} [bytes], no multiples of {size}; give a copy, x.copy()")
        return View(x.data.ptr, x.shape, tuple(s // size for s in x.strides), x.dtype.name, x.device.id)

    def sort(self, x: DeviceArray) -> tuple[int, Hashable] | None:
        """Return the address of an array, and what its view depends on."""
        data = x.data
        return data.ptr, (x.shape, x.strides, x.dtype.num, data.device_id)

    def pointer(self, x: DeviceArray) -> int:
        """Return the address of an array."""
        return x.data.ptr

    def stream(self, device: int) -> int:
        """Return the handle of the current stream."""
        cupy = optional.cupy()
        return cupy.cuda.get_current_stream(device).ptr

    def empty(self, shape: tuple[int, ...], dtype: str, device: int) -> DeviceArray:
        """Return a new array."""
        cupy = optional.cupy()
        if cupy.cuda.get_device_id() == device:
            return cupy.empty(shape, dtype)
        with cupy.cuda.Device(device):
            return cupy.empty(shape, dtype)

    def spread(self, x: DeviceArray, shape: tuple[int, ...]) -> DeviceArray:
        """Return a dense copy of an array, broadcast to a shape."""
        cupy = optional.cupy()
        with x.device:
            return cupy.ascontiguousarray(cupy.broadcast_to(x, shape))

    def columns(self, values: Sequence[Any], dtype: str, device: int) -> DeviceArray:
        """Return numbers and arrays as columns of one array."""
        cupy = optional.cupy()
        with cupy.cuda.Device(device):
            return cupy.stack(cupy.broadcast_arrays(*(cupy.asarray(x, dtype) for x in values)), axis=-1)

    def entries_first(self, x: DeviceArray, lead: tuple[int, ...], dtype: str) -> DeviceArray:
        """Return a dense copy [entries, samples] of an array [..., entries]."""
        cupy = optional.cupy()
        with x.device:
            wide = cupy.broadcast_to(x, (*lead, x.shape[-1])).reshape((prod(lead), x.shape[-1]))
            return cupy.array(wide.T, dtype, order="C")

    def finite(self, x: DeviceArray) -> np.ndarray:
        """Return for each sample whether all entries are finite."""
        return optional.cupy().isfinite(x).all(axis=0).get()

    def nonzero(self, x: DeviceArray) -> np.ndarray:
        """Return for each sample whether an entry is not zero."""
        return (x != 0).any(axis=0).get()


class Torch:
    """Tensors of PyTorch."""

    name, module = "torch", "torch"

    def owns(self, module: ModuleType, x: DeviceArray) -> bool:
        """Return whether an object is a tensor."""
        return isinstance(x, module.Tensor)

    def view(self, x: DeviceArray, label: str) -> View:
        """Return the view of a tensor on a GPU."""
        if x.device.type != "cuda":
            raise InputError(f"{label} is a torch tensor on the device {str(x.device)!r}; move it: x.to('cuda')")
        if str(x.layout) != "torch.strided":
            raise InputError(f"{label} is a torch tensor of the layout {x.layout}; give a dense one: x.to_dense()")
        dtype = str(x.dtype).removeprefix("torch.")
        return View(x.data_ptr(), tuple(x.shape), x.stride(), dtype, x.device.index)

    def sort(self, x: DeviceArray) -> tuple[int, Hashable] | None:
        """Return the address of a tensor, and what its view depends on; None if it is recorded or not dense."""
        if x.requires_grad:
            return None
        try:
            return x.data_ptr(), (x.shape, x.stride(), x.dtype, x.get_device())
        except RuntimeError:  # sparse tensors have no strides
            return None

    def pointer(self, x: DeviceArray) -> int:
        """Return the address of a tensor."""
        return x.data_ptr()

    def stream(self, device: int) -> int:
        """Return the handle of the current stream."""
        return self._current(device)

    @cached_property
    def _current(self) -> Callable[[int], int]:
        """The function that returns the handle of the current stream, without an object, which takes 2 us."""
        torch = optional.torch()
        raw = getattr(torch._C, "_cuda_getCurrentRawStream", None)
        return raw or (lambda device: torch.cuda.current_stream(device).cuda_stream)

    def place(self, device: int) -> Any:
        """Return torch's name of a device."""
        return optional.torch().device(f"cuda:{device}")

    def empty(self, shape: tuple[int, ...], dtype: str, device: int) -> DeviceArray:
        """Return a new tensor."""
        torch = optional.torch()
        return torch.empty(shape, dtype=getattr(torch, dtype), device=self.place(device))

    def spread(self, x: DeviceArray, shape: tuple[int, ...]) -> DeviceArray:
        """Return a dense copy of a tensor, broadcast to a shape."""
        return x.detach().expand(shape).contiguous()

    def columns(self, values: Sequence[Any], dtype: str, device: int) -> DeviceArray:
        """Return numbers and tensors as columns of one tensor."""
        torch = optional.torch()
        place = {"dtype": getattr(torch, dtype), "device": self.place(device)}
        return torch.stack(torch.broadcast_tensors(*(torch.as_tensor(x, **place) for x in values)), dim=-1)

    def entries_first(self, x: DeviceArray, lead: tuple[int, ...], dtype: str) -> DeviceArray:
        """Return a dense copy [entries, samples] of a tensor [..., entries]."""
        torch = optional.torch()
        wide = x.detach().expand((*lead, x.shape[-1])).reshape((prod(lead), x.shape[-1]))
        made = torch.empty((wide.shape[1], wide.shape[0]), dtype=getattr(torch, dtype), device=x.device)
        return made.copy_(wide.T)

    def finite(self, x: DeviceArray) -> np.ndarray:
        """Return for each sample whether all entries are finite."""
        return optional.torch().isfinite(x).all(dim=0).cpu().numpy()

    def nonzero(self, x: DeviceArray) -> np.ndarray:
        """Return for each sample whether an entry is not zero."""
        return (x != 0).any(dim=0).cpu().numpy()


LIBRARIES: tuple[Library, ...] = (CuPy(), Torch())
"""The libraries whose arrays kernels read and write in place. Calls on JAX arrays are made by JAX itself."""


def library_of(labeled: Sequence[tuple[str, DeviceArray]], name: str) -> Library:
    """Return the library of all arrays of a call, given with their labels; InputError if they have several, or none."""
    first: tuple[str, Library] | None = None
    for label, x in labeled:
        library = _library(x)
        if library is None:
            raise InputError(f"{name}: {label} is {_kind(x)}")
        if first is not None and library is not first[1]:
            raise InputError(
                f"{name}: {first[0]} is an array of {first[1].name} and {label} one of {library.name}; give all arrays "
                "of one library, for example by cupy.asarray(x) or torch.as_tensor(x), which copy nothing"
            )
        first = first or (label, library)
    if first is None:
        raise InputError(f"{name}: no arrays are given")
    return first[1]


def _library(x: object) -> Library | None:
    for library in LIBRARIES:
        module = sys.modules.get(library.module)  # an array of a library exists only if its module is imported
        if module is not None and library.owns(module, x):
            return library
    return None


def _kind(x: object) -> str:
    """Return what an object is and how it becomes an array on a GPU, as the rest of a message."""
    if type(x).__module__.partition(".")[0] == "numpy" or isinstance(x, list | tuple | float | int):
        what = "a NumPy array" if hasattr(x, "dtype") else f"{brief(x)},"
        return (
            f"{what} in the memory of the host, and nothing is copied silently; move it to the GPU by cupy.asarray(x), "
            "torch.as_tensor(x, device='cuda') or jax.device_put(x), or call the function of the system on the CPU"
        )
    if hasattr(x, "__cuda_array_interface__"):
        return f"of the type {type(x).__name__}; give cupy.asarray(x), which copies nothing"
    return f"of the type {type(x).__name__}; expected an array of CuPy, torch or JAX on a GPU"
