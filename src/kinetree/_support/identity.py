"""The identity of values and functions as text: equal texts mean equal results, in every process.

A store of a study continues only what it began. A function therefore counts with its code, constants, defaults and
closure, and with every global, helper and attribute of a module that it reads, and so on from there. Code of installed
packages counts by name and version. What has no such text raises Unidentified.
"""

from __future__ import annotations

import dis
import functools
import hashlib
import importlib
import importlib.util
import sys
import sysconfig
from collections.abc import Callable, Iterator
from dataclasses import fields, is_dataclass
from pathlib import Path
from types import BuiltinFunctionType, CodeType, FunctionType, MappingProxyType, MethodType, ModuleType
from typing import Any

import numpy as np

from ..model.mechanism import Mechanism

OWN = __name__.partition(".")[0]
"""This package, whose objects are functions of their fields."""

UNREAD = ("_abc_impl", "__annotate__", "__annotate_func__")
"""Attributes of classes that no computation reads, besides data with names such as __doc__ and __slotnames__."""


class Unidentified(Exception):
    """Something whose content cannot be compared: the message names it, `path` what leads to it, innermost first."""

    def __init__(self, what: str) -> None:
        """Begin without a path."""
        super().__init__(what)
        self.path: list[str] = []


def digest(*parts: object) -> str:
    """Return a digest of numbers, texts, arrays, lists, mappings, objects and functions."""
    return hashlib.sha256(text(parts).encode()).hexdigest()


def text(x: object) -> str:
    """Return the identity of a value or function."""
    return _Identity().text(x)


def value_text(x: object) -> str:
    """Return the identity of a plain value, or of an object of this package made of such; functions have none."""
    return _plain(x, value_text, _refusal)


def _refusal(x: object) -> str:
    raise Unidentified(_describe(x))


def _plain(x: Any, inner: Callable[[Any], str], other: Callable[[Any], str]) -> str:
    """Return the identity of a value; `inner` identifies its parts, and `other` anything else.

    Numbers keep every bit, and types count.
    """
    if x is None or x is Ellipsis or isinstance(x, bool | int | str | bytes):
        return repr(x)
    if isinstance(x, float):
        return float(x).hex()
    if isinstance(x, complex):
        return f"({x.real.hex()}, {x.imag.hex()}i)"
    if isinstance(x, np.ndarray | np.generic):
        found = np.asarray(x)
        if found.dtype.hasobject:
            return f"array({found.dtype}, {found.shape}, {inner(found.tolist())})"
        return f"array({found.dtype.str}, {found.shape}, {hashlib.sha256(found.tobytes()).hexdigest()})"
    if type(x) in (list, tuple):
        return f"[{', '.join(map(inner, x))}]"
    if isinstance(x, Mechanism):
        return f"mechanism({x.hash})"
    kind = type(x)
    if is_dataclass(kind) and kind.__module__.partition(".")[0] == OWN:
        return f"{kind.__module__}.{kind.__qualname__}({', '.join(inner(getattr(x, f.name)) for f in fields(x))})"
    return other(x)


