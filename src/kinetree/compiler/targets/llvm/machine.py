"""LLVM on this machine: from assembly to object code to addresses, without a C compiler."""

from __future__ import annotations

import ctypes
import ctypes.util
import sys
from functools import cache

import llvmlite.binding as llvm

from .child_process import compiled
from .code_generation import Options
from .crew_threads import LIBRARY as WAITING
from .vector_math import LIBRARY

LEVEL = 2
"""The optimization level of code generation; level 3 takes longer, and its code was no faster."""


@cache
def _ready() -> None:
    """Prepare LLVM for this processor, once, and register the addresses of the C library's functions."""
    llvm.initialize_native_target()
    llvm.initialize_native_asmprinter()
    for name in (*LIBRARY, "feclearexcept", "fetestexcept", "malloc", "free"):
        llvm.add_symbol(f"kt_{name}", _library_address(name))
    if sys.platform == "linux":
        for name in WAITING:
            llvm.add_symbol(f"kt_{name}", ctypes.cast(getattr(ctypes.CDLL(None), name), ctypes.c_void_p).value or 0)


def machine() -> llvm.TargetMachine:
    """Return a target machine with all vector instructions of this computer; an engine takes ownership of it.

    LLVM's model of code in memory takes each constant by its whole address. The small code model, with constants
    relative to the code, gave the same bits 3 to 5 percent faster. It is not used because code and constants must then
    be at most 2 GiB apart, which the linker of code in memory does not ensure.
    """
    _ready()
    return llvm.Target.from_default_triple().create_target_machine(**_options())


def _options() -> Options:
    return {"cpu": llvm.get_host_cpu_name(), "features": llvm.get_host_cpu_features().flatten(), "opt": LEVEL}


@cache
def fingerprint() -> str:
    """Return a text of all that object code depends on besides the Program: processor, features, version of LLVM."""
    version = ".".join(map(str, llvm.llvm_version_info))
    return f"{llvm.get_host_cpu_name()} {llvm.get_host_cpu_features().flatten()} llvm-{version} O{LEVEL}"


def compile_assembly(assembly: str) -> bytes:
    """Return the object code of a module."""
    _ready()
    return compiled(assembly, llvm.get_default_triple(), _options())


class Loaded:
    """Object code in memory, alive as long as this object."""

    def __init__(self, code: bytes) -> None:
        """Link the object code into this process."""
        empty = llvm.parse_assembly("")
        self._engine = llvm.create_mcjit_compiler(empty, machine())
        self._engine.add_object_file(llvm.ObjectFileRef.from_data(code))
        self._engine.finalize_object()

    def find(self, name: str) -> int:
        """Return the address of a function."""
        address = self._engine.get_function_address(name)
        if not address:
            raise OSError(f"the object code has no function {name}")
        return address


def _library_address(name: str) -> int:
    return ctypes.cast(getattr(_mathematics(), name), ctypes.c_void_p).value or 0


@cache
def _mathematics() -> ctypes.CDLL:
    """Return the mathematical functions of the system; to find them, ctypes starts a process on Linux."""
    return ctypes.CDLL("ucrtbase" if sys.platform == "win32" else ctypes.util.find_library("m") or None)
