"""The option --out of commands that write into a folder: the name of a file is refused."""

from __future__ import annotations

import re
from collections.abc import Callable
from pathlib import Path

ENDING = re.compile(r"\.(?:[a-z]{1,5}|mp4|h5)", re.IGNORECASE)
"""The ending of a file: short and of letters, unlike that of a version such as results.v2."""


def folder(naming: str) -> Callable[[Path | None], Path | None]:
    """Return the check of a folder that may not exist yet; `naming` is what names the files in it."""

    def checked(path: Path | None) -> Path | None:
        from ..errors import InputError

        if path is not None and ENDING.fullmatch(path.suffix) and not path.is_dir():
            raise InputError(f"--out {str(path)!a}: give a folder, without {path.suffix}; {naming}")
        return path

    return checked
