"""Direct calls: Python functions that run a kernel on samples without NumPy's machinery for gufuncs.

Their code reads arrays and makes new ones by the C interfaces of Python and NumPy, whose addresses it is given. That
depends on the layout of objects in memory. Where the layout is different, there are no direct calls.
"""

from __future__ import annotations

import ctypes
import sys
import sysconfig
from collections.abc import Callable
from dataclasses import dataclass
from functools import cache
from typing import Any

import numpy as np

from ..compiler.ir.program import Array
from ..targets import target
from ..targets.abi import (
    ARRAYS,
    DENSE,
    DIMENSIONS,
    NATIVE,
    NPY_DOUBLE,
    POINTERS,
    SHAPES,
    STEPS,
    WORDS,
    Entry,
    Offset,
    Word,
)
from ..targets.protocol import Loaded
from .cache import digest
from .native import address_table, load_code

FASTCALL_WITH_KEYWORDS = 0x0080 | 0x0002  # METH_FASTCALL | METH_KEYWORDS
OUT = sys.intern("out")
"""The name of the only option of direct calls: Python interns the names of keywords, so that its address is known."""
ARRAY_TYPE, AS_RESULT, NEW_ARRAY = 2, 76, 93  # PyArray_Type, PyArray_Return, PyArray_New in NumPy's table of functions


@dataclass(frozen=True)
class NativeKernel:
    """A kernel of float64 arrays in memory: its inputs and outputs, its address, its two counts, and its code.

    `last` is the last argument of the kernel if that is not the counts.
    """

    inputs: tuple[Array, ...]
    outputs: tuple[Array, ...]
    address: int
    counts: Any
    code: Any
    last: Any = None


class MethodDefinition(ctypes.Structure):
    """PyMethodDef of Python's C interface."""

    _fields_ = (
        ("name", ctypes.c_char_p),
        ("address", ctypes.c_void_p),
        ("flags", ctypes.c_int),
        ("doc", ctypes.c_char_p),
    )


class DirectCall(tuple):
    """What a direct call owns, as its `self`: the words, and the objects to which they point."""

    __slots__ = ()

    def __reduce__(self) -> Any:
        """Pickle the object whose method this is, from which pickle gets the method again by its name."""
        return self[1].__reduce__()


def direct_call(kernel: NativeKernel, owner: Any, name: str, doc: str, constants: tuple[np.ndarray, ...],
                fallback: Callable[..., Any]) -> Callable[..., Any] | None:  # fmt: skip
    """Return a function of the arrays of one sample or of a batch; None where direct calls are impossible.

    `constants` are the last inputs of the kernel. The function takes the others and the option `out`, and leaves all
    calls but those with plain float64 arrays to `fallback`. The function is pickled as the attribute `name` of `owner`.
    """
    if not is_supported() or not _fits(kernel):
        return None
    code = entry_code()
    words = np.array(_words(kernel, constants, fallback), np.uint64)
    definition = MethodDefinition(name.encode(), code.find("entry"), FASTCALL_WITH_KEYWORDS, doc.encode())
    own = DirectCall((words, owner, constants, fallback, kernel, definition, code))
    make = ctypes.PYFUNCTYPE(ctypes.py_object, ctypes.c_void_p, ctypes.py_object, ctypes.py_object)(
        ("PyCFunction_NewEx", ctypes.pythonapi)
    )
    return make(ctypes.addressof(definition), own, type(owner).__module__)


def _fits(kernel: NativeKernel) -> bool:
    arrays = kernel.inputs + kernel.outputs
    return len(arrays) <= ARRAYS and all(len(a.shape) <= DIMENSIONS for a in arrays)


