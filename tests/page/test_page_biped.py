"""The page of a biped on one foot in a real browser: its posture, the torques of its walk, its fall and its hold."""

from __future__ import annotations

import numpy as np
import pytest

import kinetree as kt
from browser import browser, needs_browser, opened
from kinetree.apps.reproduce import saha2013_biped
from kinetree.apps.reproduce.entry import write_csv
from tolerance import assert_close

pytestmark = [pytest.mark.slow, needs_browser]

TORQUES = """() => kinetree.part.charts().find(({ title }) => title === 'torque').series.map((s) => (
    Array.from({ length: s.count ?? s.t.length }, (_, k) => s.values[k * (s.stride ?? 1) + (s.offset ?? 0)])))"""


def test_a_biped_stands_walks_and_falls(tmp_path):
    """Find it on one foot; load its walk and find the library's torques; let it fall, then hold it."""
    biped = kt.load("spatial_biped")
    standing = np.array([x for _, (x,) in biped.mechanism.guess])
    assert_close(biped.pose(standing, "link6")[0, 3], saha2013_biped.HIP, 1e-3, "height of the hips")
    assert biped.pose(standing, "link12")[0, 3] > 0.09  # the other foot is in the air
    t = np.linspace(0.0, saha2013_biped.STEP, 241)  # the page's own times
    motion = saha2013_biped.walk(biped, t)
    heads = [f"{prefix}joint{k}" for prefix in ("", "qd.", "qdd.") for k in range(1, 13)]
    file = write_csv(tmp_path / "walk.csv", ("t", *heads), np.column_stack([t, *motion]).tolist())
    with browser() as chromium, opened(chromium, biped.page().save(tmp_path / "biped.html")) as page:
        assert_close(np.array(page.evaluate("Array.from(kinetree.store.get('q'))")), standing, 1e-12, "first position")
        page.evaluate("kinetree.store.set({ mode: 'Torques' })")
        page.evaluate("kinetree.store.set({ inverse: { ...kinetree.store.get('inverse'), kind: 'file' } })")
        page.get_by_label("CSV file of a motion").set_input_files(file)
        page.wait_for_selector(".peaks")
        tau = biped.inverse_dynamics(*motion)
        assert_close(np.array(page.evaluate(TORQUES)).T, tau, 1e-10 * np.abs(tau).max(), "torques of the walk")
        page.evaluate("kinetree.store.set({ mode: 'Simulate' })")
        heights = {}
        for drive in ("none", "hold"):
            page.evaluate("kinetree.player.seek(0)")
            page.get_by_role("button", name=drive, exact=True).click()
            page.get_by_role("button", name="Restart").click()
            page.get_by_label("seconds ahead").fill("0.4")
            page.get_by_label("seconds ahead").press("Enter")
            page.get_by_role("button", name="Compute ahead").click()
            page.wait_for_selector("progress", state="hidden")
            page.evaluate("kinetree.player.seek(kinetree.store.get('motion').end)")
            heights[drive] = biped.pose(page.evaluate("Array.from(kinetree.store.get('q'))"), "link6")[0, 3]
        assert heights["none"] < 0.6 and abs(heights["hold"] - saha2013_biped.HIP) < 0.05