class _Identity:
    """The writer of one text. Objects that may be shared or lead back to themselves are written as digests."""

    def __init__(self) -> None:
        self._open: dict[int, int] = {}  # by their address: where they began
        self._done: dict[int, tuple[str, Any]] = {}  # with the objects, so that their addresses stay taken

    def text(self, x: object) -> str:
        return _plain(x, self.text, self._other)

    def _at(self, place: str, x: object) -> str:
        """Return the identity of a part; an error names the place."""
        try:
            return self.text(x)
        except Unidentified as error:
            error.path.append(place)
            raise

    def _other(self, x: object) -> str:
        if id(x) in self._open:  # a function that calls itself, say
            return f"#{self._open[id(x)]}"
        if id(x) not in self._done:
            self._open[id(x)] = len(self._open)
            try:
                found = hashlib.sha256(self._content(x).encode()).hexdigest()
            finally:
                del self._open[id(x)]
            self._done[id(x)] = found, x
        return self._done[id(x)][0]

    def _content(self, x: Any) -> str:
        if isinstance(x, set | frozenset):
            return f"{{{', '.join(sorted(map(self.text, x)))}}}"
        if type(x) in (dict, MappingProxyType):
            return f"{{{', '.join(f'{self.text(k)}: {self._at(repr(k), v)}' for k, v in x.items())}}}"
        if isinstance(mechanism := getattr(x, "mechanism", None), Mechanism) and _package(type(x)) == OWN:
            return f"system({mechanism.hash})"
        if isinstance(x, ModuleType):
            return self._module(x)
        if isinstance(x, CodeType):
            return self._code(x)
        if isinstance(x, FunctionType):
            return self._function(x)
        if isinstance(x, type):
            return _full_name(x) if _is_installed(x.__module__) else self._class(x)
        if isinstance(x, MethodType):
            return f"method({self._at('self', x.__self__)}, {self.text(x.__func__)})"
        if isinstance(x, functools.partial):
            return f"partial({self.text(x.func)}, {self._at('its arguments', x.args)}, {self.text(x.keywords)})"
        if isinstance(x, DESCRIPTORS):
            return f"{type(x).__name__}({', '.join(self.text(getattr(x, name, None)) for name in PARTS)})"
        if isinstance(x, BuiltinFunctionType) and not isinstance(x.__self__, ModuleType | None):
            return f"method({self._at('self', x.__self__)}, {x.__name__!r})"
        if callable(x) and isinstance(getattr(x, "__qualname__", None), str):  # native, or behind a native decorator
            inner = getattr(x, "__wrapped__", None)
            return f"{_full_name(x)}({self._source(x.__module__) if inner is None else self.text(inner)})"
        return self._object(x)

    def _object(self, x: Any) -> str:
        """Return the identity of an object: its class, and its fields or what pickle would keep."""
        kind = self.text(type(x))
        if hasattr(type(x), "__dlpack__") and hasattr(x, "cpu"):  # tensors, whose pickled form differs each time
            return f"{kind}({self.text(np.asarray(x.detach().cpu()))}, {x.requires_grad})"
        if is_dataclass(x):
            return f"{kind}({', '.join(self._at(f'its field {f.name}', getattr(x, f.name)) for f in fields(x))})"
        try:
            made = x.__reduce_ex__(2)
        except Exception:  # whatever a class raises to say that its objects have no content
            raise Unidentified(_describe(x)) from None
        if isinstance(made, str):
            return f"{kind}({made})"
        maker, arguments, state, *items = (*made, None)[:5] if len(made) == 2 else made[:5]
        listed = [list(i) for i in items if i is not None]
        return (
            f"{kind}({self.text(maker)}, {self.text(arguments)}, {self._at('its state', state)}, {self.text(listed)})"
        )

    def _function(self, x: FunctionType) -> str:
        name, module = x.__name__, x.__globals__.get("__name__")  # not __module__, which decorators copy
        try:
            inner = [cell.cell_contents for cell in x.__closure__ or ()]
        except ValueError:  # a variable without a value
            raise Unidentified(f"the function {name!r}, whose closure is not complete") from None
        parts = []
        for variable, value in zip(x.__code__.co_freevars, inner, strict=True):
            parts.append(self._at(f"the variable {variable} of {name}", value))
        if module and _is_installed(module) and vars(sys.modules[module]) is x.__globals__:
            return f"{_full_name(x)}({', '.join(parts)})"  # a function of the user may be in its closure
        parts += [self._code(x.__code__), self._at(f"the defaults of {name}", (x.__defaults__, x.__kwdefaults__))]
        for chain, value in _reads(x):
            parts.append(f"{chain} = {self._at(f'the global {chain} of {name}', value)}")
        more = {key: value for key, value in vars(x).items() if key != "__wrapped__"}
        # not with its module, which is another one for a script that is imported
        return f"{x.__qualname__}({', '.join(parts)}, {self._at(f'attributes of {name}', more)})"

    def _code(self, x: CodeType) -> str:
        parts = (x.co_code, x.co_exceptiontable, x.co_names, x.co_varnames, x.co_freevars, x.co_cellvars, x.co_flags)
        return f"{self.text(parts)}{self.text(x.co_consts)}"

    def _class(self, x: type) -> str:
        own = {k: v for k, v in vars(x).items() if k not in UNREAD and not _is_slot(v)}
        own = {k: v for k, v in own.items() if not k.startswith("__") or isinstance(v, FunctionType | DESCRIPTORS)}
        listed = [f"{k}: {self._at(f'{x.__qualname__}.{k}', v)}" for k, v in own.items()]
        return f"class {x.__qualname__}({self.text(x.__bases__)}, {', '.join(listed)})"

    def _module(self, x: ModuleType) -> str:
        """Return the identity of a module that is read as a whole: its file, and the files of the modules behind it."""
        if _is_installed(x.__name__):
            return f"module({x.__name__}{_version(x.__name__)})"
        behind = [
            v if isinstance(v, ModuleType) else sys.modules.get(getattr(v, "__module__", None) or "")
            for v in vars(x).values()
        ]
        others = {m.__name__: m for m in behind if m is not None and m is not x and not _is_installed(m.__name__)}
        return f"module({self._source(x.__name__)}, {self.text([others[name] for name in sorted(others)])})"

    def _source(self, name: str | None) -> str:
        """Return a digest of the file of a module that is not installed; the name and version of others."""
        if name is None or _is_installed(name):
            return f"{name}{_version(name or '')}"
        file = getattr(sys.modules.get(name), "__file__", None)
        if file is None:
            raise Unidentified(f"the module {name!r}, which has no file")
        return hashlib.sha256(Path(file).read_bytes()).hexdigest()


