"""Targets, for which code is generated; a new one is a module that implements `protocol.Target`, and a line here."""

from __future__ import annotations

from collections.abc import Callable
from functools import cache

from ...errors import InputError, unknown_name
from .protocol import Target, Unit

NATIVE = "llvm"
"""The target whose code runs in this process."""


def _llvm() -> Target:
    from .llvm.target import LLVM

    return LLVM()


def _c() -> Target:
    from .c import C

    return C()


TARGETS: dict[str, Callable[[], Target]] = {"llvm": _llvm, "c": _c}
"""The targets by name; their modules, some of which import large libraries, are imported on first use."""

SUFFIXES = {".c": "c"}
"""The targets that write source files, by the suffix of the file."""


@cache
def target(name: str = NATIVE) -> Target:
    """Return a target by name."""
    if name not in TARGETS:
        raise unknown_name("target", name, [*TARGETS])
    return TARGETS[name]()


def source_text(unit: Unit, suffix: str, dtype: str) -> str:
    """Return the source text of a unit in the language of a file suffix."""
    if suffix not in SUFFIXES:
        raise InputError(f"the suffix {suffix!r} is not one of a source language; expected {' or '.join(SUFFIXES)}")
    return target(SUFFIXES[suffix]).emit(unit, dtype)
