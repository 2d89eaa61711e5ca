"""Rolled code as a gufunc, with its context, its tables and the memory that it owns."""

from __future__ import annotations

import ctypes
import json
import weakref
from collections.abc import Sequence
from dataclasses import dataclass
from functools import cached_property
from typing import Any

import numpy as np

from ..algebra.scalars import Scalar
from ..compiler.ir.program import Apply, Array, Constant, arrays_data, arrays_of, digest, interpret, plain
from ..compiler.rolled.binding import Job, bind
from ..compiler.rolled.bound import BoundProgram
from ..compiler.rolled.program import CLASS, COUNT, PAD, Layout, RolledUnit, Step
from ..dynamics import Algorithm, products
from .native import core_signature, loaded_text, register


@dataclass(frozen=True)
class Make:
    """Compiled code that computes numbers of the table from parameters, for one sample and for a vector of samples."""

    single: int
    wide: int
    loaded: Any


class RolledKernel:
    """A gufunc, its program, and the context that its code reads; the context begins with two counts of bad blocks."""

    kernel = None

    def __init__(self, job: Job) -> None:
        """Compile the job, or read its code from the cache, and fill the tables."""
        self.program = bound = bind(job)
        ranks = tuple(len(a.shape) for a in (*bound.inputs, *bound.outputs))
        loaded = loaded_text(RolledUnit(bound.program, ranks, bound.make is not None), job.dtype)
        self._places = places = Layout(bound.program).places
        self.context = self.counts = (ctypes.c_int64 * len(places))()
        kept = self._fill(job, places)
        signature = core_signature(job.inputs, (job.output,))
        doc = f"{job.name} of {job.mechanism.name}: {signature}"
        arity = (len(job.inputs), 1)
        owner = _Owner(self.context, places, loaded, kept)
        address = loaded.find("kernel")
        self.gufunc = register(address, self.context, job.name, doc, signature, arity, job.dtype, owner)

    def _fill(self, job: Job, places: dict[str, int]) -> tuple:
        """Fill the context; return the objects that must live as long as it."""
        b, p = self.program, self.program.program
        segments, codes, table = b.segments, b.codes, b.table.astype(job.dtype)
        shifts = np.zeros(_padded(len(b.shifts)), dtype=job.dtype)
        shifts[: len(b.shifts)] = b.shifts
        make = None if b.make is None else _compiled(b.make, job.dtype)
        widths = np.array(p.slots, dtype=int)[segments[:, CLASS]]
        sizes = {a.name: a.size for a in job.inputs} | {"out": job.output.size}
        sizes |= {"sin": len(b.shifts), "cos": len(b.shifts), "slots": int(widths @ segments[:, COUNT])}
        sizes |= {"table": len(table), "made": len(b.make.results)} if b.make else {"table": 0, "made": 0}
        sizes |= {f"rows{k}": len(loop.keys) * (len(segments) + 1) for k, loop in enumerate(p.loops)}
        at, offsets = 0, {}
        for name in sizes:
            offsets[f"{name}@"] = at
            at += _padded(sizes[name])
        fields = {
            "segment_count": len(segments),
            "segments": segments.ctypes.data,
            "frame": len(segments),
            "table": table.ctypes.data,
            "entries": len(table),
            "code": codes.ctypes.data,
            "shifts": shifts.ctypes.data,
            "vectors": at,
            "input_vectors": offsets["out@"],
            "coordinates": len(b.shifts),
            "nv": job.mechanism.nv,
        }
        if make:
            fields |= {"make_1": make.single, "make": make.wide}
        for a in (*job.inputs, Array("out", job.output.shape)):
            shape = (1,) * (3 - len(a.shape)) + a.shape
            fields |= {f"{a.name}.{d}": n for d, n in enumerate(shape)}
        for name, value in (fields | offsets).items():
            self.context[places[name]] = value
        return segments, table, codes, shifts, make

    @property
    def workspace(self) -> int:
        """The size of the workspace of one sample, in numbers."""
        return self.context[self._places["vectors"]]

    def failures(self) -> int:
        """Return and reset the number of workspaces that could not be allocated."""
        place = self._places["failed"]
        count, self.context[place] = self.context[place], 0
        return count


