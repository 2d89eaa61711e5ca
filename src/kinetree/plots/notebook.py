"""HTML of systems and runs for notebooks: a picture and a table, self-contained."""

from __future__ import annotations

import base64
import io
from collections.abc import Iterable
from importlib.util import find_spec
from typing import TYPE_CHECKING, Any

import numpy as np

from .._support.tables import Table, html_of
from ..errors import KinetreeError
from ..results.frames import summary_lines
from ..results.trajectory import Trajectory
from ..system import System
from .skeleton import scene

if TYPE_CHECKING:
    from ..model.parts import Joint

MOST_BODIES = 100
"""The most bodies of a mechanism that is drawn; a picture of more takes too long for a notebook."""
SIZE = (360, 270)
"""Width and height of the picture [px]."""


def system_html(system: System) -> str:
    """Return a System as HTML: a picture of its initial position, its sizes and its joints."""
    joints = [(j.name, j.kind, j.parent, j.child, _range(j)) for j in system.joints]
    table = Table(("joint", "kind", "from", "to", "range"), tuple(joints))
    return _page(_picture(lambda: _first_position(system), len(system.bodies)), [repr(system)[1:-1], table])


def run_html(run: Trajectory) -> str:
    """Return a run as HTML: a picture of its first sample, its summary, and the ranges of its coordinates."""
    one = next(run.runs())
    column = next(c for c in run.columns if c.name == "q")
    rows = [
        (label, *_span(one.q[:, k]), unit)
        for k, (label, unit) in enumerate(zip(column.labels, column.units, strict=True))
    ]
    table = Table(("coordinate", "start", "end", "least", "largest", "unit"), tuple(rows))
    return _page(_picture(lambda: one[:1], len(run.system.bodies)), ["\n".join(summary_lines(run)), table])


def _span(values: np.ndarray) -> tuple[float, ...]:
    """Return the first, last, least and largest of the finite values."""
    good = values[np.isfinite(values)]
    return tuple(map(float, (good[0], good[-1], good.min(), good.max()) if len(good) else (np.nan,) * 4))


def _range(joint: Joint) -> str:
    limits = joint.limits
    pairs = zip(limits.lower, limits.upper, strict=False)
    return ", ".join(f"{float(low):.4g} to {float(high):.4g}" for low, high in pairs)


def _first_position(system: System) -> Trajectory:
    q = system.assemble() if system.closures else system.neutral()
    free = system.mechanism.free_parameters
    values = np.array([p.value for p in free]) if free else None
    return Trajectory(system, np.zeros(1), q[None], np.zeros((1, system.nv)), parameters=values)


def _picture(make: Any, bodies: int) -> str:
    """Return an image as an HTML element, or "" if there are no bodies, too many to draw, or no matplotlib."""
    if not 0 < bodies <= MOST_BODIES or find_spec("matplotlib") is None:
        return ""
    from .animation import PAPER, _Stage
    from .figures import _style

    try:
        still = make()
        poses = np.asarray(still["poses"])
        stage = _Stage(scene(still), poses, SIZE)
    except KinetreeError:  # loops that do not close, or a start that is not finite: the table has no picture
        return ""
    written = io.BytesIO()
    with _style():
        stage.show(poses[0], "")
        stage.figure.savefig(written, dpi=100, facecolor=PAPER, format="png")
    data = base64.b64encode(written.getvalue()).decode()
    return f'<img alt="" width="{SIZE[0]}" height="{SIZE[1]}" src="data:image/png;base64,{data}">'


def _page(picture: str, parts: Iterable[str | Table]) -> str:
    return f'<div style="display:flex;gap:1em;align-items:start">{picture}<div>{html_of(parts)}</div></div>'
