"""Diagnosis: the findings about loops at a position, as data and as text."""

from __future__ import annotations

import textwrap
from dataclasses import dataclass

import numpy as np

from ..._support.tables import Displayed, Table
from ...algebra.scalars import Numbers
from ..joint_entries import some
from .kinematics import Gap, millimetres_and_degrees

LEVELS = ("wrong", "caution", "note")
"""Levels of findings: the mechanism does not work, it works with restrictions, and information."""


@dataclass(frozen=True)
class Finding:
    """One finding: its level, a title, a description, and advice."""

    level: str
    title: str
    text: str
    advice: str = ""


@dataclass(frozen=True, repr=False)
class Diagnosis(Displayed):
    """The state of the loops at a position.

    `given` is the position given by the user, `gaps` its gaps by loop, and `q` the closed position that was examined.
    Mobility is `counted` (degrees of freedom of the joints less equations, by Gruebler and Kutzbach), measured at this
    instant (`mobility`, nv - rank J), and of finite motions (`lasting`). `closeness` is the weakest hold of the
    loops: about 1 at generic positions, and 0 at singular ones. `redundant` and `unclear` name equations as (loop,
    direction): those that follow from others, and those whose multipliers are not unique. `positions` is the number of
    degrees of freedom of position, which exceeds the mobility where equations restrict velocities alone, as rolling
    does. If the loops close nowhere (`closable` is false), nothing is measured.
    """

    mechanism: str
    given: Numbers
    q: Numbers
    closed: bool
    gaps: tuple[Gap, ...]
    nv: int
    equations: int
    rank: int
    lasting: int
    leads: tuple[str, ...]
    closeness: float
    redundant: tuple[tuple[str, str], ...]
    unclear: tuple[tuple[str, str], ...]
    findings: tuple[Finding, ...]
    closable: bool = True
    positions: int | None = None

    @property
    def ok(self) -> bool:
        """Whether the loops close, and the mechanism moves."""
        return not any(finding.level == "wrong" for finding in self.findings)

    @property
    def counted(self) -> int:
        """The counted mobility: degrees of freedom of the joints less equations of the loops."""
        return self.nv - self.equations

    @property
    def mobility(self) -> int | None:
        """The mobility measured at this instant: nv - rank J, or None if the loops do not close."""
        return self.nv - self.rank if self.closable else None

    @property
    def verdict(self) -> str:
        """The state of the mechanism on one line."""
        if not self.ok:
            titles = [finding.title for finding in self.findings if finding.level == "wrong"]
            return f"{self.mechanism}: {'; '.join(titles)}."
        cautions = [finding.title for finding in self.findings if finding.level == "caution"]
        closed = f"{'closed' if self.closed else 'closes'}, " if self.equations else ""
        moves = f"{closed}mobility {self.mobility}"
        rest = f"; caution: {'; '.join(cautions)}." if cautions else ", nothing is wrong."
        return f"{self.mechanism}: {moves}{rest}"

    def facts(self) -> dict[str, str]:
        """Return the numbers of the report by name."""
        said = len(self.redundant)
        counted = f"counted {self.nv} - {self.equations} = {self.counted}"
        again = f": {said} of the equations {'is' if said == 1 else 'are'} redundant" if said else ""
        largest = millimetres_and_degrees(*np.max([(0.0, 0.0), *((g.distance, g.angle) for g in self.gaps)], axis=0))
        if not self.equations:
            return {"mobility": f"{self.nv}, that of the joints"}
        if not self.closable:
            return {"position": f"open by up to {largest}", "mobility": counted}
        if self.positions is not None and self.positions != self.mobility:
            again += f"; {self.positions} of positions"
        return {
            "position": f"closed to {largest}" if self.closed else f"open by up to {largest}",
            "mobility": f"measured {self.mobility} (nv {self.nv} - rank {self.rank}), {counted}{again}",
            "leads": some(self.leads, ", "),
            "weakest hold": f"{self.closeness:.2g} of its usual value nearby (0 is singular)" if self.lasting else "-",
        }

    def as_dict(self) -> dict[str, object]:
        """Return everything as plain lists, numbers and texts, for JSON."""
        return {
            "mechanism": self.mechanism,
            "ok": self.ok,
            "verdict": self.verdict,
            "given": self.given.tolist(),
            "q": self.q.tolist(),
            "closed": self.closed,
            "gaps": [{"loop": g.loop, "distance": g.distance, "angle": g.angle} for g in self.gaps],
            "mobility": self.mobility,
            "mobility_counted": self.counted,
            "mobility_lasting": self.lasting,
            "mobility_of_positions": self.positions,
            "rank": self.rank,
            "leads": list(self.leads),
            "closeness": self.closeness,
            "redundant": [list(pair) for pair in self.redundant],
            "unclear": [list(pair) for pair in self.unclear],
            "findings": [vars(finding) for finding in self.findings],
        }

    def display(self) -> list[str | Table]:
        """Return the verdict, the facts, and the findings."""
        findings = tuple((f.level, f.title, f.text, f.advice) for f in self.findings)
        facts = [Table(("", ""), tuple(self.facts().items()))]
        return [self.verdict, *facts, *([Table(("", "finding", "meaning", "advice"), findings)] if findings else [])]

    def __str__(self) -> str:
        """Return the report, with long texts in paragraphs."""
        lines = [self.verdict, ""] + [f"  {label:<14}{text}" for label, text in self.facts().items()]
        for finding in self.findings:
            lines += ["", f"{finding.level}: {finding.title}"]
            lines += _wrapped(finding.text, "  ") + (_wrapped(finding.advice, "  -> ") if finding.advice else [])
        return "\n".join(lines)


def _wrapped(text: str, head: str) -> list[str]:
    return textwrap.wrap(text, 110, initial_indent=head, subsequent_indent=" " * len(head), break_on_hyphens=False)
