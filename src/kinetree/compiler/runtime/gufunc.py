"""Registration of a native kernel as a NumPy generalized ufunc, by NumPy's C interface."""

from __future__ import annotations

import ctypes
from typing import Any

import numpy as np

FROM_SIGNATURE = 31  # PyUFunc_FromFuncAndDataAndSignature in NumPy's table of ufunc functions
TYPES = {"float64": 12, "float32": 11}  # NPY_DOUBLE, NPY_FLOAT
FUNCTIONS_OFFSET, DATA_OFFSET, NAME_OFFSET, OBJECT_OFFSET = 32, 40, 56, 88
"""The places of the fields `functions`, `data`, `name` and `obj` of PyUFuncObject on 64-bit machines [bytes]."""


def register(address: int, counter: Any, name: str, doc: str, signature: str, arity: tuple[int, int],
             dtype: str, keep: Any) -> np.ufunc:  # fmt: skip
    """Return a gufunc that runs the kernel at an address; `keep` lives as long as the gufunc."""
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
