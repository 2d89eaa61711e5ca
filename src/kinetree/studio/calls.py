"""Calls of a page: an action by its name, its arguments, and its outcome as a message."""

from __future__ import annotations

import inspect
import logging
from collections.abc import Mapping
from typing import Any

from ..compiler.targets.cancelling import cancelled_by
from ..errors import InputError, KinetreeError, brief, unknown_name
from ..view.page_file import packed
from .actions import ACTIONS
from .tabs import Cancelled, Studio

LOG = logging.getLogger("kinetree.studio")
UNEXPECTED = "This did not work, because of a fault in Kinetree itself. The terminal of the studio shows the details."


def outcome(studio: Studio, name: object, arguments: object) -> dict[str, Any]:
    """Return {"result": packed data} of an action, or {"error": a sentence}; it raises nothing."""
    try:
        with cancelled_by(lambda: studio.report(0.0)):  # long compilations end at once, like runs between two pieces
            return {"result": packed(called(studio, name, arguments))}
    except Cancelled:
        return {"error": "cancelled", "cancelled": True}
    except KinetreeError as error:
        return {"error": str(error)}
    except Exception:
        LOG.exception("the action %s failed", brief(name))
        return {"error": UNEXPECTED}


def called(studio: Studio, name: object, arguments: object) -> Mapping[str, Any]:
    """Return the result of an action; names and arguments that it does not have are refused."""
    if not isinstance(name, str) or name not in ACTIONS:
        raise unknown_name("action", brief(name) if not isinstance(name, str) else name, ACTIONS)
    if not isinstance(arguments, dict):
        raise InputError(f"the arguments of {name} are {brief(arguments)}; expected a table")
    action = ACTIONS[name]
    try:
        inspect.signature(action).bind(studio, **arguments)
    except TypeError as error:
        known = [key for key in inspect.signature(action).parameters if key != "studio"]
        raise InputError(f"{name}: {error}; it takes {', '.join(known) or 'no arguments'}") from None
    return action(studio, **arguments)
