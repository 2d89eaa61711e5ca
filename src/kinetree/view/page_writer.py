"""Pages of mechanisms and runs: one HTML file that draws, computes and plots by itself, without server or network."""

from __future__ import annotations

import html
import re
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np

from ..algebra.arrays import Numbers
from ..compiler.lower.loop_pattern import guess
from ..errors import InputError
from ..formats.report import Report
from ..model.mechanism import Mechanism
from ..results.files.atomic import replacing
from ..results.trajectory import Trajectory
from ..system import System
from ..version import VERSION
from .arrows import Arrow, arrows_of, at_times, lengths
from .mesh_files import read_shape
from .motion_frames import even_frames, finite
from .page_bundle import bundle
from .page_file import compressed, filled, packed, texts
from .page_kernel import page_kernel
from .page_lengths import free_lengths
from .page_model import page_model
from .page_run import run_frames
from .page_scene import page_scene, plane_of
from .page_table import notes, page_table
from .skeleton import scene

ENTRY = "view/page/main.js"
"""The first module of the page."""
STYLES = ("page/stage.css", "page/page.css", "page/model.css")
"""The styles of the page: those of stage and player, of the page around them, and of the mode Model."""
LESSON_ENTRY, LESSON_STYLE = "view/page/lesson_page.js", "page/lesson.css"
"""The first module of a page with a lesson, and the style of its column."""
LARGEST, DRAWING, FRAME = 300_000, 28_000, 4_000
"""The most characters of a page without meshes, those of a drawing without meshes, and of the rest of the file."""
INLINE_HEIGHT = 620
"""The height of a page inside of a notebook [px]."""
REACH = 24
"""The number of random positions of an arm on the ground, to which the first view is fitted."""


@dataclass(frozen=True)
class Page:
    """A page as text, shown by notebooks; `save` writes it as a file that opens in any browser."""

    text: str

    def save(self, path: str | Path = "page.html") -> Path:
        """Write the page and return the file."""
        file = page_path(path)
        with replacing(file) as written:
            written.write_text(self.text, encoding="utf-8")
        return file

    def _repr_html_(self) -> str:
        """Return the page in a frame of its own, for notebooks."""
        return (
            f'<iframe title="Kinetree" width="100%" height="{INLINE_HEIGHT}" style="border:0" '
            f'sandbox="allow-scripts allow-downloads" srcdoc="{html.escape(self.text)}"></iframe>'
        )

    def __repr__(self) -> str:
        """Return the size on one line."""
        return f"<Page of {len(self.text) / 1000:.0f} kB; .save('page.html') writes it>"


def page_path(path: str | Path) -> Path:
    """Return the path of a page; a name that no browser would open as one is refused."""
    file = Path(path)
    if file.suffix.lower() not in (".html", ".htm"):
        raise InputError(f"{file.name!r} is not a web page; use a name that ends with .html")
    return file


def system_page(
    system: System, path: str | Path | None = None, *, q: Any = None, title: str | None = None, meshes: bool = False,
    editable: bool = True,
) -> Page:  # fmt: skip
    """Return a page of a System in which its joints can be moved and its motion computed; write it with a `path`.

    `q` are the first coordinates, by default assembled, or those of its guess. With `meshes`, the files of meshes
    are read, by trimesh, and drawn with at most 1,500 triangles each. With `editable=False`, the numbers of the
    mechanism cannot be changed in the page, which is then smaller and made sooner.
    """
    if path is not None:
        page_path(path)  # before the work
    data = system_data(system, q=q, meshes=meshes, editable=editable)
    return _page(data | ({"title": title} if title else {}), path)


def system_data(system: System, *, q: Any = None, meshes: bool = False, editable: bool = True) -> dict[str, Any]:
    """Return the data of the page of a System: tables for JSON, with arrays."""
    start = _first_position(system, q)
    data = _data(start, start["poses"], kernel=True, meshes=meshes, editable=editable)
    return data | {"title": system.mechanism.name}


def data_page(data: dict[str, Any], *, state: str = "") -> str:
    """Return the page of data as one file; `state` is the part of a link to a state from the "#" on."""
    return _page(data, None, STATE=html.escape(state)).text


def served_page(data: dict[str, Any], socket: str, sources: Sequence[str]) -> tuple[str, str]:
    """Return the page of data for a studio, and its policy; it may open sockets of the `sources` alone.

    `socket` is the path of the socket.
    """
    connect = f"; connect-src {' '.join(sources)}; base-uri 'none'; form-action 'none'"
    text = _page(data, None, served=True, SOCKET=html.escape(socket), CONNECT=connect).text
    policy = re.search(r'Content-Security-Policy" content="([^"]*)"', text)
    assert policy is not None
    return text, policy[1] + "; frame-ancestors 'none'"


def run_page(
    run: Trajectory, path: str | Path | None = None, *, fps: float = 60.0, title: str | None = None,
    arrows: bool | str | Sequence[str] | None = None, share: Any = None, kernel: bool = True, meshes: bool = False,
) -> Page:  # fmt: skip
    """Return a page that replays a single run and goes on from any of its instants; write it with a `path`.

    `kernel=False` leaves out the functions of the mechanism. `meshes` is that of `system_page`; `arrows` and `share`
    are those of `replay`.
    """
    if path is not None:
        page_path(path)
    data = run_data(run, fps, arrows, share, kernel=kernel, meshes=meshes) | {"title": title or run_title(run)}
    return _page(data, path)


def run_title(run: Trajectory) -> str:
    """Return the default title of a run."""
    return f"{run.system.mechanism.name}: {run.method}, {run.status}"


