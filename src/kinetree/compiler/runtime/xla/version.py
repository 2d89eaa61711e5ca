"""The version of XLA's foreign function interface in the installed jaxlib."""

from __future__ import annotations

import re
from functools import cache
from pathlib import Path

from ....errors import InputError
from ...targets.xla_frame import MAJOR
from .. import optional


@cache
def minor_version() -> int:
    """Return the minor version; InputError if the major version is another one."""
    jax = optional.jax()
    header = (Path(jax.ffi.include_dir()) / "xla" / "ffi" / "api" / "c_api.h").read_text(encoding="utf-8")
    found = [re.search(rf"#define XLA_FFI_API_{part} (\d+)", header) for part in ("MAJOR", "MINOR")]
    major, minor = (-1 if x is None else int(x[1]) for x in found)
    if major != MAJOR or minor < 0:
        raise InputError(
            f"the foreign function interface of jax {jax.__version__} has version {major}.{minor}; version {MAJOR}.x "
            "is required: install another version of jax"
        )
    return minor
