"""The page of the studio in a real browser: opening by dialog and by drop, runs in Python, saving into the folder."""

from __future__ import annotations

import threading
from dataclasses import replace

import numpy as np
import pytest

import kinetree as kt
from browser import drop, needs_browser, opened, served, typed, until
from kinetree import library
from kinetree.apps import lessons
from kinetree.apps.studio import tabs as opened_module
from kinetree.apps.studio.actions import ACTIONS
from kinetree.apps.studio.server import running
from kinetree.apps.studio.tabs import Folder
from kinetree.formats import SUFFIXES
from tolerance import assert_close
from uploaded_models import URDF

pytestmark = [needs_browser, pytest.mark.slow]


@pytest.fixture
def studio(tmp_path, chromium):
    """Yield a browser and the address of a studio whose folder is empty."""
    with running(lambda: kt.load("planar_2r"), Folder.of(tmp_path)) as address:
        yield chromium, address


def test_a_mechanism_is_chosen_from_the_library(studio):
    """Open the dialog, search over all that can be opened, choose a card; the address opens the same one again."""
    chromium, address = studio
    with served(chromium, address) as page:
        page.set_viewport_size({"width": 390, "height": 844})
        page.keyboard.press("Control+o")
        page.wait_for_selector(".card")
        page.wait_for_selector(".lessonrow")
        box = page.locator("dialog").bounding_box()
        assert box["x"] >= 0 and box["x"] + box["width"] <= 390  # whole on a phone
        page.set_viewport_size({"width": 1280, "height": 800})
        search = page.get_by_label("search mechanisms, lessons and files")
        search.fill("nothing of this kind")
        assert 'Nothing here has "nothing of this kind"' in page.inner_text("dialog")
        search.fill("linkages four")
        assert page.locator(".shelf:visible h3").all_inner_texts() == ["Linkages"]
        search.fill("lesson chaos")
        assert page.locator(".lessonrow:visible").count() == 1 and page.locator(".card:visible").count() == 0
        search.fill("stanford arms")
        assert page.locator(".card:visible").count() == 1
        assert page.locator(".shelf:visible h3").all_inner_texts() == ["Arms and chains"]
        search.press("Enter")
        until(page, "document.title === 'stanford'")
        assert page.locator("dialog").count() == 0
        assert page.url.endswith("/?open=library%2Fstanford")
        page.reload()
        page.wait_for_selector("body[data-ready]", state="attached")
        assert page.inner_text("h1") == "stanford"


def test_files_are_dropped(studio):
    """Drop a URDF with script in its names, a file with a fault, a motion and a picture; the page stays."""
    chromium, address = studio
    with served(chromium, address) as page:
        evil = "<img src=x onerror=alert(1)>"
        drop(page, "robot.urdf", URDF.format(name=evil.replace("<", "&lt;"), visual=""))
        until(page, "document.title.startsWith('<img')")
        assert page.inner_text("h1") == evil and page.locator("img").count() == 0
        drop(page, "bad.urdf", "<robot name='x'>")
        until(page, "document.querySelector('.message').textContent.startsWith('bad.urdf:1: ')")
        drop(page, "way.csv", "t,joint1\n0,0\n1,1\n")
        until(page, "document.querySelector('.message').textContent.startsWith('way.csv is a motion')")
        drop(page, "cat.png", "x")
        until(page, "document.querySelector('.message').textContent.startsWith('This is no model')")
        assert page.inner_text(".message").endswith(f"a file that ends with {', '.join(SUFFIXES)}.")
        drop(page, "rod.sdf", '<sdf version="1.9"><model name="rod of SDF"><link name="a"/></model></sdf>')
        until(page, "document.title === 'rod of SDF'")
        drop(page, "dh.toml", library.path("planar_3r").read_text())
        until(page, "document.title === 'planar_3r'")


