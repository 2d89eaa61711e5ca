"""`load_report`: the loads of drives, bearings and force elements over a run, against catalogues of motors."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import dataclass, field
from functools import cached_property
from pathlib import Path
from typing import Any

import numpy as np

from .._support.checks import positive
from .._support.lazy_names import picture
from .._support.optional import optional
from .._support.tables import Table
from ..algebra.scalars import Numbers
from ..errors import InputError, brief, unknown_name, writing
from ..model.flexible import is_modes
from ..results.trajectory import Trajectory
from .candidates import Candidate, candidates
from .catalogue import Catalogue, read_catalogue
from .causes import Causes, EnergyBalance, causes, energy_balance, joint_numbers, with_passive_forces
from .loads import (
    BearingLoad,
    DriveLoad,
    ElementLoad,
    bearing_loads,
    drive_loads,
    load_elements,
    name_forces,
    own_elements,
)
from .motors import Deflection, MotorLoad, TwistLoad, deflections, motor_loads, twist_loads
from .tables import TABLES, summary, tables, write_csv

NEGLIGIBLE = 1e-9
"""The part of the largest cause of a drive's load below which others are not listed: well above rounding."""
COARSE = 1e-3
"""The error of the energy balance above which the report states that energies are uncertain."""


@dataclass(frozen=True, eq=False, repr=False)
class LoadReport:
    """The loads of a run: `drives`, `bearings`, `elements` (springs and actuators), `causes`, `energy`, `candidates`.

    `motors` are the electric motors of the mechanism, `elastic` its elastic joints, `deflections` the nodes of its
    flexible bodies. `drives` has every degree of freedom, `driven` those with a drive. `notes` state what the figures
    leave out. `words` is a summary in plain English, `table(name)` a table as text, `save("report.html")` one page with
    all of it.
    """

    run: Trajectory
    drives: tuple[DriveLoad, ...]
    bearings: tuple[BearingLoad, ...]
    elements: tuple[ElementLoad, ...]
    causes: Causes
    energy: EnergyBalance
    candidates: tuple[Candidate, ...]
    catalogue: Catalogue | None
    thermal_time: float | None
    safety: float
    notes: tuple[str, ...]
    share: Any = None
    index: dict[str, int] = field(default_factory=dict)
    motors: tuple[MotorLoad, ...] = ()
    elastic: tuple[TwistLoad, ...] = ()
    deflections: tuple[Deflection, ...] = ()

    @property
    def t(self) -> Numbers:
        """The times of the samples [s]."""
        return self.run.t

    @property
    def status(self) -> str:
        """The status of the run: "finished", "stopped: reason" or "doubtful: reason"."""
        return self.run.status

    @property
    def name(self) -> str:
        """The name of the mechanism."""
        return self.run.system.mechanism.name

    @property
    def driven(self) -> tuple[DriveLoad, ...]:
        """The degrees of freedom with a drive."""
        return tuple(d for d in self.drives if d.driven)

    def drive(self, name: str) -> DriveLoad:
        """Return the load of a drive by the name of its joint, or of a degree of freedom: "base.x"."""
        return _find_part("drive", name, self.drives)

    def bearing(self, name: str) -> BearingLoad:
        """Return the load at a joint or loop by name."""
        return _find_part("joint or loop", name, self.bearings)

    def element(self, name: str) -> ElementLoad:
        """Return the load of a spring, damper or linear actuator by name."""
        return _find_part("force element", name, self.elements)

    def motor(self, name: str) -> MotorLoad:
        """Return the load of an electric motor by name."""
        return _find_part("motor", name, self.motors)

    def ranking(self, drive: str) -> tuple[Candidate, ...]:
        """Return the candidates of the catalogue for a drive, the best first."""
        return tuple(c for c in self.candidates if c.drive == self.drive(drive).name)

    def armature(self, drive: str) -> float:
        """Return the inertia of the rotor that the model has at a drive [kg m^2, kg]."""
        return float(joint_numbers(self.run, "armature")[self.index[self.drive(drive).name]])

    def shares(self, drive: str) -> dict[str, Numbers]:
        """Return the force or torque of a drive by cause, [nt] each; causes that are only rounding are left out."""
        k = self.index[self.drive(drive).name]
        parts = {name: share[:, k] for name, share in self.causes.shares.items()}
        largest = max(float(np.abs(x).max()) for x in parts.values())
        return {name: x for name, x in parts.items() if np.abs(x).max() > NEGLIGIBLE * largest}

    @cached_property
    def tables(self) -> dict[str, Table]:
        """The tables by name, from drives to candidates; without those that are empty."""
        return tables(self)

    @property
    def words(self) -> list[str]:
        """The summary in plain words, a sentence or two for each drive."""
        return summary(self)

    def table(self, name: str = "drives") -> str:
        """Return a table as text: `drives`, `bearings`, `deflections`, `energy` and others of `tables`."""
        return self._table(name).text()

    def to_dataframe(self, table: str = "drives") -> Any:
        """Return a table as a pandas DataFrame, with units in the names of its columns; requires pandas."""
        chosen = self._table(table)
        labels = [
            label if chosen.labels.count(label) == 1 else f"{chosen.heads[k - 1]} {label}"
            for k, label in enumerate(chosen.labels)
        ]
        return optional("pandas", "Data frames").DataFrame(list(chosen.rows), columns=labels)

    def to_csv(self, path: str | Path, table: str = "drives") -> list[Path]:
        """Write one table to a file that ends with .csv, or all tables into a folder; return the paths."""
        path = Path(path)
        if path.suffix.lower() == ".csv":
            return [write_csv(self._table(table), path)]
        with writing(path):
            path.mkdir(parents=True, exist_ok=True)
        return [write_csv(found, path / f"{name}.csv") for name, found in self.tables.items()]

    def save(self, path: str | Path = "report.html", **options: object) -> Path:
        """Write the report as one web page, which opens offline; see `kinetree.reports.load_report_page`."""
        return picture("save_load_report")(self, path, **options)

    def _repr_html_(self) -> str:
        """Return summary and tables, for notebooks."""
        return picture("load_report_html")(self)

    def __str__(self) -> str:
        """Return the summary, and the tables of drives and bearings as text."""
        parts = ["\n".join(self.words)]
        parts += [self.table(name) for name in ("drives", "bearings") if name in self.tables]
        return "\n\n".join([*parts, *self.notes])

    def __repr__(self) -> str:
        """Return the numbers of drives and bearings on one line."""
        return f"<LoadReport of {self.name!r}: {len(self.driven)} drives, {len(self.bearings)} joints and loops>"

    def _table(self, name: str) -> Table:
        if name not in TABLES:
            raise unknown_name("table", name, TABLES)
        return self.tables[name] if name in self.tables else TABLES[name](self)


