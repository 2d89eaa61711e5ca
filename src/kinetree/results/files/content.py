"""Content of a trajectory file, independent of its format, and bounds of the memory that a file can claim."""

from __future__ import annotations

import hashlib
import json
import os
import platform
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Any
from zipfile import ZipFile, is_zipfile

import numpy as np

from ..._support import VERSION as PACKAGE_VERSION
from ...algebra.scalars import Numbers
from ...errors import InputError, unknown_name
from ...formats.toml import read_toml_text
from ...formats.toml_writer import write_toml
from ...simulation.outcomes import Endings
from ...simulation.run_states import zeros
from ...system import System
from ..columns import CONTACTS, contact_shapes, is_zeros

if TYPE_CHECKING:
    from ..trajectory import Trajectory


FORMAT = "kinetree trajectory"
VERSION = 1
STORED = {
    "torque": "tau",
    "control": "control",
    "accelerations": "qdd",
    "wrenches": "wrenches",
    "reference": "reference",
    **{name: name for name in CONTACTS},
}
"""Fields that may be absent, with the names of the columns that store them."""


@dataclass(frozen=True)
class Content:
    """Arrays by name, in order, and the table `about` that describes them, of types that JSON can represent."""

    about: dict[str, Any]
    arrays: dict[str, Numbers]


def pack(run: Trajectory, extra: Sequence[str] = ()) -> Content:
    """Return the content of a run's file: states, torques and wrenches, additional columns, and the mechanism."""
    known = {column.name: column for column in run.columns}
    held = {column: values for field, column in STORED.items() if (values := getattr(run, field)) is not None}
    zero = [column for column, values in held.items() if is_zeros(values)]  # gigabytes of zeros for large batches
    given = [column for column in held if column not in zero]
    names = ["t", "q", "qd", *given]
    for name in extra:
        if name not in known:
            raise unknown_name("column", name, known)
        names += [] if name in names else [name]
    arrays = {name: run[name] for name in names}
    entries = [{"name": n, "labels": list(known[n].labels), "units": list(known[n].units)} for n in names]
    if run.parameters is not None:
        free = run.system.mechanism.free_parameters
        arrays["parameters"] = run.parameters
        labels = [f"parameters.{p.name}" for p in free]
        entries.append({"name": "parameters", "labels": labels, "units": [p.unit or "1" for p in free]})
    for entry in entries:
        entry["shape"] = list(arrays[entry["name"]].shape)
    mechanism = run.system.mechanism
    about = {
        "format": FORMAT,
        "version": VERSION,
        "mechanism": {"name": mechanism.name, "hash": mechanism.hash, "toml": write_toml(mechanism)},
        "batch": list(run.shape),
        "given": given,
        "zero": zero,
        "method": run.method,
        "options": dict(run.options),
        "status": run.status,
        "endings": run.endings.plain(),
        "evaluations": int(run.evaluations),
        "versions": _versions(),
        "arrays": entries,
    }
    about["digest"] = _digest(about, arrays)
    return Content(about, arrays)


def _versions() -> dict[str, str]:
    return {"kinetree": PACKAGE_VERSION, "numpy": np.__version__, "python": platform.python_version()}


def unpack(content: Content, path: Path, system: System | None) -> dict[str, object]:
    """Return the fields of the run in a file's content, or raise an InputError if the content was altered."""
    about, arrays = content.about, content.arrays
    if not isinstance(about, dict) or about.get("format") != FORMAT:
        raise InputError(f"{path}: is not a trajectory; give a file that a run's save(...) wrote")
    if about.get("version") != VERSION:
        raise InputError(
            f"{path}: has version {about.get('version')!r}, but this Kinetree reads {VERSION}; update Kinetree"
        )
    for name, array in arrays.items():
        if array.dtype.kind not in "fiu":
            raise InputError(f"{path}: the column {name!r} has the type {array.dtype}; runs have plain real numbers")
    if about.get("digest") != _digest(about, arrays):
        raise InputError(f"{path}: is damaged: the digest of its content is wrong; save the run again")
    own = _system(about["mechanism"], path, system)
    fields: dict[str, object] = {name: arrays[name] for name in ("t", "q", "qd")}
    fields |= {field: arrays[column] for field, column in STORED.items() if column in about["given"]}
    sizes = {"wrenches": (len(own.bodies), 6), "reference": (own.nq,), **contact_shapes(own.mechanism)}
    for field, column in STORED.items():
        if column in about.get("zero", ()):  # files of earlier versions store all zeros
            lead = arrays["t"].shape if field == "reference" else arrays["q"].shape[:-1]
            fields[field] = zeros((*lead, *sizes.get(field, (own.nv,))))
    kept = {name: about[name] for name in ("method", "options", "evaluations")}
    endings = Endings.read(about.get("endings"), about["status"])
    return fields | {"system": own, "parameters": arrays.get("parameters"), "endings": endings} | kept


