"""Further tasks of a reader, on the file and in the studio: frames, curves, solutions, torques, falls, recursions."""

from __future__ import annotations

import numpy as np
import pytest

import kinetree as kt
from browser import drop, needs_browser, opened, projected, served, typed, until
from kinetree.simulation.acting.references import sampled
from page_reading import computed_ahead, coordinates, curves, motion, saved_csv
from tolerance import assert_close

pytestmark = [pytest.mark.slow, needs_browser]

STEP = 1 / 60 / 17 * (1 + 1e-9)
"""The step of the page [s]: seventeen in a frame."""
GHOSTS = "(kinetree.part.layer().labels || []).map((x) => x.text).filter((x) => /^[0-9]+$/.test(x))"
Q = [0.4, -0.6, 0.5, 0.7, 0.9, -0.3]


def numbers(page, selector: str) -> np.ndarray:
    """Return the full numbers of table cells."""
    return np.array(page.locator(selector).evaluate_all("all => all.map((x) => Number(x.dataset.value))"))


def test_any_frame_in_any_other(show):
    """Choose two links of an arm that has moved, and read the pose of one in the other and back."""
    arm = kt.load("puma560")
    with show("puma560", "Move") as page:
        page.evaluate("(q) => kinetree.moveTo(Float64Array.from(q))", Q)
        page.keyboard.press("y")
        for a, b in (("link1", "link6"), ("link5", "link2")):
            page.get_by_label("from frame", exact=True).select_option(a)
            page.get_by_label("to frame", exact=True).select_option(b)
            T = np.linalg.solve(arm.pose(Q, a), arm.pose(Q, b))
            assert_close(numbers(page, ".pose .matrix td").reshape(3, 4), T[:3], 1e-12, f"{b} in {a}")


def test_a_center_of_mass_from_initial_to_final_values(show):
    """Move a chain from initial to final joint values, and plot and save where a link's center of mass goes."""
    arm = kt.load("planar_3r")
    end = np.radians([60, -45, 30])
    with show("planar_3r", "Torques") as page:
        for k, x in enumerate(end):
            typed(page, f"to joint{k + 1}", repr(float(np.degrees(x))))
        page.get_by_role("button", name="curves", exact=True).click()
        page.get_by_label("quantity of a curve").select_option("point position")
        page.get_by_label("object of a curve").select_option("link2 center of mass")
        page.get_by_role("button", name="Add", exact=True).click()
        table = saved_csv(page)
        q = sampled(kt.Cycloid(np.zeros(3), end, 2.0), table["t [s]"])[0]
        T, com = arm.poses(q)[:, 1], np.array(arm.mechanism.bodies[1].com, dtype=float)
        place = T[:, :3, :3] @ com + T[:, :3, 3]
        for k, axis in enumerate("xyz"):
            found = table[f"point position.link2 center of mass {axis} [m]"]
            assert_close(found, place[:, k], 1e-12, f"center of mass along {axis}")


def arm_of(name: str) -> tuple[kt.System, str, list[float], int]:
    """Return an arm, a frame, a position away from singular ones, and the number of positions with its pose."""
    body = {"mass": 1.0, "inertia": (0.01, 0.01, 0.01, 0, 0, 0)}
    turn = {"joint": "revolute", **body}
    if name == "RRP":
        rows = [
            {**turn, "b": 0.35, "alpha": -np.pi / 2},
            {**turn, "b": 0.1, "alpha": np.pi / 2},
            {"joint": "prismatic", "b": 0.0, **body},
        ]
        return kt.from_dh(rows, name="RRP"), "tool", [0.4, 0.7, 0.35], 4
    if name == "anthropomorphic":
        rows = [{**turn, "b": 0.4, "alpha": np.pi / 2}, {**turn, "a": 0.35}, {**turn, "a": 0.3}]
        return kt.from_dh(rows, name="anthropomorphic"), "tool", [0.5, 0.6, -0.9], 4
    if name == "RRR":
        return kt.load("planar_3r"), "tool", [0.4, 0.7, -0.5], 2
    return kt.load("puma560"), "link6", Q, 8


