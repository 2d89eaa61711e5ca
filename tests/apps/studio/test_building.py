"""Robots built from nothing in a real browser: a branched one, a four-bar, templates; and the changes behind them."""

from __future__ import annotations

import numpy as np
import pytest

import everyday
import kinetree as kt
from browser import needs_browser, served, typed, until
from kinetree.apps.studio.actions import ACTIONS
from kinetree.apps.studio.server import outcome
from kinetree.apps.studio.tabs import Folder, Studio
from kinetree.formats.toml_writer import write_toml
from page_reading import coordinates
from tolerance import assert_close


def made(studio: Studio, q: list[float] | None = None, **change) -> kt.System:
    """Change the mechanism of a tab, and return it."""
    model = None if change["do"] == "new" else write_toml(studio.tab.shown().mechanism)
    before = studio.tab.data["first"]["q"].tolist() if q is None and studio.tab.data else q
    found = outcome(studio, "reshape", {"change": change, "model": model, "q": None if model is None else before})
    assert "error" not in found, found["error"]
    return studio.tab.shown()


@pytest.fixture
def studio_tab(tmp_path) -> Studio:
    """Return a studio with an empty folder, whose tab shows one link."""
    studio = Studio(Folder.of(tmp_path))
    made(studio, do="new", template="link")
    return studio


@everyday.long
def test_bodies_have_the_masses_of_their_shapes(studio_tab):
    """Add a box by density, a cylinder, a sphere and a point by mass: centers and inertias are those of the solids."""
    shapes = [
        {"kind": "box", "length": 0.31, "width": 0.12, "height": 0.07, "density": 812.0},
        {"kind": "cylinder", "length": 0.43, "radius": 0.037, "mass": 1.7},
        {"kind": "sphere", "radius": 0.083, "mass": 0.6},
        {"kind": "point", "length": 0.21, "mass": 0.35},
    ]
    arm = made(studio_tab, do="add", parent="link1", at=[0.3, 0, 0], shape=shapes[0])
    for shape in shapes[1:]:
        arm = made(studio_tab, do="add", parent="link2", at=[0.31, 0, 0], kind="spherical", shape=shape)
    rng, (box, cylinder, sphere, point) = np.random.default_rng(7), arm.mechanism.bodies[1:]
    inside = rng.uniform(-0.5, 0.5, (400_000, 3)) * (0.31, 0.12, 0.07)  # the solid by sampling: a second route
    second = (inside.T @ inside) / len(inside) * box.mass
    expected = np.trace(second) * np.eye(3) - second
    assert_close(box.mass, 812.0 * 0.31 * 0.12 * 0.07, 1e-13, "mass by density")
    assert_close(np.array(box.inertia[:3]), np.diag(expected), 1e-4, "inertia of a box")
    disc = rng.uniform(-1, 1, (800_000, 2))
    disc = 0.037 * disc[(disc**2).sum(axis=1) < 1]
    across = 1.7 * ((disc[:, 0] ** 2).mean() + 0.43**2 / 12)
    assert_close(np.array(cylinder.inertia[:3]), [1.7 * (disc**2).sum(axis=1).mean(), across, across], 1e-4, "cylinder")
    assert_close(np.array(sphere.inertia[:3]), [2 / 5 * 0.6 * 0.083**2] * 3, 1e-15, "inertia of a sphere")
    assert point.inertia == (0.0,) * 6 and point.com == (0.21, 0.0, 0.0)
    assert [f.name for f in arm.mechanism.frames] == [f"link{k}_end" for k in range(1, 6)]


