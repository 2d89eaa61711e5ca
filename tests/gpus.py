"""Whether this machine has a GPU."""

from __future__ import annotations

import kinetree as kt
from kinetree.targets.ptx.driver import driver


def missing_gpu() -> str:
    """Return why no GPU can be used, or an empty text."""
    try:
        driver().device(0)
    except kt.KinetreeError as error:
        return str(error)
    return ""
