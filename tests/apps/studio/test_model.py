"""Actions on tables: a mechanism of rows, other numbers for runs, the doctor; and structure in a real browser."""

from __future__ import annotations

import numpy as np
import pytest

import kinetree as kt
from browser import browser, needs_browser, served, typed, until
from kinetree.apps.studio.actions import ACTIONS
from kinetree.apps.studio.server import outcome, running
from kinetree.apps.studio.tabs import Folder, Studio
from kinetree.formats.toml_writer import write_toml
from tolerance import assert_close

ROWS = [
    {"joint": "revolute", "a": 0.3, "mass": 1.2, "com": [-0.15, 0, 0], "inertia": [1e-4, 9e-3, 9e-3, 0, 0, 0]},
    {"joint": "prismatic", "b": 0.1, "alpha": 1.1, "mass": 0.7, "com": [0, 0.05, 0], "inertia": [2e-3] * 3 + [0] * 3},
]  # fmt: skip


@pytest.fixture
def studio(tmp_path):
    """Return a studio with an empty folder."""
    return Studio(Folder.of(tmp_path))


def test_a_table_becomes_a_mechanism(studio):
    """Build a mechanism of rows: the tab has it, and the page gets its table, its functions and its coordinates."""
    found = ACTIONS["build"](studio, rows=ROWS, name="mine", gravity=[0, 0, -9.81], q=[0.3, -0.1])["data"]
    assert found["title"] == "mine" and found["first"]["q"].tolist() == [0.3, -0.1]
    assert [row["joint"] for row in found["table"]["rows"]] == ["revolute", "prismatic"]
    assert found["kernel"]["editable"]["kinds"] == ["inertia", "lengths", "rotations"]
    expected = kt.from_dh(ROWS).inverse_dynamics([0.3, -0.1], [0.5, 0.2], [1.0, -1.0])
    assert_close(studio.tab.shown().inverse_dynamics([0.3, -0.1], [0.5, 0.2], [1.0, -1.0]), expected, 0, "torques")


@pytest.mark.parametrize(
    ("action", "arguments", "message"),
    [
        ("build", {"rows": []}, "the table is []; expected a list of 1 to 64 rows"),
        ("build", {"rows": "R"}, "the table is 'R'; expected a list of 1 to 64 rows"),
        ("build", {"rows": [{"joint": "revolut"}]}, "row 1, joint: no joint 'revolut'; did you mean 'revolute'?"),
        ("build", {"rows": [{"joint": "revolute", "mass": -1}]}, "body 'link1': the mass is -1 kg"),
        ("build", {"rows": ROWS, "frames": 7}, "the frames are 7; expected a list of at most 64"),
        ("build", {"rows": ROWS, "q": ["x", 0]}, "the coordinates are ['x', 0]; expected 2 finite numbers"),
        ("doctor", {}, "no mechanism is open in this tab; open one first"),
    ],
)  # fmt: skip
def test_wrong_tables_are_one_sentence(studio, action, arguments, message):
    """Refuse tables that are none, unknown joints and impossible masses."""
    found = outcome(studio, action, arguments)
    assert found["error"].startswith(message), found


@pytest.mark.slow
def test_the_doctor_reports_in_words(studio):
    """Return findings on a four-bar, and on the text of a tree."""
    ACTIONS["open_library"](studio, name="four_bar")
    texts = [note["text"] for note in ACTIONS["doctor"](studio)["notes"]]
    assert any("hold by themselves" in text for text in texts)
    notes = ACTIONS["doctor"](studio, model=write_toml(kt.load("planar_2r").mechanism))["notes"]
    assert notes == [
        {"level": "note", "text": "there are no loops. The mechanism is a tree: every joint moves by itself."}
    ]


