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
    Placement,
    Shape,
    build_mechanism,
)
from ..model.pairs import Opened, can_be_cut, open_rings, pair_of
from ..model.tidying import tidy_guess, tidy_list
from ..model.topology import cut_joints
from .report import Report, report_moved, report_tolerated, size_text


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
    guess: Mapping[str, object] | Iterable[tuple[str, object]] = (),
    lenient: bool = False,
) -> tuple[Mechanism, Report]:
    """Return the mechanism of bodies and pairs, joints between any two bodies, and a report of the cuts.

    A spanning tree is chosen, and the pairs outside it become loops. `cut` and `keep` have names of pairs that must
    become loops or stay in the tree, such as actuated ones. `joints` stay in the tree too. Data of bodies are in the
    frames in which the placements of the pairs are given, and each of these remains as the frame "<body>_frame",
    whichever tree is chosen; the name of a body is the frame of its joint. Couplings, joint springs and `guess` are in
    the coordinates of the pairs: body_b relative to body_a. All other parts are as for `build_mechanism`.
    """
    report = Report(file=name if isinstance(name, str) else "")
    given = tidy_list(bodies, Body, "body")
    marked = _marked(tidy_list(pairs, Pair, "pair"), cut, keep)
    fixed = [pair_of(j) for j in tidy_list(joints, Joint, "joint")]
    opened = open_rings(
        given,
        [*fixed, *marked],
        couplings=(coupling_list := tidy_list(couplings, Coupling, "coupling")),
        forces=tidy_list(forces, ForceElement, "force"),
        guess=tidy_guess(guess),
    )
    report_cuts(opened, report)
    frames = tidy_list(frames, Frame, "frame")
    mechanism = build_mechanism(
        name, given, opened.joints, frames=frames, loops=[*tidy_list(loops, Loop, "loop"), *opened.loops],
        couplings=coupling_list, forces=opened.forces, gravity=gravity, parameters=parameters, scenery=scenery,
        source=source, description=description, guess=opened.guess, lenient=lenient,
    )  # fmt: skip
    report.read(size_text(mechanism) + mechanism.closed_by)
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


# --- A closed mechanism with one of its loops cut at another joint of the same ring ---


def recut(mechanism: Mechanism, loop: str, joint: str, guess: dict[str, Any] | None = None) -> tuple[Mechanism, Report]:
    """Return the mechanism with a `joint` cut in place of a `loop`, which becomes a joint, and a report of the change.

    Joint and loop must be of the same ring. `guess` has positions of joints near a closed position, by default those
    of the mechanism; the cut loop counts as a joint of its kind, which displaces frame b from frame a.
    """
    m = mechanism
    rings = dict(cut_joints(m))
    if loop not in rings:
        raise unknown_name("loop", loop, rings)
    ring = [m.joints[i].name for i in rings[loop]]
    if joint not in ring:
        raise unknown_name(f"joint of the ring of {loop!r}", joint, ring)
    own = next(x for x in m.loops if x.name == loop)
    closing = _pair(own)
    if not can_be_cut(pair_of(m.joint(joint))):
        raise InputError(f"{joint!r} is a {m.joint(joint).kind} joint, which has no loop of its kind; cut another one")
    pairs = [replace(pair_of(j), cut=j.name == joint) for j in m.joints]
    known = {j.name for j in m.joints} | {loop}
    start = {name: x for name, x in (dict(m.guess) if guess is None else guess).items() if name in known - {joint}}
    made, report = mechanism_from_pairs(
        m.name, m.bodies, [*pairs, closing], frames=m.frames, loops=[x for x in m.loops if x.name != loop],
        couplings=m.couplings, forces=m.forces, gravity=m.gravity, parameters=m.parameters, scenery=m.scenery,
        source=m.source, description=m.description, guess=start,
    )  # fmt: skip
    named = {f.name for f in m.frames}
    frames = tuple(f for f in made.frames if f.name in named or f.placement != Placement())  # of bodies that moved
    drives = tuple(a for a in m.actuators if a.joint != joint)
    if len(drives) < len(m.actuators) or m.keyframes:
        report.dropped(f"keyframes, and actuators of {joint!r}: it is no joint any more")
    return replace(made, frames=frames, actuators=drives), report


def _pair(loop: Loop) -> Pair:
    """Return a cut joint as a pair that stays in the tree."""
    data: dict[str, Any] = {"axis": loop.axis, "axis2": loop.axis2, "pitch": loop.pitch}
    try:
        found = Pair(loop.name, loop.kind, loop.body_a, loop.body_b, loop.placement_a, loop.placement_b, **data)
        cuttable = can_be_cut(found)
    except (KeyError, InputError):
        cuttable, found = False, None
    if not cuttable or found is None:
        raise InputError(f"loop {loop.name!r} is a {loop.kind}, which is no joint; it can only close a loop")
    return replace(found, cut=False)