@pytest.mark.parametrize("home", ["file", "studio"])
@pytest.mark.parametrize("name", ["RRP", "RRR", "anthropomorphic", "PUMA"])
def test_solutions_side_by_side(chromium, tmp_path, request, name, home):
    """List all positions of four kinds of arms, see them together as ghosts, choose A and B, and play once."""
    arm, frame, q, count = arm_of(name)
    if home == "file":
        visit = opened(chromium, arm.page().save(tmp_path / "arm.html"), after="#mode=Move")
    else:
        visit = served(chromium, f"{request.getfixturevalue('studio')}#mode=Move")
    with visit as page:
        if home == "studio":
            kt.save(arm, tmp_path / "given.toml")
            drop(page, "given.toml", (tmp_path / "given.toml").read_text())
            title = arm.mechanism.name
            until(
                page,
                f"kinetree.model.name === {title!r} && document.title === {title!r} && document.body.dataset.ready",
            )
            if page.evaluate("kinetree.store.get('mode')") != "Move":
                page.keyboard.press("k")
        page.evaluate("(q) => kinetree.moveTo(Float64Array.from(q))", q)
        page.get_by_role("button", name="Find", exact=True).click()
        texts = page.eval_on_selector_all(".solutions button", "all => all.map((x) => x.dataset.q)")
        found = np.array([[float(x) for x in text.split(",")] for text in texts])
        assert len(found) == count
        whole = name in ("RRR", "PUMA")  # of the others the position alone can be chosen
        for solution in found:
            T, wanted = arm.pose(solution, frame), arm.pose(q, frame)
            assert_close(T if whole else T[:3, 3], wanted if whole else wanted[:3, 3], 1e-10, "pose of a solution")
        assert page.evaluate(GHOSTS) == [str(k + 1) for k in range(count)]
        page.get_by_role("button", name="ghosts", exact=True).click()
        assert page.evaluate(GHOSTS) == []
        page.get_by_label("A is solution 1", exact=True).check()
        page.get_by_label(f"B is solution {count}", exact=True).check()
        page.get_by_role("button", name="Play A to B", exact=True).click()
        until(page, "!kinetree.store.get('playing') && kinetree.store.get('time') === kinetree.store.get('motion').end")
        _, path, _ = motion(page)
        assert_close(path[0], found[0], 1e-12, "start of the path")
        assert_close(coordinates(page), found[-1], 1e-12, "end of the path, where the arm stays")


def test_inertia_gravity_and_torque_along_a_trajectory(show):
    """Split the torque of a joint along a cycloid by its causes: they add up, and are those of the ledger."""
    arm = kt.load("stanford")
    end = np.array([0.6, 0.5, 0.1, -0.4, 0.7, 0.3])
    with show("stanford", "Torques") as page:
        page.evaluate(
            "(q1) => kinetree.store.set({ inverse: { ...kinetree.store.get('inverse'), q1, duration: 1.5 } })",
            end.tolist(),
        )
        for joint in (1, 2):
            page.get_by_label("joint of the causes").select_option(f"joint{joint}")
            t, _, _ = motion(page)
            start = np.array(page.evaluate("kinetree.store.get('inverse').q0"))
            q, qd, qdd = sampled(kt.Cycloid(start, end, 1.5), t)
            causes = arm.ledger(q, qd, qdd).by_cause
            expected = [causes["gravity"], causes["inertia"] + causes["armature"], causes["convective"]]
            found = curves(page)[f"by cause: joint{joint}"]
            scale = np.abs(found).max()
            assert_close(found[:3], [x[:, joint - 1] for x in expected], 1e-12 * scale, "causes")
            tau = arm.inverse_dynamics(q, qd, qdd)[:, joint - 1]
            assert_close(found[:3].sum(axis=0), tau, 1e-12 * scale, "causes add up to the torque")


def test_constant_torques_and_energies(show):
    """Drive an arm by constant torques: its motion is that of simulate, and its energy grows by their work."""
    arm = kt.load("planar_2r")
    torque = np.array([0.9, -0.25])
    with show("planar_2r", "Simulate") as page:
        page.get_by_role("button", name="torque", exact=True).click()
        for k, x in enumerate(torque):
            box = page.locator("section", has_text="Drives").get_by_label(f"joint{k + 1}", exact=True)
            box.fill(repr(float(x)))
            box.press("Enter")
        computed_ahead(page, 1)
        t, q, qd = motion(page)
        control = kt.TorqueFunction(lambda t, q, qd: torque)
        run = kt.simulate(arm, q[0], times=t, dt=STEP, method="rk4", control=control)
        assert_close(q, run.q, 1e-12, "positions")
        assert_close(qd, run.qd, 1e-12 * np.abs(qd).max(), "velocities")
        kinetic, potential, total = curves(page)["energy"][:3]
        assert_close(kinetic + potential, total, 1e-12 * np.abs(total).max(), "the energies add up")
        # constant torques do the work torque times angle; the bound is the error of the method
        assert_close(total - total[0], (q - q[0]) @ torque, 1e-6, "work of the torques")


