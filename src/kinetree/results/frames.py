"""A run as a data frame. Requires pandas."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

import numpy as np

from .._support.optional import optional
from .._support.tables import Displayed, Table
from ..algebra.scalars import Numbers
from ..errors import InputError, unknown_name
from ..simulation.monitors import limit_violations
from .columns import RESIDUALS, contact_names

if TYPE_CHECKING:
    from .trajectory import Trajectory


def to_dataframe(run: Trajectory, names: Sequence[str] | None = None) -> Any:
    """Return columns of a run as a pandas DataFrame, one row per sample, with the time t [s] as index.

    The default is q and qd, with tau, control and reference if the run has them. A batch has the number of the run as
    the first level of its index. The units of the columns are in `frame.attrs["units"]`.
    """
    pandas = optional("pandas", "Data frames")
    known = {column.name: column for column in run.columns}
    chosen = _default(run) if names is None else list(names)
    count = int(np.prod(run.shape))
    data, units = {}, {}
    for name in chosen:
        if name not in known:
            raise unknown_name("column", name, known)
        column, values = known[name], run[name]
        shared = name in ("t", "reference")
        values = np.broadcast_to(values, (*run.shape, *values.shape)) if shared and run.shape else values
        flat = values.reshape(count * len(run), -1)
        data |= {label: flat[:, k] for k, label in enumerate(column.labels)}
        units |= dict(zip(column.labels, column.units, strict=True))
    index = pandas.Index(run.t, name="t")
    if run.shape:
        index = pandas.MultiIndex.from_product([range(count), run.t], names=["run", "t"])
    frame = pandas.DataFrame(data, index=index)
    frame.attrs["units"] = units
    return frame


def _default(run: Trajectory) -> list[str]:
    fields = {"tau": run.torque, "control": run.control, "reference": run.reference}
    return ["q", "qd", *(name for name, values in fields.items() if values is not None)]


# --- A summary of a run: mechanism and method, status, gap of the loops, and limits that were exceeded ---


def summary_lines(run: Trajectory) -> list[str]:
    """Return the lines of a summary; the last one names the limits that were exceeded, if any."""
    name, runs = run.system.mechanism.name, f"{int(np.prod(run.shape)):,} runs of " if run.shape else ""
    lines = [
        f"{name}: {runs}{len(run):,} samples over {run.t[-1] - run.t[0]:g} s by {run.method}, "
        f"{run.evaluations:,} evaluations",
        f"status: {run.status}",
    ]
    if run.system.closures:
        lines.append(f"loops closed to {np.nanmax(np.abs(run['gap']), initial=0.0):.1e} m or rad")
    if run.reference is not None:
        error = np.abs(run["tracking_error"])
        if not np.isnan(error).all():
            lines.append(f"largest tracking error: {np.nanmax(error):.3g} (rad or m)")
    passed = limit_violations(run).summary()
    return [*lines, passed] if passed else lines


# --- Results of contacts: the events of a run, its forces and gaps by name, and the largest residuals ---


@dataclass(frozen=True)
class ContactEvent:
    """An event of a contact: its kind, time [s], the name of the contact, and the number of the run in a batch.

    Kinds are "impact", "stick", "slip", "lift-off", "end of surface", and "rest", the end of infinitely many bounces.
    """

    kind: str
    t: float
    contact: str
    run: int = 0


@dataclass(frozen=True)
class DoubtfulSteps:
    """The steps of a run with residuals above a bound: their number, the largest residual, and its time [s].

    From event to event, they are samples. `run` is the number of the run in a batch.
    """

    run: int
    steps: int
    residual: float
    t: float
    bound: float


class ContactResults(Displayed):
    """The contacts of a run: `names`, `events`, `forces(name)` [..., nt, 3], `gaps(name)`, and `residuals`."""

    def __init__(self, run: Trajectory) -> None:
        """Refuse runs without contacts."""
        if run.contact_forces is None:
            raise InputError("the run has no contacts; give simulate(..., contacts=[kt.Contact(...)])")
        self._run = run

    def display(self) -> list[str | Table]:
        """Return a row per place that touches, with its largest forces and least gap, and the residuals."""
        forces, gaps = self._run["contact_forces"], self._run["contact_gaps"]
        most = np.nanmax(forces[..., 0].reshape(-1, forces.shape[-2]), axis=0, initial=0.0)
        rubs = np.linalg.norm(forces[..., 1:], axis=-1).reshape(-1, forces.shape[-2])
        slips, least = np.nanmax(rubs, axis=0, initial=0.0), np.nanmin(gaps.reshape(-1, gaps.shape[-1]), axis=0)
        rows = zip(self.names, map(float, most), map(float, slips), map(float, least), strict=True)
        touching = tuple(row for row in rows if row[1] > 0.0)
        worst = ", ".join(f"{name} {x:.2g}" for name, x in self.residuals.items())
        found: list[str | Table] = [f"{len(touching)} of {len(self.names)} places touch at the samples"]
        if touching:
            heads = ("contact", "largest normal force", "largest friction", "least gap")
            found.append(Table(heads, touching, ("", "N", "N", "m")))
        return [*found, f"{len(self.events)} events; largest residuals: {worst}"]

    @property
    def names(self) -> tuple[str, ...]:
        """The names of all places where contacts may act, in the order of forces and gaps."""
        return tuple(contact_names(self._run.system.mechanism))

    @property
    def events(self) -> tuple[ContactEvent, ...]:
        """The events of all contacts, run by run, in order of time."""
        return tuple(ContactEvent(**x) for x in self._run.options.get("contact_events", ()))

    def forces(self, name: str) -> Numbers:
        """Return the force on the body along the normal and two tangents [N], shape [..., nt, 3]."""
        return self._run["contact_forces"][..., self._index(name), :]

    def gaps(self, name: str) -> Numbers:
        """Return the gap [m], shape [..., nt]."""
        return self._run["contact_gaps"][..., self._index(name)]

    @property
    def doubtful_steps(self) -> tuple[DoubtfulSteps, ...]:
        """The steps whose residuals are above their bound, for each run that has such."""
        return tuple(DoubtfulSteps(**x) for x in self._run.options.get("doubtful_steps", ()))

    @property
    def residuals(self) -> dict[str, float]:
        """The largest residuals at all samples, without units: of Signorini's conditions, cone and dissipation."""
        worst = np.nanmax(self._run["contact_residuals"].reshape(-1, 3), axis=0, initial=0.0)
        return dict(zip(RESIDUALS, map(float, worst), strict=True))

    @property
    def impact_residuals(self) -> dict[str, float]:
        """The largest residuals of the impulses of all impacts, relative to the largest impulse or velocity."""
        worst = self._run.options.get("impact_residuals", (0.0, 0.0, 0.0))
        return dict(zip(RESIDUALS, map(float, worst), strict=True))

    def _index(self, name: str) -> int:
        if name not in self.names:
            raise unknown_name("contact", name, self.names)
        return self.names.index(name)
