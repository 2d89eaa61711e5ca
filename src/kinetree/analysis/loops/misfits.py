"""Reasons why loops do not close, found by least squares: gaps, held joints or contradicting loops, and remedies."""

from __future__ import annotations

import math
from collections.abc import Mapping
from itertools import chain

import numpy as np
from numpy.typing import ArrayLike

from ... import loops as loop_kinds
from ...algebra.scalars import Numbers
from ...errors import AssemblyError, InputError
from ...model.mechanism import resolve_parts
from ...runtime.compiled import CompiledMechanism
from ..joint_entries import Hold, numbers, spoken
from ..joint_entries import masks_of_joints as held_masks
from .kinematics import LoopKinematics, Mask
from .leaders import choose_leaders
from .redundancy import redundancy
from .samples import FAR, STRIDE, starts
from .tolerances import CLOSED

MANY = 24
"""The most loops for which each is left out in turn to find contradictions; more would take too long."""
SHOWN = 5e-5
"""The largest relative change of a held coordinate by rounding to the five digits of proposals, which is left out."""
ROUNDING = 1e-12
"""The largest entry of J, in units of the length, that counts as zero."""


def assemble_or_explain(
    system: CompiledMechanism,
    q_guess: ArrayLike | None = None,
    hold: Hold = (),
    *,
    tolerance: float = 1e-12,
    parameters: ArrayLike | None = None,
) -> Numbers:
    """Return a closed position near a guess, [nq], with every residual at most `tolerance`, or raise the reason.

    The tolerance is in radians, and in units of the mechanism's length (docs/limits.md). `hold` names joints, or axes
    of joints, that keep exactly their values in the guess. As a mapping, it has their values. The mechanism is then
    moved there from the guess, which keeps its assembly mode. The default guess is the mechanism's. Limits of
    joints are ignored. An AssemblyError is raised if loops do not close.
    """
    loops = LoopKinematics(system, parameters)
    q, at, degrees = held_start(loops, q_guess, hold)
    if not tolerance > 0:
        raise InputError(f"tolerance is {tolerance}; expected more than 0, such as 1e-12")
    tried = []
    followed = _followed(loops, loops.start(q_guess), q, at, degrees)
    for start in chain(followed, starts(loops, q, at, degrees)):  # random starts are drawn only if needed
        found, gap = close(loops, start, q, at, degrees)
        if gap <= tolerance:
            return found
        tried.append((gap, len(tried), found))
    raise misfit(loops, q, at, degrees, [x for _, _, x in sorted(tried)], tolerance)


def held_start(loops: LoopKinematics, q_guess: ArrayLike | None, hold: Hold) -> tuple[Numbers, Mask, Mask]:
    """Return the start of the assembly, and masks of the held coordinates and degrees of freedom."""
    q = loops.start(q_guess)
    if isinstance(hold, Mapping):
        for at, values in numbers(loops.mechanism, hold, 0).items():
            if values.ndim > 1:
                raise InputError(f"hold: {loops.labels[at[0]]!r} is given shape {values.shape}; expected one position")
            q[list(at)] = values
    return q, *held_masks(loops.mechanism, hold)


def _followed(loops: LoopKinematics, base: Numbers, q: Numbers, at: Mask, degrees: Mask) -> list[Numbers]:
    """Return the position reached from the guess as the held joints move to their given values with closed loops.

    This keeps the assembly mode of the guess. The list is empty if the path is blocked.
    """
    way = np.where(degrees, loops.step(base, q), 0.0)
    count = math.ceil(np.abs(way).max(initial=0.0) / STRIDE)
    if not 0 < count <= FAR or loops.gap(q) <= CLOSED:
        return []
    there, gap = loops.close(base, degrees)
    before = there
    for k in range(1, count + 1):
        if gap > CLOSED:
            return []
        ahead = loops.move(there, loops.step(before, there))  # straight on at points where branches meet
        ahead = np.where(at, loops.move(base, way * k / count), ahead)
        before, (there, gap) = there, loops.close(ahead, degrees)
    return [np.where(at, q, there)] if gap <= CLOSED else []


def close(loops: LoopKinematics, start: Numbers, q: Numbers, at: Mask, degrees: Mask) -> tuple[Numbers, float]:
    """Return the position that Newton's method finds with the held coordinates exactly as in q, and its gap."""
    found, _ = loops.close(start, degrees)
    found = np.where(at, q, found)
    return found, loops.gap(found)


