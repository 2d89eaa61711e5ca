"""The papers' tables and figures: the registry, and each entry against the paper's statements."""

from __future__ import annotations

import csv

import pytest

import everyday
from kinetree import reproduce
from kinetree.errors import UnknownNameError
from kinetree.reproduce import saha1999, saha2013
from kinetree.reproduce.entry import Check, Outcome, write_csv

PASSING = ("saha1999-table-1", "saha1999-section-6.1", "saha1999-figure-5", "saha2013-figure-19", "gupta2013-masses")


@pytest.mark.parametrize("name", everyday.some(PASSING))
def test_the_paper_holds(name, tmp_path, monkeypatch):
    """Reproduce a table or figure, and find that all statements of the paper hold, and its files."""
    if name == "saha1999-section-6.1":
        pytest.importorskip("sympy")
    monkeypatch.setattr(saha2013, "DEGREES", (6, 12))
    (entry,) = reproduce.selected([name])
    outcome = entry.run(tmp_path)
    assert outcome.passes, [check for check in outcome.checks if not check.holds]
    assert outcome.files and all(file.stat().st_size > 0 for file in outcome.files)
    assert all(file.parent == tmp_path for file in outcome.files)


@pytest.mark.parametrize("name", everyday.some(["saha1999-table-2", "saha2013-figure-20"]))
def test_forward_dynamics_is_counted(name, tmp_path, monkeypatch):
    """Count forward dynamics, and find the same increase with every body."""
    monkeypatch.setattr(saha2013, "DEGREES", (6, 12))
    (entry,) = reproduce.selected([name])
    outcome = entry.run(tmp_path)
    assert outcome.checks and all(file.stat().st_size > 0 for file in outcome.files)
    ((_, (_, *rows)),) = outcome.tables
    assert "not linear" not in rows[-1]


def test_formulas_print_as_in_the_paper():
    """Write and evaluate the formulas of the tables as they are printed."""
    m, a = saha1999.TABLE_2["Walker and Orin (1982)"]
    assert saha1999._text(m) == "(1/6)n^3 + (23/2)n^2 + (115/3)n - 47"
    assert (saha1999._at(m, 6), saha1999._at(a, 12)) == (633, 1716)
    assert saha1999._text(saha1999.TABLE_1["Luh et al. (1980)"][1]) == "131n + 48"


def test_chains_have_the_degrees_of_freedom_asked_for():
    """Count the degrees of freedom of every case of the figures."""
    for kinds in saha2013.CASES.values():
        assert [saha2013.chain(kinds, n).nv for n in saha2013.DEGREES] == list(saha2013.DEGREES)


def test_entries_are_found_by_name():
    """Select one, a paper's, and all; reject a wrong name with the available ones."""
    names = list(reproduce.entries())
    assert len(names) == len(set(names)) >= 7
    assert [e.name for e in reproduce.selected(["all"])] == names
    ours = [name for name in names if name.startswith("gupta2013")]
    assert [e.name for e in reproduce.selected(["gupta2013", "gupta2013-masses"])] == ours
    with pytest.raises(
        UnknownNameError, match="no entry 'gupta'; did you mean 'gupta2013'\\? available: all, saha1999"
    ):
        reproduce.selected(["gupta"])


def test_what_concerns_speed_is_found_together():
    """Select a topic: figures of operations, right-hand sides and times, of three papers, each once."""
    names = [e.name for e in reproduce.selected(["speed", "wolinski2015-table-1"])]
    assert names == list(reproduce.TOPICS["speed"])
    assert {name.partition("-")[0] for name in names} == {"saha2013", "wolinski2015", "goncalves2023"}


def test_every_entry_names_its_paper():
    """Find each entry under its paper's key, with a description."""
    for name, entry in reproduce.entries().items():
        assert name.startswith(entry.paper.lower()) and entry.what


def test_an_outcome_passes_only_if_something_was_checked(tmp_path):
    """Fail without checks and with one that does not hold."""
    good, bad = Check("a", "b", True), Check("a", "c", False)
    assert Outcome((good,)).passes
    assert not Outcome((good, bad)).passes and not Outcome(()).passes
    file = write_csv(tmp_path / "t.csv", ("x", "y"), [(0.1, "one")])
    assert list(csv.reader(file.read_text().splitlines())) == [["x", "y"], ["0.1", "one"]]
