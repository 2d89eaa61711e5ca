"""Molecules with fixed bonds: their shape, and the mass-metric tensor by Fixman's theorem."""

from __future__ import annotations

import math
from itertools import pairwise

import numpy as np
import pytest

import kinetree as kt
from kinetree.errors import InputError
from tolerance import assert_close


def places(molecule: kt.System, q: np.ndarray, atoms: int) -> np.ndarray:
    """Return the places of all atoms [atoms, 3]."""
    return np.array([molecule.pose(q, f"atom{k}")[:3, 3] for k in range(1, atoms + 1)])


def folded(molecule: kt.System, seed: int) -> np.ndarray:
    """Return random torsions, and a random place and rotation of the base."""
    return molecule.random_state(seed)[0]


def hard_metric(x: np.ndarray, mass: float) -> np.ndarray:
    """Return sum of grad a . grad b / m over the atoms, for all lengths of bonds and cosines of their angles."""
    bonds, rows = np.diff(x, axis=0), []
    for k, e in enumerate(bonds):
        row = np.zeros_like(x)
        row[k + 1] = e / np.linalg.norm(e)
        row[k] = -row[k + 1]
        rows.append(row.ravel())
    for k, (a, b) in enumerate(pairwise(bonds)):
        row = np.zeros_like(x)
        u, v = a / np.linalg.norm(a), b / np.linalg.norm(b)
        along, back = (v - u * (u @ v)) / np.linalg.norm(a), (u - v * (u @ v)) / np.linalg.norm(b)
        row[k], row[k + 1], row[k + 2] = -along, along - back, back
        rows.append(row.ravel())
    return np.array(rows) @ np.array(rows).T / mass


@pytest.mark.parametrize("atoms", [3, 4, 7])
def test_bonds_and_angles_are_fixed(atoms):
    """Fold a molecule and find its bonds, its bond angles, its torsions and its mass."""
    molecule = kt.polymer(atoms, bond=0.21, angle=1.8, mass=3.0)
    q = folded(molecule, 3)
    x = places(molecule, q, atoms)
    bonds = np.diff(x, axis=0)
    assert_close(np.linalg.norm(bonds, axis=1), np.full(atoms - 1, 0.21), 1e-14, "bonds")
    angles = [math.acos(-(a @ b) / 0.21**2) for a, b in pairwise(bonds)]
    assert_close(np.array(angles), np.full(atoms - 2, 1.8), 1e-13, "angles")
    for k in range(atoms - 3):
        a, b, c = bonds[k : k + 3]
        across = np.cross(a, b), np.cross(b, c)
        torsion = math.atan2(np.cross(*across) @ b / np.linalg.norm(b), across[0] @ across[1])
        assert_close(math.remainder(q[7 + k] - torsion, 2 * math.pi), 0.0, 1e-13, f"torsion {k + 4}")
    assert sum(b.mass for b in molecule.bodies) == 3.0 * atoms and molecule.nv == atoms + 3


@pytest.mark.parametrize("atoms", [4, 5, 9])
def test_the_metric_is_that_of_fixman(atoms):
    """Find det I proportional to the determinant of the metric of bonds and angles, at random torsions and places."""
    molecule = kt.polymer(atoms)
    found = []
    for seed in range(6):
        q = folded(molecule, seed)
        log_hard = np.linalg.slogdet(hard_metric(places(molecule, q, atoms), 14.0))[1]
        found.append(float(molecule.inertia_logdet(q)) - log_hard)
    assert_close(np.array(found), np.full(6, found[0]), 1e-12, "log det I - log det H")  # 1e-14
    other = kt.polymer(atoms).neutral()
    other[7:] = 2.0
    assert abs(molecule.inertia_logdet(other) - molecule.inertia_logdet(molecule.neutral())) > 0.1


def test_the_gradient_is_that_of_fixmans_metric():
    """Differentiate the determinant of the metric of bonds and angles, and find the gradient by the recursion."""
    molecule, h = kt.polymer(7), 1e-5
    q = folded(molecule, 2)
    gradient = molecule.inertia_logdet_gradient(q)
    for k in range(4):
        ends = [q + sign * h * np.eye(11)[7 + k] for sign in (1, -1)]
        up, down = (np.linalg.slogdet(hard_metric(places(molecule, x, 7), 14.0))[1] for x in ends)
        assert_close(gradient[6 + k], (up - down) / (2 * h), 1e-8, f"torsion {k + 4}")


def test_impossible_molecules_are_refused():
    """Refuse two atoms, straight angles and bonds without length."""
    with pytest.raises(InputError, match="n is 2"):
        kt.polymer(2)
    with pytest.raises(InputError, match=r"the angle is 3.14.*; expected one between 0 and pi"):
        kt.polymer(5, angle=math.pi)
    with pytest.raises(InputError, match="bond"):
        kt.polymer(5, bond=0.0)
    with pytest.raises(InputError, match="mass"):
        kt.polymer(5, mass=-1.0)
