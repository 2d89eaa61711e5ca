"""Checks of the number of parts of a generated mechanism."""

from __future__ import annotations

from typing import Any

from ..numbers import whole

MOST = 2_000_000
"""Largest number of parts of one kind. A body takes some kilobytes of memory: more would exhaust it with no error."""


def counted(n: Any, what: str, parts: str, *, least: int = 1) -> int:
    """Return a whole number of parts, such as "links"."""
    return whole(n, what, least=least, most=MOST, of=parts)
