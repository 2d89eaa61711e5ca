"""Repeated calls of a function on batches of one shape, whose results are always in the same arrays."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import replace
from typing import Any

import numpy as np

from ...joints.random_states import leading_shape
from .samples_last import in_layout


def repeated(self, batch: int | Iterable[int]) -> Repeated:
    """Return this function for repeated calls on batches of a shape, with results in the same arrays in every call.

    After `samples_last`, entries that are zero whatever the inputs are written once, when the arrays are made. More
    than half of the entries of derivatives of a humanoid's inverse dynamics are such zeros.
    """
    return Repeated(self, leading_shape(batch))


class Repeated:
    """A function for batches of one shape; `results` are its arrays, which every call fills again.

    They cannot be written by others, because some of their entries are never written again.
    """

    def __init__(self, function: Any, batch: tuple[int, ...]) -> None:
        """Make the arrays."""
        self.function, self.batch = function, batch
        layout = function.layout
        self._filling = in_layout(function, replace(layout, zeros=False)) if layout.samples else function
        self._out = self._filling.empty(batch)
        self._arrays = self._filling.places(self._out)
        self.results = function.returned([_read_only(x) for x in self._arrays])

    def __call__(self, *arguments: Any, threads: int | None = None, check: bool = False) -> Any:
        """Fill the arrays with the results for arguments, and return them; `check` refuses NaN and infinities."""
        f = self._filling
        try:
            apart = tuple(map(self._apart, arguments))
            if not check and threads in (None, 1):
                f(*apart, out=self._out)
                return self.results
        except (ValueError, TypeError, RuntimeError) as error:
            raise f.explained(arguments, self._out, error) from None
        (f.checked if check else f.unchecked)(apart, out=self._out, threads=threads)
        return self.results

    def _apart(self, x: Any) -> Any:
        """Return an argument, or a copy of one in the memory of the results, which NumPy would replace otherwise.

        Arrays that can be written are not in that memory.
        """
        if type(x) is np.ndarray and x.flags.writeable:
            return x
        given = np.asanyarray(x)
        return given.copy() if any(np.may_share_memory(given, own) for own in self._arrays) else given

    def __reduce__(self):
        """Pickle the function and the shape: the arrays belong to each object alone."""
        return (Repeated, (self.function, self.batch))

    def __repr__(self) -> str:
        """Return the function and the shape."""
        return f"<repeated {self.function!r}, batch {self.batch}>"


def _read_only(x: np.ndarray) -> np.ndarray:
    view = x.view()
    view.flags.writeable = False
    return view
