"""The panel of the model in a real browser: typed numbers act at once, as those of a mechanism made from them."""

from __future__ import annotations

import json
import tomllib

import numpy as np
import pytest

import kinetree as kt
from browser import needs_browser, opened, typed
from kinetree import library
from tolerance import assert_close

QD, QDD = np.array([0.7, -0.4, 0.3, 0.9, -0.6, 0.2]), np.array([0.3, 0.8, -0.5, 0.4, 0.6, -0.9])

pytestmark = [pytest.mark.slow, needs_browser]


def value(page, label: str) -> float:
    return float(page.get_by_label(label, exact=True).get_attribute("data-value"))


def called(page, name: str, **inputs) -> np.ndarray:
    """Return the output of a function of the page."""
    plain = json.dumps({key: np.asarray(x).tolist() for key, x in inputs.items()})
    return np.array(page.evaluate(f"Array.from(kinetree.kernel.call('{name}', {plain}))"))


def assert_same_dynamics(page, arm: kt.System, q, tolerance: float = 1e-12) -> None:
    """Compare poses, torques and accelerations of the page with those of a System."""
    n = arm.nv
    qd, qdd = QD[:n], QDD[:n]
    tau = arm.inverse_dynamics(q, qd, qdd)
    scale = np.abs(tau).max()
    assert_close(called(page, "poses", q=q).reshape(-1, 4, 4), arm.poses(q), tolerance, "poses")
    assert_close(called(page, "inverse_dynamics", q=q, qd=qd, qdd=qdd), tau, tolerance * scale, "torques")
    found = called(page, "forward_dynamics", q=q, qd=qd, tau=tau)
    assert_close(found, qdd, tolerance * np.linalg.cond(arm.inertia_matrix(q)), "accelerations")


def rows_of(name: str) -> list[dict]:
    """Return the DH rows of a library file."""
    return tomllib.loads(library.path(name).read_text())["dh"]["row"]


def model_page(chromium, path, system: kt.System, **options):
    return opened(chromium, system.page(**options).save(path / "model.html"), after="#mode=Build")


def test_a_standard_table_acts_at_once(chromium, tmp_path):
    """Type DH parameters, a mass, a center of mass, an inertia and gravity of the Stanford arm."""
    rows = rows_of("stanford")
    rows[1] |= {"alpha": -75, "theta": 12.5}
    rows[2] |= {"a": 0.12, "com": [0, 0, -0.07]}
    rows[3] |= {"b": 0.55, "mass": 1.7, "inertia": [0.001, 0.0013, 0.0005, 0.0001, 0, 0]}
    edited = kt.from_dh(rows, degrees=True, gravity=(1.5, 0, -9.81))
    q = np.array([0.3, -0.8, 0.4, 0.6, 1.1, -0.2])
    arm = kt.load("stanford")
    with model_page(chromium, tmp_path, arm, q=q) as page:
        assert "Every number here can be changed" in page.inner_text(".panel")
        assert_same_dynamics(page, arm, q)
        typed(page, "alpha of link2", "-75")
        typed(page, "theta of link2", "12.5")
        typed(page, "a of link3", "0.12")
        typed(page, "b of link4", "0.55")
        page.get_by_role("button", name="link3", exact=True).first.click()
        typed(page, "center of mass z of link3", "-0.07")
        page.get_by_role("button", name="link4", exact=True).first.click()
        typed(page, "mass of link4", "1.7")
        typed(page, "inertia yy of link4", "0.0013")
        typed(page, "inertia xy of link4", "0.0001")
        typed(page, "gravity x", "1.5")
        assert_same_dynamics(page, edited, q)
        page.keyboard.press("Escape")
        page.evaluate("kinetree.store.set({ mode: 'Move' })")
        cells = page.eval_on_selector_all(".pose .matrix td", "all => all.map((x) => Number(x.dataset.value))")
        assert_close(
            np.reshape(cells, (3, 4)), edited.pose(q, "tool")[:3], 1e-12, "the tool, which is at the last frame"
        )
        goal = edited.pose(q, "tool")
        goal[2, 3] += 0.02
        page.get_by_label("move along plus z", exact=True).click()
        moved = np.array(page.evaluate("Array.from(kinetree.store.get('q'))"))
        assert_close(edited.pose(moved, "tool"), goal, 1e-10, "inverse kinematics with the typed numbers")


