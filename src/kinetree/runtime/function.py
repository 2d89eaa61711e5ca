"""Function: one compiled algorithm of one mechanism, with checks, threads and pickling around what runs it."""

from __future__ import annotations

import ctypes
from collections.abc import Callable, Sequence
from functools import cached_property, lru_cache
from pathlib import Path
from typing import TYPE_CHECKING, Any, Protocol

import numpy as np

from ..compiler.ir.program import Array, Program
from ..compiler.lower.build import CLOSING, DRIVEN, Request
from ..compiler.rolled.binding import Job
from ..compiler.rolled.bound import BoundProgram
from ..dynamics import ALGORITHMS
from ..errors import Advice, InputError
from ..model.mechanism import Mechanism, in_order
from ..targets import target
from .arguments import call_error, one_or_tuple, places_of, refuse_masked, refuse_non_finite
from .cache import code_key
from .derived import Derivable, program_of
from .long_loops import LongFunction, LongLoops
from .native import NativeKernel, core_signature, direct_call, load_code, register
from .rolled import PRODUCTS, ColumnFunction, MatrixProgram, RolledKernel
from .threads import Pace, on_threads

if TYPE_CHECKING:
    from ..compiler.export.exportable import Exportable

# --- What runs a function, behind one protocol: straight-line code, loops over bodies, or Python around such loops ---

Arithmetic = Program | BoundProgram | MatrixProgram
"""The arithmetic of one sample, with `cost`, `hash`, `interpret` and `dumps`."""


class Executor(Protocol):
    """What runs the samples of a function."""

    @property
    def gufunc(self) -> Callable[..., Any]:
        """Run a batch with broadcasting and `out`: a gufunc of NumPy, or a Python function that behaves like one."""
        ...

    @property
    def kernel(self) -> NativeKernel | None:
        """The code of a gufunc of float64 numbers, which direct calls and threads run without NumPy."""
        ...

    @property
    def counts(self) -> ctypes.Array[ctypes.c_int64]:
        """The memory of two counts of blocks of samples: with an input, and with any number, that is not finite."""
        ...

    @property
    def program(self) -> Arithmetic:
        """The arithmetic of one sample."""
        ...

    @property
    def workspace(self) -> int:
        """The numbers that the code stores per sample in addition to its arrays."""
        ...

    def failures(self) -> int:
        """Return and reset the number of workspaces that could not be allocated."""
        ...


class StraightLine:
    """Straight-line code, specialized to the numbers of a mechanism; compiled, or read from the cache."""

    workspace = 0

    def __init__(self, mechanism: Mechanism, request: Request, arrays: tuple[Sequence[Array], Sequence[Array]]) -> None:
        """Load the code of a request with these inputs and outputs, and register it."""
        self._mechanism, self._request, (inputs, outputs) = mechanism, request, arrays
        self.counts = (ctypes.c_int64 * 2)()
        name, dtype = request.title, request.dtype
        key = code_key(mechanism, request, lambda: self.program, target().fingerprint())
        code = load_code(key, lambda: self.program, dtype)
        address, signature = code.find("kernel"), core_signature(inputs, outputs)
        doc, arity = f"{name} of {mechanism.name}: {signature}", (len(inputs), len(outputs))
        self.gufunc = register(address, self.counts, name, doc, signature, arity, dtype, code)
        self.kernel: NativeKernel | None = None
        if dtype == "float64":
            self.kernel = NativeKernel(tuple(inputs), tuple(outputs), address, self.counts, code)

    @property
    def program(self) -> Program:
        """The arithmetic of one sample, traced when it is first needed: code from the cache runs without it."""
        return self._traced

    @cached_property
    def _traced(self) -> Program:
        return program_of(self._mechanism, self._request)

    def failures(self) -> int:
        """Return 0."""
        return 0


class Interpreted:
    """A Program run by Python, for arrays without entries, as of a mechanism that cannot move."""

    kernel, workspace = None, 0

    def __init__(self, program: Program, dtype: str) -> None:
        """Store a Program, and the precision of its results."""
        self.program, self._dtype, self.counts = program, dtype, (ctypes.c_int64 * 2)()

    def gufunc(self, *arguments: Any, out: object = None) -> Any:
        """Return the results of a batch."""
        for a, given in zip(self.program.inputs, arguments, strict=True):
            if np.shape(given)[np.ndim(given) - len(a.shape) :] != a.shape:
                raise ValueError("shape")
        results = [x.astype(self._dtype) for x in self.program.interpret(*arguments)]
        for k, place in enumerate(places_of(out, len(results))):
            if place is not None:
                place[...] = results[k]
                results[k] = place
        return one_or_tuple(results)

    def failures(self) -> int:
        """Return 0."""
        return 0


