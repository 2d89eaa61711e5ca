"""Libraries of arrays on GPUs: how each describes, allocates and copies arrays, and which stream it uses."""

from __future__ import annotations

import sys
from collections.abc import Hashable, Sequence
from math import prod
from typing import Any, Protocol

import numpy as np

from ....errors import InputError, brief
from .. import optional
from .views import View


class Library(Protocol):
    """What kernels require of a library of arrays."""

    name: str
    module: str

    def owns(self, module: Any, x: Any) -> bool:
        """Return whether an object is an array of this library, given its module."""
        ...

    def view(self, x: Any, label: str) -> View:
        """Return the view of an array; InputError with its label if it is not in the memory of a GPU."""
        ...

    def sort(self, x: Any) -> tuple[int, Hashable] | None:
        """Return quickly the address of an array, and all else that its view depends on; None if it needs checks."""
        ...

    def pointer(self, x: Any) -> int:
        """Return the address of an array."""
        ...

    def stream(self, device: int) -> int:
        """Return the handle of the caller's current stream on a device."""
        ...

    def empty(self, shape: tuple[int, ...], dtype: str, device: int) -> Any:
        """Return a new array."""
        ...

    def spread(self, x: Any, shape: tuple[int, ...]) -> Any:
        """Return a dense copy of an array, broadcast to a shape."""
        ...

    def columns(self, values: Sequence[Any], dtype: str, device: int) -> Any:
        """Return numbers and arrays, broadcast to a common shape, as columns of one array."""
        ...

    def entries_first(self, x: Any, lead: tuple[int, ...], dtype: str) -> Any:
        """Return a dense copy [entries, samples] of an array [..., entries] that is broadcast to a leading shape."""
        ...

    def finite(self, x: Any) -> np.ndarray:
        """Return for each sample of [entries, samples] whether all entries are finite, in the memory of the host."""
        ...

    def nonzero(self, x: Any) -> np.ndarray:
        """Return for each sample of [entries, samples] whether an entry is not zero, in the memory of the host."""
        ...


