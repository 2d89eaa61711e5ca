"""Tasks of a reader, on the file and in the studio: poses, motions, inverse kinematics, files of motions, jogging."""

from __future__ import annotations

import numpy as np
import pytest
from scipy.interpolate import CubicHermiteSpline

import kinetree as kt
from browser import drawn, needs_browser, served, typed, until
from kinetree.simulation.acting.references import sampled
from page_reading import cells, coordinates, curves, motion, saved_csv
from tolerance import assert_close

pytestmark = [pytest.mark.slow, needs_browser]


def pose_of(page) -> np.ndarray:
    return np.vstack([cells(page, ".pose .matrix td").reshape(3, 4), [0, 0, 0, 1]])


def same_in_python(page) -> dict:
    """Run the lines of Python that the page offers, and return their names."""
    page.locator(".stage").focus()
    page.keyboard.press("s")
    text = page.get_by_label("The same in Python").input_value()
    page.get_by_role("button", name="Close", exact=True).click()
    found: dict = {}
    exec(text, found)
    return found


def test_a_library_robot_is_picked_and_moved(chromium, studio):
    """Pick a robot from the gallery, move its joints, read the pose of its tool, and export it as lines of Python."""
    with served(chromium, studio) as page:
        page.keyboard.press("Control+o")
        page.locator(".card", has_text="stanford").click()
        until(page, "document.title === 'stanford'")
        arm, q = kt.load("stanford"), kt.load("stanford").neutral().copy()
        for k, degrees in ((0, 23.5), (1, -48.25), (4, 71.0)):
            typed(page, f"joint{k + 1}", str(degrees))
            q[k] = np.radians(degrees)
        typed(page, "joint3", "0.35")
        q[2] = 0.35
        assert_close(coordinates(page), q, 1e-15, "coordinates")
        assert_close(pose_of(page), arm.pose(q, "tool"), 1e-12, "pose of the tool")
        found = same_in_python(page)
        assert_close(found["T"], arm.pose(q, "tool"), 1e-12, "pose of the lines of Python")
        assert_close(np.array(found["target"]), arm.pose(q, "tool"), 1e-12, "pose in the lines of Python")


def test_a_robot_moves_and_is_exported(show):
    """Move the joints of a file's robot and read its tool's pose, here and in the lines of Python."""
    arm = kt.load("puma560")
    with show("puma560") as page:
        typed(page, "joint2", "-40.5")
        typed(page, "joint5", "33.25")
        q = np.radians([0, -40.5, 0, 0, 33.25, 0])
        assert_close(pose_of(page), arm.pose(q, "link6"), 1e-12, "pose")
        assert_close(same_in_python(page)["T"], arm.pose(q, "link6"), 1e-12, "pose of the lines of Python")


def test_forward_kinematics_along_a_cycloid(show):
    """Move from initial to final joint values along a cycloid, play it, and read its curves back from CSV."""
    start, end = np.radians([20, -35, 50]), np.radians([95, 40, -25])
    with show("planar_3r", "Torques") as page:
        for tab, values in (("from", start), ("to", end)):
            page.get_by_role("button", name=tab, exact=True).click()
            for k, x in enumerate(values):
                typed(page, f"{tab} joint{k + 1}", repr(float(np.degrees(x))))
        typed(page, "duration", "1.5")
        t, q, qd = motion(page)
        expected = sampled(kt.Cycloid(start, end, 1.5), t)
        assert_close(q, expected[0], 1e-12, "positions")
        assert_close(qd, expected[1], 1e-12, "velocities")
        table = saved_csv(page)
        assert_close(np.transpose([table[f"position.joint{k} [rad]"] for k in (1, 2, 3)]), q, 0.0, "saved positions")
        assert_close(
            np.transpose([table[f"velocity.joint{k} [rad/s]"] for k in (1, 2, 3)]), qd, 0.0, "saved velocities"
        )
        page.locator(".stage").focus()
        page.keyboard.press(" ")
        until(page, "kinetree.store.get('time') > 0.2")
        page.keyboard.press(" ")
        now = page.evaluate("kinetree.store.get('time')")
        assert_close(coordinates(page), CubicHermiteSpline(t, q, qd)(now), 1e-12, "on the cubic between two samples")
        # the error of this cubic: h^4 / 384 times the largest fourth derivative, 3e-10 rad
        assert_close(coordinates(page), sampled(kt.Cycloid(start, end, 1.5), [now])[0][0], 1e-9, "between two samples")


