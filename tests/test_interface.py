"""The public interface: names, signatures and commands as recorded in interface.txt, which changes with the changelog.

After a change that CHANGELOG.md names, `python tests/test_interface.py` records the interface and writes docs/names.md.
"""

from __future__ import annotations

import difflib
import enum
import functools
import inspect
import re
import sys
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
import typer

import kinetree

RECORD = Path(__file__).parent / "interface.txt"
CHANGELOG = Path(__file__).parents[1] / "CHANGELOG.md"
NAMES = Path(__file__).parents[1] / "docs" / "names.md"
GROUPS = {
    "Load, build and save": ("loading", "model", "library", "formats"),
    "Analyze": ("analysis",),
    "Simulate: runs, forces, controllers, references": ("simulation",),
    "Plan": ("planning",),
    "Results and reports": ("results", "reports"),
    "Studies": ("studies",),
    "Learn": ("environments",),
    "Take elsewhere": ("exporting",),
    "Lessons and walking": ("apps",),
    "Errors": ("errors",),
}
"""Chapters of docs/names.md, with the packages whose names they list."""
REMEDY = """The public interface differs from tests/interface.txt:

{}

A public name, argument, default or option that users may rely on has changed; docs/stability.md says what is promised.
If that is intended: name each changed entry in the first section of CHANGELOG.md, then run
`python tests/test_interface.py`, which records the interface."""


def interface() -> str:
    """Return the public names with their signatures, the public members of classes, and all commands with options."""
    lines = [line for name in kinetree.__all__ for line in describe(f"kt.{name}", getattr(kinetree, name))]
    from kinetree.apps.cli import app

    return "\n".join([*lines, *describe_command("kinetree", typer.main.get_command(app))]) + "\n"


def describe(name: str, value: Any) -> Iterator[str]:
    """Yield the lines of a public value; of a class, those of its public members, also of the bases within Kinetree."""
    if not inspect.isclass(value):
        yield f"{name}{signature(value)}" if callable(value) else f"{name}: {type(value).__name__}"
        return
    if issubclass(value, enum.Enum):
        yield f"{name}: {', '.join(member.name for member in value)}"
        return
    yield f"{name}{signature(value)}"
    members: dict[str, Any] = {}
    for base in reversed(value.__mro__):
        if base.__module__.startswith("kinetree"):
            members |= {key: x for key, x in vars(base).items() if not key.startswith("_")}
    for key, x in sorted(members.items()):
        member = x.__func__ if isinstance(x, classmethod | staticmethod) else x
        if isinstance(member, property | functools.cached_property):
            yield f"{name}.{key}: property"
        elif inspect.isroutine(member):
            yield f"{name}.{key}{signature(member)}"


def signature(value: Any) -> str:
    """Return the names and defaults of the arguments, without types and without self."""
    try:
        found = inspect.signature(value)
    except (TypeError, ValueError):  # of a base class in C
        return "(...)"
    kept = [x.replace(annotation=x.empty) for x in found.parameters.values() if x.name != "self"]
    text = str(found.replace(parameters=kept, return_annotation=found.empty))
    return re.sub(r" at 0x[0-9a-f]+|<class '([\w.]+)'>", r"\1", text)


def describe_command(name: str, command: Any) -> Iterator[str]:
    """Yield the lines of a command and of all its subcommands: their arguments and options."""
    given = [" ".join(x.opts) if x.param_type_name == "option" else str(x.name).upper() for x in command.params]
    yield " ".join([name, *(f"[{x}]" for x in given)])
    for key, sub in sorted(getattr(command, "commands", {}).items()):
        yield from describe_command(f"{name} {key}", sub)


def names_page() -> str:
    """Return docs/names.md: every public name and every method of System in one line each, by subject."""
    lines = [
        "# All names",
        "",
        "Every public name of `kinetree`, by convention `kt`, with its first arguments and the first sentence of its",
        "help; `help(kt.simulate)` prints the rest. This page is written by `python tests/test_interface.py`.",
    ]
    named = {name: getattr(kinetree, name) for name in kinetree.__all__}
    system = named.pop("System")
    left = dict(named)
    for title, packages in GROUPS.items():
        inside = {
            name: x
            for name, x in left.items()
            if getattr(x, "__module__", "").removeprefix("kinetree.").split(".")[0] in packages
        }
        lines += _table(title, inside, "kt.")
        left = {name: x for name, x in left.items() if name not in inside}
    methods = {key: x for base in reversed(system.__mro__) for key, x in vars(base).items() if not key.startswith("_")}
    lines += _table("What a System does", {key: x for key, x in methods.items() if inspect.isfunction(x)}, "arm.")
    lines += _table("Further names", left, "kt.")
    return "\n".join(lines) + "\n"


