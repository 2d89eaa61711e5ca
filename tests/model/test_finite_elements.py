"""Flexible bodies from finite elements: a lattice of bars, reduced and compared with its whole matrices."""

from __future__ import annotations

from itertools import combinations
from pathlib import Path
from typing import Any

import numpy as np
import pytest
import scipy.linalg

import kinetree as kt
from tolerance import assert_close

BAYS, PITCH, WIDTH, EA, MASS = 5, 0.3, 0.25, 2.0e5, 0.21


def lattice() -> dict[str, Any]:
    """Return a straight lattice of bars along x with triangular cells, clamped at its first cell."""
    corners = WIDTH * np.array([[0.0, 0.0], [1.0, 0.1], [0.3, 0.9]])
    x = np.array([[k * PITCH, *corner] for k in range(BAYS + 1) for corner in corners])
    K = np.zeros((3 * len(x), 3 * len(x)))
    for i, j in combinations(range(len(x)), 2):
        way = x[j] - x[i]
        length = float(np.linalg.norm(way))
        if j // 3 - i // 3 <= 1:
            block = EA / length**3 * np.outer(way, way)
            for a, b, sign in ((i, i, 1), (j, j, 1), (i, j, -1), (j, i, -1)):
                K[3 * a : 3 * a + 3, 3 * b : 3 * b + 3] += sign * block
    masses = MASS * (1 + 0.1 * np.arange(len(x)))
    return {
        "places": x, "mass": np.diag(np.repeat(masses, 3)), "stiffness": K, "clamped": np.arange(3),
        "node_tip": np.arange(len(x) - 3, len(x)), "node_mid": np.arange(6, 9),
    }  # fmt: skip


def saved(folder: Path, **changes: Any) -> Path:
    """Return the file of the lattice with some arrays changed, or left out where they are None."""
    path = folder / "lattice.npz"
    arrays = lattice() | changes
    np.savez(path, **{k: v for k, v in arrays.items() if v is not None})
    return path


def test_a_reduced_lattice(tmp_path):
    """Find mass, frequencies, and the deflection under a force and a moment at a node as in the whole lattice."""
    mesh, shape = lattice(), kt.ModalBody.read(saved(tmp_path), modes=20, damping=0.03)
    masses = np.diag(mesh["mass"])[::3]
    assert_close(shape.moments.m, masses.sum(), 1e-14 * masses.sum(), "mass")
    assert_close(shape.rigid["com"], masses @ mesh["places"] / masses.sum(), 1e-13, "center of mass")
    K, M = mesh["stiffness"][9:, 9:], mesh["mass"][9:, 9:]
    exact = np.sqrt(scipy.linalg.eigh(K, M, eigvals_only=True))
    modal = np.diag(np.array(shape.moments.K))
    found = np.sqrt(np.array(shape.stiffness) / modal)
    assert_close(found[:8] / exact[:8], np.ones(8), 1e-9, "frequencies")
    assert_close(np.array(shape.damping), 2 * 0.03 * found * modal, 1e-9 * modal.max() * found.max(), "damping")
    joints = [kt.Joint("root", "fixed", "ground", "b")]
    system = kt.System(kt.build_mechanism("b", [kt.Body("b", flexible=shape)], joints, gravity=(0.0, 0.0, 0.0)))
    names = [b.name for b in system.mechanism.bodies]
    w, force, moment = np.zeros((len(names), 6)), np.array([3.0, -2.0, 5.0]), np.array([0.4, 0.7, -0.3])
    w[names.index("b.tip")] = [*moment, *force]
    still = np.zeros(20)
    e = -system.inverse_dynamics(still, still, still, wrenches=w, forces=False) / np.array(shape.stiffness)
    tip = mesh["places"][-3:]
    r = tip - tip.mean(axis=0)
    spread = np.linalg.inv(np.sum(r * r) * np.eye(3) - r.T @ r)
    load = np.zeros((BAYS + 1, 3, 3))
    load[-1] = force / 3 + np.cross(spread @ moment, r)
    u = np.linalg.solve(K, load.reshape(-1)[9:]).reshape(-1, 3)[-3:]
    moved = system.pose(e, "b.tip")[:3, 3] - tip.mean(axis=0)
    assert_close(moved, u.mean(axis=0), 1e-9 * np.abs(u).max(), "deflection")
    angles = spread @ np.cross(r, u).sum(axis=0)
    R = system.pose(e, "b.tip")[:3, :3]
    assert_close([R[2, 1], R[0, 2], R[1, 0]], angles, 2 * np.abs(angles).max() ** 2, "rotation")


def test_equations_are_those_of_lagrange(tmp_path):
    """Verify an arm with a lattice as a link."""
    shape = kt.ModalBody.read(saved(tmp_path), modes=13, damping=0.03)
    joints = [
        kt.Joint("j", "revolute", "ground", "b", axis=(0.3, 1.0, 0.2)),
        kt.Joint("k", "revolute", "b.tip", "load"),
    ]
    load = kt.Body("load", 2.0, (0.1, 0.0, 0.2), (0.02, 0.03, 0.04, 0.001, 0.002, 0.003))
    system = kt.System(kt.build_mechanism("arm", [kt.Body("b", flexible=shape), load], joints))
    found = system.verify(states=2, routes=["lagrange"])
    assert found, str(found)


@pytest.mark.parametrize(
    ("changes", "text"),
    [
        ({"mass": None}, "there is no array 'mass'; save it beside clamped, node_mid"),
        ({"places": np.ones((18, 2))}, "places has shape (18, 2); give [n, 3]"),
        ({"mass": np.eye(9)}, "mass has shape (9, 9); give [54, 54]: x, y and z of each node in turn"),
        ({"mass": -np.eye(54)}, "node 0 has the mass -1 kg; give every node a mass"),
        ({"stiffness": np.triu(np.ones((54, 54)))}, "stiffness is not symmetric; save the whole matrix"),
        ({"stiffness": np.eye(54)}, "the stiffness resists rigid motions by 1 of its largest entry"),
        ({"clamped": np.array([0, 99])}, "clamped has entries that are no nodes; give whole numbers from 0 to 17"),
        ({"node_tip": np.array([0, 3, 6])}, "node_tip has 3 nodes on one line; give three or more that are not"),
        ({"places": np.full((18, 3), np.nan)}, "places has entries that are no finite numbers"),
    ],
)
def test_bad_files_are_refused(tmp_path, changes, text):
    """Refuse files with missing, misshapen or impossible arrays."""
    with pytest.raises(kt.ModelError) as error:
        kt.ModalBody.read(saved(tmp_path, **changes))
    assert text in str(error.value)


def test_bad_options_are_refused(tmp_path):
    """Refuse too few and too many modes, another mass, and files that are none."""
    path = saved(tmp_path)
    for modes in (11, 46):
        with pytest.raises(kt.ModelError, match=f"{modes} modes; give 12 to 45: six for each node"):
            kt.ModalBody.read(path, modes=modes)
    with pytest.raises(kt.ModelError, match=r"the mass of the mesh is 6\.993 kg, not 0\.006993 kg; save SI units"):
        kt.ModalBody.read(path, mass=0.006993)
    with pytest.raises(kt.ModelError, match="the file cannot be read"):
        kt.ModalBody.read(tmp_path / "none.npz")
