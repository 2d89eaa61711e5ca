"""Make the pictures of reports in docs/load-report.md and docs/study-statistics.md: pages of reports, in Chromium.

Run it with `python docs/report_pictures.py [NAME ...]`, with playwright and Chromium installed.
"""

from __future__ import annotations

import sys
import tempfile
from pathlib import Path

import numpy as np
from page_pictures import FOLDER, SETTLED, chromium  # type: ignore[import-not-found]

import kinetree as kt


def load_page(folder: Path) -> Path:
    """Write the load report of a turn of a four-bar."""
    return kt.load_report(kt.load("four_bar").cycle("crank", speed=10.0)).save(folder / "loads.html")


def study_page(folder: Path) -> Path:
    """Write the report of a study of falls."""
    study = kt.study(
        kt.load("planar_2r"),
        over={"q.joint1": kt.uniform(-1.0, 1.0), "q.joint2": kt.uniform(-0.5, 1.0), "qd.joint2": kt.normal(0.0, 1.0)},
        simulate={"times": np.linspace(0.0, 1.0, 51), "method": "rk4", "dt": 5e-3},
        measures={"fastest": kt.peak("qd.joint1"), "end": kt.at_end("q.joint2")},
        samples=2000, seed=3, store=folder / "fall.zarr", keep=["q", "qd"],
    )  # fmt: skip
    study.report(folder / "study.html", limits={"fastest": (None, 15.0)})
    return folder / "study.html"


PICTURES = {
    "load-report": (load_page, (1180, 960), ""),
    "statistics-report": (study_page, (1180, 1860), "#t=0.42"),
}
"""The page, the size of the window [px], and the part of the address after the file, which is a time."""


def main(names: list[str]) -> None:
    """Make the pictures with these names, or all."""
    with tempfile.TemporaryDirectory() as folder, chromium() as browser:
        for name, (write, (width, height), after) in PICTURES.items():
            if names and name not in names:
                continue
            page = browser.new_page(viewport={"width": width, "height": height})
            page.goto(f"{write(Path(folder)).as_uri()}{after}")
            page.wait_for_selector("body[data-ready]", state="attached")
            page.wait_for_timeout(SETTLED)
            page.screenshot(path=FOLDER / f"{name}.png")
            page.close()
            print(FOLDER / f"{name}.png")


if __name__ == "__main__":
    main(sys.argv[1:])
