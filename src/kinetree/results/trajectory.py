"""Trajectory: the states of a run, or of a batch of runs, and derived quantities by name."""

from __future__ import annotations

import json
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import KW_ONLY, dataclass, field, replace
from functools import cached_property
from pathlib import Path
from typing import TYPE_CHECKING, Any, overload

import numpy as np
from numpy.typing import ArrayLike, NDArray

from .. import joints as joint_kinds
from .._support.checks import number
from .._support.lazy_names import picture
from ..algebra.quaternions import conjugate, product
from ..algebra.rotations import from_quaternion
from ..algebra.scalars import Numbers
from ..algebra.vectors import times as rotated
from ..algebra.vectors import transpose
from ..errors import InputError, unknown_name
from ..model.axes import quaternion_places
from ..model.flexible import modal_entries
from ..model.mechanism import Mechanism
from ..simulation.outcomes import Endings, Outcome
from ..system import System
from .columns import (
    GIVEN,
    Column,
    Recorded,
    array,
    call_options,
    columns,
    contact_shapes,
    derive,
    energy_error,
    find,
    is_zeros,
)
from .files import read_fields, save
from .frames import ContactResults, summary_lines, to_dataframe

if TYPE_CHECKING:
    from ..page.writer import Page

SAMPLED = {
    "q": 1,
    "qd": 1,
    "torque": 1,
    "control": 1,
    "accelerations": 1,
    "wrenches": 2,
    "contact_forces": 2,
    "contact_gaps": 1,
    "contact_residuals": 1,
}
"""The arrays with a row per sample of each run, and their number of axes after the time axis."""