def test_a_run_in_python_is_shown(studio):
    """Run by a method that the page does not have: its states are those of the library; then cancel a long one."""
    chromium, address = studio
    with served(chromium, address) as page:
        page.keyboard.press("f")
        until(page, "document.querySelectorAll('select[aria-label=method] option').length > 5")
        page.get_by_label("method", exact=True).select_option("rk4")
        assert page.get_by_label("time step", exact=True).last.input_value() == "0.001"
        assert not page.get_by_label("relative tolerance", exact=True).is_visible()
        page.get_by_label("method", exact=True).select_option("dop853")
        typed(page, "relative tolerance", "1e-10")
        typed(page, "most steps", "2.5")
        page.get_by_text("Type a whole number.").wait_for()
        typed(page, "most steps", "")
        typed(page, "duration", "0.5")
        page.get_by_role("button", name="Run in Python").click()
        until(page, "kinetree.store.get('motion').recorded === true")
        q = np.reshape(page.evaluate("Array.from(kinetree.store.get('motion').q)"), (-1, 2))
        run = kt.simulate(kt.load("planar_2r"), [0, 0], times=np.linspace(0, 0.5, 31), method="dop853", rtol=1e-10)
        assert_close(q, run.q, 0.0, "states")
        typed(page, "duration", "3600")
        page.get_by_label("method", exact=True).select_option("scipy")
        page.get_by_role("button", name="Run in Python").click()
        page.get_by_role("button", name="Cancel").wait_for()
        page.keyboard.press("Escape")
        page.get_by_role("button", name="Move", exact=True).click()  # the page goes on
        assert page.evaluate("kinetree.store.get('mode')") == "Move"
        page.keyboard.press("f")
        page.get_by_role("button", name="Cancel").click()
        page.get_by_text("Cancelled.").wait_for()


STOOL = """
[mechanism]
name = "stool"
[[body]]
name = "seat"
mass = 3.5
inertia = [0.11, 0.12, 0.17, 0, 0, 0]
[[joint]]
name = "root"
kind = "free"
parent = "ground"
child = "seat"
"""
LEGS = [(0.31, 0.02, -0.45), (-0.17, 0.26, -0.45), (-0.15, -0.27, -0.45)]


def test_contact_is_not_lost_silently(studio, tmp_path):
    """Let a stool stand on contacts of its own, and on a floor, in the page and in Python; read of too many."""
    chromium, address = studio
    feet = [f'[[frame]]\nname = "leg{k}"\nbody = "seat"\ntranslation = {list(x)}\n' for k, x in enumerate(LEGS)]
    (tmp_path / "stool.toml").write_text(STOOL + "".join(feet))
    plain = kt.load(tmp_path / "stool.toml").mechanism
    floor = kt.Surface("plane", placement=kt.Placement((0, 0, -0.45)))
    contacts = tuple(kt.Contact(f"tip{k}", "seat", placement=x, surface=floor) for k, x in enumerate(LEGS))
    touching = kt.System(replace(plain, name="standing", contacts=contacts))
    kt.save(touching, tmp_path / "standing.toml")
    with opened(chromium, touching.page().save(tmp_path / "standing.html"), after="#mode=Simulate") as page:
        assert page.locator(".missing").count() == 0
        assert page.get_by_label("contact of tip0, tip1, tip2").is_checked()
        page.evaluate("kinetree.store.get('motion').extend(0.25, { patience: 5000 })")
        assert_close(page.evaluate("kinetree.store.get('motion').state(0.25).q[2]"), 0.0, 1e-9, "it stands in the page")
    many = tuple(replace(contacts[k % 3], name=f"tip{k}") for k in range(25))
    crowded = kt.System(replace(plain, name="crowded", contacts=many))
    with opened(chromium, crowded.page().save(tmp_path / "crowded.html"), after="#mode=Simulate") as page:
        said = page.inner_text(".missing")
        assert said.startswith("This mechanism has contacts: tip0, tip1, tip2, tip3, tip4 and 20 more. The page")
        assert "kt.simulate in Python computes them" in said

    def height(page) -> float:
        page.evaluate("kinetree.store.set({ motion: null })")
        typed(page, "duration", "0.25")
        page.get_by_role("button", name="Run in Python").click()
        until(page, "kinetree.store.get('motion')?.recorded === true")
        return page.evaluate("kinetree.store.get('motion').state(0.25).q[2]")

    with served(chromium, f"{address}&open=folder%2Fstanding.toml#mode=Simulate") as page:
        assert_close(height(page), 0.0, 1e-9, "it stands on its contacts")
    with served(chromium, f"{address}&open=folder%2Fstool.toml#mode=Simulate") as page:
        assert_close(height(page), 0.0, 1e-9, "it stands on the floor")
        page.get_by_label("ground under leg0, leg1, leg2").uncheck()
        assert_close(height(page), -9.81 * 0.25**2 / 2, 1e-6, "it falls")
    with served(chromium, f"{address}#mode=Simulate") as page:
        assert page.locator(".missing").count() == 0


