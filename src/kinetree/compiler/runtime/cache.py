"""Object code on disk, found again by mechanism, function, source, processor and version; damaged files are ignored."""

from __future__ import annotations

import hashlib
import os
import sys
import tempfile
from collections.abc import Callable
from functools import cache
from pathlib import Path

from ...model.mechanism import Mechanism
from ..lower.build import Request

MAGIC = b"kinetree-object-1\n"
LIMIT = 512 * 2**20
"""Above this many bytes the oldest files go."""

SOURCES = ("algebra", "joints", "loops", "model", "dynamics", "compiler")
"""The packages whose code decides what is compiled."""


def folder() -> Path:
    """Return the cache folder: KINETREE_CACHE_DIR, or the user's own."""
    if chosen := os.environ.get("KINETREE_CACHE_DIR"):
        return Path(chosen)
    if sys.platform == "win32":
        base = Path(os.environ.get("LOCALAPPDATA", Path.home() / "AppData" / "Local"))
    elif sys.platform == "darwin":
        base = Path.home() / "Library" / "Caches"
    else:
        base = Path(os.environ.get("XDG_CACHE_HOME", Path.home() / ".cache"))
    return base / "kinetree"


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
    path = folder() / f"{name}.o"
    try:
        data = path.read_bytes()
        if data.startswith(MAGIC):
            checksum, code = data[len(MAGIC) :][:32], data[len(MAGIC) + 32 :]
            if hashlib.sha256(code).digest() == checksum:
                return code
    except OSError:
        pass
    code = make()
    try:
        _keep(path, code)
    except OSError:
        pass
    return code


def _keep(path: Path, code: bytes) -> None:
    path.parent.mkdir(mode=0o700, parents=True, exist_ok=True)
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
    files = [(p.stat().st_mtime, p.stat().st_size, p) for p in directory.glob("*.o")]
    total = sum(size for _, size, _ in files)
    for _, size, path in sorted(files):
        if total <= LIMIT:
            return
        path.unlink(missing_ok=True)
        total -= size