def test_undo_links_and_the_given_numbers(chromium, tmp_path):
    """Take changes back and do them again, open a link to them, and return to the given numbers."""
    arm, q = kt.load("planar_3r"), np.array([0.4, -0.9, 0.7])
    rows = rows_of("planar_3r")
    rows[1]["a"] = 0.41
    longer = kt.from_dh(rows, convention="modified", degrees=True, gravity=(0, -9.81, 0))
    file = arm.page(q=q).save(tmp_path / "arm.html")
    with opened(chromium, file, after="#mode=Build") as page:
        typed(page, "a of link2", "0.41")
        typed(page, "a of tool", "0.5")
        assert_same_dynamics(page, longer, q)
        rods = "kinetree.stage.scene.rods.map((rod) => Math.hypot(...rod.pb))"
        assert max(page.evaluate(rods)) == 0.5
        page.get_by_role("button", name="undo").click()
        assert value(page, "a of tool") == 0.22 and value(page, "a of link2") == 0.41
        page.get_by_role("button", name="undo").click()
        assert_same_dynamics(page, arm, q)
        page.get_by_role("button", name="redo").click()
        assert_same_dynamics(page, longer, q)
        page.get_by_role("button", name="save", exact=True).click()
        link = page.get_by_label("Link to this state").input_value()
    with opened(chromium, file, after=link[link.index("#") :]) as page:
        assert_same_dynamics(page, longer, q)
        page.get_by_role("button", name="Given numbers").click()
        assert_same_dynamics(page, arm, q)
        assert page.evaluate("kinetree.kernel.functions === kinetree.kernel.given")


@pytest.mark.parametrize(
    ("name", "other"), [("puma560", "standard"), ("stanford", "modified"), ("planar_2r", "standard")]
)
def test_both_conventions_describe_one_arm(chromium, tmp_path, name, other):
    """Switch the convention: the dynamics stay; then change a number of the other table, and read the table back."""
    arm = kt.load(name)
    q = np.array([0.3, -0.8, 0.4, 0.6, 1.1, -0.2])[: arm.nq]
    with model_page(chromium, tmp_path, arm, q=q) as page:
        page.get_by_role("button", name=other, exact=True).click()
        assert_same_dynamics(page, arm, q)
        typed(page, "alpha of link1", "-64.5")
        typed(page, "theta of link2", "7")
        page.get_by_role("button", name="link2", exact=True).first.click()
        typed(page, "center of mass x of link2", "-0.031")
        table = page.evaluate("kinetree.store.get('table')")
        keys = ("joint", "a", "alpha", "b", "theta", "mass", "com", "inertia")
        rows = [{key: row[key] for key in keys} for row in table["rows"]]
        for row, joint in zip(rows, arm.mechanism.joints, strict=True):
            row["armature"] = joint.armature[0] if joint.armature else 0
        edited = kt.from_dh(rows, convention=other, gravity=table["gravity"], lenient=True)
        assert table["base"] is None or abs(table["base"]["a"]) + abs(table["base"]["alpha"]) == 0
        qd, qdd = QD[: arm.nv], QDD[: arm.nv]
        tau = edited.inverse_dynamics(q, qd, qdd)
        assert_close(called(page, "inverse_dynamics", q=q, qd=qd, qdd=qdd), tau, 1e-12 * np.abs(tau).max(), "torques")
        page.get_by_role("button", name="standard" if other == "modified" else "modified", exact=True).click()
        assert_close(called(page, "inverse_dynamics", q=q, qd=qd, qdd=qdd), tau, 1e-12 * np.abs(tau).max(), "and back")


