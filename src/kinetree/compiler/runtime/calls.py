"""Calls of compiled functions as users make them: arrays by position or by name, options by keyword, with checks."""

from __future__ import annotations

import inspect
from collections.abc import Callable
from functools import cache
from typing import Any

import numpy as np

from ...dynamics import ALGORITHMS
from .direct import direct_call

Call = Callable[..., Any]

PLAIN = {"out", "threads"}
"""The options that leave the compiled function as it is; they are passed on without further preparation."""


def prepared_call(owner: Any, method: Any) -> Call:
    """Return the function that a method of a system calls, with the arguments of the method."""
    name, names = method.__name__, array_names(method)
    if ALGORITHMS[name].driven:  # the code depends on an option
        return _call_by_options(owner, name, names)
    if not ALGORITHMS[name].frame:
        return _call(owner, name, None, names, _described(method))
    return _call_by_frame(owner, name, names)


def derivative_call(owner: Any, method: Any, name: str, wrt: tuple[str, ...]) -> Call:
    """Return the function that a method of derivatives calls: the Jacobians of an algorithm."""
    return _call(owner, name, None, array_names(method), _described(method), wrt, method.__name__)


@cache
def array_names(method: Any) -> list[str]:
    """Return the names of the arguments by position of a method."""
    return [p.name for p in inspect.signature(method).parameters.values() if p.kind is p.POSITIONAL_OR_KEYWORD][1:]


@cache
def plain_keywords(method: Any) -> frozenset[str]:
    """Return the keywords for which a method needs no other code than for a call without keywords."""
    return frozenset(array_names(method)) | PLAIN


def _call_by_frame(owner: Any, name: str, names: list[str]) -> Call:
    """Return the function of arrays and a frame, which prepares a call for each frame."""
    calls: dict[Any, Call] = {}

    def call(*arguments, **options):
        if options or len(arguments) != len(names):
            arguments, options = by_position(name, names, arguments, options)
        *arrays, frame = arguments
        if options or not isinstance(frame, str):
            return owner._with(name, frame=frame, **options)(*arrays)
        if frame not in calls:
            calls[frame] = _call(owner, name, frame, names[:-1])
        return calls[frame](*arrays)

    return call


def _call_by_options(owner: Any, name: str, names: list[str]) -> Call:
    """Return the function of arrays and options, which compiles nothing before it has the options."""

    def call(*arguments, **options):
        arrays, options = by_position(name, names, arguments, options)
        return owner._with(name, **options)(*arrays)

    return call


def _call(
    owner: Any, name: str, frame: str | None, names: list[str], doc: str = "",
    wrt: tuple[str, ...] | None = None, title: str | None = None,
) -> Call:  # fmt: skip
    """Return the function of the arrays of an algorithm, or of its Jacobians, direct if possible.

    `title` is the name of the method, if it is not that of the algorithm.
    """
    function = owner.function(name, frame=frame)
    chosen: dict[str, Any] = {}
    if wrt is not None:
        function, chosen = function.jacobian(wrt), {"wrt": wrt}
    gufunc, count = function.gufunc, function.bad_blocks
    constants = () if owner._nominal is None else (owner._nominal,)

    def call(*arrays, **options):
        out = None
        if options or len(arrays) != len(names):
            if len(arrays) != len(names) or not options.keys() <= PLAIN:
                arrays, options = by_position(title or name, names, arrays, options)
            if not options.keys() <= PLAIN:
                return owner._with(name, **options, **chosen)(*arrays)
            out = options.get("out")
            if options.get("threads") is not None:
                return function.checked(arrays + constants, out=out, threads=options["threads"])
            function.refuse_masked(arrays)  # before results are written
        arguments = arrays + constants
        before = count[1]
        try:
            result = gufunc(*arguments) if out is None else gufunc(*arguments, out=out)
        except (ValueError, TypeError, RuntimeError) as error:
            function.refuse_masked(arrays)
            raise function.explained(arguments, out, error) from None
        if count[1] != before:
            function.refuse_non_finite(arguments, result)
        if type(result) is not np.ndarray and type(result) is not np.float64:
            function.refuse_masked(arrays)
        return result

    if function.kernel is None:
        return call
    return direct_call(function.kernel, owner, title or name, doc, constants, call) or call


def by_position(name: str, names: list[str], arguments: tuple, options: dict[str, Any]) -> tuple[tuple, dict]:
    """Return all arrays by position, and the options alone; TypeError if there are too few or too many."""
    missing = [x for x in names[len(arguments) :] if x not in options]
    if missing:
        raise TypeError(f"{name}() is called without {', '.join(missing)}; expected {', '.join(names)}")
    if len(arguments) > len(names):
        raise TypeError(
            f"{name}() is called with {len(arguments)} arguments by position; expected {', '.join(names)}, and options "
            "by keyword"
        )
    rest = dict(options)
    return (*arguments, *(rest.pop(x) for x in names[len(arguments) :])), rest


def _described(method: Any) -> str:
    """Return the docstring of a built-in function, which begins with its signature as `inspect` reads it."""
    signature = inspect.signature(method)
    bare = [p.replace(annotation=p.empty) for p in signature.parameters.values()]
    text = str(inspect.Signature(bare)).replace("(self", "($self", 1)
    return f"{method.__name__}{text}\n--\n\n{method.__doc__}"
