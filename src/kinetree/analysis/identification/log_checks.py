"""What the data of a log say of its columns: units of angles and velocities, swapped columns and signs."""

from __future__ import annotations

import math
from pathlib import Path
from typing import TYPE_CHECKING

import numpy as np

from ...algebra.arrays import Numbers
from ...errors import InputError
from ...model.axes import axis_labels, axis_names
from ...runtime.compiled import CompiledMechanism

if TYPE_CHECKING:
    from numpy.typing import NDArray

ANGLES = {
    **dict.fromkeys(("deg", "degs", "degree", "degrees", "degps", "grad"), math.pi / 180.0),
    **dict.fromkeys(("rev", "revs", "turn", "turns", "rot"), 2.0 * math.pi), "mrad": 1e-3, "mm": 1e-3, "rad": 1.0,
}  # fmt: skip
"""Radians or meters of a unit by its name."""
RATES_OVER = 0.02
"""Half of the time [s] over which rates of positions are formed."""
SPEEDS = {1.0: "rad/s", 180.0 / math.pi: "degrees per second", 30.0 / math.pi: "revolutions per minute"}
"""Units of measured velocities, by what 1 rad/s is in them."""
TURNS = 2.5 * 2.0 * math.pi
"""The largest position of a joint that is likely in radians: limits of arms are up to one revolution each way."""
BEYOND = 1.2
"""The factor by which positions may exceed the limits of the model before they are taken as degrees."""
ALIKE, UNLIKE = 0.7, 0.4
"""Correlations of a measured velocity with the derivative of a position: of the same joint, and of another one."""


def to_radians(
    system: CompiledMechanism,
    arrays: dict[str, Numbers],
    t: Numbers,
    degrees: bool | None,
    words: list[list[str]],
    path: Path,
    findings: list[str],
) -> None:
    """Convert angles to radians and lengths to meters where names, sizes or limits say that they are not."""
    turning = np.array([unit == "rad" for _, _, unit in axis_names(system.mechanism, 1)])
    factors = np.ones(len(turning))
    for k, own in enumerate(words):
        factors[k] = next((ANGLES[w] for w in own if w in ANGLES), 1.0)
    named = any(set(w) & (ANGLES.keys() - {"mm"}) for k, w in enumerate(words) if turning[k])
    if degrees is not None:
        factors = np.where(turning, math.pi / 180.0 if degrees else 1.0, factors)
    elif turning.any() and not named:
        why = _likely_degrees(system, arrays["q"], turning)
        if why:
            factors = np.where(turning, math.pi / 180.0, factors)
            findings.append(f"{path.name}: positions of up to {why} are taken as degrees; --radians if they are not")
    arrays["q"] = arrays["q"] * factors
    if "qd" in arrays and turning.any():
        slope = _slopes(t, arrays["q"], arrays["qd"])[turning]
        size = float(np.nanmedian(np.abs(slope)))
        unit = min(SPEEDS, key=lambda u: abs(math.log(max(size, 1e-300) / u)))
        if unit != 1.0 and abs(math.log(max(size, 1e-300) / unit)) < math.log(1.5):
            arrays["qd"] = np.where(turning, arrays["qd"] / unit, arrays["qd"])
            if (factors[turning] == 1.0).all():
                findings.append(f"{path.name}: velocities are in {SPEEDS[unit]}, positions in radians")


def _likely_degrees(system: CompiledMechanism, q: Numbers, turning: NDArray[np.bool_]) -> str:
    """Return the largest position that joints in radians are not likely to have, as text, or nothing."""
    largest = np.nanmax(np.abs(q), axis=0, initial=0.0)
    if float(largest[turning].max()) > TURNS:
        return f"{largest[turning].max():.4g}"
    for k, joint in enumerate(system.mechanism.joints):
        low, high = joint.limits.lower, joint.limits.upper
        if len(system.mechanism.joints) == len(largest) and turning[k] and len(low) and len(high):
            most = max(abs(float(low[0])), abs(float(high[0])))  # pyright: ignore
            if math.isfinite(most) and largest[k] > BEYOND * max(most, math.pi):
                return f"{largest[k]:.4g}, beyond the limits of {joint.name},"
    return ""


def _rates(t: Numbers, q: Numbers) -> Numbers:
    """Return rough velocities, over steps in which noise is small."""
    apart = max(1, int(RATES_OVER / max(float(np.median(np.diff(t))), 1e-9)))
    out = np.full(q.shape, np.nan)
    out[apart:-apart] = (q[2 * apart :] - q[: -2 * apart]) / (t[2 * apart :] - t[: -2 * apart])[:, None]
    return out


def _slopes(t: Numbers, q: Numbers, qd: Numbers) -> Numbers:
    """Return measured velocities in parts of the rates of positions, by joint."""
    rates = _rates(t, q)
    return np.nansum(rates * qd, axis=0) / np.maximum(np.nansum(rates * rates, axis=0), 1e-300)


def check_velocities(
    system: CompiledMechanism, t: Numbers, arrays: dict[str, Numbers], path: Path, findings: list[str]
) -> None:
    """Compare measured velocities with the rates of positions: swapped columns are refused, signs reported."""
    if "qd" not in arrays:
        return
    rates, qd = _rates(t, arrays["q"]), arrays["qd"]
    good = np.isfinite(rates).all(axis=1) & np.isfinite(qd).all(axis=1)
    labels = axis_labels(system.mechanism, 1)
    a, b = rates[good], qd[good]
    moving = (np.std(a, axis=0) > 1e-9) & (np.std(b, axis=0) > 1e-9)
    unit = [np.where(moving, (x - x.mean(axis=0)) / np.maximum(np.std(x, axis=0), 1e-300), 0.0) for x in (a, b)]
    alike = unit[0].T @ unit[1] / max(len(a), 1)
    for k, label in enumerate(labels):
        if not moving[k] or abs(alike[k, k]) >= ALIKE:
            continue
        other = int(np.argmax(np.abs(alike[k])))
        if other != k and abs(alike[k, other]) > ALIKE:
            raise InputError(
                f"{path}: the velocity of {labels[other]!r} is the rate of the position of {label!r}: columns are "
                "swapped; rename them in the header"
            )
        if abs(alike[k, k]) >= UNLIKE:
            continue
        raise InputError(
            f"{path}: the velocity of {label!r} is not the rate of its position (correlation {alike[k, k]:.2f}); look "
            "for swapped columns or wrong units, or leave the column of velocities out"
        )
    turned = [labels[k] for k in range(len(labels)) if moving[k] and alike[k, k] < 0.0]
    if turned:
        findings.append(f"{path.name}: velocities of {', '.join(turned)} have the opposite sign of positions; not used")