@everyday.long
def test_a_body_keeps_what_it_carries(studio_tab):
    """Change a shape, a joint and a parent: what stands at the end of the body follows, the others stay."""
    made(studio_tab, do="add", parent="link1", at=[0.3, 0, 0], shape={"kind": "rod", "length": 0.25})
    made(studio_tab, do="add", parent="link1", at=[0.1, 0, 0], shape={"kind": "rod", "length": 0.2})
    arm = made(studio_tab, [0.3, 0.4, -0.2], do="shape", body="link1", shape={"kind": "rod", "length": 0.5})
    assert studio_tab.tab.data["first"]["q"].tolist() == [0.3, 0.4, -0.2]
    assert arm.mechanism.joint("joint2").placement.translation == (0.5, 0.0, 0.0)
    assert arm.mechanism.joint("joint3").placement.translation == (0.1, 0.0, 0.0)
    arm = made(studio_tab, do="attach", body="link3", parent="link2", at=[0.25, 0.0, 0.0])
    assert arm.mechanism.joint("joint3").parent == "link2"
    arm = made(studio_tab, [0.3, 0.4, -0.2], do="joint", body="link2", kind="prismatic", axis="x")
    assert studio_tab.tab.data["first"]["q"].tolist() == [0.3, 0.0, -0.2]
    end = arm.pose([0.0, 0.11, 0.0], "link3_end")[:3, 3]
    assert_close(end, [0.5 + 0.11 + 0.25 + 0.2, 0, 0], 1e-15, "end of a chain with a slide")
    assert len(made(studio_tab, do="remove", body="link2").mechanism.bodies) == 1


@everyday.long
def test_rings_close_and_have_springs(studio_tab):
    """Close a four-bar of three rods, with a spring: its loop is that of the library's kind; remove both again."""
    made(studio_tab, do="new", template="link")
    for parent, at, length in (("link1", 0.3, 0.7), ("link2", 0.7, 0.5)):
        made(studio_tab, do="add", parent=parent, at=[at, 0, 0], shape={"kind": "rod", "length": length})
    bars = made(studio_tab, do="close", a="link3", at_a=[0.5, 0, 0], b="ground", at_b=[0.8, 0, 0])
    q = studio_tab.tab.data["first"]["q"]
    assert_close(bars.pose(q, "link3_end")[:3, 3], [0.8, 0, 0], 1e-12, "the closed end")
    assert bars.nv - np.linalg.matrix_rank(bars.closure_jacobian(q)) == 1
    bars = made(studio_tab, do="spring", a="link2", at_a=[0.35, 0, 0], b="ground", at_b=[0, 1, 0], stiffness=210.0)
    assert dict(bars.mechanism.forces[0].coefficients)["stiffness"] == 210.0
    assert not made(studio_tab, do="drop", part="loop1").mechanism.loops
    assert not made(studio_tab, do="drop", part="spring1").mechanism.forces


@pytest.mark.parametrize(
    ("change", "message"),
    [
        ({"do": "grow"}, "no change 'grow'; available: "),
        ({"do": "remove", "body": "link1"}, "these are all bodies of the mechanism: one must stay"),
        ({"do": "add", "parent": "arm"}, "no body 'arm'; available: ground, link1"),
        ({"do": "add", "shape": {"kind": "rod", "length": 1e30}}, "length is 1e+30; expected a number from"),
        ({"do": "add", "shape": {"kind": "egg"}}, "no shape 'egg'; available: rod, box, cylinder, sphere, point"),
        ({"do": "add", "name": "link1"}, "the body name 'link1' is used twice; rename one of them"),
        ({"do": "add", "axis": "up"}, "the axis is 'up'; expected x, y or z"),
        ({"do": "attach", "body": "link1", "parent": "link1"}, "link1 is carried by link1; choose a body that is not"),
        ({"do": "close", "a": "link1", "b": "link1"}, "both ends are on link1; choose another body for one of them"),
        ({"do": "close", "a": "link1", "at_a": [0.3, 0, 0], "b": "ground", "at_b": [9, 0, 0]}, "the loops cannot be"),
        ({"do": "drop", "part": "loop7"}, "no part 'loop7'; available: link1_end"),
        ({"do": "new", "template": "ring", "links": 0.5}, "the number of links is 0.5; expected a whole n"),
    ],
)  # fmt: skip
def test_wrong_changes_are_one_sentence(studio_tab, change, message):
    """Refuse unknown parts, sizes that no body has, and loops that cannot close; the tab keeps its mechanism."""
    before = studio_tab.tab.shown()
    found = outcome(studio_tab, "reshape", {"change": change, "model": write_toml(before.mechanism)})
    assert found["error"].startswith(message), found
    assert studio_tab.tab.shown() is before


