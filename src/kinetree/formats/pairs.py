"""Mechanisms of pairs without a chosen tree: the rings are cut, and a report states which pairs, and why."""

from __future__ import annotations

from collections.abc import Callable, Collection, Iterable, Mapping, Sequence
from dataclasses import replace
from typing import Any

from ..errors import InputError, unknown_name
from ..model import (
    Body,
    Coupling,
    ForceElement,
    Frame,
    Joint,
    Loop,
    Mechanism,
    Number,
    Pair,
    Parameter,
    Shape,
    assemble,
)
from ..model.pairs import pair_of
from ..model.ring_cuts import Opened, open_rings
from ..model.tidying import guessed, listed
from .report import Report, report_moved, report_tolerated


def mechanism_from_pairs(
    name: str,
    bodies: Iterable[Body],
    pairs: Iterable[Pair],
    *,
    cut: Iterable[str] = (),
    keep: Iterable[str] = (),
    joints: Iterable[Joint] = (),
    frames: Iterable[Frame] = (),
    loops: Iterable[Loop] = (),
    couplings: Iterable[Coupling] = (),
    forces: Iterable[ForceElement] = (),
    gravity: tuple[Number, Number, Number] = (0.0, 0.0, -9.81),
    parameters: Iterable[Parameter] = (),
    scenery: Iterable[Shape] = (),
    source: str = "",
    description: str = "",
    guess: Mapping[str, Any] | Iterable[tuple[str, Any]] = (),
    lenient: bool = False,
) -> tuple[Mechanism, Report]:
    """Return the mechanism of bodies and pairs, joints between any two bodies, and a report of the cuts.

    A spanning tree is chosen, and the pairs outside it become loops. `cut` and `keep` have names of pairs that must
    become loops or stay in the tree, such as actuated ones. `joints` stay in the tree too. Data of bodies are in the
    frames in which the placements of the pairs are given. Couplings, joint springs and `guess` are in the coordinates
    of the pairs: those of body_b relative to body_a. All other parts are those of `assemble`.
    """
    report = Report(file=name if isinstance(name, str) else "")
    given = listed(bodies, Body, "body")
    marked = _marked(listed(pairs, Pair, "pair"), cut, keep)
    fixed = [pair_of(j) for j in listed(joints, Joint, "joint")]
    opened = open_rings(
        given,
        [*fixed, *marked],
        couplings=(coupling_list := listed(couplings, Coupling, "coupling")),
        forces=listed(forces, ForceElement, "force"),
        guess=guessed(guess),
    )
    report_cuts(opened, report)
    frames = listed(frames, Frame, "frame")
    mechanism = assemble(
        name, given, opened.joints, frames=frames, loops=[*listed(loops, Loop, "loop"), *opened.loops],
        couplings=coupling_list, forces=opened.forces, gravity=gravity, parameters=parameters, scenery=scenery,
        source=source, description=description, guess=opened.guess, lenient=lenient,
    )  # fmt: skip
    report.read(f"{len(mechanism.bodies)} bodies, {mechanism.nv} degrees of freedom{mechanism.closed_by}")
    report_moved(mechanism, frames, report)
    report_tolerated(mechanism, report)
    return mechanism, report


def report_cuts(opened: Opened, report: Report, line: Callable[[str], int | None] = lambda name: None) -> None:
    """Report pairs that were cut or reversed, and what was dropped with them; `line` returns the line of a pair."""
    for cut in opened.cuts:
        report.changed(str(cut), line(cut.name))
        for lost in cut.lost:
            report.dropped(f"{lost} of pair {cut.name!r}, which is cut", line(cut.name))
    for name in opened.reversed:
        report.changed(f"pair {name!r} is a joint from body_b to body_a, of the same motions", line(name))
    for name in opened.unused:
        report.dropped(f"the guess of pair {name!r}, which is cut", line(name))


def _marked(pairs: Sequence[Pair], cut: Iterable[str], keep: Iterable[str]) -> list[Pair]:
    """Return the pairs with the marks of the options, which override their own."""
    cuts, keeps = _names(cut, "cut", pairs), _names(keep, "keep", pairs)
    if both := [name for name in cuts if name in keeps]:
        raise InputError(f"pair {both[0]!r} is in cut and in keep; leave it out of one of them")
    return [replace(p, cut=True) if p.name in cuts else replace(p, cut=False) if p.name in keeps else p for p in pairs]


def _names(given: Any, option: str, pairs: Sequence[Pair]) -> Collection[str]:
    if isinstance(given, str):
        raise InputError(f"{option} is {given!r}; expected a list of names of pairs")
    names, known = list(given), [p.name for p in pairs]
    for name in names:
        if name not in known:
            raise unknown_name("pair", name, known)
    return names