def load_report(
    run: Trajectory,
    *,
    catalogue: str | Path | Catalogue | None = None,
    joints: str | Sequence[str] | None = None,
    thermal_time: float | None = None,
    safety: float = 1.0,
    forces: Iterable[object] = (),
    passive: bool = False,
    share: object = None,
) -> LoadReport:
    """Return the loads of a single run of `simulate`, `cycle` or inverse dynamics.

    `catalogue` has motors and gearboxes (docs/load-report.md lists its columns); candidates fit if all their margins
    are at least `safety`. `joints` selects joints and loops by name; the default is all. `thermal_time` [s] is the
    thermal time constant of the motors: with it, continuous loads are taken at the hottest instant instead of RMS
    values over the run. `forces` are springs and linear actuators that were given to `simulate`, to be listed too.
    `passive` adds friction, damping and springs of the mechanism to a run of inverse dynamics that left them out.
    `share` are compliances by joint or loop, as for `arm.loads`, for reactions that motion does not determine.
    """
    run = _cut_at_last_finite(run)
    run = with_passive_forces(run) if passive else run
    wanted = _select_joints(run, joints)
    thermal = None if thermal_time is None else positive(thermal_time, "thermal_time")
    safety = positive(safety, "safety")
    parts = catalogue if catalogue is None or isinstance(catalogue, Catalogue) else read_catalogue(catalogue)
    own = load_elements(run, own_elements(run))
    found, acts = causes(run, own)
    drives = drive_loads(run, thermal)
    energy, extra = energy_balance(run, drives, found), load_elements(run, name_forces(forces)).loads
    shown = tuple(d for d in drives if d.joint in wanted)
    rotors, index = joint_numbers(run, "armature"), {d.name: k for k, d in enumerate(drives)}
    ranked = [
        c
        for d in shown
        if parts is not None and d.driven
        for c in candidates(d, parts, armature=float(rotors[index[d.name]]), safety=safety, thermal_time=thermal)
    ]
    return LoadReport(
        run, shown, tuple(b for b in bearing_loads(run, share) if b.name in wanted),
        (own.loads if acts else ()) + extra,
        found, energy, tuple(ranked), parts, thermal, safety, _notes(run, acts, energy),
        share, index, tuple(x for x in motor_loads(run) if x.motor.joint in wanted),
        tuple(x for x in twist_loads(run) if x.joint in wanted) if acts else (), deflections(run, wanted),
    )  # fmt: skip


