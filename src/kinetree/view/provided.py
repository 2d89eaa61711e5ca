"""Pictures that are methods of runs and Systems; each module is imported when its picture is first drawn."""

from __future__ import annotations

from pathlib import Path
from typing import Any

from ..pictures import provide


def provide_pictures() -> None:
    """Make the pictures of this layer available to the layers below it."""
    provide(
        plot=_plot,
        portraits=_portraits,
        animate=_animate,
        mode_run=_mode_run,
        mode_page=_mode_page,
        mode_animation=_mode_animation,
        replay=_replay,
        system_page=_system_page,
        run_page=_run_page,
        system_html=_system_html,
        run_html=_run_html,
        load_report=_load_report,
        load_report_html=_load_report_html,
        study_plot=_study_plot,
        balance_plot=_balance_plot,
        workspace_plot=_workspace_plot,
        solutions_plot=_solutions_plot,
        study_html=_study_html,
        study_report=_study_report,
        bands_plot=_bands_plot,
        histogram_plot=_histogram_plot,
        indices_plot=_indices_plot,
    )


def lesson(name: str, path: str | Path | None = None) -> Any:
    """Return a lesson as a page: a live mechanism with steps and questions; write it with a `path`.

    `kinetree lesson` lists the names.
    """
    from .page_lesson import lesson_page

    return lesson_page(name, path)


def _plot(*arguments: Any, **options: Any) -> Any:
    from .trajectory_plots import plot

    return plot(*arguments, **options)


def _portraits(*arguments: Any, **options: Any) -> Any:
    from .trajectory_plots import portraits

    return portraits(*arguments, **options)


def _animate(*arguments: Any, **options: Any) -> Path:
    from .animation import animate

    return animate(*arguments, **options)


def _mode_run(*arguments: Any, **options: Any) -> Any:
    from .mode_pictures import mode_run

    return mode_run(*arguments, **options)


def _mode_page(*arguments: Any, **options: Any) -> Any:
    from .mode_pictures import mode_page

    return mode_page(*arguments, **options)


def _mode_animation(*arguments: Any, **options: Any) -> Path:
    from .mode_pictures import mode_animation

    return mode_animation(*arguments, **options)


def _replay(*arguments: Any, **options: Any) -> Path:
    from .replay import replay

    return replay(*arguments, **options)


def _system_page(*arguments: Any, **options: Any) -> Any:
    from .page_writer import system_page

    return system_page(*arguments, **options)


def _run_page(*arguments: Any, **options: Any) -> Any:
    from .page_writer import run_page

    return run_page(*arguments, **options)


def _study_plot(*arguments: Any, **options: Any) -> Any:
    from .study_plots import study_plot

    return study_plot(*arguments, **options)


def _balance_plot(*arguments: Any, **options: Any) -> Any:
    from .balance_plots import balance_plot

    return balance_plot(*arguments, **options)


def _workspace_plot(*arguments: Any, **options: Any) -> Any:
    from .pose_plots import workspace_plot

    return workspace_plot(*arguments, **options)


def _solutions_plot(*arguments: Any, **options: Any) -> Any:
    from .pose_plots import solutions_plot

    return solutions_plot(*arguments, **options)


def _study_html(study: Any) -> str:
    from .study_plots import study_html

    return study_html(study)


def _study_report(*arguments: Any, **options: Any) -> Path:
    from .study_report_page import study_report

    return study_report(*arguments, **options)


def _bands_plot(*arguments: Any, **options: Any) -> Any:
    from .statistics_plots import bands_plot

    return bands_plot(*arguments, **options)


def _histogram_plot(*arguments: Any, **options: Any) -> Any:
    from .statistics_plots import histogram_plot

    return histogram_plot(*arguments, **options)


def _indices_plot(*arguments: Any, **options: Any) -> Any:
    from .statistics_plots import indices_plot

    return indices_plot(*arguments, **options)


def _system_html(system: Any) -> str:
    from .notebook import system_html

    return system_html(system)


def _run_html(run: Any) -> str:
    from .notebook import run_html

    return run_html(run)


def _load_report(*arguments: Any, **options: Any) -> Path:
    from .load_report_page import save

    return save(*arguments, **options)


def _load_report_html(report: Any) -> str:
    from .load_report_page import load_report_html

    return load_report_html(report)
