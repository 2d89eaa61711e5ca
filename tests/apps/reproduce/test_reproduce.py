"""The papers' tables and figures: the registry, and each entry against the paper's statements."""

from __future__ import annotations

import csv

import numpy as np
import pytest

import everyday
import kinetree as kt
from kinetree.analysis.cost import cost, generic_robot
from kinetree.apps import reproduce
from kinetree.apps.reproduce import rivals, saha1999, saha2013
from kinetree.apps.reproduce.entry import Check, Outcome, Source, Verdict, write_csv
from kinetree.dynamics.forward import forward_dynamics
from kinetree.dynamics.inverse import inverse_dynamics
from kinetree.errors import UnknownNameError
from tolerance import assert_close

eps = np.finfo(float).eps
PASSING = ("saha1999-table-1", "saha1999-section-6.1", "saha1999-figure-5", "saha2013-figure-19", "gupta2013-masses")


@pytest.mark.parametrize("name", everyday.some(PASSING))
def test_the_paper_holds(name, tmp_path, monkeypatch):
    """Reproduce a table or figure, and find that all statements of the paper hold, and its files."""
    if name == "saha1999-section-6.1":
        pytest.importorskip("sympy")
    monkeypatch.setattr(saha2013, "DEGREES", (6, 12))
    (entry,) = reproduce.select_entries([name])
    outcome = entry.run(tmp_path)
    assert outcome.verdict is not Verdict.NOT_REPRODUCED, outcome.reason
    assert outcome.files and all(file.stat().st_size > 0 for file in outcome.files)
    assert all(file.parent == tmp_path for file in outcome.files)


def test_forward_dynamics_is_counted_without_lumped_masses(tmp_path):
    """Count the recursion of table 2: more operations than printed, and a misprint, are not reproduced."""
    (entry,) = reproduce.select_entries(["saha1999-table-2"])
    outcome = entry.run(tmp_path)
    ((_, (_, *rows)),) = outcome.tables
    plain, lumped = rows[-2:]
    assert plain[0] == "the recursion, counted here" and plain[3:] == ("912M 863A", "2148M 2069A")
    assert lumped[0] == "Kinetree, masses lumped" and lumped[3:] == ("860M 788A", "2036M 1904A")
    assert outcome.verdict is Verdict.NOT_REPRODUCED
    assert (
        "no more than the printed 871M 797A at n = 6: its page, without lumping of masses: 912M 863A" in outcome.reason
    )
    assert "Walker and Orin (1982), n = 6: printed (633, 480), by the formula (633, 475)" in outcome.reason


@everyday.long
def test_spurious_eigenvalues_of_flexible_arms(tmp_path):
    """Compare eigenvalues that should be zero, of arms that are stand-ins, which cannot reproduce the paper."""
    (entry,) = reproduce.select_entries(["saha2013-flexible-systems"])
    outcome = entry.run(tmp_path)
    assert outcome.verdict is Verdict.STATEMENT_HOLDS
    assert "the systems: two arms of the library" in outcome.reason
    with outcome.files[0].open() as file:
        _, *rows = csv.reader(file)
    assert [row[0] for row in rows] == ["space_arm"] * 3 + ["flexible_arm"] * 3
    assert all(0.0 < float(row[2]) < 1e-2 for row in rows)  # 3e-5 to 5e-4


@everyday.long
def test_several_algorithms_are_counted_and_drawn(tmp_path, monkeypatch):
    """Draw figure 20: at 6 degrees of freedom composite bodies cost less than the recursion, at 12 they do not."""
    monkeypatch.setattr(saha2013, "DEGREES", (6, 12))
    (entry,) = reproduce.select_entries(["saha2013-figure-20"])
    outcome = entry.run(tmp_path)
    with outcome.files[0].open() as file:
        _, *rows = csv.reader(file)
    assert {row[1] for row in rows} >= {"Kinetree", "composite bodies, L D L^T", "Featherstone (1983)"}
    assert outcome.verdict is Verdict.NOT_REPRODUCED and all(file.stat().st_size > 0 for file in outcome.files)
    *ranks, improvement = outcome.checks
    assert improvement.holds and not any(check.holds for check in ranks)
    assert all("at n = 6 " in check.found and "at n = 12" not in check.found for check in ranks)


