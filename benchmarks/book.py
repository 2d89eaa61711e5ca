"""The pages of all benchmarks: a summary, and chapters with a section per case; sections not measured are kept."""

from __future__ import annotations

import re
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path

from report import Table, row

HEADING = re.compile(r"^## (.+)\n<!-- case: ([\w-]+) -->\n", re.MULTILINE)
INTRO = """\
# Benchmarks

`./dev bench` measures Kinetree and other libraries side by side in one run and writes this page and
the tables behind it. Each case first checks that all contenders give the same results. They then run in
turn, round by round, after a warm-up. Figures are medians; the tables have the quartiles in parentheses.
A ratio is the median of the rounds' ratios. Where a call from Python costs a peer much, a second ratio
subtracts the cost of a call on a nearly empty model, measured in the same run.
"""


@dataclass(frozen=True)
class Chapter:
    """Cases that share a page: its file without suffix, its title, and the cases in order."""

    name: str
    title: str
    cases: tuple[str, ...]


@dataclass(frozen=True)
class Picture:
    """A drawing in the folder of the chapters, with a caption."""

    file: str
    words: str


@dataclass(frozen=True)
class Section:
    """The results of one case: a headline, tables and pictures; `failure` names a requirement that was not met."""

    title: str
    headline: str
    tables: tuple[Table, ...]
    pictures: tuple[Picture, ...] = ()
    failure: str = ""

    def markdown(self, case: str, measured: str) -> str:
        """Return the section as part of its chapter."""
        shown = "\n\n".join(f"![{p.words}]({p.file})" for p in self.pictures)
        parts = [
            f"## {self.title}\n<!-- case: {case} -->",
            f"**{self.headline}**",
            *([shown] if shown else []),
            *(table.markdown().rstrip() for table in self.tables),
            f"Measured {measured}.",
        ]
        return "\n\n".join(parts) + "\n"


def read_sections(folder: Path) -> dict[str, str]:
    """Return the sections of all chapters in a folder by case, unchanged; {} if there is none."""
    sections = {}
    for file in sorted(folder.glob("*.md")):
        text = file.read_text()
        found = list(HEADING.finditer(text))
        ends = [*(m.start() for m in found[1:]), len(text)][: len(found)]
        sections |= {m.group(2): text[m.start() : end].rstrip() + "\n" for m, end in zip(found, ends, strict=True)}
    return sections


def read_facts(summary: Path) -> dict[str, str]:
    """Return the conditions of the last run that a summary states."""
    rows = re.findall(r"^\| (\w[^|]*) \| (.+) \|$", summary.read_text().rpartition("## Conditions")[2], re.MULTILINE)
    return {label: text.replace("\\|", "|") for label, text in rows}


def headline(section: str) -> tuple[str, str]:
    """Return the title and the headline of a section."""
    heading, bold = HEADING.match(section), re.search(r"^\*\*(.+)\*\*$", section, re.MULTILINE)
    return (heading.group(1) if heading else "", bold.group(1) if bold else "")


def write_pages(out: Path, facts: dict[str, str], sections: dict[str, str], chapters: Sequence[Chapter]) -> None:
    """Write the summary to `out`, and the chapters to the folder of its name; other cases go to the last chapter."""
    folder = out.with_suffix("")
    folder.mkdir(exist_ok=True)
    known = {case for chapter in chapters for case in chapter.cases}
    parts = [INTRO]
    for chapter in chapters:
        others = [case for case in sections if case not in known] if chapter is chapters[-1] else []
        cases = [case for case in (*chapter.cases, *others) if case in sections]
        if not cases:
            continue
        page = f"{folder.name}/{chapter.name}.md"
        head = f"# {chapter.title}\n\nWritten by `./dev bench`; [summary](../{out.name}).\n"
        text = "\n".join([head, *(sections[case] for case in cases)])
        (folder / f"{chapter.name}.md").write_text(text.rstrip() + "\n")
        rows = [("case", "in short"), ("---", "---")]
        for title, words in (headline(sections[case]) for case in cases):
            rows.append((f"[{title}]({page}#{_anchor(title)})", words))
        parts += [f"## {chapter.title}\n", *map(row, rows), ""]
    parts += ["## Conditions\n", "The tables state the date, the commit and the machine of each case. The last run:\n"]
    parts += map(row, (("", ""), ("---", "---"), *facts.items()))
    out.write_text("\n".join(parts).rstrip() + "\n")


def _anchor(title: str) -> str:
    """Return the anchor that the documentation gives to a heading."""
    return re.sub(r"[-\s]+", "-", re.sub(r"[^\w\s-]", "", title).strip().lower())
