"""The planned motion in a real browser: its table, paths in space, velocities at the ends, and what all modes share."""

from __future__ import annotations

import numpy as np
import pytest

import kinetree as kt
from browser import drawn, needs_browser, opened, typed, until
from kinetree.simulation.acting.references import sampled
from page_reading import coordinates, curves, motion
from tolerance import assert_close

pytestmark = [pytest.mark.slow, needs_browser]

FAULT = "document.querySelector('.left .group > .error, .left .error:not([hidden])')?.textContent ?? ''"


def mode(page, name: str) -> None:
    page.get_by_role("navigation", name="modes").get_by_role("button", name=name, exact=True).click()


def kind(page, name: str) -> None:
    page.get_by_role("group", name="kind of motion").get_by_role("button", name=name, exact=True).click()


def test_a_line_is_straight_and_its_torques_are_those_of_the_mode_torques(chromium, tmp_path):
    """Type both ends as poses of the hand, move along the line between them; the mode Torques has the same motion."""
    arm = kt.load("puma560")
    q0 = np.array([0.2, -0.5, 0.3, 0.4, 0.9, -0.2])
    with opened(chromium, arm.page(q=q0).save(tmp_path / "arm.html"), after="#mode=Motion") as page:
        page.get_by_role("button", name="To here").click()
        for part, x in (("x", 0.1), ("y", -0.15), ("z", 0.12)):
            box = page.get_by_label(f"to {part} of the frame", exact=True)
            typed(page, f"to {part} of the frame", repr(float(box.get_attribute("data-value")) + x))
        kind(page, "line")
        t, q, qd = motion(page)
        T = arm.pose(q, "link6")
        way = T[-1, :3, 3] - T[0, :3, 3]
        assert_close(way, [0.1, -0.15, 0.12], 1e-9, "the way")
        along = (T[:, :3, 3] - T[0, :3, 3]) @ way / (way @ way)
        assert_close(T[:, :3, 3], T[0, :3, 3] + along[:, None] * way, 2e-6, "a straight line")
        assert_close(T[:, :3, :3], np.broadcast_to(T[0, :3, :3], T[:, :3, :3].shape), 2e-5, "the same rotation")
        u = t / t[-1]
        assert_close(along, u - np.sin(2 * np.pi * u) / (2 * np.pi), 2e-5, "a cycloid along it")
        assert_close(qd[[0, -1]], np.zeros((2, 6)), 1e-12, "rest at both ends")
        mode(page, "Torques")
        assert_close(motion(page)[1], q, 0, "the motion of the mode Torques")
        tau = page.evaluate("kinetree.plan.made().samples.map((s) => Array.from(s.qdd))")
        expected = arm.inverse_dynamics(q, qd, np.array(tau))
        found = curves(page)["torque"].T
        assert_close(found, expected, 1e-11 * np.abs(expected).max(), "torques along the line")


def test_an_arc_passes_its_via_point(chromium, tmp_path):
    """Capture three positions of a planar arm, move on the arc through them; three on a line, and too far a one."""
    arm = kt.load("planar_3r")
    stations = np.array([[0.4, 0.9, -0.5], [0.7, 0.8, 0.2], [1.3, 0.5, 0.4]])
    with opened(chromium, arm.page().save(tmp_path / "arm.html"), after="#mode=Motion") as page:
        for q, name in zip(stations, ("From here", "Add via here", "To here"), strict=True):
            page.evaluate("(q) => kinetree.moveTo(Float64Array.from(q))", q.tolist())
            page.get_by_role("button", name=name).click()
        page.get_by_label("frame of the motion").select_option("tool")
        kind(page, "arc")
        _, q, _ = motion(page)
        p, marks = arm.pose(q, "tool")[:, :2, 3], arm.pose(stations, "tool")[:, :2, 3]
        A = np.column_stack([2 * marks, np.ones(3)])  # |p|^2 = 2 p.c + d
        x, y, d = np.linalg.solve(A, (marks**2).sum(axis=1))
        r = np.sqrt(d + x * x + y * y)
        assert_close(np.hypot(p[:, 0] - x, p[:, 1] - y), np.full(len(p), r), 1e-6, "radius of the arc")
        assert_close(p[[0, -1]], marks[[0, 2]], 1e-9, "ends of the arc")
        assert np.min(np.hypot(*(p - marks[1]).T)) < 5e-3, "the via point is passed"
        page.get_by_role("button", name="remove via 1").click()
        assert page.evaluate(FAULT).startswith("An arc needs one position on its way")
        assert page.evaluate("kinetree.store.get('motion')") is None
        page.locator(".stage").focus()
        page.keyboard.press("Control+z")
        assert page.evaluate(FAULT) == ""
        typed(page, "to x of the frame", "1e30")
        assert "tool cannot be there" in page.inner_text(".left .notes:has(.error:not([hidden]))")
        page.keyboard.press("Escape")
        typed(page, "to joint1", "pi/2")
        assert_close(coordinates(page)[0], np.pi / 2, 1e-15, "the typed end")


