"""Methods that call a compiled function of the same name, with signatures for editors and `inspect`.

A class declares such a method by its signature and docstring alone.
"""

from __future__ import annotations

import inspect
from collections.abc import Callable, Iterable
from functools import update_wrapper
from types import BuiltinFunctionType
from typing import Any, TypedDict, TypeVar

from numpy.typing import ArrayLike

from ...algebra.arrays import Numbers
from ...dynamics import ALGORITHMS
from ...model.parameter_values import Named
from .call_options import CallOptions
from .calls import array_names, by_position, derivative_call, plain_keywords, prepared_call

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
    forces: bool


class DrivenOptions(WrenchOptions, total=False):
    """Options of functions with driven joints."""

    driven: str | Iterable[str]


class AxesOptions(Options, total=False):
    """Options of functions with a choice of axes, "body" or "world"."""

    axes: str | None


def compiled(declared: F) -> F:
    """Return the method of an algorithm that is declared by its signature and docstring.

    Its class has `function`, `_with`, which returns a function for a call with options, `_nominal`, the values of
    the free parameters, and the dictionary `_calls`.
    """
    return _declared(declared, _method(declared.__name__))


def _declared(declared: F, run: Callable[..., Any]) -> F:
    """Return a method with the signature and docstring of its declaration, and its options by keyword."""
    parameters = list(inspect.signature(declared).parameters.values())
    options = declared.__globals__[declared.__annotations__["options"].removeprefix("Unpack[").removesuffix("]")]
    keywords = [_keyword(o) for o in options.__annotations__]
    method: Any = update_wrapper(run, declared)
    method.__signature__ = inspect.Signature([*parameters[:-1], *keywords])
    return method


def jacobians(name: str, wrt: tuple[str, ...]) -> Callable[[F], F]:
    """Return the decorator of a method that is declared by its signature and returns the Jacobians of an algorithm."""

    def decorate(declared: F) -> F:
        def method(self, *arguments, **options):
            call = self._calls.get(declared.__name__)
            if call is None:
                if options and not options.keys() <= plain_keywords(method):
                    arrays, options = by_position(declared.__name__, array_names(method), arguments, options)
                    return self._with(name, **options, wrt=wrt)(*arrays)
                call = self._calls[declared.__name__] = derivative_call(self, method, name, wrt)
            return call(*arguments, **options)

        return _declared(declared, method)

    return decorate


def complete(cls: type) -> None:
    """Add to a class the methods of all algorithms in the table that it does not declare."""
    for name, algorithm in ALGORITHMS.items():
        if not hasattr(cls, name):
            method: Any = _method(name)
            method.__name__, method.__qualname__ = name, f"{cls.__qualname__}.{name}"
            method.__doc__ = algorithm.page.__doc__
            names = ["self", *algorithm.inputs, *["frame"] * algorithm.frame]
            arrays = [inspect.Parameter(x, inspect.Parameter.POSITIONAL_OR_KEYWORD) for x in names]
            options = inspect.Parameter("options", inspect.Parameter.VAR_KEYWORD)
            method.__signature__ = inspect.Signature([*arrays, options])
            setattr(cls, name, method)


def mirror(cls: type, source: type, *without: str) -> None:
    """Add to a class the methods of all algorithms as `source` has them, except some options.

    Each method calls `self._call(name, arrays, options)`, with a frame among the options. The class has the names of
    options that such calls do not take as `without`.
    """
    cls.without = (*without, "wrt")  # type: ignore[attr-defined]
    for name in ALGORITHMS:
        model = getattr(source, name)
        parameters = inspect.signature(model).parameters.values()
        positional = [p for p in parameters if p.kind is inspect.Parameter.POSITIONAL_OR_KEYWORD]
        keywords = [p for p in parameters if p.kind is inspect.Parameter.KEYWORD_ONLY and p.name not in without]
        method: Any = _mirrored(name, [p.name for p in positional[1:]])
        method.__doc__, method.__name__, method.__qualname__ = model.__doc__, name, f"{cls.__qualname__}.{name}"
        method.__signature__ = inspect.Signature([*positional, *keywords])
        setattr(cls, name, method)


def _mirrored(name: str, names: list[str]) -> Callable[..., Any]:
    arrays = names[:-1] if ALGORITHMS[name].frame else names

    def method(self, *arguments, **options):
        if len(arguments) != len(names):
            arguments, options = by_position(name, names, arguments, options)
        if len(arrays) < len(names):
            options = {"frame": arguments[-1], **options}
        return self._call(name, arguments[: len(arrays)], options)

    return method


def _method(name: str) -> Callable[..., Any]:
    """Return a method that prepares a call of an algorithm when it is first called without options.

    Calls with options before that compile their own code only. From then on the direct call, if there is one, is an
    attribute of the instance, which Python finds before the method of the class. A subclass with a method of its own
    keeps that one, and calls this one by super().
    """

    def method(self, *arguments, **options):
        call = self._calls.get(name)
        if call is None:
            if options and not options.keys() <= plain_keywords(method) and not ALGORITHMS[name].frame:
                arrays, options = by_position(name, array_names(method), arguments, options)
                return self._with(name, **options)(*arrays)
            call = self._calls[name] = prepared_call(self, method)
        if isinstance(call, BuiltinFunctionType) and getattr(type(self), name, None) is method:
            vars(self).setdefault(name, call)
        return call(*arguments, **options)

    return method


def _keyword(name: str) -> inspect.Parameter:
    return inspect.Parameter(name, inspect.Parameter.KEYWORD_ONLY, default=CallOptions._field_defaults.get(name))
