"""Matrices of rolled functions, column by column: products with unit vectors, as samples of one batch."""

from __future__ import annotations

from typing import Any

import numpy as np

from ...dynamics import Algorithm, products
from ..ir.program import Array
from ..runtime.batches import spread
from .function import Job, RolledKernel

PRODUCTS = {
    "inertia_matrix": Algorithm(products.inertia_product, ("q", "qdd"), "column", ("nv",)),
    "inverse_inertia_matrix": Algorithm(products.inverse_inertia_product, ("q", "tau"), "column", ("nv",)),
    "convective_matrix": Algorithm(products.convective_product, ("q", "qd", "qdd"), "column", ("nv",)),
}
"""For each function of an nv x nv matrix, the page of its product with the last of its inputs."""
SYMMETRIC = ("inertia_matrix", "inverse_inertia_matrix")
CHUNK = 64
"""So many columns are computed at once; the workspace of a call stays O(n)."""


class ColumnFunction:
    """What stands for the gufunc of a matrix: it broadcasts, and takes `out`, as one does."""

    def __init__(self, job: Job) -> None:
        """Compile the product."""
        algorithm = PRODUCTS[job.name]
        self.inputs, self.output, self.dtype = job.inputs, job.output, job.dtype
        (n, _) = job.output.shape
        names = [*algorithm.inputs, *(["parameters"] if job.mechanism.free_parameters else [])]
        known = {a.name: a for a in job.inputs}
        self._order = [name for name in names if name in known]
        arrays = tuple(known.get(name, Array(name, (n,))) for name in names)
        self._at = names.index(algorithm.inputs[-1])
        self._n, self._symmetric = n, job.name in SYMMETRIC
        self.kernel = RolledKernel(
            Job(job.mechanism, job.name, algorithm, arrays, Array("column", (n,)), dtype=job.dtype)
        )

    def __call__(self, *arguments: Any, out: Any = None) -> np.ndarray:
        """Return the matrices of a batch."""
        wide, out = spread(self.inputs, self.output, self.dtype, arguments, out)
        named = dict(zip((a.name for a in self.inputs), wide, strict=True))
        for index in np.ndindex(*out.shape[:-2]):
            self._one([named[name][index] for name in self._order], out[index])
        return out

    def _one(self, arrays: list[np.ndarray], out: np.ndarray) -> None:
        """Write the matrix of one sample."""
        for first in range(0, self._n, CHUNK):
            units = np.zeros((min(CHUNK, self._n - first), self._n), self.dtype)
            units[np.arange(len(units)), first + np.arange(len(units))] = 1.0
            columns = self.kernel.gufunc(*arrays[: self._at], units, *arrays[self._at :])
            if not self._symmetric:
                out[:, first : first + len(units)] = columns.T
                continue
            for k, column in enumerate(columns, first):  # what the joints before this one feel is least rounded
                out[: k + 1, k] = out[k, : k + 1] = column[: k + 1]
