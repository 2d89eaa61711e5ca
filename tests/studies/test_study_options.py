"""The options of studies: their declaration against the function, files, the command line and the documentation."""

from __future__ import annotations

import inspect
from pathlib import Path

import pytest

import kinetree as kt
from kinetree._support.options import option_names, written_options
from kinetree.apps.cli import studying
from kinetree.experiments import studies
from kinetree.studies.optimizing import OPTIONS
from kinetree.studies.plan import STORING, StudyOptions

DOCS = Path(__file__).parents[2] / "docs" / "studies.md"


def test_options_are_declared_once():
    """Compare the options of study with their declaration: names, types and defaults, in the same order."""
    declared = list(inspect.signature(StudyOptions).parameters.values())
    own = {"system", "over", "measures", "progress"}
    assert [p for p in inspect.signature(kt.study).parameters.values() if p.name not in own] == declared
    assert tuple(p.name for p in declared) == option_names(StudyOptions)


def test_files_and_the_command_line_have_the_options_that_text_can_state():
    """Find every option with a help in a table of study files, or on the command line with that help."""
    written, command = written_options(StudyOptions), inspect.signature(studying.study).parameters
    in_files = {name for name, option in written.items() if option.tables}
    assert in_files == set(studies.READERS)
    for name in in_files:
        assert all(name in studies.KEYS[table] for table in written[name].tables), name
    assert "parameters" in studies.TABLES
    for name in (*STORING, "store"):
        shown = command["scheduler" if name == "on" else name]
        assert shown.default == written[name].default
        assert f'_HELP["{name}"]' in shown.annotation.replace("'", '"')
    assert set(written) == in_files | {"parameters", "store", *STORING}
    assert all(option.help.endswith(".") and len(option.help) < 200 for option in written.values())


def test_the_documentation_has_the_declared_options():
    """Compare the table of options in the documentation with the declaration."""
    table = DOCS.read_text().split("\n## Options\n")[1].split("\n\n|")[1].split("\n\n")[0]
    found = f"|{table}".splitlines()[2:]
    assert found == [
        f"| `{o.name}`{f' [{o.unit}]' if o.unit else ''} | {o.default!r} | {o.help} |"
        for o in written_options(StudyOptions).values()
    ]


def test_unknown_options_of_optimize_are_refused():
    """Name the option, and the nearest one: also those of studies that are the search's own."""
    given = {"over": {"m_c": (0.0, 9.0)}, "minimize": "peak control.main_bearing"}
    for name, near in (("sample", ""), ("durations", "did you mean 'duration'"), ("keep", ""), ("store", "")):
        with pytest.raises(kt.UnknownNameError, match=f"no option of optimize '{name}'.*{near}"):
            kt.optimize(kt.load("press"), **given, **{name: 3})
    assert set(OPTIONS) & {"samples", "seed", "store", "keep", *STORING} == set()
