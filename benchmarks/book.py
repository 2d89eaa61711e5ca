"""The page of all benchmarks: one section per case, with its date and commit; sections not measured are kept."""

from __future__ import annotations

import re
from dataclasses import dataclass
from pathlib import Path

from report import Table, row

HEADING = re.compile(r"^## (.+)\n<!-- case: ([\w-]+) -->\n", re.MULTILINE)
INTRO = """\
# Benchmarks

Written by `./dev bench`, which measures every library side by side in one run; `./dev bench --only CASE` measures a
part and keeps the rest of this page. Each case checks that all contenders give the same results before it times them.
Contenders run in turn, round by round, after a warm-up. Figures are medians with quartiles in parentheses; a ratio is
the median of the rounds' ratios. A peer that is called from Python pays for the call: where that matters, a second
ratio has the cost of a call on a nearly empty model subtracted, measured in the same run.
"""


@dataclass(frozen=True)
class Picture:
    """A drawing in the page's folder of pictures, with a caption."""

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

    def markdown(self, case: str, measured: str, folder: str) -> str:
        """Return the section as part of the page; `folder` is that of the pictures, relative to the page."""
        shown = "\n\n".join(f"![{p.words}]({folder}/{p.file})" for p in self.pictures)
        parts = [
            f"## {self.title}\n<!-- case: {case} -->",
            f"**{self.headline}**",
            *([shown] if shown else []),
            *(table.markdown().rstrip() for table in self.tables),
            f"Measured {measured}.",
        ]
        return "\n\n".join(parts) + "\n"


def read_sections(page: Path) -> dict[str, str]:
    """Return the sections of a page by case, unchanged; {} if there is no page."""
    text = page.read_text() if page.exists() else ""
    found = list(HEADING.finditer(text))
    ends = [*(m.start() for m in found[1:]), len(text)][: len(found)]
    return {m.group(2): text[m.start() : end].rstrip() + "\n" for m, end in zip(found, ends, strict=True)}


def headlines(sections: dict[str, str]) -> list[tuple[str, str]]:
    """Return the title and the headline of every section."""
    out = []
    for text in sections.values():
        heading, bold = HEADING.match(text), re.search(r"^\*\*(.+)\*\*$", text, re.MULTILINE)
        if heading and bold:
            out.append((heading.group(1), bold.group(1)))
    return out


def page(facts: dict[str, str], sections: dict[str, str], order: list[str]) -> str:
    """Return the whole page: the machine and versions, the headlines, then the sections in order."""
    names = [*(n for n in order if n in sections), *(n for n in sections if n not in order)]
    chosen = {n: sections[n] for n in names}
    head = "\n".join(row(pair) for pair in (("the last run", ""), ("---", "---"), *facts.items()))
    lines = "\n".join(row(pair) for pair in (("case", "in short"), ("---", "---"), *headlines(chosen)))
    return "\n".join([INTRO, head, "", lines, "", *chosen.values()]).rstrip() + "\n"
