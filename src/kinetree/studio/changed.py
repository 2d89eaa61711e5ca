"""The mechanism of a tab with the numbers that its reader changed in the page."""

from __future__ import annotations

from typing import Any

import numpy as np

from ..errors import InputError, brief, unknown_name
from ..loading import load
from ..system import System
from ..view.page_lengths import free_lengths
from .tabs import Studio
from .uploads import written

LENGTHS = "lengths"
"""The key of the System whose lengths of loops are parameters, as in the page."""


def changed(studio: Studio, parameters: Any = None, model: Any = None) -> tuple[System, dict[str, Any]]:
    """Return the System of a tab, and the values of its free parameters as an option of its functions.

    `parameters` are values by name; those that are not free in the mechanism are lengths of loops. `model` is the text
    of a TOML file that takes the place of the mechanism.
    """
    system = studio.tab.shown() if model is None else _of_text(studio, model)
    given = {} if parameters is None else parameters
    if not isinstance(given, dict):
        raise InputError(f"the parameters are {brief(given)}; expected values by name")
    for name, value in given.items():
        if isinstance(value, bool) or not isinstance(value, int | float) or not np.isfinite(value):
            raise InputError(f"the parameter {brief(name)} is {brief(value)}; expected a finite number")
    own = {p.name: p.value for p in system.mechanism.free_parameters}
    if not given.keys() <= own.keys():
        lengths = {p.name: p.value for p in free_lengths(system.mechanism)[0].free_parameters}
        if unknown := sorted(given.keys() - lengths.keys()):
            raise unknown_name("parameter", unknown[0], lengths)
        if any(given.get(name, value) != value for name, value in lengths.items() if name not in own):
            system, own = _kept(studio, LENGTHS, lambda: System(free_lengths(system.mechanism)[0])), lengths
    values = [float(given.get(name, value)) for name, value in own.items()]
    return system, {"parameters": np.array(values)} if own else {}


def _of_text(studio: Studio, text: Any) -> System:
    if not isinstance(text, str):
        raise InputError(f"the model is {brief(text)}; expected the text of a TOML file")

    def read() -> System:
        with written({"model.toml": text.encode()}) as folder:
            return load(folder / "model.toml", lenient=True)

    return _kept(studio, text, read)


def _kept(studio: Studio, key: str, make: Any) -> System:
    """Return a System that is kept with its compiled code; the tab keeps one."""
    kept = studio.tab.changed
    if key not in kept:
        made = make()
        kept.clear()
        kept[key] = made
    return kept[key]
