"""The page of a study report: its content, its policy, names that stay text, and its behavior in a browser."""

from __future__ import annotations

import html
import re
import subprocess

import numpy as np
import pytest

import kinetree as kt
from complete import CHROMIUM, needs_chromium
from kinetree.studies.statistics.bands import Bands
from kinetree.studies.study import Study

EVIL = "</script><script>document.body.dataset.evil='yes'</script><img src=x onerror=alert(1)>@@SCRIPT@@&amp;"


@pytest.fixture(scope="module")
def stored(tmp_path_factory):
    pytest.importorskip("zarr")
    pytest.importorskip("SALib")
    over = kt.sensitivity({"q.joint1": (-1.0, 1.0), "qd.joint2": (-2.0, 2.0)}, samples=16, seed=2)
    return kt.study(
        kt.load("planar_2r"), over, store=tmp_path_factory.mktemp("store") / "fall.zarr", keep=["q"],
        simulate={"times": np.linspace(0.0, 0.5, 21), "method": "rk4", "dt": 0.005}, progress=False,
        measures={"fastest": kt.peak("qd.joint1"), "last": kt.at_end("q.joint2")},
    )  # fmt: skip


def evil_study() -> Study:
    """Return a study in which every name contains HTML elements, without a mechanism."""
    rng = np.random.default_rng(3)
    status = np.zeros(50, dtype=np.uint8)
    status[:4] = 1
    values = np.where(status, np.nan, rng.normal(size=50))
    about = {"mechanism": EVIL, "measures": {EVIL: EVIL}}
    return Study(
        {"run": 50}, {EVIL: ("run", rng.random(50))}, {EVIL: values}, status, np.zeros(50), {EVIL: EVIL}, about
    )


def around(page: str) -> str:
    return re.sub(r"<script.*?</script>|<style>.*?</style>", "", page, flags=re.DOTALL)


def test_the_page_shows_all_statistics(stored, tmp_path):
    """Find words, failures, histograms, bands, indices, worst cases and the replay of the worst one."""
    bound = float(np.median(stored["fastest"]))
    page = stored.report(tmp_path / "r.html", limits={"fastest": (None, bound)}, smallest="last", n=3).read_text()
    assert page.isascii()
    for title in ("In short", "The worst case", "Varied quantities", "Failures", "Measures", "Bands over time",
                  "Sensitivity", "Worst cases"):  # fmt: skip
        assert f"<h2>{title}</h2>" in page
    assert f"{int((stored['fastest'] > bound).sum())} of 64 runs failed: probability 0.5" in page
    assert not re.search(r"clopper-pearson\)[^<]*reason +runs", page), "the reasons are a table, not text"
    assert page.count('class="chart timed"') == 2 and page.count('class="band"') == 6
    assert page.count('class="whisker"') == 8
    worst = stored.worst("last", 3, largest=False)
    cells = re.findall(r'<td class="text">(\d+)</td>', page[page.index("<h3>By last</h3>") :])
    assert cells == [str(case.run) for case in worst]
    assert f"Run {stored.worst('fastest')[0].run}, the worst by fastest" in page


def test_the_page_needs_nothing_else(stored, tmp_path):
    """Find no address, no style attribute and no handler in the page, and a policy that lets only its scripts run."""
    for study in (stored, kt.read_study(stored.store.path)):
        page = study.report(tmp_path / "r.html").read_text()
        assert not re.search(r"https?:|\bsrc=|\bhref=|\bstyle=|\bon\w+=", around(page))
        assert not re.search(r"https?:|@import|url\((?!#clip)", page)
        policy = re.search(r'Content-Security-Policy" content="(.*?)"', page)[1]
        scripts = "'sha256-[^']+' 'sha256-[^']+'" if study is stored else "'none'"
        assert re.fullmatch(rf"default-src 'none'; script-src {scripts}; style-src 'sha256-[^']+'", policy)
        assert ("<h2>The worst case</h2>" in page) == (study is stored)


def test_names_stay_text(tmp_path):
    """Write names and units with elements in them, and find them only as text."""
    page = evil_study().report(tmp_path / "evil.html").read_text()
    assert EVIL not in page and page.count("<script") == 3 and "<img" not in page
    assert html.escape(EVIL) in page and "the loops do not close" in page


def test_studies_without_results_have_pages(tmp_path):
    """Write pages of studies in which nothing finished or nothing was evaluated, and of a constant measure."""
    study = evil_study()
    study.status[:] = 1
    assert "50 of 50 runs failed" in study.report(tmp_path / "r.html").read_text()
    study.status[:] = 255
    assert "unfinished: 0 of 50 runs" in study.report(tmp_path / "r.html").read_text()
    study.status[:], study.measures[EVIL][:] = 0, 2.5
    assert "nan" not in around(study.report(tmp_path / "r.html").read_text())


def test_statistics_are_drawn(stored, tmp_path):
    """Write pictures of bands, histograms and indices."""
    bands, indices = stored.bands("q", [0.1, 0.5, 0.9]), stored.sensitivity("fastest")
    assert isinstance(bands, Bands)
    for k, one in enumerate((bands, stored.histogram("last"), indices)):
        assert one.plot(tmp_path / f"{k}.png").stat().st_size > 5000
    axes = bands.plot().axes
    assert [x.get_title(loc="left") for x in axes] == ["joint1", "joint2"]
    assert np.array_equal(axes[0].lines[0].get_ydata(), bands.of("joint1")[1])
    bars = indices.plot().axes[0].patches
    assert sorted(bar.get_width() for bar in bars) == sorted([*indices["total"], *indices["first"]])


@pytest.mark.slow
@needs_chromium
def test_a_browser_opens_the_page(stored, tmp_path):
    """Open pages in a browser without network: the worst case is drawn, and no name runs."""
    pages = [stored.report(tmp_path / "r.html"), evil_study().report(tmp_path / "evil.html")]
    for path in pages:
        command = [
            str(CHROMIUM), "--headless", "--no-sandbox", "--disable-quic", "--no-first-run", "--disable-sync",
            "--disable-background-networking", "--disable-component-update", "--use-angle=swiftshader",
            "--enable-unsafe-swiftshader", "--virtual-time-budget=2000", f"--user-data-dir={tmp_path / 'profile'}",
            "--enable-logging=stderr", "--dump-dom", path.as_uri(),
        ]  # fmt: skip
        done = subprocess.run(command, capture_output=True, text=True, timeout=120, check=True)
        assert 'data-evil="yes"' not in done.stdout
        assert "CONSOLE" not in done.stderr
        assert (re.search(r'data-ready="(webgl|plain)"', done.stdout) is not None) == (path is pages[0])
