"""Native code as Python functions: loaded into memory, registered with NumPy as a gufunc, and called directly."""

from __future__ import annotations

import ctypes
import sys
import sysconfig
import threading
from collections import OrderedDict
from collections.abc import Callable, Hashable, Sequence
from dataclasses import dataclass
from functools import cache
from typing import Any, TypeVar

import numpy as np

from .._support.progress import compiling
from ..compiler.ir.program import Array, Program
from ..compiler.lanes.form import Kernel
from ..model.mechanism import Mechanism
from ..targets import Loaded, Unit, target
from ..targets.abi import (
    ARRAYS,
    DENSE,
    DIMENSIONS,
    FASTCALL_WITH_KEYWORDS,
    NATIVE,
    NPY_DOUBLE,
    NPY_TYPES,
    POINTERS,
    SHAPE_WORDS,
    SHAPES,
    STEPS,
    WORDS,
    DirectEntry,
    NumpyTable,
    Offset,
    UfuncOffset,
    Word,
)
from .cache import digest, fetch

# --- Registration of a native kernel as a NumPy generalized ufunc, by NumPy's C interface ---


def register(
    address: int,
    counter: ctypes.Array[ctypes.c_int64],
    name: str,
    doc: str,
    signature: str,
    arity: tuple[int, int],
    dtype: str | Sequence[str],
    keep: object,
) -> np.ufunc:
    """Return a gufunc that runs the kernel at an address; `keep` lives as long as the gufunc.

    `dtype` is that of all inputs and outputs, or has one for each of them in order.
    """
    keep_freed_results()
    nin, nout = arity
    functions = (ctypes.c_void_p * 1)(address)
    data = (ctypes.c_void_p * 1)(ctypes.addressof(counter))
    dtypes = [dtype] * (nin + nout) if isinstance(dtype, str) else dtype
    types = (ctypes.c_char * (nin + nout))(*(NPY_TYPES[x] for x in dtypes))
    texts = [ctypes.create_string_buffer(s.encode()) for s in (name, doc, signature)]
    make = ctypes.PYFUNCTYPE(
        ctypes.py_object,
        *[ctypes.c_void_p] * 3,
        *[ctypes.c_int] * 4,
        *[ctypes.c_void_p] * 2,
        ctypes.c_int,
        ctypes.c_void_p,
    )(address_table("_UFUNC_API")[NumpyTable.NEW_UFUNC])
    ufunc = make(
        ctypes.addressof(functions),
        ctypes.addressof(data),
        ctypes.addressof(types),
        1,
        nin,
        nout,
        -1,
        ctypes.addressof(texts[0]),
        ctypes.addressof(texts[1]),
        0,
        ctypes.addressof(texts[2]),
    )
    _tie(ufunc, ctypes.addressof(texts[0]), (functions, data, types, texts, counter, keep))
    return ufunc


LARGEST_KEPT = 2**25 - 2**13
"""The size of the largest block by whose release glibc adapts, with its header and whole pages [bytes]."""


@cache
def keep_freed_results() -> None:
    """Let the C library keep the memory of freed results for the next call, of up to 32 MiB per array.

    glibc maps large arrays apart, and trims the end of its heap. Both make the system clear all pages of new results
    in every call, which takes longer than the arithmetic. When a mapped block is freed, glibc raises both thresholds
    to its size and twice its size. One block that nobody writes to brings them to their largest values, which a program
    with one such array has anyway. Thresholds that the user has set, as by MALLOC_TRIM_THRESHOLD_, stay.
    """
    if sys.platform == "linux":
        np.empty(LARGEST_KEPT, np.uint8)


def address_table(name: str) -> ctypes._Pointer[ctypes.c_void_p]:
    """Return a table of addresses in NumPy's C interface: _UFUNC_API for ufuncs, _ARRAY_API for arrays."""
    module = np._core._multiarray_umath  # type: ignore[attr-defined]
    get = ctypes.pythonapi.PyCapsule_GetPointer
    get.restype, get.argtypes = ctypes.c_void_p, [ctypes.py_object, ctypes.c_char_p]
    return ctypes.cast(get(getattr(module, name), None), ctypes.POINTER(ctypes.c_void_p))


_forever: list[object] = []


def _tie(ufunc: np.ufunc, name_address: int, kept: tuple) -> None:
    """Make the ufunc own `kept` by its field `obj`; if its memory layout is different, keep both forever."""
    base = id(ufunc)
    name = ctypes.c_void_p.from_address(base + UfuncOffset.NAME).value
    field = ctypes.c_void_p.from_address(base + UfuncOffset.OBJECT)
    if ctypes.sizeof(ctypes.c_void_p) == 8 and name == name_address and not field.value:
        ctypes.pythonapi.Py_IncRef(ctypes.py_object(kept))
        field.value = id(kept)
    else:
        _forever.append((ufunc, kept))


def loop_of(ufunc: np.ufunc) -> tuple[int, int]:
    """Return the addresses of the inner loop of a gufunc and of the loop's last argument."""
    places = (ctypes.c_void_p.from_address(id(ufunc) + k).value or 0 for k in (UfuncOffset.FUNCTIONS, UfuncOffset.DATA))
    function, data = (ctypes.c_void_p.from_address(x).value or 0 for x in places)
    return function, data


def core_signature(inputs, outputs) -> str:
    """Return the signature of arrays with fixed core dimensions, e.g. (6),(6),(6)->(6)."""

    def one(a) -> str:
        return "(" + ",".join(map(str, a.shape)) + ")"

    return ",".join(map(one, inputs)) + "->" + ",".join(map(one, outputs))