class CuPy:
    """Arrays of CuPy."""

    name, module = "CuPy", "cupy"

    def owns(self, module: Any, x: Any) -> bool:
        """Return whether an object is an array of CuPy."""
        return isinstance(x, module.ndarray)

    def view(self, x: Any, label: str) -> View:
        """Return the view of an array."""
        size = x.dtype.itemsize
        if any(s % size for s in x.strides):
            raise InputError(f"{label} has strides {x.strides} [bytes], no multiples of {size}; give a copy, x.copy()")
        return View(x.data.ptr, x.shape, tuple(s // size for s in x.strides), x.dtype.name, x.device.id)

    def sort(self, x: Any) -> tuple[int, Hashable] | None:
        """Return the address of an array, and what its view depends on."""
        data = x.data
        return data.ptr, (x.shape, x.strides, x.dtype.num, data.device_id)

    def pointer(self, x: Any) -> int:
        """Return the address of an array."""
        return x.data.ptr

    def stream(self, device: int) -> int:
        """Return the handle of the current stream."""
        cupy = optional.cupy()
        return cupy.cuda.get_current_stream(device).ptr

    def empty(self, shape: tuple[int, ...], dtype: str, device: int) -> Any:
        """Return a new array."""
        cupy = optional.cupy()
        if cupy.cuda.get_device_id() == device:
            return cupy.empty(shape, dtype)
        with cupy.cuda.Device(device):
            return cupy.empty(shape, dtype)

    def spread(self, x: Any, shape: tuple[int, ...]) -> Any:
        """Return a dense copy of an array, broadcast to a shape."""
        cupy = optional.cupy()
        with x.device:
            return cupy.ascontiguousarray(cupy.broadcast_to(x, shape))

    def columns(self, values: Sequence[Any], dtype: str, device: int) -> Any:
        """Return numbers and arrays as columns of one array."""
        cupy = optional.cupy()
        with cupy.cuda.Device(device):
            return cupy.stack(cupy.broadcast_arrays(*(cupy.asarray(x, dtype) for x in values)), axis=-1)

    def entries_first(self, x: Any, lead: tuple[int, ...], dtype: str) -> Any:
        """Return a dense copy [entries, samples] of an array [..., entries]."""
        cupy = optional.cupy()
        with x.device:
            wide = cupy.broadcast_to(x, (*lead, x.shape[-1])).reshape((prod(lead), x.shape[-1]))
            return cupy.array(wide.T, dtype, order="C")

    def finite(self, x: Any) -> np.ndarray:
        """Return for each sample whether all entries are finite."""
        return optional.cupy().isfinite(x).all(axis=0).get()

    def nonzero(self, x: Any) -> np.ndarray:
        """Return for each sample whether an entry is not zero."""
        return (x != 0).any(axis=0).get()


class Torch:
    """Tensors of PyTorch."""

    name, module = "torch", "torch"

    def owns(self, module: Any, x: Any) -> bool:
        """Return whether an object is a tensor."""
        return isinstance(x, module.Tensor)

    def view(self, x: Any, label: str) -> View:
        """Return the view of a tensor on a GPU."""
        if x.device.type != "cuda":
            raise InputError(f"{label} is a torch tensor on the device {str(x.device)!r}; move it: x.to('cuda')")
        if str(x.layout) != "torch.strided":
            raise InputError(f"{label} is a torch tensor of the layout {x.layout}; give a dense one: x.to_dense()")
        dtype = str(x.dtype).removeprefix("torch.")
        return View(x.data_ptr(), tuple(x.shape), x.stride(), dtype, x.device.index)

    def sort(self, x: Any) -> tuple[int, Hashable] | None:
        """Return the address of a tensor, and what its view depends on; None if it is recorded or not dense."""
        if x.requires_grad or not x.is_cuda:
            return None
        try:
            return x.data_ptr(), (x.shape, x.stride(), x.dtype, x.get_device())
        except RuntimeError:  # sparse tensors have no strides
            return None

    def pointer(self, x: Any) -> int:
        """Return the address of a tensor."""
        return x.data_ptr()

    def stream(self, device: int) -> int:
        """Return the handle of the current stream."""
        torch = optional.torch()
        return torch.cuda.current_stream(device).cuda_stream

    def empty(self, shape: tuple[int, ...], dtype: str, device: int) -> Any:
        """Return a new tensor."""
        torch = optional.torch()
        return torch.empty(shape, dtype=getattr(torch, dtype), device=f"cuda:{device}")

    def spread(self, x: Any, shape: tuple[int, ...]) -> Any:
        """Return a dense copy of a tensor, broadcast to a shape."""
        return x.detach().expand(shape).contiguous()

    def columns(self, values: Sequence[Any], dtype: str, device: int) -> Any:
        """Return numbers and tensors as columns of one tensor."""
        torch = optional.torch()
        place = {"dtype": getattr(torch, dtype), "device": f"cuda:{device}"}
        return torch.stack(torch.broadcast_tensors(*(torch.as_tensor(x, **place) for x in values)), dim=-1)

    def entries_first(self, x: Any, lead: tuple[int, ...], dtype: str) -> Any:
        """Return a dense copy [entries, samples] of a tensor [..., entries]."""
        torch = optional.torch()
        wide = x.detach().expand((*lead, x.shape[-1])).reshape((prod(lead), x.shape[-1]))
        made = torch.empty((wide.shape[1], wide.shape[0]), dtype=getattr(torch, dtype), device=x.device)
        return made.copy_(wide.T)

    def finite(self, x: Any) -> np.ndarray:
        """Return for each sample whether all entries are finite."""
        return optional.torch().isfinite(x).all(dim=0).cpu().numpy()

    def nonzero(self, x: Any) -> np.ndarray:
        """Return for each sample whether an entry is not zero."""
        return (x != 0).any(dim=0).cpu().numpy()


LIBRARIES: tuple[Library, ...] = (CuPy(), Torch())
"""The libraries whose arrays kernels read and write in place. Calls on JAX arrays are made by JAX itself."""


def library_of(labeled: Sequence[tuple[str, Any]], name: str) -> Library:
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


def _library(x: Any) -> Library | None:
    for library in LIBRARIES:
        module = sys.modules.get(library.module)  # an array of a library exists only if its module is imported
        if module is not None and library.owns(module, x):
            return library
    return None


def _kind(x: Any) -> str:
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
