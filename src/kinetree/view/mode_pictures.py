"""Modes of vibration as runs, which can be replayed and animated."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING, Any

from ..analysis.linear.mode_motions import mode_motion
from ..results.trajectory import Trajectory
from .animation import animate
from .page_writer import run_page

if TYPE_CHECKING:
    from ..analysis.linear.modes import Modes

MOTION = ("amplitude", "period", "periods", "samples")
"""The options of the motion of a mode; all others are those of its picture."""


def mode_run(modes: Modes, k: int = 1, **options: Any) -> Trajectory:
    """Return a mode, counted from 1, as a run; see `kinetree.analysis.linear.mode_motions.mode_motion`."""
    t, q, qd = mode_motion(modes, k, **options)
    return Trajectory(modes.system, t, q, qd, parameters=modes.parameters, method=f"mode {k}")


def mode_page(modes: Modes, k: int = 1, path: str | Path | None = None, **options: Any) -> Any:
    """Return a web page that shows a mode; with a `path`, write it there. Options are those of `run` and of a page."""
    motion, others = _split(options)
    shown: dict[str, Any] = {"title": title(modes, k)} | others
    return run_page(mode_run(modes, k, **motion), path, **shown)


def mode_animation(modes: Modes, k: int = 1, path: str | Path = "mode.gif", **options: Any) -> Path:
    """Write a mode as an animation, .gif or .mp4; options are those of `run` and of `animate`."""
    motion, others = _split(options)
    once: dict[str, Any] = {"periods": 1} | motion
    return animate(mode_run(modes, k, **once), path, **others)


def title(modes: Modes, k: int) -> str:
    """Return the title of a mode: its number, frequency and damping."""
    name, value = modes.system.mechanism.name, modes.eigenvalues[k - 1]
    if not value.imag:
        return f"{name}: mode {k}, no vibration"
    return f"{name}: mode {k}, {modes.frequencies[k - 1]:.4g} Hz, damping {modes.damping[k - 1] + 0.0:.3g}"


def _split(options: dict[str, Any]) -> tuple[dict[str, Any], dict[str, Any]]:
    motion = {name: x for name, x in options.items() if name in MOTION}
    return motion, {name: x for name, x in options.items() if name not in motion}
