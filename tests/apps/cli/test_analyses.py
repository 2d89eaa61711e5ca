"""The commands of analysis: their output and exit status."""

from __future__ import annotations

import io
import re
import sys

import pytest
from rich.console import Console

import everyday
import kinetree as kt
from command_line import run, words
from kinetree.analysis.verify.comparisons import NotRun
from kinetree.analysis.verify.referee import ROUTES, Route, verify
from kinetree.apps.cli.analyses import print_verification


def test_verify_prints_routes_and_verdict(capsys):
    """Verify an arm by two routes and read both, the bound and the verdict."""
    assert run("verify", "stanford", "--states", "1", "--route", "denoc", "--route", "lagrange") == 0
    out = words(capsys.readouterr().out)
    assert "stanford: largest relative differences to the compiled recursion" in out
    for word in ("denoc", "lagrange", "bound", "agrees", "1 random state, condition of the inertia matrix up to"):
        assert word in out
    assert "All 2 routes that ran agree with the recursion, within 20 eps times the condition." in out


def test_verify_fails_with_a_route_that_differs(capsys, monkeypatch):
    """Introduce an error into a route and get exit status 1 and the name of the route."""

    def prepare(mechanism):
        honest = ROUTES["denoc"].prepare(mechanism)

        def solve(s):
            answers = honest(s)
            answers.tau[:] *= 1 + 1e-9
            return answers

        return solve

    monkeypatch.setitem(ROUTES, "operators", Route("operators", "", prepare))
    assert run("verify", "planar_3r", "--route", "operators", "--route", "denoc") == 1
    out = words(capsys.readouterr().out)
    assert "DIFFERS" in out and "1 OF 2 ROUTES DO NOT AGREE with the recursion: operators." in out


def test_verify_says_what_did_not_run():
    """Print a route that did not run dimmed on a screen, with the reason."""

    def prepare(mechanism):
        raise NotRun("has no wheels")

    found = verify(kt.load("planar_2r"), 1, routes=[Route("picky", "", prepare), "denoc"])
    stream = io.StringIO()
    print_verification(Console(file=stream, force_terminal=True, width=120, color_system="standard"), found)
    assert "picky not run: has no wheels" in stream.getvalue()
    assert "\x1b[32m" in stream.getvalue(), "green on a screen"


def test_verify_refuses_an_unknown_route(capsys):
    """Mistype a route and read the available ones."""
    assert run("verify", "stanford", "--route", "lagrang") == 2
    assert "no route 'lagrang'; did you mean 'lagrange'?" in capsys.readouterr().err


def test_cost_prints_counts(capsys):
    """Count the operations of an arm's functions and read the numbers of the System."""
    assert run("cost", "stanford") == 0
    out = capsys.readouterr().out
    c = kt.load("stanford").cost("inverse_dynamics")
    row = next(line for line in out.splitlines() if line.startswith("inverse_dynamics "))
    assert row.split()[1:] == [str(x) for x in (c.M, c.A, c.divisions, c.roots, c.sines, c.others)]
    assert run("cost", "stanford", "--function", "inverse") == 2
    assert "no function 'inverse'" in capsys.readouterr().err


def test_subsystems_are_listed_in_their_order(capsys):
    """List the steps of a four-bar with their operations, and refuse drives that are too many."""
    assert run("subsystems", "four_bar", "--drive", "crank") == 0
    rows = [line.split() for line in capsys.readouterr().out.splitlines()]
    assert rows[1][:3] == ["1", "output", "2"] and rows[2][:5] == ["2", "crank", "1", "tau", "crank"]
    assert ["subsystem", "by", "subsystem", "56", "34"] in rows
    assert run("subsystems", "four_bar", "--drive", "crank", "--drive", "output") == 2
    assert "2 actuated degrees of freedom for 1 of the mechanism" in words(capsys.readouterr().err)


def test_cost_says_what_is_not_possible(capsys, tmp_path):
    """Count a mechanism with a massless joint: forward dynamics has a reason, the other functions have counts."""
    file = tmp_path / "limp.toml"
    file.write_text(
        '[mechanism]\nname = "limp"\n[[body]]\nname = "b"\n'
        '[[joint]]\nname = "j"\nkind = "revolute"\nparent = "ground"\nchild = "b"\n'
    )
    assert run("cost", str(file)) == 0
    out = capsys.readouterr().out
    assert "forward_dynamics: mechanism 'limp': forward_dynamics requires an invertible inertia matrix" in words(out)
    assert any(line.startswith("inverse_dynamics ") for line in out.splitlines())


def test_functions_are_named_after_the_model(capsys):
    """Name functions of equations, cost and bench after the model, as by --function, and the frame of a function."""
    pytest.importorskip("sympy")
    assert run("equations", "planar_2r", "gravity_torque", "inertia_matrix", "--symbols", "all") == 0
    out = capsys.readouterr().out
    assert "g[0] = " in out and "I[1][1] = I2zz + c2**2*m2" in out
    assert run("cost", "planar_2r", "gravity_torque", "pose", "--frame", "tool") == 2
    assert "gravity_torque takes no frame" in capsys.readouterr().err
    assert run("cost", "stanford", "pose", "jacobian", "--frame", "tool") == 0
    rows = [line.split()[0] for line in capsys.readouterr().out.splitlines() if line[:4] in ("pose", "jaco")]
    assert rows == ["pose", "jacobian"]
    assert run("bench", "planar_2r", "gravity_torque", "--batch", "16") == 0
    assert "gravity_torque" in capsys.readouterr().out
    assert run("equations", "planar_2r", "gravity") == 2
    assert "no function 'gravity'; did you mean 'gravity_torque'?" in capsys.readouterr().err


