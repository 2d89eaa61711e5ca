"""Layouts in memory on which compiled code and its callers agree."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from enum import IntEnum, auto

from ..compiler.ir.program import Array, Program
from ..compiler.lanes.form import Kernel

# --- The direct entry: a function of Python's C interface that runs a kernel on samples, without NumPy's machinery.
#
# This is the interface between its code, which is the same for all kernels, and the runtime, which makes Python
# functions of it. Such a function has a tuple as `self`. The first item of that tuple is an array of words, which hold
# all addresses and shapes that the code needs. The code itself contains no address, so that it can be cached.

ARRAYS = 8
"""The largest number of inputs and outputs of a kernel with a direct entry."""

DIMENSIONS = 3
"""The largest number of dimensions of such an array."""


@dataclass(frozen=True)
class DirectEntry:
    """The unit of the function `entry(self, args, count, names)`, of the kind METH_FASTCALL | METH_KEYWORDS.

    Its arguments are plain contiguous float64 arrays, either of one sample or with one leading dimension, and maybe the
    option `out`. Anything else is left to the fallback, a Python callable with the same arguments: other arrays and
    options, results in the memory of arguments, numbers that are not finite, and exceptions of floating-point
    arithmetic.
    """

    items: int
    """The offset of the items of a tuple [bytes], which depends on the version of Python."""


class Word(IntEnum):
    """The place of each address and count in the words; tables follow at TABLES."""

    ARRAY_TYPE = 0
    NEW_ARRAY = auto()
    AS_RESULT = auto()
    VECTORCALL = auto()
    RELEASE = auto()
    NEW_TUPLE = auto()
    SET_ITEM = auto()
    RETAIN = auto()
    TUPLE_TYPE = auto()
    NAME_OUT = auto()
    SAVE_THREAD = auto()
    RESTORE_THREAD = auto()
    KERNEL = auto()
    COUNTS = auto()
    LAST = auto()
    FALLBACK = auto()
    GIVEN = auto()
    INPUTS = auto()
    OUTPUTS = auto()


POINTERS = len(Word)
"""The place of the pointers to the data of inputs that are the same in every call, one per array."""

SHAPES = POINTERS + ARRAYS
"""The place of the shapes."""

SHAPE_WORDS = 1 + DIMENSIONS
"""The words of a shape: the number of dimensions, and their lengths."""

STEPS = SHAPES + ARRAYS * SHAPE_WORDS
"""The place of the kernel's third argument: the strides between samples, and along the core dimensions."""

WORDS = STEPS + ARRAYS * SHAPE_WORDS
"""The number of words."""


class Offset(IntEnum):
    """Offsets of fields [bytes] in objects of CPython and NumPy, as their headers for C define them on 64 bits."""

    TYPE = 8  # PyObject.ob_type
    SIZE = 16  # PyVarObject.ob_size
    DATA = 16  # PyArrayObject_fields.data, ...
    NDIM = 24
    SHAPE = 32
    STRIDES = 40
    DTYPE = 56
    FLAGS = 64
    BYTE_ORDER = 26  # PyArray_Descr.byteorder, type_num
    TYPE_NUMBER = 28


class UfuncOffset(IntEnum):
    """Offsets of fields [bytes] in PyUFuncObject of NumPy on 64 bits."""

    FUNCTIONS = 32
    DATA = 40
    NAME = 56
    OBJECT = 88  # what the ufunc owns


class NumpyTable(IntEnum):
    """Places in NumPy's tables of functions: _UFUNC_API, and _ARRAY_API for the others."""

    NEW_UFUNC = 31  # PyUFunc_FromFuncAndDataAndSignature
    ARRAY_TYPE = 2  # PyArray_Type
    AS_RESULT = 76  # PyArray_Return
    NEW_ARRAY = 93  # PyArray_New


FASTCALL_WITH_KEYWORDS = 0x0080 | 0x0002
"""METH_FASTCALL | METH_KEYWORDS of Python."""
NPY_TYPES = {"float64": 12, "float32": 11}
"""NPY_DOUBLE and NPY_FLOAT."""
NPY_DOUBLE = NPY_TYPES["float64"]
NATIVE = ord("=")
ALIGNED, MAY_WRITE = 0x0100, 0x0400
"""NPY_ARRAY_ALIGNED and NPY_ARRAY_WRITEABLE."""
DENSE = 0x0001 | ALIGNED
"""NPY_ARRAY_C_CONTIGUOUS and NPY_ARRAY_ALIGNED."""
WRITEABLE = DENSE | MAY_WRITE
"""The same with NPY_ARRAY_WRITEABLE."""

