"""The harness as it is run: single cases, kept sections, failures."""

from __future__ import annotations

import subprocess
import sys
from importlib.util import find_spec
from pathlib import Path

import numpy as np
import pytest

BENCHMARKS = Path(__file__).resolve().parents[2] / "benchmarks"
PEERS = all(find_spec(name) for name in ("pinocchio", "mujoco"))


def bench(*arguments: str) -> subprocess.CompletedProcess[str]:
    """Run the harness as ./dev bench does."""
    command = [sys.executable, str(BENCHMARKS / "run.py"), *arguments]
    return subprocess.run(command, capture_output=True, text=True, check=False)


def test_cases_are_listed_and_exist():
    """List every case, each with a module that has a section; refuse others by name."""
    from run import CASES

    done = bench("--list")
    assert [line.split()[0] for line in done.stdout.splitlines()] == list(CASES)
    assert [name for name in CASES if "def section(" not in (BENCHMARKS / f"{name}.py").read_text()] == []
    refused = bench("--only", "robot")
    assert refused.returncode == 2 and "invalid choice: 'robot' (choose from 'robots'" in refused.stderr


@pytest.mark.slow
@pytest.mark.peers
@pytest.mark.skipif(not PEERS, reason="needs Pinocchio and MuJoCo")
def test_a_case_is_measured_and_the_others_stay(tmp_path):
    """Measure closed loops against Pinocchio into a page that has another section already."""
    page, chapter = tmp_path / "page.md", tmp_path / "page" / "machines.md"
    chapter.parent.mkdir()
    kept = "## Memory\n<!-- case: memory_use -->\n\n**A call adds 7 MiB.**\n\nMeasured long ago.\n"
    chapter.write_text("# Machines\n\n" + kept)
    done = bench("--quick", "--only", "closed_loops", "--out", str(page))
    assert done.returncode == 0, done.stdout + done.stderr
    assert "kept as they were: memory_use" in done.stdout
    assert chapter.read_text().endswith(kept)
    text = page.read_text()
    assert "| [Memory](page/machines.md#memory) | A call adds 7 MiB. |" in text
    assert "| rounds | few: a quick look |" in text
    table = (tmp_path / "page" / "dynamics.md").read_text()
    rows = [line for line in table.splitlines() if line.startswith(("| four_bar", "| three_rrr", "| stewart"))]
    assert len(rows) == 3


@pytest.mark.slow
@pytest.mark.peers
@pytest.mark.skipif(not PEERS, reason="needs Pinocchio and MuJoCo")
def test_every_case_runs(tmp_path):
    """Run all cases with few rounds; a case whose results differ from a peer's, or that fails, is reported."""
    done = bench("--quick", "--out", str(tmp_path / "page.md"))
    assert done.returncode == 0 and "FAILED" not in done.stdout, done.stdout[-2000:] + done.stderr


def test_a_case_that_fails_is_told_and_loses_nothing(tmp_path, monkeypatch, capsys):
    """Go on after a case whose results differ and one that fails; keep their sections of the page."""
    pytest.importorskip("pinocchio")
    pytest.importorskip("mujoco")
    import run
    from book import Section
    from measure import Disagreement, NotMeasured

    def differs(quick: bool) -> Section:
        raise Disagreement("arm: answers differ")

    def breaks(quick: bool) -> Section:
        raise ZeroDivisionError("of the peer")

    def lacks(quick: bool) -> Section:
        raise NotMeasured("no such library")

    def promises(quick: bool) -> Section:
        return Section("Bits", "The same bits.", (), failure="bits differ")

    for name, case in (("differs", differs), ("breaks", breaks), ("lacks", lacks), ("promises", promises)):
        module = type(sys)(name)
        module.section = case  # type: ignore[attr-defined]
        monkeypatch.setitem(sys.modules, name, module)
    monkeypatch.setattr(run, "CASES", dict.fromkeys(("differs", "breaks", "lacks", "promises"), ""))
    monkeypatch.setattr(run, "pin_to_one_core", lambda: "not pinned")
    monkeypatch.setenv("KINETREE_CACHE_DIR", str(tmp_path))
    for variable in (
        "OMP_NUM_THREADS",
        "OPENBLAS_NUM_THREADS",
        "MKL_NUM_THREADS",
        "NUMEXPR_NUM_THREADS",
        "OMP_WAIT_POLICY",
    ):
        monkeypatch.setenv(variable, "")
    page, chapter = tmp_path / "page.md", tmp_path / "page" / "machines.md"
    chapter.parent.mkdir()
    chapter.write_text("## Old\n<!-- case: differs -->\n\n**Still here.**\n")
    assert run.main(["--out", str(page)]) == 1
    told = capsys.readouterr()
    assert "FAILED: differs: arm: answers differ" in told.out
    assert "FAILED: breaks: ZeroDivisionError: of the peer" in told.out
    assert "FAILED: promises: bits differ" in told.out
    assert "not measured, and kept as it was: lacks: no such library" in told.out and "FAILED: lacks" not in told.out
    assert "ZeroDivisionError" in told.err
    assert "**Still here.**" in chapter.read_text() and "**The same bits.**" in chapter.read_text()
    assert "| Still here. |" in page.read_text() and "| The same bits. |" in page.read_text()


def test_lengths_are_read_from_the_table():
    """Read the medians for the picture from cells of the table of long chains."""
    from chains import _number, _rows
    from report import Table

    columns = ("links", "function", "one sample [ns]", "target", "in a batch [ns]", "Pinocchio / one")
    rows = (
        ("1,000", "forward", "1,055 (990-1,100)", "< 150: missed", "14.3 (14-15)", "5.3 (5-6)"),
        ("10,000", "inverse", "22.8 (22-23)", "< 60: met", "9 (8.8-9.1)", "-"),
    )
    table = Table("Long chains", columns, rows, "")
    assert _rows(table, "forward") == [(1000.0, 1055.0, 14.3, 5.3)]
    assert _rows(table, "inverse") == [(10_000.0, 22.8, 9.0, None)]
    assert np.isclose(_number("0.5 (0.4-0.6)") or 0.0, 0.5)
