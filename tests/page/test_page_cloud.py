"""Clouds of runs in the page, in a real browser: the runs are the library's, and bands are their quantiles."""

from __future__ import annotations

import numpy as np
import pytest

import kinetree as kt
from browser import browser, needs_browser, opened, typed, until
from tolerance import assert_close

pytestmark = [pytest.mark.slow, needs_browser]

MADE = """() => {
    const charts = kinetree.part.charts().filter((c) => c.title.startsWith("cloud"));
    return charts.map((c) => [c.title, c.series.map((s) => [s.name, Array.from(s.values), Array.from(s.upper || [])])]);
}"""


@pytest.mark.parametrize("name", ["planar_3r", "four_bar"])
def test_a_cloud_of_runs_is_the_library_s(tmp_path, name):
    """Run 24 motions from scattered starts: paths and quantiles equal those of the library's runs from these starts."""
    arm = kt.load(name)
    q0 = arm.assemble(hold={"crank": 0.7}) if arm.closures else np.array([0.3, -0.4, 0.2])
    with browser() as chromium, opened(chromium, arm.page(q=q0, editable=False).save(tmp_path / "arm.html")) as page:
        page.evaluate("kinetree.store.set({ mode: 'Simulate' })")
        typed(page, "number of runs", "24")
        typed(page, "duration of the runs", "0.5")
        typed(page, "standard deviation of the initial velocities", "0.3")
        page.get_by_role("button", name="Run cloud", exact=True).click()
        until(page, "kinetree.part.charts().some((c) => c.title.startsWith('cloud of'))")
        charts = {title: {n: (v, u) for n, v, u in rows} for title, rows in page.evaluate(MADE)}
        starts = page.evaluate("['q', 'qd'].map((name) => Array.from(kinetree.part.cloud().starts[name]))")
        frame = page.evaluate("kinetree.kernel.frame")
        dots = page.evaluate("kinetree.part.layer().lines.at(-1).points.length")
    q, qd = np.reshape(starts[0], (24, -1)), np.reshape(starts[1], (24, -1))
    assert_close(q[0], q0, 1e-12, "the first run starts where the arm is")
    assert np.abs(q[1:] - q0).max() > 0.01 and np.abs(qd).max() > 0.1
    times = np.linspace(0, 0.5, 61)
    run = kt.simulate(arm, q, qd, times=times, method="rk4", dt=0.5 / 60 / 9, progress=False)
    x = arm.pose(run["q"], frame)[..., :3, 3]
    found = charts[f"cloud of {frame}"]
    for k, axis in enumerate("xyz"):
        assert_close(found[f"{axis}, median"][0], np.quantile(x[..., k], 0.5, axis=0), 1e-12, "median")
        low, high = found[f"{axis}, 5 to 95 %"]
        assert_close([low, high], np.quantile(x[..., k], [0.05, 0.95], axis=0), 1e-12, "band")
    assert dots == 24 * 6 and len(charts) > 1
