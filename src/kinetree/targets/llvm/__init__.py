"""The target LLVM: vector code for this processor, without a C compiler.

Long functions are compiled in a child process, so that Ctrl-C and cancelling end that at once. A call of LLVM cannot be
interrupted, and holds the lock of llvmlite for all threads. A child process can be killed. It takes some 0.1 s to
start, so that short functions are compiled in this process. The object code is the same. It passes through a pipe:
nothing is written to disk by the child.
"""

from __future__ import annotations

import ctypes
import ctypes.util
import json
import subprocess
import sys
import threading
from contextlib import suppress
from functools import cache
from importlib import import_module
from pathlib import Path
from typing import IO

import llvmlite
import llvmlite.binding as llvm

from ..._support.interruption import check_cancelled
from ...compiler.ir.program import Program
from ...compiler.lanes.form import Kernel
from ...compiler.rolled.program import RolledUnit, Step
from .. import Unit
from ..abi import Crew, DirectEntry, Handler
from . import code_generation
from .code_generation import Options, generate_code
from .vector_math import LIBRARY
from .writer import constant_module

EMITTERS: dict[type, tuple[str, str]] = {
    Program: ("arithmetic", "emit"),
    Kernel: ("lane_kernels", "emit_lanes"),
    RolledUnit: ("rolled", "emit_rolled"),
    Step: ("rolled", "emit_maker"),
    Handler: ("xla_handler", "emit_handler"),
}
"""The module and the function that write the assembly of each kind of unit; most processes need few of the modules."""

WAITING = ("sem_wait", "sem_post", "clock_gettime", "fegetenv", "fesetenv", "feraiseexcept")
"""The functions of the C library that only the threads of the crew call, on Linux."""

# --- From assembly to object code, in this process or in a child ---

LONG = 10_000
"""The lines of assembly from which a child process is used: 0.5 to 1 s, at 50 to 100 us per line."""
LOOK = 0.05
"""The time between two checks whether the caller cancelled [s]."""


def compile_in_child(assembly: str, triple: str, options: Options) -> bytes:
    """Return the object code of a module; the targets of LLVM have been initialized.

    If there is no child process, or it fails, the module is compiled here, and LLVM's own error is raised.
    """
    check_cancelled()
    code = _by_child(assembly, triple, options) if assembly.count("\n") >= LONG else None
    return generate_code(assembly, triple, options) if code is None else code


def _by_child(assembly: str, triple: str, options: Options) -> bytes | None:
    """Return the object code that a child process generated; None if it could not be started, or failed."""
    text = assembly.encode()
    head = json.dumps({"triple": triple, "options": options, "length": len(text)}).encode()
    try:
        process = _started()
    except OSError:
        return None
    if process is None:
        return None
    given, taken = process.stdin, process.stdout
    assert given is not None and taken is not None  # they are pipes
    answer: list[bytes] = []
    talk = threading.Thread(target=_talk, args=(given, taken, head + b"\n" + text, answer), daemon=True)
    with process:
        try:
            if not _begun(talk):
                return None
            while talk.is_alive():
                check_cancelled()
                talk.join(LOOK)
        finally:
            process.kill()  # does nothing after its end
            if talk.ident is not None:
                talk.join()
            with suppress(OSError):  # a message under way is lost
                given.close()
    length, _, code = answer[0].partition(b"\n") if answer else (b"", b"", b"")
    return code if length == b"%d" % len(code) else None  # the status is unknown where the caller ignores SIGCHLD


def _begun(thread: threading.Thread) -> bool:
    """Start a thread; return False at a limit of the system, or at the end of the interpreter."""
    try:
        thread.start()
    except RuntimeError:
        return False
    return True


def _talk(given: IO[bytes], taken: IO[bytes], message: bytes, answer: list[bytes]) -> None:
    """Give a child process its input and keep its whole output; its input stays open, since the child ends with it."""
    with suppress(OSError):  # the child was killed
        given.write(message)
        given.flush()
        answer.append(taken.read())


def _started() -> subprocess.Popen | None:
    """Start a child process that imports llvmlite from the same folder as this one; None without an interpreter.

    In a frozen or embedding program, `sys.executable` is that program.
    """
    if getattr(sys, "frozen", False) or not Path(sys.executable or "").stem.lower().startswith(("python", "pypy")):
        return None
    folder = Path(llvmlite.__file__).parents[1]
    return subprocess.Popen(
        [sys.executable, "-I", "-S", "-B", code_generation.__file__, str(folder)],
        stdin=subprocess.PIPE,
        stdout=subprocess.PIPE,
        stderr=subprocess.DEVNULL,
        creationflags=getattr(subprocess, "CREATE_NO_WINDOW", 0),
    )


# --- From object code to addresses in this process ---

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
    return compile_in_child(assembly, llvm.get_default_triple(), _options())


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


class LLVM:
    """The target of this machine."""

    def fingerprint(self) -> str:
        """Return the processor, its features and the version of LLVM."""
        return fingerprint()

    def emit(self, unit: Unit, dtype: str) -> str:
        """Return the assembly of a unit."""
        if isinstance(unit, DirectEntry):
            return constant_module("entry.ll", ITEMS=unit.items)
        if isinstance(unit, Crew):
            return constant_module("crew.ll")
        module, function = EMITTERS[type(unit)]
        return getattr(import_module(f".{module}", __package__), function)(unit, dtype)

    def build(self, source: str) -> bytes:
        """Return the object code of assembly."""
        return compile_assembly(source)

    def load(self, code: bytes) -> Loaded:
        """Link object code into this process."""
        return Loaded(code)
