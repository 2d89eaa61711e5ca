"""Pages of mechanisms and runs: one HTML file that draws, computes and plots by itself, without server or network."""

from __future__ import annotations

import html
import re
import tempfile
import webbrowser
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Any

from .._support.atomic import replacing
from ..analysis.modes import mode_motion
from ..errors import InputError
from ..formats import SUFFIXES
from ..results.trajectory import Trajectory
from ..system import System
from .data import LARGEST, run_data, system_data, without_read_table
from .file import fill_template, script_of, served_script, style_of

if TYPE_CHECKING:
    from ..analysis.modes import Modes


INLINE_HEIGHT = 620
"""The height of a page inside of a notebook [px]."""


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
    system: System,
    path: str | Path | None = None,
    *,
    q: object = None,
    title: str | None = None,
    meshes: bool = False,
    editable: bool = True,
) -> Page:
    """Return a page of a System in which its joints can be moved and its motion computed; write it with a `path`.

    `q` are the first coordinates, by default assembled, or those of its guess. With `meshes`, the files of meshes
    are read, by trimesh, and drawn with at most 1,500 triangles each. With `editable=False`, the numbers of the
    mechanism cannot be changed in the page, which is then smaller and made sooner.
    """
    if path is not None:
        page_path(path)  # before the work
    data = system_data(system, q=q, meshes=meshes, editable=editable)
    return written_page(data | ({"title": title} if title else {}), path)


KINEMATICS = "#mode=Move"
"""The state of a page that opens with a slider per joint, the pose of a frame, and a handle to drag it."""


def teach(
    system: System, q: object = None, *, path: str | Path | None = None, meshes: bool = False, show: bool = True
) -> Path:
    """Open a page with a slider per joint, the pose and Jacobian of a frame, and a handle that drags it; return it.

    `q` are the first coordinates, `path` is the file, by default a temporary one. `show=False` only writes it.
    """
    file = page_path(Path(tempfile.mkdtemp(prefix="kinetree-")) / "teach.html" if path is None else path)
    Page(data_page(system_data(system, q=q, meshes=meshes, editable=False), state=KINEMATICS)).save(file)
    if show:
        webbrowser.open(file.resolve().as_uri())
    return file


def data_page(data: dict[str, Any], *, state: str = "") -> str:
    """Return the page of data as one file; `state` is the part of a link to a state from the "#" on."""
    return written_page(data, STATE=html.escape(state)).text


def served_page(data: dict[str, Any], socket: str, sources: Sequence[str]) -> tuple[str, str]:
    """Return the page of data for a studio, and its policy; it may open sockets of the `sources` alone.

    `socket` is the path of the socket.
    """
    connect = f"; connect-src {' '.join(sources)}; base-uri 'none'; form-action 'none'"
    text = written_page(data, served=True, SOCKET=html.escape(socket), MODELS=" ".join(SUFFIXES), CONNECT=connect).text
    policy = re.search(r'Content-Security-Policy" content="([^"]*)"', text)
    assert policy is not None
    return text, policy[1] + "; frame-ancestors 'none'"


def run_page(
    run: Trajectory, path: str | Path | None = None, *, fps: float = 60.0, title: str | None = None,
    arrows: bool | str | Sequence[str] | None = None, share: object = None, kernel: bool = True, meshes: bool = False,
) -> Page:  # fmt: skip
    """Return a page that replays a single run and goes on from any of its instants; write it with a `path`.

    `kernel=False` leaves out the functions of the mechanism. `meshes` is that of `system_page`; `arrows` and `share`
    are those of `replay`.
    """
    if path is not None:
        page_path(path)
    data = run_data(run, fps, arrows, share, kernel=kernel, meshes=meshes) | {"title": title or run_title(run)}
    return written_page(data, path)


def run_title(run: Trajectory) -> str:
    """Return the default title of a run."""
    return f"{run.system.mechanism.name}: {run.method}, {run.status}"


def written_page(data: dict[str, Any], path: str | Path | None = None, *, served: bool = False, **parts: str) -> Page:
    """Return the page of data, which may have a lesson; write it with a `path`.

    A page that is `served` opens other mechanisms and lessons as well. `parts` are other texts of the page.
    """
    text = _text(data, parts, served=served)
    if not served and len(text) > LARGEST and len(less := _text(without_read_table(data), parts)) <= LARGEST:
        text = less
    page = Page(text)
    if path is not None:
        page.save(path)
    return page


def _text(data: dict[str, Any], parts: dict[str, str], *, served: bool = False) -> str:
    """Return the text of a page."""
    lesson = served or "lesson" in data
    more = {"TITLE": html.escape(data["title"]), "STATE": "", "SOCKET": "", "MODELS": "", "CONNECT": "", **parts}
    script = served_script() if served else _script_of(data, lesson=lesson)
    return fill_template("js/page.html", script, style_of(lesson=lesson), data, compiles=served, **more)


def _script_of(data: dict[str, Any], *, lesson: bool) -> str:
    """Return the script of the file of a page: without the modules that its data do not need."""
    return script_of(
        data["model"]["loops"],
        table=data["table"] is not None,
        lesson=lesson,
        beams=bool(data.get("beams")),
        ground=bool(data["kernel"] and data["kernel"]["ground"]),
    )


# --- A web page that replays a run in 3D: a single file without server, network or external scripts ---


def replay(
    run: Trajectory,
    path: str | Path = "run.html",
    *,
    fps: float = 60.0,
    title: str | None = None,
    arrows: bool | str | Sequence[str] | None = None,
    share: object = None,
) -> Path:
    """Write a page that replays a single run in any browser, and return the file.

    It is the page of `run.page` without functions of the mechanism. Drag to rotate the view, drag with the shift key to
    move it, and use the wheel to zoom. `run.html#t=1.5` opens the page at that time. `arrows` draws forces and torques:
    "reactions" at joints and loops, those of "drives", other forces on the bodies ("wrenches"), a list of these, or
    True for all. `share` are compliances as for `arm.loads`.
    """
    run_page(run, path, fps=fps, title=title, arrows=arrows, share=share, kernel=False)
    return Path(path)


# --- Modes of vibration as runs, which can be replayed and animated ---

MOTION = ("amplitude", "period", "periods", "samples")
"""The options of the motion of a mode; all others are those of its picture."""


def mode_run(modes: Modes, k: int = 1, **options: Any) -> Trajectory:
    """Return a mode, counted from 1, as a run; see `kinetree.analysis.modes.mode_motion`."""
    t, q, qd = mode_motion(modes, k, **options)
    return Trajectory(modes.system, t, q, qd, parameters=modes.parameters, method=f"mode {k}")


def mode_page(modes: Modes, k: int = 1, path: str | Path | None = None, **options: object) -> Any:
    """Return a web page that shows a mode; with a `path`, write it there. Options are those of `run` and of a page."""
    motion, others = _split(options)
    shown: dict[str, Any] = {"title": title(modes, k)} | others
    return run_page(mode_run(modes, k, **motion), path, **shown)


def mode_animation(modes: Modes, k: int = 1, path: str | Path = "mode.gif", **options: object) -> Path:
    """Write a mode as an animation, .gif or .mp4; options are those of `run` and of `animate`."""
    motion, others = _split(options)
    once: dict[str, Any] = {"periods": 1} | motion
    from ..plots.animation import animate

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
