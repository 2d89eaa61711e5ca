"""NPZ: NumPy's own arrays in a zip file, never pickled."""

from __future__ import annotations

import json
from pathlib import Path

import numpy as np

from ..._support.atomic import replacing
from .content import Content, refuse_packed, require_archive

ABOUT = "about"
"""The name of the array with the table, as the bytes of its JSON."""


def write(content: Content, path: Path) -> None:
    """Write an NPZ file."""
    about = np.frombuffer(json.dumps(content.about).encode(), dtype=np.uint8)
    with replacing(path) as written, open(written, "xb") as file:
        np.savez(file, **{ABOUT: about}, **content.arrays)  # type: ignore[arg-type]


def read(path: Path) -> Content:
    """Read an NPZ file that `write` wrote."""
    require_archive(path, "give a file that a run's save(...) wrote")
    with open(path, "rb") as stream, np.load(stream, allow_pickle=False) as file:
        refuse_packed(file.zip, path)
        about = json.loads(file[ABOUT].tobytes()) if ABOUT in file else {}
        names = [entry["name"] for entry in about.get("arrays", ())]
        return Content(about, {name: file[name] for name in names})
