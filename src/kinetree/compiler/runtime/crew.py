"""The crew of this process: threads that wait in native code for portions of batches, without Python and its lock.

Starting one takes long, so they are kept. They sleep while there is no work, and end with the process.
"""

from __future__ import annotations

import ctypes
import os
import sys
import threading
from functools import cache
from typing import Any

from ..targets.crew import MOST, Crew, Post
from ..targets.protocol import Loaded
from .native import loaded_text

LINE = 64
"""The size of a cache line [bytes], at which posts begin."""

POST = Post.SIZE * 8
"""The size of a post [bytes]."""


class Threads:
    """The threads of this process; `size` is the number of threads that share a batch, with the caller's own."""

    def __init__(self) -> None:
        """Begin without threads."""
        self.size = 1
        self._lock = threading.Lock()
        self._memory = (ctypes.c_char * (2 * LINE + MOST * POST))()
        ctypes.pythonapi.Py_IncRef(ctypes.py_object(self._memory))  # threads read it until the process ends
        self.count = -(-ctypes.addressof(self._memory) // LINE) * LINE
        """The address of the number of posts; posts follow in the next line."""
        self.posts = self.count + LINE

    def start(self, threads: int) -> None:
        """Start threads until a batch can be shared by a number of them, or the system gives no more."""
        with self._lock:
            for k in range(self.size - 1, min(threads - 1, MOST)):
                post = self.posts + k * POST
                for semaphore in (Post.WAKE, Post.DONE):
                    if ctypes.CDLL(None).sem_init(ctypes.c_void_p(post + 8 * semaphore), 0, 0):
                        raise OSError("this system has no semaphores for threads")
                thread = threading.Thread(target=work(), args=(post,), daemon=True, name=f"kinetree {k + 1}")
                self._count(k + 1)  # before the start, which Ctrl-C may end: a post never gets a second thread
                try:
                    thread.start()
                except RuntimeError:  # a limit of the system, or the end of the process
                    self._count(k)
                    return

    def _count(self, posts: int) -> None:
        """Let callers offer work at a number of posts; offers that nobody takes are withdrawn."""
        ctypes.c_int64.from_address(self.count).value = posts
        self.size = posts + 1

    def forked(self) -> None:
        """Begin again in a child process, in which the threads of the parent process do not exist."""
        ctypes.memset(self._memory, 0, len(self._memory))
        self.size, self._lock = 1, threading.Lock()


@cache
def code() -> Loaded:
    """Return the code of the crew, which stays in memory until the process ends: threads wait in it."""
    found = loaded_text(Crew(), "float64")
    ctypes.pythonapi.Py_IncRef(ctypes.py_object(found))
    return found


@cache
def work() -> Any:
    """Return the native function of a thread; found once, since a search waits for llvmlite's lock."""
    return ctypes.CFUNCTYPE(None, ctypes.c_void_p)(code().find("work"))


@cache
def sweep() -> Any:
    """Return the native function that shares arrays with several leading axes."""
    return ctypes.CFUNCTYPE(ctypes.c_int64, ctypes.c_void_p, ctypes.c_void_p, ctypes.c_int64)(code().find("sweep"))


THREADS = Threads()
SUPPORTED = sys.platform == "linux" and ctypes.sizeof(ctypes.c_void_p) == 8 and sys.implementation.name == "cpython"
"""Whether threads can wait in native code, which needs semaphores without names, 64 bits, and CPython."""

if SUPPORTED:
    os.register_at_fork(after_in_child=THREADS.forked)