def _words(kernel: NativeKernel, constants: tuple[np.ndarray, ...], fallback: Callable[..., Any]) -> list[int]:
    """Return the words of a call."""
    arrays = kernel.inputs + kernel.outputs
    given = len(kernel.inputs) - len(constants)
    words = [0] * WORDS
    for word, value in (
        *_interface().items(),
        (Word.KERNEL, kernel.address),
        (Word.COUNTS, ctypes.addressof(kernel.counts)),
        (Word.LAST, ctypes.addressof(kernel.counts if kernel.last is None else kernel.last)),
        (Word.FALLBACK, id(fallback)),
        (Word.GIVEN, given),
        (Word.INPUTS, len(kernel.inputs)),
        (Word.OUTPUTS, len(kernel.outputs)),
    ):
        words[word] = value
    words[POINTERS + given : POINTERS + len(kernel.inputs)] = [x.ctypes.data for x in constants]
    for k, a in enumerate(arrays):
        at = SHAPES + k * (1 + DIMENSIONS)
        words[at : at + 1 + len(a.shape)] = [len(a.shape), *a.shape]
    moved = [k < given or k >= len(kernel.inputs) for k in range(len(arrays))]
    steps = [a.size * np.dtype(float).itemsize * moves for a, moves in zip(arrays, moved, strict=True)]
    steps += [s for a in arrays for s in np.empty(a.shape).strides]
    words[STEPS : STEPS + len(steps)] = steps
    return words


@cache
def entry_code() -> Loaded:
    """Return the code of all direct calls, which is loaded once."""
    entry = Entry(tuple.__basicsize__)
    return load_code(digest(repr(entry), sys.platform, target().fingerprint()), lambda: entry, "float64")


@cache
def is_supported() -> bool:
    """Return whether this Python and this NumPy have the expected layout of objects: CPython on 64 bits, with a GIL."""
    if sys.implementation.name != "cpython" or sysconfig.get_config_var("Py_GIL_DISABLED"):
        return False
    probe = (object(),)
    if object.__basicsize__ != Offset.DATA or _word_at(id(probe) + tuple.__basicsize__) != id(probe[0]):
        return False
    if _word_at(id(probe) + Offset.SIZE) != len(probe):
        return False
    try:
        table = _interface()
    except (AttributeError, ValueError):
        return False
    return table[Word.ARRAY_TYPE] == id(np.ndarray) and _has_expected_layout(np.arange(6.0).reshape(2, 3))


def _word_at(address: int) -> int:
    return ctypes.c_size_t.from_address(address).value


def _has_expected_layout(array: np.ndarray) -> bool:
    """Return whether the fields of an array of float64 numbers are where the entry reads them."""

    def field(thing: int, offset: Offset, kind: Any = ctypes.c_size_t) -> int:
        return kind.from_address(thing + offset).value

    this, dtype = id(array), id(array.dtype)
    found = (
        field(this, Offset.TYPE),
        field(this, Offset.DATA),
        field(this, Offset.NDIM, ctypes.c_int32),
        field(this, Offset.DTYPE),
        field(this, Offset.FLAGS, ctypes.c_int32),
    )
    if found != (id(type(array)), array.ctypes.data, array.ndim, dtype, array.flags.num):
        return False
    shape = (ctypes.c_int64 * array.ndim).from_address(field(this, Offset.SHAPE))
    number, order = field(dtype, Offset.TYPE_NUMBER, ctypes.c_int32), field(dtype, Offset.BYTE_ORDER, ctypes.c_uint8)
    strides = (ctypes.c_int64 * array.ndim).from_address(field(this, Offset.STRIDES))
    found = (*shape, *strides, number, order, found[-1] & DENSE)
    return found == (*array.shape, *array.strides, NPY_DOUBLE, NATIVE, DENSE)


def _interface() -> dict[Word, int]:
    """Return the addresses of functions of Python and NumPy."""
    numpy = address_table("_ARRAY_API")
    names = {
        Word.VECTORCALL: "PyObject_Vectorcall",
        Word.RELEASE: "Py_DecRef",
        Word.NEW_TUPLE: "PyTuple_New",
        Word.SET_ITEM: "PyTuple_SetItem",
        Word.RETAIN: "Py_IncRef",
        Word.SAVE_THREAD: "PyEval_SaveThread",
        Word.RESTORE_THREAD: "PyEval_RestoreThread",
    }
    return {
        Word.ARRAY_TYPE: numpy[ARRAY_TYPE],
        Word.NEW_ARRAY: numpy[NEW_ARRAY],
        Word.AS_RESULT: numpy[AS_RESULT],
        Word.TUPLE_TYPE: id(tuple),
        Word.NAME_OUT: id(OUT),
    } | {word: ctypes.cast(getattr(ctypes.pythonapi, name), ctypes.c_void_p).value or 0 for word, name in names.items()}