def test_bending_bodies_are_not_rebuilt(studio_tab):
    """Refuse to change the structure of a mechanism with bodies that bend."""
    ACTIONS["open_library"](studio_tab, name="flexible_arm")
    found = outcome(studio_tab, "reshape", {"change": {"do": "add", "parent": "ground"}})
    assert found["error"].startswith("bodies that bend, elastic joints and motors stay as they are; change the")


BODIES = "kinetree.model.bodies.length"


def begin(page, template: str, bodies: int, links: int = 2) -> None:
    """Begin a robot by a template."""
    page.get_by_label("template of a new robot").select_option(template)
    typed(page, "links of a new robot", str(links))
    page.get_by_role("button", name="New robot", exact=True).click()
    until(page, f"document.title === 'robot' && {BODIES} === {bodies}")


@pytest.mark.slow
@needs_browser
def test_a_branched_robot_is_built_from_nothing(chromium, studio):
    """Begin with one link, add two arms to it, make one of them slide; let it fall; take a change back; reload."""
    with served(chromium, f"{studio}#mode=Build") as page:
        begin(page, "one link", 1)
        page.get_by_text("Add a body", exact=True).click()  # the form stays open, and where it is
        for k, length in enumerate(("0.25", "0.2"), 2):
            page.get_by_label("parent of the new body").select_option("link1")
            typed(page, "length of the new body", length)
            typed(page, "yaw of the new body", "60" if k == 2 else "-60")
            button = page.get_by_role("button", name="Add the body")
            button.scroll_into_view_if_needed()
            before = button.bounding_box()
            button.click()
            until(page, f"{BODIES} === {k} && kinetree.store.get('mode') === 'Build'")
            until(page, "document.querySelectorAll('.fold[open]').length === 1")
            assert abs(page.get_by_role("button", name="Add the body").bounding_box()["y"] - before["y"]) < 2
        assert page.evaluate("kinetree.model.bodies.map((b) => b.parent)") == [-1, 0, 0]
        page.get_by_text("Change link3", exact=True).click()
        page.get_by_label("axis of the joint of the body").select_option("x")
        until(page, "Math.abs(kinetree.model.joints[2].axes[0][2]) === 1")
        page.get_by_label("kind of the joint of the body").select_option("prismatic")
        until(page, "kinetree.model.joints[2].kind === 'prismatic'")
        q = page.evaluate("kinetree.moveTo([0.2, 0.3, 0.05]); Array.from(kinetree.kernel.poses([0.2, 0.3, 0.05]))")
        ends = np.array(q).reshape(3, 4, 4)
        along = 0.3 * np.array([np.cos(0.2), np.sin(0.2)])
        slide = 0.05 * np.array([np.cos(0.2 - np.pi / 3), np.sin(0.2 - np.pi / 3)])
        assert_close(ends[1, :2, 3], along, 1e-15, "first branch")
        assert_close(ends[2, :2, 3], along + slide, 1e-15, "second branch")
        page.locator(".stage").focus()
        page.keyboard.press(" ")
        until(page, "kinetree.store.get('time') > 0.3")
        page.keyboard.press(" ")
        page.get_by_role("button", name="Build", exact=True).click()
        page.get_by_text("Change link3", exact=True).wait_for()
        page.get_by_role("button", name="Add the body").click()
        until(page, f"{BODIES} === 4")
        page.locator(".stage").focus()
        page.keyboard.press("Control+z")
        until(page, f"{BODIES} === 3 && kinetree.model.joints[2].kind === 'prismatic'")
        kept = page.evaluate("Array.from(kinetree.store.get('q'))")
        page.reload()
        until(page, f"window.kinetree && {BODIES} === 3 && kinetree.model.joints[2].kind === 'prismatic'")
        assert_close(coordinates(page), kept, 1e-15, "position after a reload")


