"""The public names of the package and their places, as the stub `kinetree/__init__.pyi` lists them."""

from __future__ import annotations

import ast
from importlib import import_module
from pathlib import Path
from typing import Any

PACKAGE = __name__.partition(".")[0]

_STUB = ast.parse(Path(__file__).parents[1].joinpath("__init__.pyi").read_text(encoding="utf-8"))
PLACES = {
    name.name: "." * line.level + (line.module or "")
    for line in _STUB.body
    if isinstance(line, ast.ImportFrom)
    for name in line.names
}
"""The modules of public names, relative to the package."""


def load_name(name: str) -> Any:
    """Return what has a public name, and import its module if this has not been done yet."""
    return getattr(import_module(PLACES[name], PACKAGE), name)


def load_classes(package: str, method: str) -> list[type]:
    """Return the public classes of a package, given as ".simulation.acting", that have a method."""
    found = [load_name(name) for name, place in PLACES.items() if place.startswith(f"{package}.")]
    return [x for x in found if isinstance(x, type) and hasattr(x, method)]
