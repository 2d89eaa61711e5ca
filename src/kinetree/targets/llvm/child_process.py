"""Code generation in a child process for long functions, so that Ctrl-C and cancelling end it at once.

A call of LLVM cannot be interrupted, and holds the lock of llvmlite for all threads. A child process can be killed. It
takes some 0.1 s to start, so that short functions are compiled in this process. The object code is the same. It passes
through a pipe: nothing is written to disk by the child.
"""

from __future__ import annotations

import json
import subprocess
import sys
import threading
from contextlib import suppress
from pathlib import Path

import llvmlite

from ..._support.interruption import check_cancelled
from . import code_generation
from .code_generation import Options, generate_code

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
    answer: list[bytes] = []
    talk = threading.Thread(target=_talk, args=(process, head + b"\n" + text, answer), daemon=True)
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
                process.stdin.close()  # type: ignore[union-attr]
    length, _, code = answer[0].partition(b"\n") if answer else (b"", b"", b"")
    return code if length == b"%d" % len(code) else None  # the status is unknown where the caller ignores SIGCHLD


def _begun(thread: threading.Thread) -> bool:
    """Start a thread; return False at a limit of the system, or at the end of the interpreter."""
    try:
        thread.start()
    except RuntimeError:
        return False
    return True


def _talk(process: subprocess.Popen, message: bytes, answer: list[bytes]) -> None:
    """Give a child process its input and keep its whole output; its input stays open, since the child ends with it."""
    with suppress(OSError):  # the child was killed
        process.stdin.write(message)  # type: ignore[union-attr]
        process.stdin.flush()  # type: ignore[union-attr]
        answer.append(process.stdout.read())  # type: ignore[union-attr]


def _started() -> subprocess.Popen | None:
    """Start a child process that imports llvmlite from the same folder as this one; None without an interpreter.

    In a frozen or embedding program, `sys.executable` is that program.
    """
    if getattr(sys, "frozen", False) or not Path(sys.executable or "").stem.lower().startswith(("python", "pypy")):
        return None
    folder = Path(llvmlite.__file__).parents[1]
    return subprocess.Popen(
        [sys.executable, "-I", "-S", "-B", code_generation.__file__, str(folder)],
        stdin=subprocess.PIPE, stdout=subprocess.PIPE, stderr=subprocess.DEVNULL,
        creationflags=getattr(subprocess, "CREATE_NO_WINDOW", 0),
    )  # fmt: skip
