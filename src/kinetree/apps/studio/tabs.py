"""The folder of a studio, the mechanism that a tab of the browser shows, and the studio as an action receives it."""

from __future__ import annotations

import base64
import binascii
import os
import re
import secrets
import tempfile
import threading
from collections import OrderedDict
from collections.abc import Callable, Collection, Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, field
from pathlib import Path, PurePosixPath
from typing import Any

from ..._support.atomic import replacing
from ...errors import InputError, KinetreeError, brief, quote
from ...formats import SUFFIXES
from ...page.data import system_data
from ...system import System

# --- The chosen folder of a studio: files are listed, read and written inside of it, and nowhere else ---

WRITTEN = (*SUFFIXES, ".html", ".png", ".svg")
"""Suffixes of files that a page may write: none of them is run by opening it outside of a browser."""
DEEPEST, MOST_LISTED = 4, 500
"""The depth of folders below the chosen one that are listed, and the most files."""
LARGEST = 32_000_000
"""The largest file that a page may write [bytes]."""
LONGEST = 200
"""The longest relative path [characters]."""


def plain_path(name: object) -> PurePosixPath:
    """Return a relative path of plain names; one that could lead elsewhere, or is hidden, is refused."""
    if not isinstance(name, str) or not name or len(name) > LONGEST:
        raise InputError(f"{brief(name)} is not the name of a file; use up to {LONGEST} characters, such as 'arm.toml'")
    parts = name.split("/")
    for part in parts:
        if not part or part.startswith(".") or part.endswith((" ", ".")) or any(c in part for c in '\\:*?"<>|'):
            raise InputError(
                f"{quote(name)} is not the name of a file in the folder; use letters, digits, '-' and '_', without '..'"
            )
        if not part.isprintable():
            raise InputError(f"{quote(name)} has characters that cannot be printed; use letters, digits, '-' and '_'")
    return PurePosixPath(*parts)


@dataclass(frozen=True)
class Folder:
    """A folder; `root` is its real path, `packages` are other folders in which meshes of its models may be."""

    root: Path
    packages: tuple[Path, ...] = ()

    @classmethod
    def of(cls, path: str | Path, packages: Sequence[Path] = ()) -> Folder:
        """Return the folder of a path, which must exist, as must those of packages."""
        for each in (path, *packages):
            if not os.path.isdir(each):
                raise InputError(f"{each}: no such folder; create it, or choose another one")
        return cls(Path(path).resolve(), tuple(each.resolve() for each in packages))

    def models(self) -> list[str]:
        """Return the model files in the folder, and in folders inside of it, as relative paths."""
        found: list[str] = []
        for path in self._visible(self.root, 0):
            if path.suffix.lower() in SUFFIXES:
                found.append(path.relative_to(self.root).as_posix())
            if len(found) == MOST_LISTED:
                break
        return sorted(found)

    def file(self, name: object) -> Path:
        """Return an existing file by its relative path; links that lead out of the folder are refused."""
        path = self.root / plain_path(name)
        real = path.resolve()
        if not real.is_relative_to(self.root) or not real.is_file():
            raise InputError(f"no file {quote(str(name))} in the folder {self.root}")
        return real

    def write(self, name: object, content: bytes, *, overwrite: bool = False) -> Path:
        """Write a file at once and return its path; an existing one is kept unless `overwrite` is set."""
        relative = plain_path(name)
        if relative.suffix.lower() not in WRITTEN:
            raise InputError(f"{quote(str(name))} cannot be written; use a name that ends with {', '.join(WRITTEN)}")
        if len(content) > LARGEST:
            raise InputError(f"{quote(str(name))} has {len(content):,} bytes; at most {LARGEST:,} are written")
        path = self.root / relative
        if not path.parent.is_dir() or not path.parent.resolve().is_relative_to(self.root):
            raise InputError(f"no folder {quote(str(relative.parent))} in {self.root}; save beside the other files")
        path = path.parent.resolve() / path.name
        if path.is_symlink() or (path.exists() and not path.is_file()):
            raise InputError(f"{quote(str(name))} is a link or a folder; choose another name")
        if path.exists() and not overwrite:
            raise InputError(f"{quote(str(name))} exists already; choose another name, or overwrite it")
        with replacing(path) as written:
            written.write_bytes(content)
        return path

    def _visible(self, folder: Path, depth: int) -> Iterator[Path]:
        """Yield the files of a folder, then those of the folders inside; hidden ones and links are left out."""
        try:
            entries = sorted(os.scandir(folder), key=lambda entry: entry.name)
        except OSError:  # not readable: it has no files for the reader
            return
        shown_entries = [e for e in entries if not e.name.startswith(".") and not e.is_symlink()]
        yield from (Path(e.path) for e in shown_entries if e.is_file())
        if depth < DEEPEST:
            for entry in shown_entries:
                if entry.is_dir():
                    yield from self._visible(Path(entry.path), depth + 1)


# --- Files that a page uploads: bounded, checked, and written to a private folder that exists while they are read.

MOST_FILES, MOST_BYTES = 200, 24_000_000
"""The most files of one upload, and their size together [bytes]: a robot with meshes."""


@contextmanager
def upload_folder(files: object) -> Iterator[tuple[Path, list[str]]]:
    """Yield a private folder with files [{"name": ..., "content": base64}], and their names; remove it at the end."""
    contents = _checked(files)
    with write_folder(contents) as folder:
        yield folder, list(contents)


