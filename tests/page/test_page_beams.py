"""Beams in pages: their tables are the loads of the library, and a browser shows strain, exaggeration and curves."""

from __future__ import annotations

import json
import os
import subprocess
from pathlib import Path

import numpy as np
import pytest

import kinetree as kt
from browser import browser, drawn, needs_browser, opened
from kinetree.page import file
from kinetree.page.data import system_data
from tolerance import assert_close
from wasm_hosts import NODE, needs_node

SUMS = """
import {{ strains, summed }} from "{module}";
import {{ readFileSync }} from "node:fs";
const [beam, q] = JSON.parse(readFileSync("{data}", "utf8"));
const sums = ["deflection", "moment", "shear"].map((field) => [...summed(beam, beam[field], q)]);
console.log(JSON.stringify([sums, beam.bend ? [...strains(beam, q)] : null]));
"""


@needs_node
@pytest.mark.parametrize(("name", "body"), [("flexible_arm", "fore"), ("space_arm", None), ("spinning_beam", None)])
def test_loads_in_the_page_are_the_library_s(name, body, tmp_path):
    """Sum the tables of a page at random coordinates: moments, shear and strains of `beam_loads`."""
    arm = kt.load(name)
    beams = system_data(arm, editable=False)["beams"]
    beam = next(b for b in beams if body in (b["name"], None))
    q = np.random.default_rng(4).normal(scale=0.01, size=arm.nq)
    loads = arm.beam_loads(q, beam["name"], count=len(beam["x"]))
    plain = {k: v.ravel().tolist() if isinstance(v, np.ndarray) else v for k, v in beam.items()}
    (tmp_path / "beam.json").write_text(json.dumps([plain, q.tolist()]))
    module = Path(file.__file__).parent / "js" / "beams.js"
    (tmp_path / "sums.mjs").write_text(SUMS.format(module=module.as_uri(), data=tmp_path / "beam.json"))
    done = subprocess.run(
        [str(NODE), str(tmp_path / "sums.mjs")], env=os.environ, capture_output=True, text=True, timeout=60
    )
    assert done.returncode == 0, done.stderr
    found, strain = json.loads(done.stdout)
    for numbers, field in zip(found, ("deflection", "moment", "shear"), strict=True):
        expected = getattr(loads, field)
        assert_close(np.reshape(numbers, expected.shape), expected, 1e-6 * np.abs(expected).max(), field)
    assert (strain is None) == (loads.strain is None), "a beam without a section has no strain"
    if loads.strain is not None:
        assert_close(np.array(strain), loads.strain, 1e-6 * loads.strain.max(), "strain")


def test_rigid_mechanisms_carry_nothing_of_beams():
    """Find neither tables nor the module of beams in the page of a rigid arm."""
    data = system_data(kt.load("planar_2r"), editable=False)
    assert "beams" not in data
    rigid, flexible = (file.script_of((), table=False, beams=beams) for beams in (False, True))
    assert "exaggeration" not in rigid and "exaggeration" in flexible


@pytest.mark.slow
@needs_browser
def test_a_browser_shows_strain_exaggeration_and_curves(tmp_path):
    """Bend a flexible arm: its tip is the library's, and farther out with the slider; strain and moments are, too."""
    arm = kt.load("flexible_arm")
    q = np.array([0.3, -0.01, 0.001, 0.4, -0.004, 0.0])
    path = arm.page(q=q, editable=False).save(tmp_path / "arm.html")
    tip = "(() => { const m = kinetree.matricesNow()[6]; return [m[12], m[13], m[14]]; })()"
    with browser() as chromium, opened(chromium, path) as page:
        assert_close(page.evaluate(tip), arm.pose(q, "fore.tip")[:3, 3], 1e-6, "true tip")
        assert "\u00b5m/m" in page.locator(".strains").inner_text()
        loads = arm.beam_loads(q, "upper", count=25)
        most = max(loads.strain.max(), arm.beam_loads(q, "fore", count=25).strain.max())
        assert abs(float(page.locator(".strains output").inner_text().split()[0]) / (1e6 * most) - 1) < 5e-3
        page.get_by_label("exaggeration").fill("1")
        drawn(page)
        larger = q * [1, 10, 10, 1, 10, 10]
        assert_close(page.evaluate(tip), arm.pose(larger, "fore.tip")[:3, 3], 1e-6, "exaggerated tip")
        page.evaluate("kinetree.store.set({ mode: 'Simulate' }); kinetree.plots.choose('bending moment')")
        drawn(page)
        moment = page.evaluate("kinetree.plots.shownCharts[0].series.map((s) => [s.name, Array.from(s.values)])")
        assert [name for name, _ in moment] == ["upper y", "fore y"]
        expected = loads.moment
        assert_close(np.reshape(moment[0][1], expected.shape), expected, 1e-6 * np.abs(expected).max(), "moment")
        page.get_by_role("button", name="strain", exact=True).click()
        drawn(page)
        assert not page.locator(".strains").is_visible()
