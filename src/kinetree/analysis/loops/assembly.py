"""Assembly modes: all closed positions of a mechanism with chosen joints held at given values."""

from __future__ import annotations

import math

import numpy as np
from numpy.typing import ArrayLike

from ..._support.checks import generator
from ..._support.tables import count_text
from ...algebra.scalars import Numbers
from ...compiler.lower.loop_pattern import random_coordinates
from ...errors import InputError
from ...joints import kind
from ...runtime.compiled import CompiledMechanism
from ..joint_entries import Hold, as_list
from .batch_assembly import assemble
from .kinematics import LoopKinematics, Mask
from .leaders import choose_leaders
from .misfits import close, held_start

SAME = 1e-5
"""The largest difference of body poses in equal positions, in units of the mechanism's length."""


def assembly_modes(
    system: CompiledMechanism,
    q_guess: ArrayLike | None = None,
    hold: Hold | None = None,
    *,
    tries: int = 64,
    rng: np.random.Generator | int = 0,
    tolerance: float = 1e-12,
    parameters: ArrayLike | None = None,
) -> list[Numbers]:
    """Return the closed positions of the mechanism with joints held, the one nearest to the guess first.

    Positions differ if the poses of bodies do; angles are those nearest to the guess. They are found from `tries`
    random starts, the same in every run, and may be incomplete. The held joints must determine the position; by default
    they are independent ones.
    """
    loops = LoopKinematics(system, parameters)
    if hold is None:
        first = assemble(system, q_guess, tolerance=tolerance, parameters=parameters)
        names = choose_leaders(loops, first).names
        q_guess, hold = first, tuple(dict.fromkeys(_holdable(loops, name) for name in names))
    first = assemble(system, q_guess, hold, tolerance=tolerance, parameters=parameters)
    q, at, degrees = held_start(loops, first, as_list(hold))
    free = _free_motions(loops, q, degrees)
    if free:
        more = ", ".join(choose_leaders(loops, q).names)
        raise InputError(
            f"with {', '.join(as_list(hold)) or 'nothing'} held, {count_text(free, 'degree')} of freedom can still "
            f"move, and closed positions are without number; hold more joints, such as {more}"
        )
    rng = generator(rng)
    modes = [first]
    poses = [loops.call("poses", first)]
    for _ in range(tries):
        start = np.where(at, q, random_coordinates(loops.mechanism, rng))
        found, gap = close(loops, start, q, at, degrees)
        if gap > tolerance:
            continue
        found = _unwound(loops, found, q, at)
        pose = loops.call("poses", found)
        if all(_distance(loops, pose, known) > SAME for known in poses):
            modes.append(found)
            poses.append(pose)
    return [first, *sorted(modes[1:], key=lambda x: float(np.linalg.norm(loops.step(q, x))))]


def _free_motions(loops: LoopKinematics, q: Numbers, degrees: Mask) -> int:
    """Return the number of motions that remain with degrees of freedom held."""
    motions = loops.motions(q).motions
    stuck = np.linalg.svd(motions[degrees], compute_uv=False) if degrees.any() and motions.size else np.zeros(0)
    return motions.shape[1] - int((stuck > 1e-5).sum())


def _holdable(loops: LoopKinematics, name: str) -> str:
    """Return an axis, or its whole joint if that rotates by a quaternion."""
    joint = next((j for j in loops.mechanism.joints if name.startswith(f"{j.name}.")), None)
    return joint.name if joint is not None and kind(joint.kind).QUATERNION is not None else name


def _unwound(loops: LoopKinematics, q: Numbers, near: Numbers, at: Mask) -> Numbers:
    """Return the same position with angles within pi of another's, where multiples of 2 pi have no effect."""
    geared = {name for c in loops.mechanism.couplings for name in (c.joint, *(term[0] for term in c.terms))}
    out = q.copy()
    for joint, own in zip(loops.mechanism.joints, loops.mechanism.q_slices, strict=True):
        sort = kind(joint.kind)
        if sort.QUATERNION is None and sort.PERIODIC and joint.name not in geared:
            for n, unit in enumerate(sort.UNITS, own.start):
                if unit == "rad" and not at[n]:
                    out[n] -= 2 * math.pi * round((out[n] - near[n]) / (2 * math.pi))
    return out


def _distance(loops: LoopKinematics, a: Numbers, b: Numbers) -> float:
    """Return the largest difference of poses, with positions in units of the length."""
    scale = np.ones((4, 4))
    scale[:3, 3] = 1 / loops.length
    return float(np.abs((a - b) * scale).max(initial=0.0))
