"""CudaFunction: one compiled algorithm of one mechanism on GPUs, for arrays of CuPy and torch."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace
from functools import cached_property
from math import prod
from typing import Any

import numpy as np

from ....errors import InputError
from ....model.mechanism import Mechanism
from ...ir.program import Array, Program
from ...lower.build import Request, build, signature
from ...targets.ptx.driver import DeviceMemory, driver
from ..misfits import wrong_count, wrong_out, wrong_shape
from ..singular_inertia import refuse_singular
from .code import Kernels, kernels
from .libraries import DTYPES, Library, library_of
from .views import Layout, View, layout, overlaps

KEPT = 256
"""The most sets of parameters, given as numbers, that a function keeps on devices."""


class Constants(tuple[float, ...]):
    """Values of the free parameters as numbers, the same for all samples, which a function keeps on the device."""


class CudaFunction:
    """A compiled function of a mechanism for arrays on GPUs, returned by `gpu.function(name)`.

    A call queues one kernel on the caller's stream and returns at once. The precision is that of the arrays. With
    `out`, nothing is allocated. There is no check for numbers that are not finite, which would have to wait.
    """

    def __init__(self, mechanism: Mechanism, request: Request, index: int | None = None) -> None:
        """Store a request; code is compiled by the first call for each precision and device.

        `index` is the device on which all arrays must be; None stands for any.
        """
        self.request = request.checked(mechanism)
        self.mechanism, self.index = mechanism, index
        if self.request.lowering == "rolled":
            raise InputError(
                f"{self.name} of {mechanism.name!r} is compiled with loops over its {len(mechanism.bodies)} bodies, "
                "and such code runs on the CPU only; call the function of the system itself, or make the function with "
                "lowering='unrolled'"
            )
        refuse_singular(mechanism, self.request)
        self.inputs, self.outputs = signature(mechanism, self.request)
        self._kernels: dict[tuple[int, str], Kernels] = {}
        self._constants: dict[tuple[int, str, Constants], DeviceMemory] = {}

    @property
    def name(self) -> str:
        """The name of the algorithm."""
        return self.request.name

    @cached_property
    def program(self) -> Program:
        """The arithmetic of one sample."""
        return build(self.mechanism, self.request)

    def __repr__(self) -> str:
        """Return the name, the shapes of inputs and outputs, and the device."""
        inputs, outputs = (", ".join(f"{a.name}{list(a.shape)}" for a in x) for x in (self.inputs, self.outputs))
        place = "cuda" if self.index is None else f"cuda:{self.index}"
        return f"<{self.name}({inputs}) -> {outputs} of {self.mechanism.name} on {place}>"

    def __call__(self, *arrays: Any, out: Any = None) -> Any:
        """Run on arrays of one library, all on one device; return arrays of the same library, or `out`.

        The free parameters are the last argument: an array, or Constants.
        """
        if wrong := wrong_count(self.name, self.inputs, len(arrays)):
            raise wrong
        places = [None] * len(self.outputs) if out is None else list(out) if isinstance(out, tuple) else [out]
        constants = [x for x in arrays[-1:] if isinstance(x, Constants)]
        arrays = arrays[: len(arrays) - len(constants)]
        given = [(a.name, x) for a, x in zip(self.inputs, arrays, strict=False)]
        given += [("out", x) for x in places if x is not None]
        library = library_of(given, self.name)
        views = [library.view(x, f"{self.name}: {label}") for label, x in given]
        device, dtype = self._common([label for label, _ in given], views)
        lead = self._lead(views[: len(arrays)], places)
        results = [
            library.empty(lead + a.shape, dtype, device) if x is None else x
            for a, x in zip(self.outputs, places, strict=True)
        ]
        samples = prod(lead)
        kept: list[Any] = []  # copies stay alive until the kernel is queued, on the same stream
        inputs = [
            self._input(library, a, x, view, lead, kept) for a, x, view in zip(self.inputs, arrays, views, strict=False)
        ]
        written = self._out_layouts(library, results, lead, inputs, samples, dtype)
        self.start(device, dtype, inputs, constants[0] if constants else None, written, samples, library.stream(device))
        return results[0] if len(results) == 1 else tuple(results)

    def start(
        self,
        device: int,
        dtype: str,
        inputs: Sequence[Layout],
        constants: Constants | None,
        outputs: Sequence[Layout],
        samples: int,
        stream: int,
    ) -> None:
        """Queue the kernel on a stream; the constants follow the inputs."""
        if not samples or not any(a.size for a in self.outputs):
            return
        kernels = self._ready(device, dtype)
        middle = [] if constants is None else [Layout(self._stored(kernels, dtype, constants).address, 0, 1)]
        at = [*inputs, *middle, *outputs]
        entry = "rows" if all(x.entry == 1 or a.size < 2 for x, a in zip(at, self._arrays, strict=True)) else "kernel"
        kernels.start(entry, [v for x in at for v in x] + [samples], samples, stream)

    @property
    def _arrays(self) -> tuple[Array, ...]:
        return (*self.inputs, *self.outputs)

    def _common(self, labels: Sequence[str], views: Sequence[View]) -> tuple[int, str]:
        """Return the device and the precision of all arrays."""
        first = views[0]
        for label, view in zip(labels, views, strict=True):
            if view.dtype not in DTYPES:
                raise InputError(f"{self.name}: {label} has dtype {view.dtype}; expected float64 or float32")
            if view.dtype != first.dtype:
                raise InputError(
                    f"{self.name}: {labels[0]} has dtype {first.dtype} and {label} has {view.dtype}; give all arrays "
                    "of one dtype"
                )
            if view.device != first.device:
                raise InputError(
                    f"{self.name}: {labels[0]} is on cuda:{first.device} and {label} on cuda:{view.device}; give all "
                    "arrays on one device"
                )
        if self.index is not None and first.device != self.index:
            raise InputError(
                f"{self.name}: {labels[0]} is on cuda:{first.device}; this function is for cuda:{self.index}, and that "
                "of on('cuda') for arrays on any GPU"
            )
        return first.device, first.dtype

    def _lead(self, views: Sequence[View], places: Sequence[Any]) -> tuple[int, ...]:
        """Return the common leading shape; InputError if shapes do not fit."""
        inputs = self.inputs[: len(views)]
        if wrong := wrong_shape(self.name, inputs, [v.shape for v in views]):
            raise wrong
        lead = np.broadcast_shapes(*(v.lead(a) for v, a in zip(views, inputs, strict=True)))
        if wrong := wrong_out(self.name, self.outputs, lead, [None if x is None else tuple(x.shape) for x in places]):
            raise wrong
        return lead

    def _ready(self, device: int, dtype: str) -> Kernels:
        key = device, dtype
        if key not in self._kernels:
            request = replace(self.request, dtype=dtype)
            made = kernels(driver().device(device), self.mechanism, request, lambda: build(self.mechanism, request))
            self._kernels[key] = made
        return self._kernels[key]

    def _input(self, library: Library, array: Array, x: Any, view: View, lead: tuple[int, ...], kept: list) -> Layout:
        """Return the layout of an input, of a copy if two strides cannot describe it."""
        found = layout(view, array, lead)
        if found is None:
            copy = library.spread(x, lead + array.shape)
            kept.append(copy)
            found = layout(library.view(copy, array.name), array, lead)
        assert found is not None
        return found

    def _out_layouts(
        self, library: Library, results: Sequence[Any], lead: tuple[int, ...], inputs: Sequence[Layout], samples: int,
        dtype: str,
    ) -> list[Layout]:  # fmt: skip
        """Return the layouts of the outputs; InputError if two strides cannot describe one, or it overlaps an input."""
        made, size = [], np.dtype(dtype).itemsize
        for a, x in zip(self.outputs, results, strict=True):
            view = library.view(x, f"{self.name}: out")
            found = layout(view, a, lead)
            if found is None or (samples > 1 and a.size and found.sample == 0):
                raise InputError(
                    f"{self.name}: out has shape {view.shape} and strides {view.strides}, which a kernel cannot write; "
                    "give a contiguous array"
                )
            for other, b in zip(inputs, self.inputs, strict=False):
                if overlaps(found, a.size, other, b.size, samples, size):
                    raise InputError(f"{self.name}: out overlaps {b.name}; give memory of its own")
            made.append(found)
        return made

    def _stored(self, kernels: Kernels, dtype: str, values: Constants) -> DeviceMemory:
        """Return numbers in the memory of a device, where they stay for later calls."""
        key = kernels.device.index, dtype, values
        if key not in self._constants:
            if len(self._constants) >= KEPT:
                self._constants.clear()  # waits for the device, so that no kernel still reads them
            self._constants[key] = kernels.device.upload(np.array(values, dtype).tobytes())
        return self._constants[key]
