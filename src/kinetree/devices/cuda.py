"""A mechanism on NVIDIA GPUs, returned by `system.on("cuda")`."""

from __future__ import annotations

import re
from typing import Any

from ..compiled import CompiledMechanism
from ..compiler.lower.build import Request
from ..compiler.runtime.cuda.function import Constants, CudaFunction
from ..compiler.runtime.cuda.libraries import library_of
from ..compiler.runtime.methods import mirror
from ..compiler.targets.ptx.driver import driver
from ..errors import InputError
from .mirrored import Mirrored
from .parameters import parameter_argument

DEVICES = "expected 'cpu', 'cuda', or 'cuda:0' with the number of a GPU"


def device_index(device: str) -> int | None:
    """Return the number in "cuda:1", None for "cuda"; InputError for other texts, and without such a GPU."""
    found = re.fullmatch(r"cuda(?::(\d{1,4}))?", device) if isinstance(device, str) else None
    if found is None:
        raise InputError(f"the device is {device!r}; {DEVICES}")
    index = None if found[1] is None else int(found[1])
    driver().device(index or 0)
    return index


class CudaSystem(Mirrored):
    """A mechanism with its functions on GPUs, for arrays of CuPy, torch or JAX; the same methods as a System.

    Every method takes arrays of one library, all float64 or all float32, with any leading shapes that fit together, and
    returns arrays of the same library. It queues one kernel on the library's current stream and does not wait. Options,
    by keyword: `wrenches` and `parameters` as on the CPU, and `out`, an array for the result; with it nothing is
    allocated, and CUDA graphs can capture the call after a first one. Numbers that are not finite pass through.
    """

    def __init__(self, system: CompiledMechanism, device: str = "cuda") -> None:
        """Store a system and the device; InputError if there is no GPU, or its driver is too old."""
        super().__init__(system)
        self.index = device_index(device)
        self.place = device
        self._functions: dict[Request, CudaFunction] = {}

    def function(
        self,
        name: str,
        *,
        frame: str | None = None,
        axes: str | None = None,
        wrenches: bool = False,
        lowering: str = "auto",
    ) -> CudaFunction:
        """Return a compiled function for arrays on GPUs, of both precisions."""
        request = Request(name, frame, axes, wrenches, lowering=lowering)
        if request not in self._functions:
            self._functions[request] = CudaFunction(self.mechanism, request, self.index)
        return self._functions[request]

    def fixed(self, parameters: Any) -> CudaSystem:
        """Return the same mechanism with its free parameters fixed, on the same device."""
        return CudaSystem(self.system.fixed(parameters), self.place)

    def __reduce__(self):
        """Pickle the system and the device."""
        return (CudaSystem, (self.system, self.place))

    def _call(self, name: str, arrays: tuple, options: dict[str, Any]) -> Any:
        return self._chosen(name, arrays, **options)

    def _chosen(
        self,
        name: str,
        arrays: tuple,
        *,
        frame: str | None = None,
        axes: str | None = None,
        wrenches: Any = None,
        parameters: Any = None,
        out: Any = None,
    ) -> Any:
        function = self.function(name, frame=frame, axes=axes, wrenches=wrenches is not None)
        if wrenches is not None:
            arrays = (*arrays, wrenches)

        def columns(values: Any) -> Any:
            library = library_of([("q", arrays[0])], name)
            view = library.view(arrays[0], f"{name}: q")
            return library.columns(values, view.dtype, view.device)

        return function(
            *arrays, *parameter_argument(self.mechanism, parameters, numbers=Constants, columns=columns), out=out
        )


mirror(CudaSystem, CompiledMechanism, "check", "threads", "dtype")
