"""The page: sections that are measured again replace the old ones, all others are kept."""

from __future__ import annotations


def section(title: str, headline: str):
    """Return a section with a table and a picture."""
    from book import Picture, Section
    from report import Table

    table = Table("Times", ("who", "ns"), (("ours | theirs", "1.5 (1.4-1.7)"),), "What is compared.")
    return Section(title, headline, (table,), (Picture("speed.svg", "Speed over size"),))


def test_sections_survive_a_round_trip(tmp_path):
    """Write a page, read its sections back unchanged, and write the same page again."""
    from book import page, read_sections

    sections = {
        "second": section("Second case", "Twice as fast.").markdown("second", "today", "page"),
        "first": section("First case", "5 to 7 times as fast.").markdown("first", "yesterday", "page"),
    }
    file = tmp_path / "page.md"
    file.write_text(page({"processor": "of some kind"}, sections, ["first", "second"]))
    assert read_sections(file) == sections
    assert page({"processor": "of some kind"}, read_sections(file), ["first", "second"]) == file.read_text()


def test_page_has_headlines_in_the_order_of_cases(tmp_path):
    """List the cases in order, an unknown one last, with pictures, tables and dates."""
    from book import page

    names = ("gone", "second", "first")
    sections = {n: section(f"Case {n}", f"{n} is fast.").markdown(n, f"in the {n} run", "page") for n in names}
    text = page({"processor": "of some kind"}, sections, ["first", "second", "third"])
    lines = [f"| Case {n} | {n} is fast. |" for n in ("first", "second", "gone")]
    assert "\n".join(["| --- | --- |", *lines]) in text
    assert [line[8:] for line in text.splitlines() if line.startswith("## ")] == ["first", "second", "gone"]
    assert "| ours \\| theirs | 1.5 (1.4-1.7) |" in text
    assert "![Speed over size](page/speed.svg)" in text
    assert "Measured in the second run." in text


def test_a_page_without_sections_reads_as_none(tmp_path):
    """Read no section from a page of another kind, and none without a page."""
    from book import read_sections

    (tmp_path / "old.md").write_text("# Benchmarks\n\n## Batches\n\nsome text\n")
    assert read_sections(tmp_path / "old.md") == {}
    assert read_sections(tmp_path / "none.md") == {}


def test_pictures_are_the_same_for_the_same_curves(tmp_path):
    """Draw twice to the same bytes, and other curves to others."""
    from pictures import Curve, Panel, draw

    def drawn(name: str, y: list[float]) -> bytes:
        draw(tmp_path / name, [Panel("speed", "n", "ns", [Curve("ours", [1, 10, 100], y), Curve("peer", [1], [3.0])])])
        return (tmp_path / name).read_bytes()

    assert drawn("a.svg", [3.0, 2.0, 1.5]) == drawn("b.svg", [3.0, 2.0, 1.5])
    assert drawn("a.svg", [3.0, 2.0, 1.5]) != drawn("c.svg", [3.0, 2.0, 1.7])
