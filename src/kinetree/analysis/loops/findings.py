"""The texts of the doctor's findings."""

from __future__ import annotations

from collections.abc import Iterable, Sequence

import numpy as np

from ... import joints as joint_kinds
from ... import loops as loop_kinds
from ..._support.tables import count_text
from ...algebra.scalars import Numbers
from ...compiler.lower.loop_pattern import RANK
from ...errors import Advice, AssemblyError, InputError
from ...model.axes import axis_names
from ...model.mechanism import resolve_parts
from ...runtime.singularity import weightless_joints
from ..joint_entries import some, spoken
from .diagnosis import Finding
from .kinematics import LoopKinematics
from .misfits import assemble_or_explain
from .redundancy import Dependence, Redundancy, Surroundings
from .tolerances import CLOSED, NEARLY_SINGULAR, STILL

# --- Test for planar mechanisms: all rotations about one direction, all translations perpendicular to it ---

PARALLEL = 1e-9


def planar(loops: LoopKinematics) -> bool:
    """Return whether every joint rotates about one direction, or translates perpendicular to it, at any position."""
    mechanism = loops.mechanism
    q = np.asarray(loops.system.tree.random_state(5)[0], dtype=float)
    normals: list[Numbers] = []
    shifts: list[Numbers] = []
    for joint, pose in zip(resolve_parts(mechanism.joints, loops.values), loops.call("poses", q), strict=True):
        steps = joint_kinds.kind(joint.kind).steps(joint)
        if steps is None:
            return False
        for what, axis in steps:
            (normals if what == joint_kinds.ROTATION else shifts).append(pose[:3, :3] @ np.array(axis, dtype=float))
    if not normals:
        return False
    turns = all(np.linalg.norm(np.cross(n, normals[0])) < PARALLEL for n in normals)
    return turns and all(abs(s @ normals[0]) < PARALLEL for s in shifts)


LARGE = 0.3
"""The part of the largest share in a direction from which degrees of freedom are named with it."""
WEAK_DRIVE = 0.05
"""The share of a motion below which drives are reported as too weak to hold it."""


def open_position(loops: LoopKinematics, given: Numbers, q: Numbers, leads: Sequence[str], *, guessed: bool):
    """Report the gaps of a position by loop, and the changes to the nearest closed position."""
    gaps = [gap for gap in loops.gaps(given) if loops.size(gap) > CLOSED]
    if not gaps:
        return []
    advice = f"The nearest closed position: {_changes(loops, given, q)}."
    if guessed:
        text = f"It leaves open {some(map(str, gaps), ', ')}."
        if loops.mechanism.guess:
            told = Advice(f"{advice} `assemble` finds it.", advice)
            return [Finding("note", "the guess is only near a closed position", text, told)]
        choice = "Loops often close in several ways: give a [guess] near the one that you mean."
        return [Finding("note", "there is no guess, and zero displacements do not close", text, f"{advice} {choice}")]
    try:
        held = assemble_or_explain(loops.system, given, leads, parameters=loops.parameters)
        advice += f" With {some(leads)} held: {_changes(loops, given, held)}."
    except (AssemblyError, InputError):
        advice += f" With {some(leads)} held it does not close."
    text = f"It leaves open {some(map(str, gaps), ', ')}."
    told = Advice(f"{advice} `assemble(q, hold=...)` finds both.", advice)
    return [Finding("wrong", "the position does not close", text, told)]


def report_immobility(loops: LoopKinematics, q: Numbers, around: Surroundings) -> list[Finding]:
    """Report that nothing moves, or only infinitesimally, and which loop to leave out."""
    if not len(loops.labels) or around.around:
        return []
    J = loops.jacobian(q)
    rank = around.here.rank
    free = {}
    for name, at in loops.groups:
        sizes = np.linalg.svd(np.delete(J, at, axis=0), compute_uv=False)
        left = int((sizes > RANK * around.here.sizes.max()).sum())
        if left < rank:
            free[name] = len(loops.labels) - left
    advice = "Leave out a loop, or give it a kind that holds less" + (
        ": " + some((f"without {name} mobility {m}" for name, m in free.items()), ", ") + "." if free else "."
    )
    if not around.here.mobility:
        text = (
            f"The {rank} independent equations of the loops leave none of the {len(loops.labels)} degrees of freedom."
        )
        return [Finding("wrong", "the loops lock the mechanism", text, advice)]
    moving = names_of(loops, np.linalg.norm(around.here.motions, axis=1))
    return [
        Finding(
            "wrong",
            "the mechanism only shakes",
            f"At this instant {moving} could move, but no motion goes on from here: the loops just reach each other.",
            "A length at its limit closes in one position only; make it longer or shorter. " + advice,
        )
    ]


