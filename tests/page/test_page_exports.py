"""What the page exports, run as a reader would: lines of Python, experiments by `kinetree run`, and links."""

from __future__ import annotations

from pathlib import Path

import numpy as np
import pytest

import kinetree as kt
from browser import needs_browser, opened
from command_line import run as run_command
from tolerance import assert_close

pytestmark = [pytest.mark.slow, needs_browser]
STATES = """() => {
    const { count, t, q, qd } = kinetree.store.get("motion");
    const part = (x, n) => Array.from(x.subarray(0, count * n));
    return { t: part(t, 1), q: part(q, kinetree.model.nq), qd: part(qd, kinetree.model.nv) };
}"""
TORQUES = (
    "kinetree.part.charts().filter((c) => c.title === 'torque').flatMap((c) => c.series.map((s) => [...s.values]))"
)


def texts(page) -> dict[str, str]:
    """Return what the dialog of saving offers: the link, Python, the experiment."""
    page.evaluate("document.activeElement.blur()")
    page.keyboard.press("s")
    labels = page.eval_on_selector_all("dialog .field span", "all => all.map((x) => x.textContent)")
    found = page.eval_on_selector_all("dialog .field textarea", "all => all.map((x) => x.value)")
    page.keyboard.press("Escape")
    return dict(zip(labels, found, strict=True))


def python_run(text: str) -> dict:
    """Run lines of Python without their pictures, and return what they define."""
    made: dict = {}
    exec(text.replace("run.plot()", ""), made)
    return made


def experiment_run(text: str, folder: Path) -> kt.Trajectory:
    """Save an experiment, run it from the command line, and return its run."""
    (folder / "page.toml").write_text(text.replace('replay = "run.html"', 'save = "run.npz"').replace("plot = ", "# "))
    assert run_command("run", str(folder / "page.toml"), "--out", str(folder)) == 0
    return kt.read_trajectory(folder / "run.npz")


def shown(page, system: kt.System) -> tuple[np.ndarray, np.ndarray, np.ndarray]:
    """Return times, coordinates and velocities of the motion in the page."""
    motion = page.evaluate(STATES)
    return (
        np.array(motion["t"]), np.reshape(motion["q"], (-1, system.nq)), np.reshape(motion["qd"], (-1, system.nv)),
    )  # fmt: skip


@pytest.mark.parametrize("drive", ["none", "torque", "hold"])
@pytest.mark.parametrize("name", ["planar_3r", "four_bar", "space_robot_3r", "pendulum"])
def test_motions_are_repeated_outside_of_the_page(chromium, tmp_path, name, drive):
    """Compute a motion under drives, and repeat it by the exported lines of Python and by the experiment."""
    system = kt.load(name)
    path = system.page().save(tmp_path / "page.html")
    with opened(chromium, path) as page:
        page.keyboard.press("f")
        page.get_by_role("button", name=drive, exact=True).click()
        page.evaluate(
            """() => {
                const { store, model, kernel } = kinetree;
                const q = store.get("q");
                const qd = kernel.closeVelocities(q, new Float64Array(model.nv).fill(0.3), { held: [0] });
                store.set({ start: { q: Array.from(q), qd: Array.from(qd) } }, { by: "test" });
                const torque = Array.from({ length: model.nv }, (_, k) => 0.1 + 0.07 * k);
                const forward = store.get("forward");
                store.set({ forward: { ...forward, torque, target: forward.target.map((x) => x + 0.1) } });
                kinetree.store.get("motion").extend(0.7, { patience: 1e5 });
            }"""
        )
        found, (t, q, qd) = texts(page), shown(page, system)
    assert len(t) == 43 and np.ptp(q, axis=0).max() > 1e-3
    run = python_run(found["The same in Python"])["run"]
    again = experiment_run(found["The same as an experiment"], tmp_path)
    for label, made in (("Python", run), ("experiment", again)):
        assert_close(made.t, t, 1e-12, f"times of {label}")
        assert_close(made.q, q, 1e-11, f"{name}, {drive}: {label}")
        assert_close(made.qd, qd, 1e-9, f"{name}, {drive}: velocities of {label}")
    with opened(chromium, path, after="#" + found["Link to this state"].partition("#")[2]) as page:
        page.evaluate("kinetree.store.get('motion').extend(0.7, { patience: 1e5 })")
        assert_close(shown(page, system)[1], q, 1e-13, f"{name}, {drive}: link")


TRACKED = {  # settings of the planned motion of a PUMA
    "cycloid": "kind: 'cycloid'",
    "via": "kind: 'quintic', via: [{ u: 0.4, q: [0.6, -0.2, 0.3, 0.1, 0.9, -0.4] }]",
    "moving": "kind: 'cubic', qd0: [0.3, 0, -0.2, 0, 0.1, 0], qd1: [0, 0.2, 0, -0.1, 0, 0.3]",
}