@dataclass(frozen=True, eq=False, repr=False)
class Trajectory:
    """Times t [nt] and states q [..., nt, nq], qd [..., nt, nv] of a System; leading axes are runs of a batch.

    `torque` [..., nt, nv] are the joint torques that acted, None for none. `control` [..., nt, nv] is their part from
    the drives, None if unknown. `parameters` [np] or [..., np] are the values of the free parameters, [nt, np] in a
    single run in which they change with time. `accelerations` [..., nt, nv] and `wrenches` [..., nt, nb, 6] include
    other forces of the simulation; without them, "qdd" and "reactions" follow from the torques alone. Torque, control,
    accelerations and wrenches may be functions (field, run) -> array, which are called at the first use. `reference`
    [nt, nq] is the desired motion of the control, NaN where a joint is not driven. Runs with contacts also have
    `contact_forces` [..., nt, nc, 3] along normal and tangents, `contact_gaps` [..., nt, nc] and `contact_residuals`
    [..., nt, 3]; see `contact`. `endings` tell how the runs ended, by their number in the batch: `outcome` is an
    Outcome, and `status` the same as text, with the reason. Samples after a stop in a batch are NaN.

    run["tau"] is a column by name, run["q.joint2"] a part of it, run[10:20] the samples 10 to 19.
    """

    system: System
    t: Numbers
    q: Numbers
    qd: Numbers
    _: KW_ONLY
    parameters: Numbers | None = None
    torque: Recorded = Recorded()
    control: Recorded = Recorded()
    accelerations: Recorded = Recorded()
    wrenches: Recorded = Recorded()
    contact_forces: Recorded = Recorded()
    contact_gaps: Recorded = Recorded()
    contact_residuals: Recorded = Recorded()
    reference: Numbers | None = None
    method: str = "rk4"
    options: Mapping[str, Any] = field(default_factory=dict)
    evaluations: int = 0
    endings: Endings = field(default_factory=Endings)

    def __post_init__(self) -> None:
        """Check every array once, and keep read-only views."""
        t = array("t", self.t)
        if t.ndim != 1 or not len(t) or not np.isfinite(t).all() or (np.diff(t) <= 0).any():
            raise InputError(f"t has shape {t.shape}; expected one or more finite times [nt] that increase")
        object.__setattr__(self, "t", t)
        sizes = {"q": (self.system.nq,), "wrenches": (len(self.system.bodies), 6)}
        if self.system.mechanism.contacts:
            sizes |= contact_shapes(self.system.mechanism)
        lead = np.shape(self.q)[:-2]
        for name, value in self._given().items():
            if not callable(value):
                core = (len(t), *sizes.get(name, (self.system.nv,)))
                object.__setattr__(self, name, array(name, value, (*lead, *core)))
        if self.reference is not None:
            object.__setattr__(self, "reference", array("reference", self.reference, (len(t), self.system.nq)))
        if self.parameters is not None:
            object.__setattr__(self, "parameters", self._checked_parameters(lead))
        try:
            plain = json.loads(json.dumps(dict(self.options)))
        except (TypeError, ValueError) as error:
            raise InputError(f"options of a run must be plain numbers, texts, lists and tables: {error}") from None
        object.__setattr__(self, "options", plain)

    def _checked_parameters(self, lead: tuple[int, ...]) -> Numbers:
        values = array("parameters", self.parameters)
        count = len(self.system.mechanism.free_parameters)
        changing = () if lead else ((len(self.t), count),)
        if values.shape not in ((count,), (*lead, count), *changing) or count == 0:
            expected = f"[{count}]" + (f" or {[*lead, count]}" if lead else "") if count else "none"
            raise InputError(f"parameters have shape {values.shape}; expected {expected}")
        return values

    @property
    def parameters_at_samples(self) -> Numbers | None:
        """The parameters [..., nt, np], or [..., 1, np] if they stay the same, as options of functions of a System."""
        return self.parameters if self._changing else None if self.parameters is None else self.parameters[..., None, :]

    @property
    def constant_parameters(self) -> Numbers | None:
        """The parameters of all samples, [np] or [..., np]; an InputError if they change with time."""
        if self._changing:
            raise InputError(
                "the parameters of the run change with time; give a part of it in which they do not, such as run[:10]"
            )
        return self.parameters

    @property
    def _changing(self) -> bool:
        return not self.shape and self.parameters is not None and self.parameters.ndim > 1

    @property
    def shape(self) -> tuple[int, ...]:
        """The shape of the batch; () for a single run."""
        return self.q.shape[:-2]

    @property
    def outcome(self) -> Outcome:
        """How the run ended; for a batch, how the first of the runs that did not finish ended."""
        return self.endings.outcome

    @cached_property
    def outcomes(self) -> NDArray[np.uint8]:
        """The codes of the outcomes of all runs of the batch [...]."""
        whole = self.endings.whole
        codes = np.full(self.shape, Outcome.FINISHED if whole is None else whole.outcome, dtype=np.uint8)
        for k, ending in self.endings.runs.items():
            codes.flat[k] = ending.outcome
        return codes

    @property
    def status(self) -> str:
        """How the run ended, as text: "finished", "stopped: reason", or "doubtful: reason".

        A doubtful run reached its end with steps that violate the laws of contacts.
        """
        return self.endings.status(batch=bool(self.shape))

    @property
    def failures(self) -> dict[int, str]:
        """Why runs stopped, or why their results are in doubt, by their number in the batch."""
        return {k: ending.reason for k, ending in self.endings.runs.items()}

    @property
    def finished(self) -> bool:
        """Whether the run reached its end, and none of its steps is in doubt."""
        return self.outcome is Outcome.FINISHED

    def __len__(self) -> int:
        """Return the number of samples."""
        return len(self.t)

    __iter__ = None  # ambiguous between samples and runs: use a slice or `runs()`

    def __repr__(self) -> str:
        """Return mechanism, duration, method and status on one line."""
        runs = f"{self.shape[0]:,}" if len(self.shape) == 1 else f"{self.shape}"
        batch = f"{runs} runs of " if self.shape else ""
        name, span = self.system.mechanism.name, self.t[-1] - self.t[0]
        return f"<Trajectory of {name!r}: {batch}{len(self)} samples over {span:g} s, {self.method}, {self.status}>"

    @property
    def columns(self) -> tuple[Column, ...]:
        """The columns, each with name, unit and shape of a sample."""
        return tuple(self._columns.values())

    @cached_property
    def _columns(self) -> dict[str, Column]:
        return columns(self.system.mechanism, given=[name for name in GIVEN if vars(self)[name] is not None])

    @cached_property
    def _derived(self) -> dict[str, Numbers]:
        return {}

    @overload
    def __getitem__(self, key: str) -> Numbers: ...
    @overload
    def __getitem__(self, key: slice) -> Trajectory: ...
    def __getitem__(self, key):
        """Return a column, a part of one, or a slice of the samples."""
        if isinstance(key, slice):
            return self._slice(key)
        if not isinstance(key, str):
            raise InputError(
                f"a run has no item {key!r}; give a column's name or a slice of samples, and take a run of a batch "
                "with run(i)"
            )
        frame = key.removeprefix("poses.")
        if frame != key and frame not in self._columns["poses"].parts:
            return self._frame_pose(frame)
        name, where = find(self._columns, key)
        values = self._column(name)
        return values[(..., *where)] if where else values

    def _column(self, name: str) -> Numbers:
        if name not in self._derived:
            for found, values in derive(self, name).items():
                self._derived[found] = values.view()
                self._derived[found].flags.writeable = False
        return self._derived[name]

    def _frame_pose(self, frame: str) -> Numbers:
        known = self.system.mechanism.frame_names
        if frame not in known:
            raise unknown_name("part of column 'poses'", frame, known)
        return self.system.pose(self.q, frame, **call_options(self))

    @property
    def contact(self) -> ContactResults:
        """The results of contacts: names, forces, gaps, events, and the largest residuals."""
        return ContactResults(self)

    @property
    def energy_error(self) -> float | Numbers:
        """The largest change of the total energy relative to the energy in motion, [...] for a batch.

        It measures the error of the integration if only gravity does work: no torques, damping, springs or wrenches.
        """
        error = energy_error(self)
        return error if self.shape else float(error)

    def at(self, times: ArrayLike) -> Trajectory:
        """Return the run at other, increasing times within its span; docs/results.md gives the error."""
        new = np.atleast_1d(array("times", times))
        if not len(new) or not (self.t[0] <= new.min() and new.max() <= self.t[-1]):
            raise InputError(f"times must be within {self.t[0]:g} to {self.t[-1]:g} s, the times of the run")
        return replace(self, t=new, **resample(self, new))

    def exaggerated(self, factor: float) -> Trajectory:
        """Return the run, for pictures, with the deflections of flexible bodies multiplied by a factor."""
        q = self.q.copy()
        q[..., modal_entries(self.system.mechanism, 0)] *= number(factor, "factor", least=0.0)
        return Trajectory(self.system, self.t, q, self.qd, parameters=self.parameters, method=self.method)

    def run(self, *index: int) -> Trajectory:
        """Return one run of a batch, given an index per axis of the batch."""
        if not self.shape or len(index) != len(self.shape):
            raise InputError(f"{len(index)} indices are given for a batch of shape {self.shape}")
        for i, count in zip(index, self.shape, strict=True):
            if not -count <= i < count:
                raise InputError(f"no run {i}; the batch has shape {self.shape}")
        changed = {name: value if callable(value) else value[index] for name, value in self._given().items()}
        if self.parameters is not None and self.parameters.ndim > 1:
            changed["parameters"] = self.parameters[index]
        ending = self.endings.of(int(np.ravel_multi_index(index, self.shape, mode="wrap")))
        return replace(self, endings=ending, **changed)

    def runs(self) -> Iterator[Trajectory]:
        """Yield every run of a batch; a single run yields itself."""
        if not self.shape:
            yield self
            return
        for index in np.ndindex(self.shape):
            yield self.run(*index)

    def _given(self) -> dict[str, Any]:
        """Return the arrays of the run by name; those that were not used yet as their Source."""
        return {name: value for name in SAMPLED if (value := vars(self)[name]) is not None}

    def _slice(self, key: slice) -> Trajectory:
        changed = {
            name: value if callable(value) else value[(..., key, *(slice(None),) * SAMPLED[name])]
            for name, value in self._given().items()
        }
        if self.reference is not None:
            changed["reference"] = self.reference[key]
        if self._changing and self.parameters is not None:
            rows = self.parameters[key]
            changed["parameters"] = rows[0] if len(rows) and (rows == rows[0]).all() else rows
        return replace(self, t=self.t[key], **changed)

    def save(self, path: str | Path, *, columns: Sequence[str] = ()) -> Path:
        """Write a .csv, .npz, .parquet or .zarr file, with additional columns by name; return its path."""
        return save(self, path, columns=columns)

    def to_dataframe(self, columns: Sequence[str] | None = None) -> Any:
        """Return columns as a pandas DataFrame over time; by default q, qd, torques and the reference."""
        return to_dataframe(self, columns)

    def summary(self) -> str:
        """Return mechanism, method, status and exceeded limits in a few lines."""
        return "\n".join(summary_lines(self))

    def _repr_html_(self) -> str:
        """Return a picture and a table, for notebooks."""
        return picture("run_html")(self)

    def plot(self, columns: Sequence[str] | str | None = None, path: str | Path | None = None, **options):
        """Draw columns over time, one panel per coordinate; see `kinetree.plots.trajectory_plots.plot`."""
        return picture("plot")(self, columns, path, **options)

    def portraits(self, path: str | Path | None = None, **options):
        """Draw joint velocities over coordinates; see `kinetree.plots.trajectory_plots.portraits`."""
        return picture("portraits")(self, path, **options)

    def animate(self, path: str | Path = "run.gif", **options) -> Path:
        """Write an animation, .gif or .mp4; see `kinetree.plots.animation.animate`."""
        return picture("animate")(self, path, **options)

    def replay(self, path: str | Path = "run.html", **options) -> Path:
        """Write a web page that replays the run in 3D; see `kinetree.page.writer.replay`."""
        return picture("replay")(self, path, **options)

    def page(self, path: str | Path | None = None, **options) -> Page:
        """Return a web page that replays the run and computes on from it; with a `path`, write it there.

        Notebooks show the page, and `.save("page.html")` writes it. It takes the options of `replay`, and `kernel`.
        """
        return picture("run_page")(self, path, **options)


