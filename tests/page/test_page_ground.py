"""Physics in the page, in a real browser: what the ground carries, pulls with their forces, steps and speeds."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path
from typing import Any

import numpy as np
import pytest

import kinetree as kt
from browser import drawn, needs_browser, opened, projected, typed, until
from kinetree.apps.walking import legged
from page_reading import coordinates
from tolerance import assert_close

pytestmark = [pytest.mark.slow, needs_browser]

STANDING = {"quadruped": 0.5, "biped": 1.15, "hexapod": 0.5}
"""Walkers, and the heights of their trunks [m]."""
BACK = "(() => { const m = kinetree.matricesNow()[0]; return [m[12], m[13], m[14]]; })()"
LABELS = """(() => {
    const { stage } = kinetree;
    const texts = [], pen = CanvasRenderingContext2D.prototype, whole = pen.fillText;
    pen.fillText = function (text, ...at) { texts.push(text); whole.call(this, text, ...at); };
    stage.draw();
    pen.fillText = whole;
    return texts;
})()"""
"""The texts in the picture."""


@pytest.fixture(scope="module")
def files(tmp_path_factory) -> dict[str, Path]:
    """Return pages of walkers and vehicles."""
    folder = tmp_path_factory.mktemp("pages")
    names = (*STANDING, "differential_drive", "bicycle")
    return {name: kt.load(name).page().save(folder / f"{name}.html") for name in names}


@pytest.fixture
def walker(request, chromium, files) -> Iterator[Any]:
    """Yield the page of a walker in the mode Simulate."""
    with opened(chromium, files[request.param], after="#mode=Simulate") as page:
        yield page


def ahead(page: Any, seconds: float) -> None:
    """Compute a motion up to a time, and go there."""
    until(
        page, f"(kinetree.store.get('motion').extend?.({seconds}), kinetree.store.get('motion').end > {seconds - 1e-6})"
    )
    page.evaluate(f"kinetree.player.seek({seconds})")
    drawn(page)


@pytest.mark.parametrize("name", STANDING)
def test_walkers_stand(chromium, files, name):
    """Press space: a walker of the library stands, with its weight on its feet; without a ground it falls."""
    assert files[name].stat().st_size < 300_000
    walker = kt.load(name)
    weight = 9.81 * sum(body.mass for body in walker.bodies)
    with opened(chromium, files[name], after="#mode=Simulate") as page:
        page.keyboard.press(" ")
        until(page, "kinetree.store.get('time') > 0.5")
        page.keyboard.press(" ")
        ahead(page, 5.0)
        q = coordinates(page)
        assert_close(q[:7], walker.neutral()[:7], 1e-4, "trunk after five seconds")  # 4e-7 for the biped
        forces = page.evaluate("kinetree.store.get('motion').felt.map((x) => x.at(-1))")
        assert_close(sum(forces[::3]), weight, 1e-3, "forces of the ground")
        labels = page.evaluate(LABELS)
        assert sum(text.endswith(" N") for text in labels) >= 2, labels
        page.get_by_label("ground under").uncheck()
        ahead(page, 5.5)
        assert coordinates(page)[1] < STANDING[name] - 1.0
        until(page, "kinetree.store.get('motion').felt.every((x) => x.at(-1) === 0)")


@pytest.mark.parametrize("walker", ["quadruped"], indirect=True)
def test_a_pull_shows_its_force(walker):
    """Lift the quadruped by its back: an arrow has the force of the pull; let go, it stands again."""
    page = walker
    page.keyboard.press(" ")
    until(page, "kinetree.store.get('time') > 0.2")
    x, y = projected(page, page.evaluate(BACK))
    page.mouse.move(x, y)
    page.mouse.down()
    page.mouse.move(x, y - 40, steps=6)
    page.wait_for_timeout(700)
    texts = [text for text in page.evaluate(LABELS) if text.startswith("pull ")]
    stretch = "kinetree.store.get('motion').pull"
    force = np.array(page.evaluate(f"{stretch}.force"))
    assert len(texts) == 1 and texts[0].endswith(" N")
    assert 0 < float(texts[0].split()[1]) == pytest.approx(np.linalg.norm(force), rel=0.2)
    assert force[1] > 20.0  # upward
    page.mouse.up()
    assert not [text for text in page.evaluate(LABELS) if text.startswith("pull ")]
    page.keyboard.press(" ")
    ahead(page, page.evaluate("kinetree.store.get('motion').end") + 3.0)
    assert_close(coordinates(page)[1], 0.5, 5e-3, "height of the trunk")


@pytest.mark.parametrize("walker", ["quadruped"], indirect=True)
def test_single_steps_slow_motion_and_reverse(walker):
    """Drop the legs; go on by single steps and back, play ten times slower, and play what was computed in reverse."""
    page = walker
    page.get_by_role("button", name="none", exact=True).click()
    for _ in range(3):
        page.keyboard.press(".")
    assert_close(page.evaluate("kinetree.store.get('time')"), 3 / 60, 1e-9, "three steps")
    page.get_by_role("button", name="one step back").click()
    assert_close(page.evaluate("kinetree.store.get('time')"), 2 / 60, 1e-9, "one step back")
    ahead(page, 0.3)
    low = coordinates(page)
    assert low[1] < 0.45
    page.get_by_label("speed").select_option("0.1")
    page.evaluate("kinetree.player.seek(0.1)")
    began = page.evaluate("performance.now()")
    page.keyboard.press(" ")
    page.wait_for_timeout(800)
    page.keyboard.press(" ")
    passed = 1e-3 * (page.evaluate("performance.now()") - began)
    assert 0 < page.evaluate("kinetree.store.get('time')") - 0.1 < 0.11 * passed
    page.evaluate("kinetree.player.seek(0.3)")
    page.get_by_label("speed").select_option("-1")
    page.keyboard.press(" ")
    until(page, "!kinetree.store.get('playing')")
    assert_close(coordinates(page), kt.load("quadruped").neutral(), 1e-12, "back at the start")


@pytest.mark.parametrize("walker", ["biped"], indirect=True)
def test_a_lost_ground_is_told(walker):
    """Change a mass, for which the page has no steps with contact: it says so; undo brings the ground back."""
    page = walker
    assert page.get_by_label("ground under").is_enabled()
    page.get_by_role("button", name="Build").click()
    typed(page, "mass of base", "6")
    page.get_by_role("button", name="Simulate").click()
    assert page.get_by_label("ground under").is_disabled()
    assert "With changed numbers this page computes without contact" in page.inner_text(".missing")
    page.get_by_role("button", name="undo").click()
    assert page.get_by_label("ground under").is_checked()
    assert page.locator(".missing").count() == 0


@pytest.mark.parametrize("walker", ["quadruped"], indirect=True)
def test_friction_is_the_reader_s(walker):
    """Push a standing quadruped sideways: on ice it slides, on rubber it stays; undo brings the friction back."""
    page, slid = walker, {}
    page.get_by_role("group", name="initial state").get_by_role("button", name="velocity").click()
    for friction in ("0", "0.7"):
        typed(page, "friction of the ground, Coulomb's coefficient", friction)
        typed(page, "base.vz", "0.4")
        ahead(page, 2.0)
        slid[friction] = page.evaluate("kinetree.store.get('motion').state(2).q[2]")
    assert slid["0"] > 0.3 > 10 * abs(slid["0.7"] - 0.02), slid
    for _ in range(3):
        if page.evaluate("kinetree.store.get('forward').friction") != 0.0:
            page.get_by_role("button", name="undo").click()  # the velocity, then the friction
    assert page.evaluate("kinetree.store.get('forward').friction") == 0.0


def test_a_recorded_gait_walks_in_the_page(chromium, tmp_path):
    """Replay a stride of the quadruped; from an instant of it, let its legs go: the ground still carries its feet."""
    robot = legged.quadruped()
    run = robot.walk(legged.TROT, cycles=1, samples=30)
    with opened(chromium, run.page().save(tmp_path / "walk.html")) as page:
        until(page, "kinetree.store.get('time') > 0.2")  # it plays as it is opened
        page.keyboard.press(" ")
        page.evaluate("kinetree.player.seek(0.3)")
        q = coordinates(page)
        assert_close(q, run.at([0.3]).q[0], 1e-6, "the gait at an instant")
        assert q[2] > 0.05  # it went ahead
        page.get_by_role("button", name="Simulate", exact=True).click()
        assert page.get_by_label("contact of foot_a, foot_b, foot_c, foot_d").is_checked()
        ahead(page, 0.5)
        gaps = "kinetree.kernel.call('contact_places', { q: kinetree.store.get('q') }).gap"
        low = page.evaluate(f"Array.from({gaps})")
        assert -1e-3 < min(low) and coordinates(page)[1] < q[1]
        forces = page.evaluate("kinetree.store.get('motion').felt.map((x) => x.at(-1))")
        assert sum(forces[::3]) > 1.0


@pytest.mark.parametrize(("name", "driven"), [("differential_drive", ("left", "right")), ("bicycle", ("rear",))])
def test_vehicles_roll(chromium, files, name, driven):
    """Turn the wheels by typed torques: the vehicle rolls ahead on the floor, without slip."""
    with opened(chromium, files[name], after="#mode=Simulate") as page:
        page.get_by_role("button", name="torque", exact=True).click()
        for joint in driven:
            box = page.locator("section", has_text="Drives").get_by_label(joint, exact=True)
            box.fill("0.4")
            box.press("Enter")
        ahead(page, 1.5)
        q, vehicle = coordinates(page), kt.load(name)
        qd = np.array(page.evaluate("Array.from(kinetree.store.get('qd'))"))
        wheel = vehicle.mechanism.q_slices[[j.name for j in vehicle.joints].index(driven[0])].start
        radius = {"differential_drive": 0.08, "bicycle": 0.3}[name]
        assert q[0] > 0.01
        assert_close(q[0], radius * q[wheel], 1e-6, "way of the wheel")
        assert_close(vehicle.closure_jacobian(q) @ qd, np.zeros(len(vehicle.closures)), 1e-9, "velocities at the floor")
        assert page.locator(".missing").count() == 0


@pytest.mark.parametrize("walker", ["quadruped"], indirect=True)
def test_the_ground_is_accessible(walker):
    """Look for serious violations of the rules of accessibility, with forces in the picture, in all themes."""
    axe = pytest.importorskip("axe_playwright_python.sync_playwright")
    ahead(walker, 0.5)
    for theme in ("light", "dark", "projector"):
        walker.evaluate("(theme) => kinetree.store.set({ theme })", theme)
        found = axe.Axe().run(walker).response["violations"]
        assert [x["id"] for x in found if x["impact"] in ("serious", "critical")] == []