DESCRIPTORS = property | staticmethod | classmethod | functools.cached_property
PARTS = ("fget", "fset", "fdel", "func", "__func__")
"""The functions of properties, methods of classes and cached properties."""


def _reads(x: FunctionType) -> Iterator[tuple[str, Any]]:
    """Yield what a function reads outside of itself: names with their values, and modules that it imports.

    An attribute of a module is followed to its value, so that other parts of that module do not count.
    """
    found: dict[str, object] = {}
    for code in _codes(x.__code__):
        steps = [step for step in dis.get_instructions(code) if step.opname not in ("CACHE", "PUSH_NULL", "PRECALL")]
        for at, step in enumerate(steps):
            if step.opname in ("LOAD_GLOBAL", "LOAD_NAME") and step.argval in x.__globals__:
                chain, value = step.argval, x.__globals__[step.argval]
                for after in steps[at + 1 :]:
                    if not isinstance(value, ModuleType) or after.opname not in ("LOAD_ATTR", "LOAD_METHOD"):
                        break
                    if not hasattr(value, after.argval):
                        break
                    chain, value = f"{chain}.{after.argval}", getattr(value, after.argval)
                found[chain] = value
            elif step.opname == "IMPORT_NAME":
                name, level = step.argval, steps[at - 2].argval if at > 1 else 0
                package = x.__globals__.get("__package__") or ""
                name = importlib.util.resolve_name("." * level + name, package) if level else name
                try:
                    found[f"import {name}"] = importlib.import_module(name)
                except ImportError:  # the function may do without it
                    found[f"import {name}"] = None
    yield from sorted(found.items(), key=lambda pair: pair[0])


def _codes(code: CodeType) -> Iterator[CodeType]:
    """Yield a code object and all inside of it: inner functions, comprehensions and classes."""
    yield code
    for constant in code.co_consts:
        if isinstance(constant, CodeType):
            yield from _codes(constant)


def _is_slot(x: object) -> bool:
    return type(x).__name__ in ("member_descriptor", "getset_descriptor")


def _package(x: object) -> str:
    return (getattr(x, "__module__", None) or "").partition(".")[0]


def _full_name(x: Any) -> str:
    return f"{x.__module__}.{x.__qualname__}{_version(x.__module__ or '')}"


@functools.cache
def _is_installed(module: str | None) -> bool:
    """Return whether a module belongs to Python, to this package or to an installed one: its code has a version."""
    if module is None:
        return True
    top = module.partition(".")[0]
    if top == OWN or top in sys.builtin_module_names or top in sys.stdlib_module_names:
        return True
    if top == "__main__" or (found := sys.modules.get(module)) is None:
        return False
    file = getattr(found, "__file__", None)
    if file is None:
        return False
    path = Path(file).resolve()
    if {"site-packages", "dist-packages"} & set(path.parts):
        return True
    return path.is_relative_to(Path(sysconfig.get_paths()["stdlib"]).resolve())


@functools.cache
def _version(module: str) -> str:
    """Return the version of an installed package; none for Python itself and for this package."""
    found = getattr(sys.modules.get(module.partition(".")[0]), "__version__", "")
    return f" {found}" if isinstance(found, str) and found and module.partition(".")[0] != OWN else ""


def _describe(x: object) -> str:
    return f"{repr(x)[:80]} ({type(x).__name__})"
