"""Function: one compiled algorithm of one mechanism, as a NumPy gufunc with checks, threads and pickling around it."""

from __future__ import annotations

import ctypes
from functools import cached_property, lru_cache
from pathlib import Path
from typing import TYPE_CHECKING, Any

import numpy as np

from ..compiler.derive.build import build
from ..compiler.ir.program import Array, Program
from ..compiler.lower.build import CLOSING, DRIVEN, Request, signature
from ..compiler.lower.derivatives import Derivative
from ..compiler.rolled.binding import Job
from ..compiler.rolled.bound import BoundProgram
from ..dynamics import ALGORITHMS
from ..errors import Advice, InputError
from ..model.mechanism import Mechanism, in_order
from ..targets import target
from .arguments import call_error, refuse_masked, refuse_non_finite
from .cache import code_key
from .derived import hvp, jacobian, jvp, vjp
from .direct import NativeKernel, direct_call
from .long_loops import LongFunction, LongLoops
from .native import core_signature, load_code, register
from .rolled import PRODUCTS, ColumnFunction, MatrixProgram, RolledKernel
from .singularity import refuse_singular
from .threads import Pace, on_threads

if TYPE_CHECKING:
    from ..compiler.export.exportable import Exportable


class Function:
    """A compiled function of a mechanism, returned by `system.function(name)`; calls check shapes only."""

    def __init__(self, mechanism: Mechanism, request: Request) -> None:
        """Compile a request, or read its object code from the cache."""
        self.request = request.checked(mechanism)
        self.mechanism = mechanism
        refuse_singular(mechanism, self.request)
        self.inputs, self.outputs = signature(mechanism, self.request)
        self._bad: Any = (ctypes.c_int64 * 2)()
        self.rolled: RolledKernel | None = None
        self.kernel: NativeKernel | None = None
        self.derivatives: dict[Derivative, Function] = {}
        self.pace = Pace()
        self.shares: dict[int, Any] = {}
        self.gufunc: Any = self._native() if self._has_entries() else self._without_entries

    @property
    def name(self) -> str:
        """The name of the algorithm, or of its derivative."""
        return self.request.title

    @property
    def output(self) -> Array:
        """The output; if there are several, the first."""
        return self.outputs[0]

    @cached_property
    def program(self) -> Program | BoundProgram | MatrixProgram:
        """The arithmetic of one sample, straight-line or in loops, with `cost`, `hash`, `interpret` and `dumps`."""
        if isinstance(self.gufunc, LongFunction):
            raise InputError(
                f"{self.name} of {self.mechanism.name!r} is solved in NumPy around compiled sweeps and has no program "
                "of its own; make the function with lowering='unrolled'"
            )
        if isinstance(self.gufunc, ColumnFunction):
            return self.gufunc.program
        return self._straight if self.rolled is None else self.rolled.program

    @cached_property
    def _straight(self) -> Program:
        return build(self.mechanism, self.request)

    def cost(self) -> dict[str, int]:
        """Return the numbers of operations per sample: multiplications, additions, divisions, roots, sines."""
        return self.program.cost()

    jacobian, jvp, vjp, hvp = jacobian, jvp, vjp, hvp

    def of(self, request: Request) -> Function:
        """Return another function of the same mechanism."""
        return Function(self.mechanism, request)

    @property
    def workspace(self) -> int:
        """The memory that rolled code takes per sample in addition to its arrays [bytes]; 0 for unrolled code."""
        return 0 if self.rolled is None else self.rolled.workspace * np.dtype(self.request.dtype).itemsize

    def __call__(self, *arguments, **options):
        """Run the gufunc without checks, with broadcasting, `out` and other options as in NumPy; NaN passes through.

        Free parameters are an input after those of the state. As `parameters=`, they may also be given by name.
        """
        if "parameters" in options:
            arguments = self._with_parameters(arguments, options.pop("parameters"))
        return self._direct(*arguments, **options)

    def _with_parameters(self, arguments: tuple, given: Any) -> tuple:
        """Return the arguments with the values of the free parameters, all in order or some by name, at their place."""
        names = [a.name for a in self.inputs]
        if "parameters" not in names:
            raise InputError(
                f"{self.mechanism.name!r} has no free parameters; declare them with free = true in the mechanism"
            )
        if len(arguments) != len(names) - 1:
            names.remove("parameters")
            raise TypeError(f"{self.name}() with parameters= takes {', '.join(names)}; given {len(arguments)} arrays")
        at = names.index("parameters")
        return (*arguments[:at], in_order(self.mechanism, given), *arguments[at:])

    @cached_property
    def _direct(self) -> Any:
        """The gufunc, by a direct call if possible."""
        if self.kernel is None:
            return self.gufunc
        return direct_call(self.kernel, self.gufunc, self.name, "", (), self.gufunc) or self.gufunc

    def checked(self, arguments: tuple, *, out=None, threads: int | None = None) -> Any:
        """Run with checks: InputError for arguments of the wrong shape or type, and for input that is not finite.

        The kernel counts blocks of samples with NaN or infinities, so the check takes almost no time.
        """
        before = self._bad[1]
        result = self.unchecked(arguments, out=out, threads=threads)
        if self._bad[1] != before:
            refuse_non_finite(self, arguments, result)
        return result

    def unchecked(self, arguments: tuple, *, out=None, threads: int | None = None) -> Any:
        """Run without the check for numbers that are not finite."""
        refuse_masked(self, arguments)
        try:
            if threads is None or threads == 1:
                return self.alone(arguments, out)
            return on_threads(self, arguments, out, threads)
        except (ValueError, TypeError, RuntimeError) as error:
            raise call_error(self, arguments, out, error) from None

    @property
    def bad_blocks(self) -> memoryview:
        """Two counts of blocks of samples: with an input, and with any number, that is not finite."""
        return memoryview(self._bad).cast("B").cast("q")

    def save(self, path: str | Path, *, triple: str | None = None, jacobian: bool = False) -> Path:
        """Write the function as code in the language of the suffix (.c, .o, ...), with its self-test; return the path.

        The header of C and of object code is written beside it. `triple` is the processor of object code. With
        `jacobian`, the Jacobian with respect to all inputs is written to a file jac_NAME, which CasADi finds.
        """
        from ..compiler.export.files import write

        path = Path(path)
        write(self.exportable(), path, triple=triple)
        if jacobian:
            write(self.exportable(jacobian=True), path.with_name(f"jac_{path.name}"), triple=triple)
        return path

    def exportable(self, name: str | None = None, *, jacobian: bool = False) -> Exportable:
        """Return the function, or its Jacobian, with the meaning of its arrays and a self-test, under a name."""
        if self.request.lowering == "rolled":
            fact = (
                f"{self.name} of {self.mechanism.name!r} is compiled with loops over its bodies, which cannot be "
                "written to files"
            )
            remedy = "make the function with lowering='unrolled'"
            raise InputError(Advice(f"{fact}; {remedy}", f"{fact}; in Python, {remedy}"))
        from .exports import exportable, jacobian_exportable

        if jacobian:
            return jacobian_exportable(self, name or self._straight.name)
        return exportable(
            self.mechanism, self.request, self._straight, name or self._straight.name,
            lambda other: Function(self.mechanism, Request(other)),
        )  # fmt: skip

    def __reduce__(self):
        """Pickle the mechanism and the request; unpickling compiles the function or reads it from the cache."""
        return (Function, (self.mechanism, self.request))

    def __repr__(self) -> str:
        """Return the name and the shapes of inputs and outputs."""
        inputs, outputs = (", ".join(f"{a.name}{list(a.shape)}" for a in x) for x in (self.inputs, self.outputs))
        return f"<{self.name}({inputs}) -> {outputs} of {self.mechanism.name}>"

    def _has_entries(self) -> bool:
        return all(a.size > 0 for a in (*self.inputs, *self.outputs))

    def _native(self) -> Any:
        if self.request.lowering == "rolled":
            return self._long() if self.request.name in (*CLOSING, *DRIVEN) and self.closed else self._native_rolled()
        dtype = self.request.dtype
        key = code_key(self.mechanism, self.request, lambda: self._straight, target().fingerprint())
        code = load_code(key, lambda: self._straight, dtype)
        if dtype == "float64":
            self.kernel = NativeKernel(self.inputs, self.outputs, code.find("kernel"), self._bad, code)
        signature = core_signature(self.inputs, self.outputs)
        doc = f"{self.name} of {self.mechanism.name}: {signature}"
        arity = (len(self.inputs), len(self.outputs))
        return register(code.find("kernel"), self._bad, self.name, doc, signature, arity, dtype, code)

    def _native_rolled(self) -> Any:
        r = self.request
        job = Job(
            self.mechanism, r.name, ALGORITHMS[r.name], self.inputs, self.output, r.frame, r.axes, r.wrenches, r.dtype
        )
        if r.name in PRODUCTS:
            columns = ColumnFunction(job)
            self.rolled, self._bad = columns.kernel, columns.kernel.context
            return columns
        self.rolled = RolledKernel(job)
        self._bad = self.rolled.context
        return self.rolled.gufunc

    @property
    def closed(self) -> bool:
        """Whether the mechanism has loops or couplings."""
        return bool(self.mechanism.closures)

    def _long(self) -> Any:
        """Return the function of a long mechanism with loops: rolled sweeps and a few dense equations."""
        if self.request.wrenches:
            raise InputError(
                f"{self.name} of a long mechanism with loops takes no external wrenches; use lowering='unrolled'"
            )
        loops = _long_loops(self.mechanism)
        return LongFunction(loops, self.name, self.inputs, self.output, self.request.dtype, self._bad)

    def _without_entries(self, *arguments, out=None):
        """Replace the gufunc if an array has no entries, as for a mechanism that cannot move."""
        for a, given in zip(self.inputs, arguments, strict=True):
            if np.shape(given)[np.ndim(given) - len(a.shape) :] != a.shape:
                raise ValueError("shape")
        results = [x.astype(self.request.dtype) for x in self.program.interpret(*arguments)]
        for k, place in enumerate(self.places(out)):
            if place is not None:
                place[...] = results[k]
                results[k] = place
        return self.returned(results)

    def places(self, out: Any) -> list[Any]:
        """Return the array given for each output, or None."""
        return [None] * len(self.outputs) if out is None else list(out) if isinstance(out, tuple) else [out]

    def returned(self, results: list[Any]) -> Any:
        """Return one output by itself, several as a tuple."""
        return results[0] if len(results) == 1 else tuple(results)

    def alone(self, arguments: tuple, out: Any) -> Any:
        """Run in this thread, without checks."""
        return self._direct(*arguments) if out is None else self._direct(*arguments, out=out)


@lru_cache(maxsize=8)
def _long_loops(mechanism: Mechanism) -> Any:
    """Return the functions of a long closed mechanism, which share compiled sweeps."""

    def make(tree: Mechanism, name: str, wrenches: bool) -> Any:
        return Function(tree, Request(name, wrenches=wrenches, lowering="rolled")).gufunc

    return LongLoops(mechanism, make)