def test_a_cloud_is_computed_in_python(studio):
    """Compute a cloud of runs in Python: its first run is that of the library, and its bands are charts."""
    chromium, address = studio
    with served(chromium, f"{address}#mode=Simulate") as page:
        typed(page, "number of runs", "40")
        typed(page, "duration of the runs", "0.5")
        page.get_by_role("button", name="Cloud in Python", exact=True).click()
        until(page, "kinetree.part.cloud()?.total === 40")
        points = np.reshape(page.evaluate("Array.from(kinetree.part.cloud().points)"), (40, 61, 3))
        arm = kt.load("planar_2r")
        run = kt.simulate(arm, [0, 0], times=np.linspace(0, 0.5, 61), dt=1e-3)
        assert_close(points[0], arm.pose(run.q, "tool")[:, :3, 3], 1e-7, "path of the first run, in single precision")
        assert np.ptp(points[:, -1], axis=0)[:2].min() > 0.001
        titles = page.eval_on_selector_all(".tabs button", "all => all.map((x) => x.textContent)")
        assert "cloud of tool" in titles and "cloud: position" in titles


def test_the_page_is_saved_into_the_folder_and_opened(studio, tmp_path):
    """Save the page in a state: it opens from disk, without a network, in that state, and has no token."""
    chromium, address = studio
    with served(chromium, address) as page:
        page.get_by_label("joint2", exact=True).fill("-37.5")
        page.get_by_label("joint2", exact=True).press("Enter")
        page.locator(".stage").focus()
        page.keyboard.press("s")
        page.get_by_label("name of the file in the folder").fill("../mine")
        page.get_by_role("button", name="Page", exact=True).click()
        page.get_by_text("is not the name of a file in the folder").wait_for()
        page.get_by_label("name of the file in the folder").fill("mine")
        for button in ("Page", "Picture"):
            page.get_by_role("button", name=button, exact=True).click()
            page.get_by_text("Saved as").wait_for()
        page.get_by_role("button", name="Page", exact=True).click()
        page.get_by_text("exists already").wait_for()
    assert sorted(p.name for p in tmp_path.iterdir()) == ["mine.html", "mine.png"]
    text = (tmp_path / "mine.html").read_text()
    token = address.partition("token=")[2]
    assert token not in text and "connect-src" not in text and len(text) < 300_000
    with opened(chromium, tmp_path / "mine.html") as page:
        assert page.evaluate("Array.from(kinetree.store.get('q'))") == [0.0, np.radians(-37.5)]
        assert page.evaluate("kinetree.server") is None


def test_tabs_work_independently(studio):
    """Open two tabs with two mechanisms: calls of each are of its own; a call of a tab ends with an error."""
    chromium, address = studio
    with served(chromium, address) as one, served(chromium, f"{address}&open=library%2Fplanar_3r") as two:
        count = "() => kinetree.server.call('page_file').then((x) => x.text.length)"
        sizes = [page.evaluate(count) for page in (one, two)]
        assert sizes[0] != sizes[1]
        refused = "() => kinetree.server.call('open_library', { name: 'none' }).catch((error) => error.message)"
        assert one.evaluate(refused).startswith("no library mechanism 'none'")
        assert two.inner_text("h1") == "planar_3r" and one.inner_text("h1") == "planar_2r"


def test_a_page_tells_that_its_studio_has_ended(tmp_path, chromium):
    """End the studio while its page is open."""
    with running(lambda: kt.load("planar_2r"), Folder.of(tmp_path)) as address:
        context = chromium.new_context()
        page = context.new_page()
        page.goto(address)
        page.wait_for_selector("body[data-ready]", state="attached")
        page.evaluate("() => kinetree.server.call('files')")
    said = page.evaluate("() => kinetree.server.call('files').catch((error) => error.message)")
    assert said.startswith("The studio has ended, or cannot be reached")
    context.close()


