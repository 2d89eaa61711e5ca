"""[Gupta2013]: the seven masses of the spatial pendulum, section V."""

from __future__ import annotations

from pathlib import Path

import numpy as np

from ...formulations.points import body_of, body_points
from ...loading import load
from ...model.mechanism import resolve_parts
from .entry import Check, Entry, Outcome, Source, write_csv

PRINTED = (0.628, -0.543, 1.171, 0.0, 1.171, -0.543, 0.628)
"""Masses [kg] as printed: truncated to three decimals, not rounded."""


def seven_masses(folder: Path) -> Outcome:
    """Compute the seven masses and positions of the rod about its tip, and the rod from them."""
    arm = load("spatial_pendulum")
    rod = resolve_parts(arm.mechanism.bodies[0], arm.mechanism.values())
    tip = np.array([2 * rod.com[0], 0.0, 0.0])  # the origin O_2 of the paper's body frame
    points = body_points(rod, "seven", at=tip)
    masses, places = points.masses.round(15) + 0.0, points.positions - tip
    headings = ("point", "mass [kg]", "printed [kg]", "x [m]", "y [m]", "z [m]")
    rows = tuple(
        (str(k), f"{round(m, 6) + 0.0:.6f}", f"{p:.3f}", *(f"{x:+.6f}" for x in r))
        for k, (m, p, r) in enumerate(zip(masses, PRINTED, places, strict=True), 1)
    )
    cut = np.trunc(masses * 1000) / 1000
    m, com, inertia = body_of(points)
    back = max(
        abs(m - rod.mass) / rod.mass,
        float(np.abs(com - rod.com).max()),
        float(np.abs(inertia - np.diag(rod.inertia[:3])).max()),
    )
    file = write_csv(folder / "gupta2013_masses.csv", headings, rows)
    checks = (
        Check(
            "masses " + ", ".join(f"{x:g}" for x in PRINTED) + " kg",
            "truncated to three decimals: " + ", ".join(f"{x + 0.0:g}" for x in cut) + " kg",
            bool((cut == PRINTED).all()),
            Source.PRINTED,
        ),
        Check("the points have the rod's mass, center of mass and inertia (1)-(10)", f"to {back:.1e}", back <= 1e-12),
    )
    return Outcome(checks, (("Seven points about O_2", (headings, *rows)),), (file,))


ENTRIES = (Entry("gupta2013-masses", "Gupta2013", "the seven masses of the spatial pendulum", seven_masses),)
