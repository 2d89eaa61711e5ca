"""A mechanism on NVIDIA GPUs, returned by `system.on("cuda")`."""

from __future__ import annotations

import re
import sys
from collections.abc import Hashable, Sequence
from dataclasses import replace
from functools import cached_property
from math import prod
from typing import Any

import numpy as np

from ..._support import optional
from ..._support.lazy_names import picture
from ...compiler.ir.program import Array, Program
from ...compiler.lower.build import Request, forces_act, names_of
from ...errors import InputError
from ...model.mechanism import Mechanism
from ...runtime.arguments import one_or_tuple, places_of, wrong_count, wrong_out, wrong_shape
from ...runtime.compiled import CompiledMechanism
from ...runtime.derived import Derivable, program_of
from ...runtime.methods import CallOptions, mirror
from ...targets.ptx.driver import DeviceMemory, driver
from ..autograd import needs_gradient, node_of, record_node, refuse_out
from ..mirrored import Mirrored, parameter_argument
from .code import Kernels, Launch, Plan
from .libraries import Layout, Library, View, common, extent, layout, library_of, overlaps

# --- CudaFunction: one compiled algorithm of one mechanism on GPUs, for arrays of CuPy and torch ---

KEPT = 256
"""The most plans, and the most sets of parameters given as numbers, that a function keeps."""


class Constants(tuple[float, ...]):
    """Values of the free parameters as numbers, the same for all samples, which a function keeps on the device."""