def test_velocities_at_the_ends_and_the_shortest_duration(chromium, tmp_path):
    """Give velocities at the ends of polynomials and of a spline; take the shortest duration within limits."""
    row = {"joint": "revolute", "a": 0.3, "mass": 1.0, "com": [-0.15, 0, 0], "inertia": [1e-3, 1e-2, 1e-2, 0, 0, 0]}
    arm = kt.from_dh([row | {"limits": {"velocity": x}} for x in (1.3, 0.7, 2.1)])
    q0, q1 = [0.1, -1.0, 0.8], [0.9, -0.4, 0.3]
    qd0, qd1 = [0.3, 0.0, -0.2], [0.0, -0.5, 0.1]
    with opened(chromium, arm.page().save(tmp_path / "arm.html"), after="#mode=Motion") as page:
        change = "(x) => kinetree.store.set({ inverse: { ...kinetree.store.get('inverse'), ...x } })"
        page.evaluate(change, {"kind": "cycloid", "q0": q0, "q1": q1, "duration": 1.7})
        page.get_by_role("button", name="Shortest").click()
        limits = [1.3, 0.7, 2.1]
        duration = page.evaluate("kinetree.store.get('inverse').duration")
        assert_close(duration, np.max(2 * np.abs(np.subtract(q1, q0)) / limits), 1e-3, "shortest duration")
        page.evaluate(change, {"kind": "quintic", "duration": 1.7})
        page.get_by_text("Velocities at the ends").click()
        names = [j.name for j in arm.joints]
        for field, word in ((qd0, "initial"), (qd1, "final")):
            for name, x in zip(names, field, strict=True):
                if x:
                    typed(page, f"{word} velocity of {name}", repr(float(np.degrees(x))))
        page.keyboard.press("Escape")
        t = np.linspace(0, 1.7, 241)
        for name, degree in (("quintic", 5), ("cubic", 3)):
            kind(page, name)
            q, qd, qdd = sampled(kt.Polynomial(q0, q1, 1.7, degree=degree, qd0=qd0, qd1=qd1), t)
            assert_close(motion(page)[1], q, 1e-13, f"positions of a {name}")
            assert_close(curves(page)["acceleration"].T, qdd, 1e-11, f"accelerations of a {name}")
        kind(page, "spline")
        _, q, qd = motion(page)
        assert_close(qd[[0, -1]], [qd0, qd1], 1e-13, "ends of a spline")


def test_via_points_are_passed_at_their_times(chromium, tmp_path):
    """Add a via point, type its time and a joint; the law rests there, undo removes it, and its curve goes through."""
    arm = kt.load("planar_2r")
    with opened(chromium, arm.page(q=[0.2, 0.3]).save(tmp_path / "arm.html"), after="#mode=Motion") as page:
        page.get_by_role("button", name="Add via here").click()
        typed(page, "time of via 1", "0.5")
        typed(page, "via 1 joint2", "90")
        t, q, qd = motion(page)
        at = int(np.argmin(abs(t - 0.5)))
        assert_close(q[at], [0.2, np.pi / 2], 1e-12, "the via point")
        assert_close(qd[at], [0.0, 0.0], 1e-12, "rest at the via point")
        typed(page, "time of via 1", "2.5")
        assert "Type a time between 0 and 2 s." in page.inner_text(".left")
        page.keyboard.press("Escape")
        page.get_by_role("button", name="Play the motion").click()
        until(page, "kinetree.store.get('time') > 0.2")
        page.locator(".stage").focus()
        page.keyboard.press(" ")
        drawn(page)
        link = page.evaluate("kinetree.store.get('inverse').via")
        page.wait_for_timeout(600)
        page.reload()
        until(page, "window.kinetree && kinetree.store.get('mode') === 'Motion'")
        assert page.evaluate("kinetree.store.get('inverse').via") == link


def test_a_plan_without_a_motion_cannot_be_tracked(chromium, tmp_path):
    """Plan an arc without a via point: it cannot be played or tracked; with the point it can, from its start."""
    with opened(chromium, kt.load("planar_3r").page().save(tmp_path / "arm.html"), after="#mode=Motion") as page:
        play = page.get_by_role("button", name="Play the motion")
        kind(page, "arc")
        assert play.is_disabled()
        mode(page, "Simulate")
        page.get_by_role("button", name="track", exact=True).click()
        told = "There is no motion to track. An arc needs one position on its way"
        until(page, f"document.querySelector('.message').textContent.startsWith({told!r})")
        mode(page, "Motion")
        kind(page, "cubic")
        typed(page, "from joint1", "30")
        assert play.is_enabled()
        mode(page, "Simulate")
        assert page.inner_text(".message") == ""
        assert_close(coordinates(page), [np.radians(30), 0, 0], 1e-15, "the start of the plan")
        page.evaluate("kinetree.store.get('motion').extend(2.1, { patience: 1e5 })")
        assert_close(motion(page)[1][-1], page.evaluate("kinetree.plan.settings().q1"), 1e-4, "its end")
