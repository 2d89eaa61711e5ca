"""Model files: those of the folder are listed, opened and written; others are uploaded."""

from __future__ import annotations

import base64
import binascii
from importlib.util import find_spec
from pathlib import Path
from typing import Any

from ....errors import InputError, ModelError, brief
from ....loading import load
from ....model.mechanism import Mechanism
from ....page.writer import data_page
from ..folder import model_among, upload_folder
from ..tabs import Studio, open_system

BASES = ("fixed", "free")


def files(studio: Studio) -> dict[str, Any]:
    """Return the path of the folder, and the model files in it."""
    return {"folder": str(studio.folder.root), "files": studio.folder.models()}


def open_file(studio: Studio, name: Any = None, uploads: Any = None, base: Any = "fixed") -> dict[str, Any]:
    """Open a model file of the folder by its relative path, or one of uploaded files [{"name", "content"}].

    What the file refers to must be in the folder, or among the uploaded files. `base` is that of URDF files: "free"
    lets the root link float. The result has the data of the page and the entries of the import report.
    """
    if base not in BASES:
        raise InputError(f"base is {brief(base)}; expected one of {', '.join(BASES)}")
    if uploads is None:
        return _opened(studio, studio.folder.file(name), studio.folder.root, base, source=f"folder/{name}")
    with upload_folder(uploads) as (folder, names):
        return _opened(studio, folder / model_among(names, name), folder, base)


def save_file(
    studio: Studio, name: Any, content: Any, encoding: Any = "text", overwrite: Any = False
) -> dict[str, Any]:
    """Write a text, or bytes in base64, to a file of the folder, and return its path."""
    if not isinstance(content, str) or encoding not in ("text", "base64"):
        raise InputError(f"the content is {brief(content)}; expected a text, or bytes in base64")
    try:
        written = base64.b64decode(content, validate=True) if encoding == "base64" else content.encode()
    except (binascii.Error, ValueError):
        raise InputError("the content is not valid base64, or not valid text") from None
    return {"path": str(studio.folder.write(name, written, overwrite=overwrite is True))}


def _opened(studio: Studio, file: Path, root: Path, base: str, source: str = "") -> dict[str, Any]:
    """Read a file, with the names in messages relative to its folder."""
    urdf: dict[str, Any] = {"base": base, "roots": (root,)} if _is_urdf(file) else {}
    try:
        system = load(file, **urdf)
        found = open_system(studio, system, meshes=drawable(system.mechanism, root), source=source)
    except ModelError as error:
        raise InputError(_relative(str(error), root)) from None
    report = [{"sort": e.sort, "text": _relative(e.text, root), "line": e.line} for e in system.report.entries]
    return {**found, "name": file.relative_to(root).as_posix(), "report": report}


def _relative(text: str, root: Path) -> str:
    return text.replace(f"{root}/", "").replace(f"{root}\\", "")


def _is_urdf(file: Path) -> bool:
    if file.suffix.lower() != ".xml":
        return file.suffix.lower() == ".urdf"
    from ....formats.xml import read_xml

    return read_xml(file).tag != "mujoco"


def drawable(mechanism: Mechanism, root: Path) -> bool:
    """Return whether a mechanism has meshes, and each of them is a file inside of a folder that trimesh can read."""
    parts = [shape for body in mechanism.bodies for shape in body.shapes] + list(mechanism.scenery)
    paths = [shape.file for shape in parts if shape.kind == "mesh" and shape.role == "visual"]
    if not paths or find_spec("trimesh") is None:
        return False
    real = [Path(path).resolve() for path in paths]
    return all(path.is_relative_to(root) and path.is_file() for path in real)


# --- The page of a tab as one file ---

LONGEST = 100_000
"""The longest state [characters]."""


def page_file(studio: Studio, state: Any = "") -> dict[str, Any]:
    """Return the page of the mechanism as the text of one file, which opens in a state, a link from its "#" on."""
    studio.tab.shown()
    if not isinstance(state, str) or len(state) > LONGEST:
        raise InputError(f"the state is {brief(state)}; expected the part of a link from the '#' on")
    return {"text": data_page(studio.tab.data, state=state)}