def load_code(name: str, unit: Callable[[], Unit], dtype: str) -> Loaded:
    """Return the code that the cache holds under a name; `unit` is called only if there is none."""
    chosen = target()

    def make() -> bytes:
        with compiling("a function"):
            made = unit()
        with compiling(getattr(made, "name", "a function")):  # entries of direct calls have none
            return chosen.build(chosen.emit(made, dtype))

    return chosen.load(fetch(name, make))


def loaded_text(unit: Unit, dtype: str) -> Loaded:
    """Return the code of a unit, which the cache holds under the hash of the unit's source text."""
    chosen = target()
    with compiling(getattr(unit, "name", "a function")):
        source = chosen.emit(unit, dtype)
        return chosen.load(fetch(digest(source, chosen.fingerprint()), lambda: chosen.build(source)))


def native(program: Program, dtype: str = "float64") -> np.ufunc:
    """Return the gufunc of a Program, each of whose inputs and outputs has at least one entry."""
    signature = core_signature(program.inputs, program.outputs)
    return _registered(program, signature, (len(program.inputs), len(program.outputs)), dtype)


def native_kernel(kernel: Kernel, dtype: str = "float64") -> np.ufunc:
    """Return the gufunc of a kernel of the lane language."""
    return _registered(kernel, kernel.signature, kernel.arity, dtype)


# --- What analyses and runs keep with a mechanism, so that repeated ones trace, load and compile nothing ---

T = TypeVar("T")

MOST = 64
"""The number of most recently used parts that are kept: some dozen kinds of runs and analyses, a few parts each."""


class CompiledParts:
    """The most recently used parts of the analyses and runs of one mechanism: compiled functions and their like.

    The key of a part is made of all values that determine it, besides the mechanism.
    """

    def __init__(self, mechanism: Mechanism) -> None:
        """Begin without parts."""
        self.mechanism = mechanism
        self._kept: OrderedDict[Hashable, Any] = OrderedDict()
        self._lock = threading.Lock()

    def __len__(self) -> int:
        """Return the number of parts."""
        return len(self._kept)

    def part(self, key: Hashable, make: Callable[[], T]) -> T:
        """Return the part with a key; make it if there is none."""
        with self._lock:
            if key in self._kept:
                self._kept.move_to_end(key)
                return self._kept[key]
        with compiling(repr(self.mechanism.name)):
            made = make()
        with self._lock:
            self._kept[key] = made
            while len(self._kept) > MOST:
                self._kept.popitem(last=False)
        return made

    def native(self, program: Program) -> np.ufunc:
        """Return the gufunc of a Program."""
        return self.part(("native", program.hash), lambda: native(program))


def _registered(unit: Program | Kernel, signature: str, arity: tuple[int, int], dtype: str) -> np.ufunc:
    code = load_code(digest(unit.hash, dtype, target().fingerprint()), lambda: unit, dtype)
    counter = (ctypes.c_int64 * 2)()
    return register(code.find("kernel"), counter, unit.name, signature, signature, arity, dtype, code)


# --- Direct calls: Python functions that run a kernel on samples without NumPy's machinery for gufuncs.
#
# Their code reads arrays and makes new ones by the C interfaces of Python and NumPy, whose addresses it is given. That
# depends on the layout of objects in memory. Where the layout is different, there are no direct calls.


OUT = sys.intern("out")
"""The name of the only option of direct calls: Python interns the names of keywords, so that its address is known."""


@dataclass(frozen=True)
class NativeKernel:
    """A kernel of float64 arrays in memory: its inputs and outputs, its address, its two counts, and its code.

    `last` is the last argument of the kernel if that is not the counts.
    """

    inputs: tuple[Array, ...]
    outputs: tuple[Array, ...]
    address: int
    counts: ctypes.Array[ctypes.c_int64]
    code: object
    last: ctypes.Array[ctypes.c_int64] | None = None


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

    def __reduce__(self) -> str | tuple[object, ...]:
        """Pickle the object whose method this is, from which pickle gets the method again by its name."""
        return self[1].__reduce__()


def direct_call(
    kernel: NativeKernel,
    owner: object,
    name: str,
    doc: str,
    constants: tuple[np.ndarray, ...],
    fallback: Callable[..., object],
) -> Callable[..., Any] | None:
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


def _words(kernel: NativeKernel, constants: tuple[np.ndarray, ...], fallback: Callable[..., object]) -> list[int]:
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
        at = SHAPES + k * SHAPE_WORDS
        words[at : at + 1 + len(a.shape)] = [len(a.shape), *a.shape]
    moved = [k < given or k >= len(kernel.inputs) for k in range(len(arrays))]
    steps = [a.size * np.dtype(float).itemsize * moves for a, moves in zip(arrays, moved, strict=True)]
    steps += [s for a in arrays for s in np.empty(a.shape).strides]
    words[STEPS : STEPS + len(steps)] = steps
    return words


@cache
def entry_code() -> Loaded:
    """Return the code of all direct calls, which is loaded once."""
    entry = DirectEntry(tuple.__basicsize__)
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

    def field(thing: int, offset: Offset, kind: type = ctypes.c_size_t) -> int:
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
        Word.ARRAY_TYPE: numpy[NumpyTable.ARRAY_TYPE],
        Word.NEW_ARRAY: numpy[NumpyTable.NEW_ARRAY],
        Word.AS_RESULT: numpy[NumpyTable.AS_RESULT],
        Word.TUPLE_TYPE: id(tuple),
        Word.NAME_OUT: id(OUT),
    } | {word: ctypes.cast(getattr(ctypes.pythonapi, name), ctypes.c_void_p).value or 0 for word, name in names.items()}
