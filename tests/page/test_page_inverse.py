"""The page's panel of inverse dynamics in a real browser: its torques, causes, loads and files are the library's."""

from __future__ import annotations

import csv
from dataclasses import replace

import numpy as np
import pytest

import kinetree as kt
from browser import needs_browser, opened
from kinetree.simulation.acting.references import sampled
from tolerance import assert_close

CHARTS = """() => kinetree.part.charts().map(({ title, series }) => [title, series.map((s) => (
    Array.from({ length: s.count ?? s.t.length }, (_, k) => s.values[k * (s.stride ?? 1) + (s.offset ?? 0)])))])"""
START, END = [0.1, -0.2, 0.15, 0.3, -0.4, 0.25], [0.9, 0.5, 0.35, -0.6, 0.8, 1.1]

pytestmark = [pytest.mark.slow, needs_browser]


@pytest.fixture(scope="module")
def arm() -> kt.System:
    return kt.load("stanford")


def curves(page) -> dict[str, np.ndarray]:
    """Return the curves of all charts by title, [series, times]."""
    return {title: np.array(series) for title, series in page.evaluate(CHARTS)}


def settings(page, **changes) -> None:
    page.evaluate("(x) => kinetree.store.set({ inverse: { ...kinetree.store.get('inverse'), ...x } })", changes)


def torques(page, arm) -> np.ndarray:
    """Return the torques of all joints over time, [times, nv]; the charts are by unit."""
    found = curves(page)
    rows = dict(zip("NF", (found["torque"], found["force"]), strict=True))
    turning = iter(rows["N"])
    return np.array([rows["F"][0] if k == 2 else next(turning) for k in range(arm.nv)]).T


def opened_inverse(chromium, tmp_path, arm):
    return opened(chromium, arm.page(q=START).save(tmp_path / "arm.html"), after="#mode=Torques")


MOTIONS = {
    "cycloid": lambda way: kt.Cycloid(START, END, 1.7),
    "cubic": lambda way: kt.Polynomial(START, END, 1.7, degree=3),
    "quintic": lambda way: kt.Polynomial(START, END, 1.7),
    "trapezoid": lambda way: kt.Trapezoid(START, END, 1.5 * way / 1.7, 4.5 * way / 1.7**2),
    "spline": lambda way: kt.Table([0.0, 0.8, 1.7], [START, [0.2, 0.3, 0.2, 0.1, -0.1, 0.2], END], ends="clamped"),
}


def test_torques_of_every_motion(chromium, tmp_path, arm):
    """Compare torques, positions and accelerations of all kinds of motion with the library's."""
    way = np.abs(np.subtract(END, START))
    with opened_inverse(chromium, tmp_path, arm) as page:
        via = [{"u": 0.8 / 1.7, "q": [0.2, 0.3, 0.2, 0.1, -0.1, 0.2]}]
        settings(page, q0=START, q1=END, duration=1.7)
        for kind, make in MOTIONS.items():
            settings(page, kind=kind, via=via if kind == "spline" else [])
            q, qd, qdd = sampled(make(way), np.linspace(0.0, 1.7, 241))
            inner = slice(1, -1)  # at the very ends, a trapezoid has two accelerations
            if kind == "trapezoid":
                keep = np.abs((np.linspace(0.0, 1.0, 241) * 3) % 1.0 - 0.5) < 0.49
                inner = np.flatnonzero(keep)
            expected = arm.inverse_dynamics(q, qd, qdd)
            scale = np.abs(expected).max()
            assert_close(torques(page, arm)[inner], expected[inner], 1e-12 * scale, f"torques of a {kind}")