SOLVED = {"planar_3r": ("tool", [0.4, 0.7, -0.5]), "puma560": ("link6", [0.4, -0.6, 0.5, 0.7, 0.9, -0.3]),
          "kuka_lwr4": ("link7", [0.3, 0.6, -0.2, -1.1, 0.4, 0.7, 0.1])}  # fmt: skip


@pytest.mark.parametrize("name", SOLVED)
def test_inverse_kinematics_of_arms(show, name):
    """List all solutions of a planar, a wrist-partitioned and a redundant arm; go to another one on a path."""
    frame, q = SOLVED[name]
    arm = kt.load(name)
    T = arm.pose(q, frame)
    with show(name, "Move") as page:
        page.evaluate("(q) => kinetree.moveTo(Float64Array.from(q))", q)
        page.get_by_role("button", name="Find", exact=True).click()
        texts = page.eval_on_selector_all(".solutions button", "all => all.map((x) => x.dataset.q)")
        found = np.array([[float(x) for x in text.split(",")] for text in texts])
        assert len(found) == {"planar_3r": 2, "puma560": 8}.get(name, len(found)) and len(found) > 1
        for solution in found:
            assert_close(arm.pose(solution, frame), T, 1e-12, "pose of a solution")
        other = int(np.argmax(np.abs(found - q).max(axis=-1)))
        page.get_by_role("button", name=str(other + 1), exact=True).click()
        page.locator(".stage").focus()
        page.keyboard.press(" ")
        page.keyboard.press("End")
        assert_close(coordinates(page), found[other], 1e-12, "end of the path")
        _, path, _ = motion(page)
        assert_close(path[0], q, 1e-12, "start of the path")
        assert_close(arm.pose(path[-1], frame), T, 1e-12, "pose at the end of the path")


def test_motions_are_loaded_from_files(show, tmp_path):
    """Load joints over time, with velocities and accelerations, then a path in space with angles."""
    arm = kt.load("puma560")
    start, end = np.array([0.4, -0.6, 0.5, 0.7, 0.9, -0.3]), np.array([0.7, -0.4, 0.3, 0.5, 1.1, -0.1])
    t = np.linspace(0.0, 1.2, 13)
    q, qd, qdd = sampled(kt.Polynomial(start, end, 1.2), t)
    names = [j.name for j in arm.joints]
    heads = ["t", *names, *(f"qd.{n}" for n in names), *(f"qdd.{n}" for n in names)]
    joints, path = tmp_path / "joints.csv", tmp_path / "path.csv"
    joints.write_text(text_of(heads, np.column_stack([t, q, qd, qdd])))
    fine = np.linspace(0.0, 1.2, 25)
    poses = arm.pose(sampled(kt.Polynomial(start, end, 1.2), fine)[0], "link6")
    path.write_text(text_of(["t", "x", "y", "z", "roll", "pitch", "yaw"], np.column_stack([fine, *angles(poses).T])))
    with show("puma560", "Torques") as page:
        page.evaluate("(q) => kinetree.store.set({ q: Float64Array.from(q) })", start.tolist())
        page.get_by_role("button", name="file", exact=True).click()
        page.get_by_label("CSV file of a motion").set_input_files(joints)
        page.wait_for_selector(".peaks")
        times, found, velocities = motion(page)
        expected = sampled(kt.Polynomial(start, end, 1.2), times)
        assert_close(found, expected[0], 1e-12, "positions of the file")
        qdd = curves(page)["acceleration"].T
        tau = arm.inverse_dynamics(found, velocities, qdd)
        assert_close(curves(page)["torque"].T, tau, 1e-12 * np.abs(tau).max(), "torques of the file")
        assert_close(velocities, expected[1], 1e-12 * np.abs(expected[1]).max(), "velocities of the file")
        # second differences of positions that are given every 0.1 s: their rounding is multiplied by 60 / 0.1^2
        assert_close(qdd, expected[2], 6000 * 2**-52 * np.abs(q).max(), "accelerations of the file")
        page.evaluate("(q) => kinetree.store.set({ q: Float64Array.from(q) })", start.tolist())
        page.get_by_label("CSV file of a motion").set_input_files(path)
        until(page, "kinetree.store.get('motion').count === 241 && kinetree.store.get('motion').t[240] === 1.2")
        times, found, _ = motion(page)
        assert_close(arm.pose(found[::10], "link6"), poses, 1e-12, "poses of the path")