@pytest.mark.parametrize("kind", TRACKED)
def test_drives_track_the_planned_motion(chromium, tmp_path, kind):
    """Track a planned motion from its start and from beside it: the library's feed-forward and PD move the same."""
    arm = kt.load("puma560")
    plan = f"{TRACKED[kind]}, q1: [0.9, -0.4, 0.7, 0.6, 0.4, -0.5], duration: 1.25"
    with opened(chromium, arm.page().save(tmp_path / "page.html"), after="#mode=Motion") as page:
        page.evaluate(f"kinetree.store.set({{ inverse: {{ ...kinetree.store.get('inverse'), {plan} }} }})")
        page.get_by_role("button", name="Simulate", exact=True).click()
        page.get_by_role("button", name="track", exact=True).click()
        page.evaluate("kinetree.store.get('motion').extend(1.2, { patience: 1e5 })")
        t, q, qd = shown(page, arm)
        planned = "(all) => all.map((t) => ['q', 'qd'].map((x) => Array.from(kinetree.plan.made().motion.state(t)[x])))"
        expected = np.array(page.evaluate(planned, t.tolist()))
        assert_close(q, expected[:, 0], 2e-4, f"{kind}: the planned positions")  # 7e-5: accelerations between samples
        assert_close(qd, expected[:, 1], 2e-3, f"{kind}: the planned velocities")
        page.evaluate(
            """() => {
                const { q, qd } = kinetree.store.get("start");
                kinetree.store.set({ start: { q: q.map((x) => x + 0.1), qd } }, { by: "test" });
                kinetree.store.get("motion").extend(1.6, { patience: 1e5 });
            }"""
        )
        found, (t, q, qd) = texts(page), shown(page, arm)
    assert "The same as an experiment" not in found
    made = python_run(found["The same in Python"])["run"]
    assert_close(made.q, q, 2e-4, f"{kind}: Python, from beside the motion")  # 7e-5, as above
    assert_close(made.qd, qd, 2e-3, f"{kind}: velocities of Python")
    assert_close(q[-1], [0.9, -0.4, 0.7, 0.6, 0.4, -0.5], 0.02, "the springs bring it back, from 0.1 beside it")


def test_a_motion_that_was_changed_is_marked(chromium, tmp_path):
    """Change the drives after a while: the exported lines state that they differ."""
    with opened(chromium, kt.load("planar_2r").page().save(tmp_path / "page.html")) as page:
        page.keyboard.press("f")
        page.evaluate("kinetree.store.get('motion').extend(0.3); kinetree.player.seek(0.3)")
        assert "during the motion" not in texts(page)["The same in Python"]
        page.get_by_role("button", name="hold", exact=True).click()
        found = texts(page)
        assert "during the motion" in found["The same in Python"] and "during" in found["The same as an experiment"]
        page.get_by_role("button", name="Restart").click()
        assert "during the motion" not in texts(page)["The same in Python"]


@pytest.mark.parametrize("kind", ["cycloid", "cubic", "quintic", "trapezoid", "spline"])
def test_torques_are_repeated_outside_of_the_page(chromium, tmp_path, kind):
    """Compute the torques of a motion, and repeat them in Python and as the control of an experiment."""
    with opened(chromium, kt.load("planar_3r").page().save(tmp_path / "page.html")) as page:
        page.keyboard.press("i")
        page.evaluate(
            """(kind) => {
                const via = kind === "spline" ? [{ u: 0.8 / 1.5, q: [0.5, -0.4, 0.7] }] : [];
                kinetree.store.set({ inverse: { ...kinetree.store.get("inverse"), kind, duration: 1.5, via,
                    q0: [0.1, 0.2, 0.3], q1: [0.9, -0.4, 0.7] } });
            }""",
            kind,
        )
        found, tau = texts(page), np.array(page.evaluate(TORQUES)).T
    made = python_run(found["The same in Python"])
    assert_close(made["tau"], tau, 1e-10, f"{kind}: torques of Python")
    run = experiment_run(found["The same as an experiment"], tmp_path)
    assert_close(run["tau"][:-1], tau[:-1], 2e-4, f"{kind}: torques of the experiment")
    assert_close(run.q, made["q"], 1e-6, f"{kind}: motion of the experiment")


def test_other_modes_have_lines_that_run(chromium, tmp_path):
    """Run the lines of Python of Move, Understand, Build and Loops, and those of torques without gravity."""
    with opened(
        chromium, kt.load("puma560").page(q=[0.4, -0.6, 0.5, 0.7, 0.9, -0.3]).save(tmp_path / "p.html")
    ) as page:
        kinematics = python_run(texts(page)["The same in Python"])
        assert len(kinematics["solutions"].q) == 8
        page.get_by_role("button", name="Understand").click()
        assert python_run(texts(page)["The same in Python"])["tau"].shape == (6,)
        page.get_by_role("button", name="Build", exact=True).click()
        made = python_run(texts(page)["The same in Python"])
        arm = next(x for x in made.values() if isinstance(x, kt.System))
        q = np.array([0.4, -0.6, 0.5, 0.7, 0.9, -0.3])
        assert_close(arm.gravity_torque(q), kt.load("puma560").gravity_torque(q), 1e-10, "the arm of the table")
        page.keyboard.press("i")
        page.get_by_role("button", name="gravity", exact=True).click()
        found, tau = texts(page), np.array(page.evaluate(TORQUES)).T
        assert "The same as an experiment" not in found
        assert_close(python_run(found["The same in Python"])["tau"], tau, 1e-10, "torques without gravity")
    with opened(chromium, kt.load("four_bar").page().save(tmp_path / "b.html")) as page:
        page.get_by_role("button", name="Loops").click()
        text = texts(page)["The same in Python"].replace("turn.plot(", "# ")
        assert python_run(text)["turn"] is not None
