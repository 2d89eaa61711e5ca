"""The JavaScript module that loads WebAssembly modules of Kinetree: one file, without other packages."""

from __future__ import annotations

from importlib.resources import files

LOADER = "kinetree.mjs"
"""The name of the file."""


def loader() -> str:
    """Return the source of the loader, an ES module for browsers, Node and other hosts."""
    return (files(__package__ or "") / LOADER).read_text(encoding="utf-8")