def run_data(
    run: Trajectory, fps: float = 60.0, arrows: bool | str | Sequence[str] | None = None, share: Any = None,
    *, kernel: bool = False, meshes: bool = False,
) -> dict[str, Any]:  # fmt: skip
    """Return the data of a page of a run: tables for JSON, with arrays."""
    times, poses = even_frames(run, fps)
    data = _data(finite(run)[:1], poses, kernel=kernel, meshes=meshes)
    frames = run_frames(run, times, None if data["kernel"] else poses)
    forces = arrows_of(finite(run), arrows, share)
    return data | {"run": frames, "arrows": _arrows(forces, finite(run).t, times, data["scene"]["size"])}


def _data(start: Trajectory, poses: Numbers, *, kernel: bool, meshes: bool, editable: bool = False) -> dict[str, Any]:
    """Return model, table, kernel, drawing and first state of a page; the view shows the poses [nt, nb, 4, 4]."""
    system = start.system
    drawn = scene(start, read_shape if meshes else None, loose_cuts=True)
    reached = poses if len(poses) > 1 else _reached(system, start, poses)
    values = system.mechanism.values(None if start.parameters is None else [float(x) for x in start.parameters])
    mechanism, lengths = free_lengths(system.mechanism) if kernel else (system.mechanism, ())
    values |= {p.name: p.value for p in mechanism.parameters if p.name not in values}
    live = System(mechanism) if lengths else system
    editable = editable and _has_table(mechanism)
    normal = plane_of(system, start.q[0], start.parameters)
    data = {
        "kinetree": VERSION,
        "model": page_model(mechanism, values, lengths),
        "table": _table(mechanism, values, system.report) if editable else None,
        "scene": page_scene(drawn, reached, normal, standing=len(poses) == 1),
        "first": {
            "q": np.array(start.q[0]),
            "qd": np.array(start.qd[0]),
            "poses": np.array(start["poses"][0], dtype=np.float64),
            "parameters": np.array([values[p.name] for p in mechanism.free_parameters], dtype=np.float64),
        },
    }
    room = _room(mechanism, table=editable) - (DRAWING if meshes else len(packed(data)))
    return data | {"kernel": page_kernel(live, room, editable=editable) if kernel else None}


STUDIO = (
    "view/page/chooser.js", "view/page/python_runs.js", "view/page/folder.js", "view/page/structure.js",
    "view/page/structure_history.js",
)  # fmt: skip
"""The modules that need Python, which files leave out."""
TABLE = ("view/page/panels/model.js", "view/page/editing.js", "view/page/model_files.js")
"""The modules of the mode Model, which files without a table leave out."""
LINES = 24
"""The most bodies of a table. With more of them, no numbers could be changed: functions with them would not fit."""


def _table(mechanism: Mechanism, values: dict[str, Any], report: Report) -> dict[str, Any]:
    return page_table(mechanism, values) | {"notes": notes(report)}


def _has_table(mechanism: Mechanism) -> bool:
    return 0 < len(mechanism.bodies) <= LINES


def unused(loops: Sequence[Any], *, table: bool = True) -> tuple[str, ...]:
    """Return the modules that the file of a mechanism with these loops, and with or without a table, leaves out."""
    return (*STUDIO, *(() if loops else ("view/page/panels/loops.js",)), *(() if table else TABLE))


def _room(mechanism: Mechanism, *, table: bool) -> float:
    """Return the characters that a page leaves for its data and for the functions of its mechanism."""
    script = bundle(ENTRY, unused(mechanism.loops, table=table))
    return LARGEST - len(compressed(script)) - len(texts(STYLES)) - FRAME


def _reached(system: System, start: Trajectory, poses: Numbers) -> Numbers:
    """Return the first position of a mechanism, with random ones of an arm on the ground, which it may reach."""
    if system.closures or not 0 < system.nv <= 8 or system.nq != system.nv:
        return poses
    q = system.random_state(2, REACH)[0]
    more: dict[str, Any] = {} if start.parameters is None else {"parameters": start.parameters}
    return np.concatenate([poses, np.asarray(system.poses(q, **more))])


def _first_position(system: System, q: Any) -> Trajectory:
    if q is None:
        q = system.assemble() if system.closures else guess(system.mechanism)
    free = system.mechanism.free_parameters
    values = np.array([p.value for p in free]) if free else None
    return Trajectory(system, np.zeros(1), np.array(q, dtype=float)[None], np.zeros((1, system.nv)), parameters=values)


def _arrows(forces: list[Arrow], t: Numbers, times: Numbers, size: float) -> list[dict[str, Any]]:
    """Return the arrows of the page: names, units, lengths, and rows of origin and vector for every frame."""
    per_unit = lengths(forces, size)
    return [
        {
            "name": arrow.name,
            "group": arrow.group,
            "unit": arrow.unit,
            "length": per_unit[arrow.unit],
            "rows": np.concatenate(at_times(arrow, t, times), axis=1).astype(np.float32),
        }
        for arrow in forces
    ]


def lesson_data_page(data: dict[str, Any], path: str | Path | None) -> Page:
    """Return the page of data with a lesson; write it with a `path`."""
    return _page(data, path, entry=LESSON_ENTRY, styles=(*STYLES, LESSON_STYLE))


def _page(
    data: dict[str, Any], path: str | Path | None, *, entry: str = ENTRY, styles: Sequence[str] = STYLES,
    served: bool = False, **parts: str,
) -> Page:  # fmt: skip
    more = {"TITLE": html.escape(data["title"]), "STATE": "", "SOCKET": "", "CONNECT": "", **parts}
    script = bundle(entry, () if served else unused(data["model"]["loops"], table=data["table"] is not None))
    page = Page(filled("page/page.html", script, texts(styles), data, compiles=served, **more))
    if path is not None:
        page.save(path)
    return page
