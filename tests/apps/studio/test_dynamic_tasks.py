"""Tasks of a reader, on the file and in the studio: torques, falls and holds, floating arms, walkers, comparisons."""

from __future__ import annotations

from dataclasses import replace

import numpy as np
import pytest

import kinetree as kt
from browser import needs_browser, typed, until
from kinetree.apps.reproduce import saha2013_biped
from kinetree.simulation.acting.references import sampled
from page_reading import computed_ahead, coordinates, curves, motion, saved_csv
from tolerance import assert_close

pytestmark = [pytest.mark.slow, needs_browser]

STEP = 1 / 60 / 17 * (1 + 1e-9)
"""The step of the page [s]: seventeen in a frame."""


def test_torques_of_a_motion(show):
    """Plot the torques of a cycloid with gravity, without it and with a payload; read them back from CSV."""
    arm = kt.load("planar_3r")
    start, end = np.zeros(3), np.radians([60, -45, 30])
    with show("planar_3r", "Torques") as page:
        for k, x in enumerate(end):
            typed(page, f"to joint{k + 1}", repr(float(np.degrees(x))))
        typed(page, "duration", "1.25")
        t, _, _ = motion(page)
        q, qd, qdd = sampled(kt.Cycloid(start, end, 1.25), t)
        tau = arm.inverse_dynamics(q, qd, qdd)
        scale = np.abs(tau).max()
        assert_close(curves(page)["torque"].T, tau, 1e-12 * scale, "torques with gravity")
        table = saved_csv(page)
        read = np.transpose([table[f"torque.joint{k} [N m]"] for k in (1, 2, 3)])
        assert_close(read, curves(page)["torque"].T, 0.0, "torques of the file")
        page.get_by_role("button", name="gravity", exact=True).click()
        free = tau - arm.gravity_torque(q)
        assert_close(curves(page)["torque"].T, free, 1e-12 * scale, "torques without gravity")
        page.get_by_role("button", name="gravity", exact=True).click()
        typed(page, "payload", "1.75")
        tool = arm.mechanism.frame("tool")
        loaded = kt.System(kt.with_payload(arm, tool.body, 1.75, tool.placement.translation))
        expected = loaded.inverse_dynamics(q, qd, qdd)
        assert_close(curves(page)["torque"].T, expected, 1e-12 * np.abs(expected).max(), "torques with a payload")


def test_an_arm_falls_and_is_held(show):
    """Let an arm fall: its energy stays; then hold it by springs and dampers: it comes to rest at its target."""
    arm = kt.load("planar_3r")
    with show("planar_3r", "Simulate") as page:
        typed(page, "joint1", "35")
        computed_ahead(page, 1)
        t, q, qd = motion(page)
        run = kt.simulate(arm, [np.radians(35), 0, 0], times=t, dt=STEP, method="rk4")
        assert_close(q, run.q, 1e-12, "positions of the fall")
        assert_close(qd, run.qd, 1e-12 * np.abs(qd).max(), "velocities of the fall")
        energies = curves(page)["energy"]
        expected = np.array([run["kinetic_energy"], run["potential_energy"], run["energy"]])
        assert_close(energies, expected, 1e-12 * np.abs(expected).max(), "energies of the fall")
        assert np.ptp(energies[0]) > 1.0
        # the error of the method itself, in the library as well
        assert_close(energies[2], np.full_like(energies[2], energies[2][0]), 1e-6, "energy stays")
        page.get_by_role("button", name="Restart").click()
        page.get_by_role("button", name="hold", exact=True).click()
        computed_ahead(page, 4)
        f = page.evaluate("kinetree.store.get('forward')")
        t, q, qd = motion(page)
        rest = np.array(f["target"]) + np.array(f["weight"]) / f["stiffness"]  # of springs that carry the weight
        control = kt.PD(f["stiffness"], f["damping"], kt.Hold(rest))
        run = kt.simulate(arm, q[0], times=t, dt=STEP, method="rk4", control=control)
        assert_close(q, run.q, 1e-12, "positions of the hold")
        assert_close(np.array(f["weight"]), arm.gravity_torque(f["target"]), 1e-14, "weight at the target")
        target = page.locator("section", has_text="Drives").get_by_label("joint2", exact=True)
        target.fill("-25")
        target.press("Enter")
        computed_ahead(page, 8)
        _, q, _ = motion(page)
        assert_close(q[-1], np.radians([35, -25, 0]), 2e-3, "it settles at its target")


