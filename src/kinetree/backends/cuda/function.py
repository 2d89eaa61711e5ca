"""CudaFunction: one compiled algorithm of one mechanism on GPUs, for arrays of CuPy and torch."""

from __future__ import annotations

from collections.abc import Hashable, Sequence
from dataclasses import replace
from functools import cached_property
from math import prod
from typing import Any

import numpy as np

from ...compiler.ir.program import Array, Program
from ...compiler.lower.build import Request
from ...errors import InputError
from ...model.mechanism import Mechanism
from ...runtime.arguments import places_of, returned, wrong_count, wrong_out, wrong_shape
from ...runtime.derived import Derivable, program_of
from ...targets.ptx.driver import DeviceMemory, driver
from .code import Kernels, Launch, Plan
from .libraries import Layout, Library, View, common, extent, layout, library_of, overlaps

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

    def __call__(self, *arrays: Any, out: Any = None, constants: Constants | None = None) -> Any:
        """Run on arrays of one library, all on one device; return arrays of the same library, or `out`.

        If `constants` are given, they are the last input, the free parameters.
        """
        result = self.planned(arrays, out, constants)
        return self._checked(arrays, out, constants) if result is None else result

    def planned(self, arrays: tuple, out: Any, constants: Constants | None) -> Any:
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

    def _checked(self, arrays: tuple, out: Any, constants: Constants | None) -> Any:
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
        copies: list[Any] = []  # they stay alive until the kernel is queued, on the same stream
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
        return returned(results)

    def _keep(self, plan: Plan, given: Sequence[Any], allocates: bool, constants: Constants | None) -> None:
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

    def _input(self, library: Library, array: Array, x: Any, view: View, lead: tuple[int, ...], copies: list) -> Layout:
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
        results: Sequence[Any],
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