@pytest.mark.slow
@needs_browser
def test_a_four_bar_is_built_from_nothing(chromium, studio):
    """Begin with a crank, add a coupler and a rocker, close the loop, and turn the crank; a loop that is too far."""
    with served(chromium, f"{studio}#mode=Build") as page:
        begin(page, "one link", 1)
        page.get_by_text("Add a body", exact=True).click()
        for k, length in enumerate(("0.7", "0.5"), 2):
            typed(page, "length of the new body", length)
            page.get_by_role("button", name="Add the body").click()
            until(page, f"{BODIES} === {k} && kinetree.store.get('mode') === 'Build'")
        page.get_by_text("Close a loop", exact=True).click()
        typed(page, "second end of the loop x", "8")
        page.get_by_role("button", name="Close the loop").click()
        page.locator(".fold", has_text="Close a loop").get_by_text("The loops cannot be closed").wait_for()
        typed(page, "second end of the loop x", "0.8")
        page.get_by_role("button", name="Close the loop").click()
        until(page, "kinetree.model.loops.length === 1")
        page.get_by_role("button", name="Loops", exact=True).click()
        until(page, "kinetree.store.get('motion')?.name === 'turn'")
        assert page.inner_text(".verdict") == "joint1 turns fully."
        page.get_by_role("button", name="Build", exact=True).click()
        page.get_by_role("button", name="Remove loop1").click()
        until(page, "kinetree.model.loops.length === 0")


@pytest.mark.slow
@needs_browser
def test_templates_have_a_number_of_links(chromium, studio):
    """Begin with every template and another number of links, and change the number of links of a chain."""
    counts = {  # links that are typed, and bodies
        "planar arm": (3, 3), "spatial arm": (4, 4), "Cartesian arm": (3, 3), "branched tree": (2, 5),
        "ring of bars": (4, 3), "one link": (2, 1),
    }  # fmt: skip
    with served(chromium, f"{studio}#mode=Build") as page:
        typed(page, "links of a new robot", "2.5")
        page.get_by_text("Type a whole number.").wait_for()
        typed(page, "links of a new robot", "0")
        page.get_by_text("The least value is 1.", exact=True).wait_for()
        for name, (links, bodies) in counts.items():
            begin(page, name, bodies, links)
            assert page.evaluate("kinetree.kernel.gap(kinetree.store.get('q')) < 1e-10")


@pytest.mark.slow
@needs_browser
def test_bad_input_leaves_a_usable_page(chromium, studio):
    """Type nothing, words, and very large and small numbers into the forms of bodies and motions; go on then."""
    with served(chromium, f"{studio}#mode=Build") as page:
        begin(page, "one link", 1)
        page.get_by_text("Add a body", exact=True).click()
        for text in ("", "long", "1e30", "-1", "0"):
            typed(page, "length of the new body", text)
            assert page.locator(".fold .error:not([hidden])").count() == 1, text
            page.keyboard.press("Escape")
        page.get_by_role("button", name="Add the body").click()
        assert page.inner_text(".fold[open] .error:visible") == "Nothing was changed. The least value is 1e-9 m."
        for k, text in enumerate(("1e-9", "1e9"), 2):
            typed(page, "length of the new body", text)
            page.get_by_role("button", name="Add the body").click()
            until(page, f"{BODIES} === {k}")
        assert page.evaluate("kinetree.kernel.poses(kinetree.store.get('q')).every(Number.isFinite)")
        page.get_by_role("button", name="Motion", exact=True).click()
        for text in ("", "soon", "1e30", "1e-30"):
            typed(page, "duration", text)
            assert page.locator(".left .error:not([hidden])").count() == 1, text
            page.keyboard.press("Escape")
        typed(page, "to joint1", "1e30")
        typed(page, "to joint2", "1e-30")
        page.keyboard.press("Escape")
        page.get_by_role("button", name="Play the motion").click()
        until(page, "kinetree.store.get('time') > 0.1")
        page.get_by_role("button", name="Build", exact=True).click()
        page.locator(".stage").focus()
        page.keyboard.press("Control+z")
        page.get_by_role("button", name="link1", exact=True).first.click()
        typed(page, "mass of link1", "2.5")
        assert page.evaluate("kinetree.model.bodies[0].mass") == 2.5