def test_a_floating_arm_keeps_its_momentum(show):
    """Drive the arm of a space robot: its momentum stays zero, and its base moves."""
    arm = kt.load("space_robot_3r")
    with show("space_robot_3r", "Simulate") as page:
        page.get_by_role("button", name="torque", exact=True).click()
        driven = [v["label"] for v in page.evaluate("kinetree.model.velocities")][6:]
        for label, torque in zip(driven, ("4", "-2.5", "1"), strict=True):
            box = page.locator("section", has_text="Drives").get_by_label(label, exact=True)
            box.fill(torque)
            box.press("Enter")
        computed_ahead(page, 1)
        t, q, qd = motion(page)
        assert np.abs(q[-1, :7] - q[0, :7]).max() > 0.01 and np.abs(q[-1, 7:] - q[0, 7:]).max() > 0.1
        found = curves(page)
        momentum = np.concatenate([found["angular momentum"], found["momentum"]])
        assert_close(momentum.T, arm.momentum(q, qd), 1e-12, "momentum in the page")
        assert_close(momentum, np.zeros_like(momentum), 1e-10, "momentum stays, but for the error of the method")
        control = kt.TorqueFunction(lambda t, q, qd: [0] * 6 + [4, -2.5, 1])
        run = kt.simulate(arm, q[0], times=t, dt=STEP, method="rk4", control=control)
        assert_close(q, run.q, 1e-12, "states")


def test_a_biped_stands_on_one_foot(show):
    """Find the biped on one foot; without drives it falls, with drives its hips stay."""
    biped = kt.load("spatial_biped")
    with show("spatial_biped") as page:
        standing = coordinates(page)
        # the angles of the library's file have four decimals
        assert_close(biped.pose(standing, "link6")[0, 3], saha2013_biped.HIP, 1e-4, "height of the hips")
        page.keyboard.press("f")
        heights = {}
        for drive in ("none", "hold"):
            page.get_by_role("button", name=drive, exact=True).click()
            computed_ahead(page, 0.4)
            _, q, _ = motion(page)
            heights[drive] = biped.pose(q[-1], "link6")[0, 3]
        assert heights["none"] < 0.6 and abs(heights["hold"] - saha2013_biped.HIP) < 0.05


def test_two_sets_of_parameters_are_compared(show):
    """Let an arm fall, change its free parameters, and let it fall again beside the first motion."""
    arm = kt.load("tube_arm")
    free = arm.mechanism.free_parameters
    with show("tube_arm", "Move") as page:
        page.keyboard.press("f")
        computed_ahead(page, 0.5)
        t, q, _ = motion(page)
        run = kt.simulate(arm, q[0], times=t, dt=STEP, method="rk4")
        assert_close(q, run.q, 1e-12, "motion with the given parameters")
        page.locator(".stage").focus()
        page.keyboard.press("c")
        page.keyboard.press("k")
        changed = [p.value * (1.3 if k == 0 else 1.0) for k, p in enumerate(free)]
        typed(page, free[0].name, repr(changed[0]))
        page.keyboard.press("Escape")
        page.locator(".stage").focus()
        page.keyboard.press("f")
        computed_ahead(page, 0.5)
        t, second, _ = motion(page)
        values = page.evaluate("Array.from(kinetree.store.get('parameters'))")[: len(free)]
        assert_close(np.array(values), changed, 1e-12, "parameters")
        run = kt.simulate(arm, second[0], times=t, dt=STEP, method="rk4", parameters=changed)
        assert_close(second, run.q, 1e-12, "motion with the changed parameters")
        assert np.abs(second - q).max() > 1e-3


def test_a_heavier_body_is_compared(show):
    """Keep a motion, change a mass in the table of the model, and compare the next motion with it."""
    arm = kt.load("planar_2r")
    with show("planar_2r", "Simulate") as page:
        computed_ahead(page, 0.5)
        page.locator(".stage").focus()
        page.keyboard.press("c")
        until(page, "kinetree.store.get('ghost') !== null")
        computed_ahead(page, 0.5)
        assert "joint1, before" in page.inner_text(".legend")
        first = motion(page)[1]
        page.locator(".stage").focus()
        page.keyboard.press("b")
        page.get_by_role("button", name="link2", exact=True).first.click()
        typed(page, "mass of link2", "2.5")
        page.keyboard.press("Escape")
        page.locator(".stage").focus()
        page.keyboard.press("f")
        computed_ahead(page, 0.5)
        t, q, _ = motion(page)
        bodies = (arm.mechanism.bodies[0], replace(arm.mechanism.bodies[1], mass=2.5))
        heavier = kt.System(replace(arm.mechanism, bodies=bodies))
        run = kt.simulate(heavier, q[0], times=t, dt=STEP, method="rk4")
        assert_close(q, run.q, 1e-12, "motion of the heavier arm")
        assert np.abs(q - first).max() > 1e-3
