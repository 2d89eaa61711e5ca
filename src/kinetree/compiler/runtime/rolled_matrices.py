"""Matrices by rolled code, column by column: products with unit vectors, as samples of one batch."""

from __future__ import annotations

import json
from collections.abc import Sequence
from dataclasses import dataclass
from functools import cached_property
from typing import Any

import numpy as np

from ...dynamics import Algorithm, products
from ..ir.forms import Apply, Array, Constant, arrays_data, arrays_of, digest, interpret, plain
from ..rolled.binding import Job
from ..rolled.bound import BoundProgram
from .batches import spread
from .rolled_kernel import RolledKernel

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
        """Return the numbers of operations for one sample: those of the product for every column."""
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

    def replay(self, inputs: Sequence[Any], apply: Apply, constant: Constant = plain) -> list[list[Any]]:
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

    def __init__(self, job: Job) -> None:
        """Compile the product."""
        algorithm = PRODUCTS[job.name]
        self.dtype = job.dtype
        (n, _) = job.output.shape
        names = [*algorithm.inputs, *(["parameters"] if job.mechanism.free_parameters else [])]
        known = {a.name: a for a in job.inputs}
        self._order = [name for name in names if name in known]
        arrays = tuple(known.get(name, Array(name, (n,))) for name in names)
        self.kernel = RolledKernel(
            Job(job.mechanism, job.name, algorithm, arrays, Array("column", (n,)), dtype=job.dtype)
        )
        at = names.index(algorithm.inputs[-1])
        self.program = MatrixProgram(self.kernel.program, job.inputs, (job.output,), at, job.name in SYMMETRIC)

    def __call__(self, *arguments: Any, out: Any = None) -> np.ndarray:
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
            columns = self.kernel.gufunc(*arrays[:at], units, *arrays[at:])
            if not self.program.symmetric:
                out[:, first : first + len(units)] = columns.T
                continue
            for k, column in enumerate(columns, first):  # entries of earlier joints have the smallest rounding errors
                out[: k + 1, k] = out[k, : k + 1] = column[: k + 1]