def redundant(loops: LoopKinematics, found: Redundancy, *, moves: bool) -> list[Finding]:
    """Report redundant equations, and their consequence for reactions."""
    out = []
    if found.idle:
        flat = planar(loops)
        pins = flat and all(_pin(x.kind) for x in loops.mechanism.loops)
        count = len(found.idle)
        text = f"{_by_loop(loops, found.idle)} {_verb(count, 'add')} nothing new, whatever the joints do."
        advice = (
            "Motions are not affected. Forces and moments in these directions cannot be computed for rigid bodies and "
            f"are taken as 0, also in the reactions of {some(found.idle_joints)}."
        )
        out.append(
            Finding(
                "note",
                f"{count_text(count, 'equation')} {_verb(count, 'hold')} by {'itself' if count == 1 else 'themselves'}",
                text + (" The mechanism is planar: nothing leaves its plane." if flat else ""),
                advice + (" To leave them out, make the loops point_on_line, along the same axis." if pins else ""),
            )
        )
    if found.dependent:
        count = len(found.dependent)
        texts = [f"{_name(loops, d.equation)} {_follows(loops, d)}" for d in found.dependent]
        what = f"{_verb(count, 'follow')} from others" if any(d.of for d in found.dependent) else _verb(count, "hold")
        out.append(
            Finding(
                "caution",
                f"{count_text(count, 'equation')} {what}" + ("" if any(d.of for d in found.dependent) else " nothing"),
                f"At {'every position around' if moves else 'this position'}: {some(texts, '; ')}.",
                f"Motions are not affected, but how a load is shared is not unique: {_by_loop(loops, found.open)}, and "
                f"the reactions of {some(found.joints)}. Multipliers are then one answer of many. Leave out a loop, or "
                "let it give (a spring), if these forces matter.",
            )
        )
    return out


def rolling(loops: LoopKinematics, around: Surroundings, positions: int) -> list[Finding]:
    """Report equations that restrict velocities alone, with the degrees of freedom of both."""
    chosen = np.flatnonzero(~loops.holonomic).tolist()
    if not chosen:
        return []
    count = len(chosen)
    return [
        Finding(
            "note",
            f"{count_text(count, 'equation')} {_verb(count, 'restrict')} velocities alone",
            f"{_by_loop(loops, chosen)}. Velocities have {around.here.mobility} degrees of freedom, positions "
            f"{positions}: the position that a motion reaches may depend on its path.",
        )
    ]


def singular(loops: LoopKinematics, around: Surroundings, lost: Sequence[int]) -> list[Finding]:
    """Report that a position is singular, or nearly; `lost` are equations that are redundant here and not around."""
    if not around.around or around.closeness >= NEARLY_SINGULAR:
        return []
    if around.here.rank < around.rank:
        more = around.rank - around.here.rank
        moving = names_of(loops, np.linalg.norm(around.here.motions, axis=1))
        whose = loop_names(name for name, at in loops.groups if any(at.start <= k < at.stop for k in lost))
        return [
            Finding(
                "caution",
                "the position is singular",
                f"At this instant mobility is {around.here.mobility}, around it {around.mobility}: "
                f"{count_text(more, 'equation')} of {whose} no longer {_verb(more, 'constrain')} {moving}.",
                "Branches of motion may meet here, and the motion may go on in any of them. Forces in the loops are "
                "not unique here and may be large nearby. Start elsewhere, and mind results that pass through here.",
            )
        ]
    return [
        Finding(
            "caution",
            "the position is nearly singular",
            f"The weakest hold of the loops is {around.closeness:.2g} of its usual value nearby: they hardly hold "
            f"{names_of(loops, np.abs(around.lost))}.",
            "Small errors of length move these a lot, and forces in the loops are large. Keep away, or step finely.",
        )
    ]


def still(loops: LoopKinematics, around: Surroundings) -> list[Finding]:
    """Report joints that cannot move, at any position or at this instant."""
    if not around.around or around.here.rank < around.rank:
        return []
    here, always = around.stands_still()
    out = []
    if always.any():
        names = some(loops.labels[k] for k in np.flatnonzero(always))
        text = f"{names} cannot move at all, whatever the others do."
        advice = "Remove the joint, or the loop that locks it."
        out.append(Finding("caution", "the loops lock some joints", text, advice))
    if (here & ~always).any():
        names = some(loops.labels[k] for k in np.flatnonzero(here & ~always))
        count = int((here & ~always).sum())
        text = "At this instant the other joints move: a turning point."
        advice = "For a drive there it is a dead center: its torque moves nothing. Let another joint drive."
        out.append(Finding("note", f"{names} {_verb(count, 'stand')} still", text, advice))
    return out