def test_closed_mechanisms_keep_their_lengths_in_loops(chromium, tmp_path):
    """Change masses here and a length as the mode Loops does: the motion and the saved file are the library's."""
    text = library.path("four_bar").read_text()
    for old, new in (
        ("[0.038, 0, 0]", "[0.045, 0, 0]"),
        ("mass = 5,", "mass = 6.5,"),
        ("[0, -9.81, 0]", "[0, -9.81, 1.3]"),
    ):
        assert old in text
        text = text.replace(old, new)
    file = tmp_path / "four.toml"
    file.write_text(text)
    bar = kt.load(file)
    q = bar.assemble()
    run = kt.simulate(
        bar, q, bar.consistent_speeds(q, {"crank": 2.0}), times=1e-3 * np.arange(51), dt=1e-3, method="rk4"
    )
    with model_page(chromium, tmp_path, kt.load("four_bar")) as page:
        assert "lengths in the mode Loops" in page.inner_text(".panel")
        page.get_by_role("button", name="coupler", exact=True).first.click()
        typed(page, "mass of coupler", "6.5")
        typed(page, "gravity z", "1.3")
        names = page.evaluate("kinetree.model.parameters.map((p) => p.value)")
        values = [0.045 if x == 0.038 else x for x in names]
        page.evaluate(f"kinetree.store.set({{ parameters: Float64Array.from({values}) }})")
        state = page.evaluate(
            """([q, qd]) => {
                const s = kinetree.kernel.begin(q, qd);
                kinetree.kernel.advance(s, 1e-3, 50);
                return [Array.from(s.q), Array.from(s.qd)];
            }""",
            [run.q[0].tolist(), run.qd[0].tolist()],
        )
        assert_close(state[0], run.q[-1], 1e-12, "motion of the changed four-bar")
        typed(page, "alpha of crank", "20")
        assert "The loops cannot close with this number" in page.inner_text(".panel .error:not([hidden])")
        assert value(page, "alpha of crank") == 0
        with page.expect_download() as waiting:
            page.get_by_role("button", name="TOML", exact=True).click()
        waiting.value.save_as(tmp_path / "saved.toml")
        saved = kt.load(tmp_path / "saved.toml")
        assert_close(saved.poses(q), bar.poses(q), 1e-15, "poses of the saved file")
        tau = bar.inverse_dynamics(q, run.qd[0], QDD[:3])
        assert_close(saved.inverse_dynamics(q, run.qd[0], QDD[:3]), tau, 1e-14, "torques of the saved file")
        assert page.get_by_role("button", name="URDF", exact=True).count() == 0


def test_impossible_numbers_are_refused_where_they_are_typed(chromium, tmp_path):
    """Refuse a negative mass, an inertia that no body has, and text; the numbers before stay."""
    with model_page(chromium, tmp_path, kt.load("planar_2r")) as page:
        error = ".panel .control:has(input[aria-invalid='true']) .error"
        typed(page, "mass of link1", "0.6")
        typed(page, "mass of link1", "-0.5")
        assert page.inner_text(error) == "A mass cannot be negative: type zero or more."
        page.evaluate("kinetree.store.undo()")  # another number is in the box: it has no fault
        assert page.locator(error).count() == 0
        typed(page, "mass of link1", "0.6")
        typed(page, "inertia zz of link1", "0.9")
        assert "Not used yet. No body can have this inertia: its principal moments are" in page.inner_text(".panel")
        assert page.evaluate("kinetree.model.bodies[0].inertia[2]") == pytest.approx(0.00375)
        typed(page, "inertia zz of link1", "0.0037")
        assert page.get_by_label("inertia xx of link1", exact=True).input_value() == "4.16667e-6"
        typed(page, "inertia xx of link1", "4.16667e-6")  # as it is shown: all digits stay
        assert value(page, "inertia xx of link1") == 4.166666666666667e-06
        typed(page, "a of link2", "far")
        assert "Type a number" in page.inner_text(".lines .error:not([hidden])")
        assert page.evaluate("kinetree.store.get('table').rows[0].mass") == 0.6


