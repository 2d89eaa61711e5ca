"""[Saha2013]: the cost of joints with one, two and three degrees of freedom, figures 19 and 20."""

from __future__ import annotations

from pathlib import Path

from ..analysis.cost.counting import Cost, cost, generic_robot, in_revolutes
from ..model.mechanism import Mechanism
from .entry import Check, Entry, Outcome, write_csv

CASES = {
    "(a) 1": ("revolute",),
    "(b) 2": ("universal",),
    "(c) 3": ("euler",),
    "(c) 3, quaternion": ("spherical",),
    "(d) 1, 2 and 3": ("revolute", "universal", "euler"),
}
"""Kinds of joints in the panels of the figures, by degrees of freedom; those of three may also use a quaternion."""
DEGREES = (6, 12, 18, 24, 30)
PER_JOINT = {"revolute": 1, "universal": 2, "euler": 3, "spherical": 3}


def chain(kinds: tuple[str, ...], degrees: int) -> Mechanism:
    """Return the generic chain of joints of these kinds in turn, with the given number of degrees of freedom."""
    return generic_robot(degrees * len(kinds) // sum(PER_JOINT[kind] for kind in kinds), kinds)


def figure(number: int, function: str, folder: Path) -> Outcome:
    """Return the counts by degrees of freedom, and check the paper's statement: larger joints cost less per freedom."""
    from ..view.counts import counts as draw

    robots = {label: [chain(kinds, n) for n in DEGREES] for label, kinds in CASES.items()}
    costs = {label: [cost(robot, function) for robot in made] for label, made in robots.items()}
    apart = {
        f"{label}, apart": [cost(in_revolutes(robot), function) for robot in robots[label]]
        for label, kinds in CASES.items()
        if set(kinds) & {"universal", "euler"}
    }
    headings = ("degrees of freedom of a joint", *(f"n = {n}" for n in DEGREES))
    rows = tuple((label, *map(str, values)) for label, values in (costs | apart).items())
    single = next(iter(costs.values()))
    checks = tuple(
        Check(
            f"joints of {label[4:]} degrees of freedom cost less than as many revolute ones",
            f"{_total(values[-1])} operations, {_total(single[-1])} for revolute joints, at n = {DEGREES[-1]}",
            all(_total(a) < _total(b) for a, b in zip(values, single, strict=True)),
        )
        for label, values in costs.items()
        if values is not single
    )
    panels = {
        f"({letter}) {what}": {label: [getattr(c, letter) for c in values] for label, values in costs.items()}
        for letter, what in (("M", "multiplications and divisions"), ("A", "additions and subtractions"))
    }
    files = (
        write_csv(folder / f"saha2013_figure_{number}.csv", headings, rows),
        draw(
            folder / f"saha2013_figure_{number}.png",
            DEGREES,
            panels,
            label="degrees of freedom n",
            legend="of each joint",
            heading=f"[Saha2013] figure {number}: {function.replace('_', ' ')}, by the joints' degrees of freedom",
        ),
    )
    notes = (
        "The paper's curves are pictures without numbers: only its statement about them is checked.",
        '"apart" is the same chain with each such joint written as revolute joints on massless bodies.',
    )
    return Outcome(checks, ((f"Figure {number}: {function}", (headings, *rows)),), files, notes)


def _total(c: Cost) -> int:
    return c.M + c.A


ENTRIES = (
    Entry(
        "saha2013-figure-19",
        "Saha2013",
        "cost of inverse dynamics by the joints' degrees of freedom",
        lambda folder: figure(19, "inverse_dynamics", folder),
    ),
    Entry(
        "saha2013-figure-20",
        "Saha2013",
        "cost of forward dynamics by the joints' degrees of freedom",
        lambda folder: figure(20, "forward_dynamics", folder),
    ),
)
