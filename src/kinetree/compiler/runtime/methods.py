"""Methods that call a compiled function of the same name, with signatures for editors and `inspect`.

A class declares such a method by its signature and docstring alone. Its body is generated here for the names of its
arrays, so that a call without options is a single Python frame around the gufunc.
"""

from __future__ import annotations

import builtins
import inspect
from collections.abc import Callable
from functools import cache, update_wrapper
from types import CodeType, FunctionType
from typing import Any, TypedDict, TypeVar

import numpy as np
from numpy.typing import ArrayLike

from ...algebra.arrays import Numbers
from ...dynamics import ALGORITHMS
from ...model.parameter_values import Named

F = TypeVar("F", bound=Callable[..., Any])


class Options(TypedDict, total=False):
    """Options of every compiled function."""

    parameters: Named | None
    out: Numbers | tuple[Numbers, ...] | None
    threads: int | None
    check: bool
    dtype: str | type


class WrenchOptions(Options, total=False):
    """Options of functions that depend on external wrenches."""

    wrenches: ArrayLike | None


class AxesOptions(Options, total=False):
    """Options of functions with a choice of axes, "body" or "world"."""

    axes: str | None


DEFAULTS = {"check": True, "dtype": "float64"}
"""The defaults of options; for all others None."""

SPACE = {"__builtins__": builtins, "ndarray": np.ndarray, "float64": np.float64}
"""The global names of the methods, except `name`, the name of the algorithm."""

TEMPLATE = """
def NAME(self, {arrays}, **options):
    if options:
        return self._with(name, **options)({arrays})
    try:
        gufunc, count, nominal, function = self._ready_NAME
    except AttributeError:
        gufunc, count, nominal, function = self._prepare(name)
    before = count[1]
    try:
        result = gufunc({arrays}) if nominal is None else gufunc({arrays}, nominal)
    except (ValueError, TypeError) as error:
        raise function.explained(({arrays},) if nominal is None else ({arrays}, nominal), None, error) from None
    if count[1] != before:
        function.refuse_non_finite(({arrays},) if nominal is None else ({arrays}, nominal))
    if type(result) is not ndarray and type(result) is not float64:
        function.refuse_masked(({arrays},))
    return result
"""
FRAME_TEMPLATE = """
def NAME(self, {arrays}, frame, **options):
    return self._with(name, frame=frame, **options)({arrays})
"""
CALL_TEMPLATE = """
def NAME(self, {arrays}, **options):
    return self._call(name, ({arrays},), options)
"""
CALL_FRAME_TEMPLATE = """
def NAME(self, {arrays}, frame, **options):
    return self._call(name, ({arrays},), {{"frame": frame, **options}})
"""


def compiled(declared: F) -> F:
    """Return the method of an algorithm that is declared by its signature and docstring.

    Its class has `_with`, which returns a function for a call with options, and `_prepare`, which stores the data for
    calls without options as an attribute.
    """
    parameters = list(inspect.signature(declared).parameters.values())
    name = declared.__name__
    arrays = [p.name for p in parameters[1:-1] if p.name != "frame"]
    method: Any = update_wrapper(_written(name, *arrays), declared)
    options = declared.__globals__[declared.__annotations__["options"].removeprefix("Unpack[").removesuffix("]")]
    keywords = [_keyword(o) for o in options.__annotations__]
    method.__signature__ = inspect.Signature([*parameters[:-1], *keywords])
    return method


def complete(cls: type) -> None:
    """Add to a class the methods of all algorithms in the table that it does not declare."""
    for name, algorithm in ALGORITHMS.items():
        if not hasattr(cls, name):
            method = _written(name, *algorithm.inputs)
            method.__doc__, method.__qualname__ = algorithm.page.__doc__, f"{cls.__qualname__}.{name}"
            setattr(cls, name, method)


def mirror(cls: type, source: type, *without: str) -> None:
    """Add to a class the methods of all algorithms as `source` has them, except some options.

    Each method calls `self._call(name, arrays, options)`, with a frame among the options.
    """
    for name in ALGORITHMS:
        model = getattr(source, name)
        parameters = inspect.signature(model).parameters.values()
        positional = [p for p in parameters if p.kind is inspect.Parameter.POSITIONAL_OR_KEYWORD]
        keywords = [p for p in parameters if p.kind is inspect.Parameter.KEYWORD_ONLY and p.name not in without]
        arrays = [p.name for p in positional[1:] if p.name != "frame"]
        code = _pattern(CALL_FRAME_TEMPLATE if ALGORITHMS[name].frame else CALL_TEMPLATE, tuple(arrays))
        method: Any = FunctionType(code.replace(co_name=name), SPACE | {"name": name}, name)
        method.__doc__, method.__qualname__ = model.__doc__, f"{cls.__qualname__}.{name}"
        method.__signature__ = inspect.Signature([*positional, *keywords])
        setattr(cls, name, method)


def _written(name: str, *arrays: str) -> Any:
    """Return the method of an algorithm with these arrays; methods with the same arrays share code."""
    code = _pattern(FRAME_TEMPLATE if ALGORITHMS[name].frame else TEMPLATE, arrays)
    names = tuple(x.replace("NAME", name) for x in code.co_names)
    return FunctionType(code.replace(co_name=name, co_names=names), SPACE | {"name": name}, name)


@cache
def _pattern(template: str, arrays: tuple[str, ...]) -> CodeType:
    space: dict[str, Any] = {}
    exec(template.format(arrays=", ".join(arrays)), space)
    return space["NAME"].__code__


def _keyword(name: str) -> inspect.Parameter:
    return inspect.Parameter(name, inspect.Parameter.KEYWORD_ONLY, default=DEFAULTS.get(name))
