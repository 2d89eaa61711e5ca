"""A mechanism on torch tensors, returned by `system.torch`: on the CPU without copies, and on GPUs."""

from __future__ import annotations

from collections.abc import Sequence
from functools import cached_property
from types import ModuleType
from typing import Any

import numpy as np

from .._support import optional
from ..errors import InputError
from ..runtime.compiled import CompiledMechanism
from ..runtime.function import Function
from ..runtime.methods import CallOptions, mirror
from .autograd import in_forward_mode, needs_gradient, node_of, record_node, refuse_out
from .cuda.system import CudaSystem
from .mirrored import Mirrored, parameter_argument


class TorchSystem(Mirrored):
    """A mechanism with its functions on torch tensors, the same methods as a System.

    Every method takes tensors with any leading shapes that fit together, all float64 or all float32, and returns such
    tensors. Those on the CPU are read and written in place; those on a GPU are passed to `system.on("cuda")`. Options,
    by keyword: `wrenches`, `parameters` and `out` as for NumPy; `threads` and `check` on the CPU only.
    """

    place = "torch"

    def __init__(self, system: CompiledMechanism) -> None:
        """Store the system."""
        super().__init__(system)
        self._plain: dict[tuple[str, object], Function] = {}

    def __reduce__(self):
        """Pickle the system."""
        return (TorchSystem, (self.system,))

    @cached_property
    def _cuda(self) -> CudaSystem:
        return CudaSystem(self.system)

    def _call(self, name: str, arrays: tuple, options: dict[str, Any]) -> Any:
        torch = optional.torch()
        if torch.compiler.is_compiling():
            return torch.compiler.disable(self._chosen)(name, arrays, options)
        result = None if options else self._plain_call(torch, name, arrays)
        return self._chosen(name, arrays, options) if result is None else result

    def _plain_call(self, torch: ModuleType, name: str, arrays: tuple) -> Any:
        """Return the result of a call without options that is like an earlier one; None for others."""
        dtype = getattr(arrays[0], "dtype", None)
        function = self._plain.get((name, dtype))
        if function is None or in_forward_mode(torch):
            return None
        for x in arrays:
            if type(x) is not torch.Tensor or x.dtype != dtype or x.requires_grad or not x.is_cpu:
                return None
        try:
            given = [x.numpy() for x in arrays]
        except (RuntimeError, TypeError):  # explained by the call with all checks
            return None
        if self.system._nominal is not None:
            given.append(self.system._nominal.astype(function.request.dtype))
        return tensors_of(function.checked(tuple(given)))

    def _chosen(self, name: str, arrays: tuple, options: dict[str, Any]) -> Any:
        o = CallOptions.of(name, options, self.without)
        if any(getattr(x, "is_cuda", False) for x in arrays):
            return self._cuda._call(name, arrays, o._replace(threads=None, check=True).given())
        arrays, out = o.arrays(arrays), o.out
        dtype = common_dtype(name, arrays)
        more = parameter_argument(
            self.mechanism, o.parameters, numbers=lambda values: tensor_of(values, dtype), columns=columns_of(dtype)
        )
        arrays = (*arrays, *more)
        function = self.system.function(name, **o.code(), dtype=dtype)
        places = None if out is None else tuple(map(numbers_of, out if isinstance(out, tuple) else (out,)))

        def run(function: Function, *tensors: object) -> Any:
            given = tuple(map(numbers_of, tensors))
            results = (function.checked if o.check else function.unchecked)(given, out=places, threads=o.threads)
            return out if out is not None else tensors_of(results)

        if o.plain:
            self._plain[name, arrays[0].dtype] = function
        common_dtype(name, arrays)
        if not needs_gradient(arrays):
            return run(function, *arrays)
        refuse_out(name, out)
        return record_node(node_of(function, lambda *tensors: run(function, *tensors), run), arrays)


def common_dtype(name: str, tensors: Sequence[Any]) -> str:
    """Return the precision of all tensors, all on the CPU."""
    torch = optional.torch()
    for x in tensors:
        if not isinstance(x, torch.Tensor):
            raise InputError(f"{name}: an argument is of the type {type(x).__name__}; expected a torch tensor")
        if x.device.type != "cpu":
            raise InputError(
                f"{name}: an argument is on the device {str(x.device)!r}; give all tensors on the CPU, or all on one "
                "GPU"
            )
        if x.dtype not in (torch.float64, torch.float32):
            raise InputError(f"{name}: an argument has dtype {x.dtype}; expected torch.float64 or torch.float32")
    if any(x.dtype != tensors[0].dtype for x in tensors):
        dtypes = ", ".join(str(x.dtype) for x in tensors)
        raise InputError(f"{name}: the tensors have dtypes {dtypes}; give all tensors of one dtype")
    return "float64" if tensors[0].dtype == torch.float64 else "float32"


def numbers_of(x: Any) -> np.ndarray:
    """Return the memory of a tensor as an array."""
    try:
        return x.detach().numpy()
    except TypeError:
        raise InputError(f"a tensor has the layout {x.layout}; expected a dense one, so give x.to_dense()") from None
    except RuntimeError as error:
        raise InputError(
            f"a tensor has no memory on the CPU ({str(error).splitlines()[0]}); under torch.vmap, give the whole batch "
            "to the function instead, which takes any leading shape"
        ) from None


def tensors_of(results: object) -> Any:
    """Return results as tensors that share their memory."""
    torch = optional.torch()
    if isinstance(results, tuple):
        return tuple(map(tensors_of, results))
    return torch.from_numpy(np.asarray(results))


def tensor_of(values: object, dtype: str) -> Any:
    """Return values as a tensor of a precision."""
    torch = optional.torch()
    return torch.as_tensor(values, dtype=getattr(torch, dtype))


def columns_of(dtype: str) -> Any:
    """Return a function that makes tensors and numbers the columns of one tensor."""
    torch = optional.torch()
    return lambda values: torch.stack(torch.broadcast_tensors(*(tensor_of(x, dtype) for x in values)), dim=-1)


mirror(TorchSystem, CompiledMechanism, "dtype")
