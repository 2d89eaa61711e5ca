"""Methods that call a compiled function of the same name, with signatures for editors and `inspect`.

A class declares such a method by its signature and docstring alone.
"""

from __future__ import annotations

import inspect
from collections.abc import Callable, Collection, Iterable
from functools import cache, update_wrapper
from types import BuiltinFunctionType
from typing import TYPE_CHECKING, Any, NamedTuple, TypedDict, TypeVar

import numpy as np
from numpy.typing import ArrayLike

from ..algebra.scalars import Numbers
from ..dynamics import ALGORITHMS
from ..model.mechanism import Named
from .arguments import call_error, refuse_masked, refuse_non_finite
from .native import direct_call

if TYPE_CHECKING:
    from .compiled import CompiledMechanism

# --- The options of one call of a compiled function, the same for NumPy arrays and for arrays of other libraries.

LISTED = ("parameters", "wrenches", "forces", "driven", "axes", "dtype", "check", "out", "threads")
"""The options in the order of the message about others; `frame` is an argument, and `wrt` belongs to methods."""


class CallOptions(NamedTuple):
    """Options by keyword, with their defaults; CompiledMechanism describes them. With `wrt`, Jacobians are computed."""

    frame: str | None = None
    axes: str | None = None
    wrenches: Any = None
    forces: bool | None = None
    driven: str | Iterable[str] = ()
    wrt: tuple[str, ...] | None = None
    parameters: Named | Any = None
    dtype: str | type = "float64"
    check: bool = True
    out: Any = None
    threads: int | None = None

    @classmethod
    def of(cls, name: str, given: dict[str, Any], without: Collection[str] = ()) -> CallOptions:
        """Return the options of a call of a function from its keywords; TypeError for others, and those `without`."""
        for key in given:
            if key not in cls._field_defaults or key in without:
                *first, last = [x for x in LISTED if x not in without]
                raise TypeError(
                    f"{name}() got an unexpected keyword argument {key!r}; options are {', '.join(first)} and {last}, "
                    "as far as the function has them"
                )
        return cls(**given)

    @property
    def plain(self) -> bool:
        """Whether code and free parameters are the same as in a call without options."""
        return not (
            self.frame
            or self.axes
            or self.driven
            or self.forces is not None
            or self.wrenches is not None
            or self.parameters is not None
        )

    def code(self) -> dict[str, Any]:
        """Return the options on which compiled code depends in every library, for the method `function`."""
        return {
            "frame": self.frame,
            "axes": self.axes,
            "wrenches": self.wrenches is not None,
            "driven": self.driven,
            "forces": self.forces,
        }

    def arrays(self, arrays: tuple) -> tuple:
        """Return the arrays of a call, with external wrenches if they are given."""
        return arrays if self.wrenches is None else (*arrays, self.wrenches)

    def given(self) -> dict[str, Any]:
        """Return the options that are not the defaults, by keyword."""
        defaults = self._field_defaults
        return {key: x for key, x in self._asdict().items() if x is not defaults[key]}


# --- Calls of compiled functions as users make them: arrays by position or by name, options by keyword, with checks.

Call = Callable[..., Any]

PLAIN = {"out", "threads"}
"""The options that leave the compiled function as it is; they are passed on without further preparation."""


def prepared_call(owner: CompiledMechanism, method: Call) -> Call:
    """Return the function that a method of a system calls, with the arguments of the method."""
    name, names = method.__name__, array_names(method)
    if ALGORITHMS[name].driven:  # the code depends on an option
        return _call_by_options(owner, name, names)
    if not ALGORITHMS[name].frame:
        return _call(owner, name, None, names, _described(method))
    return _call_by_frame(owner, name, names)


def derivative_call(owner: CompiledMechanism, method: Call, name: str, wrt: tuple[str, ...]) -> Call:
    """Return the function that a method of derivatives calls: the Jacobians of an algorithm."""
    return _call(owner, name, None, array_names(method), _described(method), wrt, method.__name__)


@cache
def array_names(method: Call) -> list[str]:
    """Return the names of the arguments by position of a method."""
    return [p.name for p in inspect.signature(method).parameters.values() if p.kind is p.POSITIONAL_OR_KEYWORD][1:]


