"""Object code on disk, found again by mechanism, function, source, processor and version.

The code runs in this process, so it must come from this user: see `trust`. Damaged files are ignored.
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
"""Above this many bytes the oldest files go."""

ABANDONED = 3600.0
"""The age [s] from which an unfinished file counts as left behind: no file takes an hour to write."""

SOURCES = ("algebra", "joints", "loops", "model", "dynamics", "compiler")
"""The packages whose code decides what is compiled."""


def folder() -> Path:
    """Return the cache folder: KINETREE_CACHE_DIR, or the user's own."""
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
    """Return the folder that a variable names; an empty or relative one counts as unset, as XDG requires."""
    path = Path(os.environ.get(variable, ""))
    return path if path.is_absolute() else None


@cache
def source_hash() -> str:
    """Return a digest of the source files that decide what is compiled."""
    root = Path(__file__).parents[2]
    digest = hashlib.sha256()
    for package in SOURCES:
        for path in sorted((root / package).rglob("*.py")):
            digest.update(path.relative_to(root).as_posix().encode() + b"\0" + path.read_bytes())
    return digest.hexdigest()


def key(mechanism: Mechanism, request: Request, target: str) -> str:
    """Return the name under which the object code of a function is kept."""
    return digest(mechanism.motion_hash, repr(request), target)


def digest(*parts: str) -> str:
    """Return a name for what is made from some texts by this source."""
    return hashlib.sha256("\n".join((*parts, source_hash())).encode()).hexdigest()


def fetch(name: str, make: Callable[[], bytes]) -> bytes:
    """Return the object code kept under a name, or make it and keep it. An unusable folder only costs time."""
    try:
        place = folder()
        usable = private_folder(place)
    except (OSError, RuntimeError):  # RuntimeError: a user without a home
        return make()
    if not usable:
        return make()
    code = _found(place / f"{name}.o")
    if code is None:
        code = make()
        try:
            _keep(place / f"{name}.o", code)
        except OSError:
            pass
    return code


def _found(path: Path) -> bytes | None:
    """Return the sound object code of a file that only this user may write, or None."""
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
        os.replace(temporary, path)  # whole or not at all, whoever else writes the same
    except OSError:
        Path(temporary).unlink(missing_ok=True)
        raise
    _trim(path.parent)


def _trim(directory: Path) -> None:
    """Remove unfinished files that a killed process left, and the oldest code above the limit."""
    for path in directory.glob("*.tmp"):
        if time.time() - path.stat().st_mtime > ABANDONED:
            path.unlink(missing_ok=True)
    files = [(p.stat().st_mtime, p.stat().st_size, p) for p in directory.glob("*.o")]
    total = sum(size for _, size, _ in files)
    for _, size, path in sorted(files):
        if total <= LIMIT:
            return
        path.unlink(missing_ok=True)
        total -= size
