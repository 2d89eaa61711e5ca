"""Files that a page uploads: bounded, checked, and written to a private folder that exists while they are read."""

from __future__ import annotations

import base64
import binascii
import tempfile
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

from ..errors import InputError, brief
from .folder import MODELS, plain_path

MOST_FILES, MOST_BYTES = 200, 24_000_000
"""The most files of one upload, and their size together [bytes]: a robot with meshes."""


@contextmanager
def uploaded(files: object) -> Iterator[tuple[Path, list[str]]]:
    """Yield a private folder with files [{"name": ..., "content": base64}], and their names; remove it at the end."""
    contents = _checked(files)
    with written(contents) as folder:
        yield folder, list(contents)


@contextmanager
def written(contents: dict[str, bytes]) -> Iterator[Path]:
    """Yield a private folder with files by their relative paths; remove it at the end."""
    with tempfile.TemporaryDirectory(prefix="kinetree-") as place:
        folder = Path(place).resolve()
        for name, content in contents.items():
            path = folder / name
            path.parent.mkdir(parents=True, exist_ok=True)
            path.write_bytes(content)
        yield folder


def model_among(names: list[str], chosen: object = None) -> str:
    """Return the model file of an upload: the chosen one, or the only one."""
    models = [name for name in names if Path(name).suffix.lower() in MODELS]
    if chosen is not None:
        if chosen not in models:
            raise InputError(f"{brief(chosen)} is not among the uploaded model files: {', '.join(models) or 'none'}")
        return str(chosen)
    if not models:
        raise InputError(f"no model among the files; drop one that ends with {', '.join(MODELS)}")
    if len(models) > 1:
        raise InputError(f"several models: {', '.join(models[:10])}; drop one, with its meshes")
    return models[0]


def _checked(files: object) -> dict[str, bytes]:
    """Return the contents of files by their relative paths."""
    if not isinstance(files, list) or not files:
        raise InputError(f"the files are {brief(files)}; expected a list of them, each with a name and its content")
    if len(files) > MOST_FILES:
        raise InputError(f"{len(files)} files; at most {MOST_FILES} can be opened together")
    contents: dict[str, bytes] = {}
    total = 0
    for file in files:
        if not isinstance(file, dict) or not isinstance(file.get("content"), str):
            raise InputError(f"{brief(file)} is not a file; expected a name and its content in base64")
        name = str(plain_path(file.get("name")))
        try:
            content = base64.b64decode(file["content"], validate=True)
        except (binascii.Error, ValueError):
            raise InputError(f"the content of {name!r} is not base64") from None
        total += len(content)
        if total > MOST_BYTES:
            raise InputError(f"the files have more than {MOST_BYTES:,} bytes; open them from the folder instead")
        inside = any(str(p) in contents for p in Path(name).parents)
        if name in contents or inside or any(other.startswith(f"{name}/") for other in contents):
            raise InputError(f"two of the files have the name {name!r}; rename one")
        contents[name] = content
    return contents
