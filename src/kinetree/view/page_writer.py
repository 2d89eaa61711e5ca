"""Pages of mechanisms and runs: one HTML file that draws, computes and plots by itself, without server or network."""

from __future__ import annotations

import html
import re
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from ..errors import InputError
from ..results.files.atomic import replacing
from ..results.trajectory import Trajectory
from ..system import System
from .page_data import LARGEST, run_data, system_data, without_read_table
from .page_file import filled
from .page_script import script_of, served_script, style_of

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
    return written_page(data | ({"title": title} if title else {}), path)


def data_page(data: dict[str, Any], *, state: str = "") -> str:
    """Return the page of data as one file; `state` is the part of a link to a state from the "#" on."""
    return written_page(data, STATE=html.escape(state)).text


def served_page(data: dict[str, Any], socket: str, sources: Sequence[str]) -> tuple[str, str]:
    """Return the page of data for a studio, and its policy; it may open sockets of the `sources` alone.

    `socket` is the path of the socket.
    """
    connect = f"; connect-src {' '.join(sources)}; base-uri 'none'; form-action 'none'"
    text = written_page(data, served=True, SOCKET=html.escape(socket), CONNECT=connect).text
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
    more = {"TITLE": html.escape(data["title"]), "STATE": "", "SOCKET": "", "CONNECT": "", **parts}
    script = (
        served_script() if served else script_of(data["model"]["loops"], table=data["table"] is not None, lesson=lesson)
    )
    return filled("page/page.html", script, style_of(lesson=lesson), data, compiles=served, **more)
