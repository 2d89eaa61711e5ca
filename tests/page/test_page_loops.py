"""The page's panel of loops in a real browser: turns, curves, torques, bearing forces, lengths, modes, findings."""

from __future__ import annotations

import csv
from math import acos, pi

import numpy as np
import pytest

import kinetree as kt
from browser import drawn, needs_browser, opened, projected, served, typed, until
from planar_loops import pin, two_bars
from tolerance import assert_close

pytestmark = [pytest.mark.slow, needs_browser]

TURN = """() => {
    const m = kinetree.store.get("motion");
    const rows = (x) => x.map((row) => Array.from(row));
    return {
        t: Array.from(m.t.subarray(0, m.count)), q: Array.from(m.q), torque: Array.from(m.torque), curve: rows(m.path),
        forces: rows(m.forces), names: m.names, loads: rows(m.loads), from: m.from, to: m.to,
    };
}"""
TURNED = "kinetree.store.get('motion')?.name === 'turn'"


def looped(page) -> None:
    """Choose the mode of loops, and wait for the turn of the drive."""
    page.get_by_role("button", name="Loops", exact=True).click()
    until(page, TURNED)
    drawn(page)


def test_a_turn_of_a_four_bar_is_the_library_s(chromium, tmp_path):
    """Read coupler curve, torque and bearing forces over a turn of the crank, and save them as CSV."""
    bars = kt.load("four_bar")
    with opened(chromium, bars.page().save(tmp_path / "bars.html")) as page:
        looped(page)
        page.evaluate("kinetree.store.set({ loops: { ...kinetree.store.get('loops'), velocity: 4.5 } })")
        until(page, f"{TURNED} && kinetree.store.get('motion').velocity === 4.5")
        turn = page.evaluate(TURN)
        assert page.inner_text(".verdict") == "crank turns fully."
        page.evaluate("kinetree.player.seek(0.3331)")  # between samples
        between = np.array(page.evaluate("Array.from(kinetree.store.get('q'))"))
        with page.expect_download() as saved:
            page.get_by_role("button", name="CSV", exact=True).click()
        rows = list(csv.reader(saved.value.path().read_text().splitlines()))
        with page.expect_download() as picture:
            page.get_by_role("button", name="SVG", exact=True).click()
        drawing = picture.value.path().read_text()
        with page.expect_download() as picture:
            page.get_by_role("button", name="PNG", exact=True).click()
        assert picture.value.path().read_bytes().startswith(b"\x89PNG")
    assert drawing.startswith("<svg ") and "curve: y [m]" in drawing and drawing.count("<path ") > 5
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
    assert_close(between, bars.assemble(q[86], hold={"crank": angles[0] + 4.5 * 0.3331}), 1e-12, "between samples")
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
        until(page, "document.querySelector('.findings').textContent.includes('The loops are open')")
        page.get_by_role("button", name="Lengths of the model", exact=True).click()
        until(page, "document.querySelector('.verdict').textContent === 'crank turns fully.'")
        assert_close(
            np.array(page.evaluate("Array.from(kinetree.store.get('parameters'))")),
            [0.0895, 0.1152, 0.038, 0.1152],
            1e-15,
            "lengths",
        )


