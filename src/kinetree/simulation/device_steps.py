"""A time step as a function of arrays on a GPU: one kernel on the caller's stream, without the host's memory."""

from __future__ import annotations

from collections.abc import Callable, Hashable, Mapping, Sequence
from dataclasses import dataclass, field
from math import prod
from typing import Any

import numpy as np

from .._support import optional
from ..backends.autograd import needs_gradient
from ..backends.cuda.code import LaneKernel
from ..backends.cuda.libraries import LIBRARIES, Library, View, common, library_of, one_stride
from ..backends.cuda.system import CudaSystem, is_jax
from ..backends.mirrored import parameter_argument
from ..compiler.ir.program import Array
from ..compiler.lower.contacts import candidate_names
from ..errors import InputError
from ..model.mechanism import Named
from ..runtime.arguments import places_of, wrong_count, wrong_out, wrong_shape
from ..targets import ptx
from .stepping import Stepping, describe_step, step_kernel

KEPT = 64
"""The most shapes of calls whose launches are kept."""


@dataclass(frozen=True)
class Launch:
    """A prepared launch for arrays of certain shapes, which lacks only their addresses, in these places.

    `extents` are the first byte and the end of each array, relative to its address: inputs, then outputs. `apart` has
    addresses at which outputs are known to share no memory with inputs.
    """

    prepared: Any
    places: tuple[int, ...]
    shapes: tuple[tuple[int, ...], ...]
    extents: tuple[tuple[int, int], ...]
    device: int
    dtype: str
    apart: set[tuple[int, ...]] = field(default_factory=set)

    def require_apart(self, addresses: tuple[int, ...]) -> None:
        """Raise InputError if an output may share memory with an input."""
        spans = [(p + a, p + b) for p, (a, b) in zip(addresses, self.extents, strict=True)]
        count = len(spans) - len(self.shapes)
        if any(a < d and c < b for a, b in spans[count:] for c, d in spans[:count]):
            raise InputError("step: out may share memory with an input; give memory of its own")
        if len(self.apart) >= KEPT:
            self.apart.clear()
        self.apart.add(addresses)


