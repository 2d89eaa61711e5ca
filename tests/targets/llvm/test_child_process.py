"""Code generation in a child process: the same bytes, and an end at once by Ctrl-C and by cancelling."""

from __future__ import annotations

import json
import os
import signal
import sys
import threading
import time

import pytest

import kinetree as kt
from kinetree._support.interruption import cancelled_by
from kinetree.targets import llvm
from kinetree.targets.llvm import code_generation, compile_assembly
from kinetree.targets.llvm.object_code import PROCESSORS, target_machine


class Cancelled(Exception):
    """The caller cancelled."""


@pytest.fixture
def started(monkeypatch):
    """Compile everything in child processes, and return the list of those that were started."""
    processes, start = [], llvm._started

    def kept():
        process = start()
        processes.append(process)
        return process

    monkeypatch.setattr(llvm, "LONG", 0)
    monkeypatch.setattr(llvm, "_started", kept)
    return processes


@pytest.fixture
def endless(started, monkeypatch, tmp_path):
    """Let child processes sleep in place of compiling; return the list of those that were started."""
    script = tmp_path / "sleeping.py"
    script.write_text("import signal, time\nsignal.signal(signal.SIGINT, signal.SIG_IGN)\ntime.sleep(600)\n")
    monkeypatch.setattr(code_generation, "__file__", str(script))
    return started


def chain(count: int) -> str:
    """Return the assembly of a function with a number of operations, each of which needs the one before."""
    steps = "\n".join(f"  %x{k + 1} = fmul double %x{k}, %x{k // 2}" for k in range(count))
    return f"define double @f(double %x0) {{\n{steps}\n  ret double %x{count}\n}}\n"


def test_the_code_is_the_same(monkeypatch, started):
    """Compare the object code of a child process, for this computer and another one, with that of this process."""
    target_machine("riscv64")  # initializes LLVM for all processors
    other = PROCESSORS["riscv64"]

    def both() -> tuple[bytes, bytes]:
        return compile_assembly(chain(50)), llvm.compile_in_child(chain(50), other.triple, other.options)

    by_children = both()
    assert [process.returncode for process in started] == [0, 0]
    monkeypatch.setattr(llvm, "LONG", 10**9)
    assert both() == by_children and len(started) == 2


def test_ctrl_c_ends_the_child(endless):
    """Press Ctrl-C in a compilation that would take ten minutes: the child process is killed and reaped."""

    def press():
        while not endless:
            time.sleep(0.01)
        time.sleep(0.1)
        os.kill(os.getpid(), signal.SIGINT)

    threading.Thread(target=press, daemon=True).start()
    with pytest.raises(KeyboardInterrupt):
        compile_assembly(chain(50_000))  # more than a pipe holds: it is interrupted while it is written
    assert [process.returncode for process in endless] == [-signal.SIGKILL]


def test_cancelling_ends_the_child_in_any_thread(endless):
    """Cancel a compilation in a thread: the error of the caller ends it, and that thread alone."""
    raised = []

    def check():
        if endless:
            raise Cancelled

    def work():
        try:
            with cancelled_by(check):
                compile_assembly(chain(3))
        except Cancelled as error:
            raised.append(error)

    thread = threading.Thread(target=work)
    thread.start()
    thread.join(300)
    assert len(raised) == 1 and [process.returncode for process in endless] == [-signal.SIGKILL]


def test_a_cancelled_function_leaves_no_file(endless, monkeypatch, tmp_path):
    """Cancel the compilation of a method, with an empty cache: it stays empty, and the next call compiles."""
    folder = tmp_path / "cache"
    monkeypatch.setenv("KINETREE_CACHE_DIR", str(folder))
    arm = kt.load("planar_2r")

    def check():
        if endless:
            raise Cancelled

    with cancelled_by(check), pytest.raises(Cancelled):
        arm.gravity_torque([0.3, -0.7])
    assert list(folder.iterdir()) == [] and len(endless) == 1
    monkeypatch.setattr(llvm, "LONG", 10**9)
    assert arm.gravity_torque([0.3, -0.7]).shape == (2,)
    assert [path.suffix for path in folder.iterdir()] != []


def test_a_child_that_fails_is_replaced(started, monkeypatch, tmp_path):
    """Let the child process fail, or start none: the module is compiled here, and errors are those of LLVM."""
    expected = code_generation.generate_code(chain(3), *_native())
    script = tmp_path / "failing.py"
    script.write_text("import sys\nsys.stdout.write('99\\nhalf of the code')\nsys.exit(3)\n")
    with pytest.raises(RuntimeError, match="LLVM IR parsing error"):
        compile_assembly("no assembly")
    monkeypatch.setattr(code_generation, "__file__", str(script))
    assert compile_assembly(chain(3)) == expected
    assert [process.returncode for process in started] == [0, 1, 3]
    for name in ("/no/such/folder/python", "/opt/bin/application", ""):
        monkeypatch.setattr(sys, "executable", name)
        assert compile_assembly(chain(3)) == expected
    assert started[3:] == [None, None]  # the first of them could not be started


def test_compilation_without_more_threads(started, monkeypatch):
    """Start no thread, as at a limit of the system: the child ends, and this process compiles."""
    expected = code_generation.generate_code(chain(3), *_native())
    started.clear()

    def refused(thread: threading.Thread) -> None:
        raise RuntimeError("can't start new thread")

    monkeypatch.setattr(threading.Thread, "start", refused)
    assert compile_assembly(chain(3)) == expected
    assert [process.returncode for process in started] == [-signal.SIGKILL]


def _native():
    """Return the triple and the options of this computer."""
    compile_assembly(chain(1))
    return llvm.llvm.get_default_triple(), llvm._options()


def test_the_child_ends_with_its_parent():
    """Close the input of a child process while it compiles, as the end of its parent does."""
    text = chain(100_000).encode()
    triple, options = _native()
    process = llvm._started()
    assert process is not None and process.stdin is not None and process.stdout is not None
    with process:
        process.stdin.write(json.dumps({"triple": triple, "options": options, "length": len(text)}).encode() + b"\n")
        process.stdin.write(text)
        process.stdin.close()
        assert process.stdout.read() == b"" and process.wait() == 1
