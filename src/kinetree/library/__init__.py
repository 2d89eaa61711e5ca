"""Built-in mechanisms, one native TOML file each, and the files of robots that other packages have installed."""

from __future__ import annotations

import ast
import importlib.metadata
import importlib.util
import os
from collections import Counter
from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass
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


@dataclass(frozen=True)
class Robot:
    """The file of a robot, the folders of its meshes and packages, and the arguments of a xacro file."""

    file: Path
    folders: tuple[Path, ...]
    arguments: dict[str, object] | None = None

    @classmethod
    def of(cls, file: Path) -> Robot:
        """Return the robot of a file; its meshes are in the folders above it."""
        return cls(file, tuple(islice(file.parents, 1, 5)))


def robots() -> dict[str, Path]:
    """Return the files of robots by name, such as "panda": of example-robot-data, and downloads of robot_descriptions.

    A name is that of the file, without "_robot", or that of the folder, without "_description", if several files of
    other folders have the same; downloads also have the names of their modules. Nothing is imported or downloaded.
    """
    return {name: found.file for name, found in _robots().items()}


def robot(name: str) -> Robot:
    """Return a robot by name; an error names those that are there."""
    known = _robots()
    if name in known:
        return known[name]
    if name in _modules():
        raise ModelError(
            f"the robot {name!r} of {DESCRIPTIONS} is not downloaded",
            remedy=f"run: python -m {DESCRIPTIONS} pull {name}_description",
        )
    if not known:
        raise ModelError(
            f"no package with a robot {name!r} is installed", remedy=f"install {DATA} or {DESCRIPTIONS} with pip"
        )
    raise unknown_name("robot", name, known)


def _robots() -> dict[str, Robot]:
    out = _named(_data_files())
    folder = Path(os.environ.get("ROBOT_DESCRIPTIONS_CACHE", "~/.cache/robot_descriptions")).expanduser()
    if folder.is_dir():
        out = _named(_downloads(folder)) | _described(folder) | out
    return dict(sorted(out.items()))


def _named(files: Iterable[Path]) -> dict[str, Robot]:
    """Return robots by the names of their files or folders."""
    found = sorted(files, key=lambda file: (file.suffix != ".urdf", file))
    same = Counter(stem for stem, _ in {(_stem(file), _robot_folder(file)) for file in found})
    out: dict[str, Robot] = {}
    for file in found:
        out.setdefault(_stem(file) if same[_stem(file)] == 1 else _robot_folder(file), Robot.of(file))
    return out


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


def _downloads(folder: Path) -> Iterable[Path]:
    """Return the URDF files of the folder into which robot_descriptions downloads."""
    found = islice(folder.rglob("*"), MOST)
    return (file for file in found if file.suffix == ".urdf" and file.is_file())


# --- The modules of robot_descriptions: they say which file of which repository a robot is. They are read, not run ---


def _modules() -> dict[str, Path]:
    """Return the modules of robot_descriptions, by the names of their robots."""
    spec = importlib.util.find_spec(DESCRIPTIONS)
    folders = (spec.submodule_search_locations or []) if spec is not None else []
    files = [file for folder in folders for file in Path(folder).glob("*_description.py")]
    return {file.stem.removesuffix("_description"): file for file in files}


def _described(folder: Path) -> dict[str, Robot]:
    """Return the robots that are downloaded, as URDF, MJCF or xacro, by the names of their modules."""
    modules, out = _modules(), dict[str, Robot]()
    if not modules:
        return {}
    table = _values(next(iter(modules.values())).with_name("_repositories.py"), folder, {}).get("REPOSITORIES")
    repositories: dict[object, object] = dict(table) if isinstance(table, dict) else {}
    for name, module in modules.items():
        given = _values(module, folder, repositories)
        for kind in ("URDF", "MJCF", "XACRO"):
            file = given.get(f"{kind}_PATH")
            if isinstance(file, Path) and file.is_file():
                own = (given.get("PACKAGE_PATH"), given.get("REPOSITORY_PATH"))
                folders = (*(x for x in own if isinstance(x, Path)), *Robot.of(file).folders)
                arguments = given.get("XACRO_ARGS") if kind == "XACRO" else None
                out[name] = Robot(file, folders, arguments if isinstance(arguments, dict) else None)
                break
    return out


def _values(module: Path, folder: Path, repositories: Mapping[object, object]) -> dict[str, object]:
    """Return the constants of a module that are texts, tables of texts, or paths below the folder of downloads."""
    out: dict[str, object] = {}

    def value(x: ast.expr) -> object:
        match x:
            case ast.Constant():
                return x.value
            case ast.Name():
                return out.get(x.id)
            case ast.Dict():
                return {value(key): value(own) for key, own in zip(x.keys, x.values, strict=True) if key is not None}
            case ast.Call(func=ast.Attribute(attr="join"), args=parts) if parts:
                first, *rest = map(value, parts)
                texts = [part for part in rest if isinstance(part, str)]
                return first.joinpath(*texts) if isinstance(first, Path) and len(texts) == len(rest) else None
            case ast.Call(func=ast.Name(id="Repository"), keywords=options):
                return next((value(option.value) for option in options if option.arg == "cache_path"), None)
            case ast.Call(func=ast.Name(id="_clone_to_cache"), args=[ast.Constant(value=str(name)), *_]):
                place = repositories.get(name)
                return folder / place if isinstance(place, str) else None
        return None

    try:
        lines = ast.parse(module.read_text(encoding="utf-8")).body
    except (OSError, ValueError, SyntaxError):
        return {}
    for line in lines:
        target = line.targets[0] if isinstance(line, ast.Assign) else getattr(line, "target", None)
        if isinstance(line, ast.Assign | ast.AnnAssign) and isinstance(target, ast.Name) and line.value is not None:
            out[target.id] = value(line.value)
    return out


__all__ = ["PREFIX", "names", "path", "robot", "robots"]
