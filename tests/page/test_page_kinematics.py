"""The page's panel of kinematics in a real browser: poses, Jacobians, dragging, jogging, all solutions, workspace."""

from __future__ import annotations

import numpy as np
import pytest

import kinetree as kt
from browser import needs_browser, opened, projected, typed, until
from tolerance import assert_close

Q = [0.4, -0.6, 0.5, 0.7, 0.9, -0.3]
STATE = "Array.from(kinetree.store.get('q'))"

pytestmark = [pytest.mark.slow, needs_browser]


@pytest.fixture
def arm() -> kt.System:
    return kt.load("puma560")


def state(page) -> np.ndarray:
    return np.array(page.evaluate(STATE))


def shown(page, selector: str) -> np.ndarray:
    """Return the full numbers of table cells."""
    return np.array([float(x) for x in page.eval_on_selector_all(selector, "all => all.map((x) => x.dataset.value)")])


def test_poses_and_jacobians_are_the_library_s(chromium, tmp_path, arm):
    """Read the pose and the Jacobian of a frame after a joint was moved."""
    with opened(chromium, arm.page(q=Q).save(tmp_path / "arm.html")) as page:
        typed(page, "joint3", "-25")
        q = np.array([*Q[:2], np.radians(-25), *Q[3:]])
        assert_close(state(page), q, 1e-15, "coordinates")
        assert_close(shown(page, ".pose .matrix td").reshape(3, 4), arm.pose(q, "link6")[:3], 1e-12, "pose")
        assert_close(shown(page, ".jacobian td").reshape(6, 6), arm.jacobian(q, "link6"), 1e-12, "Jacobian")
        page.get_by_label("frame", exact=True).select_option("link3")
        assert_close(shown(page, ".jacobian td").reshape(6, 6), arm.jacobian(q, "link3"), 1e-12, "Jacobian of link3")


def test_the_frame_goes_where_it_is_told(chromium, tmp_path, arm):
    """Type a coordinate of the frame, jog it, and find its pose by the library, for two frames."""
    T = arm.pose(Q, "link6")
    with opened(chromium, arm.page(q=Q).save(tmp_path / "arm.html")) as page:
        typed(page, "z of the frame", "0.55")
        goal = T.copy()
        goal[2, 3] = 0.55
        assert_close(arm.pose(state(page), "link6"), goal, 1e-10, "pose after typing z")
        page.get_by_label("move along plus x", exact=True).click()
        goal[0, 3] += 0.02
        assert_close(arm.pose(state(page), "link6"), goal, 1e-10, "pose after a step along x")
        page.get_by_label("rotate about minus y", exact=True).click()
        a = np.radians(-5)
        Ry = np.array([[np.cos(a), 0, np.sin(a)], [0, 1, 0], [-np.sin(a), 0, np.cos(a)]])
        goal[:3, :3] = Ry @ goal[:3, :3]
        assert_close(arm.pose(state(page), "link6"), goal, 1e-10, "pose after a rotation about y")
        page.get_by_role("button", name="position", exact=True).click()
        page.get_by_label("frame", exact=True).select_option("link4")
        before = arm.pose(state(page), "link4")[:3, 3]
        page.get_by_label("move along minus z", exact=True).click()
        assert_close(arm.pose(state(page), "link4")[:3, 3], before - (0, 0, 0.02), 1e-10, "point of another frame")
        typed(page, "x of the frame", "3")
        assert "cannot reach this position: the nearest is" in page.inner_text(".message")


def test_a_handle_is_dragged(chromium, tmp_path, arm):
    """Drag the handle at the frame: the frame follows the pointer and keeps its rotation; undo takes it back."""
    T = arm.pose(Q, "link6")
    with opened(chromium, arm.page(q=Q).save(tmp_path / "arm.html")) as page:
        x, y = projected(page, T[:3, 3].tolist())
        page.mouse.move(x, y)
        page.mouse.down()
        for k in range(1, 6):
            page.mouse.move(x - 8 * k, y + 6 * k)
        page.mouse.up()
        after = arm.pose(state(page), "link6")
        assert np.linalg.norm(after[:3, 3] - T[:3, 3]) > 0.01
        assert_close(after[:3, :3], T[:3, :3], 1e-10, "rotation during a drag")
        there = projected(page, after[:3, 3].tolist())
        assert np.hypot(there[0] - (x - 40), there[1] - (y + 30)) < 1.5
        page.locator(".stage").focus()
        for _ in range(5):  # moves that follow each other within a second are taken back together
            page.keyboard.press("Control+z")
        assert_close(state(page), Q, 1e-15, "coordinates after undo")


