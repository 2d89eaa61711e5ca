"""Tasks of a reader about mechanisms, on the file and in the studio: a four-bar, and saving, reopening and sending."""

from __future__ import annotations

from dataclasses import replace

import numpy as np
import pytest

import kinetree as kt
from browser import needs_browser, opened, served, typed, until
from kinetree.simulation.acting.references import sampled
from page_reading import computed_ahead, coordinates, curves, motion, saved_csv
from tolerance import assert_close

pytestmark = [pytest.mark.slow, needs_browser]


def test_a_four_bar_turns_or_is_locked(show):
    """Turn a four-bar: coupler curve, torque and bearing forces; change a length, and see it rock and lock."""
    bars = kt.load("four_bar")
    with show("four_bar") as page:
        page.get_by_role("button", name="Loops", exact=True).click()
        until(page, "kinetree.store.get('motion')?.name === 'turn'")
        page.evaluate("kinetree.store.set({ loops: { ...kinetree.store.get('loops'), velocity: 3.5 } })")
        until(page, "kinetree.store.get('motion')?.name === 'turn' && kinetree.store.get('motion').velocity === 3.5")
        _, q, _ = motion(page)
        assert page.inner_text(".verdict") == "crank turns fully."
        table = saved_csv(page)
        qd = bars.consistent_speeds(q, {"crank": 3.5})
        qdd = bars.consistent_accelerations(q, qd, {"crank": 0.0})
        tau = bars.inverse_dynamics(q, qd, qdd, actuated=["crank"])[:, 0]
        loads = bars.loads(q, qd, qdd=qdd, actuated=["crank"])
        assert_close(table["drive torque.crank [N m]"], tau, 1e-12, "torque over a turn")
        tracer = bars.pose(q, "tracer")[:, :3, 3]
        for k, axis in enumerate("xy"):
            assert_close(table[f"curve.tracer {axis} [m]"], tracer[:, k], 1e-12, "coupler curve")
        force = np.linalg.norm(loads.cuts[:, 0, 3:], axis=-1)
        assert_close(table["bearing forces.pin [N]"] / force.max(), force / force.max(), 1e-12, "force of the pin")
        typed(page, "length of crank", "0.16")
        until(page, "document.querySelector('.verdict').textContent.startsWith('crank rocks')")
        typed(page, "length of ground", "0.5")
        until(page, "document.querySelector('.verdict').textContent.includes('do not close')")


STATE = "() => [kinetree.store.get('mode'), kinetree.store.get('units'), kinetree.store.get('theme')]"


def test_a_page_is_saved_reopened_and_sent(show, chromium, tmp_path):
    """Change a mass, a position and the mode; save the page: a colleague without Python opens it as it was."""
    arm = kt.load("planar_2r")
    bodies = (arm.mechanism.bodies[0], replace(arm.mechanism.bodies[1], mass=1.85))
    heavier = kt.System(replace(arm.mechanism, bodies=bodies))
    with show("planar_2r", "Build") as page:
        page.get_by_role("button", name="link2", exact=True).first.click()
        typed(page, "mass of link2", "1.85")
        page.keyboard.press("Escape")
        page.locator(".stage").focus()
        page.keyboard.press("k")
        typed(page, "joint1", "31.5")
        page.keyboard.press("Escape")
        page.locator(".stage").focus()
        page.keyboard.press("u")
        page.keyboard.press("s")
        with page.expect_download() as saved:
            page.get_by_role("button", name="This page (HTML)").click()
        saved.value.save_as(tmp_path / "sent.html")
    assert len((tmp_path / "sent.html").read_text()) < 300_000
    with opened(chromium, tmp_path / "sent.html") as page:
        assert page.evaluate(STATE)[:2] == ["Move", "rad"]
        q, qd, qdd = np.array([np.radians(31.5), 0.0]), np.array([0.4, -0.7]), np.array([1.1, 0.6])
        assert_close(coordinates(page), q, 1e-15, "position")
        call = "([q, qd, qdd]) => Array.from(kinetree.kernel.call('inverse_dynamics', { q, qd, qdd }))"
        tau = page.evaluate(call, [x.tolist() for x in (q, qd, qdd)])
        assert_close(np.array(tau), heavier.inverse_dynamics(q, qd, qdd), 1e-12, "torques of the heavier arm")
        page.keyboard.press("f")
        assert page.evaluate("kinetree.store.get('mode')") == "Simulate"


