"""Runs with hard contact, event by event: touch-down, lift-off, stick and slip are located to rounding."""

from __future__ import annotations

from dataclasses import replace

from ...errors import InputError
from ..contact.events import EventDrivenRun
from ..contact.records import Records, contact_fields, contact_options, doubtful
from ..contact.touching import Functions
from ..events import Watch
from ..problem import Problem
from ..run_states import Run
from .engine import Fields, Motion, Progress, onward_by, refuse_with_contacts
from .native import acting_on
from .scipy import run_each

PAIRS = {"dop853": "DOP853", "scipy": "DOP853", "dopri5": "RK45"}
"""SciPy's embedded pairs by method."""


def run_from_event_to_event(problem: Problem, watch: Watch | None, progress: Progress | None) -> Motion:
    """Carry out runs with contacts by adaptive steps from event to event, one run after the other."""
    _refuse(problem)
    functions, records = Functions(problem), list[Records]()
    count = [0]

    def evaluated() -> int:
        before, count[0] = count[0], 0
        return before

    def marched(kept: list[Records]):
        def samples(q0, qd0, times, parameters):
            kept.append(Records())  # also of a run that is refused
            pair = PAIRS[problem.method.name]
            march = EventDrivenRun(functions.of(parameters), (q0, qd0), times, problem.settings, pair, kept[-1])
            try:
                yield from march.samples()
            finally:
                count[0] = march.evaluations

        return samples

    def again(q, qd, t, more) -> Run:
        short = replace(problem, start=(q, qd), times=t, parameters=more)
        return run_each(short, marched([]), evaluated)

    done = run_each(problem, marched(records), evaluated, watch, progress)

    def complete(ended: Run) -> tuple[Run, Fields]:
        acted = acting_on(problem)
        fields = acted | contact_fields(problem, ended, records, acted["wrenches"])
        found = {k: x.doubt(problem.times) for k, x in enumerate(records)}
        ended, doubts = doubtful(ended, found, "try a smaller rtol and atol")
        return ended, fields | {"options": contact_options(records) | doubts}

    return Motion(done, onward_by(problem, done, again), complete)


def _refuse(problem: Problem) -> None:
    """Raise an InputError for options that runs from event to event do not support."""
    refuse_with_contacts(problem)
    if problem.method.name not in PAIRS:
        raise InputError(
            f"contacts are simulated event by event with {' or '.join(PAIRS)}, not with {problem.method.name}; "
            'leave out method and dt, or give method="moreau" and dt for time steps'
        )
