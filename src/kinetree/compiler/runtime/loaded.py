"""Code of this machine's target in memory: compiled, or found in the cache."""

from __future__ import annotations

from collections.abc import Callable

from ..targets import target
from ..targets.protocol import Loaded, Unit
from . import cache


def loaded(name: str, unit: Callable[[], Unit], dtype: str) -> Loaded:
    """Return the code that the cache keeps under a name, of a unit that is made only where it is needed."""
    native = target()
    return native.load(cache.fetch(name, lambda: native.build(native.emit(unit(), dtype))))


def loaded_text(unit: Unit, dtype: str) -> Loaded:
    """Return the code of a unit whose own text, as the target writes it, names it in the cache."""
    native = target()
    source = native.emit(unit, dtype)
    return native.load(cache.fetch(cache.digest(source, native.fingerprint()), lambda: native.build(source)))
