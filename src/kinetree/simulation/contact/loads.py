"""Results of contacts at the samples of runs: forces, gaps, residuals, events, and the wrenches on the bodies."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from functools import cached_property
from math import prod
from typing import Any

import numpy as np

from ...compiler.ir.program import Program
from ...compiler.lower.contacts import motion_program
from ...contacts import labels
from ..loads_at_samples import Compiled
from ..motion_problem import Problem
from ..run_states import Run
from .records import Records


def contact_fields(problem: Problem, run: Run, records: Sequence[Records], others: Any) -> dict[str, Any]:
    """Return the fields of a Trajectory that contacts determine; samples after a failure are NaN.

    `others` computes the wrenches of the other forces.
    """
    lead, count, mechanism = problem.lead, len(run.t), problem.mechanism
    nc = sum(len(labels(c)) for c in mechanism.contacts)
    shapes = {
        "contact_forces": (nc, 3), "contact_gaps": (nc,), "contact_residuals": (3,), "accelerations": (mechanism.nv,),
    }  # fmt: skip
    arrays = {name: np.full((prod(lead), count, *shape), np.nan) for name, shape in shapes.items()}
    for k, record in enumerate(records):
        for name, array in arrays.items():
            known = record.stacked(name)[:count]
            if not len(known):
                continue
            array[k, : len(known)] = known
            if len(known) < count and not lead:  # the state at an event that ended the run
                array[k, len(known) :] = known[-1]
    found: dict[str, Any] = {name: x.reshape(*lead, count, *shapes[name]) for name, x in arrays.items()}
    return found | {"wrenches": contact_wrenches(problem, others)}


def contact_wrenches(problem: Problem, others: Any) -> Wrenches:
    """Return the Source of the wrenches on all bodies; `others` is that of the wrenches without contacts."""
    mechanism = problem.mechanism
    program = problem.kept.part("contact motion program", lambda: motion_program(mechanism))
    bodies = tuple(
        (mechanism.body_indices[c.body], mechanism.body_indices[c.surface.body])
        for c in mechanism.contacts
        for _ in labels(c)
    )
    return Wrenches(others, program, bodies)


def contact_options(records: Sequence[Records]) -> dict[str, Any]:
    """Return the events of all runs, and the worst residuals of their impacts, as plain numbers."""
    events = [
        {"kind": e.kind, "t": e.t, "contact": e.contact, "run": k}
        for k, record in enumerate(records)
        for e in sorted(record.events, key=lambda e: e.t)
    ]
    worst = np.max([r.impacts for r in records], axis=0, initial=0.0) if records else np.zeros(3)
    return {"contact_events": events, "impact_residuals": [float(x) for x in worst]}


@dataclass(frozen=True)
class Wrenches:
    """The wrenches of forces and contacts on all bodies, a Source of a run's field.

    `bodies` has the indices of the two bodies of each candidate, -1 for the ground.
    """

    others: Any
    motion: Program
    bodies: tuple[tuple[int, int], ...]

    @cached_property
    def _compiled(self) -> Compiled:
        return Compiled({self.motion.name: self.motion})

    def __call__(self, field: str, run: Any) -> np.ndarray:
        """Return the wrenches [..., nt, nb, 6] about the origins of the bodies, in their frames."""
        out = np.array(self.others(field, run))
        more = () if run.parameters is None else (run.parameters[..., None, :],)
        with np.errstate(all="ignore"):  # runs that failed have NaN from then on
            *_, points, axes = self._compiled[self.motion.name](run.q, run.qd, *more)
        world = np.einsum("...ck,...ckj->...cj", run.contact_forces, axes)
        poses = run["poses"]
        for c, ends in enumerate(self.bodies):
            for body, sign in zip(ends, (1.0, -1.0), strict=True):
                if body < 0:
                    continue
                R, r = poses[..., body, :3, :3], poses[..., body, :3, 3]
                force = sign * np.einsum("...ji,...j->...i", R, world[..., c, :])
                arm = np.einsum("...ji,...j->...i", R, points[..., c, :] - r)
                out[..., body, :3] += np.cross(arm, force)
                out[..., body, 3:] += force
        return out