class DeviceStepFunction:
    """A time step as a function of arrays of CuPy, torch or JAX on a GPU, made by `arm.on("cuda").stepper(...)`.

    It takes and returns what a `StepFunction` does, in the precision of the arrays, and queues one kernel on the
    current stream of their library. With `out`, nothing is allocated, and CUDA graphs can capture a call after a first
    one. Arrays of JAX pass through torch or CuPy by DLPack, without copies, outside of `jax.jit`.
    """

    def __init__(
        self,
        gpu: CudaSystem,
        made: Callable[[str], Stepping],
        dt: float,
        substeps: int,
        parameters: np.ndarray | None,
    ) -> None:
        """Store the settings; `made` returns the steps in a precision. Use gpu.stepper(...)."""
        self.system, self.dt, self.substeps, self.parameters, self._made = gpu, dt, substeps, parameters, made
        kernel = step_kernel(made("float64"))
        hidden = 1 if parameters is None else 2
        self.names = tuple(a.name for a in kernel.arguments[: kernel.arity[0] - hidden])
        self.mechanism = made("float64").mechanism
        self._outputs = kernel.arity[1]
        self._kernels: dict[tuple[str, int], LaneKernel] = {}
        self._constants: dict[tuple[str, int, str], Any] = {}
        self._launches: dict[Hashable, Launch] = {}
        self._last: Any = ()
        self._library: Library | None = None

    def __repr__(self) -> str:
        """Return the arrays, the length of the step, and the device."""
        return describe_step(self.mechanism.name, self.names, self.dt, self.substeps, f" on {self.system.place}")

    def __call__(self, *arrays: Any, out: Any = None, parameters: Named | Any = None, **named: Any) -> tuple[Any, ...]:
        """Return the state after a step: (q, qd), or (q, qd, impulses, residual) with contacts.

        Leading axes of the arrays broadcast, and arrays may be given by name. `parameters` are values of free
        parameters for this call, an array [..., np], or numbers and arrays by name. `out` has arrays for the results,
        which share no memory with the others.
        """
        if parameters is None and not named and self._library is not None:
            found = self._known(arrays, out)
            if found is not None:
                return found
        return self._checked(self._in_order(arrays, named), out, parameters)

    def _known(self, arrays: tuple, out: Any) -> tuple[Any, ...] | None:
        """Run as a call on such arrays did before; None if there was none, or checks are needed."""
        library: Any = self._library
        try:
            addresses, launch = self._found(library, arrays if out is None else (*arrays, *out))
        except (AttributeError, TypeError):  # of another library, or an array that needs checks
            return None
        if launch is None:
            return None
        if out is None:
            out = tuple(library.empty(shape, launch.dtype, launch.device) for shape in launch.shapes)
            addresses += tuple(map(library.pointer, out))
        elif addresses not in launch.apart:
            launch.require_apart(addresses)
        launch.prepared.start(zip(launch.places, addresses, strict=False), library.stream(launch.device))
        return tuple(out)

    def _found(self, library: Any, given: tuple) -> tuple[tuple[int, ...], Launch | None]:
        """Return the addresses of arrays and the launch for their shapes; those of the last call are compared first."""
        (key, launch), found = self._last, []
        for x, known in zip(given, key, strict=False):
            address, sort = library.sort(x)
            if sort != known:
                break
            found.append(address)
        if len(found) == len(given) == len(key):
            return tuple(found), launch
        addresses, key = zip(*map(library.sort, given), strict=True)
        launch = self._launches.get(key)
        if launch is not None:
            self._last = key, launch
        return addresses, launch

    def _in_order(self, arrays: tuple, named: Mapping[str, Any]) -> tuple:
        by_name = dict(zip(self.names, arrays, strict=False))
        for name, value in named.items():
            if name not in self.names:
                known = ", ".join((*self.names, "parameters", "out"))
                raise TypeError(f"step() got an unexpected keyword argument {name!r}; on a GPU it takes {known}")
            if name in by_name:
                raise TypeError(f"step() got multiple values for argument {name!r}")
            by_name[name] = value
        missing = [name for name in self.names if name not in by_name and name != "impulses"]
        if missing or len(arrays) > len(self.names):
            count = max(len(arrays), len(by_name))
            raise InputError(f"step takes {len(self.names)} arrays ({', '.join(self.names)}), not {count}")
        return tuple(by_name[name] for name in self.names if name in by_name)

    def _checked(self, arrays: tuple, out: Any, parameters: Any) -> tuple[Any, ...]:
        """Check arrays, run on them, and keep the launch for others of the same shapes."""
        if any(map(is_jax, arrays)):
            return self._by_dlpack(arrays, out, parameters)
        if needs_gradient(arrays):
            raise InputError("step: a step on a GPU has no gradients; give x.detach(), or call it in torch.no_grad()")
        places = places_of(out, self._outputs)
        labels = [*self.names[: len(arrays)], *("out" for x in places if x is not None)]
        given = [*arrays, *(x for x in places if x is not None)]
        library = library_of(list(zip(labels, given, strict=True)), "step")
        views = [library.view(x, f"step: {label}") for label, x in zip(labels, given, strict=True)]
        device, dtype = common("step", labels, views, self.system.index)
        kernel = self._kernel(dtype, device)
        count = kernel.kernel.arity[0]
        inputs, outputs = ([Array(a.name, tuple(map(int, a.shape))) for a in x] for x in (
            kernel.kernel.arguments[:count], kernel.kernel.arguments[count:]
        ))  # fmt: skip
        values = self._own_parameters(parameters, library, dtype, device)
        known = dict(zip(self.names, views, strict=False))
        if values is not None:
            known["parameters"] = library.view(values, "step: parameters")
            if known["parameters"].dtype != dtype:
                raise InputError(f"step: parameters have dtype {known['parameters'].dtype}, and the arrays {dtype}")
        named = [a for a in inputs if a.name in known]
        wrong = wrong_count("step", [a for a in named if a.name != "parameters"], len(arrays))
        if error := wrong or wrong_shape("step", named, [known[a.name].shape for a in named]):
            raise error
        lead = np.broadcast_shapes(*(known[a.name].lead(a) for a in named))
        if error := wrong_out("step", outputs, lead, [None if x is None else tuple(x.shape) for x in places]):
            raise error
        results = [
            library.empty(lead + a.shape, dtype, device) if x is None else x
            for a, x in zip(outputs, places, strict=True)
        ]
        size, copies, arguments, at = np.dtype(dtype).itemsize, [], [], {}
        for a in inputs:
            at[a.name] = len(arguments)
            if a.name in known:
                strides = _strides(known[a.name], a, lead)
                if strides is None:
                    source = values if a.name == "parameters" else arrays[self.names.index(a.name)]
                    copies.append(library.spread(source, lead + a.shape))
                    known[a.name] = library.view(copies[-1], a.name)
                    strides = _strides(known[a.name], a, lead)
                assert strides is not None, "a dense copy has strides"
                arguments += [known[a.name].pointer, *(s * size for s in strides)]
            else:
                arguments += self._constant(kernel, a, dtype, device)
        views = [library.view(x, "step: out") for x in results]
        for a, view in zip(outputs, views, strict=True):
            strides = _strides(view, a, lead)
            if strides is None or (prod(lead) > 1 and a.size and strides[0] == 0):
                raise InputError(
                    f"step: out for {a.name} has strides that a kernel cannot write; give a contiguous array"
                )
            at[a.name] = len(arguments)
            arguments += [view.pointer, *(s * size for s in strides)]
        used = [a for a in inputs if a.name in known] + outputs
        extents = [_extent(v, size) for v in (*(known[a.name] for a in inputs if a.name in known), *views)]
        launch = Launch(
            kernel.prepare(arguments, prod(lead)) if prod(lead) else _Nothing(), tuple(at[a.name] for a in used),
            tuple(lead + a.shape for a in outputs), tuple(extents), device, dtype,
        )  # fmt: skip
        if out is not None:
            launch.require_apart(tuple(arguments[k] for k in launch.places))
        launch.prepared.start((), library.stream(device))
        if not copies and values is None:
            self._keep(launch, library, arrays, out)
        return tuple(results)

    def _keep(self, launch: Launch, library: Library, arrays: tuple, out: Any) -> None:
        """Keep a launch for calls on arrays of the same shapes."""
        given = arrays if out is None else (*arrays, *out)
        sorts = [library.sort(x) for x in given]
        if any(x is None for x in sorts):
            return
        if self._library is not library or len(self._launches) >= KEPT:
            self._launches.clear()
        key = tuple(x[1] for x in sorts if x)  # their number tells whether there is an `out`
        self._library, self._last = library, (key, launch)
        self._launches[key] = launch

    def _kernel(self, dtype: str, device: int) -> LaneKernel:
        if (dtype, device) not in self._kernels:
            kernel = step_kernel(self._made(dtype))
            self._kernels[dtype, device] = LaneKernel(kernel, dtype, ptx.driver.driver().device(device))
        return self._kernels[dtype, device]

    def _own_parameters(self, given: Any, library: Library, dtype: str, device: int) -> Any:
        """Return the parameters of a call as an array on the device; None for those of the stepper."""
        if given is None:
            return None
        if isinstance(given, Mapping) and self.parameters is not None:
            names = [p.name for p in self.mechanism.free_parameters]
            given = dict(zip(names, self.parameters.tolist(), strict=True)) | dict(given)

        def columns(values: Sequence[Any]) -> Any:
            return library.columns(values, dtype, device)

        return parameter_argument(self.mechanism, given, numbers=columns, columns=columns)[0]

    def _constant(self, kernel: LaneKernel, a: Array, dtype: str, device: int) -> list[int]:
        """Return the place of an argument that is the same for all samples and in every call."""
        if (dtype, device, a.name) not in self._constants:
            numbers = {
                "settings": [self.dt / self.substeps, float(self.substeps)],
                "parameters": self.parameters,
                "impulses": np.zeros((len(candidate_names(self.mechanism)), 3)),
            }[a.name]
            data = np.ascontiguousarray(numbers, dtype).tobytes()
            self._constants[dtype, device, a.name] = kernel.device.upload(data)
        size = np.dtype(dtype).itemsize
        steps = [prod(a.shape[k + 1 :]) * size for k in range(len(a.shape))]
        return [self._constants[dtype, device, a.name].address, 0, *steps]

    def _by_dlpack(self, arrays: tuple, out: Any, parameters: Any) -> tuple[Any, ...]:
        """Run on arrays of JAX as tensors of torch, or arrays of CuPy, in the same memory."""
        jax = optional.jax()
        if out is not None:
            raise InputError("step: arrays of JAX cannot be written; call the step without out")
        if any(isinstance(x, jax.core.Tracer) for x in arrays):
            raise InputError("step: a step on a GPU cannot be traced by JAX; call it outside of jax.jit")
        module = _present()
        given = tuple(module.from_dlpack(x) if is_jax(x) else x for x in arrays)
        parameters = module.from_dlpack(parameters) if is_jax(parameters) else parameters
        return tuple(jax.dlpack.from_dlpack(x) for x in self._checked(given, None, parameters))


