"""Names whose modules are imported when they are first used.

They are the public names, which the stub `kinetree/__init__.pyi` lists with their places, and functions of higher
layers that methods of lower ones call: pictures, pages, reports.
"""

from __future__ import annotations

import ast
from collections.abc import Callable
from importlib import import_module
from pathlib import Path
from typing import Any

PACKAGE = __name__.partition(".")[0]

_STUB = ast.parse(Path(__file__).parents[1].joinpath("__init__.pyi").read_text(encoding="utf-8"))
PLACES = {
    name.name: "." * line.level + (line.module or "")
    for line in _STUB.body
    if isinstance(line, ast.ImportFrom)
    for name in line.names
}
"""The modules of public names, relative to the package."""


def load_name(name: str) -> Any:
    """Return what has a public name, and import its module if this has not been done yet."""
    place = import_module(PLACES[name], PACKAGE)
    if not hasattr(place, name):  # the name is that of a module, which its package has only after its import
        import_module(f"{PLACES[name]}.{name}", PACKAGE)
    return getattr(place, name)


def load_classes(package: str, method: str) -> list[type]:
    """Return the public classes of a package, given as ".simulation.acting", that have a method."""
    found = [load_name(name) for name, place in PLACES.items() if place.startswith(f"{package}.")]
    return [x for x in found if isinstance(x, type) and hasattr(x, method)]


PICTURES = {
    "animate": "plots.animation",
    "balance_plot": "plots.analysis_plots",
    "bands_plot": "plots.study_plots",
    "beam_loads_plot": "plots.analysis_plots",
    "cycle": "simulation.cycle",
    "histogram_plot": "plots.study_plots",
    "identification_report": "reports.identification_page",
    "indices_plot": "plots.study_plots",
    "load_report_html": "reports.load_report_page",
    "mode_animation": "page.writer",
    "mode_page": "page.writer",
    "mode_run": "page.writer",
    "plan_plot": "plots.analysis_plots",
    "plot": "plots.trajectory_plots",
    "portraits": "plots.trajectory_plots",
    "replay": "page.writer",
    "run_html": "plots.notebook",
    "run_page": "page.writer",
    "save_load_report": "reports.load_report_page",
    "solutions_plot": "plots.analysis_plots",
    "stepper": "simulation.stepping",
    "study_plot": "plots.study_plots",
    "study_report": "reports.study_report_page",
    "system_html": "plots.notebook",
    "system_page": "page.writer",
    "teach": "page.writer",
    "timing_plot": "plots.analysis_plots",
    "workspace_plot": "plots.analysis_plots",
}
"""The module of each function, below `kinetree`."""


def picture(name: str) -> Callable[..., Any]:
    """Return a function by name; its module is imported now, so that `import kinetree` needs no plots."""
    return getattr(import_module(f"{PACKAGE}.{PICTURES[name]}"), name)
