"""Samplings of one quantity of a study: grids, Latin hypercubes, Sobol sequences, random numbers, given values."""

from __future__ import annotations

import hashlib
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import ArrayLike

from .._support.checks import number, positive, real_array, whole
from .._support.optional import optional
from ..algebra.scalars import Numbers
from ..errors import InputError, brief, unknown_name

# --- Random numbers by index: number i of a stream depends on the seed, the name of the stream and i alone ---
#
# Thus any part of a study can be computed anywhere, in any order, with the same bits.

WORDS = 4
"""The number of 64-bit words that Philox makes from one value of its counter."""

ROUNDS = 8
"""The rounds of the Feistel network of a permutation: four make it pseudorandom, eight also for small counts."""


def key(seed: int, name: str) -> int:
    """Return the 128-bit key of a stream."""
    return int.from_bytes(hashlib.blake2b(f"{seed}\n{name}".encode(), digest_size=16).digest(), "little")


def uniforms(seed: int, name: str, start: int, stop: int) -> Numbers:
    """Return the numbers start to stop - 1 of a stream, uniform in the open interval (0, 1)."""
    from numpy.random import Philox

    first = start // WORDS
    raw = Philox(key=key(seed, name), counter=first).random_raw((-(-stop // WORDS) - first) * WORDS)
    return ((raw[start - first * WORDS : stop - first * WORDS] >> np.uint64(11)).astype(float) + 0.5) * 2.0**-53


def permute(seed: int, name: str, indices: np.ndarray, count: int) -> np.ndarray:
    """Return the images of indices under a random permutation of 0 to count - 1, without a table of it.

    A Feistel network permutes the numbers of an even count of bits. Images beyond the count are permuted again until
    they are below it, which makes a permutation of the count.
    """
    half = np.uint64(max(1, -(-(count - 1).bit_length() // 2)))
    mask = np.uint64((1 << int(half)) - 1)
    keys = np.frombuffer(hashlib.blake2b(f"{seed}\n{name}".encode(), digest_size=8 * ROUNDS).digest(), dtype="<u8")
    out = np.asarray(indices).astype(np.uint64)
    beyond = np.ones(out.shape, dtype=bool)
    while beyond.any():
        left, right = out[beyond] >> half, out[beyond] & mask
        for one in keys:
            left, right = right, left ^ (_mix_bits(right ^ one) & mask)
        out[beyond] = (left << half) | right
        beyond = out >= count
    return out.astype(np.int64)


def sobol_points(seed: int, names: Sequence[str], start: int, stop: int) -> Numbers:
    """Return points of a scrambled Sobol sequence in the unit cube with an axis per name, [stop - start, names]."""
    from scipy.stats import qmc

    sequence = qmc.Sobol(len(names), scramble=True, rng=np.random.default_rng(key(seed, "\n".join(names))))
    if start:
        sequence.fast_forward(start)
        return sequence.random(stop - start)
    first = sequence.random(1)  # SciPy warns of a first request whose count is not a power of two
    return np.concatenate([first, sequence.random(stop - 1)]) if stop > 1 else first


def _mix_bits(x: np.ndarray) -> np.ndarray:
    """Return 64-bit numbers with their bits mixed (the last step of SplitMix64)."""
    x = (x ^ (x >> np.uint64(30))) * np.uint64(0xBF58476D1CE4E5B9)
    x = (x ^ (x >> np.uint64(27))) * np.uint64(0x94D049BB133111EB)
    return x ^ (x >> np.uint64(31))


VALUES = 1_000_000
"""The largest number of values of a grid, which are kept as a list."""


@dataclass(frozen=True)
class Grid:
    """Values of an axis of a grid: each is combined with all values of the other quantities."""

    values: tuple[float, ...]


@dataclass(frozen=True)
class Given:
    """Values by sample, from a column of a table."""

    values: tuple[float, ...]

    def at(self, seed: int, name: str, start: int, stop: int, count: int) -> Numbers:
        """Return the values of samples start to stop - 1 of `count`."""
        return np.array(self.values[start:stop])


@dataclass(frozen=True)
class Latin:
    """A Latin hypercube: of n samples, one is in each n-th part of the interval from lo to hi."""

    lo: float
    hi: float

    def at(self, seed: int, name: str, start: int, stop: int, count: int) -> Numbers:
        """Return the values of samples start to stop - 1 of `count`."""
        parts = permute(seed, f"latin {name}", np.arange(start, stop), count)
        return self.quantile((parts + uniforms(seed, name, start, stop)) / count)

    def quantile(self, parts: Numbers) -> Numbers:
        """Return the values below which parts of all samples are."""
        return _within(self, parts)


@dataclass(frozen=True)
class Uniform:
    """Independent random numbers, uniform from lo to hi."""

    lo: float
    hi: float

    def at(self, seed: int, name: str, start: int, stop: int, count: int) -> Numbers:
        """Return the values of samples start to stop - 1."""
        return self.quantile(uniforms(seed, name, start, stop))

    def quantile(self, parts: Numbers) -> Numbers:
        """Return the values below which parts of all samples are."""
        return _within(self, parts)


@dataclass(frozen=True)
class Normal:
    """Independent random numbers, normal with a mean and a standard deviation."""

    mean: float
    deviation: float

    def at(self, seed: int, name: str, start: int, stop: int, count: int) -> Numbers:
        """Return the values of samples start to stop - 1."""
        return self.quantile(uniforms(seed, name, start, stop))

    def quantile(self, parts: Numbers) -> Numbers:
        """Return the values below which parts of all samples are."""
        from scipy.special import ndtri

        return self.mean + self.deviation * ndtri(parts)


@dataclass(frozen=True)
class Sobol:
    """An axis of a scrambled Sobol sequence from lo to hi, together with the other Sobol axes of the study."""

    lo: float
    hi: float

    def quantile(self, parts: Numbers) -> Numbers:
        """Return the values below which parts of all samples are."""
        return _within(self, parts)


Sampling = Grid | Given | Latin | Uniform | Normal | Sobol


def grid(lo: ArrayLike, hi: float | None = None, n: int | None = None, *, log: bool = False) -> Grid:
    """Return n evenly spaced values from lo to hi, with both; or the values of a list.

    With `log`, the ratios of neighbors are equal instead of their differences. A study has all combinations of its
    grids.
    """
    if hi is None and n is None:
        values = np.atleast_1d(real_array(lo, "the values of grid"))
        if values.ndim != 1 or not values.size:
            raise InputError(f"grid has values of shape {values.shape}; give a list of one or more numbers")
        if not np.isfinite(values).all():
            raise InputError("grid has values that are not finite")
        return Grid(tuple(map(float, values)))
    if hi is None or n is None:
        raise InputError("grid needs lo, hi and the number of values, grid(0.0, 1.0, 11), or a list of values")
    first, last = number(lo, "the lo of grid"), number(hi, "the hi of grid")
    count = whole(n, "the n of grid", most=VALUES, of="values")
    if count > 1 and first == last:
        raise InputError(f"grid has {count} values from {first:g} to {last:g}; give two different ends, or n = 1")
    if log:
        first, last = positive(first, "the lo of grid with log"), positive(last, "the hi of grid with log")
        return Grid(tuple(map(float, np.geomspace(first, last, count))))
    return Grid(tuple(map(float, np.linspace(first, last, count))))


def latin(lo: float, hi: float) -> Latin:
    """Return a Latin hypercube from lo to hi: of n samples, one is in each n-th part of the interval."""
    return Latin(*_interval(lo, hi, "latin"))


def sobol(lo: float, hi: float) -> Sobol:
    """Return an axis of a scrambled Sobol sequence, which fills the space of all Sobol axes evenly."""
    return Sobol(*_interval(lo, hi, "sobol"))


def uniform(lo: float, hi: float) -> Uniform:
    """Return independent random numbers, uniform from lo to hi."""
    return Uniform(*_interval(lo, hi, "uniform"))


def normal(mean: float, deviation: float) -> Normal:
    """Return independent random numbers, normal with a mean and a standard deviation."""
    return Normal(number(mean, "the mean of normal"), positive(deviation, "the deviation of normal"))


def table(columns: Mapping[str, ArrayLike] | None = None, **more: ArrayLike) -> dict[str, Given]:
    """Return the columns of a table as the `over` of a study: row i has the values of sample i, by name."""
    given = {**(columns or {}), **more}
    out = {}
    for name, values in given.items():
        array = real_array(values, f"the column {name!r} of table")
        if array.ndim != 1 or not array.size or not np.isfinite(array).all():
            raise InputError(f"the column {name!r} of table is {brief(values)}; give a list of finite numbers")
        out[name] = Given(tuple(map(float, array)))
    lengths = {name: len(column.values) for name, column in out.items()}
    if len(set(lengths.values())) > 1:
        raise InputError(f"the columns of table have different lengths: {lengths}; give one value per row")
    if not out:
        raise InputError("table has no columns; give values by name: table(k=[100.0, 200.0])")
    return out


def read_sampling(given: object, name: str) -> Sampling:
    """Return the sampling of a quantity as given: a sampling, or a list of values for a grid."""
    if isinstance(given, Sampling):
        return given
    if isinstance(given, list | np.ndarray):
        return grid(given)
    raise InputError(
        f"{name!r} varies over {brief(given)}; give a sampling such as grid(lo, hi, n), latin(lo, hi) or sobol(lo, hi)"
    )


def _interval(lo: float, hi: float, who: str) -> tuple[float, float]:
    ends = number(lo, f"the lo of {who}"), number(hi, f"the hi of {who}")
    if ends[0] >= ends[1]:
        raise InputError(f"{who} goes from {ends[0]:g} to {ends[1]:g}; give lo below hi")
    return ends


def _within(own: Latin | Uniform | Sobol, parts: Numbers) -> Numbers:
    return own.lo + (own.hi - own.lo) * parts


# --- Samplings for sensitivity indices: the schemes of Saltelli (Sobol indices) and Morris, made by SALib ---

Axes = tuple[tuple[str, Sampling], ...]
"""The sampling of each quantity by name."""

METHODS = ("sobol", "morris")
SAMPLES = {"sobol": 1024, "morris": 100}
MOST = 2**24
"""The largest number of samples: SALib makes the values of all runs at once."""
"""The base samples, or trajectories, by default."""


@dataclass(frozen=True)
class Scheme:
    """The scheme of a sensitivity study: its quantities with bounds, and the blocks in which its runs are ordered."""

    method: str
    names: tuple[str, ...]
    bounds: tuple[tuple[float, float], ...]
    kinds: tuple[str, ...]
    samples: int
    seed: int
    second_order: bool = False
    levels: int = 4

    @property
    def block(self) -> int:
        """The number of runs per base sample, or per trajectory."""
        count = len(self.names)
        if self.method == "morris":
            return count + 1
        return 2 * count + 2 if self.second_order else count + 2

    @property
    def problem(self) -> dict[str, object]:
        """The description of the quantities for SALib."""
        return {
            "num_vars": len(self.names),
            "names": list(self.names),
            "bounds": [list(pair) for pair in self.bounds],
            "dists": list(self.kinds),
        }

    def points(self) -> np.ndarray:
        """Return the values of all runs, [runs, quantities]."""
        if self.method == "morris":
            sample = optional("SALib.sample.morris", "Sensitivity studies", "studies").sample
            return sample(self.problem, self.samples, num_levels=self.levels, seed=self.seed)
        sample = optional("SALib.sample.sobol", "Sensitivity studies", "studies").sample
        return sample(self.problem, self.samples, calc_second_order=self.second_order, seed=self.seed)

    def as_dict(self) -> dict[str, Any]:
        """Return the scheme as plain data for files."""
        return {
            "method": self.method,
            "names": list(self.names),
            "bounds": [list(pair) for pair in self.bounds],
            "kinds": list(self.kinds),
            "samples": self.samples,
            "seed": self.seed,
            "second_order": self.second_order,
            "levels": self.levels,
        }


@dataclass(frozen=True)
class Planned(Given):
    """Values of a quantity by run, from a scheme."""

    scheme: Scheme


def sensitivity(
    over: Mapping[str, object],
    *,
    method: str = "sobol",
    samples: int | None = None,
    seed: int = 0,
    second_order: bool = False,
    levels: int = 4,
) -> dict[str, Planned]:
    """Return samplings for `study` whose results give sensitivity indices: study(..., over=sensitivity({...})).

    `over` has intervals (lo, hi) by quantity, or `uniform` and `normal` samplings. The "sobol" method gives the shares
    of the variance of a measure, from `samples` (a power of two, 1024) times the number of quantities plus two runs;
    with `second_order`, also the shares of pairs, from about twice as many. The "morris" method gives mean effects,
    from `samples` (100) trajectories in a grid of `levels`, each with one run more than quantities. SALib makes the
    values.
    """
    if method not in METHODS:
        raise unknown_name("method of sensitivity", str(method), METHODS)
    if not isinstance(over, Mapping) or len(over) < 2:
        raise InputError(f"over is {brief(over)}; give intervals of two or more quantities: {{'k': (0.0, 900.0), ...}}")
    count = whole(SAMPLES[method] if samples is None else samples, "samples", least=2, most=MOST)
    if method == "sobol" and count & (count - 1):
        raise InputError(f"samples is {count}; the Sobol sequence is balanced for powers of two: give 1024, or 2048")
    steps = whole(levels, "levels", least=2, most=VALUES)
    if steps % 2:
        raise InputError(f"levels is {steps}; give an even number, such as 4")
    axes = [_axis(str(name), given, method) for name, given in over.items()]
    scheme = Scheme(
        method,
        tuple(map(str, over)),
        tuple(pair for pair, _ in axes),
        tuple(kind for _, kind in axes),
        count,
        whole(seed, "seed", least=0),
        bool(second_order),
        steps,
    )
    points = scheme.points()
    return {name: Planned(tuple(map(float, points[:, k])), scheme) for k, name in enumerate(scheme.names)}


def _axis(name: str, given: object, method: str) -> tuple[tuple[float, float], str]:
    if isinstance(given, Normal) and method == "sobol":
        return (given.mean, given.deviation), "norm"
    if isinstance(given, Uniform):
        return (given.lo, given.hi), "unif"
    if isinstance(given, tuple | list) and len(given) == 2:
        low, high = (number(x, f"a bound of {name!r}") for x in given)
        if low < high:
            return (low, high), "unif"
    more = " or normal(mean, deviation)" if method == "sobol" else ""
    raise InputError(f"{name!r} varies over {brief(given)}; give an interval (lo, hi) with lo below hi{more}")


def distributions(over: Axes) -> dict[str, Normal | tuple[float, float]]:
    """Return intervals and normal distributions of the quantities of a space; grids and tables have none."""
    out: dict[str, Normal | tuple[float, float]] = {}
    for name, own in over:
        if isinstance(own, Grid | Given):
            raise InputError(
                f"{name!r} is on a grid or in a table, and has no distribution; sample it by uniform, latin, sobol or "
                "normal for sensitivity"
            )
        out[name] = own if isinstance(own, Normal) else (own.lo, own.hi)
    return out


def scheme_of(over: Axes) -> Scheme | None:
    """Return the scheme of a space whose quantities all belong to one; None for other studies."""
    found = {own.scheme if isinstance(own, Planned) else None for _, own in over}
    one = found.pop() if len(found) == 1 else None
    return one if one is not None and one.names == tuple(name for name, _ in over) else None