@pytest.mark.parametrize("name", ["parallelogram", "five_bar", "spatial_slider_crank", "press"])
def test_turns_of_other_mechanisms_are_the_library_s(chromium, tmp_path, name):
    """Compare reactions over the range of a drive: dependent equations, two freedoms, in space, and springs."""
    arm = kt.load(name)
    with opened(chromium, arm.page().save(tmp_path / "arm.html")) as page:
        looped(page)
        turn = page.evaluate(TURN)
        leads = page.evaluate("kinetree.store.get('motion').leads.map((k) => kinetree.model.velocities[k].label)")
        rate = page.evaluate("kinetree.store.get('motion').velocity")
    q = np.reshape(turn["q"], (-1, arm.nq))[: len(turn["t"])][11::47]
    speeds = {leads[0]: rate} | dict.fromkeys(leads[1:], 0.0)
    qd = arm.consistent_speeds(q, speeds)
    qdd = arm.consistent_accelerations(q, qd, dict.fromkeys(leads, 0.0))
    # Accelerations of a parallelogram are rounding errors of zero, which no relative tolerance accepts as closed.
    given = {"actuated": leads, "forces": True, "tol": 1e3 if name == "parallelogram" else 1e-6}
    tau = arm.actuation(q, qd, qdd, **given).tau
    loads = arm.loads(q, qd, qdd=qdd, **given)
    wrenches = np.concatenate([loads.joints, loads.cuts], axis=-2)
    scale = np.abs(wrenches).max()
    found = np.reshape(turn["loads"], (-1, *wrenches.shape[-2:]))[11::47]
    first = arm.mechanism.v_slices[[j.name for j in arm.joints].index(leads[0])].start
    most = max(1.0, np.abs(tau).max())
    assert_close(np.array(turn["torque"])[: len(turn["t"])][11::47] / most, tau[:, first] / most, 1e-11, "torque")
    assert_close(found / scale, wrenches / scale, 1e-11, "reactions")


@pytest.mark.parametrize("name", ["four_bar", "five_bar", "three_rrr"])
def test_assembly_modes_are_the_library_s(chromium, tmp_path, name):
    """Find the modes with the leading joints where they are, and go to one of them by its picture."""
    arm = kt.load(name)
    q = arm.assemble()
    with opened(chromium, arm.page().save(tmp_path / "arm.html")) as page:
        looped(page)
        page.get_by_role("button", name="Find modes", exact=True).click()
        until(page, "document.querySelectorAll('.picture').length > 0")
        found = page.eval_on_selector_all(".picture", "all => all.map((x) => x.dataset.q.split(',').map(Number))")
        leads = page.evaluate("kinetree.store.get('motion').leads.map((k) => kinetree.model.velocities[k].label)")
        page.locator(".picture").nth(1).click()
        moved = np.array(page.evaluate("Array.from(kinetree.store.get('q'))"))
    assert_close(moved, found[1], 1e-12, "position after the click")
    expected = arm.assembly_modes(
        hold={j.name: q[s.start] for j, s in zip(arm.joints, arm.mechanism.q_slices, strict=True) if j.name in leads}
    )
    poses = [arm.poses(x) for x in found]
    assert len(found) == len(expected) > 1
    for x in expected:
        assert min(np.abs(arm.poses(x) - pose).max() for pose in poses) < 1e-9


def test_findings_are_the_doctor_s(chromium, tmp_path):
    """Read findings of an over-constrained and of a singular mechanism, and of two freedoms; show one as a motion."""
    bars = kt.load("parallelogram")
    with opened(chromium, bars.page().save(tmp_path / "bars.html")) as page:
        looped(page)
        text = page.inner_text(".findings")
        assert "Over-constrained\n1 equation of second_pin and third_pin follows from others" in text
        assert "6 equations hold by themselves" in text and "1 freedom\nrocker determines all other joints." in text
        assert bars.doctor().mobility == 1 and len(bars.doctor().redundant) == 7
        page.evaluate("kinetree.moveTo(Float64Array.from([Math.PI / 2, -Math.PI / 2, Math.PI / 2, Math.PI / 2]))")
        until(page, "document.querySelector('.findings').innerText.includes('singular')")
        assert page.evaluate("kinetree.part.layer().lines.length") > 0
    arm = kt.load("five_bar")
    with opened(chromium, arm.page().save(tmp_path / "arm.html")) as page:
        looped(page)
        assert "2 freedoms" in page.inner_text(".findings")
        before = page.evaluate("kinetree.part.layer().items.length")
        page.get_by_role("button", name="freedom of left_crank", exact=True).click()
        assert page.evaluate("kinetree.part.layer().items.length") > before
        assert page.evaluate("kinetree.part.layer().marks.length") >= 3


