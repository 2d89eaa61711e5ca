"""The direct entry: a function of Python's C interface that runs a kernel on one sample, without NumPy's machinery.

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

    Arguments that are not plain contiguous float64 arrays of the right shapes, options, numbers that are not finite and
    exceptions of floating-point arithmetic are left to the fallback, a Python callable with the same arguments.
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
    KERNEL = auto()
    COUNTS = auto()
    FALLBACK = auto()
    GIVEN = auto()
    INPUTS = auto()
    OUTPUTS = auto()


POINTERS = len(Word)
"""The place of the pointers to the data of inputs that are the same in every call, one per array."""

SHAPES = POINTERS + ARRAYS
"""The place of the shapes: per array the number of dimensions, and DIMENSIONS lengths."""

DIMS = SHAPES + ARRAYS * (1 + DIMENSIONS)
"""The place of the kernel's second argument: the number of samples and the core dimensions."""

STEPS = DIMS + 1 + ARRAYS * DIMENSIONS
"""The place of the kernel's third argument: the strides between samples, and those of the core dimensions."""

WORDS = STEPS + ARRAYS * (1 + DIMENSIONS)
"""The number of words."""


class Offset(IntEnum):
    """Offsets of fields [bytes] in objects of CPython and NumPy, as their headers for C define them on 64 bits."""

    TYPE = 8  # PyObject.ob_type
    DATA = 16  # PyArrayObject_fields.data, ...
    NDIM = 24
    SHAPE = 32
    DTYPE = 56
    FLAGS = 64
    BYTE_ORDER = 26  # PyArray_Descr.byteorder, type_num
    TYPE_NUMBER = 28


NPY_DOUBLE = 12
NATIVE = ord("=")
DENSE = 0x0001 | 0x0100
"""NPY_ARRAY_C_CONTIGUOUS and NPY_ARRAY_ALIGNED."""
