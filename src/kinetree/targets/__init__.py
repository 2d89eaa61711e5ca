"""Targets, for which code is generated.

A new one is a module that implements `protocol.Target` (code that runs in this process) or `protocol.Emitter` (code in
files), and a line here. Their modules, some of which import large libraries, are imported on first use.
"""

from __future__ import annotations

import hashlib
from collections.abc import Callable
from functools import cache
from typing import Protocol

from ..compiler.ir.program import Program
from ..compiler.lanes.form import Kernel
from ..compiler.rolled.program import RolledUnit, Step
from ..errors import InputError, unknown_name
from .abi import Crew, DirectEntry, Handler

# --- The interfaces of targets: from Programs, kernels and rolled programs to code, to files, and to addresses ---

Unit = Program | Kernel | RolledUnit | Step | DirectEntry | Handler | Crew
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


NATIVE = "llvm"
"""The target whose code runs in this process."""


def _llvm() -> Target:
    from .llvm import LLVM

    return LLVM()


def _c() -> Emitter:
    from .c import C

    return C()


def _ptx() -> Target:
    from .ptx import PTX

    return PTX()


def _wasm() -> Emitter:
    from .wasm import Wasm

    return Wasm()


def _ptx_file() -> Emitter:
    from .ptx import PTXFile

    return PTXFile()


TARGETS: dict[str, Callable[[], Target]] = {"llvm": _llvm, "ptx": _ptx}
"""The targets whose code runs in this process, by name."""


@cache
def object_code(processor: str) -> Emitter:
    """Return the target of object code for a processor: the name of a preset, or a triple of LLVM."""
    from .llvm.object_code import ObjectCode

    return ObjectCode(processor)


def _native_object() -> Emitter:
    return object_code("native")


EMITTERS: dict[str, Callable[[], Emitter]] = {
    ".c": _c,
    ".o": _native_object,
    ".obj": _native_object,
    ".wasm": _wasm,
    ".ptx": _ptx_file,
}
"""The targets whose code is written to files, by the suffix of the file."""

OBJECT = (".o", ".obj")
"""The suffixes of object code, for which there is a choice of processors."""


@cache
def target(name: str = NATIVE) -> Target:
    """Return a target by name."""
    if name not in TARGETS:
        raise unknown_name("target", name, [*TARGETS])
    return TARGETS[name]()


@cache
def emitter(suffix: str) -> Emitter:
    """Return the target of files with a suffix."""
    if suffix not in EMITTERS:
        raise InputError(f"the suffix {suffix!r} is not one of exported code; expected one of {', '.join(EMITTERS)}")
    return EMITTERS[suffix]()
