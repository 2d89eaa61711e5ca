"""The cache of object code on disk, keyed by mechanism, function, source, processor and version.

The code runs in this process, so its files must belong to this user: see `trust`. Damaged files are ignored.
"""

from __future__ import annotations

import hashlib
import os
import sys
import tempfile
import time
from collections.abc import Callable
from functools import cache
from pathlib import Path

from ...model.mechanism import Mechanism
from ..lower.build import Request
from .trust import private_folder, private_reader

MAGIC = b"kinetree-object-1\n"
LIMIT = 512 * 2**20
"""The largest total size of the files [bytes]; above it the oldest are removed."""

COUNTED = "0"
"""The first digit of the names with which the files are counted: one in sixteen, because that takes 3 us per file."""

ABANDONED = 3600.0
"""The age [s] from which an unfinished file counts as abandoned: no file takes an hour to write."""

SOURCES = ("algebra", "joints", "loops", "model", "dynamics", "compiler")
"""The packages whose source determines the compiled code."""


def folder() -> Path:
    """Return the cache folder: KINETREE_CACHE_DIR, or a folder in the user's cache directory."""
    if chosen := os.environ.get("KINETREE_CACHE_DIR"):
        return Path(chosen)
    if sys.platform == "win32":
        base = _absolute("LOCALAPPDATA") or Path.home() / "AppData" / "Local"
    elif sys.platform == "darwin":
        base = Path.home() / "Library" / "Caches"
    else:
        base = _absolute("XDG_CACHE_HOME") or Path.home() / ".cache"
    return base / "kinetree"


def _absolute(variable: str) -> Path | None:
    """Return the folder in an environment variable; an empty or relative one counts as unset, as XDG requires."""
    path = Path(os.environ.get(variable, ""))
    return path if path.is_absolute() else None


@cache
def source_hash() -> str:
    """Return a digest of the source files that determine the compiled code."""
    root = Path(__file__).parents[2]
    digest = hashlib.sha256()
    for package in SOURCES:
        for path in sorted((root / package).rglob("*.py")):
            digest.update(path.relative_to(root).as_posix().encode() + b"\0" + path.read_bytes())
    return digest.hexdigest()


def key(mechanism: Mechanism, request: Request, target: str) -> str:
    """Return the name under which the object code of a function is stored."""
    return digest(mechanism.motion_hash, repr(request), target)


def digest(*parts: str) -> str:
    """Return the name of code that this source makes from some texts."""
    return hashlib.sha256("\n".join((*parts, source_hash())).encode()).hexdigest()


def fetch(name: str, make: Callable[[], bytes]) -> bytes:
    """Return the object code stored under a name, or make and store it; without a usable folder it is always made."""
    code = stored(name)
    if code is None:
        code = make()
        keep(name, code)
    return code


def stored(name: str) -> bytes | None:
    """Return the object code stored under a name, or None."""
    place = _usable()
    return None if place is None else _found(place / f"{name}.o")


def keep(name: str, code: bytes) -> None:
    """Store object code under a name, if there is a usable folder."""
    place = _usable()
    if place is not None:
        try:
            _keep(place / f"{name}.o", code)
        except OSError:
            pass


def _usable() -> Path | None:
    """Return the cache folder if it is this user's own, otherwise None."""
    try:
        place = folder()
        return place if private_folder(place) else None
    except (OSError, RuntimeError):  # RuntimeError: the user has no home directory
        return None


def _found(path: Path) -> bytes | None:
    """Return the object code of an undamaged file that only this user may write, or None."""
    try:
        with private_reader(path) as file:
            data = file.read()
    except OSError:
        return None
    checksum, code = data[len(MAGIC) :][:32], data[len(MAGIC) + 32 :]
    return code if data.startswith(MAGIC) and hashlib.sha256(code).digest() == checksum else None


def _keep(path: Path, code: bytes) -> None:
    handle, temporary = tempfile.mkstemp(dir=path.parent, suffix=".tmp")
    try:
        with os.fdopen(handle, "wb") as file:
            file.write(MAGIC + hashlib.sha256(code).digest() + code)
        os.replace(temporary, path)  # atomic, even if other processes write the same file
    except OSError:
        Path(temporary).unlink(missing_ok=True)
        raise
    if path.name.startswith(COUNTED):
        _trim(path.parent)


def _trim(directory: Path) -> None:
    """Remove abandoned unfinished files, and the oldest code above the limit."""
    files = []
    with os.scandir(directory) as entries:
        for entry in entries:
            try:
                found = entry.stat()
            except FileNotFoundError:  # removed by another process
                continue
            if entry.name.endswith(".o"):
                files.append((found.st_mtime, found.st_size, entry.path))
            elif entry.name.endswith(".tmp") and time.time() - found.st_mtime > ABANDONED:
                Path(entry.path).unlink(missing_ok=True)
    total = sum(size for _, size, _ in files)
    if total <= LIMIT:
        return
    for _, size, path in sorted(files):
        Path(path).unlink(missing_ok=True)
        total -= size
        if total <= LIMIT:
            return
