"""Units of all numbers that the panels of a page show, in a real browser."""

from __future__ import annotations

import pytest

import kinetree as kt
from browser import drawn, needs_browser, opened, until

pytestmark = [pytest.mark.slow, needs_browser]

PURE = {
    "condition", "damping ratio", "links", "manipulability", "runs", "tolerance", "bodies", "velocities", "kind",
    *(f"{what} {axis}" for what in ("axis", "quaternion") for axis in "xyzw"),
}  # fmt: skip
"""Names of numbers without a unit, and of texts."""
BARE = """() => {
    const seen = (x) => x.checkVisibility();
    const controls = [...document.querySelectorAll(".control:has(input.number)")].filter(seen);
    const rows = [...document.querySelectorAll("table.values tbody tr")].filter(seen);
    const unit = (row) => [...row.querySelectorAll(".unit")].some((x) => seen(x) && x.textContent);
    const heads = (row) => row.closest("table.lines")?.querySelectorAll("thead th:nth-child(n + 3)")
        || row.closest("section")?.querySelectorAll("h2") || [];
    const headed = (row) => heads(row).length > 0 && [...heads(row)].every((x) => /\\[.+\\]/.test(x.textContent));
    const named = (row) => /\\[.+\\]/.test(row.closest("tr.line")?.querySelector("th").textContent ?? "");
    const bare = (row) => !unit(row) && !headed(row) && !named(row);
    return [...controls, ...rows].filter(bare).map((row) => row.querySelector(".name, th").textContent);
}"""


@pytest.mark.parametrize("name", ["stanford", "four_bar", "tube_arm"])
def test_numbers_have_units(chromium, tmp_path, name):
    """Visit all modes, with and without a picked body, in degrees and radians: numbers without a unit are pure."""
    with opened(chromium, kt.load(name).page().save(tmp_path / "page.html")) as page:
        for mode in page.eval_on_selector_all(
            ".modes button:not([aria-disabled])", "all => all.map((x) => x.textContent)"
        ):
            page.get_by_role("button", name=mode, exact=True).click()
            for units, picked in (("deg", -1), ("rad", 0)):
                page.evaluate("([units, picked]) => kinetree.store.set({ units, picked })", [units, picked])
                drawn(page)
                assert set(page.evaluate(BARE)) <= PURE, (mode, units)
            if mode == "Simulate":
                for drive in ("torque", "hold", "none"):
                    page.get_by_role("button", name=drive, exact=True).click()
                    assert set(page.evaluate(BARE)) <= PURE, drive
            if mode == "Understand":
                page.get_by_role("button", name="accelerations", exact=True).click()
                assert page.locator(".left .unit", has_text="rad/s\u00b2").count()
                assert set(page.evaluate(BARE)) <= PURE
                page.get_by_role("button", name="forward", exact=True).click()
                until(page, "kinetree.store.get('recursion').way === 'forward'")
                assert set(page.evaluate(BARE)) <= PURE
        if name == "stanford":
            shown = page.eval_on_selector_all(
                ".panel .control:not([hidden]) .unit", "all => all.map((x) => x.textContent)"
            )
            assert shown == ["N m, N", "N m", "N m", "N", "N m", "N m", "N m"]