def _cut_at_last_finite(run: object) -> Trajectory:
    """Return a single run up to its last finite sample."""
    if not isinstance(run, Trajectory):
        raise InputError(
            f"a load report takes a run, the result of simulate, cycle or read_trajectory; given {brief(run)}"
        )
    if run.shape:
        raise InputError(f"the batch has shape {run.shape}; choose one of its runs with run(i) for a load report")
    if not run.system.nv:
        raise InputError(f"{run.system.mechanism.name!r} has no degrees of freedom, so that nothing moves or is driven")
    good = np.isfinite(run.q).all(axis=-1) & np.isfinite(run.qd).all(axis=-1)
    good &= np.isfinite(run["tau"]).all(axis=-1) & np.isfinite(run["qdd"]).all(axis=-1)
    count = len(run) if good.all() else int(np.argmin(good))
    if not count:
        vague = [name for name in ("q", "qd", "tau", "qdd") if not np.isfinite(run[name][0]).all()]
        raise InputError(
            f"the run has no sample with finite numbers: at its start {' and '.join(vague)} are not finite "
            f"({run.status}); start at another state"
        )
    return run if count == len(run) else run[:count]


def _select_joints(run: Trajectory, joints: str | Sequence[str] | None) -> set[str]:
    known = [*(j.name for j in run.system.joints), *(p.name for p in run.system.mechanism.loops)]
    if joints is None:  # modes of flexible bodies have neither drives nor bearings, and circuits a table of their own
        m = run.system.mechanism
        return set(known) - {j.name for j in m.joints if is_modes(j)} - {motor.circuit for motor in m.motors}
    names = [joints] if isinstance(joints, str) else list(joints)
    for name in names:
        if name not in known:
            raise unknown_name("joint or loop", name, known)
    return set(names)


def _notes(run: Trajectory, acts: bool, energy: EnergyBalance) -> tuple[str, ...]:
    notes = []
    if run.control is None:
        notes.append("The run has no separate torques of drives: every joint torque counts as the torque of a drive.")
    if not acts:
        notes.append(
            "Friction, damping and springs of the mechanism did not act in this run: the loads of the drives do not "
            "include them. For a run of inverse dynamics, passive=True (--passive) adds them."
        )
    if energy.error > COARSE and len(run) > 1:
        notes.append(
            f"Energies are uncertain: their balance is off by {100 * energy.error:.2g} % of the largest. Either the "
            "samples are too coarse, or the torques do not belong to the motion."
        )
    return tuple(notes)


def _find_part(sort: str, name: str, parts: Sequence[Any]) -> Any:
    for part in parts:
        if part.name == name:
            return part
    raise unknown_name(sort, name, [part.name for part in parts])