@pytest.mark.parametrize("name", ["stanford", "planar_3r", "kuka_lwr4"])
def test_saved_files_have_the_typed_numbers(chromium, tmp_path, name):
    """Save the changed mechanism as TOML, URDF and CSV, and read each back."""
    arm = kt.load(name)
    q = np.linspace(0.3, -0.8, arm.nq)
    with model_page(chromium, tmp_path, arm, q=q) as page:
        body = arm.bodies[1].name
        page.get_by_role("button", name=body, exact=True).first.click()
        typed(page, f"mass of {body}", "3.25")
        typed(page, f"{'y' if name == 'kuka_lwr4' else 'a'} of {body}", "0.137")
        expected = called(page, "inverse_dynamics", q=q, qd=0.3 * q, qdd=-0.7 * q)
        assert np.abs(expected - arm.inverse_dynamics(q, 0.3 * q, -0.7 * q)).max() > 1e-3
        for suffix in ("TOML", "URDF", "CSV"):
            button = page.get_by_role("button", name=suffix, exact=True)
            if suffix == "CSV" and name == "kuka_lwr4":
                assert button.count() == 0
                continue
            with page.expect_download() as waiting:
                button.click()
            file = tmp_path / f"{name}.{suffix.lower()}"
            waiting.value.save_as(file)
            again = kt.load(file)
            if suffix == "URDF":  # which has no gravity: that of the mechanism is restored
                again = with_gravity(again, arm.mechanism.gravity)
            found = again.inverse_dynamics(q, 0.3 * q, -0.7 * q)
            assert_close(found, expected, 1e-12 * np.abs(expected).max(), suffix)
            assert_close(
                again.pose(q, again.bodies[-1].name), called(page, "poses", q=q)[-16:].reshape(4, 4), 1e-12, suffix
            )


def with_gravity(system: kt.System, gravity) -> kt.System:
    from dataclasses import replace

    return kt.System(replace(system.mechanism, gravity=tuple(gravity)), system.report)


def test_motions_of_a_row_lead_to_its_frame(chromium, tmp_path):
    """Step through the motions of rows of both conventions: their product is the pose, and the frame arrives there."""
    q = np.array([0.3, -0.8, 0.4, 0.6, 1.1, -0.2])
    for name, frames in (("stanford", "frame_{}"), ("puma560", "link{}")):
        arm = kt.load(name)
        with model_page(chromium, tmp_path, arm, q=q) as page:
            for i in (0, 2, 3):
                page.get_by_role("button", name=f"link{i + 1}", exact=True).first.click()
                page.get_by_role("button", name="Clear", exact=True).click()
                assert page.evaluate("kinetree.part.layer()") is None
                for _ in range(4):
                    page.get_by_role("button", name="Step", exact=True).click()
                end = arm.pose(q, frames.format(i + 2 if name == "stanford" else i + 1))
                before = np.eye(4) if i == 0 else arm.pose(q, frames.format(i + 1 if name == "stanford" else i))
                cells = "[data-motion=product] td[data-value]"
                product = page.eval_on_selector_all(cells, "all => all.map((x) => Number(x.dataset.value))")
                assert_close(np.reshape(product, (4, 4)), np.linalg.inv(before) @ end, 1e-12, "product of the matrices")
                tip = page.evaluate("Array.from(kinetree.part.layer().over.at(-1).points)")[-3:]
                assert_close(np.array(tip), end[:3, 3], 1e-6, "the frame on the stage, in single precision")
            names = page.eval_on_selector_all(".motions figure", "all => all.map((x) => x.dataset.motion)")
            order = ["theta", "b", "a", "alpha"] if name == "stanford" else ["alpha", "a", "b", "theta"]
            assert names == [*order, "product"]


SHOWN = """() => {
    const { over, labels, faded } = kinetree.part.layer();
    return { lines: over.length, texts: labels.map((x) => x.text), strong: labels.filter((x) => x.strong), faded };
}"""


