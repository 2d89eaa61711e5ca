"""Statuses of the runs of a study: codes that arrays can store, and their meanings."""

from __future__ import annotations

from collections.abc import Mapping
from enum import IntEnum

from ..simulation.run_states import LOST, OPEN, REASONS


class Status(IntEnum):
    """How a run ended."""

    FINISHED = 0
    OPEN = 1
    LOST = 2
    TOO_SHORT = 3
    TOO_MANY = 4
    STOPPED = 5
    NOT_A_NUMBER = 6
    NOT_EVALUATED = 255


MEANINGS: Mapping[int, str] = {
    Status.FINISHED: "finished",
    Status.OPEN: "the loops do not close",
    Status.LOST: LOST,
    Status.TOO_SHORT: REASONS[1],
    Status.TOO_MANY: "the steps were used up",
    Status.STOPPED: "the run stopped",
    Status.NOT_A_NUMBER: "a measure is not a finite number",
    Status.NOT_EVALUATED: "not evaluated",
}
"""The meanings of the codes."""


def status_of(reason: str) -> Status:
    """Return the code of the reason why a simulated run stopped."""
    if "loops do not close" in reason or "cannot follow" in reason or "did not close" in reason or OPEN in reason:
        return Status.OPEN
    if LOST in reason:
        return Status.LOST
    for code, text in ((Status.TOO_SHORT, REASONS[1]), (Status.TOO_MANY, REASONS[2])):
        if text in reason:
            return code
    return Status.STOPPED
