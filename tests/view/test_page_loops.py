"""The page's panel of loops in a real browser: turns, curves, torques, bearing forces, lengths, modes, findings."""

from __future__ import annotations

import csv
from math import acos, pi

import numpy as np
import pytest

import kinetree as kt
from browser import browser, needs_browser, opened, typed, until
from tolerance import assert_close

pytestmark = [pytest.mark.slow, needs_browser]

TURN = """() => {
    const m = kinetree.store.get("motion");
    const rows = (x) => x.map((row) => Array.from(row));
    return {
        t: Array.from(m.t.subarray(0, m.count)), q: Array.from(m.q), torque: Array.from(m.torque), curve: rows(m.curve),
        forces: rows(m.forces), names: m.names, loads: rows(m.loads), from: m.from, to: m.to,
    };
}"""
TURNED = "kinetree.store.get('motion')?.name === 'turn'"


@pytest.fixture(scope="module")
def chromium():
    with browser() as started:
        yield started


def looped(page) -> None:
    """Choose the mode of loops, and wait for the turn of the drive."""
    page.get_by_role("button", name="Loops", exact=True).click()
    until(page, TURNED)


def test_a_turn_of_a_four_bar_is_the_library_s(chromium, tmp_path):
    """Read coupler curve, torque and bearing forces over a turn of the crank, and save them as CSV."""
    bars = kt.load("four_bar")
    with opened(chromium, bars.page().save(tmp_path / "bars.html")) as page:
        looped(page)
        page.evaluate("kinetree.store.set({ loops: { ...kinetree.store.get('loops'), velocity: 4.5 } })")
        until(page, f"{TURNED} && kinetree.store.get('motion').velocity === 4.5")
        turn = page.evaluate(TURN)
        assert page.inner_text(".verdict") == "crank turns fully."
        with page.expect_download() as saved:
            page.get_by_role("button", name="CSV", exact=True).click()
        rows = list(csv.reader(saved.value.path().read_text().splitlines()))
    angles = bars.assemble()[0] + np.linspace(0, 2 * pi, 361)
    q = bars.assemble(hold={"crank": angles}, follow=True)
    qd = bars.consistent_speeds(q, {"crank": 4.5})
    qdd = bars.consistent_accelerations(q, qd, {"crank": 0.0})
    tau = bars.inverse_dynamics(q, qd, qdd, actuated=["crank"])[:, 0]
    loads = bars.loads(q, qd, qdd=qdd, actuated=["crank"])
    wrenches = np.concatenate([loads.joints, loads.cuts], axis=-2)
    forces = np.linalg.norm(wrenches[..., 3:], axis=-1)
    tracer = bars.pose(q, "tracer")[:, :3, 3]
    assert_close(np.reshape(turn["q"], (361, 3)), q, 1e-12, "positions")
    assert_close(np.transpose(turn["curve"]), tracer, 1e-12, "coupler curve")
    assert_close(np.array(turn["torque"]), tau, 1e-12, "torque of the drive")
    assert turn["names"] == ["crank", "output", "coupler", "pin"]
    assert_close(np.reshape(turn["loads"], (361, 4, 6)) / 100, wrenches / 100, 1e-12, "reactions of up to 84 N")
    assert_close(np.transpose(turn["forces"]) / 100, forces / 100, 1e-12, "bearing forces of up to 84 N")
    cycle = bars.cycle("crank", speed=4.5)  # closed to 1e-13
    assert_close(np.array(turn["t"]), cycle.t, 1e-12, "times")
    assert_close(np.array(turn["torque"]), cycle["control.crank"], 1e-10, "torque of the cycle")
    table = dict(zip(rows[0], np.array(rows[1:], dtype=float).T, strict=True))
    assert_close(table["drive torque.crank [N m]"], tau, 1e-12, "torque of the file")
    assert_close(table["crank [rad]"], angles, 1e-12, "angle of the file")
    assert_close(table["curve.tracer y [m]"], tracer[:, 1], 1e-12, "curve of the file")
    assert_close(table["bearing forces.pin [N]"] / 100, forces[:, 3] / 100, 1e-12, "force of the file")


def test_a_length_decides_whether_a_four_bar_turns(chromium, tmp_path):
    """Change lengths: the crank turns, rocks between the angles of the law of cosines, or the loop does not close."""
    bars = kt.load("four_bar")
    with opened(chromium, bars.page().save(tmp_path / "bars.html")) as page:
        looped(page)
        assert "crank is the shortest link" in page.inner_text(".panel")
        typed(page, "length of crank", "0.16")
        until(page, "document.querySelector('.verdict').textContent.startsWith('crank rocks')")
        assert "No link turns fully" in page.inner_text(".panel")
        low, high = page.evaluate("[kinetree.store.get('motion').range.low, kinetree.store.get('motion').range.high]")
        # Output and coupler in one line make a triangle with the ground and the crank.
        half = acos((0.0895**2 + 0.16**2 - (2 * 0.1152) ** 2) / (2 * 0.0895 * 0.16))
        assert_close(np.cos([low, high]), np.cos([pi - half, pi + half]), 1e-9, "limits of the crank")
        assert_close(high - low, 2 * half, 1e-9, "range of the crank")
        typed(page, "length of ground", "0.5")
        until(page, "document.querySelector('.verdict').textContent.includes('do not close')")
        assert "is longer than the other links together" in page.inner_text(".panel")
        assert "The loops are open" in page.inner_text(".findings")
        page.get_by_role("button", name="Lengths of the model", exact=True).click()
        until(page, "document.querySelector('.verdict').textContent === 'crank turns fully.'")
        assert_close(
            np.array(page.evaluate("Array.from(kinetree.store.get('parameters'))")),
            [0.0895, 0.1152, 0.038, 0.1152],
            1e-15,
            "lengths",
        )
