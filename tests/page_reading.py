"""What a reader finds in a page: numbers of tables, curves of charts, saved files."""

from __future__ import annotations

import csv
from typing import Any

import numpy as np

CHARTS = """() => kinetree.part.charts().map(({ title, series }) => [title, series.map((s) => (
    Array.from({ length: s.count ?? s.t.length }, (_, k) => s.values[k * (s.stride ?? 1) + (s.offset ?? 0)])))])"""


def coordinates(page: Any) -> np.ndarray:
    """Return the coordinates that the page shows."""
    return np.array(page.evaluate("Array.from(kinetree.store.get('q'))"))


def cells(page: Any, selector: str) -> np.ndarray:
    """Return the full numbers of table cells."""
    return np.array([float(x) for x in page.eval_on_selector_all(selector, "all => all.map((x) => x.dataset.value)")])


def curves(page: Any) -> dict[str, np.ndarray]:
    """Return the curves of all charts by title, [series, times]."""
    return {title: np.array(series) for title, series in page.evaluate(CHARTS)}


def motion(page: Any) -> tuple[np.ndarray, np.ndarray, np.ndarray]:
    """Return times, coordinates and velocities of the motion in the page."""
    t, q, qd = page.evaluate("""() => {
        const { count, t, q, qd } = kinetree.store.get("motion");
        const { nq, nv } = kinetree.model;
        return [t.subarray(0, count), q.subarray(0, count * nq), qd.subarray(0, count * nv)].map((x) => Array.from(x));
    }""")
    return np.array(t), np.reshape(q, (len(t), -1)), np.reshape(qd, (len(t), -1))


def saved_csv(page: Any) -> dict[str, np.ndarray]:
    """Save the curves as CSV, and return the columns by their heads."""
    with page.expect_download() as saved:
        page.get_by_role("button", name="CSV", exact=True).click()
    head, *rows = csv.reader(saved.value.path().read_text().splitlines())
    return dict(zip(head, np.array(rows, dtype=float).T, strict=True))


def computed_ahead(page: Any, seconds: float) -> None:
    """Restart the motion of the mode Simulate and compute it for some seconds."""
    page.get_by_role("button", name="Restart").click()
    page.get_by_label("seconds ahead").fill(str(seconds))
    page.get_by_label("seconds ahead").press("Enter")
    page.get_by_role("button", name="Compute ahead").click()
    page.wait_for_selector("progress[aria-label='computing ahead']", state="hidden")