def test_a_lesson_is_taken_and_left(studio):
    """Choose a lesson, answer its first question, reload it, and come back to the mechanism and state before it."""
    chromium, address = studio
    with served(chromium, address) as page:
        page.keyboard.press("k")
        typed(page, "joint1", "31.5")
        page.locator(".stage").focus()
        page.keyboard.press("Control+o")
        page.wait_for_selector(".lessonrow")
        titles = page.eval_on_selector_all(".lessonrow b", "all => all.map((x) => x.textContent)")
        assert titles == [lessons.find(name).title for name in lessons.names()]
        page.get_by_role("button").filter(has_text=titles[0]).click()
        until(page, f"document.title === {titles[0]!r}")
        page.get_by_role("button", name="Show the joint axis").click()
        typed(page, "your answer", "0.5")
        assert page.inner_text(".reply").startswith("Right: 0.5 m.")
        page.get_by_role("button", name="leave the lesson").click()
        until(page, "document.title === 'planar_2r'")
        assert page.locator(".lesson").count() == 0 and page.evaluate("kinetree.store.get('mode')") == "Move"
        assert page.evaluate("Array.from(kinetree.store.get('q'))") == [np.radians(31.5), 0.0]
        assert page.evaluate("() => kinetree.server.call('page_file').then((x) => x.text.includes('planar_2r'))")
        page.goto(f"{address}&open=lesson%2F{lessons.names()[0]}")
        page.wait_for_selector(".lessonbody")
        page.get_by_role("button", name="leave the lesson").click()
        until(page, f"document.title === {lessons.find(lessons.names()[0]).mechanism!r}")


def held_up(monkeypatch):
    """Let the functions of pages wait for an event, until which cancelling is tried; return it."""
    gate, make = threading.Event(), opened_module.system_data

    def slow(system, *, progress, **options):
        while not gate.wait(0.02):
            progress(0.25)
        return make(system, progress=progress, **options)

    monkeypatch.setattr(opened_module, "system_data", slow)
    return gate


def test_opening_is_cancelled_and_does_not_queue(studio, monkeypatch):
    """Cancel a mechanism that takes long to open, use the page meanwhile, and choose three: the last one is shown."""
    chromium, address = studio
    with served(chromium, address) as page:
        gate = held_up(monkeypatch)
        names = []
        library_of = ACTIONS["open_library"]
        monkeypatch.setitem(
            ACTIONS, "open_library", lambda studio, name: names.append(name) or library_of(studio, name)
        )

        def choose(name: str) -> None:
            page.keyboard.press("Control+o")
            page.wait_for_selector(".card")
            page.locator(".card", has_text=name).first.click()

        choose("stanford")
        page.locator("dialog .waiting", has_text="Opening stanford: computing its functions, 25 %").wait_for()
        page.get_by_role("button", name="Close", exact=True).click()
        page.locator(".stagebox .waiting").wait_for()
        page.locator(".stage").focus()
        page.keyboard.press("k")
        typed(page, "joint1", "12.5")  # the page goes on
        assert page.evaluate("kinetree.store.get('q')[0]") == np.radians(12.5)
        page.locator(".stagebox .waiting button").click()
        page.wait_for_selector(".waiting", state="detached")
        assert page.inner_text("h1") == "planar_2r"
        page.locator(".stage").focus()
        for name in ("stanford", "puma560", "planar_3r"):
            choose(name)
            page.locator("dialog .waiting", has_text=name).wait_for()
            page.get_by_role("button", name="Close", exact=True).click()
        gate.set()
        until(page, "document.title === 'planar_3r'")
        assert names == ["stanford", "stanford", "puma560", "planar_3r"]
        assert page.evaluate("() => kinetree.server.call('page_file').then((x) => x.text.includes('<title>planar_3r'))")
        gate.clear()
        page.get_by_role("button", name="Build", exact=True).click()
        for _ in range(3):
            page.get_by_role("button", name="Add a link", exact=True).click()
        page.locator(".stagebox .waiting", has_text="the changed mechanism").wait_for()
        gate.set()
        until(page, "kinetree.model.bodies.length === 4")
        assert page.locator(".waiting").count() == 0


