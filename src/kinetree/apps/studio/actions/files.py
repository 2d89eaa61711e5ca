"""Model files of the folder, mechanisms of the library and lessons: listed, opened and written; others are uploaded."""

from __future__ import annotations

import base64
import binascii
from collections.abc import Mapping, Sequence
from functools import cache
from importlib.resources import files as resources
from importlib.util import find_spec
from pathlib import Path, PurePosixPath
from typing import Any

from .... import library
from ....errors import InputError, ModelError, brief, unknown_name
from ....formats import BASED, read
from ....joints import kind
from ....loading import load
from ....model.mechanism import Mechanism
from ....model.parts import GROUND
from ....page.mesh_files import read_mesh
from ....page.writer import data_page
from ... import lessons as taught
from ...lessons import lesson_content
from ..tabs import Studio, Tab, model_among, open_system, show, upload_folder

BASES = ("fixed", "free")


def files(studio: Studio) -> dict[str, Any]:
    """Return the path of the folder, and the model files in it."""
    return {"folder": str(studio.folder.root), "files": studio.folder.models()}


def open_file(studio: Studio, name: object = None, uploads: object = None, base: object = "fixed") -> dict[str, object]:
    """Open a model file of the folder by its relative path, or one of uploaded files [{"name", "content"}].

    What the file refers to must be in the folder, in a package that the folder is in, or among the uploaded files.
    `base` is that of URDF and SDF files: "free" lets the root link float. The result has the data of the page and the
    entries of the import report.
    """
    if base not in BASES:
        raise InputError(f"base is {brief(base)}; expected one of {', '.join(BASES)}")
    if uploads is None:
        return _opened(studio, studio.folder.file(name), studio.folder.root, base, source=f"folder/{name}")
    with upload_folder(uploads) as (folder, names):
        return _opened(studio, folder / model_among(names, name), folder, base)


def save_file(
    studio: Studio, name: object, content: object, encoding: object = "text", overwrite: object = False
) -> dict[str, object]:
    """Write a text, or bytes in base64, to a file of the folder, and return its path."""
    if not isinstance(content, str) or encoding not in ("text", "base64"):
        raise InputError(f"the content is {brief(content)}; expected a text, or bytes in base64")
    try:
        written = base64.b64decode(content, validate=True) if encoding == "base64" else content.encode()
    except (binascii.Error, ValueError):
        raise InputError("the content is not valid base64, or not valid text") from None
    return {"path": str(studio.folder.write(name, written, overwrite=overwrite is True))}


def _opened(studio: Studio, file: Path, root: Path, base: str, source: str = "") -> dict[str, object]:
    """Read a file, with the names in messages relative to its folder."""
    roots = (root, *(studio.folder.packages if source else ()))  # files of the reader's own may use the packages
    links: dict[str, Any] = {"base": base, "roots": roots} if has_links(file) else {}
    try:
        system = load(file, **links)
        meshes, missing = drawable(system.mechanism, roots)
        found = open_system(studio, system, meshes=meshes, source=source)
    except ModelError as error:
        raise InputError(_relative(str(error), root)) from None
    report = [{"sort": e.sort, "text": _relative(e.text, root), "line": e.line} for e in system.report.entries]
    notes = [{"sort": "suspect", "text": missing, "line": None}] if missing else []
    return {**found, "name": file.relative_to(root).as_posix(), "report": notes + report}


def _relative(text: str, root: Path) -> str:
    return text.replace(f"{root}/", "").replace(f"{root}\\", "")


def has_links(file: Path) -> bool:
    """Return whether a model file is one of links, whose base may float: URDF or SDF."""
    if file.suffix.lower() != ".xml":
        return file.suffix.lower() in BASED
    from ....formats.xml import read_xml

    return read_xml(file).tag != "mujoco"


def drawable(mechanism: Mechanism, roots: Sequence[Path] | None = None) -> tuple[set[str], str]:
    """Return the files of meshes that are drawn, and a sentence about the others, empty if there are none.

    Files outside of the folders `roots` are not read; None for no such bound.
    """
    parts = [shape for body in mechanism.bodies for shape in body.shapes] + list(mechanism.scenery)
    paths = dict.fromkeys(str(shape.file) for shape in parts if shape.kind == "mesh" and shape.role == "visual")
    if not paths:
        return set(), ""
    if find_spec("trimesh") is None:
        return set(), "meshes are not drawn without trimesh; install it with: pip install 'kinetree[studio]'"
    drawn, reasons = set(), dict[str, str]()
    for path in paths:
        real = Path(path).resolve()
        if roots is not None and not any(real.is_relative_to(root) for root in roots):
            reasons[path] = "its file is not here"
            continue
        try:
            read_mesh(path)
            drawn.add(path)
        except InputError as error:
            reasons[path] = "its file is not here" if not real.is_file() else str(error)
    return drawn, _about_missing(reasons)


