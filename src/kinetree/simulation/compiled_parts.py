"""Compiled parts of runs, kept with their System: a repeated run traces, loads and compiles nothing.

The key of a part is made of the values that determine it. Objects of this package are functions of their fields, so
that equal fields give equal code. Any other object, such as a user's function, may depend on data that change between
two calls. It is traced again, without the dynamics, and the digest of its operations is the key.
"""

from __future__ import annotations

import threading
from collections import OrderedDict
from collections.abc import Callable, Hashable, Sequence
from dataclasses import fields, is_dataclass
from typing import Any, TypeVar
from weakref import WeakKeyDictionary

import numpy as np

from ..compiler.ir.program import Program
from ..compiler.runtime.native import native
from ..model.mechanism import Mechanism
from ..system import System
from .rates import acting

T = TypeVar("T")

MOST = 32
"""The number of most recently used parts that a System keeps: a dozen kinds of runs with two or three parts each."""

_LOCK = threading.Lock()


class Kept:
    """The most recently used compiled parts of the runs of one mechanism."""

    def __init__(self, mechanism: Mechanism) -> None:
        """Begin without parts."""
        self.mechanism = mechanism
        self._parts: OrderedDict[Hashable, Any] = OrderedDict()

    def part(self, key: Hashable, make: Callable[[], T]) -> T:
        """Return the part with a key; make it if there is none."""
        with _LOCK:
            if key in self._parts:
                self._parts.move_to_end(key)
                return self._parts[key]
        made = make()
        with _LOCK:
            self._parts[key] = made
            while len(self._parts) > MOST:
                self._parts.popitem(last=False)
        return made

    def native(self, program: Program) -> np.ufunc:
        """Return the gufunc of a Program."""
        return self.part(("native", program.hash), lambda: native(program))

    def key(self, forces: Sequence[Any], control: Any = None) -> Hashable:
        """Return the key of forces and a compiled controller: their values, or the digest of their operations."""
        try:
            return tuple(map(value_key, forces)), value_key(control)
        except _NoValue:
            return acting(self.mechanism, forces, control).hash


_of_systems: WeakKeyDictionary[System, Kept] = WeakKeyDictionary()


def kept_of(system: System) -> Kept:
    """Return the compiled parts that a System keeps for its present mechanism."""
    with _LOCK:
        kept = _of_systems.get(system)
        if kept is None or kept.mechanism is not system.mechanism:
            kept = _of_systems[system] = Kept(system.mechanism)
    return kept


class _NoValue(Exception):
    """An object that is not determined by its fields."""


def value_key(x: Any) -> Hashable:
    """Return a key that is equal only for equal values; zeros of different sign differ."""
    if x is None or isinstance(x, bool | int | str):
        return type(x), x
    if isinstance(x, float):
        return float(x).hex()
    if isinstance(x, list | tuple):
        return tuple(map(value_key, x))
    if isinstance(x, np.ndarray | np.generic) and x.dtype != object:
        return x.dtype.str, x.shape, x.tobytes()
    if is_dataclass(x) and type(x).__module__.startswith("kinetree."):
        return type(x), *(value_key(getattr(x, field.name)) for field in fields(x))
    raise _NoValue
