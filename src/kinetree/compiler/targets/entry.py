"""The direct entry: a function of Python's C interface that runs a kernel on samples, without NumPy's machinery.

This file is the interface between its code, which a target writes once for all kernels, and the runtime, which makes
Python functions of it. Such a function has a tuple as `self`. The first item of that tuple is an array of words, which
hold all addresses and shapes that the code needs. The code itself contains no address, so that it can be cached.
"""

from __future__ import annotations

from dataclasses import dataclass
from enum import IntEnum, auto

ARRAYS = 8
"""The largest number of inputs and outputs of a kernel with a direct entry."""

DIMENSIONS = 3
"""The largest number of dimensions of such an array."""


@dataclass(frozen=True)
class Entry:
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
"""The place of the shapes: per array the number of dimensions, and DIMENSIONS lengths."""

STEPS = SHAPES + ARRAYS * (1 + DIMENSIONS)
"""The place of the kernel's third argument: the strides between samples, and those of the core dimensions."""

WORDS = STEPS + ARRAYS * (1 + DIMENSIONS)
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


NPY_DOUBLE = 12
NATIVE = ord("=")
ALIGNED, MAY_WRITE = 0x0100, 0x0400
"""NPY_ARRAY_ALIGNED and NPY_ARRAY_WRITEABLE."""
DENSE = 0x0001 | ALIGNED
"""NPY_ARRAY_C_CONTIGUOUS and NPY_ARRAY_ALIGNED."""
WRITEABLE = DENSE | MAY_WRITE
"""The same with NPY_ARRAY_WRITEABLE."""

SHARED = 64
"""The least number of samples during which other threads of Python may run."""
