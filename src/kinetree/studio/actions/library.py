"""The library of mechanisms: a list to choose from, and one of them opened."""

from __future__ import annotations

from functools import cache
from importlib.resources import files
from typing import Any

from ... import library
from ...errors import brief, unknown_name
from ...formats import read
from ...joints import kind
from ...loading import load
from ...model.parts import GROUND
from ..opened import open_system
from ..tabs import Studio


def gallery(studio: Studio) -> dict[str, Any]:
    """Return the mechanisms of the library: name, description, sizes, and the bytes of a PNG picture, or None."""
    return {"mechanisms": _rows()}


@cache
def _rows() -> list[dict[str, Any]]:
    """Read all files of the library, once for all tabs."""
    rows = []
    for name in library.names():
        m = read(library.path(name))[0]
        picture = files("kinetree.studio") / "pictures" / f"{name}.png"
        rows.append(
            {
                "name": name,
                "description": m.description,
                "bodies": len(m.bodies),
                "nv": m.nv,
                "loops": len(m.loops),
                "floats": any(kind(j.kind).FLOATS and j.parent == GROUND for j in m.joints),
                "picture": picture.read_bytes() if picture.is_file() else None,
            }
        )
    return rows


def open_library(studio: Studio, name: Any) -> dict[str, Any]:
    """Open a mechanism of the library by its name."""
    if name not in library.names():  # a path is none
        raise unknown_name("library mechanism", name if isinstance(name, str) else brief(name), library.names())
    return open_system(studio, load(name), source=f"library/{name}")