def misfit(
    loops: LoopKinematics, q: Numbers, at: Mask, degrees: Mask, tried: list[Numbers], tolerance: float
) -> AssemblyError:
    """Return the error of loops that stay open from every start; `tried` are the best positions, the nearest first."""
    best = min((_nearest(loops, x, degrees) for x in tried[:3]), key=lambda x: _cost(loops, x))
    gap = loops.gap(best)
    if gap <= CLOSED:
        return _close_enough(loops, best, gap, tolerance)
    free = None if not degrees.any() else _closed_somehow(loops, [q, *tried[:3]])
    if free is not None:
        return _held_is_the_cause(loops, q, best, at, degrees, free)
    best = min((_nearest(loops, x, np.zeros_like(degrees)) for x in (best, q)), key=lambda x: _cost(loops, x))
    return _loops_contradict(loops, q, best, degrees)


def _close_enough(loops: LoopKinematics, q: Numbers, gap: float, tolerance: float) -> AssemblyError:
    """Return the error of loops that close, but not to the tolerance."""
    twice = sorted({loops.mechanism.closures[k].name for k in redundancy(loops, q).open})
    why = f"nearly redundant equations of {spoken(map(repr, twice))}" if twice else "rounding, or a singular position,"
    return AssemblyError(
        f"the loops close to {gap:.1e} only (rad, or lengths of {loops.length:.3g} m), and {tolerance:.1e} is required",
        where=loops.mechanism.name,
        remedy=f"give a tolerance of {_next_power(gap):.0e}; {why} {'allow' if twice else 'allows'} no less",
    )


def _held_is_the_cause(
    loops: LoopKinematics, q: Numbers, best: Numbers, at: Mask, degrees: Mask, free: Numbers
) -> AssemblyError:
    """Return the error of loops that close if nothing is held."""
    mobility, count = loops.motions(free).mobility, int(degrees.sum())
    told = at & _in_loops(loops, q, best)
    held = ", ".join(loops.shown(k, q[k]) for k in np.flatnonzero(told).tolist())
    what = f"with {held} held, {_open(loops, best)}; with nothing held the loops close"
    if not mobility:
        remedy = "hold nothing"
        what += ", but only where they lock the mechanism: its mobility is 0"
        return AssemblyError(what, where=loops.mechanism.name, remedy=remedy)
    if count > mobility:
        what += f". {count} degrees of freedom are held and the mechanism has {mobility}"
        return AssemblyError(what, where=loops.mechanism.name, remedy=_fewer(loops, q, at, degrees, free))
    closest, closes = _closest_hold(loops, q, at, degrees, free)
    beyond = np.abs(closest - q) > SHOWN * np.abs(q)
    changed = np.flatnonzero(told & (beyond if (told & beyond).any() else closest != q)).tolist()
    near = [f"{loops.shown(k, closest[k])} instead of {q[k]:.6g}" for k in changed]
    return AssemblyError(
        what,
        where=loops.mechanism.name,
        remedy=f"{'nearest' if closes else 'about the nearest'}: hold {', '.join(near)}",
    )


def _in_loops(loops: LoopKinematics, *positions: Numbers) -> Mask:
    """Return which coordinates move the equations of the loops at any of some positions; all if none do."""
    if loops.mechanism.nq != loops.mechanism.nv:  # entries of q and qd do not correspond
        return np.ones(loops.mechanism.nq, dtype=bool)
    sizes = sum(np.abs(loops.jacobian(q)).max(axis=0, initial=0.0) for q in positions)
    found = np.asarray(sizes) > ROUNDING
    return found if found.any() else ~found


def _fewer(loops: LoopKinematics, q: Numbers, at: Mask, degrees: Mask, free: Numbers) -> str:
    """Return advice on which of the held joints to hold, with the resulting values of the others."""
    wanted = [loops.labels[k] for k in np.flatnonzero(degrees)]
    names = choose_leaders(loops, free, wanted).names
    text = f"hold only {', '.join(names)}"
    kept = np.isin(loops.labels, names) & degrees
    found, gap = loops.close(q, kept)
    same = loops.mechanism.nq == loops.mechanism.nv  # else entries of q and qd do not correspond
    if gap > CLOSED or not same:
        return text
    rest = [loops.shown(k, found[k]) for k in np.flatnonzero(at & ~kept).tolist()]
    return f"{text}: then {', '.join(rest)}"