@needs_browser
@pytest.mark.slow
def test_a_robot_from_nothing(tmp_path):
    """Make a two-link arm from nothing, lengthen the chain, change joints and order, go back, and run it in Python."""
    with running(lambda: kt.load("planar_2r"), Folder.of(tmp_path)) as address, browser() as chromium:
        with served(chromium, address) as page:
            page.keyboard.press("b")
            page.get_by_role("button", name="New robot", exact=True).click()
            until(page, "kinetree.model.name === 'robot'")
            typed(page, "a of link1", "0.42")
            typed(page, "alpha of link1", "90")
            typed(page, "number of links", "4")
            until(page, "kinetree.model.bodies.length === 4")
            assert page.evaluate("kinetree.store.get('table').rows[0].a") == 0.42
            page.get_by_role("button", name="link2", exact=True).first.click()
            page.get_by_label("kind of the joint", exact=True).select_option("prismatic")
            until(page, "kinetree.model.joints[1].kind === 'prismatic'")
            page.get_by_role("button", name="Up", exact=True).click()
            until(page, "kinetree.model.joints[0].kind === 'prismatic'")
            page.get_by_role("button", name="link3", exact=True).first.click()
            page.get_by_role("button", name="Remove", exact=True).click()
            until(page, "kinetree.model.bodies.length === 3")
            page.get_by_role("button", name="Add a link", exact=True).click()
            until(page, "kinetree.model.bodies.length === 4")
            table = page.evaluate("kinetree.store.get('table')")
            keys = ("joint", "a", "alpha", "b", "theta", "mass", "com", "inertia")
            arm = kt.from_dh([{key: row[key] for key in keys} for row in table["rows"]], gravity=table["gravity"])
            q, qd, qdd = [0.2, -0.6, 0.4, 0.9], [0.3, 0.5, -0.2, 0.7], [0.1, -0.8, 0.6, 0.4]
            found = page.evaluate(
                "(x) => Array.from(kinetree.kernel.call('inverse_dynamics', x))", {"q": q, "qd": qd, "qdd": qdd}
            )
            tau = arm.inverse_dynamics(q, qd, qdd)
            assert_close(found, tau, 1e-12 * np.abs(tau).max(), "torques of the robot")
            for bodies, kind in ((3, "prismatic"), (4, "prismatic")):
                page.get_by_role("button", name="undo", exact=True).click()
                until(page, f"kinetree.model.bodies.length === {bodies} && kinetree.model.joints[0].kind === '{kind}'")
            page.get_by_role("button", name="redo", exact=True).click()
            until(page, "kinetree.model.bodies.length === 3")
            page.get_by_role("button", name="Ask the doctor", exact=True).click()
            until(page, "document.querySelector('.remarks').textContent.includes('The mechanism is a tree')")


@needs_browser
@pytest.mark.slow
def test_undo_leads_back_from_every_structure(tmp_path):
    """Fix the only joint, and make a chain too long to type numbers: undo goes back; other mechanisms begin anew."""
    with running(lambda: kt.load("pendulum"), Folder.of(tmp_path)) as address, browser() as chromium:
        with served(chromium, address) as page:
            page.keyboard.press("b")
            page.get_by_role("button", name="New robot", exact=True).click()
            until(page, "kinetree.model.name === 'robot'")
            typed(page, "number of links", "1")
            until(page, "kinetree.model.bodies.length === 1")
            page.get_by_label("kind of the joint", exact=True).select_option("fixed")
            until(page, "kinetree.model.joints[0].kind === 'fixed'")
            assert page.get_by_role("button", name="Play", exact=True).count() == 1
            page.get_by_role("button", name="undo", exact=True).click()
            until(page, "kinetree.model.joints[0].kind === 'revolute'")
            typed(page, "number of links", "25")
            until(page, "kinetree.model.bodies.length === 25")
            assert "cannot be changed here" in page.inner_text(".panel")
            assert page.get_by_label("mass of link1", exact=True).get_attribute("readonly") is not None
            page.get_by_role("button", name="Remove", exact=True).click()
            until(page, "kinetree.model.bodies.length === 24")
            page.get_by_role("button", name="undo", exact=True).click()
            until(page, "kinetree.model.bodies.length === 25")
            page.get_by_role("button", name="undo", exact=True).click()
            until(page, "kinetree.model.bodies.length === 1")
            page.keyboard.press("Control+o")
            arms = page.get_by_role("group", name="Arms and chains")
            arms.get_by_role("button").filter(has_text="planar_2r").click()
            until(page, "kinetree.model.name === 'planar_2r'")
            assert page.evaluate("kinetree.session.structures.past.length") == 0


@needs_browser
@pytest.mark.slow
def test_runs_in_python_follow_the_table(tmp_path):
    """Change a mass in the page and run in Python: the run is that of the changed mechanism."""
    rows = kt.load("planar_2r").mechanism
    with running(lambda: kt.load("planar_2r"), Folder.of(tmp_path)) as address, browser() as chromium:
        with served(chromium, address) as page:
            page.keyboard.press("b")
            page.get_by_role("button", name="link2", exact=True).first.click()
            typed(page, "mass of link2", "1.9")
            page.keyboard.press("Escape")
            page.evaluate("kinetree.store.set({ mode: 'Simulate' })")
            typed(page, "duration", "0.5")
            page.get_by_role("button", name="Run in Python", exact=True).click()
            until(page, "kinetree.store.get('motion')?.recorded || kinetree.store.get('motion')?.count > 20")
            q = np.array(page.evaluate("Array.from(kinetree.store.get('motion').q)")).reshape(-1, 2)
            t = np.array(page.evaluate("Array.from(kinetree.store.get('motion').t)"))
    heavy = kt.from_dh(
        [
            {"joint": "revolute", "mass": b.mass if i == 0 else 1.9, "com": b.com, "inertia": b.inertia, "a": 0.3 * i}
            for i, b in enumerate(rows.bodies)
        ],
        convention="modified",
        gravity=(0, -9.81, 0),
    )
    run = kt.simulate(heavy, [0, 0], times=t, rtol=1e-8)
    assert_close(q, run.q, 1e-6, "the run of the changed arm")
