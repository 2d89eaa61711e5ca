"""The interfaces of targets: from Programs, kernels and rolled programs to code, to files, and to addresses."""

from __future__ import annotations

import hashlib
from typing import Protocol

from ..compiler.ir.program import Program
from ..compiler.lanes.form import Kernel
from ..compiler.rolled.program import RolledUnit, Step
from .abi import Crew, Entry, Handler

Unit = Program | Kernel | RolledUnit | Step | Entry | Handler | Crew
"""The input of a target.

A Program, a Kernel and a RolledUnit become a function `kernel`, the inner loop of a gufunc.
A Step becomes two functions `make` and `make1`, from a block of inputs to a block of results, for a vector of samples
and for one sample. The Entry becomes a function `entry`, a Handler a function `handler`, and the Crew the functions
that its class describes.
"""


def digest(unit: Program | Kernel, dtype: str) -> str:
    """Return a short digest of the arithmetic of a unit, its numbers and their precision, for exported files."""
    return hashlib.sha256(f"{unit.hash} {dtype}".encode()).hexdigest()[:16]


class Loaded(Protocol):
    """Code in memory, alive as long as this object."""

    def find(self, name: str) -> int:
        """Return the address of a function."""
        ...


class Emitter(Protocol):
    """A language or processor for which code is written to files."""

    def emit(self, unit: Unit, dtype: str) -> str | bytes:
        """Return the content of the file of a unit in "float64" or "float32"; InputError if it cannot be written.

        The function in the file has the name of the unit.
        """
        ...


class Target(Protocol):
    """A processor for which code is generated that runs in this process."""

    def fingerprint(self) -> str:
        """Return a text of all that built code depends on besides its source: processor, compiler, options."""
        ...

    def emit(self, unit: Unit, dtype: str) -> str:
        """Return the source text of a unit in "float64" or "float32"."""
        ...

    def build(self, source: str) -> bytes:
        """Return the compiled code of a source text, for the cache."""
        ...

    def load(self, code: bytes) -> Loaded:
        """Load compiled code into this process."""
        ...