# --- Reading of runs from files ---


def read_trajectory(path: str | Path, *, system: System | None = None) -> Trajectory:
    """Read a run that `save` wrote, with the System of the mechanism in the file, or with `system` if it is equal."""
    fields = read_fields(path, system)
    try:
        return Trajectory(**fields)
    except InputError as error:
        raise InputError(f"{path}: is damaged or not a trajectory ({error})") from None


# --- A run at other times: cubics through states and rates, with normalized quaternions ---


def resample(run: Trajectory, times: Numbers) -> dict[str, Numbers]:
    """Return the arrays of a run at times inside it.

    q is the cubic through the coordinates and their rates at both samples around a time. Its error is of the fourth
    order in the step. qd is the same cubic from the accelerations if the run has them, else the rate of the cubic of q,
    with an error of the third order. Torques, accelerations, wrenches, contacts and the reference are linear between
    samples.
    """
    if len(run) == 1:
        return {name: getattr(run, name) for name in [*run._given(), *_shared_columns(run)]}
    k = np.clip(np.searchsorted(run.t, times, side="right") - 1, 0, len(run) - 2)
    h = (run.t[k + 1] - run.t[k])[:, None]
    s = ((times - run.t[k])[:, None]) / h
    rate = run.system.coordinate_rate(run.q, run.qd, **call_options(run))
    mechanism = run.system.mechanism
    q0, q1, d0, d1 = run.q[..., k, :], run.q[..., k + 1, :], rate[..., k, :], rate[..., k + 1, :]
    for at in quaternions(mechanism):
        flip = np.where((q0[..., at] * q1[..., at]).sum(axis=-1, keepdims=True) < 0, -1.0, 1.0)
        q1[..., at] *= flip  # q and -q are the same rotation: take the shorter path
        d1[..., at] *= flip
    q = _cubic(q0, q1, d0, d1, h, s)
    if run.accelerations is not None:
        a = run.accelerations
        qd = _cubic(run.qd[..., k, :], run.qd[..., k + 1, :], a[..., k, :], a[..., k + 1, :], h, s)
    else:
        qd = _speeds(mechanism, q, _cubic_rate(q0, q1, d0, d1, h, s))
    for at in quaternions(mechanism):
        q[..., at] /= np.linalg.norm(q[..., at], axis=-1, keepdims=True)
    out = {"q": q, "qd": qd}
    for name in {*run._given(), *_shared_columns(run)} - set(out):
        values = getattr(run, name)
        if is_zeros(values):
            out[name] = np.broadcast_to(values.flat[0], (*run.shape, len(times), *values.shape[len(run.shape) + 1 :]))
            continue
        axis = 2 if name in ("wrenches", "contact_forces") else 1
        share = s[:, 0].reshape(-1, *(1,) * axis)
        before, after = (np.take(values, i, axis=-1 - axis) for i in (k, k + 1))
        out[name] = (1.0 - share) * before + share * after
    if run.parameters is not None and run.parameters_at_samples is run.parameters:
        out["parameters"] = run.parameters[np.searchsorted(run.t, times, side="right") - 1]  # constant between samples
    return out