def test_motions_are_a_theatre(chromium, tmp_path):
    """Step through a row, a chain, and all rows together: words, matrices, the lit cell, values at arcs and lines."""
    q = np.array([0.3, -0.8, 0.4, 0.6, 1.1, -0.2])
    arm = kt.load("stanford")
    with model_page(chromium, tmp_path, arm, q=q) as page:
        page.get_by_role("button", name="link2", exact=True).first.click()
        step = page.get_by_role("button", name="Step", exact=True)
        step.click()
        degrees = f"{np.degrees(q[1]):.4f}"
        assert page.inner_text(".theatre p") == f"link2: rotate about z by \u03b82 + q2 = {degrees} deg"
        lit = "[...document.querySelectorAll('td.lit')].map((x) => x.dataset.cell)"
        assert page.evaluate(lit) == ["1.theta"]
        numbers = ".theatre td[data-value]"
        found = page.eval_on_selector_all(numbers, "all => all.map((x) => Number(x.dataset.value))")
        c, s = np.cos(q[1]), np.sin(q[1])
        wanted = np.array([[c, -s, 0, 0], [s, c, 0, 0], [0, 0, 1, 0], [0, 0, 0, 1]])
        assert_close(np.reshape(found, (4, 4)), wanted, 1e-15, "matrix of the rotation")
        assert page.locator(".theatre table[aria-label='matrix in symbols']").inner_text().startswith("c\u03b8")
        for cell in ("1.b", "1.a", "1.alpha"):
            step.click()
            assert page.evaluate(lit) == [cell]
        shown = page.evaluate(SHOWN)
        assert [x["text"] for x in shown["strong"]] == ["\u03b12 = -90 deg"]
        assert {"b2 = 0.1 m", f"\u03b82 + q2 = {degrees} deg"} <= set(shown["texts"])
        assert shown["faded"] < 1
        page.get_by_role("button", name="link6", exact=True).first.click()
        page.get_by_role("button", name="chain", exact=True).click()
        for _ in range(24):
            step.click()
        end = arm.pose(q, "frame_7")
        pose = page.eval_on_selector_all(numbers, "all => all.map((x) => Number(x.dataset.value))")
        assert_close(np.reshape(pose, (4, 4)), end, 1e-12, "pose of the last frame in the first, after the chain")
        page.get_by_role("button", name="together", exact=True).click()
        for _ in range(3):
            step.click()
        pose = page.eval_on_selector_all(numbers, "all => all.map((x) => Number(x.dataset.value))")
        assert_close(np.reshape(pose, (4, 4)), end, 1e-12, "the same, all rows together")
        assert page.evaluate(lit) == []
        page.get_by_role("button", name="Move", exact=True).click()
        assert page.locator(".theatre").is_hidden()


def test_motions_play_and_respect_calm(chromium, tmp_path):
    """Play the motions to their end; with reduced motion they come as steps."""
    file = kt.load("planar_2r").page().save(tmp_path / "arm.html")
    for calm in ("no-preference", "reduce"):
        with opened(chromium, file, after="#mode=Build", reduced_motion=calm) as page:
            page.get_by_role("button", name="Play", exact=True).click()
            seen = set()
            for _ in range(600):
                seen.add(page.evaluate("kinetree.part.motionsDone()"))
                if page.get_by_role("button", name="Play", exact=True).count():
                    break
                page.wait_for_timeout(40)
            assert page.evaluate("kinetree.part.motionsDone()") == 4
            assert (calm == "reduce") == all(x == int(x) for x in seen)