def test_causes_and_loads(chromium, tmp_path, arm):
    """Compare the causes of a torque with the ledger, and a payload with a mechanism that carries it."""
    with opened_inverse(chromium, tmp_path, arm) as page:
        settings(page, q0=START, q1=END, duration=1.3, joint=1)
        q, qd, qdd = sampled(kt.Cycloid(START, END, 1.3), np.linspace(0.0, 1.3, 241))
        causes = arm.ledger(q, qd, qdd).by_cause
        found = curves(page)["by cause: joint2"]
        scale = np.abs(found).max()
        for row, expected in zip(
            found, (causes["gravity"], causes["inertia"] + causes["armature"], causes["convective"]), strict=False
        ):
            assert_close(row, expected[:, 1], 1e-12 * scale, "torque by cause")
        settings(page, gravity=False)
        free = arm.inverse_dynamics(q, qd, qdd) - arm.gravity_torque(q)
        assert_close(torques(page, arm), free, 1e-12 * np.abs(free).max(), "torques without gravity")
        light = kt.System(replace(arm.mechanism, gravity=(0.0, 0.0, 0.0)))
        R = arm.poses(q[0])[:, :3, :3]
        w = light.reactions(q[0], qd[0], qdd[0])
        arrows = "kinetree.part.layer().arrows.map(({ vector }) => vector)"
        assert_close(page.evaluate(arrows), np.einsum("nij,nj->ni", R, w[:, 3:]), 1e-9, "reactions without gravity")
        tool = arm.mechanism.frame("tool")
        settings(page, gravity=True, mass=2.5, frame="tool")
        loaded = kt.System(kt.with_payload(arm, tool.body, 2.5, tool.placement.translation))
        expected = loaded.inverse_dynamics(q, qd, qdd)
        assert_close(torques(page, arm), expected, 1e-12 * np.abs(expected).max(), "torques with a payload")
        peaks = [
            float(x)
            for x in page.eval_on_selector_all(".peaks td:nth-of-type(1)", "all => all.map((x) => x.dataset.value)")
        ]
        assert_close(np.abs(peaks), np.abs(expected).max(axis=0), 1e-12 * np.abs(expected).max(), "peaks")
        w = loaded.reactions(q[0], qd[0], qdd[0])[: len(arm.bodies)]
        assert_close(page.evaluate(arrows), np.einsum("nij,nj->ni", R, w[:, 3:]), 1e-9, "reactions")


def test_files_are_read_and_written(chromium, tmp_path, arm):
    """Load a motion of joints and a path in space from CSV files, and read the saved curves back."""
    t = np.linspace(0.0, 1.0, 9)
    q, qd, qdd = sampled(kt.Polynomial(START, END, 1.0), t)
    names = [j.name for j in arm.joints]
    head = ["t", *names, *(f"qd.{n}" for n in names), *(f"qdd.{n}" for n in names)]
    file = tmp_path / "motion.csv"
    with open(file, "w", newline="") as out:
        writer = csv.writer(out)
        writer.writerow(head)
        writer.writerows([[repr(float(x)) for x in (a, *b, *c, *d)] for a, b, c, d in zip(t, q, qd, qdd, strict=True)])
    with opened_inverse(chromium, tmp_path, arm) as page:
        settings(page, kind="file")
        page.get_by_label("CSV file of a motion").set_input_files(file)
        page.wait_for_selector(".peaks")
        fine = sampled(kt.Polynomial(START, END, 1.0), np.linspace(0.0, 1.0, 241))
        expected = arm.inverse_dynamics(*fine)
        assert_close(torques(page, arm), expected, 1e-10 * np.abs(expected).max(), "torques of a file")
        with page.expect_download() as saved:
            page.get_by_role("button", name="CSV", exact=True).click()
        with open(saved.value.path()) as read:
            first, *rows = csv.reader(read)
        column = first.index("torque.joint1 [N m]")
        assert_close([float(row[column]) for row in rows], torques(page, arm)[:, 0], 0.0, "saved torques")
        points = arm.pose(sampled(kt.Cycloid(START, END, 1.0), np.linspace(0, 1, 6))[0], "tool")[:, :3, 3]
        path = tmp_path / "path.csv"
        path.write_text(
            "t,x,y,z\n" + "\n".join(f"{k / 5},{','.join(map(repr, p.tolist()))}" for k, p in enumerate(points)) + "\n"
        )
        page.evaluate("(q) => kinetree.store.set({ q: Float64Array.from(q) })", START)
        page.get_by_label("CSV file of a motion").set_input_files(path)
        page.wait_for_timeout(500)
        found = np.array(page.evaluate("Array.from(kinetree.store.get('motion').q)")).reshape(241, 6)
        assert_close(arm.pose(found[::48], "tool")[:, :3, 3], points, 1e-8, "points of the path")
        path.write_text("t,x,y\n0,1,2\n1,2,3\n")
        page.get_by_label("CSV file of a motion").set_input_files(path)
        page.wait_for_selector(".group .error:not([hidden])")
        assert "A path needs the columns x, y and z." in page.inner_text(".group .error:not([hidden])")
