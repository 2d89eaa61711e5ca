"""Plans: calls prepared for arrays of certain shapes, strides, precision and device, so that the next one is quick."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

from .code import Kernels
from .libraries import Library


@dataclass(frozen=True)
class Launch:
    """A kernel with its arguments: for each array its address and two strides, and last the number of samples."""

    kernels: Kernels
    entry: str
    arguments: tuple[int, ...]

    @property
    def samples(self) -> int:
        """The number of samples."""
        return self.arguments[-1]

    def start(self, stream: int) -> None:
        """Queue the kernel on a stream."""
        if self.samples:
            self.kernels.start(self.entry, self.arguments, self.samples, stream)


@dataclass(frozen=True)
class Plan:
    """A launch for which only addresses are missing, those of some arrays: inputs, then outputs.

    `places` are the positions of these addresses among the arguments. `shapes` are those of the outputs, for
    allocation. `extents` are the first byte and the end of each array, relative to its address.
    """

    launch: Launch
    library: Library
    device: int
    dtype: str
    shapes: tuple[tuple[int, ...], ...]
    places: tuple[int, ...]
    extents: tuple[tuple[int, int], ...]

    def run(self, pointers: list[int], out: Any) -> Any:
        """Start the kernel on these addresses and return `out`, or new arrays; None if `out` may overlap an input."""
        if out is None:
            results = [self.library.empty(shape, self.dtype, self.device) for shape in self.shapes]
            pointers += [self.library.pointer(x) for x in results]
            out = results[0] if len(results) == 1 else tuple(results)
        elif self._may_overlap(pointers):
            return None
        launch = self.launch
        if launch.samples:
            arguments = list(launch.arguments)
            for place, pointer in zip(self.places, pointers, strict=True):
                arguments[place] = pointer
            launch.kernels.start(launch.entry, arguments, launch.samples, self.library.stream(self.device))
        return out

    def _may_overlap(self, pointers: Sequence[int]) -> bool:
        spans = [(p + a, p + b) for p, (a, b) in zip(pointers, self.extents, strict=True)]
        count = len(spans) - len(self.shapes)
        for a, b in spans[count:]:
            for c, d in spans[:count]:
                if a < d and c < b:
                    return True
        return False
