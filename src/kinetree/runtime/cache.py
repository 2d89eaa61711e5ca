"""The cache of object code on disk, keyed by mechanism, function, source, processor and version.

The code runs in this process, so its files must belong to this user: see `trust`. Damaged files are ignored.
"""

from __future__ import annotations

import hashlib
import os
import stat
import sys
import tempfile
import time
import warnings
from collections.abc import Callable
from contextlib import suppress
from functools import cache
from pathlib import Path
from typing import BinaryIO

from ..compiler.ir.program import Program
from ..compiler.lower.build import Request
from ..dynamics import ALGORITHMS
from ..joints import is_shipped
from ..loops import is_shipped as shipped_loop
from ..model.mechanism import Mechanism

# --- Checks that code on disk belongs to this user: owner and permissions of a folder, its files and links ---
#
# Anyone who may write such a file determines what this process runs, and a checksum in the file itself is no
# protection. On Windows the folder of the user's local data is private by its access list, which is not checked here.

OTHERS_WRITE = stat.S_IWGRP | stat.S_IWOTH


def private_folder(path: Path) -> bool:
    """Create a folder if necessary and return whether only this user may write there; warn if others may."""
    path.mkdir(mode=0o700, parents=True, exist_ok=True)
    if not hasattr(os, "geteuid"):
        return True
    fault = _link_fault(path.lstat()) or _fault(path.stat())
    if fault:
        own = path.stat().st_uid == os.geteuid()
        remedy = f"run: chmod go-w {path}, or " if own else ""  # only the owner may change the permissions
        warnings.warn(
            f"the cache folder {path} is not used, because {fault}: compiled code there may come from another user; "
            f"{remedy}choose a folder of your own with KINETREE_CACHE_DIR",
            RuntimeWarning,
            stacklevel=2,
        )
    return not fault


def private_reader(path: Path) -> BinaryIO:
    """Open a file that only this user may write; raise PermissionError for any other, and for a link."""
    descriptor = os.open(path, os.O_RDONLY | getattr(os, "O_NOFOLLOW", 0) | getattr(os, "O_BINARY", 0))
    status = os.fstat(descriptor)
    fault = "" if stat.S_ISREG(status.st_mode) else "it is not a regular file"
    if hasattr(os, "geteuid"):
        fault = fault or _fault(status)
    if fault:
        os.close(descriptor)
        raise PermissionError(f"{path}: {fault}")
    return os.fdopen(descriptor, "rb")


def _fault(status: os.stat_result) -> str:
    """Return why somebody else may determine the content of a file or folder, or an empty text."""
    if status.st_uid != os.geteuid():
        return f"it belongs to user {status.st_uid}, not to user {os.geteuid()}"
    if status.st_mode & OTHERS_WRITE:
        return f"others may write to it (mode {stat.S_IMODE(status.st_mode):o})"
    return ""


def _link_fault(status: os.stat_result) -> str:
    """Return why a link to the folder must not be followed: another user has made it."""
    if stat.S_ISLNK(status.st_mode) and status.st_uid not in (os.geteuid(), 0):
        return f"it is a link of user {status.st_uid}, not of user {os.geteuid()}"
    return ""


MAGIC = b"kinetree-object-1\n"
LIMIT = 512 * 2**20
"""The largest total size of the files [bytes]; above it the oldest are removed."""

COUNTED = "0"
"""The first digit of the names with which the files are counted: one in sixteen, because that takes 3 us per file."""

ABANDONED = 3600.0
"""The age [s] from which an unfinished file counts as abandoned: no file takes an hour to write."""

SOURCES = ("algebra", "joints", "loops", "model", "dynamics", "compiler", "targets", "runtime")
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
def source_hash(packages: tuple[str, ...] = SOURCES) -> str:
    """Return a digest of the source files of packages, by default those that determine the compiled code."""
    root = Path(__file__).parents[1]
    digest = hashlib.sha256()
    for package in packages:
        for path in sorted(x for x in (root / package).rglob("*") if x.suffix in (".py", ".ll")):
            digest.update(path.relative_to(root).as_posix().encode() + b"\0" + path.read_bytes())
    return digest.hexdigest()


def key(mechanism: Mechanism, request: Request, target: str) -> str:
    """Return the name under which the object code of a function is stored."""
    return digest(mechanism.motion_hash, repr(request), target)


def digest(*parts: str, packages: tuple[str, ...] = SOURCES) -> str:
    """Return the name of code that the source of these packages makes from some texts."""
    return hashlib.sha256("\n".join((*parts, source_hash(packages))).encode()).hexdigest()


def fetch(name: str, make: Callable[[], bytes]) -> bytes:
    """Return the object code stored under a name, or make and store it; without a usable folder it is always made."""
    place = _usable()
    if place is None:
        return make()
    path = place / f"{name}.o"
    code = _found(path)
    if code is None:
        code = make()
        with suppress(OSError):
            _keep(path, code)
    return code


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


def files() -> list[tuple[float, int, str]]:
    """Return the files of object code, oldest first: time of writing [s], size [bytes], path; none without a folder."""
    try:
        return _files(folder(), ".o")
    except (OSError, RuntimeError):  # there is no folder, or it cannot be read
        return []


def clear() -> None:
    """Remove all code, and what was not finished; processes that have loaded code keep it."""
    for suffix in (".o", ".tmp"):
        for _, _, path in _files(folder(), suffix) if folder().is_dir() else ():
            Path(path).unlink(missing_ok=True)


def _files(directory: Path, suffix: str) -> list[tuple[float, int, str]]:
    found = []
    with os.scandir(directory) as entries:
        for entry in entries:
            if not entry.name.endswith(suffix):
                continue
            try:
                status = entry.stat(follow_symlinks=False)
            except FileNotFoundError:  # removed by another process
                continue
            found.append((status.st_mtime, status.st_size, entry.path))
    return sorted(found)


def _trim(directory: Path) -> None:
    """Remove abandoned unfinished files, and the oldest code above the limit."""
    for written, _, path in _files(directory, ".tmp"):
        if time.time() - written > ABANDONED:
            Path(path).unlink(missing_ok=True)
    found = _files(directory, ".o")
    total = sum(size for _, size, _ in found)
    for _, size, path in found:
        if total <= LIMIT:
            return
        Path(path).unlink(missing_ok=True)
        total -= size


# --- The key of a function's code in the cache ---


def code_key(mechanism: Mechanism, request: Request, program: Callable[[], Program], fingerprint: str) -> str:
    """Return the key of the code of a request for a target.

    The key of a mechanism covers only the sources of this package. With algorithms or kinds from elsewhere, the key is
    the hash of the arithmetic.
    """
    if ALGORITHMS[request.name].page.__module__.startswith("kinetree.") and of_shipped_kinds(mechanism):
        return key(mechanism, request, fingerprint)
    return digest(program().hash, request.dtype, fingerprint)


def of_shipped_kinds(mechanism: Mechanism) -> bool:
    """Return whether the source of this package determines the kinds of all joints and loops."""
    return all(is_shipped(x.kind) for x in mechanism.joints) and all(shipped_loop(x.kind) for x in mechanism.loops)
