"""Templates of new robots: a commented model file, an experiment and a README, which work before they are changed."""

from __future__ import annotations

import re
from dataclasses import dataclass
from pathlib import Path

from ..errors import InputError, WriteError, unknown_name, writing

_FOLDER = Path(__file__).parent / "templates"
_NAME = re.compile(r"[A-Za-z][A-Za-z0-9_-]{0,63}")


@dataclass(frozen=True)
class Template:
    """A kind of robot: what it is, and the words of its README that differ from kind to kind."""

    summary: str
    inputs: str
    loops: str
    inverse: str
    start: str = ""


_JOINTS = (
    "connect the bodies by joints: kind, axis as a letter, placement in the parent and, for a body in the frame of its "
    "drawing, in the child"
)
_NO_LOOPS = (
    "this robot has none; to close one, write all joints of the ring as pairs, with placements in both bodies, and add "
    "the pair that closes it"
)
KINDS = {
    "arm": Template("an arm of three joints", _JOINTS, _NO_LOOPS, '--cycloid --q1 "0.8, 1.1, -1.2"'),
    "tree": Template(
        "a torso with two arms and a head",
        _JOINTS,
        _NO_LOOPS,
        '--cycloid --q1 "0, 1, 1, 1, 1, 0"',
        " --set left_shoulder=1",
    ),
    "closed": Template(
        "a boom with a linear actuator and a balancing spring",
        "connect any two bodies by pairs: kind, axis as a letter, placements in the drawings of both; a tree is chosen",
        "mark actuated pairs with `cut = false`; the report names the pairs that were cut, the doctor what can move",
        '--cycloid --actuated actuator --actuated wrist --q0 "0.03, 0" --q1 "0.17, -pi/4"',
    ),
}
"""The kinds of templates by name."""


def new_robot(name: str, kind: str = "arm", folder: str | Path | None = None) -> list[Path]:
    """Write the files of a new robot into a folder, by default one of its name, and return their paths.

    No existing file is changed: if the folder has one of these names, nothing is written.
    """
    if not isinstance(name, str) or not _NAME.fullmatch(name):
        raise InputError(
            f"the name {name!r} cannot be used for files and models; give letters, digits, _ and -, a letter first"
        )
    if kind not in KINDS:
        raise unknown_name("kind of template", kind, KINDS)
    folder = Path(name if folder is None else folder)
    texts = {
        folder / f"{name}.toml": _text(f"{kind}.toml", name),
        folder / "experiment.toml": _text(f"{kind}_experiment.toml", name),
        folder / "README.md": _readme(name, KINDS[kind]),
    }
    for path in texts:
        if path.exists() or path.is_symlink():
            raise InputError(
                f"{path}: exists, and is not overwritten; choose another name or another folder with --output"
            )
    try:
        folder.mkdir(parents=True, exist_ok=True)
    except OSError as error:
        raise WriteError(f"{folder}: cannot be made ({error.strerror}); choose another folder with --output") from None
    for path, text in texts.items():
        with writing(path), open(path, "x", encoding="utf-8", newline="\n") as stream:
            stream.write(text)
    return list(texts)


def _text(file: str, name: str) -> str:
    return (_FOLDER / file).read_text(encoding="utf-8").replace("ROBOT", name)


def _readme(name: str, template: Template) -> str:
    text = _text("README.md", name)
    marks = {
        "STEP2": template.inputs,
        "STEP5": template.loops,
        "INVERSE": template.inverse,
        "START": template.start,
    }
    for mark, words in marks.items():
        text = text.replace(mark, words)
    return text


__all__ = ["KINDS", "Template", "new_robot"]