def executor_of(mechanism: Mechanism, request: Request, inputs: Sequence[Array], outputs: Sequence[Array]) -> Executor:
    """Return what runs a checked request with these arrays: the form of its code is `request.lowering`."""
    if not all(a.size > 0 for a in (*inputs, *outputs)):
        return Interpreted(program_of(mechanism, request), request.dtype)
    if request.lowering != "rolled":
        return StraightLine(mechanism, request, (inputs, outputs))
    r, name = request, request.name
    if name in (*CLOSING, *DRIVEN) and mechanism.closures:
        if r.wrenches:
            raise InputError(
                f"{name} of a long mechanism with loops takes no external wrenches; use lowering='unrolled'"
            )
        return LongFunction(_long_loops(mechanism), name, inputs, outputs[0], r.dtype)
    job = Job(mechanism, name, ALGORITHMS[name], tuple(inputs), outputs[0], r.frame, r.axes, r.wrenches, r.dtype)
    return ColumnFunction(job) if name in PRODUCTS else RolledKernel(job)


@lru_cache(maxsize=8)
def _long_loops(mechanism: Mechanism) -> LongLoops:
    """Return the functions of a long closed mechanism, which share compiled sweeps."""

    def make(tree: Mechanism, name: str, wrenches: bool) -> Callable[..., Any]:
        return Function(tree, Request(name, wrenches=wrenches, lowering="rolled")).gufunc

    return LongLoops(mechanism, make)


# --- Functions as users hold them ---


class Function(Derivable):
    """A compiled function of a mechanism, returned by `system.function(name)`; calls check shapes only."""

    def __init__(self, mechanism: Mechanism, request: Request) -> None:
        """Compile a request, or read its object code from the cache."""
        super().__init__(mechanism, request)
        self.executor: Executor = executor_of(mechanism, self.request, self.inputs, self.outputs)
        self.shares: dict[int, Callable[..., Any]] = {}

    @cached_property
    def pace(self) -> Pace:
        """The time per sample in calls that threads of Python share."""
        return Pace()

    @property
    def output(self) -> Array:
        """The output; if there are several, the first."""
        return self.outputs[0]

    @property
    def gufunc(self) -> Any:
        """The gufunc, or the Python function in its place."""
        return self.executor.gufunc

    @property
    def program(self) -> Arithmetic:
        """The arithmetic of one sample, straight-line or in loops, with `cost`, `hash`, `interpret` and `dumps`."""
        return self.executor.program

    def cost(self) -> dict[str, int]:
        """Return the numbers of operations per sample: multiplications, additions, divisions, roots, sines."""
        return self.program.cost()

    def of(self, request: Request) -> Function:
        """Return another function of the same mechanism."""
        return Function(self.mechanism, request)

    @property
    def workspace(self) -> int:
        """The memory that rolled code takes per sample in addition to its arrays [bytes]; 0 for unrolled code."""
        return self.executor.workspace * np.dtype(self.request.dtype).itemsize

    def __call__(self, *arguments, **options):
        """Run the gufunc without checks, with broadcasting, `out` and other options as in NumPy; NaN passes through.

        Free parameters are an input after the inputs of the state. As `parameters=`, they may also be given by name.
        """
        if "parameters" in options:
            arguments = self._with_parameters(arguments, options.pop("parameters"))
        return self._call(*arguments, **options)

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

    def checked(self, arguments: tuple, *, out=None, threads: int | None = None) -> Any:
        """Run with checks: InputError for arguments of the wrong shape or type, and for input that is not finite.

        The kernel counts blocks of samples with NaN or infinities, so the check takes almost no time.
        """
        counts = self.executor.counts
        before = counts[1]
        result = self.unchecked(arguments, out=out, threads=threads)
        if counts[1] != before:
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

    def alone(self, arguments: tuple, out: object) -> Any:
        """Run in this thread, without checks."""
        return self._call(*arguments) if out is None else self._call(*arguments, out=out)

    @cached_property
    def _call(self) -> Callable[..., Any]:
        """The gufunc, by a direct call if possible."""
        kernel, gufunc = self.executor.kernel, self.gufunc
        return (kernel and direct_call(kernel, gufunc, self.name, "", (), gufunc)) or gufunc

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
        program = self.program if self.request.lowering == "unrolled" else None
        if not isinstance(program, Program):
            fact = (
                f"{self.name} of {self.mechanism.name!r} is compiled with loops over its bodies, which cannot be "
                "written to files"
            )
            remedy = "make the function with lowering='unrolled'"
            raise InputError(Advice(f"{fact}; {remedy}", f"{fact}; in Python, {remedy}"))
        from ..compiler.export.exportable import exportable, jacobian_exportable

        if jacobian:
            return jacobian_exportable(self, program, name or program.name)

        def other(algorithm: str) -> Function:
            return Function(self.mechanism, Request(algorithm))

        return exportable(self.mechanism, self.request, program, name or program.name, other)

    def __reduce__(self):
        """Pickle the mechanism and the request; unpickling compiles the function or reads it from the cache."""
        return (Function, (self.mechanism, self.request))

    def __repr__(self) -> str:
        """Return the name and the shapes of inputs and outputs."""
        return f"<{self.arrays()}>"