@cache
def plain_keywords(method: Call) -> frozenset[str]:
    """Return the keywords for which a method needs no other code than for a call without keywords."""
    return frozenset(array_names(method)) | PLAIN


def _call_by_frame(owner: CompiledMechanism, name: str, names: list[str]) -> Call:
    """Return the function of arrays and a frame, which prepares a call for each frame."""
    calls: dict[str, Call] = {}

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


def _call_by_options(owner: CompiledMechanism, name: str, names: list[str]) -> Call:
    """Return the function of arrays and options, which compiles nothing before it has the options."""

    def call(*arguments, **options):
        arrays, options = by_position(name, names, arguments, options)
        return owner._with(name, **options)(*arrays)

    return call


def _call(
    owner: CompiledMechanism,
    name: str,
    frame: str | None,
    names: list[str],
    doc: str = "",
    wrt: tuple[str, ...] | None = None,
    title: str | None = None,
) -> Call:
    """Return the function of the arrays of an algorithm, or of its Jacobians, direct if possible.

    `title` is the name of the method, if the algorithm has another one.
    """
    function = owner.function(name, frame=frame)
    chosen: dict[str, Any] = {}
    if wrt is not None:
        function, chosen = function.jacobian(wrt), {"wrt": wrt}
    gufunc, count = function.gufunc, function.executor.counts
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
            refuse_masked(function, arrays)  # before results are written
        arguments = arrays + constants
        before = count[1]
        try:
            result = gufunc(*arguments) if out is None else gufunc(*arguments, out=out)
        except (ValueError, TypeError, RuntimeError) as error:
            refuse_masked(function, arrays)
            raise call_error(function, arguments, out, error) from None
        if count[1] != before:
            refuse_non_finite(function, arguments, result)
        if type(result) is not np.ndarray and type(result) is not np.float64:
            refuse_masked(function, arrays)
        return result

    kernel = function.executor.kernel
    if kernel is None:
        return call
    return direct_call(kernel, owner, title or name, doc, constants, call) or call


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


def _described(method: Call) -> str:
    """Return the docstring of a built-in function, which begins with its signature as `inspect` reads it."""
    signature = inspect.signature(method)
    bare = [p.replace(annotation=p.empty) for p in signature.parameters.values()]
    text = str(inspect.Signature(bare)).replace("(self", "($self", 1)
    return f"{method.__name__}{text}\n--\n\n{method.__doc__}"


F = TypeVar("F", bound=Call)


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
    forces: bool | None


class DrivenOptions(WrenchOptions, total=False):
    """Options of functions with driven joints."""

    driven: str | Iterable[str]


class AxesOptions(Options, total=False):
    """Options of functions with a choice of axes, "body" or "world"."""

    axes: str | None


def compiled_method(declared: F) -> F:
    """Return the method of an algorithm that is declared by its signature and docstring.

    Its class has `function`, `_with`, which returns a function for a call with options, `_nominal`, the values of
    the free parameters, and the dictionary `_calls`.
    """
    return _declared(declared, _method(declared.__name__))


def _declared(declared: F, run: Call) -> F:
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
            method = _method(name)
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
    cls.without = (*without, "wrt")
    for name in ALGORITHMS:
        model = getattr(source, name)
        parameters = inspect.signature(model).parameters.values()
        positional = [p for p in parameters if p.kind is inspect.Parameter.POSITIONAL_OR_KEYWORD]
        keywords = [p for p in parameters if p.kind is inspect.Parameter.KEYWORD_ONLY and p.name not in without]
        method = _mirrored(name, [p.name for p in positional[1:]])
        method.__doc__, method.__name__, method.__qualname__ = model.__doc__, name, f"{cls.__qualname__}.{name}"
        method.__signature__ = inspect.Signature([*positional, *keywords])
        setattr(cls, name, method)


def _mirrored(name: str, names: list[str]) -> Call:
    arrays = names[:-1] if ALGORITHMS[name].frame else names

    def method(self, *arguments, **options):
        if len(arguments) != len(names):
            arguments, options = by_position(name, names, arguments, options)
        if len(arrays) < len(names):
            options = {"frame": arguments[-1], **options}
        return self._call(name, arguments[: len(arrays)], options)

    return method


def _method(name: str) -> Call:
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
