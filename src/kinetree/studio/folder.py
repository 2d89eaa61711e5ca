"""The chosen folder of a studio: files are listed, read and written inside of it, and nowhere else."""

from __future__ import annotations

import os
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path, PurePosixPath

from ..errors import InputError, brief, shown
from ..results.files.atomic import replacing

MODELS = (".toml", ".urdf", ".xml", ".csv")
"""Suffixes of model files, which are listed."""
WRITTEN = (*MODELS, ".html", ".png", ".svg")
"""Suffixes of files that a page may write: none of them is run by opening it outside of a browser."""
DEEPEST, MOST = 4, 500
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
                f"{shown(name)} is not the name of a file in the folder; use letters, digits, '-' and '_', without '..'"
            )
        if not part.isprintable():
            raise InputError(f"{shown(name)} has characters that cannot be printed; use letters, digits, '-' and '_'")
    return PurePosixPath(*parts)


@dataclass(frozen=True)
class Folder:
    """A folder; `root` is its real path."""

    root: Path

    @classmethod
    def of(cls, path: str | Path) -> Folder:
        """Return the folder of a path, which must exist."""
        if not os.path.isdir(path):
            raise InputError(f"{path}: no such folder; create it, or choose another one")
        return cls(Path(path).resolve())

    def models(self) -> list[str]:
        """Return the model files in the folder, and in folders inside of it, as relative paths."""
        found: list[str] = []
        for path in self._visible(self.root, 0):
            if path.suffix.lower() in MODELS:
                found.append(path.relative_to(self.root).as_posix())
            if len(found) == MOST:
                break
        return sorted(found)

    def file(self, name: object) -> Path:
        """Return an existing file by its relative path; links that lead out of the folder are refused."""
        path = self.root / plain_path(name)
        real = path.resolve()
        if not real.is_relative_to(self.root) or not real.is_file():
            raise InputError(f"no file {shown(str(name))} in the folder {self.root}")
        return real

    def write(self, name: object, content: bytes, *, overwrite: bool = False) -> Path:
        """Write a file at once and return its path; an existing one is kept unless `overwrite` is set."""
        relative = plain_path(name)
        if relative.suffix.lower() not in WRITTEN:
            raise InputError(f"{shown(str(name))} cannot be written; use a name that ends with {', '.join(WRITTEN)}")
        if len(content) > LARGEST:
            raise InputError(f"{shown(str(name))} has {len(content):,} bytes; at most {LARGEST:,} are written")
        path = self.root / relative
        if not path.parent.is_dir() or not path.parent.resolve().is_relative_to(self.root):
            raise InputError(f"no folder {shown(str(relative.parent))} in {self.root}; save beside the other files")
        path = path.parent.resolve() / path.name
        if path.is_symlink() or (path.exists() and not path.is_file()):
            raise InputError(f"{shown(str(name))} is a link or a folder; choose another name")
        if path.exists() and not overwrite:
            raise InputError(f"{shown(str(name))} exists already; choose another name, or overwrite it")
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
