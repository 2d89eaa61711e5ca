"""Functions of higher layers that methods of lower ones call: pictures, pages, reports; imported when first called."""

from __future__ import annotations

from collections.abc import Callable
from importlib import import_module
from typing import Any

PLACES = {
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
    return getattr(import_module(f"kinetree.{PLACES[name]}"), name)