@contextmanager
def write_folder(contents: dict[str, bytes]) -> Iterator[Path]:
    """Yield a private folder with files by their relative paths; remove it at the end."""
    with tempfile.TemporaryDirectory(prefix="kinetree-") as place:
        folder = Path(place).resolve()
        for name, content in contents.items():
            path = folder / name
            path.parent.mkdir(parents=True, exist_ok=True)
            path.write_bytes(content)
        yield folder


def model_among(names: list[str], chosen: object = None) -> str:
    """Return the model file of an upload: the chosen one, or the only one."""
    models = [name for name in names if Path(name).suffix.lower() in SUFFIXES]
    if chosen is not None:
        if chosen not in models:
            raise InputError(f"{brief(chosen)} is not among the uploaded model files: {', '.join(models) or 'none'}")
        return str(chosen)
    if not models:
        raise InputError(f"no model among the files; drop one that ends with {', '.join(SUFFIXES)}")
    if len(models) > 1:
        raise InputError(f"several models: {', '.join(models[:10])}; drop one, with its meshes")
    return models[0]


def _checked(files: object) -> dict[str, bytes]:
    """Return the contents of files by their relative paths."""
    if not isinstance(files, list) or not files:
        raise InputError(f"the files are {brief(files)}; expected a list of them, each with a name and its content")
    if len(files) > MOST_FILES:
        raise InputError(f"{len(files)} files; at most {MOST_FILES} can be opened together")
    contents: dict[str, bytes] = {}
    total = 0
    for file in files:
        if not isinstance(file, dict) or not isinstance(file.get("content"), str):
            raise InputError(f"{brief(file)} is not a file; expected a name and its content in base64")
        name = str(plain_path(file.get("name")))
        try:
            content = base64.b64decode(file["content"], validate=True)
        except (binascii.Error, ValueError):
            raise InputError(f"the content of {name!r} is not base64") from None
        total += len(content)
        if total > MOST_BYTES:
            raise InputError(f"the files have more than {MOST_BYTES:,} bytes; open them from the folder instead")
        inside = any(str(p) in contents for p in Path(name).parents)
        if name in contents or inside or any(other.startswith(f"{name}/") for other in contents):
            raise InputError(f"two of the files have the name {name!r}; rename one")
        contents[name] = content
    return contents


FLAGS = re.compile(r" \((?:command line: )?--[^)]*\)|, --[\w-]+(?=\))")
"""Advice for the command line in a text."""


def for_page(text: str) -> str:
    """Return a text of the library for the reader of a page, who has no command line."""
    return FLAGS.sub("", text)


MOST = 64
"""The most tabs that are kept; the one that was used least recently is forgotten first."""


class Cancelled(KinetreeError):
    """The reader cancelled a call."""


@dataclass
class Tab:
    """What a tab shows: its System, and the data of its page.

    `changed` are the last Systems with changed numbers. `before` is the mechanism to which a lesson leads back.
    """

    system: System | None = None
    data: dict[str, Any] = field(default_factory=dict)
    changed: dict[str, System] = field(default_factory=dict)
    before: Tab | None = None

    def shown(self) -> System:
        """Return the System; a tab without one is refused."""
        if self.system is None:
            raise InputError("no mechanism is open in this tab; open one first")
        return self.system


@dataclass(frozen=True)
class Studio:
    """What an action may use: the folder, its tab, and `report`.

    `report(share)` reports the part that is done, from 0 to 1. It raises Cancelled after the reader cancelled the call.
    """

    folder: Folder
    tab: Tab = field(default_factory=Tab)
    report: Callable[[float], None] = lambda share: None


class Tabs:
    """The tabs of a studio by their keys; the newest are kept."""

    def __init__(self) -> None:
        """Start without tabs."""
        self._tabs: OrderedDict[str, Tab] = OrderedDict()
        self._lock = threading.Lock()

    def add(self, tab: Tab) -> str:
        """Keep a tab and return its key."""
        key = secrets.token_urlsafe(12)
        with self._lock:
            self._tabs[key] = tab
            while len(self._tabs) > MOST:
                self._tabs.popitem(last=False)
        return key

    def get(self, key: str) -> Tab | None:
        """Return the tab of a key; None if it is not known."""
        with self._lock:
            if key in self._tabs:
                self._tabs.move_to_end(key)
            return self._tabs.get(key)


# --- A mechanism that a tab opens: its System is kept for later actions, and its data go to the page ---


def open_system(
    studio: Studio, system: System, *, q: object = None, meshes: bool | Collection[str] = False, source: str = ""
) -> dict[str, object]:
    """Show a System in the tab and return {"data": ...}, which the page passes to `app.open`.

    `source` is where the address of the page opens it again: "library/NAME" or "folder/NAME", "" for nowhere; that of
    lessons is "lesson/NAME". `meshes` are those of `system_data`.
    """
    return show(studio, system, system_data(system, q=q, meshes=meshes, progress=studio.report), source=source)


def show(studio: Studio, system: System, data: dict[str, Any], *, source: str) -> dict[str, Any]:
    """Show a System with the data of its page in the tab, and return {"data": ...}."""
    studio.tab.system, studio.tab.data, studio.tab.before = system, data | {"source": source}, None
    studio.tab.changed.clear()
    return {"data": studio.tab.data}
