"""The page of a load report: its content, its policy, names that stay text, and its behavior in a browser."""

from __future__ import annotations

import html
import json
import re
import subprocess
from dataclasses import replace
from pathlib import Path

import numpy as np
import pytest

import kinetree as kt
from complete import CHROMIUM, needs_chromium
from kinetree.page.file import unpack
from kinetree.simulation.outcomes import Ending, Endings, Outcome
from loaded_runs import spinning

EVIL = "</script><script>document.body.dataset.evil='yes'</script><img src=x onerror=alert(1)>@@SCRIPT@@&amp;"
CATALOGUE = Path(__file__).resolve().parents[2] / "examples" / "motors.csv"


def evil_report(tmp_path: Path) -> kt.LoadReport:
    """Return a report in which every name contains HTML elements."""
    body = kt.Body(EVIL, mass=1.0, com=(0.1, 0.0, 0.0), inertia=(1.0, 1.0, 1.0, 0.0, 0.0, 0.0))
    system = kt.System(
        kt.build_mechanism(EVIL, [body], [kt.Joint(EVIL, "revolute", kt.GROUND, EVIL, axis=(0.0, 1.0, 0.0))])
    )
    t = np.linspace(0.0, 1.0, 21)
    run = kt.Trajectory(
        system,
        t,
        t[:, None],
        np.ones((21, 1)),
        torque=np.cos(t)[:, None],
        endings=Endings(whole=Ending(Outcome.STOPPED, EVIL)),
    )
    path = tmp_path / "evil.csv"
    lines = (
        CATALOGUE.read_text()
        .replace("M40", '"' + EVIL.replace('"', '""') + '"')
        .replace("# source:", f"# source: {EVIL}")
    )
    path.write_text(lines)
    return kt.load_report(run, catalogue=path)


def page_of(report: kt.LoadReport, tmp_path: Path) -> str:
    return report.save(tmp_path / "report.html").read_text()


def test_the_page_shows_words_tables_and_charts(tmp_path):
    """Find summary, drives, bearings, energy, candidates and glossary, and the first instant of the replay."""
    report = kt.load_report(spinning(101), catalogue=CATALOGUE)
    page = page_of(report, tmp_path)
    assert page.isascii()
    for title in (
        "In short",
        "Drives",
        "Bearings",
        "Energy",
        "What the words mean",
        "Torque-speed plane, at the joint",
    ):
        assert title in page
    assert html.escape(report.words[1]) in page
    assert page.count('class="chart timed"') == 4 + 2
    data = unpack(json.loads(re.search(r'id="data">(.*?)</script>', page, re.DOTALL)[1]))
    assert data["at"] == report.drive("hinge").peak.t and data["kernel"] is None
    assert {a["group"] for a in data["arrows"]} == {"reactions", "drives"}


def test_the_page_needs_nothing_else(tmp_path):
    """Find no address, no style attribute and no handler in the page, and a policy that lets only its scripts run."""
    page = page_of(kt.load_report(spinning(31), catalogue=CATALOGUE), tmp_path)
    around = re.sub(r"<script.*?</script>|<style>.*?</style>", "", page, flags=re.DOTALL)
    assert not re.search(r"https?:|\bsrc=|\bhref=|\bstyle=|\bon\w+=", around)
    assert not re.search(r"https?:|@import|url\((?!#clip)", page)
    policy = re.search(r'Content-Security-Policy" content="(.*?)"', page)[1]
    assert re.fullmatch(
        r"default-src 'none'; script-src 'sha256-[^']+' 'sha256-[^']+'; style-src 'sha256-[^']+'", policy
    )


def test_names_stay_text(tmp_path):
    """Write names, status and parts with elements in them, and find them only as text."""
    report = evil_report(tmp_path)
    page = page_of(report, tmp_path)
    assert EVIL not in page
    assert page.count("<script") == 3 and "<img" not in page
    assert html.escape(EVIL) in page
    notebook = report._repr_html_()
    assert "<script" not in notebook and "<img" not in notebook and html.escape(EVIL) in notebook


def test_runs_without_drives_and_of_one_sample_have_pages(tmp_path):
    """Write pages of one sample, and of a run without torques."""
    single = page_of(kt.load_report(spinning(1)), tmp_path)
    assert "single instant" in single and "nan" not in re.sub(r"<script.*?</script>", "", single, flags=re.DOTALL)
    free = page_of(kt.load_report(replace(spinning(31), torque=None, control=None)), tmp_path)
    assert "No joint is driven" in free


@pytest.mark.slow
@needs_chromium
@pytest.mark.parametrize("flags", [[], ["--disable-3d-apis"]], ids=["webgl", "plain"])
def test_a_browser_opens_the_page(flags, tmp_path):
    """Open pages in a browser without network: they draw at the peak, mark it in the charts, and run no name."""
    for report in (kt.load_report(spinning(101), catalogue=CATALOGUE), evil_report(tmp_path)):
        path = report.save(tmp_path / "report.html")
        command = [
            str(CHROMIUM), "--headless", "--no-sandbox", "--disable-quic", "--no-first-run", "--disable-sync",
            "--disable-background-networking", "--disable-component-update", "--use-angle=swiftshader",
            "--enable-unsafe-swiftshader", "--virtual-time-budget=2000", f"--user-data-dir={tmp_path / 'profile'}",
            *flags, "--dump-dom", path.as_uri(),
        ]  # fmt: skip
        done = subprocess.run(command, capture_output=True, text=True, timeout=120, check=True)
        assert re.search(r'data-ready="(webgl|plain)"', done.stdout)
        assert 'data-evil="yes"' not in done.stdout
        clock = float(re.search(r'<output id="clock">([\d.]+) / ', done.stdout)[1])
        assert abs(clock - report.driven[0].peak.t) < 0.01
        assert re.search(r'class="instant now"', done.stdout)
        cursor = float(re.search(r'class="cursor" x1="([\d.]+)"', done.stdout)[1])
        span = report.t[-1] - report.t[0]
        assert abs(cursor - (58 + (540 - 58 - 12) * report.driven[0].peak.t / span)) < 1.5