def _loops_contradict(loops: LoopKinematics, q: Numbers, best: Numbers, degrees: Mask) -> AssemblyError:
    """Return the error of loops that close nowhere, with those without which the others close."""
    what = f"at best{', even with nothing held' if degrees.any() else ''}, {_open(loops, best)}"
    groups = loops.groups
    culprits = []
    if 1 < len(groups) <= MANY:
        rows = np.arange(len(loops.units))
        for name, at in groups:
            others = np.delete(rows, at)
            starts = [best, q]
            if any(loops.close(x, np.zeros_like(degrees), others)[1] <= CLOSED for x in starts):
                culprits.append(name)
    if len(culprits) > 1:
        what += f"; {spoken(culprits)} contradict each other: without any one of them the rest closes"
    elif culprits:
        what += f"; without {culprits[0]} the rest closes"
    return AssemblyError(
        what,
        where=loops.mechanism.name,
        remedy="check lengths, placements and axes of the open loops, or give a nearer guess (q_guess)",
    )


def _open(loops: LoopKinematics, q: Numbers) -> str:
    """Return the open loops with their gaps, and for rods the distance of their ends."""
    values, out = loops.values, []
    rods = {
        f"loop {x.name!r}": x
        for x in resolve_parts(loops.mechanism.loops, values)
        if "length" in loop_kinds.kind(x.kind).data
    }
    residual = loops.residual(q)
    for (name, at), gap in zip(loops.groups, loops.gaps(q), strict=True):
        if loops.size(gap) <= CLOSED:
            continue
        text = str(gap).replace(" by ", " stays open by ", 1)
        if name in rods:
            length = rods[name].length
            text += f" (its ends are {length + residual[at][0]:.6g} m apart, its length is {length:.6g} m)"
        out.append(text)
    return spoken(out)


def _closed_somehow(loops: LoopKinematics, tried: list[Numbers]) -> Numbers | None:
    """Return a closed position with nothing held, from the first start that leads to one."""
    nothing = np.zeros(loops.mechanism.nv, dtype=bool), np.zeros(loops.mechanism.nq, dtype=bool)
    for q in chain(tried, starts(loops, tried[0], nothing[1], nothing[0])):
        found, gap = loops.close(q, nothing[0])
        if gap <= CLOSED:
            return found
    return None


def _closest_hold(loops: LoopKinematics, q: Numbers, at: Mask, degrees: Mask, free: Numbers) -> tuple[Numbers, bool]:
    """Return coordinates with held ones as near as possible to q, and whether the loops close there.

    The nearest position often has the mechanism stretched out, where the last digit decides whether the loops close.
    Therefore the coordinates are rounded, and moved by up to a hundredth if that helps.
    """
    from scipy.optimize import least_squares

    x = np.zeros(loops.mechanism.nv)
    for weight in (1e1, 1e3, 1e5):

        def cost(x: Numbers, weight: float = weight) -> Numbers:
            there = loops.move(free, x)
            return np.concatenate([weight * loops.residual(there) / loops.units, loops.step(q, there)[degrees]])

        x = least_squares(cost, x, x_scale=1.0, max_nfev=200).x
    near, _ = loops.close(loops.move(free, x), np.zeros_like(degrees))
    for further in (0.0, 1e-4, 1e-3, 1e-2):
        moved = near + further * (near - q)
        wanted = np.where(at, [_rounded(v) for v in moved], near)
        if loops.close(wanted, degrees)[1] <= CLOSED:
            return wanted, True
    return near, False


def _nearest(loops: LoopKinematics, q: Numbers, degrees: Mask) -> Numbers:
    """Return a position nearby with the smallest gaps, with held joints unchanged."""
    from scipy.optimize import least_squares

    free = ~degrees
    if not free.any() or not np.isfinite(loops.residual(q)).all():
        return q

    def there(x: Numbers) -> Numbers:
        step = np.zeros(len(degrees))
        step[free] = x
        return loops.move(q, step)

    found = least_squares(lambda x: loops.residual(there(x)) / loops.units, np.zeros(int(free.sum())), max_nfev=200)
    return there(found.x)


def _cost(loops: LoopKinematics, q: Numbers) -> float:
    size = float(np.linalg.norm(loops.residual(q) / loops.units))
    return size if math.isfinite(size) else math.inf


def _rounded(x: object) -> float:
    return float(f"{x:.5g}")


def _next_power(x: float) -> float:
    return 10.0 ** math.ceil(math.log10(max(x, 1e-16)))
