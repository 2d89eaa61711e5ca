"""Built-in mechanisms: one native TOML file each, with its source and the corrections made to it."""

from __future__ import annotations

from pathlib import Path

from ..errors import unknown_name

_FOLDER = Path(__file__).parent


def names() -> tuple[str, ...]:
    """Return the names of the built-in mechanisms."""
    return tuple(sorted(file.stem for file in _FOLDER.glob("*.toml")))


def path(name: str) -> Path:
    """Return the file of a built-in mechanism."""
    known = names()
    if name not in known:
        raise unknown_name("built-in mechanism", name, known)
    return _FOLDER / f"{name}.toml"


__all__ = ["names", "path"]