def test_a_link_has_no_token(studio):
    """Open a link to a state in a browser that has the studio open, and in one that has not."""
    chromium, address = studio
    token = address.partition("token=")[2]
    with served(chromium, f"{address}&open=library%2Fplanar_3r") as page:
        page.keyboard.press("k")
        typed(page, "joint2", "-37.5")
        page.locator(".stage").focus()
        page.keyboard.press("s")
        link = page.get_by_label("Link to this state").input_value()
        assert token not in link and "token" not in link
        page.goto("about:blank")
        page.goto(link)
        page.wait_for_selector("body[data-ready]", state="attached")
        assert page.inner_text("h1") == "planar_3r"
        assert page.evaluate("Array.from(kinetree.store.get('q'))") == [0.0, np.radians(-37.5), 0.0]
    context = chromium.new_context()
    page = context.new_page()
    page.goto(link)
    assert "Open the address that kinetree studio printed in the terminal" in " ".join(page.inner_text("p").split())
    context.close()


def test_the_dialogs_of_the_studio_are_accessible(studio):
    """Look for serious violations of the rules of accessibility in the dialogs and the panel of runs."""
    axe = pytest.importorskip("axe_playwright_python.sync_playwright")
    chromium, address = studio
    with served(chromium, address) as page:
        for theme in ("light", "dark", "projector"):
            page.evaluate("(theme) => kinetree.store.set({ theme })", theme)
            for key, part in (("Control+o", ".card"), ("s", "dialog"), ("f", "select[aria-label=method]")):
                page.locator(".stage").focus()
                page.keyboard.press(key)
                page.wait_for_selector(part)
                found = axe.Axe().run(page).response["violations"]
                assert [(x["id"], theme, key) for x in found if x["impact"] in ("serious", "critical")] == []
                page.keyboard.press("Escape")


def test_the_studio_greets_with_a_swinging_arm(chromium, tmp_path):
    """Open the studio as the command line does: the arm swings, Space pauses it, a reload keeps what the reader did."""
    with running(lambda: kt.load("puma560"), Folder.of(tmp_path)) as address:
        with served(chromium, f"{address}#welcome") as page:
            until(page, "kinetree.store.get('time') > 0.4")
            assert page.evaluate("kinetree.store.get('mode')") == "Simulate"
            assert "Drag a link of the arm" in page.inner_text(".message")
            spread = page.evaluate("""() => {
                const { q, count } = kinetree.store.get("motion");
                const first = Array.from({ length: count }, (_, k) => q[6 * k]);
                return Math.max(...first) - Math.min(...first);
            }""")
            assert 0.05 < spread < 1.5, "it swings, and does not fall"
            page.keyboard.press(" ")
            assert not page.evaluate("kinetree.store.get('playing')")
            page.get_by_role("button", name="Move", exact=True).click()
            page.wait_for_timeout(600)
            page.reload()
            until(page, "window.kinetree?.store.get('mode') === 'Move'")
            assert not page.evaluate("kinetree.store.get('playing')")


def test_panels_fold(studio):
    """Fold a section by its heading, and find it folded later; the projector theme has thick curves."""
    chromium, address = studio
    with served(chromium, f"{address}#mode=Move") as page:
        heading = page.get_by_role("button", name="fold Frame")
        heading.click()
        assert heading.get_attribute("aria-expanded") == "false"
        assert not page.get_by_label("x of the frame", exact=True).is_visible()
        page.get_by_role("button", name="Simulate", exact=True).click()
        page.get_by_role("button", name="Move", exact=True).click()
        assert not page.get_by_label("x of the frame", exact=True).is_visible()
        heading.focus()
        page.keyboard.press("Enter")
        assert page.get_by_label("x of the frame", exact=True).is_visible()
        assert page.evaluate("kinetree.stage.palette.stroke") == 1
        page.evaluate("kinetree.store.set({ theme: 'projector' })")
        assert page.evaluate("kinetree.stage.palette.stroke") > 2
        wide = page.locator(".stage").bounding_box()["width"]
        page.get_by_role("button", name="hide the panel").click()
        page.get_by_role("button", name="hide the inspector").click()
        assert page.locator(".stage").bounding_box()["width"] == 1280
        page.get_by_role("button", name="hide the panel").click()
        page.get_by_role("button", name="hide the inspector").click()
        assert page.locator(".stage").bounding_box()["width"] == wide
