"""The states of a run so far, why it stopped, and the settings of its method."""

from __future__ import annotations

import math
from dataclasses import dataclass, field, replace

import numpy as np

from ..errors import InputError

LOST = "the state left the finite numbers"
OPEN = "the loops did not close, or the state left the finite numbers; try a smaller dt"
REASONS = {
    1: "the step became shorter than rounding",
    2: 'the steps were used up; try a larger max_steps (--max-steps), or method="bdf" where it is stiff',
}


@dataclass
class Run:
    """States at the output times, [..., nt, nq] and [..., nt, nv]; `reached` counts the times that are done.

    `saved` is when the last checkpoint was written, on the clock of `time.monotonic`. Between two output times, `end`
    is the time and the state where the last call stopped, after `skip` of the interval's fixed steps.
    """

    t: np.ndarray
    q: np.ndarray
    qd: np.ndarray
    evaluations: np.ndarray
    steps: np.ndarray
    step: np.ndarray
    reached: int = 1
    interrupted: bool = False
    failures: dict[int, str] = field(default_factory=dict)
    saved: float = -math.inf
    skip: int = 0
    end: tuple[float, np.ndarray, np.ndarray] | None = None

    def with_end(self) -> Run:
        """Return a single run that was interrupted with the state where it stopped as its last sample."""
        if not (self.interrupted and self.end is not None and self.q.ndim == 2):
            return self
        t, q, qd = self.end
        rows = slice(self.reached)
        q, qd = (np.vstack([x[rows], y]) for x, y in ((self.q, q), (self.qd, qd)))
        return replace(self, t=np.append(self.t[rows], t), q=q, qd=qd, reached=self.reached + 1, end=None)

    @property
    def all_failed(self) -> bool:
        """Whether no run of the batch goes on."""
        return len(self.failures) == self.evaluations.size

    @property
    def now(self) -> float:
        """The time that was reached [s]."""
        return float(self.t[self.reached - 1]) if self.end is None else self.end[0]

    @property
    def status(self) -> str:
        """How it ended, in words."""
        if self.interrupted:
            return f"stopped: interrupted at t = {self.t[self.reached - 1]:.9g} s"
        if self.failures:
            first = min(self.failures)
            more = f" (run {first}; {len(self.failures)} runs in all)" if self.q.ndim > 2 else ""
            return f"stopped: {self.failures[first]}{more}"
        return "finished"


def blank_run(start: tuple[np.ndarray, np.ndarray], times: np.ndarray, *, first: float = 0.0) -> Run:
    """Return a run of which nothing but the start is done; `first` is the step to begin with [s]."""
    lead = start[0].shape[:-1]
    q, qd = (np.full((*lead, len(times), x.shape[-1]), np.nan) for x in start)
    q[..., 0, :], qd[..., 0, :] = start
    return Run(times, q, qd, np.zeros(lead), np.zeros(lead), np.full(lead, first))


@dataclass(frozen=True)
class Settings:
    """Numbers of a method: dt of fixed steps, or tolerances, first step and most steps of adaptive ones."""

    dt: float = 0.0
    rtol: float = 1e-8
    atol: float = 1e-10
    first: float = 1e-4
    most: int = 1_000_000


def of_run(parameters: np.ndarray, index: tuple[int, ...]) -> np.ndarray:
    """Return the parameters of one run of a batch, which may share them."""
    return parameters[index] if parameters.ndim > 1 else parameters


def check_times(times: np.ndarray) -> np.ndarray:
    """Return output times, at least two, finite and increasing, or say what is wrong."""
    times = np.asarray(times, dtype=float)
    if times.ndim != 1 or len(times) < 2 or not np.isfinite(times).all() or not (np.diff(times) > 0).all():
        raise InputError("times must be at least two finite numbers, each larger than the one before")
    return times
