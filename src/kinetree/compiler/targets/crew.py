"""The crew: threads that wait in native code, and the loops that share a batch with them.

This file is the interface between that code, which a target writes once for all kernels, and the runtime, which starts
the threads and makes gufuncs of the loops. All times are in nanoseconds.

Each thread has a post, at which callers offer it work. The caller and the threads take the next portions of a batch
until none is left. A thread that comes late therefore delays nobody: the caller withdraws an offer that was not taken.
"""

from __future__ import annotations

from dataclasses import dataclass
from enum import IntEnum, auto

MOST = 256
"""The largest number of threads of a crew."""

ARRAYS = 64
"""The largest number of inputs and outputs of a gufunc, NPY_MAXARGS of NumPy."""

STEPS = 4 * ARRAYS
"""The largest number of strides of arrays with several leading axes: one per array, and those of its core."""

CORE = 8
"""The words per array in the table of core dimensions."""

SPIN = 20_000
"""The longest time that a thread waits without sleeping [ns], for the next batch of a loop in Python."""

TRIAL = 64
"""The samples from which the time of a sample is first measured."""


@dataclass(frozen=True)
class Crew:
    """The unit of the functions `work`, `loop` and `sweep`.

    `work(post)` is run by a thread, and never returns. `loop(args, dims, steps, share)` is the inner loop of a gufunc,
    which shares the samples of a kernel. `sweep(share, arrays, axes)` runs a kernel on NumPy arrays, given by their
    addresses, with the same leading axes, all of which are divided. It returns the floating-point flags that NumPy
    reports, or -1 without any result if NumPy must prepare the arrays.
    """


class Post(IntEnum):
    """The places in a post, of 8 bytes each."""

    OWNER = 0  # 1 while a caller uses the thread
    STATE = auto()
    JOB = auto()
    WAKE = auto()  # semaphore of the thread
    DONE = 8  # semaphore of the caller
    SIZE = 16


class State(IntEnum):
    """What a thread does: from idle to offered by the caller, to taken by the thread, and back to idle."""

    IDLE = 0
    SLEEPING = auto()
    OFFERED = auto()
    TAKEN = auto()
    AWAITED = auto()  # taken, and the caller sleeps


class Share(IntEnum):
    """The places in the last argument of `loop`, of 8 bytes each."""

    KERNEL = 0
    DATA = auto()  # the last argument of the kernel
    ARRAYS = auto()
    THREADS = auto()  # at most, with the caller
    INPUTS = auto()
    ARRAY_TYPE = auto()  # the address of NumPy's type of arrays
    DTYPE = auto()  # the address of their NumPy dtype
    ITEM = auto()  # the size of a number [bytes]
    CORES = auto()  # the address of a table with, per array, the number of its core dimensions and their lengths
    STREAMED = auto()  # whole grains from which results in rows bypass the caches, 0 if they never do
    GRAIN = auto()  # portions begin at multiples of this number of samples
    PACE = auto()  # the shortest time per sample so far, a float64 number; 0 before the first measurement
    LEAST = auto()  # the least work of each thread, a float64 number
    PORTION = auto()  # the time of a portion, a float64 number
    COUNT = auto()  # the address of the number of posts
    POSTS = auto()
    SIZE = auto()