SHARED = 64
"""The least number of samples during which other threads of Python may run."""

# --- The crew: threads that wait in native code, and the loops that share a batch with them ---
#
# This is the interface between that code, which is the same for all kernels, and the runtime, which starts the threads
# and makes gufuncs of the loops. All times are in nanoseconds.
#
# Each thread has a post, at which callers offer it work. The caller and the threads take the next portions of a batch
# until none is left. A thread that comes late therefore delays nobody: the caller withdraws an offer that was not
# taken.

MOST = 256
"""The largest number of threads of a crew."""

CREW_ARRAYS = 64
"""The largest number of inputs and outputs of a gufunc, NPY_MAXARGS of NumPy."""

CREW_STEPS = 4 * CREW_ARRAYS
"""The largest number of strides of arrays with several leading axes: one per array, and one per core dimension."""

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


class Job(IntEnum):
    """The places in a job, of 8 bytes each: a kernel and its arrays, and the next portion."""

    KERNEL = 0
    DATA = auto()
    ARRAYS = auto()
    POINTERS = auto()  # of the first sample
    STEPS = auto()  # the third argument of the kernel
    AXES = auto()  # that are before the last one
    SHAPE = auto()
    STRIDES = auto()  # per array, the address of its strides along the axes
    INNER = auto()  # samples along the last axis
    PIECE = auto()  # samples of a portion
    PIECES = auto()  # portions along the last axis
    PORTIONS = auto()
    GRAB = auto()  # portions that are taken at once
    NEXT = 16  # the first portion that nobody has taken, in a cache line of its own
    FLAGS = 24
    ENVIRONMENT = 32  # fenv_t of the caller, at most 64 bytes
    SIZE = 40


# --- The call frame of XLA's foreign function interface (FFI), by which JAX calls native code without Python ---
#
# A handler is a C function of a call frame, which holds the addresses and shapes of all buffers. The places of its
# fields are given in xla/ffi/api/c_api.h, whose major version is 0.

MAJOR = 0
"""The major version of the interface, which changes if fields move."""
EXTENSION, ARGUMENTS, RESULTS = 8, 72, 112  # places of fields in a call frame [bytes]
EXTENSION_TYPE, METADATA = 8, 24  # in an extension of it
METADATA_TYPE = 1
VERSION = 24  # in metadata: two 32-bit numbers
DATA, RANK, FRAME_DIMENSIONS = 24, 32, 40  # in a buffer


@dataclass(frozen=True)
class Handler:
    """The unit of the function `handler(frame)`, which runs an inner loop of a gufunc on dense buffers.

    `kernel` and `data` are the addresses of the loop and of its last argument, `shapes` the shapes of one sample, the
    last `outputs` of them of results. `constants` is the address of the last input if all samples share it and no
    buffer holds it, otherwise 0. `minor` is the minor version of the interface in the installed XLA.
    """

    kernel: int
    data: int
    shapes: tuple[tuple[int, ...], ...]
    outputs: int
    itemsize: int
    constants: int
    minor: int


# --- The arrays of a unit, in the order of arguments ---

LONG = 128
"""The most entries of a row that is never stored by lines: a block of such rows fits into the first cache."""

STREAMED = 2**24
"""The least size of the long outputs of a call whose lines bypass the caches, if the processor can store lines [bytes].

Larger outputs do not stay in the caches, and each line would be read from memory before it is written."""


def streaming_threshold(outputs: Sequence[Array], itemsize: int) -> int:
    """Return the number of samples from which long outputs bypass the caches, 0 if no output is long."""
    total = sum(a.size * itemsize for a in outputs if a.size > LONG)
    return -(-STREAMED // total) if total else 0


def arrays_of(unit: Program | Kernel) -> Sequence[tuple[str, tuple[int | str, ...], bool]]:
    """Return (name, shape, whether it is an output) of each array; "t" is the extent of the axis of times."""
    if isinstance(unit, Kernel):
        return [(a.name, a.shape, a.output) for a in unit.arguments]
    return [*((a.name, a.shape, False) for a in unit.inputs), *((a.name, a.shape, True) for a in unit.outputs)]