def test_both_recursions_with_numbers(show):
    """Give each joint a velocity and an acceleration, walk to a body, and read its twist and a block of N_l."""
    arm = kt.load("puma560")
    with show("puma560", "Understand") as page:
        page.evaluate("(q) => kinetree.moveTo(Float64Array.from(q))", Q)
        page.evaluate("kinetree.store.set({ units: 'rad' })")
        for k in range(6):
            page.get_by_role("textbox", name=f"velocity: joint{k + 1}", exact=True).fill(str(0.1 * (k + 1)))
            page.get_by_role("textbox", name=f"velocity: joint{k + 1}", exact=True).press("Enter")
        page.get_by_role("button", name="outward: link4", exact=True).click()
        t = arm.inverse_recursion(Q, 0.1 * np.arange(1, 7), [0.3] * 6)[0]
        assert_close(numbers(page, ".working [data-value]")[:6], t[3], 1e-12, "twist of the fourth link")
        page.get_by_label("body of the block's column").select_option("0")
        block = np.asarray(arm.denoc(Q).N_l)[18:24, :6]
        assert_close(numbers(page, ".blocks [data-value]")[:36].reshape(6, 6), block, 1e-12, "a block of N_l")


def test_dh_parameters_one_after_the_other_and_together(show):
    """Take a frame through the four motions of a row, with their matrices, then all frames of the arm at once."""
    arm = kt.load("stanford")
    with show("stanford", "Build") as page:
        page.evaluate("(q) => kinetree.moveTo(Float64Array.from(q))", [0.5, 1.2, 0.35, 0.3, 0.6, 0.1])
        page.get_by_role("button", name="link2", exact=True).first.click()
        for done, motion_of in enumerate(("theta", "b", "a", "alpha"), 1):
            page.get_by_role("button", name="Step", exact=True).click()
            assert page.evaluate("kinetree.part.motionsDone()") == done
            assert page.locator(f"[data-motion={motion_of}]").count() == 1
        T = np.linalg.solve(arm.pose(coordinates(page), "frame_2"), arm.pose(coordinates(page), "frame_3"))
        product = numbers(page, "[data-motion=product] td[data-value]").reshape(4, 4)
        assert_close(product, T, 1e-12, "product of the four matrices")
        page.get_by_role("button", name="link6", exact=True).first.click()
        page.get_by_role("button", name="together", exact=True).click()
        for _ in range(3):  # no row of this arm has a length along x
            page.get_by_role("button", name="Step", exact=True).click()
        whole = numbers(page, ".theatre td[data-value]").reshape(4, 4)
        assert_close(whole, arm.pose(coordinates(page), "frame_7"), 1e-12, "pose of the last frame in the first")


def test_steps_slow_motion_and_a_pull(show):
    """Let an arm fall step by step, play it ten times slower, and pull it: an arrow has the force."""
    arm = kt.load("planar_2r")
    with show("planar_2r", "Simulate") as page:
        page.locator(".stage").focus()
        for _ in range(4):
            page.keyboard.press(".")
        time = "kinetree.store.get('time')"
        assert_close(page.evaluate(time), 4 / 60, 1e-12, "four steps")
        run = kt.simulate(arm, np.zeros(2), times=[0.0, 4 / 60], method="rk4", dt=STEP)
        assert_close(coordinates(page), run.q[-1], 1e-12, "the fall")
        page.get_by_label("speed", exact=True).select_option("0.1")
        began = page.evaluate("performance.now()")
        page.locator(".stage").focus()
        page.keyboard.press(" ")
        until(page, f"{time} > 0.08")
        page.keyboard.press(" ")
        passed = 1e-3 * (page.evaluate("performance.now()") - began)
        assert page.evaluate(time) - 4 / 60 < 0.1 * passed + 1 / 60
        page.get_by_label("speed", exact=True).select_option("1")
        x, y = projected(page, (0.97 * arm.pose(coordinates(page), "tool")[:3, 3]).tolist())
        page.mouse.move(x, y)
        page.mouse.down()
        page.mouse.move(x + 40, y - 90, steps=4)
        pulls = "(kinetree.part.layer().arrows || []).filter((x) => x.group === 'pull')"
        until(page, f"{pulls}.length === 1")
        assert page.evaluate(f"Math.hypot(...{pulls}[0].vector)") > 0.1
        page.mouse.up()
        assert page.evaluate(f"{pulls}.length") == 0
