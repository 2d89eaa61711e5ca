"""Native code as gufuncs: compiled or read from the cache, loaded into memory, and registered with NumPy."""

from __future__ import annotations

import ctypes
import sys
import threading
from collections import OrderedDict
from collections.abc import Callable, Hashable
from functools import cache
from typing import Any, TypeVar

import numpy as np

from .._support.progress import compiling
from ..compiler.ir.program import Program
from ..compiler.lanes.form import Kernel
from ..model.mechanism import Mechanism
from ..targets import target
from ..targets.protocol import Loaded, Unit
from .cache import digest, fetch

# --- Registration of a native kernel as a NumPy generalized ufunc, by NumPy's C interface ---

FROM_SIGNATURE = 31  # PyUFunc_FromFuncAndDataAndSignature in NumPy's table of ufunc functions
TYPES = {"float64": 12, "float32": 11}  # NPY_DOUBLE, NPY_FLOAT
FUNCTIONS_OFFSET, DATA_OFFSET, NAME_OFFSET, OBJECT_OFFSET = 32, 40, 56, 88
"""The places of the fields `functions`, `data`, `name` and `obj` of PyUFuncObject on 64-bit machines [bytes]."""


def register(address: int, counter: Any, name: str, doc: str, signature: str, arity: tuple[int, int],
             dtype: str, keep: Any) -> np.ufunc:  # fmt: skip
    """Return a gufunc that runs the kernel at an address; `keep` lives as long as the gufunc."""
    keep_freed_results()
    nin, nout = arity
    functions = (ctypes.c_void_p * 1)(address)
    data = (ctypes.c_void_p * 1)(ctypes.addressof(counter))
    types = (ctypes.c_char * (nin + nout))(*([TYPES[dtype]] * (nin + nout)))
    texts = [ctypes.create_string_buffer(s.encode()) for s in (name, doc, signature)]
    make = ctypes.PYFUNCTYPE(
        ctypes.py_object,
        *[ctypes.c_void_p] * 3,
        *[ctypes.c_int] * 4,
        *[ctypes.c_void_p] * 2,
        ctypes.c_int,
        ctypes.c_void_p,
    )(address_table("_UFUNC_API")[FROM_SIGNATURE])
    ufunc = make(
        ctypes.addressof(functions), ctypes.addressof(data), ctypes.addressof(types), 1, nin, nout, -1,
        ctypes.addressof(texts[0]), ctypes.addressof(texts[1]), 0, ctypes.addressof(texts[2]),
    )  # fmt: skip
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


def address_table(name: str) -> Any:
    """Return a table of addresses in NumPy's C interface: _UFUNC_API for ufuncs, _ARRAY_API for arrays."""
    module = np._core._multiarray_umath  # type: ignore[attr-defined]
    get = ctypes.pythonapi.PyCapsule_GetPointer
    get.restype, get.argtypes = ctypes.c_void_p, [ctypes.py_object, ctypes.c_char_p]
    return ctypes.cast(get(getattr(module, name), None), ctypes.POINTER(ctypes.c_void_p))


_forever: list[Any] = []


def _tie(ufunc: np.ufunc, name_address: int, kept: tuple) -> None:
    """Make the ufunc own `kept` by its field `obj`; if its memory layout is different, keep both forever."""
    base = id(ufunc)
    name = ctypes.c_void_p.from_address(base + NAME_OFFSET).value
    field = ctypes.c_void_p.from_address(base + OBJECT_OFFSET)
    if ctypes.sizeof(ctypes.c_void_p) == 8 and name == name_address and not field.value:
        ctypes.pythonapi.Py_IncRef(ctypes.py_object(kept))
        field.value = id(kept)
    else:
        _forever.append((ufunc, kept))


def loop_of(ufunc: np.ufunc) -> tuple[int, int]:
    """Return the addresses of the inner loop of a gufunc and of the loop's last argument."""
    places = (ctypes.c_void_p.from_address(id(ufunc) + k).value or 0 for k in (FUNCTIONS_OFFSET, DATA_OFFSET))
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
