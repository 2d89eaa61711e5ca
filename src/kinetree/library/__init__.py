"""Built-in mechanisms, one native TOML file each, and the files of robots that other packages have installed."""

from __future__ import annotations

import importlib.metadata
import importlib.util
import os
from collections import Counter
from collections.abc import Iterable, Iterator
from itertools import islice
from pathlib import Path

from ..errors import ModelError, unknown_name

_FOLDER = Path(__file__).parent
PREFIX = "robot:"
"""What names of robots of other packages begin with, where a model is expected."""
DATA, DESCRIPTIONS = "example-robot-data", "robot_descriptions"
"""The packages that are searched: one has the files, the other downloads them into a folder."""
MOST = 200_000
"""The largest number of files and folders that are looked at in the folder of downloads."""


def names() -> tuple[str, ...]:
    """Return the names of the built-in mechanisms."""
    return tuple(sorted(file.stem for file in _FOLDER.glob("*.toml")))


def path(name: str) -> Path:
    """Return the file of a built-in mechanism."""
    known = names()
    if name not in known:
        raise unknown_name("built-in mechanism", name, known)
    return _FOLDER / f"{name}.toml"


def robots() -> dict[str, Path]:
    """Return the files of robots by name, such as "panda": of example-robot-data, and downloads of robot_descriptions.

    A name is that of the file, without "_robot", or that of the folder, without "_description", if several files of
    other folders have the same. Nothing is imported or downloaded.
    """
    out: dict[str, Path] = {}
    for files in (_data_files(), _downloads()):
        found = sorted(files, key=lambda file: (file.suffix != ".urdf", file))
        same = Counter(stem for stem, _ in {(_stem(file), _robot_folder(file)) for file in found})
        for file in found:
            stem = _stem(file)
            out.setdefault(stem if same[stem] == 1 else _robot_folder(file), file)
    return dict(sorted(out.items()))


def robot(name: str) -> tuple[Path, tuple[Path, ...]]:
    """Return the file of a robot and the folders of its meshes; an error names those that are there."""
    known = robots()
    if name in known:
        file = known[name]
        return file, tuple(islice(file.parents, 1, 5))
    if f"{name}_description" in _described():
        raise ModelError(
            f"the robot {name!r} of {DESCRIPTIONS} is not downloaded",
            remedy=f"run: python -m {DESCRIPTIONS} pull {name}_description",
        )
    if not known:
        raise ModelError(
            f"no package with a robot {name!r} is installed", remedy=f"install {DATA} or {DESCRIPTIONS} with pip"
        )
    raise unknown_name("robot", name, known)


def _stem(file: Path) -> str:
    return file.stem.removesuffix("_robot")


def _robot_folder(file: Path) -> str:
    """Return the name of a robot's folder: the first above the file that is not one for its format."""
    folder = next((p.name for p in file.parents if p.name not in ("urdf", "robots", "sdf", "models")), "")
    return folder.removesuffix("_description")


def _data_files() -> Iterator[Path]:
    try:
        files = importlib.metadata.files(DATA) or []
    except importlib.metadata.PackageNotFoundError:
        return
    yield from (Path(str(f.locate())).resolve() for f in files if f.suffix in (".urdf", ".sdf"))


def _downloads() -> Iterable[Path]:
    """Return the URDF files of the folder into which robot_descriptions downloads."""
    default = Path(os.environ.get("XDG_CACHE_HOME") or Path.home() / ".cache") / DESCRIPTIONS
    folder = Path(os.environ.get("ROBOT_DESCRIPTIONS_CACHE") or default)
    found = islice(folder.rglob("*"), MOST)
    return (file for file in found if file.suffix == ".urdf" and file.is_file())


def _described() -> set[str]:
    """Return the modules of robot_descriptions, one per robot, without importing them."""
    spec = importlib.util.find_spec(DESCRIPTIONS)
    folders = (spec.submodule_search_locations or []) if spec is not None else []
    return {file.stem for folder in folders for file in Path(folder).glob("*_description.py")}


__all__ = ["PREFIX", "names", "path", "robot", "robots"]