def report_drives(loops: LoopKinematics, around: Surroundings, at: list[int]) -> list[Finding]:
    """Report whether drives at these degrees of freedom hold the mechanism, by their share in its weakest motion."""
    if not at:
        return []
    motions, names = around.here.motions, some(loops.labels[k] for k in at)
    if len(at) < around.here.mobility:
        text = f"{names} are {len(at)} of the {around.here.mobility} degrees of freedom: the rest moves freely."
        return [Finding("caution", "the drives are too few", text, "Drive more joints.")]
    _, sizes, rows = np.linalg.svd(motions[at])
    least = float(sizes[around.here.mobility - 1]) if around.here.mobility else 1.0
    if least >= WEAK_DRIVE:
        share = f"of its weakest motion they control {least:.2g} (0: nothing, 1: all)"
        text = f"{names} {_verb(len(at), 'hold')} the mechanism; {share}."
        return [Finding("note", "the drives hold the mechanism", text)]
    moving = names_of(loops, np.abs(motions @ rows[around.here.mobility - 1]))
    hold = _verb(len(at), "hold")
    how = f"hardly {hold} ({least:.2g} of its size)" if least > STILL else f"{hold} nothing of"
    return [
        Finding(
            "caution",
            "the drives are at a dead center",
            f"{names} {how} a motion of {moving}.",
            "Loads along it need very large torques, or cannot be carried. Drive other joints, or keep away.",
        )
    ]


def weightless(loops: LoopKinematics) -> list[Finding]:
    """Report joints beyond which no body has inertia, so that forward dynamics is refused."""
    joints = weightless_joints(loops.mechanism)
    if not joints:
        return []
    return [
        Finding(
            "caution",
            "no inertia resists some joints",
            f"Beyond {some(joints)} no body has the mass or inertia that resists the motion.",
            "Inverse dynamics works, but forward dynamics and simulations are refused. Give the bodies beyond these "
            "joints mass and inertia, or the joints an armature.",
        )
    ]


def names_of(loops: LoopKinematics, sizes: Numbers) -> str:
    """Return the degrees of freedom with the large parts of a direction, the largest first."""
    order = [k for k in np.argsort(-sizes, kind="stable") if sizes[k] > LARGE * sizes.max(initial=0.0)]
    return some(loops.labels[k] for k in order)


def loop_names(names: Iterable[str]) -> str:
    """Return names such as "loop 'a'" in a sentence, with the word "loops" once if all are loops."""
    whole = list(names)
    if len(whole) > 1 and all(name.startswith("loop ") for name in whole):
        return "loops " + some(name.removeprefix("loop ") for name in whole)
    return some(whole)


def _changes(loops: LoopKinematics, given: Numbers, q: Numbers) -> str:
    units = [loops.length if unit == "m" else 1.0 for _, _, unit in axis_names(loops.mechanism, 0)]
    rows = enumerate(zip(given, q, units, strict=True))
    pairs = [(k, a, b) for k, (a, b, unit) in rows if abs(a - b) > CLOSED * unit]
    return some((loops.shown(k, b).replace(" = ", f" {a:.6g} -> ", 1) for k, a, b in pairs), ", ")


def _name(loops: LoopKinematics, k: int) -> str:
    e = loops.mechanism.closures[k]
    return f"{e.name!r} {e.label}"


def _follows(loops: LoopKinematics, found: Dependence) -> str:
    return f"follows from {spoken(_name(loops, k) for k, _ in found.of)}" if found.of else "holds nothing"


def _by_loop(loops: LoopKinematics, equations: Iterable[int]) -> str:
    """Return equations by the names of their loops; loops with the same equations are grouped."""
    chosen = set(equations)
    same: dict[tuple[str, ...], list[str]] = {}
    for name, at in loops.groups:
        labels = tuple(e.label for k, e in enumerate(loops.mechanism.closures[at], at.start) if k in chosen)
        if labels:
            same.setdefault(labels, []).append(name)
    return "; ".join(f"{loop_names(names)}: {spoken(labels)}" for labels, names in same.items())


def _verb(n: int, verb: str) -> str:
    return verb + ("s" if n == 1 else "")


def _pin(kind: str) -> bool:
    """Return whether a loop is a cut revolute joint."""
    return loop_kinds.kind(kind).joint and joint_kinds.kind(kind).AXIAL == joint_kinds.ROTATION
