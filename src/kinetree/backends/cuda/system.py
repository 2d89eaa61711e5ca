"""A mechanism on NVIDIA GPUs, returned by `system.on("cuda")`."""

from __future__ import annotations

import re
import sys
from typing import Any

from ..._support import optional
from ...compiler.lower.build import Request, forces_act, names_of
from ...errors import InputError
from ...runtime.compiled import CompiledMechanism
from ...runtime.methods import CallOptions, mirror
from ...targets.ptx.driver import driver
from ..autograd import needs_gradient, node_of, record_node, refuse_out
from ..mirrored import Mirrored, parameter_argument
from .function import Constants, CudaFunction
from .libraries import library_of

DEVICES = "expected 'cpu', 'cuda', or 'cuda:0' with the number of a GPU"

OUT = frozenset({"out"})


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
        self._plain: dict[str, CudaFunction] = {}
        free = self.mechanism.free_parameters
        self._nominal = Constants(p.value for p in free) if free else None
        self._jax: Any = None

    def function(
        self,
        name: str,
        *,
        frame: str | None = None,
        axes: str | None = None,
        wrenches: bool = False,
        lowering: str = "auto",
        driven: Any = (),
        forces: bool | None = None,
    ) -> CudaFunction:
        """Return a compiled function for arrays on GPUs, of both precisions."""
        acting = forces_act(self.mechanism, name, forces, lowering)
        request = Request(name, frame, axes, wrenches, lowering=lowering, driven=names_of(driven), forces=acting)
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
        function = self._plain.get(name)
        if function is not None and options.keys() <= OUT:
            result = function.planned(arrays, options.get("out"), self._nominal)
            if result is not None:
                return result
        return self._chosen(name, arrays, CallOptions.of(name, options, self.without))

    def _chosen(self, name: str, arrays: tuple, options: CallOptions) -> Any:
        if is_jax(arrays[0]):
            return self._by_jax(name, arrays, options)
        arrays, function = options.arrays(arrays), self.function(name, **options.code())

        def columns(values: Any) -> Any:
            library = library_of([("q", arrays[0])], name)
            view = library.view(arrays[0], f"{name}: q")
            return library.columns(values, view.dtype, view.device)

        constants: Constants | None = None
        for x in parameter_argument(self.mechanism, options.parameters, numbers=Constants, columns=columns):
            if isinstance(x, Constants):
                constants = x
            else:
                arrays = (*arrays, x)
        if not needs_gradient(arrays):
            if options.plain:
                self._plain[name] = function
            return function(*arrays, out=options.out, constants=constants)
        refuse_out(name, options.out)
        fixed = () if constants is None else (arrays[0].new_tensor(constants),)
        node = node_of(
            function, lambda *tensors: function(*tensors, constants=constants), lambda f, *tensors: f(*tensors), fixed
        )
        return record_node(node, arrays)

    def _by_jax(self, name: str, arrays: tuple, options: CallOptions) -> Any:
        """Let JAX call the function, on its own stream and with memory of its own."""
        from ..jax import JaxSystem

        if options.out is not None:
            raise InputError(f"{name}: arrays of JAX cannot be written; call the function without out")
        self._refuse_other_devices(name, options.arrays(arrays))
        if self._jax is None:
            self._jax = JaxSystem(self.system)
        return self._jax._call(name, arrays, options.given())

    def _refuse_other_devices(self, name: str, arrays: tuple) -> None:
        """Raise InputError for arrays of JAX that are not on a GPU, or not on the GPU of this system."""
        for x in arrays:
            if not is_jax(x):
                raise InputError(f"{name}: an array is of the type {type(x).__name__}, others are arrays of JAX")
            for device in jax_devices(x):
                if device.platform not in ("gpu", "cuda") or self.index not in (None, device.local_hardware_id):
                    place = "a GPU" if self.index is None else self.place
                    raise InputError(f"{name}: an array is on {device}; move it to {place}: jax.device_put(x, device)")


def is_jax(x: Any) -> bool:
    """Return whether an object is an array of JAX, or one that a transformation traces."""
    module = sys.modules.get("jax")
    return module is not None and isinstance(x, module.Array)


def jax_devices(x: Any) -> set[Any]:
    """Return the devices of an array of JAX; none for a traced one, which XLA places."""
    try:
        return x.devices()
    except optional.jax().errors.ConcretizationTypeError:
        return set()


mirror(CudaSystem, CompiledMechanism, "check", "threads", "dtype")
