"""Controls of the page in a real browser: one pose for all modes, the space bar, typed numbers, masses of a body."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

import numpy as np
import pytest

import kinetree as kt
from browser import needs_browser, opened, typed, until
from page_reading import coordinates
from tolerance import assert_close

pytestmark = [pytest.mark.slow, needs_browser]

START = np.radians([20.0, -35.0])


@pytest.fixture(scope="module")
def shown(chromium, tmp_path_factory) -> Iterator[Any]:
    """Yield one page of a two-link arm for all tests of this module."""
    file = kt.load("planar_2r").page(q=START).save(tmp_path_factory.mktemp("page") / "arm.html")
    with opened(chromium, file) as page:
        yield page


@pytest.fixture
def page(shown) -> Any:
    """Return the page with the arm at its start, as it was given."""
    shown.evaluate("kinetree.player.play(false)")
    shown.evaluate("kinetree.table.change(kinetree.table.first, '')")
    shown.evaluate("kinetree.store.set({ mode: 'Move', motion: null, time: 0, picked: -1, units: 'deg' })")
    shown.evaluate("(q) => kinetree.store.set({ q: Float64Array.from(q), qd: new Float64Array(2) })", START.tolist())
    return shown


def mode(page: Any, name: str) -> None:
    page.get_by_role("navigation", name="modes").get_by_role("button", name=name, exact=True).click()


def inverse(page: Any) -> dict[str, Any]:
    return page.evaluate("kinetree.store.get('inverse')")


def test_there_is_one_pose(page):
    """Move the arm, take the pose as the end of a motion in another mode, and come back to it."""
    mode(page, "Torques")  # it has a motion of its own from now on
    mode(page, "Move")
    typed(page, "joint1", "77")
    typed(page, "joint2", "22")
    there = np.radians([77.0, 22.0])
    mode(page, "Torques")
    assert_close(coordinates(page), there, 1e-15, "the pose, after a change of the mode")
    page.get_by_role("button", name="To here").click()
    assert_close(np.array(inverse(page)["q1"]), there, 1e-15, "the end of the motion")
    typed(page, "payload", "0.5")
    assert_close(coordinates(page), there, 1e-15, "the pose, after a change of the load")
    typed(page, "to joint1", "50")
    assert_close(coordinates(page), np.radians([50.0, 22.0]), 1e-15, "a changed end is shown")
    page.keyboard.press("Escape")
    mode(page, "Move")
    assert_close(coordinates(page), np.radians([50.0, 22.0]), 1e-15, "the pose, back in the other mode")


def test_present_positions_are_those_that_are_seen(page):
    """Record four positions of a motion, each set by sliders of another mode."""
    way = np.radians([[10.0, 20.0], [35.0, -15.0], [60.0, 40.0], [-20.0, 5.0]])
    mode(page, "Torques")
    page.get_by_role("button", name="spline", exact=True).click()
    for q, button in zip(np.degrees(way), ("From here", "Add via here", "Add via here", "To here"), strict=True):
        mode(page, "Move")
        for k, x in enumerate(q):
            typed(page, f"joint{k + 1}", repr(float(x)))
        mode(page, "Torques")
        page.get_by_role("button", name=button).click()
    plan = inverse(page)
    found = [plan["q0"], *(p["q"] for p in plan["via"]), plan["q1"]]
    assert_close(np.array(found), way, 1e-15, "positions of the motion")
    assert_close(coordinates(page), way[-1], 1e-15, "the last one is shown")
    page.get_by_role("button", name="via 1", exact=True).click()
    assert_close(coordinates(page), way[1], 1e-14, "the head of a column shows its position")
    for _ in range(2):
        page.get_by_role("button", name="remove via 1").click()
    page.get_by_role("button", name="cycloid", exact=True).click()


def playing(page: Any) -> bool:
    return page.evaluate("kinetree.store.get('playing')")


def test_space_plays_from_anywhere_but_a_text(page):
    """Press the space bar after a click on a tab and a toggle, after a typed number, and while one is typed."""
    mode(page, "Simulate")
    for before in (
        lambda: mode(page, "Simulate"),
        lambda: page.get_by_role("button", name="names", exact=True).click(),
        lambda: typed(page, "time step", "2"),
        lambda: page.get_by_label("speed", exact=True).select_option("0.5"),
    ):
        before()
        page.keyboard.press(" ")
        assert playing(page)
        page.keyboard.press(" ")
        assert not playing(page)
    page.get_by_label("time step", exact=True).fill("1 ")
    page.keyboard.press(" ")
    assert not playing(page)
    page.keyboard.press("Escape")
    page.get_by_role("button", name="undo", exact=True).focus()
    page.keyboard.press("Tab")
    page.keyboard.press("Shift+Tab")
    page.keyboard.press(" ")  # a button that was reached by the keyboard is pressed by it
    assert not playing(page)
    page.locator(".stage").focus()
    mode(page, "Move")
    page.keyboard.press(" ")  # nothing to play here: the arm falls
    assert playing(page) and page.evaluate("kinetree.store.get('mode')") == "Simulate"


def test_a_motion_is_stepped_and_reversed(page):
    """Step a fall forward, beyond what is computed, and back; play it in reverse to its start, where it stops."""
    mode(page, "Simulate")
    page.get_by_role("button", name="Restart").click()
    page.locator(".stage").focus()
    for _ in range(3):
        page.keyboard.press(".")
    time = "kinetree.store.get('time')"
    assert_close(page.evaluate(time), 3 / 60, 1e-12, "three steps")
    fallen = coordinates(page)
    run = kt.simulate(kt.load("planar_2r"), START, times=[0.0, 3 / 60], method="rk4", dt=1e-3)
    assert_close(fallen, run.q[-1], 1e-9, "the fall")
    page.get_by_role("button", name="one step back").click()
    assert_close(page.evaluate(time), 2 / 60, 1e-12, "a step back")
    page.get_by_label("speed", exact=True).select_option("-1")
    page.keyboard.press(" ")
    until(page, "!kinetree.store.get('playing')")
    assert page.evaluate(time) == 0
    assert_close(coordinates(page), START, 1e-15, "the start")
    page.get_by_label("speed", exact=True).select_option("1")


def test_a_chosen_solution_is_reached_once(page):
    """Choose the other elbow: the arm moves there once, stays, and stays in other modes."""
    typed(page, "joint2", "-60")
    page.locator(".panel").get_by_role("button", name="position", exact=True).click()
    page.get_by_role("button", name="Find", exact=True).click()
    other = page.locator(".solutions button").nth(1)
    goal = np.array([float(x) for x in other.get_attribute("data-q").split(",")])
    other.click()
    until(page, "!kinetree.store.get('playing')")
    assert_close(coordinates(page), goal, 1e-12, "the arm at the chosen solution")
    page.wait_for_timeout(300)
    mode(page, "Torques")
    mode(page, "Move")
    assert_close(coordinates(page), goal, 1e-12, "it stays there")
    typed(page, "joint1", "15")
    mode(page, "Build")
    mode(page, "Move")
    assert_close(coordinates(page), np.array([np.radians(15), goal[1]]), 1e-12, "moved on by hand")


def test_a_two_link_arm_has_two_elbows(page):
    """Find both elbows without choosing a mode, see both as ghosts, and play from one to the other, once."""
    chosen = page.locator(".panel").get_by_role("button", name="position", exact=True)
    assert chosen.get_attribute("aria-pressed") == "true"
    page.get_by_role("button", name="Find", exact=True).click()
    labels = page.eval_on_selector_all(".branches td.label", "all => all.map((x) => x.textContent)")
    assert sorted(labels) == ["elbow down", "elbow up"]
    elbows = page.evaluate("kinetree.part.layer().labels.map((x) => x.at)")
    tip = kt.load("planar_2r").pose(coordinates(page), "tool")[:3, 3]
    above = ["elbow up" if y > x * tip[1] / tip[0] else "elbow down" for x, y, _ in elbows]
    assert above == labels
    rows = page.locator(".branches tbody tr")
    goal = np.array([float(x) for x in rows.nth(0).locator("button").get_attribute("data-q").split(",")])
    page.get_by_label("A is solution 2").check()
    page.get_by_label("B is solution 1").check()
    page.get_by_role("button", name="Play A to B").click()
    assert np.abs(coordinates(page) - goal).max() > 0.1
    until(page, "!kinetree.store.get('playing')")
    assert_close(coordinates(page), goal, 1e-12, "the arm at B")


def test_a_step_beyond_the_reach_does_not_slide(page):
    """Jog a nearly straight arm outwards: it goes as far as it can along the axis, and not along another one."""
    arm = kt.load("planar_2r")
    page.evaluate("kinetree.store.set({ q: Float64Array.from([0, 0.05]) })")
    before = arm.pose(coordinates(page), "tool")[:3, 3]
    page.get_by_label("move along plus x", exact=True).click()
    after = arm.pose(coordinates(page), "tool")[:3, 3]
    assert_close(after[1:], before[1:], 1e-9, "y and z")
    reach = np.sqrt(0.55**2 - before[1] ** 2)
    assert_close(after[0], reach, 1e-5, "x, up to a small part of the step")
    assert page.inner_text(".message") == "tool cannot move further along x here."
    page.get_by_label("move along plus z", exact=True).click()
    assert_close(arm.pose(coordinates(page), "tool")[:3, 3], after, 1e-9, "an arm in a plane does not leave it")


def test_expressions_are_typed(page):
    """Type pi/2 in degrees and in radians, a third, and a text that is none."""
    typed(page, "joint1", "pi/2")
    assert coordinates(page)[0] == np.pi / 2 and page.get_by_label("joint1", exact=True).input_value() != "pi/2"
    typed(page, "joint1", "90/4")
    assert_close(coordinates(page)[0], np.radians(22.5), 1e-15, "degrees")
    page.evaluate("kinetree.store.set({ units: 'rad' })")
    typed(page, "joint1", "-pi/3")
    assert_close(coordinates(page)[0], -np.pi / 3, 1e-15, "radians")
    typed(page, "step", "1/30")
    assert page.evaluate("kinetree.store.get('kinematics').step") == 1 / 30
    typed(page, "step", "alert(1)")
    page.get_by_text("Type a number, such as 0.5 or 1e-3, or an expression, such as 1/3 or pi/2.").wait_for()


def test_the_six_inertias_are_one_unit(page):
    """Type moments that fit only together, a point mass, and some that do not fit; a refused box is not left red."""
    mode(page, "Build")
    page.evaluate("kinetree.store.set({ picked: 1 })")
    model = "kinetree.model.bodies[1].inertia.map((x) => x)"
    before = page.evaluate(model)
    typed(page, "inertia xx of link2", "1")
    assert page.evaluate(model) == before  # not a body yet
    page.get_by_text("Not used yet. No body can have this inertia").wait_for()
    typed(page, "inertia yy of link2", "1")
    typed(page, "inertia zz of link2", "1")
    assert page.evaluate(model) == [1, 1, 1, 0, 0, 0]
    assert not page.get_by_text("Not used yet").is_visible()
    for axis in ("xx", "yy", "zz"):
        typed(page, f"inertia {axis} of link2", "0")
    assert page.evaluate(model) == [0, 0, 0, 0, 0, 0]
    page.get_by_role("button", name="undo", exact=True).click()
    assert page.evaluate(model) == [0, 1, 1, 0, 0, 0]  # the last one that is a body
    typed(page, "inertia xx of link2", "9")
    page.get_by_role("button", name="Discard").click()
    box = page.get_by_label("inertia xx of link2", exact=True)
    assert box.input_value() == "0" and page.evaluate(model) == [0, 1, 1, 0, 0, 0]
    typed(page, "mass of link2", "-1")
    refused = page.get_by_label("mass of link2", exact=True)
    assert refused.get_attribute("aria-invalid") == "true"
    box.focus()
    assert refused.get_attribute("aria-invalid") == "false" and refused.input_value() == "0.4"


def test_masses_are_in_one_frame_and_follow(page):
    """Read the center of mass in panel and inspector, change mass and length, and adapt the inertia."""
    mode(page, "Build")
    page.evaluate("kinetree.store.set({ picked: 0 })")
    center = page.get_by_label("center of mass x of link1", exact=True).input_value()
    row = page.locator(".inspector tr", has_text="center x").locator("td").first
    assert float(row.inner_text()) == float(center)
    where = page.locator(".panel .hint", has_text="Center of mass and inertia about it").inner_text()
    assert where.removeprefix("Center of mass and inertia about it") in page.inner_text(".inspector")
    inertia = np.array(page.evaluate("kinetree.store.get('table').rows[0].inertia"))
    typed(page, "mass of link1", "1")
    page.get_by_text("The mass changed from 0.5 to 1 kg; center of mass and inertia are those of before.").wait_for()
    page.get_by_role("button", name="Adapt the inertia").click()
    assert_close(np.array(page.evaluate("kinetree.store.get('table').rows[0].inertia")), 2 * inertia, 1e-15, "inertia")
    assert not page.get_by_role("button", name="Adapt the inertia").is_visible()


def test_numbers_are_plain(page):
    """Read a matrix without rounding errors, a clock that ends where the motion does, and an end of 45 degrees."""
    page.evaluate("kinetree.store.set({ q: Float64Array.from([1e-12, Math.PI - 1e-13]) })")
    cells = page.eval_on_selector_all(".pose .matrix td", "all => all.map((x) => x.textContent)")
    assert not [x for x in cells if "e" in x] and "0.0000" in cells
    page.evaluate("kinetree.store.set({ mode: 'Torques' }); kinetree.player.seek(2)")
    page.evaluate("kinetree.store.set({ mode: 'Build' }); kinetree.store.set({ motion: null })")
    assert page.inner_text("#clock") == "0.000 / 0.000 s"


@pytest.mark.parametrize(
    ("name", "reason"), [("four_bar", "This mechanism has loops"), ("space_robot_3r", "nothing drives its base")]
)
def test_a_mode_that_does_not_suit_gives_its_reason(chromium, tmp_path, name, reason):
    """Choose the mode of torques by a click and by its key where it cannot be: it is grey, and tells why."""
    with opened(chromium, kt.load(name).page().save(tmp_path / "page.html")) as page:
        tab = page.get_by_role("navigation", name="modes").get_by_role("button", name="Torques", exact=True)
        assert tab.get_attribute("aria-disabled") == "true" and reason in (tab.get_attribute("title") or "")
        for choose in (lambda: tab.click(force=True), lambda: page.keyboard.press("i")):
            page.evaluate("kinetree.say('')")
            choose()
            assert reason in page.inner_text(".message")
        assert page.evaluate("kinetree.store.get('mode')") != "Torques"
        assert page.locator(".modes [aria-pressed=true]").count() == 1
        order = page.locator(".modes button").all_inner_texts()
        assert order[order.index("Motion") : order.index("Simulate") + 1] == ["Motion", "Torques", "Simulate"]


def test_every_mode_begins_with_its_own_charts(page):
    """Open modes one after the other: each shows its first chart, until a chart is chosen that both have."""
    chosen = "kinetree.plots.chosen[0]"
    first = {"Motion": "position", "Torques": "torque", "Simulate": "position"}
    for name, title in first.items():
        mode(page, name)
        assert page.evaluate(chosen) == title, name
    page.locator(".plots .tabs button", has_text="velocity").click()
    for name in first:
        mode(page, name)
        assert page.evaluate(chosen) == "velocity", name


def test_a_motion_without_inertia_tells_why_it_stops(page):
    """Take the inertia of the last link away: the player names the cause, and the recursion where it divides by 0."""
    page.evaluate("""() => {
        const table = kinetree.store.get("table");
        const empty = { mass: 0, com: [0, 0, 0], inertia: [0, 0, 0, 0, 0, 0] };
        kinetree.table.change({ ...table, rows: table.rows.map((row, k) => (k ? { ...row, ...empty } : row)) }, "");
    }""")
    mode(page, "Simulate")
    page.keyboard.press("Space")
    until(page, "!kinetree.store.get('playing')")
    assert page.inner_text(".message").startswith("No step is possible from here: every joint needs inertia to move")
    mode(page, "Understand")
    assert page.locator(".working .missing").count() == 0  # inverse dynamics needs no inertia
    page.get_by_role("button", name="forward", exact=True).click()
    assert "no body beyond its joint has the mass or inertia" in page.inner_text(".working .missing")
    mode(page, "Simulate")
    page.evaluate("kinetree.table.change(kinetree.table.first, '')")
    page.get_by_role("button", name="Restart").click()
    page.get_by_role("button", name="one step forward", exact=True).click()
    assert page.evaluate("kinetree.player.end") > 0 and page.inner_text(".message") == ""
