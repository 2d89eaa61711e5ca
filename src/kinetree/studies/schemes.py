"""Samplings for sensitivity indices: the schemes of Saltelli (Sobol indices) and Morris, made by SALib."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

import numpy as np

from .._support.checks import number, whole
from .._support.optional import optional
from ..errors import InputError, brief, unknown_name
from .samplings import VALUES, Given, Grid, Normal, Sampling, Uniform

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
    def problem(self) -> dict[str, Any]:
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
        method, tuple(map(str, over)), tuple(pair for pair, _ in axes), tuple(kind for _, kind in axes), count,
        whole(seed, "seed", least=0), bool(second_order), steps,
    )  # fmt: skip
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
