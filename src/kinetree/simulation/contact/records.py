"""Records of a run with contacts: events, and forces, gaps and residuals at its samples."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import asdict, dataclass, field, replace
from math import prod
from typing import TYPE_CHECKING, Any

import numpy as np

from ...contact_geometry import labels
from ...contact_geometry.cone import DOUBTFUL
from ...runtime.contact_motion import ContactMotion
from ..problem import Problem
from ..run_states import Run
from .cone_problem import largest_residuals
from .touching import Coefficients, Mode, feasible, motion_of_contacts

if TYPE_CHECKING:
    from ...results.columns import Source
    from .touching import State

KINDS = ("impact", "stick", "slip", "lift-off", "rest", "end of surface")
"""The kinds of events of contacts; "rest" is the end of infinitely many bounces."""

LIGHT = 1e-3
"""The least force that residuals are compared with, relative to the weight: without gravity, forces are rounding."""


@dataclass(frozen=True)
class Doubt:
    """The steps of a run with residuals above DOUBTFUL: their number, the largest residual, and its time [s]."""

    steps: int
    residual: float
    t: float
    bound: float

    def __str__(self) -> str:
        """Return what is wrong."""
        which = f"in {self.steps:,} steps" if self.steps > 1 else "in a step"
        return (
            f"{which} the contact forces violate Signorini's conditions or Coulomb's law, the most at "
            f"t = {self.t:.9g} s with a residual of {self.residual:.3g}, where {self.bound:.0e} is allowed"
        )


@dataclass(frozen=True)
class ContactEvent:
    """An event of a contact: its kind, time [s], and the name of the contact."""

    kind: str
    t: float
    contact: str

    def __str__(self) -> str:
        """Return the event on one line."""
        return f"{self.t:.9g} s: {self.kind} of {self.contact}"


@dataclass
class Records:
    """Events of one run, the worst residuals of its impacts, and the values at its samples."""

    events: list[ContactEvent] = field(default_factory=list)
    impacts: np.ndarray = field(default_factory=lambda: np.zeros(3))
    reduced: int = 0
    samples: list[dict[str, np.ndarray]] = field(default_factory=list)

    def note(self, kind: str, t: float, name: str) -> None:
        """Add an event."""
        self.events.append(ContactEvent(kind, float(t), name))

    def sample(self, given: Coefficients, mode: Mode, t: float, q: np.ndarray, qd: np.ndarray) -> None:
        """Add forces, gaps, accelerations and residuals at a state."""
        state = given.at(q, qd)
        _, free = given.free(t, q, qd)
        found, _ = feasible(given, mode, state, free)
        forces = np.zeros((len(given.names), 3))
        forces[list(mode.closed)] = found.forces
        self.samples.append(
            {
                "contact_forces": forces,
                "contact_gaps": state.gap,
                "contact_residuals": residuals(given, mode, state, found),
                "accelerations": found.qdd,
            }
        )

    def doubt(self, times: np.ndarray) -> Doubt:
        """Return the samples whose residuals are above their bound, for the times of all samples."""
        bound, worst = DOUBTFUL["float64"], [float(x["contact_residuals"].max()) for x in self.samples]
        over = [k for k, x in enumerate(worst) if not x <= bound]
        k = max(over, key=lambda k: worst[k], default=0)
        return Doubt(len(over), worst[k] if over else 0.0, float(times[k]), bound)

    def stacked(self, name: str) -> np.ndarray:
        """Return the values at all samples."""
        return np.array([x[name] for x in self.samples])


def residuals(given: Coefficients, mode: Mode, state: State, found: Any) -> np.ndarray:
    """Return the residuals of Signorini's conditions, of the cone, and of Coulomb's law at a state, without units.

    Depths are relative to the characteristic length. Forces and velocities of closed contacts are those of
    contact_geometry/cone.py, with the largest force as F, but at least a small part of the weight, and as S the
    characteristic velocity or a larger velocity of slip. A slip that begins follows its acceleration: see modes.py.
    """
    scales, closed = given.scales, list(mode.closed)
    depth = float(np.maximum(-state.gap, 0.0).max(initial=0.0)) / scales.length
    if not closed:
        return np.array([depth, 0.0, 0.0])
    f, mu, v, count = found.forces, given.mu[closed], state.v[closed].copy(), len(closed)
    begins = [k for k, i in enumerate(closed) if i in mode.begins]
    v[begins, 1:] = found.rates[begins, 1:] * (scales.length / scales.speed)
    unit = max(float(np.abs(f).max(initial=0.0)), LIGHT * scales.force) or 1.0
    fast = max(scales.speed, float(np.hypot(v[:, 1], v[:, 2]).max()))
    signorini, *others = largest_residuals(f, v, mu, np.full((count, 2), np.nan), np.zeros(count), [unit] * count, fast)
    return np.array([max(depth, signorini), *others])


# --- Results of contacts at the samples of runs: forces, gaps, residuals, events, and the wrenches on the bodies.


def contact_fields(problem: Problem, run: Run, records: Sequence[Records], others: Source) -> dict[str, object]:
    """Return the fields of a Trajectory that contacts determine; samples after a failure are NaN.

    `others` computes the wrenches of the other forces.
    """
    lead, count, mechanism = problem.lead, len(run.t), problem.mechanism
    nc = sum(len(labels(c)) for c in mechanism.contacts)
    shapes = {
        "contact_forces": (nc, 3),
        "contact_gaps": (nc,),
        "contact_residuals": (3,),
        "accelerations": (mechanism.nv,),
    }
    arrays = {name: np.full((prod(lead), count, *shape), np.nan) for name, shape in shapes.items()}
    for k, record in enumerate(records):
        for name, array in arrays.items():
            known = record.stacked(name)[:count]
            if not len(known):
                continue
            array[k, : len(known)] = known
            if len(known) < count and not lead:  # the state at an event that ended the run
                array[k, len(known) :] = known[-1]
    found: dict[str, object] = {name: x.reshape(*lead, count, *shapes[name]) for name, x in arrays.items()}
    return found | {"wrenches": contact_wrenches(problem, others)}


def contact_wrenches(problem: Problem, others: Source) -> Wrenches:
    """Return the Source of the wrenches on all bodies; `others` has the wrenches without contacts."""
    mechanism = problem.mechanism
    bodies = tuple(
        (mechanism.body_indices[c.body], mechanism.body_indices[c.surface.body])
        for c in mechanism.contacts
        for _ in labels(c)
    )
    return Wrenches(others, motion_of_contacts(problem), bodies)


def doubtful(run: Run, found: dict[int, Doubt], remedy: str) -> tuple[Run, dict[str, list[dict[str, object]]]]:
    """Return a run with the doubts about its contact forces, by number in the batch, and the options that keep them.

    Those of steps after the end of the run, at an event, are left out.
    """
    found = {k: x for k, x in found.items() if x.steps and x.t <= run.t[-1]}
    kept = {"doubtful_steps": [{"run": k, **asdict(x)} for k, x in found.items()]} if found else {}
    return replace(run, doubts={k: f"{x}; {remedy}" for k, x in found.items()}), kept


def contact_options(records: Sequence[Records]) -> dict[str, object]:
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

    others: Source
    motion: ContactMotion
    bodies: tuple[tuple[int, int], ...]

    def __call__(self, field: str, run: Any) -> np.ndarray:
        """Return the wrenches [..., nt, nb, 6] about the origins of the bodies, in their frames."""
        out = np.array(self.others(field, run))
        more = () if run.parameters is None else (run.parameters_at_samples,)
        with np.errstate(all="ignore"):  # runs that failed have NaN from then on
            points, axes = self.motion.places(run.q, run.qd, *more)
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
