"""Characteristic length and mass of a mechanism, with which lengths and masses are compared.

Tolerances of loops are fractions of these, so that a mechanism of micrometers and its copy enlarged to kilometers get
the same answers.
"""

from __future__ import annotations

import numpy as np

from .axes import axis_names
from .mechanism import Mechanism, kept_with_mechanism, resolve_parts
from .topology import path

ELSEWHERE = 1e-5
"""The part of the largest motion of a mechanism that counts as motion at each of its loops: see `rate_sizes`."""


@kept_with_mechanism
def characteristic_length(mechanism: Mechanism) -> float:
    """Return the mean of the nonzero lengths of a mechanism [m]; 1 m if all are zero.

    Lengths are the distances between successive joints, the distances of the ends of loops from the origins of their
    bodies, and the lengths of rods. If all are zero, the distances of the centers of mass are used.
    """
    sizes = mechanism.lengths
    return float(np.mean(sizes)) if sizes else 1.0


def largest_length(mechanism: Mechanism) -> float:
    """Return the largest of the lengths of a mechanism [m], to which rounding errors are proportional."""
    return max(mechanism.lengths, default=1.0)


def characteristic_mass(mechanism: Mechanism) -> float:
    """Return the mean mass of the bodies of a mechanism [kg], without massless ones; 1 kg if all are massless."""
    masses = [float(b.mass) for b in resolve_parts(mechanism.bodies, mechanism.values()) if b.mass > 0]
    return float(np.mean(masses)) if masses else 1.0


@kept_with_mechanism
def loop_units(mechanism: Mechanism) -> tuple[np.ndarray, np.ndarray]:
    """Return the units of the equations of loops and of the degrees of freedom: 1 rad, or the characteristic length."""
    length = characteristic_length(mechanism)
    units = (
        np.array([length if e.unit == "m" else 1.0 for e in mechanism.closures]),
        np.array([length if unit == "m" else 1.0 for _, _, unit in axis_names(mechanism, 1)]),
    )
    for array in units:
        array.flags.writeable = False  # all callers share them
    return units


@kept_with_mechanism
def coordinate_units(mechanism: Mechanism) -> np.ndarray:
    """Return the unit of each coordinate: the characteristic length [m], or 1 for angles and quaternions."""
    length = characteristic_length(mechanism)
    units = np.array([length if unit == "m" else 1.0 for _, _, unit in axis_names(mechanism, 0)])
    units.flags.writeable = False  # all callers share them
    return units


@kept_with_mechanism
def loop_members(mechanism: Mechanism) -> np.ndarray:
    """Return which degrees of freedom [nv] each equation of the loops contains, at any position, [nc, nv].

    Those of a loop are the joints between its two ends, those of a coupling are its joints.
    """
    index, sets = mechanism.body_indices, []
    for x in mechanism.loops:
        sets.append(set(path(mechanism, index[x.body_a])) ^ set(path(mechanism, index[x.body_b])))
    names = {j.name: k for k, j in enumerate(mechanism.joints)}
    couplings = {c.name: {names[j] for j in (c.joint, *(name for name, _ in c.terms))} for c in mechanism.couplings}
    loops = {x.name: members for x, members in zip(mechanism.loops, sets, strict=True)}
    out = np.zeros((len(mechanism.closures), mechanism.nv), dtype=bool)
    for row, e in zip(out, mechanism.closures, strict=True):
        for k in (couplings if e.label == "coupling" else loops)[e.name]:
            row[mechanism.v_slices[k]] = True
    out.flags.writeable = False
    return out


def rate_sizes(mechanism: Mechanism, qd: np.ndarray, qdd: np.ndarray | None = None) -> np.ndarray:
    """Return the size of a motion at each equation of the loops, [..., nc]: in its unit per s, or per s^2 with qdd.

    It is the largest velocity of the degrees of freedom in the equation, each in its unit; with qdd, the largest
    acceleration or the square of that velocity. Unlike |J| |qd|, it does not vanish at turning points, where J does:
    rounding errors of a consistent motion are some 1e-16 of it at every position. It is never less than the part
    ELSEWHERE of the largest size of all degrees of freedom: a loop at rest has the rounding errors of what moves.
    """
    rows, columns = loop_units(mechanism)
    speeds = np.abs(qd / columns)
    sizes = speeds if qdd is None else np.maximum(np.abs(qdd / columns), speeds * speeds)
    own = np.where(loop_members(mechanism), sizes[..., None, :], 0.0).max(axis=-1, initial=0.0)
    return rows * np.maximum(own, ELSEWHERE * sizes.max(axis=-1, initial=0.0, keepdims=True))


def torque_units(mechanism: Mechanism) -> np.ndarray:
    """Return the units of joint torques, m l^2/s^2 [N m], and forces, m l/s^2 [N], of characteristic m and l."""
    _, speeds = loop_units(mechanism)
    return characteristic_mass(mechanism) * characteristic_length(mechanism) ** 2 / speeds


def wrench_units(mechanism: Mechanism) -> np.ndarray:
    """Return the units of the entries of a wrench [6]: three moments [N m], three forces [N]."""
    length = characteristic_length(mechanism)
    return characteristic_mass(mechanism) * length * np.array([length, length, length, 1.0, 1.0, 1.0])