def _padded(size: int) -> int:
    return max(PAD, -(-size // PAD) * PAD)


def _compiled(step: Step, dtype: str) -> Make:
    loaded = loaded_text(step, dtype)
    return Make(loaded.find("make1"), loaded.find("make"), loaded)


class _Owner:
    """The owner of the memory that the gufunc reads; its workspaces are freed at the end."""

    def __init__(self, context: Any, places: dict[str, int], loaded: Any, kept: tuple) -> None:
        self.kept = (context, loaded, kept)
        put = ctypes.CFUNCTYPE(None, ctypes.c_void_p, ctypes.c_int64)(loaded.find("put"))
        pools = [ctypes.addressof(context) + 8 * places[name] for name in ("pool_1", "pool")]
        weakref.finalize(self, _release, self.kept, put, pools)


def _release(kept: tuple, put: Any, pools: list[int]) -> None:
    for pool in pools:
        put(pool, 0)


# --- Batches for Python functions that replace a gufunc and run one state after the other ---


def spread(
    inputs: Sequence[Array], output: Array, dtype: str, arguments: tuple, out: Any
) -> tuple[list[np.ndarray], np.ndarray]:
    """Return the arguments broadcast to their common leading shape, and the array for results of that shape.

    Like a gufunc, it raises ValueError or TypeError for unsuitable arguments, and takes `out` alone or in a tuple.
    """
    if len(arguments) != len(inputs):
        raise TypeError(f"{len(inputs)} arrays are expected")
    arrays = []
    for a, given in zip(inputs, arguments, strict=True):
        array = np.asarray(given)
        if array.shape[array.ndim - len(a.shape) :] != a.shape or not np.can_cast(array.dtype, dtype, "same_kind"):
            raise ValueError(f"{a.name} has shape {array.shape} and type {array.dtype}")
        arrays.append(array)
    lead = np.broadcast_shapes(*(x.shape[: x.ndim - len(a.shape)] for a, x in zip(inputs, arrays, strict=True)))
    wide = [np.broadcast_to(x, lead + a.shape) for a, x in zip(inputs, arrays, strict=True)]
    if isinstance(out, tuple):
        (out,) = out
    if out is None:
        out = np.empty(lead + output.shape, dtype)
    if out.shape != lead + output.shape or not np.can_cast(dtype, out.dtype, "same_kind"):
        raise ValueError(f"out has shape {out.shape} and type {out.dtype}")
    return wide, out


# --- Matrices by rolled code, column by column: products with unit vectors, as samples of one batch ---

PRODUCTS = {
    "inertia_matrix": Algorithm(products.inertia_product, ("q", "qdd"), "column", ("nv",)),
    "inverse_inertia_matrix": Algorithm(products.inverse_inertia_product, ("q", "tau"), "column", ("nv",)),
    "convective_matrix": Algorithm(products.convective_product, ("q", "qd", "qdd"), "column", ("nv",)),
}
"""For each function with an nv x nv matrix, the algorithm of its product with a vector, which is the last input."""
SYMMETRIC = ("inertia_matrix", "inverse_inertia_matrix")
CHUNK = 64
"""The number of columns computed at once: enough to fill vector registers, with a workspace of O(n)."""


@dataclass(frozen=True, eq=False)
class MatrixProgram:
    """A matrix as the program of its product with a vector, which runs once per unit vector.

    The vector is input `at` of the product. Of a `symmetric` matrix, the part on and above the diagonal is computed and
    mirrored.
    """

    product: BoundProgram
    inputs: tuple[Array, ...]
    outputs: tuple[Array, ...]
    at: int
    symmetric: bool

    @property
    def name(self) -> str:
        """The name of the function."""
        return self.product.name

    hash = cached_property(digest)

    def cost(self) -> dict[str, int]:
        """Return the numbers of operations for one sample: one product per column."""
        (n, _) = self.outputs[0].shape
        return {what: n * times for what, times in self.product.cost().items()}

    def dumps(self) -> str:
        """Return the program as text; numbers keep every bit."""
        data = {
            "product": self.product.dumps(),
            "arrays": arrays_data(self),
            "at": self.at,
            "symmetric": self.symmetric,
        }
        return json.dumps(data, separators=(",", ":"))

    @classmethod
    def loads(cls, text: str) -> MatrixProgram:
        """Return the program of a text that `dumps` returned."""
        data = json.loads(text)
        inputs, outputs = arrays_of(data["arrays"])
        return cls(BoundProgram.loads(data["product"]), inputs, outputs, data["at"], data["symmetric"])

    interpret = interpret

    def replay(self, inputs: Sequence[Scalar], apply: Apply, constant: Constant = plain) -> list[list[Scalar]]:
        """Run the program on scalars of any type, given as one sequence per input, like BoundProgram.replay."""
        (n, _) = self.outputs[0].shape
        given = {a.name: x for a, x in zip(self.inputs, inputs, strict=True)}
        known = [given.get(a.name) for a in self.product.inputs]
        columns = []
        for k in range(n):
            known[self.at] = [constant(float(j == k)) for j in range(n)]
            columns.append(self.product.replay(known, apply, constant)[0])
        order = [sorted((i, k)) if self.symmetric else (i, k) for i in range(n) for k in range(n)]
        return [[columns[k][i] for i, k in order]]


class ColumnFunction:
    """A function with a matrix that replaces a gufunc: it broadcasts and takes `out`."""

    kernel = None

    def __init__(self, job: Job) -> None:
        """Compile the product."""
        algorithm = PRODUCTS[job.name]
        self.dtype = job.dtype
        (n, _) = job.output.shape
        names = [*algorithm.inputs, *(["parameters"] if job.mechanism.free_parameters else [])]
        known = {a.name: a for a in job.inputs}
        self._order = [name for name in names if name in known]
        arrays = tuple(known.get(name, Array(name, (n,))) for name in names)
        self.product = RolledKernel(
            Job(job.mechanism, job.name, algorithm, arrays, Array("column", (n,)), dtype=job.dtype)
        )
        at = names.index(algorithm.inputs[-1])
        self.counts = self.product.counts
        self.program = MatrixProgram(self.product.program, job.inputs, (job.output,), at, job.name in SYMMETRIC)

    @property
    def workspace(self) -> int:
        """The size of the workspace of one column, in numbers."""
        return self.product.workspace

    def failures(self) -> int:
        """Return and reset the number of workspaces that could not be allocated."""
        return self.product.failures()

    def gufunc(self, *arguments: object, out: object = None) -> np.ndarray:
        """Return the matrices of a batch."""
        inputs, (output,) = self.program.inputs, self.program.outputs
        wide, out = spread(inputs, output, self.dtype, arguments, out)
        named = dict(zip((a.name for a in inputs), wide, strict=True))
        for index in np.ndindex(*out.shape[:-2]):
            self._one([named[name][index] for name in self._order], out[index])
        return out

    def _one(self, arrays: list[np.ndarray], out: np.ndarray) -> None:
        """Write the matrix of one sample."""
        n, at = len(out), self.program.at
        for first in range(0, n, CHUNK):
            units = np.zeros((min(CHUNK, n - first), n), self.dtype)
            units[np.arange(len(units)), first + np.arange(len(units))] = 1.0
            columns = self.product.gufunc(*arrays[:at], units, *arrays[at:])
            if not self.program.symmetric:
                out[:, first : first + len(units)] = columns.T
                continue
            for k, column in enumerate(columns, first):  # entries of earlier joints have the smallest rounding errors
                out[: k + 1, k] = out[k, : k + 1] = column[: k + 1]
