"""Sensitivity indices of a measure, by SALib: Sobol's shares of the variance, and Morris' elementary effects."""

from __future__ import annotations

from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Any

import numpy as np
from numpy.typing import NDArray

from ..._support.checks import number
from ..._support.lazy_names import picture
from ..._support.optional import optional
from ..._support.tables import Displayed, Table
from ...algebra.scalars import Numbers
from ...errors import InputError, unknown_name
from ..samplings import Scheme

if TYPE_CHECKING:
    from ...plots.figures import Picture
    from ..study import Study

RESAMPLES = 400
"""The number of bootstrap samples of confidence intervals."""


@dataclass(frozen=True, eq=False, repr=False)
class Indices(Displayed):
    """Sensitivity indices of a measure by quantity, each with the half width of its confidence interval.

    The "sobol" method has `first` order shares of the variance, `total` ones with all interactions, and `second` order
    shares [n, n] if the scheme has them. The "morris" method has `mean` effects over the whole interval of a quantity,
    their mean magnitude `effect`, and their standard deviation `spread`. Of `planned` base samples, `used` have results
    of all their runs.
    """

    measure: str
    unit: str
    method: str
    names: tuple[str, ...]
    values: dict[str, Numbers]
    margins: dict[str, Numbers]
    confidence: float
    used: int
    planned: int

    def __getitem__(self, name: str) -> Numbers:
        """Return indices by name: "first", "total" or "second"; "mean", "effect" or "spread"."""
        if name not in self.values:
            raise unknown_name(f"index of the {self.method} method", str(name), self.values)
        return self.values[name]

    @property
    def main(self) -> str:
        """The index by which quantities are ranked: "total" or "effect"."""
        return "total" if self.method == "sobol" else "effect"

    @property
    def order(self) -> list[int]:
        """The quantities from the most to the least important."""
        return np.argsort(-self[self.main], kind="stable").tolist()

    def plot(self, path: str | Path | None = None, **options: object) -> Picture | Path:
        """Draw the indices as bars with their confidence intervals."""
        return picture("indices_plot")(self, path, **options)

    def display(self) -> list[str | Table]:
        """Return a row per quantity, the most important first."""
        columns = [name for name, x in self.values.items() if x.ndim == 1]
        rows = []
        for k in self.order:
            parts = (
                f"{self[name][k]:.4g}" + (f" +- {self.margins[name][k]:.2g}" if name in self.margins else "")
                for name in columns
            )
            rows.append((self.names[k], *parts))
        return [repr(self), Table(("", *columns), tuple(rows))]

    def __repr__(self) -> str:
        """Return the measure, the method and the number of samples on one line."""
        part = "" if self.used == self.planned else f" of {self.planned:,}"
        words = {"sobol": "base samples", "morris": "trajectories"}[self.method]
        return f"<Sensitivity of {self.measure!r} ({self.method}): {self.used:,}{part} {words}>"


def indices_of(study: Study, measure: str, *, confidence: float = 0.95, seed: int = 1) -> Indices:
    """Return the sensitivity indices of a measure; base samples with a run that failed are left out."""
    if measure not in study.measures:
        raise unknown_name("measure", str(measure), study.measures)
    level = number(confidence, "confidence")
    if not 0.0 < level < 1.0:
        raise InputError(f"confidence is {level:g}; give a probability between 0 and 1, such as 0.95")
    given = study.about.get("sensitivity")
    if given is None:
        raise InputError(
            "the runs of this study are not those of a sensitivity scheme; call kt.study with "
            "over=kt.sensitivity({'k': (lo, hi), ...})"
        )
    scheme = scheme_from(given)
    y = np.where(study.finished, study.measures[measure], np.nan).reshape(-1, scheme.block)
    whole = np.asarray(np.isfinite(y).all(axis=1))
    if int(whole.sum()) < 2:
        raise InputError(
            f"{int(whole.sum())} of {len(y)} base samples have results of all their {scheme.block} runs; two or more "
            "are needed: finish the study, or see study.failed"
        )
    common = (measure, study.units.get(measure, ""), scheme.method, scheme.names)
    numbers = _sobol if scheme.method == "sobol" else _morris
    values, margins = numbers(study, scheme, y, whole, level, seed)
    return Indices(*common, values, margins, level, int(whole.sum()), len(y))


def scheme_from(given: dict[str, Any]) -> Scheme:
    """Return a scheme from plain data."""
    bounds = tuple((float(a), float(b)) for a, b in given["bounds"])
    return Scheme(
        given["method"],
        tuple(given["names"]),
        bounds,
        tuple(given["kinds"]),
        given["samples"],
        given["seed"],
        given["second_order"],
        given["levels"],
    )


def _sobol(study: Study, scheme: Scheme, y: Numbers, whole: NDArray[np.bool_], level: float, seed: int):
    analyze = optional("SALib.analyze.sobol", "Sensitivity indices", "studies").analyze
    own = y[whole].reshape(-1)
    if np.ptp(own) == 0.0:
        raise InputError("the measure is the same in all runs, so that its variance has no shares; choose another one")
    found = analyze(
        scheme.problem, own, calc_second_order=scheme.second_order, num_resamples=RESAMPLES, conf_level=level, seed=seed
    )
    names = {"first": "S1", "total": "ST"} | ({"second": "S2"} if scheme.second_order else {})
    values = {name: np.asarray(found[key], dtype=float) for name, key in names.items()}
    return values, {name: np.asarray(found[f"{key}_conf"], dtype=float) for name, key in names.items()}


def _morris(study: Study, scheme: Scheme, y: Numbers, whole: NDArray[np.bool_], level: float, seed: int):
    analyze = optional("SALib.analyze.morris", "Sensitivity indices", "studies").analyze
    x = np.stack([study.column(name) for name in scheme.names], axis=-1).reshape(*y.shape, -1)[whole]
    found = analyze(
        scheme.problem,
        x.reshape(-1, x.shape[-1]),
        y[whole].reshape(-1),
        num_resamples=RESAMPLES,
        conf_level=level,
        num_levels=scheme.levels,
        seed=seed,
    )
    names = {"mean": "mu", "effect": "mu_star", "spread": "sigma"}
    values = {name: np.asarray(found[key], dtype=float) for name, key in names.items()}
    return values, {"effect": np.asarray(found["mu_star_conf"], dtype=float)}
