"""What a target is: how Programs, kernels and rolled programs become code, and code becomes addresses."""

from __future__ import annotations

from typing import Protocol

from ..ir.program import Program
from ..lanes.form import Kernel
from ..rolled.context import RolledUnit
from ..rolled.program import Step

Unit = Program | Kernel | RolledUnit | Step
"""What a target compiles. A Program, a Kernel and a RolledUnit become `kernel`, NumPy's inner loop of a gufunc; a Step
becomes `make` and `make1`, functions from a block of inputs to a block of results, for a vector of samples and for one.
"""


class Loaded(Protocol):
    """Code in memory, alive as long as this object."""

    def find(self, name: str) -> int:
        """Return the address of a function."""
        ...


class Target(Protocol):
    """A language or a processor that code is generated for.

    A target whose code does not run in this process writes source text only: its `build` and `load` raise InputError.
    """

    def fingerprint(self) -> str:
        """Return what built code depends on besides the source text: processor, compiler, options."""
        ...

    def emit(self, unit: Unit, dtype: str) -> str:
        """Return the source text of a unit in "float64" or "float32"; InputError where the target has none for it."""
        ...

    def build(self, source: str) -> bytes:
        """Return the code of a source text, which the cache keeps."""
        ...

    def load(self, code: bytes) -> Loaded:
        """Bring code into this process."""
        ...
