"""Pages of lessons in a real browser: steps set the page, and its own functions give the library's answers."""

from __future__ import annotations

import numpy as np
import pytest

import everyday
import kinetree as kt
from browser import needs_browser, opened
from kinetree.apps.lessons import find, names
from kinetree.apps.lessons.answers import answers
from kinetree.page.file import ENTRY, LESSON_ENTRY, bundle
from tolerance import assert_close

STEPS = ".dots button"


def typed(page, text: str) -> str:
    """Type an answer, and return what the page says to it."""
    box = page.get_by_label("your answer")
    box.fill(text)
    box.press("Enter")
    return page.inner_text(".reply")


@everyday.long
@needs_browser
def test_a_lesson_guides(chromium, tmp_path):
    """Set the page by a button, type wrong and right answers, in both units, go on, and return by a link."""
    kt.lesson("pendulum", tmp_path / "pendulum.html")
    path = tmp_path / "pendulum.html"
    with opened(chromium, path) as page:
        page.get_by_role("button", name="Show the joint axis").click()
        assert page.evaluate("kinetree.store.get('q')[0]") == pytest.approx(np.pi / 6, abs=1e-12)
        assert "-0.8660" in page.inner_text(".readings")
        assert "Type a number" in typed(page, "half")
        assert "Not yet: this is too small." in typed(page, "0.4")
        assert "The size is right, the sign is not." in typed(page, "-0.5")
        assert "Right: 0.5 m." in typed(page, "0.5")
        assert page.locator(".dots .solved").count() == 1
        page.locator(STEPS).nth(5).click()
        page.get_by_role("button", name="Release the rod").click()
        assert page.evaluate("kinetree.store.get('mode')") == "Simulate"
        assert page.evaluate("kinetree.store.get('motion').end") == pytest.approx(4.0, abs=1e-9)
        assert "Right: 310.8 deg/s" in typed(page, "311")
        page.evaluate("document.activeElement.blur()")
        page.keyboard.press("u")
        assert "Right: 5.425 rad/s" in typed(page, "5.42")
        page.evaluate("document.activeElement.blur()")
        page.keyboard.press(".")
        assert page.inner_text(".lessonbody h2").startswith("7.")
        page.evaluate("document.activeElement.blur()")
        page.keyboard.press("s")
        link = page.input_value("dialog textarea >> nth=0")
    with opened(chromium, path, after="#" + link.partition("#")[2], size=(390, 800)) as page:
        assert page.inner_text(".lessonbody h2").startswith("7.")
        assert page.locator(".dots .solved").count() == 2
        page.get_by_role("button", name="inspector", exact=True).last.click()
        assert page.locator(".inspector").is_visible() and not page.locator(".lessonbody").is_visible()


def test_other_pages_have_no_lessons(tmp_path):
    """Find the column of steps in the script of lessons, not in that of other pages, and refuse other names."""
    assert "lessonbody" in bundle(LESSON_ENTRY) and "lessonbody" not in bundle(ENTRY)
    with pytest.raises(kt.InputError, match=r"'a.txt' is not a web page"):
        kt.lesson("pendulum", tmp_path / "a.txt")


@pytest.mark.slow
@needs_browser
@pytest.mark.parametrize("name", names())
def test_every_step_works(chromium, tmp_path, name):
    """Press every button and read every answer: the page's numbers are the library's, and all formulas are drawn."""
    kt.lesson(name, tmp_path / "lesson.html")
    lesson = find(name)
    expected = answers(lesson, kt.load(lesson.mechanism))
    with opened(chromium, tmp_path / "lesson.html") as page:
        found = page.evaluate("kinetree.lessonAnswers()")
        for k, (right, made) in enumerate(zip(expected, found, strict=True)):
            assert right is not None
            assert_close(made, right, 1e-9 * abs(right), f"{name}, step {k + 1}")
        for k, step in enumerate(lesson.steps):
            page.locator(STEPS).nth(k).click()
            page.locator("button.do").click()
            wanted = np.atleast_1d(step.setting.get("plot", [])).tolist()
            for _ in range(600):  # turns of loops are computed in slices
                if sorted(page.evaluate("kinetree.plots.chosen")) == sorted(wanted) or not wanted:
                    break
                page.wait_for_timeout(50)
            else:
                raise AssertionError(f"{name}, step {k + 1}: {wanted} is not plotted")
            page.evaluate("kinetree.player.play(false)")
            assert page.evaluate("kinetree.store.get('mode')") == step.setting["mode"]
            assert page.inner_text(".message") == ""
            assert page.locator(".lessonbody .unknown").count() == 0
            shown = page.eval_on_selector_all(".readings [data-value]", "all => all.map((x) => x.dataset.value)")
            assert len(shown) == len(step.readings) and all(np.isfinite(float(x)) for x in shown)
            assert "Right" in typed(
                page, repr(expected[k] * (180 / np.pi if page.inner_text(".answer .unit").startswith("deg") else 1.0))
            )
        assert page.locator(".dots .solved").count() == len(lesson.steps)


@pytest.mark.slow
@needs_browser
@pytest.mark.parametrize("size", [(1280, 800), (390, 800)])
def test_lessons_are_accessible(chromium, tmp_path, size):
    """Look for violations of the rules of accessibility that are serious or worse, on every step and in all themes."""
    axe = pytest.importorskip("axe_playwright_python.sync_playwright")
    kt.lesson("pendulum", tmp_path / "lesson.html")
    with opened(chromium, tmp_path / "lesson.html", size=size) as page:
        for theme in ("light", "dark", "projector"):
            page.evaluate("(theme) => kinetree.store.set({ theme })", theme)
            for k in (0, 2, 5):
                page.locator(STEPS).nth(k).click()
                typed(page, "1")
                found = axe.Axe().run(page).response["violations"]
                assert [(x["id"], theme, k) for x in found if x["impact"] in ("serious", "critical")] == []
