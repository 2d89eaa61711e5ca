"""Targets, for which code is generated.

A new one is a module that implements `protocol.Target` (code that runs in this process) or `protocol.Emitter` (code in
files), and a line here. Their modules, some of which import large libraries, are imported on first use.
"""

from __future__ import annotations

from collections.abc import Callable
from functools import cache

from ..errors import InputError, unknown_name
from .protocol import Emitter, Target

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
