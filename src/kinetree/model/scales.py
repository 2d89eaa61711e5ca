"""Characteristic length and mass of a mechanism, with which lengths and masses are compared.

Tolerances of loops are fractions of these, so that a mechanism of micrometers and its copy enlarged to kilometers get
the same answers.
"""

from __future__ import annotations

import numpy as np

from .axes import axis_names
from .mechanism import Mechanism, kept_with_mechanism, resolved


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
    masses = [float(b.mass) for b in resolved(mechanism.bodies, mechanism.values()) if b.mass > 0]
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


def torque_units(mechanism: Mechanism) -> np.ndarray:
    """Return the units of joint torques, m l^2/s^2 [N m], and forces, m l/s^2 [N], of characteristic m and l."""
    _, speeds = loop_units(mechanism)
    return characteristic_mass(mechanism) * characteristic_length(mechanism) ** 2 / speeds


def wrench_units(mechanism: Mechanism) -> np.ndarray:
    """Return the units of the entries of a wrench [6]: three moments [N m], three forces [N]."""
    length = characteristic_length(mechanism)
    return characteristic_mass(mechanism) * length * np.array([length, length, length, 1.0, 1.0, 1.0])