class CudaFunction(Derivable):
    """A compiled function of a mechanism for arrays on GPUs, returned by `gpu.function(name)`.

    A call queues one kernel on the caller's stream and returns at once. The arrays determine the precision. With
    `out`, nothing is allocated. There is no check for numbers that are not finite, which would have to wait.
    """

    def __init__(self, mechanism: Mechanism, request: Request, index: int | None = None) -> None:
        """Store a request; code is compiled by the first call for each precision and device.

        `index` is the device on which all arrays must be; None stands for any.
        """
        request = request.checked(mechanism)
        if request.lowering == "rolled":
            raise InputError(
                f"{request.title} of {mechanism.name!r} is compiled with loops over its {len(mechanism.bodies)} "
                "bodies, and such code runs on the CPU only; call the function of the system itself, or make the "
                "function with lowering='unrolled'"
            )
        super().__init__(mechanism, request)
        self.index = index
        self._kernels: dict[tuple[int, str], Kernels] = {}
        self._stored: dict[tuple[int, str, Constants], DeviceMemory] = {}
        self._plans: dict[Hashable, Plan] = {}
        self._library: Library | None = None
        self._kind: type | None = None

    def of(self, request: Request) -> CudaFunction:
        """Return another function of the same mechanism, on the same device."""
        return CudaFunction(self.mechanism, request, self.index)

    @cached_property
    def program(self) -> Program:
        """The arithmetic of one sample."""
        return program_of(self.mechanism, self.request)

    def __repr__(self) -> str:
        """Return the name, the shapes of inputs and outputs, and the device."""
        return f"<{self.arrays()} on {'cuda' if self.index is None else f'cuda:{self.index}'}>"

    def __call__(self, *arrays: object, out: object = None, constants: Constants | None = None) -> Any:
        """Run on arrays of one library, all on one device; return arrays of the same library, or `out`.

        If `constants` are given, they are the last input, the free parameters.
        """
        result = self.planned(arrays, out, constants)
        return self._checked(arrays, out, constants) if result is None else result

    def planned(self, arrays: tuple, out: object, constants: Constants | None) -> Any:
        """Run as a call on such arrays did before, with new addresses; None if there was none, or checks are needed."""
        library, kind = self._library, self._kind
        if library is None:
            return None
        pointers, sorts = [], []
        for x in arrays if out is None else (*arrays, *out) if type(out) is tuple else (*arrays, out):
            sort = library.sort(x) if type(x) is kind else None
            if sort is None:
                return None
            pointers.append(sort[0])
            sorts.append(sort[1])
        plan = self._plans.get((out is None, constants, *sorts))
        return None if plan is None else plan.run(pointers, out)

    def launch(
        self,
        device: int,
        dtype: str,
        inputs: Sequence[Layout],
        constants: Constants | None,
        outputs: Sequence[Layout],
        samples: int,
    ) -> Launch:
        """Return the launch of a kernel on arrays in memory; the code is compiled if it is new."""
        ready = self._ready(device, dtype)
        middle = [] if constants is None else [Layout(self._constant(ready, dtype, constants).address, 0, 1)]
        at, arrays = [*inputs, *middle, *outputs], (*self.inputs, *self.outputs)
        rows = all(x.entry == 1 or a.size < 2 for x, a in zip(at, arrays, strict=True))
        count = samples if any(a.size for a in self.outputs) else 0
        return Launch(ready, "rows" if rows else "kernel", (*(v for x in at for v in x), count))

    def _checked(self, arrays: tuple, out: object, constants: Constants | None) -> Any:
        """Check arrays, run on them, and keep the plan of the call."""
        if wrong := wrong_count(self.name, self.inputs, len(arrays) + (constants is not None)):
            raise wrong
        places = places_of(out, len(self.outputs))
        given = [(a.name, x) for a, x in zip(self.inputs, arrays, strict=False)]
        given += [("out", x) for x in places if x is not None]
        library = library_of(given, self.name)
        views = [library.view(x, f"{self.name}: {label}") for label, x in given]
        device, dtype = common(self.name, [label for label, _ in given], views, self.index)
        lead = self._lead(views[: len(arrays)], places)
        results = [
            library.empty(lead + a.shape, dtype, device) if x is None else x
            for a, x in zip(self.outputs, places, strict=True)
        ]
        samples, itemsize = prod(lead), np.dtype(dtype).itemsize
        copies: list[object] = []  # they stay alive until the kernel is queued, on the same stream
        inputs = [
            self._input(library, a, x, view, lead, copies)
            for a, x, view in zip(self.inputs, arrays, views, strict=False)
        ]
        written = self._out_layouts(library, results, lead, inputs, samples, itemsize)
        launch = self.launch(device, dtype, inputs, constants, written, samples)
        launch.start(library.stream(device))
        if not copies:
            sizes = [a.size for a in (*self.inputs[: len(inputs)], *self.outputs)]
            extents = [extent(x, n, samples, itemsize) for x, n in zip((*inputs, *written), sizes, strict=True)]
            numbers = (*range(len(inputs)), *range(len(self.inputs), len(self.inputs) + len(written)))
            shapes = tuple(lead + a.shape for a in self.outputs)
            made = Plan(launch, library, device, dtype, shapes, tuple(3 * k for k in numbers), tuple(extents))
            self._keep(made, [x for _, x in given], out is None, constants)
        return one_or_tuple(results)

    def _keep(self, plan: Plan, given: Sequence[object], allocates: bool, constants: Constants | None) -> None:
        """Keep a plan for calls on arrays of the same type."""
        self._library, self._kind = plan.library, type(given[0])
        sorts = [sort[1] for x in given if (sort := plan.library.sort(x)) is not None]
        if len(self._plans) >= KEPT:
            self._plans.clear()
        if len(sorts) == len(given):
            self._plans[allocates, constants, *sorts] = plan

    def _lead(self, views: Sequence[View], places: Sequence[Any]) -> tuple[int, ...]:
        """Return the common leading shape; InputError if shapes do not fit."""
        inputs = self.inputs[: len(views)]
        if wrong := wrong_shape(self.name, inputs, [v.shape for v in views]):
            raise wrong
        lead = np.broadcast_shapes(*(v.lead(a) for v, a in zip(views, inputs, strict=True)))
        if wrong := wrong_out(self.name, self.outputs, lead, [None if x is None else tuple(x.shape) for x in places]):
            raise wrong
        return lead

    def _input(
        self, library: Library, array: Array, x: object, view: View, lead: tuple[int, ...], copies: list
    ) -> Layout:
        """Return the layout of an input, of a copy if two strides cannot describe it."""
        found = layout(view, array, lead)
        if found is None:
            copies.append(library.spread(x, lead + array.shape))
            found = layout(library.view(copies[-1], array.name), array, lead)
        assert found is not None
        return found

    def _out_layouts(
        self,
        library: Library,
        results: Sequence[object],
        lead: tuple[int, ...],
        inputs: Sequence[Layout],
        samples: int,
        itemsize: int,
    ) -> list[Layout]:
        """Return the layouts of the outputs; InputError if two strides cannot describe one, or it overlaps an input."""
        made = []
        for a, x in zip(self.outputs, results, strict=True):
            view = library.view(x, f"{self.name}: out")
            found = layout(view, a, lead)
            if found is None or (samples > 1 and a.size and found.sample == 0):
                raise InputError(
                    f"{self.name}: out has shape {view.shape} and strides {view.strides}, which a kernel cannot write; "
                    "give a contiguous array"
                )
            for other, b in zip(inputs, self.inputs, strict=False):
                if overlaps(found, a.size, other, b.size, samples, itemsize):
                    raise InputError(f"{self.name}: out overlaps {b.name}; give memory of its own")
            made.append(found)
        return made

    def _ready(self, device: int, dtype: str) -> Kernels:
        key = device, dtype
        if key not in self._kernels:
            request = replace(self.request, dtype=dtype)
            self._kernels[key] = Kernels(
                driver().device(device), self.mechanism, request, lambda: program_of(self.mechanism, request)
            )
        return self._kernels[key]

    def _constant(self, kernels: Kernels, dtype: str, values: Constants) -> DeviceMemory:
        """Return numbers in the memory of a device, where they stay for later calls."""
        key = kernels.device.index, dtype, values
        if key not in self._stored:
            if len(self._stored) >= KEPT:
                self._plans.clear()  # they have the addresses
                self._stored.clear()  # waits for the device, so that no kernel still reads them
            self._stored[key] = kernels.device.upload(np.array(values, dtype).tobytes())
        return self._stored[key]


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
        driven: object = (),
        forces: bool | None = None,
    ) -> CudaFunction:
        """Return a compiled function for arrays on GPUs, of both precisions."""
        acting = forces_act(self.mechanism, name, forces, lowering)
        request = Request(name, frame, axes, wrenches, lowering=lowering, driven=names_of(driven), forces=acting)
        if request not in self._functions:
            self._functions[request] = CudaFunction(self.mechanism, request, self.index)
        return self._functions[request]

    def stepper(self, *, dt: float, substeps: int = 1, **options: Any) -> Any:
        """Return a time step as a function of arrays on the GPU, one kernel on the caller's stream: System.stepper."""
        return picture("stepper")(self, dt=dt, substeps=substeps, **options)

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


def is_jax(x: object) -> bool:
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