def _system(stored: dict[str, str], path: Path, system: System | None) -> System:
    if system is not None:
        if system.mechanism.hash != stored["hash"]:
            raise InputError(
                f"{path}: is a run of {stored['name']!r} with the hash {stored['hash'][:12]}, not of the given "
                f"{system.mechanism.name!r} with {system.mechanism.hash[:12]}; leave out system= to read its own"
            )
        return system
    mechanism, report = read_toml_text(stored["toml"], file=str(path))
    if mechanism.hash != stored["hash"]:
        raise InputError(
            f"{path}: the mechanism inside has the hash {mechanism.hash[:12]}, but the run is of "
            f"{stored['hash'][:12]}; the file was altered, or written by another version of Kinetree"
        )
    return System(mechanism, report)


def _digest(about: dict[str, Any], arrays: dict[str, Numbers]) -> str:
    """Return a digest of everything but itself; all NaN values count as the same."""
    digest = hashlib.sha256(json.dumps({**about, "digest": None}, sort_keys=True).encode())
    for name, array in arrays.items():
        plain = np.ascontiguousarray(np.where(np.isnan(array), np.nan, array), dtype="<f8")
        digest.update(f"{name}{array.shape}".encode() + plain.tobytes())
    return digest.hexdigest()


# --- Bounds of the memory that a file can claim: a small one may describe, or compress, arrays of any size ---


COPIES = 3
"""Arrays of a run that are in memory at once while its digest is computed."""
PACKED = ((256 << 20, 1000), (2 << 30, 20))
"""Sizes of arrays [bytes] above which their ratio to the file is bounded, each with the largest ratio.

Columns that never change take little, but some column does change. Only runs of many columns, almost all of which rest,
have ratios above 20."""


def require_archive(path: Path, remedy: str) -> None:
    """Raise an InputError for a file that is no archive, for which NumPy's message would recommend pickle."""
    if not is_zipfile(path):
        raise InputError(f"{path}: is not an .npz file, or is incomplete; {remedy}")


def refuse_packed(archive: ZipFile, path: Path) -> None:
    """Raise an InputError for an NPZ file whose arrays are larger than the file itself: Kinetree compresses none."""
    size = sum(info.file_size for info in archive.infolist())
    if size > path.stat().st_size:
        raise InputError(
            f"{path}: its arrays have {size} bytes, more than the file; Kinetree writes them without compression"
        )


def refuse_large(size: int, path: Path, stored: int | None = None) -> None:
    """Raise an InputError for arrays of so many bytes if this machine cannot hold them.

    With `stored`, the bytes of the file itself, arrays that are packed more densely than any run are refused too.
    """
    most = memory() // COPIES
    if size > most:
        raise InputError(
            f"{path}: its arrays have {size / 1e9:.3g} GB, and this machine can read {most / 1e9:.3g} GB; "
            "the file is damaged, or needs a machine with more memory"
        )
    for least, ratio in PACKED:
        if stored is not None and size > max(least, ratio * stored):
            raise InputError(
                f"{path}: its arrays have {size / 1e9:.3g} GB, more than {ratio} times the {stored:,} bytes of the "
                "file; it is damaged, or save the run as .npz"
            )


def memory() -> int:
    """Return the memory of this machine [bytes], or 16 GiB where the system does not report it."""
    try:
        return os.sysconf("SC_PHYS_PAGES") * os.sysconf("SC_PAGE_SIZE")
    except (AttributeError, OSError, ValueError):  # not a POSIX system
        return 16 << 30
