"""Assembly: coordinates at which all loops are closed, with chosen joints held at given values."""

from __future__ import annotations

import math
from collections.abc import Iterable, Mapping
from itertools import chain
from typing import Any

import numpy as np
from numpy.typing import ArrayLike

from ...algebra.arrays import Numbers
from ...compiled import CompiledMechanism
from ...compiler.lower.loop_pattern import random_coordinates
from ...errors import InputError
from ...joints import kind
from ...joints.random_states import generator
from ..joint_entries import held as held_masks
from ..joint_entries import listed, numbers
from .kinematics import CLOSED, LoopKinematics, Mask
from .leaders import leading
from .misfits import misfit
from .starts import starts

Hold = str | Iterable[str] | Mapping[str, Any]

STRIDE = 0.05
"""Largest step of held joints from the guess to their given values [rad, or lengths of the mechanism]."""
SAME = 1e-5
"""The largest difference of body poses in equal positions, in units of the mechanism's length."""


def assemble(
    system: CompiledMechanism,
    q_guess: ArrayLike | None = None,
    hold: Hold = (),
    *,
    tolerance: float = 1e-12,
    parameters: ArrayLike | None = None,
) -> Numbers:
    """Return a closed position near a guess, [nq], with every residual at most `tolerance`.

    The tolerance is in radians, and in parts of the mechanism's length (docs/limits.md). `hold` names joints, or axes
    of joints, that keep exactly their values in the guess. As a mapping, it has their values. The mechanism is then
    moved there from the guess, which keeps its assembly mode. The default guess is that of the mechanism. Limits of
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
    """Return the closed positions of the mechanism with joints held, that of the guess first.

    Positions differ if the poses of bodies do; angles are those nearest to the guess. They are found from `tries`
    random starts, the same in every run, and may be incomplete. The held joints must determine the position; by default
    they are independent ones.
    """
    loops = LoopKinematics(system, parameters)
    if hold is None:
        first = assemble(system, q_guess, tolerance=tolerance, parameters=parameters)
        names = leading(loops, first).names
        q_guess, hold = first, tuple(dict.fromkeys(_holdable(loops, name) for name in names))
    first = assemble(system, q_guess, hold, tolerance=tolerance, parameters=parameters)
    q, at, degrees = held_start(loops, first, listed(hold))
    free = _free_motions(loops, q, degrees)
    if free:
        raise InputError(
            f"with {', '.join(listed(hold)) or 'nothing'} held, {free} degrees of freedom can still move, and closed "
            f"positions are without number; hold more joints, such as {', '.join(leading(loops, q).names)}"
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


def held_start(loops: LoopKinematics, q_guess: ArrayLike | None, hold: Hold) -> tuple[Numbers, Mask, Mask]:
    """Return the start of the assembly, and masks of the held coordinates and degrees of freedom."""
    q = loops.start(q_guess)
    if isinstance(hold, Mapping):
        for k, value in numbers(loops.mechanism, hold, 0).items():
            if value.ndim:
                raise InputError(f"hold: {loops.labels[k]!r} is given shape {value.shape}; expected one number")
            q[k] = value
    return q, *held_masks(loops.mechanism, hold)


def _followed(loops: LoopKinematics, base: Numbers, q: Numbers, at: Mask, degrees: Mask) -> list[Numbers]:
    """Return the position reached from the guess as the held joints move to their given values with closed loops.

    This keeps the assembly mode of the guess. The list is empty if the path is blocked.
    """
    way = np.where(degrees, loops.step(base, q), 0.0)
    count = math.ceil(np.abs(way).max(initial=0.0) / STRIDE)
    if not 0 < count <= 400 or loops.gap(q) <= CLOSED:
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
    """Return the position that Newton's method finds with the held coordinates exactly those of q, and its gap."""
    found, _ = loops.close(start, degrees)
    found = np.where(at, q, found)
    return found, loops.gap(found)


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
    """Return the same position with angles within pi of those of another, where multiples of 2 pi have no effect."""
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
