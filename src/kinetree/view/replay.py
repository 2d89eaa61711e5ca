"""A web page that replays a run in 3D: a single file without server, network or external scripts."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Any

from .page_writer import run_page

if TYPE_CHECKING:
    from ..results.trajectory import Trajectory


def replay(
    run: Trajectory,
    path: str | Path = "run.html",
    *,
    fps: float = 60.0,
    title: str | None = None,
    arrows: bool | str | Sequence[str] | None = None,
    share: Any = None,
) -> Path:
    """Write a page that replays a single run in any browser, and return the file.

    It is the page of `run.page` without functions of the mechanism. Drag to rotate the view, drag with the shift key to
    move it, and use the wheel to zoom. `run.html#t=1.5` opens the page at that time. `arrows` draws forces and torques:
    "reactions" at joints and loops, those of "drives", other forces on the bodies ("wrenches"), a list of these, or
    True for all. `share` are compliances as for `arm.loads`.
    """
    run_page(run, path, fps=fps, title=title, arrows=arrows, share=share, kernel=False)
    return Path(path)
