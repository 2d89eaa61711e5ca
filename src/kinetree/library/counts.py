"""How many parts a builder of mechanisms makes."""

from __future__ import annotations

from typing import Any

from ..numbers import whole

MOST = 2_000_000
"""The most parts of one sort. A body takes some kilobytes of Python: more would use up the memory without a message."""


def counted(n: Any, what: str, parts: str, *, least: int = 1) -> int:
    """Return a whole number of parts, such as "links"."""
    return whole(n, what, least=least, most=MOST, of=parts)