def test_bodies_are_dragged_with_loops_closed(chromium, tmp_path):
    """Drag the coupler of a four-bar: the mechanism follows, and its loop stays closed."""
    bars = kt.load("four_bar")
    with opened(chromium, bars.page().save(tmp_path / "bars.html")) as page:
        looped(page)
        q = np.array(page.evaluate("Array.from(kinetree.store.get('q'))"))
        x, y = projected(page, bars.pose(q, "tracer")[:3, 3].tolist())
        fx, fy = projected(page, bars.pose(q, "coupler")[:3, 3].tolist())
        at = [0.5 * (x + fx), 0.5 * (y + fy)]  # on the coupler, between its joint and its tracer
        page.mouse.move(*at)
        page.mouse.down()
        for k in range(1, 6):
            page.mouse.move(at[0] - 6 * k, at[1] + k)
        page.mouse.up()
        after = np.array(page.evaluate("Array.from(kinetree.store.get('q'))"))
    assert np.abs(after - q).max() > 0.02
    assert_close(bars.closure_residual(after), np.zeros(5), 1e-10, "gap after the drag")


@pytest.mark.parametrize(("reach", "title"), [(1.2, "only shakes"), (1.1, "is locked")])
def test_structures_do_not_move(chromium, tmp_path, reach, title):
    """Stretch two bars exactly to a pin, or to one that is nearer: both findings are those of the library's doctor."""
    bars = two_bars(pin(reach, 0.0), guess={"j0": 0.0 if reach == 1.2 else 0.3, "j1": 0.0 if reach == 1.2 else -0.8})
    wrong = [x.title for x in bars.doctor().findings if x.level == "wrong"]
    assert wrong == ["the mechanism only shakes" if reach == 1.2 else "the loops lock the mechanism"]
    with opened(chromium, bars.page().save(tmp_path / "bars.html")) as page:
        page.get_by_role("button", name="Loops", exact=True).click()
        until(page, "document.querySelectorAll('.findings .wrong').length === 1")
        assert title in page.inner_text(".findings .wrong strong")


def test_open_mechanisms_have_no_loops(chromium, tmp_path):
    """Leave the mode out of the page of an arm."""
    with opened(chromium, kt.load("planar_2r").page().save(tmp_path / "arm.html")) as page:
        assert page.get_by_role("button", name="Loops", exact=True).count() == 0
        assert page.get_by_role("button", name="Simulate", exact=True).count() == 1


def test_a_loop_is_cut_elsewhere(chromium, tmp_path):
    """Cut another joint in the studio: the bodies stay where they are, and the mode is still that of loops."""
    from kinetree.apps.studio.server import running
    from kinetree.apps.studio.tabs import Folder

    bars = kt.load("four_bar")
    with running(lambda: bars, Folder.of(tmp_path)) as address, served(chromium, address) as page:
        looped(page)
        centers = "Array.from(kinetree.kernel.call('center_of_mass', { q: kinetree.store.get('q') }))"
        before = page.evaluate(centers)
        page.get_by_label("joint to cut instead of pin", exact=True).select_option("output")
        page.get_by_role("button", name="Cut", exact=True).click()
        until(page, "kinetree.model.loops[0].name === 'output'")
        until(page, TURNED)
        assert page.evaluate("kinetree.store.get('mode')") == "Loops"
        assert "output: revolute" in page.inner_text(".cuts")
        assert_close(page.evaluate(centers), before, 1e-12, "center of mass")


def test_subsystems_are_listed_in_their_order(chromium, tmp_path):
    """Read the order in which the subsystems of a four-bar are solved."""
    bars = kt.load("four_bar")
    with opened(chromium, bars.page().save(tmp_path / "bars.html")) as page:
        looped(page)
        steps = page.locator("ol.subsystems li").all_inner_texts()
        assert steps == [str(step) for step in bars.subsystems("crank").steps]
        assert page.get_by_text("Solved one after the other, if crank drives.").count() == 1