def _shared_columns(run: Trajectory) -> list[str]:
    """Return the names of the arrays that all runs of a batch share."""
    return [] if run.reference is None else ["reference"]


def quaternions(mechanism: Mechanism) -> list[slice]:
    """Return the entries of the quaternions in q."""
    return [slice(k, k + 4) for k in quaternion_places(mechanism)]


def _cubic(a: Numbers, b: Numbers, da: Numbers, db: Numbers, h: Numbers, s: Numbers) -> Numbers:
    """Return the Hermite cubic at the fraction s of a step h."""
    r = 1.0 - s
    return r * r * (1.0 + 2.0 * s) * a + s * s * (3.0 - 2.0 * s) * b + h * s * r * (r * da - s * db)


def _cubic_rate(a: Numbers, b: Numbers, da: Numbers, db: Numbers, h: Numbers, s: Numbers) -> Numbers:
    """Return the rate of that cubic."""
    return 6.0 * s * (1.0 - s) * (b - a) / h + (1.0 - s) * (1.0 - 3.0 * s) * da + s * (3.0 * s - 2.0) * db


def _speeds(mechanism: Mechanism, q: Numbers, rate: Numbers) -> Numbers:
    """Return qd for coordinates, whose quaternions may have any length, and their rates."""
    parts = []
    for joint, at in zip(mechanism.joints, mechanism.q_slices, strict=True):
        kind = joint_kinds.kind(joint.kind)
        own, change = q[..., at], rate[..., at]
        if kind.QUATERNION is None:
            parts.append(change)
            continue
        turn = _entries(own[..., -4:] / np.linalg.norm(own[..., -4:], axis=-1, keepdims=True))
        size = np.linalg.norm(own[..., -4:], axis=-1)
        w = product(conjugate(turn), _entries(change[..., -4:]))[:3]  # w/2 = conj(q) o dq; the part along q drops out
        parts.append(np.stack([2.0 * x / size for x in w], axis=-1))
        if kind.QUATERNION:  # a position comes first: its velocity is in the body's axes
            parts.append(np.stack(rotated(transpose(from_quaternion(turn)), _entries(change[..., :3])), axis=-1))
    return np.concatenate(parts, axis=-1) if parts else rate


def _entries(values: Numbers) -> tuple[Any, ...]:
    return tuple(np.moveaxis(values, -1, 0))