def test_a_mechanism_is_saved_into_the_folder_and_reopened(chromium, studio, tmp_path):
    """Save the mechanism with a changed mass into the folder of the studio, and open it from there."""
    with served(chromium, f"{studio}#mode=Build") as page:
        page.get_by_role("button", name="link2", exact=True).first.click()
        typed(page, "mass of link2", "1.85")
        page.keyboard.press("Escape")
        page.locator(".stage").focus()
        page.keyboard.press("s")
        page.get_by_label("name of the file in the folder").fill("heavier")
        page.get_by_role("button", name="Mechanism", exact=True).click()
        page.get_by_text("Saved as").wait_for()
        page.get_by_role("button", name="Close", exact=True).click()
        page.keyboard.press("Control+o")
        page.get_by_role("button", name="heavier.toml").click()
        until(page, "location.search.includes('open=folder')")
        assert page.evaluate("kinetree.model.bodies[1].mass") == 1.85
    assert kt.load(tmp_path / "heavier.toml").mechanism.bodies[1].mass == 1.85


ROD = {"joint": "revolute", "alpha": 0.0, "b": 0.0, "theta": 0.0, "mass": 1.0}
"""A new link of the page: a slender rod along x, from its joint to the next one."""


def rod(length: float, **changes) -> dict:
    across = length**2 / 12
    return ROD | {"a": length, "com": [-length / 2, 0, 0], "inertia": [5e-5, across, across, 0, 0, 0]} | changes


def test_an_arm_is_entered_from_nothing(chromium, studio):
    """Enter a two-link arm by its DH parameters, see each of them move its frame, and read its torques."""
    rows = [
        rod(0.3, b=0.12, alpha=np.radians(-90), theta=np.radians(15), mass=2.25),
        rod(0.4, inertia=rod(0.25)["inertia"]),
    ]
    rows[1]["com"] = [-0.125, 0, 0]
    arm = kt.from_dh(rows, name="robot", gravity=(0, -9.81, 0))
    with served(chromium, f"{studio}#mode=Build") as page:
        page.get_by_role("button", name="New robot", exact=True).click()
        until(page, "document.title === 'robot'")
        page.get_by_role("button", name="link1", exact=True).first.click()
        q = np.array([0.0, 0.0])
        seen = [page.evaluate(POSES)]
        for field, text in (("theta", "15"), ("b", "0.12"), ("alpha", "-90")):
            typed(page, f"{field} of link1", text)
            seen.append(page.evaluate(POSES))
            assert np.abs(np.subtract(seen[-1], seen[-2])).max() > 1e-3, f"{field} moves a frame"
        typed(page, "a of link2", "0.4")
        typed(page, "mass of link1", "2.25")
        assert_close(np.reshape(page.evaluate(POSES), (-1, 4, 4)), arm.poses(q), 1e-12, "poses of the entered arm")
        page.keyboard.press("Escape")
        page.locator(".stage").focus()
        page.keyboard.press("i")
        for k, degrees in enumerate((50, -35)):
            typed(page, f"to joint{k + 1}", str(degrees))
        t, _, _ = motion(page)
        path = sampled(kt.Cycloid(q, np.radians([50, -35]), float(t[-1])), t)
        tau = arm.inverse_dynamics(*path)
        assert_close(curves(page)["torque"].T, tau, 1e-12 * np.abs(tau).max(), "torques of the entered arm")


POSES = "Array.from(kinetree.kernel.poses(kinetree.store.get('q')))"


def test_a_chain_has_another_number_of_links(chromium, studio):
    """Change the number of links of a chain from two to five, and let it fall again."""
    with served(chromium, f"{studio}#mode=Build") as page:
        page.get_by_role("button", name="New robot", exact=True).click()
        until(page, "document.title === 'robot'")
        for count in (5, 3):
            typed(page, "number of links", str(count))
            until(page, f"kinetree.model.bodies.length === {count}")
            page.keyboard.press("Escape")
            page.locator(".stage").focus()
            page.keyboard.press("f")
            computed_ahead(page, 0.5)
            t, q, _ = motion(page)
            chain = kt.from_dh([rod(0.3), *[rod(0.25)] * (count - 1)], name="robot", gravity=(0, -9.81, 0))
            run = kt.simulate(chain, q[0], times=t, dt=1 / 60 / 17 * (1 + 1e-9), method="rk4")
            assert_close(q, run.q, 1e-12 * np.abs(q).max(), f"fall of {count} links")
            page.locator(".stage").focus()
            page.get_by_role("button", name="Build", exact=True).click()
