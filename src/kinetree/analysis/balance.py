"""Balance: torques that hold a mechanism, with and without its springs, and what its motion does to the ground.

The shaking force is minus the rate of the linear momentum of all bodies, the shaking moment minus that of the angular
momentum about a point of the ground: what a moving mechanism exerts on the ground beside its weight.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from math import prod
from typing import TYPE_CHECKING, Any

import numpy as np
from numpy.typing import ArrayLike

from .._support.checks import real_array, whole
from .._support.lazy_names import picture
from .._support.tables import Displayed, Table
from ..algebra.scalars import Numbers
from ..errors import InputError
from ..model.axes import axis_labels, axis_names, entries
from ..model.mechanism import Named, inputs_of, one_set
from ..runtime.compiled import CompiledMechanism
from .joint_entries import as_list
from .loops.actuation import actuated_torques, dofs
from .loops.batch_assembly import assemble
from .loops.independence import independent

if TYPE_CHECKING:
    from ..runtime.function import Function

SAMPLES = 61
"""The default number of positions of a joint."""


@dataclass(frozen=True, repr=False)
class Balance(Displayed):
    """Torques that hold a mechanism at rest over positions of one joint or two, with and without its forces.

    `over` has the joints with their positions, [n] each. The coordinates `q` [n, nq] or [n, m, nq] are those of the
    mechanism, and `residual` and `without` [..., na] the torques of the actuated axes: under the forces of the
    mechanism, and under gravity alone [N m, N].
    """

    mechanism: str
    over: tuple[tuple[str, Numbers], ...]
    over_units: tuple[str, ...]
    axes: tuple[str, ...]
    units: tuple[str, ...]
    q: Numbers
    residual: Numbers
    without: Numbers

    @property
    def peak(self) -> Numbers:
        """The largest residual torque of each axis, [na]."""
        return self._largest(self.residual)

    @property
    def rms(self) -> Numbers:
        """The root of the mean square of the residual torque of each axis, [na]."""
        return self._mean(self.residual)

    @property
    def peak_without(self) -> Numbers:
        """The largest torque of each axis without the forces, [na]."""
        return self._largest(self.without)

    @property
    def rms_without(self) -> Numbers:
        """The root of the mean square of the torque of each axis without the forces, [na]."""
        return self._mean(self.without)

    def rows(self) -> list[tuple[str, ...]]:
        """Return one row per axis: its name and unit, then peak and RMS with and without the forces."""
        numbers = zip(self.peak, self.rms, self.peak_without, self.rms_without, strict=True)
        names = zip(self.axes, self.units, strict=True)
        return [(axis, unit, *(f"{x:.4g}" for x in row)) for (axis, unit), row in zip(names, numbers, strict=True)]

    def plot(self, path: object = None, **options: object) -> Any:
        """Draw the torques, curves over one joint or maps over two; return the figure, or write it to `path`."""
        return picture("balance_plot")(self, path, **options)

    def display(self) -> list[str | Table]:
        """Return a table of peak and RMS torques."""
        over = " and ".join(name for name, _ in self.over)
        heads = ("joint", "unit", "peak", "RMS", "peak without", "RMS without")
        text = f"{self.mechanism}: torques at rest over {over}, under gravity and forces, and without the forces"
        return [text, Table(heads, tuple(self.rows()))]

    def _largest(self, x: Numbers) -> Numbers:
        return np.abs(x).reshape(-1, x.shape[-1]).max(axis=0)

    def _mean(self, x: Numbers) -> Numbers:
        return np.sqrt(np.mean(x.reshape(-1, x.shape[-1]) ** 2, axis=0))


def balance(
    system: CompiledMechanism,
    over: Mapping[str, ArrayLike],
    *,
    actuated: str | Iterable[str] | None = None,
    q: ArrayLike | None = None,
    parameters: Named | None = None,
    samples: int = SAMPLES,
) -> Balance:
    """Return the torques that hold a mechanism over positions of one joint or two: (low, high), or an array of them.

    All other joints stay at `q`, by default at zero displacement; those of a closed mechanism follow its loops, from
    its assembled position. `actuated` are the joints that hold it, by default all, or the independent ones.
    """
    values = one_set(system.mechanism, parameters, "balance")
    axes = tuple((str(name), _positions(system, name, given, samples)) for name, given in _one_or_two(over).items())
    grid = dict(zip((name for name, _ in axes), np.meshgrid(*(x for _, x in axes), indexing="ij"), strict=True))
    states, leads = _states(system, grid, q, values)
    if actuated is None:
        actuated = leads or [j.name for j in system.joints]
    driven = dofs(system.mechanism, actuated)
    more: dict[str, Any] = {} if values is None else {"parameters": values}
    held = [_held(system, states, actuated, more | {"forces": forces})[..., driven] for forces in (True, False)]
    labels, units = axis_labels(system.mechanism, 1), [unit for _, _, unit in axis_names(system.mechanism, 1)]
    return Balance(
        system.mechanism.name,
        axes,
        tuple(units[entries(system.mechanism, name, 1)[0]] for name, _ in axes),
        tuple(labels[k] for k in driven),
        tuple("N m" if units[k] == "rad" else "N" for k in driven),
        states,
        *held,
    )


def _one_or_two(over: Mapping[str, ArrayLike]) -> Mapping[str, ArrayLike]:
    if not isinstance(over, Mapping) or not 1 <= len(over) <= 2:
        raise InputError(f"over is {over!r}; give the range of one joint or two, such as {{'elbow': (-1.5, 1.5)}}")
    return over


def _positions(system: CompiledMechanism, name: str, given: object, samples: int) -> Numbers:
    """Return the positions of a joint: evenly spaced between two bounds, or as given."""
    if len(entries(system.mechanism, name, 0)) != 1:
        raise InputError(f"over: {name!r} has several coordinates; name a joint with one, or one of its axes")
    found = real_array(given, f"over: {name!r}")
    if found.ndim != 1 or len(found) < 2 or not np.isfinite(found).all():
        raise InputError(f"over: {name!r} is {given!r}; give two bounds (low, high), or an array of positions")
    if len(found) > 2:
        return found
    if not found[0] < found[1]:
        raise InputError(f"over: {name!r} is {given!r}; give the lower bound first")
    return np.linspace(found[0], found[1], whole(samples, "samples", least=2, most=100_000))


def _states(
    system: CompiledMechanism, grid: Mapping[str, Numbers], q: ArrayLike | None, parameters: Numbers | None
) -> tuple[Numbers, list[str]]:
    """Return coordinates [..., nq] of the grid, and the joints that determine them, none for a tree."""
    m, shape = system.mechanism, next(iter(grid.values())).shape
    if not system.closures:
        start = system.neutral() if q is None else np.asarray(q, dtype=float)
        if start.shape != (system.nq,):
            raise InputError(f"q has shape {start.shape}; expected one position, ({system.nq},)")
        out = np.broadcast_to(start, (*shape, system.nq)).copy()
        for name, values in grid.items():
            out[..., entries(m, name, 0)[0]] = values
        return out, []
    start = assemble(system, q, parameters=parameters)
    labels = axis_labels(m, 0)
    names = list(independent(system, start, prefer=list(grid), parameters=parameters).names)
    if not set(names) <= set(labels):  # velocities of quaternions are not coordinates, which could be held
        singles = [joint.name for joint in m.joints if joint.name in labels]
        names = list(independent(system, start, prefer=[*grid, *singles], parameters=parameters).names)
    if loose := [name for name in names if name not in labels]:
        raise InputError(f"over: joints with one coordinate do not determine the position; {loose[0]!r} remains free")
    missing = [name for name in grid if name not in names]
    if missing:
        raise InputError(f"over: the loops determine {missing[0]!r}; choose among {', '.join(names)}")
    hold = {name: grid.get(name, np.full(shape, start[labels.index(name)])) for name in names}
    return assemble(system, start, hold, follow=True, parameters=parameters), names


def _held(system: CompiledMechanism, q: Numbers, actuated: str | Iterable[str], options: dict[str, Any]) -> Numbers:
    """Return the torques that hold the mechanism at rest, [..., nv]."""
    if not system.closures:
        return np.asarray(system.gravity_torque(q, **options), dtype=float)
    rest = np.zeros((prod(q.shape[:-1]), system.nv)).reshape(*q.shape[:-1], system.nv)
    return actuated_torques(system, q, rest, rest, as_list(actuated), **options)


@dataclass(frozen=True, repr=False)
class Shaking(Displayed):
    """Shaking force [..., 3] in N and shaking moment [..., 3] in N m about the point `about` of the ground."""

    mechanism: str
    force: Numbers
    moment: Numbers
    about: Numbers

    @property
    def peaks(self) -> tuple[float, float]:
        """The largest magnitudes of force and moment."""
        force, moment = (float(x.max(initial=0.0)) for x in self._sizes)
        return force, moment

    @property
    def rms(self) -> tuple[float, float]:
        """The roots of the mean squares of force and moment over all samples."""
        force, moment = (float(np.sqrt(np.mean(x * x))) for x in self._sizes)
        return force, moment

    @property
    def _sizes(self) -> tuple[Numbers, Numbers]:
        return np.linalg.norm(self.force, axis=-1), np.linalg.norm(self.moment, axis=-1)

    def display(self) -> list[str | Table]:
        """Return a table of peak and RMS."""
        rows = [
            (name, unit, f"{a:.4g}", f"{b:.4g}")
            for name, unit, a, b in zip(("force", "moment"), ("N", "N m"), self.peaks, self.rms, strict=True)
        ]
        place = ", ".join(f"{x:.4g}" for x in self.about)
        text = f"{self.mechanism}: shaking force, and shaking moment about ({place})"
        return [text, Table(("", "unit", "peak", "RMS"), tuple(rows))]


def shaking(
    system: CompiledMechanism,
    q: ArrayLike,
    qd: ArrayLike,
    qdd: ArrayLike,
    *,
    about: ArrayLike = (0.0, 0.0, 0.0),
    parameters: Named | None = None,
) -> Shaking:
    """Return what a motion [..., nv] of a mechanism exerts on the ground beside its weight, about a point [m].

    With h(q, qd) the momenta of all bodies, in the axes of the ground, these are -dh/dt, exact derivatives along the
    motion. The accelerations of a closed mechanism are those of all joints. Rotors that are armatures have none.
    """
    point = real_array(about, "about")
    if point.shape != (3,) or not np.isfinite(point).all():
        raise InputError(f"about is {about!r}; give a point (x, y, z) of the ground [m]")
    m = system.mechanism
    values = inputs_of(m, parameters)
    more = () if values is None else (values,)
    q, qd, qdd = (np.asarray(x, dtype=float) for x in (q, qd, qdd))
    rate = np.asarray(_momentum(system)(q, qd, *more, qd, qdd))
    force, moment = -rate[..., 3:], -rate[..., :3]
    return Shaking(system.mechanism.name, force, moment - np.cross(point, force), point)


def _momentum(system: CompiledMechanism) -> Function:
    """Return the function of the rate of the momenta, compiled once."""
    return system.function("momentum").jvp(("q", "qd"))