@everyday.long
def test_denoc_matrices_in_symbols_and_numbers(capsys):
    """Print DeNOC matrices as formulas, in LaTeX, and as numbers at the neutral position."""
    pytest.importorskip("sympy")
    assert run("denoc", "planar_2r", "U", "--symbolic") == 0
    assert "U[0][1] = (I2zz + c2**2*m2 + c2*l1*m2*cos(q2))/(I2zz + c2**2*m2)" in capsys.readouterr().out
    assert run("denoc", "planar_2r", "D", "--symbolic", "--latex") == 0
    assert r"\mathbf{D} = \left[" in capsys.readouterr().out
    assert run("denoc", "planar_2r", "U", "N_d") == 0
    shown = capsys.readouterr().out
    assert "U: upper triangular factor of I = U D U^T, 2 x 2  [Saha1999] (53)" in shown
    assert re.search(r"^joint1 +1 +2\.8\njoint2 +\. +1\n\nN_d: joint motions, 12 x 2", shown, re.MULTILINE)
    assert run("denoc", "planar_2r", "psi", "mhat", "D", "inverse") == 0
    shown = capsys.readouterr().out
    assert re.search(r"^psi: .*, 6 x 2 .*\n +joint1 +joint2\n nx ", shown, re.MULTILINE)
    assert re.search(r"^mhat: pivots, 2  .*\n +mhat\njoint1 +0\.024\njoint2 +0\.008333$", shown, re.MULTILINE)
    assert re.search(r"^joint1 +41\.67 +-116\.7$", shown, re.MULTILINE)
    assert run("denoc", "planar_2r", "u") == 2
    assert "no matrix 'u'; did you mean 'U'? available: psi, mhat, U, D, inverse, t, N_l" in words(
        capsys.readouterr().err
    )
    assert run("denoc", "planar_2r", "--latex") == 2
    assert "--latex prints formulas; add --symbolic" in words(capsys.readouterr().err)


def test_equations_in_three_languages(capsys):
    """Print equations as text, LaTeX and Python; refuse two at once."""
    pytest.importorskip("sympy")
    assert run("equations", "planar_2r", "--symbols", "all") == 0
    assert "I[1][1] = I2zz + c2**2*m2" in capsys.readouterr().out
    assert run("equations", "planar_2r", "--function", "gravity_torque", "--latex") == 0
    assert capsys.readouterr().out.startswith(r"\mathbf{g} = ")
    assert run("equations", "planar_2r", "--python") == 0
    assert "def inertia_matrix(q):" in capsys.readouterr().out
    assert run("equations", "planar_2r", "--python", "--latex") == 2
    assert "--latex and --python: give one of them" in capsys.readouterr().err


@pytest.mark.slow
def test_reproduce_lists_and_runs(capsys, tmp_path):
    """List the entries, run one into a folder, and read its verdict."""
    assert run("reproduce") == 0
    assert "saha1999-table-1" in capsys.readouterr().out
    assert run("reproduce", "gupta2013", "--out", str(tmp_path / "made")) == 0
    out = capsys.readouterr().out
    assert (
        any(line.split()[:2] == ["gupta2013-masses", "reproduced"] for line in out.splitlines()) and "0.628000" in out
    )
    assert (tmp_path / "made" / "gupta2013_masses.csv").exists()


def test_reproduce_goes_on_without_a_package(capsys, tmp_path, monkeypatch):
    """Hide SymPy: the entry that needs it is not run, with the command that installs it, and the next one is."""
    monkeypatch.setitem(sys.modules, "sympy", None)
    assert run("reproduce", "saha1999-section-6.1", "gupta2013-masses", "--out", str(tmp_path)) == 1
    verdicts = words(capsys.readouterr().out.split("Verdicts")[1])
    assert "saha1999-section-6.1 not run Equations in symbols need the package sympy" in verdicts
    assert "gupta2013-masses reproduced" in verdicts


def test_reproduce_fails_with_what_does_not_hold(capsys, tmp_path, monkeypatch):
    """Expect masses other than those of the paper, and get the verdict with its reason and exit status 1."""
    from kinetree.apps.reproduce import gupta2013

    monkeypatch.setattr(gupta2013, "PRINTED", (1.0,) * 7)
    assert run("reproduce", "gupta2013-masses", "--out", str(tmp_path)) == 1
    out = words(capsys.readouterr().out)
    assert "gupta2013-masses not reproduced masses 1, 1, 1, 1, 1, 1, 1 kg: truncated to three decimals" in out
    assert run("reproduce", "nothing", "--out", str(tmp_path)) == 2


def test_bench_times_functions(capsys):
    """Time a function and read its row; mistype one and read the available ones."""
    assert run("bench", "planar_2r", "--function", "gravity_torque", "--batch", "16") == 0
    assert "gravity_torque" in capsys.readouterr().out
    assert run("bench", "planar_2r", "--function", "pose") == 2
    assert "no function 'pose'; did you mean 'poses'?" in capsys.readouterr().err
