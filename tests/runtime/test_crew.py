"""Threads that wait in native code: after a fork, at the end of the process, and with Ctrl-C."""

from __future__ import annotations

import ctypes
import subprocess
import sys
import threading
import time

import pytest

from kinetree.runtime import threads as crew
from kinetree.targets.abi import Post, State

pytestmark = pytest.mark.skipif(not crew.SUPPORTED, reason="threads of this system wait in Python")

PROCESS = """
import os, signal, threading, time
import numpy as np
from kinetree import load
from kinetree.runtime import threads as crew

crew.LEAST_SHARE = crew.PORTION = 1e-6
arm = load("pendulum")
q = np.random.default_rng(1).normal(size=(4000, arm.nq))
wanted = arm.gravity_torque(q)

def right():
    return all(np.array_equal(arm.gravity_torque(q, threads=2), wanted) for _ in range(20))

assert right()
child = os.fork()
if not child:
    assert crew.THREADS.size == 1 and right() and crew.THREADS.size == 2
    os._exit(7)
assert os.waitstatus_to_exitcode(os.waitpid(child, 0)[1]) == 7
threading.Timer(0.1, lambda: os.kill(os.getpid(), signal.SIGINT)).start()
try:
    while True:
        arm.gravity_torque(q, threads=2)
except KeyboardInterrupt:
    print("interrupted")
assert right()  # threads are awake when the process ends
"""


def test_forks_interrupts_and_the_end():
    """Start threads again in a child process, stop on Ctrl-C, and end while threads are awake."""
    done = subprocess.run([sys.executable, "-W", "ignore", "-c", PROCESS], capture_output=True, text=True, timeout=120)
    assert (done.returncode, done.stdout, done.stderr) == (0, "interrupted\n", "")


def test_threads_are_kept():
    """Start as many threads as are missing, and no more."""
    crew.THREADS.start(3)
    before = {t for t in threading.enumerate() if t.name.startswith("kinetree ")}
    crew.THREADS.start(2)
    assert {t for t in threading.enumerate() if t.name.startswith("kinetree ")} == before
    assert crew.THREADS.size >= 3 and all(t.daemon for t in before)


def test_idle_threads_sleep():
    """Wait for work without sleep for a moment only."""
    crew.THREADS.start(3)
    states = [crew.THREADS.posts + k * crew.POST + 8 * Post.STATE for k in range(crew.THREADS.size - 1)]
    for _ in range(2000):
        if all(ctypes.c_int64.from_address(x).value == State.SLEEPING for x in states):
            return
        time.sleep(0.01)
    pytest.fail("a thread waits without sleep")


def test_a_crew_is_limited(monkeypatch):
    """Start no more threads than there are posts."""
    monkeypatch.setattr(crew, "MOST", 2)
    one = crew.Threads()
    one.start(300)
    assert one.size == 3 and ctypes.c_int64.from_address(one.count).value == 2


def test_ctrl_c_while_a_thread_starts(monkeypatch):
    """Give a post no second thread after Ctrl-C at the start of the first one: one of both would never sleep."""
    threads, started = crew.Threads(), []
    start = threading.Thread.start

    def interrupted(thread: threading.Thread) -> None:
        start(thread)
        started.append(thread)
        raise KeyboardInterrupt

    with monkeypatch.context() as patched, pytest.raises(KeyboardInterrupt):
        patched.setattr(threading.Thread, "start", interrupted)
        threads.start(2)
    monkeypatch.setattr(threading.Thread, "start", lambda thread: (start(thread), started.append(thread)))
    threads.start(2)
    assert [t.name for t in started] == ["kinetree 1"]
    threads.start(3)
    assert [t.name for t in started] == ["kinetree 1", "kinetree 2"] and threads.size == 3


def test_a_system_without_more_threads(monkeypatch):
    """Go on with the threads that exist if the system gives no more, and try again in the next call."""
    threads, count = crew.Threads(), []
    start = threading.Thread.start

    def limited(thread: threading.Thread) -> None:
        if count:
            raise RuntimeError("can't start new thread")
        count.append(thread)
        start(thread)

    with monkeypatch.context() as patched:
        patched.setattr(threading.Thread, "start", limited)
        threads.start(4)
    assert (threads.size, ctypes.c_int64.from_address(threads.count).value) == (2, 1)
    threads.start(3)
    assert (threads.size, ctypes.c_int64.from_address(threads.count).value) == (3, 2)
