"""Curves that a reader chooses in a real browser: of a center of mass, saved as CSV, and one quantity over another."""

from __future__ import annotations

import numpy as np
import pytest

import kinetree as kt
from browser import drawn, needs_browser, opened, until
from page_reading import saved_csv
from tolerance import assert_close

pytestmark = [pytest.mark.slow, needs_browser]

LEGEND = "Array.from(document.querySelectorAll('.legend button span'), (x) => x.textContent)"


def choose(page, quantity: str, what: str, component: str = "") -> None:
    """Add curves of a quantity of one object."""
    page.get_by_label("quantity of a curve").select_option(quantity)
    page.get_by_label("object of a curve").select_option(what)
    if component:
        page.get_by_label("component of a curve").select_option(component)
    page.get_by_role("button", name="Add", exact=True).click()


def jacobian(arm: kt.System, body: kt.Body, q: np.ndarray) -> np.ndarray:
    """Return the translational Jacobian of the center of mass of a body [n, 3, nv]."""
    J, R = arm.jacobian(q, body.name), arm.poses(q)[:, [b.name for b in arm.bodies].index(body.name), :3, :3]
    arms = R @ np.array(body.com, dtype=float)
    return J[:, 3:] + np.cross(J[:, :3].transpose(0, 2, 1), arms[:, None]).transpose(0, 2, 1)


def test_a_center_of_mass_is_followed_from_initial_to_final_values(chromium, tmp_path):
    """Choose position, velocity and acceleration of a link's center of mass, save them, and plot one over another."""
    arm = kt.load("planar_3r")
    q1 = np.radians([60.0, -40.0, 25.0])
    with opened(chromium, arm.page(q=[0.2, 0.4, -0.3]).save(tmp_path / "arm.html"), after="#mode=Torques") as page:
        page.evaluate("(q1) => kinetree.store.set({ inverse: { ...kinetree.store.get('inverse'), q1 } })", q1.tolist())
        page.get_by_role("button", name="curves", exact=True).click()
        for name in ("point position", "point velocity", "point acceleration"):
            choose(page, name, "link2 center of mass")
        table = saved_csv(page)
        t = table["t [s]"]
        q, qd, qdd = (np.array(x).T for x in kt.Cycloid(q0=[0.2, 0.4, -0.3], q1=q1, duration=2.0)(t))
        link = arm.mechanism.bodies[1]
        J, T, h = jacobian(arm, link, q), arm.poses(q)[:, 1], 1e-5
        place = T[:, :3, :3] @ np.array(link.com, dtype=float) + T[:, :3, 3]
        later, sooner = (jacobian(arm, link, q + s * h * qd) for s in (1, -1))
        rate = np.einsum("kij,kj->ki", J, qdd) + np.einsum("kij,kj->ki", (later - sooner) / (2 * h), qd)
        velocity = np.einsum("kij,kj->ki", J, qd)
        for k, axis in enumerate("xy"):
            name = f"link2 center of mass {axis}"
            assert_close(table[f"point position.{name} [m]"], place[:, k], 1e-12, "position")
            assert_close(table[f"point velocity.{name} [m/s]"], velocity[:, k], 1e-12, "velocity")
            assert_close(table[f"point acceleration.{name} [m/s^2]"], rate[:, k], 1e-8, "acceleration")
        assert page.evaluate(LEGEND) == [f"link2 center of mass {x}" for x in ("x", "y", "z", "size")]
        page.get_by_label("what the curves are drawn over").select_option("point position link2 center of mass x")
        page.get_by_role("group", name="quantities to plot").get_by_role(
            "button", name="point position", exact=True
        ).click()
        drawn(page)
        assert page.evaluate("kinetree.plots.shownCharts[0].plane")
        page.get_by_role("button", name="remove point position link2 center of mass x").count()
        page.get_by_role("button", name="point position link2 center of mass x \u00d7").click()
        assert page.evaluate("kinetree.store.get('curves').against") == ""
        page.keyboard.press("Control+z")
        assert page.evaluate("kinetree.store.get('curves').against") == "point position link2 center of mass x"


def test_curves_grow_with_a_fall_and_survive_a_reload(chromium, tmp_path):
    """Let an arm fall with a curve of its energy and of an acceleration; go to another mode; reload."""
    arm = kt.load("planar_2r")
    with opened(chromium, arm.page(q=[0.4, 0.3]).save(tmp_path / "arm.html"), after="#mode=Simulate") as page:
        page.get_by_role("button", name="curves", exact=True).click()
        choose(page, "joint acceleration", "joint2")
        choose(page, "energy of a body", "link2", "kinetic")
        page.locator(".stage").focus()
        page.keyboard.press(" ")
        until(page, "kinetree.store.get('time') > 0.5")
        page.keyboard.press(" ")
        drawn(page)
        found = page.evaluate("""() => kinetree.plots.charts.filter((c) => c.own).map(({ series: [s] }) => (
            [s.count, Array.from(s.values)]))""")
        t, q, qd = page.evaluate("""() => {
            const { count, t, q, qd } = kinetree.store.get("motion");
            return [Array.from(t.subarray(0, count)), Array.from(q.subarray(0, 2 * count)),
                Array.from(qd.subarray(0, 2 * count))];
        }""")
        count = len(t)
        q, qd = np.reshape(q, (count, 2)), np.reshape(qd, (count, 2))
        assert [n for n, _ in found] == [count, count]
        exact = arm.forward_dynamics(q, qd, np.zeros_like(qd))[:, 1]
        assert_close(np.array(found[0][1]) / abs(exact).max(), exact / abs(exact).max(), 1e-12, "acceleration")
        body = arm.mechanism.bodies[1]
        v = np.einsum("kij,kj->ki", jacobian(arm, body, q), qd)
        kinetic = body.mass * (v**2).sum(axis=1) / 2 + body.inertia[2] * qd.sum(axis=1) ** 2 / 2
        assert_close(np.array(found[1][1]), kinetic, 1e-12, "kinetic energy of a link")
        page.get_by_role("button", name="Torques", exact=True).click()
        assert "joint acceleration" in page.inner_text(".tabs")
        page.wait_for_timeout(600)  # the document is kept
        page.reload()
        until(page, "window.kinetree && kinetree.store.get('curves').list.length === 2")
