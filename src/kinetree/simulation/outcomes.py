"""How runs end: outcomes as data, and the ending of a run, from which its text is made."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from enum import IntEnum
from typing import Any

from ..errors import InputError


class Outcome(IntEnum):
    """How a run ended, with its `sentence` and `remedy`; stores of studies keep the numbers."""

    sentence: str
    remedy: str

    def __new__(cls, code: int, sentence: str, remedy: str = "") -> Outcome:
        """Return the member of a code."""
        member = int.__new__(cls, code)
        member._value_, member.sentence, member.remedy = code, sentence, remedy
        return member

    FINISHED = 0, "finished"
    OPEN = 1, "the loops do not close"
    LOST = 2, "the state left the finite numbers"
    TOO_SHORT = 3, "the step became shorter than rounding"
    TOO_MANY = (
        4,
        "the steps were used up",
        'try a larger max_steps (--max-steps), or method="rodas5p" (--method rodas5p) where it is stiff',
    )
    STOPPED = 5, "the run stopped"
    NOT_A_NUMBER = 6, "a measure is not a finite number"
    DOUBTFUL = 7, "the contact forces of some steps violate their laws"
    INTERRUPTED = 8, "interrupted"
    EVENT = 9, "an event stopped the run"
    CONTROL = 10, "the controller failed"
    CONTACT = 11, "the laws of contacts determine no motion"
    METHOD = 12, "the method gave up"
    NOT_EVALUATED = 255, "not evaluated"


KERNEL_CODES: Mapping[Outcome, float] = {Outcome.TOO_SHORT: 1.0, Outcome.TOO_MANY: 2.0}
"""The codes that kernels of adaptive methods report; 0 without a fault."""
OF_KERNEL: Mapping[int, Outcome] = {int(code): outcome for outcome, code in KERNEL_CODES.items()}
"""The outcomes by these codes."""


@dataclass(frozen=True)
class Ending:
    """The outcome of a run with what is known of it.

    `details` replace the sentence and the remedy of the outcome, `cause` stands before, and `hint` after the time of
    the `last` good state [s]. A run that reached its end with a `doubt` about its results is DOUBTFUL; one that
    stopped may have a doubt, too.
    """

    outcome: Outcome
    details: str = ""
    last: float | None = None
    cause: str = ""
    hint: str = ""
    doubt: str = ""

    @property
    def told(self) -> str:
        """The details, by default the sentence and the remedy of the outcome."""
        own = self.outcome
        return self.details or (f"{own.sentence}; {own.remedy}" if own.remedy else own.sentence)

    @property
    def text(self) -> str:
        """Why the run stopped, without a doubt."""
        at = "" if self.last is None else f"the last good state is at t = {self.last:.9g} s"
        after = "; ".join(part for part in (self.told, at, self.hint) if part)
        return f"{self.cause}: {after}" if self.cause else after

    @property
    def reason(self) -> str:
        """Why the run stopped, or why its results are in doubt."""
        if self.outcome is Outcome.DOUBTFUL:
            return self.doubt
        return f"{self.text}; doubtful before: {self.doubt}" if self.doubt else self.text

    def plain(self) -> dict[str, Any]:
        """Return the ending for files, as types that JSON can represent."""
        parts = {name: x for name, x in vars(self).items() if name != "outcome" and x not in ("", None)}
        return {"outcome": self.outcome.name, **parts}

    @classmethod
    def read(cls, stored: Any) -> Ending:
        """Return an ending from a file; files written before outcomes were data have its text alone."""
        if isinstance(stored, str):
            return cls(_outcome_of_text(stored), details=stored)
        return cls(**stored | {"outcome": Outcome[stored["outcome"]]})


CLOSING_LOST = Ending(Outcome.OPEN, "the loops did not close, or the state left the finite numbers; try a smaller dt")
"""The ending of a run with fixed steps and loops whose state became infinite or NaN."""


@dataclass(frozen=True)
class Endings:
    """The endings of the runs of a batch that did not just finish, by number; 0 for a single run.

    `whole` ended all runs at once: an interruption, or what a file written before outcomes were data has.
    """

    runs: Mapping[int, Ending] = field(default_factory=dict)
    whole: Ending | None = None

    @property
    def outcome(self) -> Outcome:
        """The outcome of the batch: of the first run that stopped, otherwise doubtful or finished."""
        if self.whole is not None:
            return self.whole.outcome
        stopped = self._stopped()
        return self.runs[min(stopped)].outcome if stopped else Outcome.DOUBTFUL if self.runs else Outcome.FINISHED

    def of(self, run: int) -> Endings:
        """Return the ending of one run of the batch as of a single run."""
        return Endings({0: self.runs[run]} if run in self.runs else {}, self.whole)

    def status(self, *, batch: bool) -> str:
        """Return how the runs ended as text: "finished", "stopped: reason" or "doubtful: reason"."""
        stopped = {k: self.runs[k].text for k in self._stopped()}
        doubt = _first({k: e.doubt for k, e in self.runs.items() if e.doubt}, batch)
        if self.whole is not None and self.whole.outcome is Outcome.DOUBTFUL:
            return f"doubtful: {self.whole.doubt}"
        if self.whole is None and not stopped:
            return f"doubtful: {doubt}" if doubt else Outcome.FINISHED.sentence
        reason = _first(stopped, batch) if self.whole is None else self.whole.text
        return f"stopped: {reason}; doubtful before: {doubt}" if doubt else f"stopped: {reason}"

    def plain(self) -> dict[str, Any]:
        """Return the endings for files, as types that JSON can represent."""
        whole = {} if self.whole is None else {"whole": self.whole.plain()}
        return {"runs": {str(k): e.plain() for k, e in self.runs.items()}, **whole}

    @classmethod
    def read(cls, stored: Mapping[str, Any] | None, status: str) -> Endings:
        """Return the endings from a file; files written before outcomes were data have the status alone."""
        if stored is not None:
            whole = Ending.read(stored["whole"]) if "whole" in stored else None
            return cls({int(k): Ending.read(e) for k, e in stored["runs"].items()}, whole)
        sort, _, reason = status.partition(": ")
        if sort == "doubtful":
            return cls(whole=Ending(Outcome.DOUBTFUL, doubt=reason))
        return cls(whole=Ending.read(reason)) if sort == "stopped" else cls()

    def _stopped(self) -> list[int]:
        return [k for k, e in self.runs.items() if e.outcome is not Outcome.DOUBTFUL]


def _first(reasons: Mapping[int, str], batch: bool) -> str:
    """Return the first of some reasons, with the number of its run in a batch; "" for none."""
    if not reasons:
        return ""
    first = min(reasons)
    return f"{reasons[first]} (run {first}; {len(reasons)} runs in all)" if batch else reasons[first]


class RunStopped(InputError):
    """An error that ends a run, with its `ending`; before the first step it reaches the caller."""

    def __init__(self, ending: Ending) -> None:
        """Keep the ending, whose reason is the message."""
        super().__init__(ending.reason)
        self.ending = ending

    def __reduce__(self) -> tuple[type[RunStopped], tuple[Ending]]:
        """Pickle the ending, so that the error keeps it in another process."""
        return type(self), (self.ending,)


def ending_of(error: InputError) -> Ending:
    """Return the ending of a run that an error stopped."""
    return error.ending if isinstance(error, RunStopped) else Ending(Outcome.STOPPED, str(error))


# --- Files written before outcomes were data: their texts alone tell the outcome. Nothing else reads texts.

_OLD_TEXTS = (
    ("interrupted at t =", Outcome.INTERRUPTED),
    ("event ", Outcome.EVENT),
    ("loops do not close", Outcome.OPEN),
    ("loops cannot follow", Outcome.OPEN),
    ("loops did not close", Outcome.OPEN),
    ("is nearly redundant and stays open", Outcome.OPEN),
    ("the state left the finite numbers", Outcome.LOST),
    ("the step became shorter than rounding", Outcome.TOO_SHORT),
    ("the steps were used up", Outcome.TOO_MANY),
    ("the controller ", Outcome.CONTROL),
    ("rigid bodies with Coulomb friction", Outcome.CONTACT),
    ("events of contacts accumulate", Outcome.CONTACT),
    ("CVODES gave up", Outcome.METHOD),
)
"""Parts of the texts of earlier versions, in the order in which they decide."""


def _outcome_of_text(text: str) -> Outcome:
    return next((outcome for part, outcome in _OLD_TEXTS if part in text), Outcome.STOPPED)
