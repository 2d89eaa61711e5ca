"""The pages: sections that are measured again replace the old ones, all others are kept."""

from __future__ import annotations


def section(title: str, headline: str):
    """Return a section with a table and a picture."""
    from book import Picture, Section
    from report import Table

    table = Table("Times", ("who", "ns"), (("ours | theirs", "1.5 (1.4-1.7)"),), "What is compared.")
    return Section(title, headline, (table,), (Picture("speed.svg", "Speed over size"),))


def chapters():
    """Return two chapters."""
    from book import Chapter

    return Chapter("fast", "Fast cases", ("first", "second")), Chapter("rest", "Further cases", ("third",))


def test_sections_survive_a_round_trip(tmp_path):
    """Write pages, read their sections back unchanged, and write the same pages again."""
    from book import read_sections, write_pages

    sections = {
        "second": section("Second case", "Twice as fast.").markdown("second", "today"),
        "third": section("Third case", "5 to 7 times as fast.").markdown("third", "yesterday"),
    }
    write_pages(tmp_path / "page.md", {"processor": "of some kind"}, sections, chapters())
    files = sorted(tmp_path.rglob("*.md"))
    texts = [file.read_text() for file in files]
    assert {file.name for file in files} == {"page.md", "fast.md", "rest.md"}
    assert read_sections(tmp_path / "page") == sections
    write_pages(tmp_path / "page.md", {"processor": "of some kind"}, read_sections(tmp_path / "page"), chapters())
    assert [file.read_text() for file in files] == texts


def test_cases_of_another_machine_are_taken(tmp_path, capsys):
    """Take a case that another machine measured: it replaces the old one, and conditions and other cases stay."""
    from book import read_facts, read_sections, write_pages
    from run import CHAPTERS, main

    facts = {"processor": "one | another", "run": "one thread"}
    old = {x: section(f"Case {x}", "Slow.").markdown(x, "here, long ago") for x in ("gpu", "webassembly")}
    new = {"gpu": section("Case gpu", "Fast.").markdown("gpu", "there, today")}
    write_pages(tmp_path / "here.md", facts, old, CHAPTERS)
    write_pages(tmp_path / "there.md", {"processor": "a third one"}, new, CHAPTERS)
    assert main(["--take", str(tmp_path / "there"), "--out", str(tmp_path / "here.md")]) == 0
    assert capsys.readouterr().out == f"taken from {tmp_path / 'there'}: gpu\n"
    assert read_sections(tmp_path / "here") == old | new
    assert read_facts(tmp_path / "here.md") == facts


def test_pages_have_the_cases_in_order(tmp_path):
    """Read headlines in the summary and sections in chapters, in the order of cases, an unknown one last."""
    from book import write_pages

    names = ("gone", "third", "second", "first")
    sections = {n: section(f"Case: {n}", f"{n} is fast.").markdown(n, f"in the {n} run") for n in names}
    write_pages(tmp_path / "page.md", {"processor": "of some kind"}, sections, chapters())
    summary = (tmp_path / "page.md").read_text()
    lines = [
        f"| [Case: {n}](page/{page}.md#case-{n}) | {n} is fast. |"
        for page, cases in (("fast", ("first", "second")), ("rest", ("third", "gone")))
        for n in cases
    ]
    assert [line for line in summary.splitlines() if "[Case" in line] == lines
    assert "| processor | of some kind |" in summary
    text = (tmp_path / "page" / "rest.md").read_text()
    assert [line[9:] for line in text.splitlines() if line.startswith("## ")] == ["third", "gone"]
    assert "| ours \\| theirs | 1.5 (1.4-1.7) |" in text
    assert "![Speed over size](speed.svg)" in text
    assert "Measured in the third run." in text


def test_every_case_is_in_one_chapter():
    """Find every case of the harness in exactly one chapter."""
    from run import CASES, CHAPTERS

    assert sorted(case for chapter in CHAPTERS for case in chapter.cases) == sorted(CASES)


def test_pages_without_sections_read_as_none(tmp_path):
    """Read no section from a page of another kind, and none without a folder."""
    from book import read_sections

    (tmp_path / "old.md").write_text("# Benchmarks\n\n## Batches\n\nsome text\n")
    assert read_sections(tmp_path) == {}
    assert read_sections(tmp_path / "none") == {}


def test_pictures_are_the_same_for_the_same_curves(tmp_path):
    """Draw twice to the same bytes, and other curves to others."""
    from pictures import Curve, Panel, draw

    def drawn(name: str, y: list[float]) -> bytes:
        draw(tmp_path / name, [Panel("speed", "n", "ns", [Curve("ours", [1, 10, 100], y), Curve("peer", [1], [3.0])])])
        return (tmp_path / name).read_bytes()

    assert drawn("a.svg", [3.0, 2.0, 1.5]) == drawn("b.svg", [3.0, 2.0, 1.5])
    assert drawn("a.svg", [3.0, 2.0, 1.5]) != drawn("c.svg", [3.0, 2.0, 1.7])
