"""The statistics of a study for a report, with a summary in words."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING

from ...errors import unknown_name
from ..choosing import Bounds, Choice
from .bands import Bands, over_time
from .failure_probability import FailureProbability
from .histograms import Histogram
from .indices import Indices

if TYPE_CHECKING:
    from ..study import Study


@dataclass(frozen=True, eq=False)
class Summary:
    """Statistics of a study by measure or column, and lines of words; without results, `histograms` is empty."""

    words: tuple[str, ...]
    failures: FailureProbability | None
    histograms: dict[str, Histogram]
    bands: tuple[Bands, ...]
    indices: dict[str, Indices]
    worst: dict[str, list[Choice]]


def summary_of(
    study: Study,
    *,
    limits: Mapping[str, Bounds] | None = None,
    columns: Sequence[str] | str | None = None,
    measures: Sequence[str] | str | None = None,
    n: int = 5,
    smallest: Sequence[str] | str = (),
) -> Summary:
    """Return the statistics of a study; `smallest` are measures whose smallest values are the worst."""
    names = _as_list(measures, list(study.measures))
    least = _as_list(smallest, [])
    for name in (*names, *least):
        if name not in study.measures:
            raise unknown_name("measure", str(name), study.measures)
    some = bool(study.finished.any())
    if columns is None:
        columns = over_time(study) if study.store is not None and "time" in study.store.group else []
    histograms = {name: study.histogram(name) for name in names} if some else {}
    planned = some and "sensitivity" in study.about
    indices = {name: study.sensitivity(name) for name in names if planned and histograms[name].deviation > 0.0}
    failures = study.failure_probability(limits) if study.evaluated else None
    worst = {name: study.worst(name, n, largest=name not in least) for name in names} if some else {}
    bands = tuple(study.bands(name) for name in _as_list(columns, [])) if some else ()
    return Summary(
        _words(study, failures, histograms, indices, worst, least), failures, histograms, bands, indices, worst
    )


def _as_list(given: Sequence[str] | str | None, default: list[str]) -> list[str]:
    if given is None:
        return default
    return [given] if isinstance(given, str) else list(given)


def _words(study: Study, failures, histograms, indices, worst, least) -> tuple[str, ...]:
    """Return the summary, a sentence or two per line."""
    lines = []
    if study.evaluated < study.runs:
        lines.append(
            f"The study is unfinished: {study.evaluated:,} of {study.runs:,} runs are evaluated, and all figures are "
            "those of these runs."
        )
    if failures is not None:
        lines.append(f"{failures}.")
    for name, x in histograms.items():
        unit = f" {x.unit}" if x.unit else ""
        extreme = worst[name][0]
        word = "smallest" if name in least else "largest"
        lines.append(
            f"{name}: mean {x.mean:.4g}{unit}, standard deviation {x.deviation:.3g}{unit}, median "
            f"{x.median:.4g}{unit}; the {word} is {extreme.measures[name]:.4g}{unit}, in run {extreme.run:,}."
        )
    for name, x in indices.items():
        first = x.order[0]
        if x.method == "sobol":
            share = f"{100 * x['total'][first]:.0f} % of the variance of {name}, with interactions"
        else:
            share = f"a mean effect of {x['effect'][first]:.3g} {x.unit}".rstrip() + f" on {name}"
        lines.append(f"The most important quantity is {x.names[first]}: it has {share}.")
    return tuple(lines)