def _about_missing(reasons: Mapping[str, str]) -> str:
    """Return a sentence about meshes that are not drawn, with the reason of the first one."""
    if not reasons:
        return ""
    names = [PurePosixPath(path).name for path in reasons]
    listed = ", ".join(names[:5]) + (f" and {len(names) - 5} more" if len(names) > 5 else "")
    what = "the mesh" if len(names) == 1 else f"{len(names)} meshes:"
    return f"{what} {listed} {'is' if len(names) == 1 else 'are'} not drawn: {next(iter(reasons.values()))}"


# --- The page of a tab as one file ---

LONGEST = 8_000_000
"""The longest state, one with the rows of a file of motion [characters]."""


def page_file(studio: Studio, state: object = "") -> dict[str, object]:
    """Return the page of the mechanism as the text of one file, which opens in a state, a link from its "#" on."""
    studio.tab.shown()
    if not isinstance(state, str) or len(state) > LONGEST:
        raise InputError(f"the state is {brief(state)}; expected the part of a link from the '#' on")
    return {"text": data_page(studio.tab.data, state=state)}


# --- The library of mechanisms: a list to choose from, and one of them opened ---


def gallery(studio: Studio) -> dict[str, object]:
    """Return the mechanisms of the library: name, group, description, sizes, and the bytes of a picture, or None."""
    return {"mechanisms": _rows()}


def _group(m: Mechanism) -> str:
    """Return the group of a mechanism in the gallery: what it is to most readers."""
    if m.rolls:
        return "Vehicles"
    if m.loops:
        return "Linkages"
    return "Walkers" if (_floats(m) and any(m.gravity)) or "biped" in m.name else "Arms and chains"


def _floats(m: Mechanism) -> bool:
    return any(kind(j.kind).FLOATS and j.parent == GROUND for j in m.joints)


@cache
def _rows() -> list[dict[str, object]]:
    """Read all resources of the library, once for all tabs."""
    rows = []
    for name in library.names():
        m = read(library.path(name))[0]
        picture = resources("kinetree.apps.studio") / "pictures" / f"{name}.png"
        rows.append(
            {
                "name": name,
                "description": m.description,
                "bodies": len(m.bodies),
                "nv": m.nv,
                "loops": len(m.loops),
                "group": _group(m),
                "floats": _floats(m),
                "picture": picture.read_bytes() if picture.is_file() else None,
            }
        )
    return rows


def open_library(studio: Studio, name: Any) -> dict[str, object]:
    """Open a mechanism of the library by its name."""
    if name not in library.names():  # a path is none
        raise unknown_name("library mechanism", name if isinstance(name, str) else brief(name), library.names())
    return open_system(studio, load(name), source=f"library/{name}")


# --- Lessons: a list to choose from, one of them opened, and the way back to the mechanism before it ---


def lessons(studio: Studio) -> dict[str, object]:
    """Return the lessons in their order: name, title, summary and minutes."""
    keys = ("name", "title", "summary", "minutes")
    return {"lessons": [{key: getattr(lesson, key) for key in keys} for lesson in map(taught.find, taught.names())]}


def open_lesson(studio: Studio, name: object) -> dict[str, object]:
    """Open a lesson by its name; the tab keeps the mechanism that it showed before."""
    lesson = taught.find(name if isinstance(name, str) else brief(name))
    system, data = lesson_content(lesson, studio.report)
    tab = studio.tab
    before = tab.before if "lesson" in tab.data else Tab(tab.system, tab.data) if tab.system else None
    found = show(studio, system, data, source=f"lesson/{name}")
    tab.before = before
    return found


def leave_lesson(studio: Studio) -> dict[str, object]:
    """Open the mechanism that the tab showed before its lesson, or that of the lesson if there was none."""
    before = studio.tab.before
    if before is None or before.system is None:
        return open_library(studio, studio.tab.shown().mechanism.name)
    return show(studio, before.system, before.data, source=before.data["source"])