class _Nothing:
    """The launch of no samples."""

    def start(self, changes: object, stream: int) -> None:
        """Do nothing."""


def _present() -> Any:
    """Return torch or CuPy, one of which makes the memory of results."""
    for library in reversed(LIBRARIES):
        try:
            return getattr(optional, library.module)()
        except InputError:
            continue
    raise InputError("step: arrays of JAX need torch or CuPy, which make the memory of results; install one of them")


def _strides(view: View, a: Array, lead: tuple[int, ...]) -> tuple[int, ...] | None:
    """Return the strides between samples, broadcast to a leading shape, and along the axes; None if there are none."""
    count = len(view.shape) - len(a.shape)
    missing = len(lead) - count
    own = [s if n == wide else 0 for s, n, wide in zip(view.strides, view.shape, lead[missing:], strict=False)]
    sample = one_stride(lead, [0] * missing + own)
    return None if sample is None else (sample, *view.strides[count:])


def _extent(view: View, size: int) -> tuple[int, int]:
    """Return the first byte of an array and its end, relative to its address."""
    if not prod(view.shape):
        return 0, 0
    ends = [(n - 1) * s for n, s in zip(view.shape, view.strides, strict=True)]
    return sum(min(e, 0) for e in ends) * size, (sum(max(e, 0) for e in ends) + 1) * size
