"""Entries: one table or figure of a paper each, the function that reproduces it, and its outcome with a verdict."""

from __future__ import annotations

import csv
from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass
from enum import Enum
from pathlib import Path

import numpy as np

from ...algebra.scalars import Numbers
from ...errors import writing
from ...model.mechanism import Mechanism
from ...results.trajectory import Trajectory


class Source(Enum):
    """What the result of a check is compared with."""

    PRINTED = "the paper prints"
    STATED = "the paper states"
    DATA = "the paper's data"
    """An input that the paper prints: no result is compared."""
    REFEREE = "independent"
    """A second computation or an exact solution of ours, which is no evidence about the paper."""


class Verdict(Enum):
    """What the checks of an entry show about the paper's table or figure."""

    REPRODUCED = "reproduced"
    WITH_STAND_INS = "reproduced with stand-in data"
    STATEMENT_HOLDS = "statement holds, data not printed"
    NOT_REPRODUCED = "not reproduced"
    NOT_RUN = "not run"


@dataclass(frozen=True)
class Check:
    """A statement of a paper or of an independent computation, and the result found here."""

    states: str
    found: str
    holds: bool
    source: Source = Source.REFEREE


@dataclass(frozen=True)
class Outcome:
    """Results of an entry: checks, tables to print (a row of headings, then rows of texts), and the files written.

    `stand_ins` are the inputs that are ours because the paper does not print them. `unprinted` are the results of the
    paper that are not printed as numbers, such as curves. `missing` is why nothing was computed.
    """

    checks: tuple[Check, ...]
    tables: tuple[tuple[str, tuple[Sequence[str], ...]], ...] = ()
    files: tuple[Path, ...] = ()
    notes: tuple[str, ...] = ()
    stand_ins: tuple[str, ...] = ()
    unprinted: str = ""
    missing: str = ""

    @property
    def failed(self) -> tuple[Check, ...]:
        """The checks that do not hold."""
        return tuple(check for check in self.checks if not check.holds)

    @property
    def verdict(self) -> Verdict:
        """What the checks show; referees and data alone show nothing about the results of a paper."""
        if self.missing:
            return Verdict.NOT_RUN
        sources = {check.source for check in self.checks} & {Source.PRINTED, Source.STATED}
        if self.failed or not sources:
            return Verdict.NOT_REPRODUCED
        if Source.PRINTED not in sources:
            return Verdict.STATEMENT_HOLDS
        return Verdict.WITH_STAND_INS if self.stand_ins else Verdict.REPRODUCED

    @property
    def reason(self) -> str:
        """Why the verdict is as it is."""
        match self.verdict:
            case Verdict.NOT_RUN:
                return self.missing
            case Verdict.NOT_REPRODUCED if self.failed:
                return "; ".join(f"{check.states}: {check.found}" for check in self.failed)
            case Verdict.NOT_REPRODUCED:
                return "nothing that the paper prints or states is compared"
            case Verdict.STATEMENT_HOLDS if not self.stand_ins:
                return self.unprinted or "the paper prints no numbers of the result"
            case Verdict.WITH_STAND_INS | Verdict.STATEMENT_HOLDS:
                return f"not printed: {'; '.join(self.stand_ins)}"
            case Verdict.REPRODUCED:
                return "; ".join(c.states for c in self.checks if c.source is Source.PRINTED)


@dataclass(frozen=True)
class Entry:
    """A table or figure by name: its paper's key, its content, and a function that takes the folder for files."""

    name: str
    paper: str
    what: str
    run: Callable[[Path], Outcome]


def write_csv(path: Path, headings: Sequence[str], rows: Iterable[Sequence[object]]) -> Path:
    """Write a table and return its file; floats keep every digit."""
    with writing(path), path.open("w", newline="", encoding="utf-8") as file:
        writer = csv.writer(file)
        writer.writerow(headings)
        writer.writerows([repr(float(x)) if isinstance(x, float) else x for x in row] for row in rows)
    return path


# --- Independent computation of a motion: another form of the equations, solved densely, and SciPy's integrators.

Acceleration = Callable[[float, Numbers, Numbers], Numbers]
"""(t, q, qd) -> qdd."""


def free_fall(mechanism: Mechanism, equations: Callable) -> Acceleration:
    """Return the acceleration without joint torques by the `equations` of one of the formulations."""
    zero = np.zeros(mechanism.nv)
    return lambda t, q, qd: equations(mechanism, q, qd).acceleration(zero)


def follow(
    acceleration: Acceleration,
    start: tuple[Numbers, Numbers],
    times: Numbers,
    *,
    method: str = "DOP853",
    rtol: float = 1e-11,
    atol: float = 1e-12,
) -> tuple[Numbers, Numbers]:
    """Return q and qd, each [nt, n], for joints whose velocities are the rates of their coordinates."""
    from scipy.integrate import solve_ivp

    n = len(start[0])

    def rate(t: float, y: Numbers) -> Numbers:
        return np.concatenate([y[n:], acceleration(t, y[:n], y[n:])])

    made = solve_ivp(
        rate, (times[0], times[-1]), np.concatenate(start), t_eval=times, method=method, rtol=rtol, atol=atol
    )
    if not made.success:
        raise RuntimeError(f"SciPy's {method} stopped at t = {made.t[-1]:g} s: {made.message}")
    return made.y[:n].T, made.y[n:].T


def same_motion(run: Trajectory, acceleration: Acceleration, bound: float, *, by: str, **options) -> Check:
    """Compare a run with the motion by `acceleration` from its first state, in coordinates and velocities."""
    q, qd = follow(acceleration, (run.q[0], run.qd[0]), run.t, **options)
    gap, speed = float(np.abs(run.q - q).max()), float(np.abs(run.qd - qd).max())
    found = f"{gap:.1e} rad or m, {speed:.1e} rad/s or m/s difference over {run.t[-1]:g} s"
    return Check(f"the same motion by {by}", found, gap <= bound and speed <= 100 * bound)


def keeps_energy(run: Trajectory, bound: float = 1e-10) -> Check:
    """Compare the energies of a motion without joint torques, relative to the largest kinetic energy."""
    energy = run["energy"]
    drift = float(np.ptp(energy) / run["kinetic_energy"].max())
    return Check("free fall conserves the energy", f"to {drift:.1e} of the largest kinetic energy", drift <= bound)