def _table(title: str, members: dict[str, Any], prefix: str) -> list[str]:
    """Return a chapter of the page with a line per name."""
    rows = [
        f"| `{prefix}{name}{_arguments(x)}` | {_first_sentence(x)} |"
        for name, x in sorted(members.items(), key=lambda item: item[0].lower())
    ]
    return ["", f"## {title}", "", "| name | what it is or returns |", "|---|---|", *rows] if rows else []


SHOWN = 4
"""The most arguments of a name on the page."""


def _arguments(value: Any) -> str:
    if not callable(value) or (inspect.isclass(value) and issubclass(value, enum.Enum | Exception)):
        return ""
    try:
        names = [x.name for x in inspect.signature(value).parameters.values() if x.name != "self"]
    except (TypeError, ValueError):
        return "(...)"
    return f"({', '.join([*names[:SHOWN], *(['...'] if len(names) > SHOWN else [])])})"


def _first_sentence(value: Any) -> str:
    """Return the first sentence of the help, as text of a table."""
    if not (callable(value) or inspect.ismodule(value)):
        return f"`{value!r}`"
    paragraph = " ".join((inspect.getdoc(value) or "").split("\n\n")[0].split())
    return re.split(r"(?<=\w[.])\s+(?=[A-Z`])", paragraph, maxsplit=1)[0].replace("|", "\\|")


def changed(before: str, after: str) -> list[str]:
    """Return the entries that differ: public names, members, or commands, without their signatures."""
    lines = set(before.splitlines()) ^ set(after.splitlines())
    return sorted({re.split(r"[(\[:]", line, maxsplit=1)[0].strip() for line in lines})


def unnamed(entries: list[str], changelog: str) -> list[str]:
    """Return the entries whose last word the first section of a changelog does not have."""
    section = changelog.split("\n## ", 2)[1]
    words = set(re.findall(r"\w+", section))
    return [entry for entry in entries if re.findall(r"\w+", entry)[-1] not in words]


def test_the_interface_is_the_recorded_one():
    """Find every public name, argument, default, member and option as recorded."""
    before, after = RECORD.read_text(), interface()
    difference = "\n".join(difflib.unified_diff(before.splitlines(), after.splitlines(), "recorded", "now", "", "", 0))
    assert before == after, REMEDY.format(difference)


def test_the_page_of_names_is_the_present_one():
    """Find every public name, with the first sentence of its help, on the page of names."""
    assert NAMES.read_text() == names_page(), "docs/names.md is out of date; run `python tests/test_interface.py`"
    assert all(f"`kt.{name}" in NAMES.read_text() for name in kinetree.__all__ if name != "System")


def test_the_record_has_functions_classes_and_commands():
    """Find entries of each sort, with arguments and without addresses in memory."""
    record = RECORD.read_text()
    assert "\nkt.load(" in record and "\nkt.System.inverse_dynamics(q, qd, qdd" in record
    assert "\nkinetree simulate [MODEL]" in record and "--duration" in record
    assert " at 0x" not in record


def test_a_change_needs_a_line_of_the_changelog():
    """Rename an argument, add a name, and find those that the first section of a changelog does not name."""
    before = "kt.load(path)\nkt.Beam(length)\n"
    entries = changed(before, "kt.load(source)\nkt.Beam(length)\nkt.Rod(length)\n")
    assert entries == ["kt.Rod", "kt.load"]
    log = "# Changelog\n\n## [1.1]\n\n* `kt.load` has another name for its argument.\n\n## [1.0]\n\n* Rod\n"
    assert unnamed(entries, log) == ["kt.Rod"]


def test_recording_refuses_changes_without_a_line(tmp_path, monkeypatch):
    """Record a changed interface only if the changelog names what changed."""
    monkeypatch.setattr(sys.modules[__name__], "RECORD", tmp_path / "interface.txt")
    monkeypatch.setattr(sys.modules[__name__], "CHANGELOG", tmp_path / "CHANGELOG.md")
    monkeypatch.setattr(sys.modules[__name__], "NAMES", tmp_path / "names.md")
    RECORD.write_text(interface() + "kt.gone_since(x)\n")
    CHANGELOG.write_text("# Changelog\n\n## [1.1]\n\n* Nothing.\n")
    with pytest.raises(SystemExit, match=r"CHANGELOG.md does not name kt.gone_since"):
        record()
    CHANGELOG.write_text("# Changelog\n\n## [1.1]\n\n* `kt.gone_since` is gone.\n")
    record()
    assert RECORD.read_text() == interface()


def record() -> None:
    """Write the interface, or end with a message if the changelog does not name what changed."""
    now = interface()
    if RECORD.exists() and (missing := unnamed(changed(RECORD.read_text(), now), CHANGELOG.read_text())):
        raise SystemExit(f"CHANGELOG.md does not name {', '.join(missing)} in its first section")
    RECORD.write_text(now)
    NAMES.write_text(names_page())


if __name__ == "__main__":
    record()