def text_of(heads, rows) -> str:
    return "\n".join([",".join(heads), *(",".join(repr(float(x)) for x in row) for row in rows)]) + "\n"


def angles(T: np.ndarray) -> np.ndarray:
    """Return x, y, z, roll, pitch, yaw of poses."""
    R = T[:, :3, :3]
    roll, yaw = np.arctan2(R[:, 2, 1], R[:, 2, 2]), np.arctan2(R[:, 1, 0], R[:, 0, 0])
    pitch = np.arctan2(-R[:, 2, 0], np.hypot(R[:, 2, 1], R[:, 2, 2]))
    return np.column_stack([T[:, :3, 3], roll, pitch, yaw])


def test_a_robot_is_jogged(show):
    """Move a joint by its slider and keys, the tool along and about axes of the ground and its own; hold a button."""
    arm = kt.load("puma560")
    with show("puma560", "Move") as page:
        page.evaluate("kinetree.moveTo(Float64Array.from([0.4, -0.6, 0.5, 0.7, 0.9, -0.3]))")
        before = coordinates(page)
        slider = page.get_by_label("joint3, slider", exact=True)
        slider.focus()
        slider.press("ArrowRight")
        moved = coordinates(page) - before
        assert moved[2] > 0 and np.count_nonzero(moved) == 1
        T = arm.pose(coordinates(page), "link6")
        assert_close(pose_of(page), T, 1e-12, "pose after a joint moved")
        for label, axis in (("plus x", 0), ("minus z", 2)):
            page.get_by_label(f"move along {label}", exact=True).click()
            T[axis, 3] += 0.02 if "plus" in label else -0.02
        assert_close(arm.pose(coordinates(page), "link6"), T, 1e-12, "pose after two steps")
        page.get_by_label("rotate about plus z", exact=True).click()
        c, s = np.cos(np.pi / 36), np.sin(np.pi / 36)
        T[:3, :3] = np.array([[c, -s, 0], [s, c, 0], [0, 0, 1]]) @ T[:3, :3]
        assert_close(arm.pose(coordinates(page), "link6"), T, 1e-12, "pose after a rotation")
        page.get_by_role("button", name="tool", exact=True).click()
        page.get_by_label("move along minus y", exact=True).click()
        step = np.eye(4)
        step[1, 3] = -0.02
        T = T @ step
        assert_close(arm.pose(coordinates(page), "link6"), T, 1e-12, "pose after a step along the tool")
        page.get_by_label("rotate about plus x", exact=True).click()
        turn = np.eye(4)
        turn[1:3, 1:3] = [[c, -s], [s, c]]
        T = T @ turn
        assert_close(arm.pose(coordinates(page), "link6"), T, 1e-12, "pose after a rotation about the tool")
        page.get_by_role("button", name="joint", exact=True).click()
        before = coordinates(page)
        page.get_by_label("joint2 plus", exact=True).click()
        assert_close((coordinates(page) - before)[1], np.pi / 36, 1e-12, "a step of a joint")
        page.get_by_label("joint2 minus", exact=True).hover()
        page.mouse.down()
        until(page, "kinetree.store.get('q')[1] < -1")
        page.mouse.up()
        drawn(page)
        held = coordinates(page)
        page.wait_for_timeout(600)
        assert_close(coordinates(page), held, 0, "a button that is released")
        assert np.count_nonzero(held - before) == 1