@pytest.mark.parametrize("lumped", [False, True])
def test_other_algorithms_compute_the_same(lumped):
    """Compute torques and accelerations by the pages that are counted, with links that turn and slide."""
    for arm in (kt.load("stanford"), kt.System(generic_robot(5))):
        q, qd, qdd = np.random.default_rng(3).uniform(-1.0, 1.0, (3, arm.nv))
        tau = arm.inverse_dynamics(q, qd, qdd)
        given = {"q": q.tolist(), "qd": qd.tolist()}
        for page in (inverse_dynamics, *(() if lumped else (rivals.ground_axes,))):
            found = rivals.compute_page(page, arm.mechanism, {**given, "qdd": qdd.tolist()}, lumped=lumped)
            assert_close(
                np.array(found), tau, 100 * eps * np.abs(tau).max(), f"{page.__name__} of {arm.mechanism.name}"
            )
        for page in (forward_dynamics, rivals.composite_bodies):
            found = rivals.compute_page(page, arm.mechanism, {**given, "tau": tau.tolist()}, lumped=lumped)
            assert_close(np.array(found), qdd, 1e-12, f"{page.__name__} of {arm.mechanism.name}")


def test_a_page_is_counted_as_a_function_is():
    """Count a page with lumped masses, and find the cost of the compiled function of the same robot."""
    robot = generic_robot(4)
    for name, page in (("inverse_dynamics", inverse_dynamics), ("forward_dynamics", forward_dynamics)):
        assert rivals.count_page(page, robot, name, lumped=True) == cost(robot, name)


def test_formulas_print_as_in_the_paper():
    """Write and evaluate the formulas of the tables as they are printed."""
    m, a = saha1999.TABLE_2["Walker and Orin (1982)"]
    assert saha1999._text(m) == "(1/6)n^3 + (23/2)n^2 + (115/3)n - 47"
    assert (saha1999.formula_value(m, 6), saha1999.formula_value(a, 12)) == (633, 1716)
    assert saha1999._text(saha1999.TABLE_1["Luh et al. (1980)"][1]) == "131n + 48"


def test_chains_have_the_degrees_of_freedom_asked_for():
    """Count the degrees of freedom of every case of the figures."""
    for kinds in saha2013.PANELS.values():
        assert [saha2013.chain(kinds, n).nv for n in saha2013.DEGREES] == list(saha2013.DEGREES)


def test_entries_are_found_by_name():
    """Select one, a paper's, and all; reject a wrong name with the available ones."""
    names = list(reproduce.entries())
    assert len(names) == len(set(names)) >= 7
    assert [e.name for e in reproduce.select_entries(["all"])] == names
    ours = [name for name in names if name.startswith("gupta2013")]
    assert [e.name for e in reproduce.select_entries(["gupta2013", "gupta2013-masses"])] == ours
    with pytest.raises(
        UnknownNameError, match="no entry 'gupta'; did you mean 'gupta2013'\\? available: all, saha1999"
    ):
        reproduce.select_entries(["gupta"])


def test_what_concerns_speed_is_found_together():
    """Select a topic: figures of operations, right-hand sides and times, of three papers, each once."""
    names = [e.name for e in reproduce.select_entries(["speed", "wolinski2015-table-1"])]
    assert names == list(reproduce.TOPICS["speed"])
    assert {name.partition("-")[0] for name in names} == {"saha2013", "wolinski2015", "goncalves2023"}


def test_every_entry_names_its_paper():
    """Find each entry under its paper's key, with a description."""
    for name, entry in reproduce.entries().items():
        assert name.startswith(entry.paper.lower()) and entry.what


def test_verdicts_follow_from_checks_and_data():
    """Judge by the sources of checks that hold and by stand-ins, with the reason of each verdict."""
    printed, stated = (Check("six masses", "the same", True, source) for source in (Source.PRINTED, Source.STATED))
    data = Check("a mass of 3 kg", "the same", True, Source.DATA)
    ours, bad = Check("a second route", "1e-14", True), Check("it falls", "it rises", False, Source.STATED)
    nothing = "nothing that the paper prints or states is compared"
    for outcome, verdict, reason in (
        (Outcome((printed, stated)), Verdict.REPRODUCED, "six masses"),
        (Outcome((printed,), stand_ins=("lengths: 1 m",)), Verdict.WITH_STAND_INS, "not printed: lengths: 1 m"),
        (Outcome((stated, ours), unprinted="curves"), Verdict.STATEMENT_HOLDS, "curves"),
        (Outcome((stated, data), stand_ins=("lengths: 1 m",)), Verdict.STATEMENT_HOLDS, "not printed: lengths: 1 m"),
        (Outcome((data, ours)), Verdict.NOT_REPRODUCED, nothing),
        (Outcome((printed, bad)), Verdict.NOT_REPRODUCED, "it falls: it rises"),
        (Outcome((ours,)), Verdict.NOT_REPRODUCED, nothing),
        (Outcome(()), Verdict.NOT_REPRODUCED, nothing),
    ):
        assert (outcome.verdict, outcome.reason) == (verdict, reason)


def test_tables_keep_every_digit(tmp_path):
    """Write a table, and read its floats back."""
    file = write_csv(tmp_path / "t.csv", ("x", "y"), [(0.1, "one")])
    assert list(csv.reader(file.read_text().splitlines())) == [["x", "y"], ["0.1", "one"]]
