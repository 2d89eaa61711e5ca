"""Readers and writers of mechanism files: one reader per format, chosen by the suffix of the file name."""

from __future__ import annotations

import difflib
import os
from collections.abc import Mapping
from contextlib import suppress
from itertools import islice
from pathlib import Path

from ..errors import Advice, ModelError
from ..model.mechanism import Mechanism
from ..model.part_fields import MAX_NAME
from .report import Report

SUFFIXES = (".toml", ".urdf", ".xacro", ".xml", ".sdf", ".csv", ".m")
"""The suffixes of files that `read` takes."""
KNOWN = f"{', '.join(SUFFIXES[:-1])} or {SUFFIXES[-1]}"
RESULTS = Advice(
    f"use {KNOWN}; results are read by kt.read_trajectory and kt.read_study",
    f"use {KNOWN}; runs are for `kinetree plot`, `replay` and `loads`, stores of studies for `report`",
)
"""What to do with a file of results in the place of a mechanism."""
BASED = (".urdf", ".xacro", ".sdf")
"""The suffixes of files whose base may float."""


def read(
    path: str | Path,
    *,
    base: str = "fixed",
    fixed: str = "merge",
    roots: tuple[str | Path, ...] = (),
    lenient: bool | None = None,
    contacts: bool = False,
    arguments: Mapping[str, object] | None = None,
) -> tuple[Mechanism, Report]:
    """Read .toml (native), .urdf, .xacro, .sdf, .xml (URDF or MJCF, by its root), .csv (DH table) or .m (ReDySim).

    `base`, `fixed` and `roots` are for URDF and SDF, the last two also for MJCF. `lenient` is for .toml, .csv and .m,
    where it overrides the setting in the file; the other formats are always read leniently. `contacts` is for MJCF.
    """
    path = Path(path)
    if not os.path.isfile(path):  # unlike Path.is_file, it does not raise for names that are too long
        there = os.path.lexists(path) and "is not a regular file, or a link that leads to none"
        kind = "is a folder" if os.path.isdir(path) else there or "does not exist"
        near = difflib.get_close_matches(path.name[:MAX_NAME], model_files(path.parent), n=1)
        hint = f"did you mean {near[0]!r}? " if near else ""
        raise ModelError(f"{kind}", file=_short(str(path)), remedy=f"{hint}give the path of a {KNOWN} file")
    suffix = path.suffix.lower()
    if arguments is not None and suffix not in (".xacro", ".urdf"):
        raise ModelError("arguments are those of xacro files", file=path, remedy="leave them out")
    if suffix == ".xml" and _is_mjcf(path):
        from .mjcf import read_mjcf

        if base != "fixed":
            what = Advice(*(f"{name} is an option of URDF and SDF files" for name in ("base", "--base")))
            raise ModelError(what, file=path, remedy="leave it out")
        return read_mjcf(path, fixed=fixed, contacts=contacts, roots=roots)
    if contacts:
        raise ModelError(
            "contacts=True is an option of MJCF files",
            file=path,
            remedy="leave it out: .toml files have [[contact]], and kt.contacts_of makes contacts of a URDF's shapes",
        )
    if suffix in (".urdf", ".xacro", ".xml"):
        from .urdf import read_urdf

        return read_urdf(path, base=base, fixed=fixed, roots=roots, arguments=arguments)
    if suffix == ".sdf":
        from .sdf import read_sdf

        return read_sdf(path, base=base, fixed=fixed, roots=roots)
    if base != "fixed" or fixed != "merge" or roots:
        given = "base, fixed and roots", "--base, --fixed and --root"
        what = Advice(*(f"{names} are options of URDF, SDF and MJCF files" for names in given))
        raise ModelError(what, file=path, remedy="leave them out")
    if suffix == ".toml":
        from .toml import read_toml

        return read_toml(path, lenient=lenient)
    if suffix == ".csv":
        from .dh import read_dh_csv

        return read_dh_csv(path, lenient=lenient)
    if suffix == ".m":
        from .redysim import read_redysim

        return read_redysim(path, lenient=lenient)
    kind = f"with the suffix {suffix!r}" if suffix else "without a suffix"
    remedy = RESULTS if suffix in (".npz", ".parquet", ".zarr") else f"use {KNOWN}"
    raise ModelError(f"files {kind} are not mechanisms", file=path, remedy=remedy)


def model_files(folder: str | Path) -> list[str]:
    """Return the names of the files of a folder that `read` takes, of the first thousand files there."""
    with suppress(OSError):
        return [f.name for f in islice(Path(folder).iterdir(), 1000) if f.suffix.lower() in SUFFIXES]
    return []


def _short(path: str) -> str:
    return path if len(path) <= 300 else path[:297] + "..."


def _is_mjcf(path: Path) -> bool:
    from .xml import read_xml

    return read_xml(path).tag.startswith("mujoco")  # also <mujocoinclude>, which is refused as a part of models