def test_large_mechanisms_are_read(chromium, tmp_path):
    """Read masses and centers of 26 bodies, and of 70 bodies in a page without functions; no number can be typed."""
    for system in (kt.load("charmie"), kt.chain(70)):
        file = system.page().save(tmp_path / "large.html")
        assert len(file.read_text()) <= 300_000
        with opened(chromium, file) as page:
            page.get_by_role("button", name="Build", exact=True).click()
            assert "These numbers cannot be changed here" in page.inner_text(".panel")
            last = system.mechanism.bodies[-1]
            page.evaluate("(i) => kinetree.store.set({ picked: i })", len(system.mechanism.bodies) - 1)
            box = page.get_by_label(f"mass of {last.name}", exact=True)
            assert float(box.get_attribute("data-value")) == last.mass and box.get_attribute("readonly") is not None
            assert page.locator(".panel input.number:not([readonly])").count() == 0
            assert not page.get_by_role("button", name="Given numbers").is_visible()


def test_the_same_in_python(chromium, tmp_path):
    """Run the lines of Python of a changed table: they make the arm of the page."""
    q = np.array([0.3, -0.8, 0.4, 0.6, 1.1, -0.2])
    with model_page(chromium, tmp_path, kt.load("stanford"), q=q) as page:
        typed(page, "b of link4", "0.55")
        names: dict = {}
        exec(page.evaluate("kinetree.part.python()"), names)
        assert_same_dynamics(page, names["arm"], q)
        page.evaluate("kinetree.store.set({ mode: 'Simulate' })")
        assert 'kt.load("stanford.toml")  # numbers were changed' in page.evaluate("kinetree.part.python()")


def test_a_motion_is_compared_after_a_change(chromium, tmp_path):
    """Keep a motion, change a length in the mode Build: the next motion has it, the one before is drawn without it."""
    arm = kt.load("planar_2r")
    with opened(chromium, arm.page(q=[0.3, 0.4]).save(tmp_path / "arm.html"), after="#mode=Simulate") as page:
        ahead = "kinetree.store.get('motion').extend(0.1, { patience: 1e5 })"
        page.evaluate(ahead)
        page.get_by_role("button", name="Compare", exact=True).click()
        page.evaluate("kinetree.store.set({ mode: 'Build' })")
        typed(page, "a of link2", "0.6")
        page.keyboard.press("Escape")
        page.evaluate("kinetree.store.set({ mode: 'Simulate' })")
        page.evaluate(ahead)
        q = np.array(page.evaluate("Array.from(kinetree.store.get('motion').q)")).reshape(-1, 2)
        t = np.array(page.evaluate("Array.from(kinetree.store.get('motion').t)"))
        bodies = [{"mass": b.mass, "com": b.com, "inertia": b.inertia, "joint": "revolute"} for b in arm.bodies]
        long = kt.from_dh([bodies[0], bodies[1] | {"a": 0.6}], convention="modified", gravity=(0, -9.81, 0))
        count = int(page.evaluate("kinetree.store.get('motion').count"))
        run = kt.simulate(long, [0.3, 0.4], times=t[:count], dt=1e-3, method="rk4")
        assert_close(q[:count], run.q, 1e-12, "motion with the changed length")
        ghost = page.evaluate("kinetree.stage.compose().ghost.map((m) => [m[12], m[13], m[14]])")
        before = page.evaluate("Array.from(kinetree.store.get('ghost').state(kinetree.store.get('time')).q)")
        assert_close(ghost, arm.poses(before)[:, :3, 3], 1e-6, "bodies of the motion before, in single precision")


def test_the_panel_is_accessible(chromium, tmp_path):
    """Look for violations of the rules of accessibility that are serious or worse, in all themes."""
    axe = pytest.importorskip("axe_playwright_python.sync_playwright")
    for name in ("stanford", "kuka_lwr4"):
        with model_page(chromium, tmp_path, kt.load(name)) as page:
            typed(page, "mass of link1", "-1")
            page.get_by_role("button", name="Step", exact=True).click() if name == "stanford" else None
            for theme in ("light", "dark", "projector"):
                page.evaluate("(theme) => kinetree.store.set({ theme })", theme)
                found = axe.Axe().run(page).response["violations"]
                bad = [(x["id"], x["nodes"][0]["html"][:120]) for x in found if x["impact"] in ("serious", "critical")]
                assert bad == []