def test_all_solutions_are_listed_and_reached(chromium, tmp_path, arm):
    """List the eight solutions of a pose, as the library does, and travel to one."""
    expected = arm.inverse_kinematics(arm.pose(Q, "link6"), "link6", all=True).q
    with opened(chromium, arm.page(q=Q).save(tmp_path / "arm.html")) as page:
        page.get_by_role("button", name="Find", exact=True).click()
        texts = page.eval_on_selector_all(".solutions button", "all => all.map((x) => x.dataset.q)")
        found = np.array([[float(x) for x in text.split(",")] for text in texts])
        assert len(found) == len(expected) == 8
        for q in expected:
            away = np.abs((found - q + np.pi) % (2 * np.pi) - np.pi).max(axis=-1)
            assert_close(away.min(), 0.0, 1e-9, "solutions")
        labels = page.eval_on_selector_all(".branches td.label", "all => all.map((x) => x.textContent)")
        sides = [
            (a, b, c)
            for a in ("front", "back")
            for b in ("elbow up", "elbow down")
            for c in ("wrist +", "wrist \u2212")
        ]
        assert sorted(labels) == sorted(", ".join(x) for x in sides)
        page.get_by_role("button", name="4", exact=True).click()
        until(page, "kinetree.store.get('time') > 0.1")
        page.locator(".stage").focus()
        page.keyboard.press(" ")
        page.keyboard.press("End")
        assert_close(state(page), found[3], 1e-12, "the chosen solution at the end of the path")
        assert "manipulability" in page.inner_text(".tabs")


def test_a_workspace_is_sampled(chromium, tmp_path):
    """Sample points of a planar arm, all within its reach, and show its ellipsoid and its singular position."""
    arm = kt.load("planar_2r")
    with opened(chromium, arm.page(q=[0.3, 0.9]).save(tmp_path / "arm.html")) as page:
        page.get_by_role("button", name="Sample", exact=True).click()
        until(page, "kinetree.part.layer().lines.some((line) => line.points.length > 600)")
        layer = "kinetree.part.layer()"
        points = page.evaluate(f"{layer}.lines.flatMap((line) => Array.from(line.points))")
        points = np.reshape(points, (-1, 2, 3))[:, 0]
        reach = np.linalg.norm(points - arm.pose([0, 0], "link1")[:3, 3], axis=-1)
        lengths = arm.workspace("tool", samples=2000).points
        assert len(points) > 50 and reach.max() <= np.linalg.norm(lengths, axis=-1).max() * 1.01
        count = page.evaluate(f"{layer}.items.length")
        page.get_by_role("button", name="ellipsoid", exact=True).click()
        assert page.evaluate(f"{layer}.items.length") == count + 1
        assert page.locator(".group .error:not([hidden])").count() == 0
        typed(page, "joint2", "0.5")
        assert "Near a singular position" in page.inner_text(".group .error:not([hidden])")


def test_loops_stay_closed_while_a_frame_moves(chromium, tmp_path):
    """Jog the tool of a five-bar: its loop stays closed."""
    arm = kt.load("five_bar")
    start = arm.pose(arm.assemble(), "tool")[:3, 3]
    with opened(chromium, arm.page().save(tmp_path / "five.html")) as page:
        page.get_by_role("button", name="position", exact=True).click()
        page.get_by_label("move along minus y", exact=True).click()
        q = state(page)
        assert_close(arm.pose(q, "tool")[:3, 3], start - (0, 0.02, 0), 1e-9, "tool")
        assert_close(arm.closure_residual(q), np.zeros(len(arm.closures)), 1e-9, "gap")


def test_teach_opens_with_sliders(chromium, tmp_path, arm):
    """Open the page of `teach` in its mode, at the given coordinates, and move a joint."""
    with opened(chromium, arm.teach(Q, path=tmp_path / "teach.html", show=False)) as page:
        assert_close(state(page), Q, 1e-15, "coordinates")
        typed(page, "joint3", "-25")
        q = np.array([*Q[:2], np.radians(-25), *Q[3:]])
        assert_close(shown(page, ".pose .matrix td").reshape(3, 4), arm.pose(q, "link6")[:3], 1e-12, "pose")


def test_the_handle_is_in_the_picture(chromium, tmp_path):
    """Open a four-bar whose frame is at the edge of it: all three arrows of the handle can be reached."""
    bars = kt.load("four_bar")
    for size in ((1280, 720), (390, 844)):
        with opened(chromium, bars.page().save(tmp_path / "bars.html"), after="#mode=Move", size=size) as page:
            box = page.locator(".stage").bounding_box()
            for place in page.evaluate("kinetree.part.layer().places"):
                x, y = projected(page, place)
                assert box["x"] < x < box["x"] + box["width"] and box["y"] < y < box["y"] + box["height"], size
