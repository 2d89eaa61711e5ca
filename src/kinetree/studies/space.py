"""The space of a study: the quantities that vary, and the values of each in every run."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from functools import cached_property
from math import prod

import numpy as np

from .._support.checks import whole
from ..algebra.scalars import Numbers
from ..compiler.ir.program import Program
from ..compiler.ir.trace import Op
from ..errors import InputError, brief, unknown_name
from ..joints import kind
from ..model.axes import axis_labels, axis_names
from ..model.mechanism import Mechanism
from ..results.files.content import memory
from ..system import System
from .samplings import Given, Grid, Sampling, Sobol, read_sampling, sobol_points

SAMPLE = "sample"
"""The dimension of samples beside grids."""
RUN = "run"
"""The dimension of samples without grids."""
NUMBERS = 24
"""The memory of the least results of a run [bytes]: a quantity, a measure and the time of a failure."""


@dataclass(frozen=True)
class Space:
    """Quantities with their samplings, the number of samples, and the seed of random numbers.

    The runs are all combinations of the values of the grids with the samples; the last dimension varies fastest.
    """

    over: tuple[tuple[str, Sampling], ...]
    samples: int = 1
    seed: int = 0

    @cached_property
    def dims(self) -> dict[str, int]:
        """The sizes of the dimensions by name: one per grid, then the number of samples, if there are any."""
        found = {name: len(own.values) for name, own in self.over if isinstance(own, Grid)}
        if len(found) < len(self.over):
            found[SAMPLE if found else RUN] = self.samples
        return found

    @property
    def shape(self) -> tuple[int, ...]:
        """The sizes of the dimensions."""
        return tuple(self.dims.values())

    @property
    def runs(self) -> int:
        """The number of runs."""
        return prod(self.shape)

    @property
    def names(self) -> tuple[str, ...]:
        """The names of the quantities."""
        return tuple(name for name, _ in self.over)

    def dims_of(self, name: str) -> tuple[str, ...]:
        """Return the dimension along which a quantity varies, as a tuple of one."""
        return (name,) if isinstance(dict(self.over)[name], Grid) else (list(self.dims)[-1],)

    def values(self, start: int, stop: int) -> dict[str, Numbers]:
        """Return the values of all quantities in the runs start to stop - 1, by name."""
        places = dict(zip(self.dims, np.unravel_index(np.arange(start, stop), self.shape), strict=True))
        out = {name: np.array(own.values)[places[name]] for name, own in self.over if isinstance(own, Grid)}
        if len(out) < len(self.over) and stop > start:
            at = places[list(self.dims)[-1]]
            low, high = int(at.min()), int(at.max()) + 1
            out |= {name: x[at - low] for name, x in self.sampled(low, high).items()}
        return {name: out.get(name, np.zeros(0)) for name in self.names}

    def sampled(self, start: int, stop: int) -> dict[str, Numbers]:
        """Return the values of all quantities that are not on grids, for samples start to stop - 1."""
        axes = [name for name, own in self.over if isinstance(own, Sobol)]
        points = sobol_points(self.seed, axes, start, stop) if axes else np.zeros((stop - start, 0))
        out = {}
        for name, own in self.over:
            if isinstance(own, Sobol):
                out[name] = own.quantile(points[:, axes.index(name)])
            elif not isinstance(own, Grid):
                out[name] = own.at(self.seed, name, start, stop, self.samples)
        return out


def space_of(over: object, samples: int | None, seed: int) -> Space:
    """Return the space of a study from the arguments of `study`."""
    if not isinstance(over, Mapping) or not over:
        raise InputError(f"over is {brief(over)}; give samplings by name, such as {{'k': grid(0.0, 1e3, 11)}}")
    found = tuple((str(name), read_sampling(given, str(name))) for name, given in over.items())
    rows = {len(own.values) for _, own in found if isinstance(own, Given)}
    if len(rows) > 1:
        raise InputError(f"over has tables of {sorted(rows)} rows; give tables of the same length")
    drawn = [name for name, own in found if not isinstance(own, Grid | Given)]
    if drawn and samples is None and not rows:
        raise InputError(f"samples is missing: {drawn[0]!r} is sampled; give the number of samples, samples=1000")
    if samples is not None and not drawn and not rows:
        raise InputError("samples is given, but all quantities are on grids; leave samples out")
    count = whole(samples, "samples") if samples is not None else next(iter(rows), 1)
    if rows and count not in rows:
        raise InputError(f"samples is {count}, but the table has {rows.pop()} rows; leave samples out")
    space = Space(found, count, whole(seed, "seed", least=0))
    if NUMBERS * space.runs > memory():
        raise InputError(
            f"the study has more runs than this machine can keep the results of, {memory() // NUMBERS:,}; give fewer "
            "samples, or fewer values of grids"
        )
    return space


# --- The varied quantities of a study along its dimensions, computed when they are first used ---


class Varied(Mapping[str, tuple[str, Numbers]]):
    """The quantities of a space by name, each with its dimension and its values along it.

    All samples of a million runs take a second of one core, for which the workers of a study would wait.
    """

    def __init__(self, space: Space) -> None:
        """Take the space of a study."""
        self._space = space

    @cached_property
    def _sampled(self) -> dict[str, Numbers]:
        return self._space.sampled(0, self._space.samples)

    def __getitem__(self, name: str) -> tuple[str, Numbers]:
        """Return the dimension of a quantity, and its values along it."""
        own = dict(self._space.over)[name]
        return self._space.dims_of(name)[0], np.array(own.values) if isinstance(own, Grid) else self._sampled[name]

    def __iter__(self) -> Iterator[str]:
        """Iterate over the names of the quantities."""
        return iter(self._space.names)

    def __len__(self) -> int:
        """Return the number of quantities."""
        return len(self._space.names)

    def __repr__(self) -> str:
        """Return the quantities as a dictionary prints them."""
        return repr(dict(self))


# --- What the names of a space vary: free parameters, initial coordinates and velocities ---


@dataclass(frozen=True)
class Quantities:
    """The entries of varied quantities by name: of the free parameters, of q, and of qd."""

    parameters: Mapping[str, int]
    q: Mapping[str, int]
    qd: Mapping[str, int]
    units: Mapping[str, str]

    @property
    def starts(self) -> tuple[str, ...]:
        """The names of the initial coordinates and velocities."""
        return (*self.q, *self.qd)

    def parameter_values(self, nominal: Numbers | None, values: Mapping[str, Numbers]) -> Numbers | None:
        """Return the free parameters of all runs [n, np], or the nominal ones [np] if none of them varies."""
        if nominal is None or not self.parameters:
            return nominal
        count = len(next(iter(values.values())))
        out = np.repeat(nominal[None], count, axis=0)
        for name, k in self.parameters.items():
            out[:, k] = values[name]
        return out


def quantities(mechanism: Mechanism, names: Iterable[str]) -> Quantities:
    """Return the entries of quantities; an unknown name raises an error with the nearest known one."""
    free = {p.name: k for k, p in enumerate(mechanism.free_parameters)}
    labels = [
        {f"{sort}.{label}": k for k, label in enumerate(axis_labels(mechanism, which))}
        for which, sort in enumerate(("q", "qd"))
    ]
    units = {p.name: p.unit for p in mechanism.free_parameters}
    for which, end in ((0, ""), (1, "/s")):
        units |= {
            name: unit + end for name, (_, _, unit) in zip(labels[which], axis_names(mechanism, which), strict=True)
        }
    found: tuple[dict[str, int], dict[str, int], dict[str, int]] = ({}, {}, {})
    for name in names:
        for known, own in zip((free, *labels), found, strict=True):
            if name in known:
                own[name] = known[name]
                break
        else:
            raise unknown_name("free parameter or initial state", name, [*free, *labels[0], *labels[1]])
    for name in found[0 + 1]:
        _refuse_quaternion(mechanism, name)
    return Quantities(*found, {name: units[name] for own in found for name in own})


def _refuse_quaternion(mechanism: Mechanism, name: str) -> None:
    joint = name.removeprefix("q.")
    for own in mechanism.joints:
        if own.name in (joint, joint.rpartition(".")[0]) and kind(own.kind).QUATERNION is not None:
            raise InputError(
                f"{name!r} is a coordinate of a joint that rotates by a quaternion; vary velocities of {own.name!r}, "
                "or a parameter of its placement"
            )


# --- Free parameters in the equations of loops: designs that differ in others only move in the same way ---


def depends_on_parameters(system: System, entries: Sequence[int]) -> bool:
    """Return whether the equations of the loops contain some of the free parameters, by their entries."""
    if not system.closures or not entries:
        return False
    program = system.function("closure_residual").program
    if not isinstance(program, Program):  # rolled code: not examined
        return True
    group = [array.name for array in program.inputs].index("parameters")
    return any(op[0] is Op.INPUT and op[1] == group and op[2] in entries for op in program.ops)
