"""Bushings: slopes of their energy, power of their dampers, action and reaction, symmetry, and the linear law."""

from __future__ import annotations

import numpy as np
import pytest
from scipy.spatial.transform import Rotation

import everyday
import kinetree as kt
from forces_by_numpy import energy, rates_of, slope, torques
from interpreted import compute, derivative, program, relative
from kinetree.errors import InputError, UnknownNameError
from kinetree.experiments.forces_and_control import force
from kinetree.model.mechanism import replace
from kinetree.model.parts import Placement
from kinetree.simulation.acting.rates import ForcedMechanism, rates
from native_program import gufunc
from strategies import State, random_mechanism
from tolerance import assert_close

MOUNT = Placement.from_euler("zyx", (0.3, -0.7, 0.4), (0.12, -0.3, 0.21))
SEAT = Placement.from_euler("xzy", (-0.5, 0.2, 0.9), (-0.2, 0.15, 0.3))
TREE = random_mechanism(["revolute", "spherical", "universal", "free", "prismatic"], [-1, 0, 0, -1, 3], 12)
TREE = replace(TREE, frames=(*TREE.frames, kt.Frame("mount", "b2", MOUNT), kt.Frame("seat", "b4", SEAT)))
S = State(TREE, 5, 6)
REST = np.zeros_like(S.qd)
K, C, G, D = (70.0, 45.0, 20.0), (4.0, 7.0, 2.0), (30.0, 12.0, 55.0), (1.5, 0.4, 3.0)
SPRINGS = kt.Bushing("mount", "seat", stiffness=K, torsional_stiffness=G)
DAMPERS = kt.Bushing("mount", "seat", damping=C, torsional_damping=D)
GROUNDED = kt.Bushing("ground", "seat", stiffness=K, torsional_stiffness=G)


def relative_pose(q):
    """Return position [..., 3] and rotation of `seat` in `mount`."""
    poses, found = compute(TREE, "poses", q), []
    for body, placement in ((2, MOUNT), (4, SEAT)):
        R = poses[:, body, :3, :3] @ np.array(placement.rotation)
        p = poses[:, body, :3, :3] @ np.array(placement.translation) + poses[:, body, :3, 3]
        found.append((R, p))
    (A, a), (B, b) = found
    return np.einsum("sji,sj->si", A, b - a), Rotation.from_matrix(np.einsum("sji,sjk->sik", A, B))


def test_energy_is_that_of_the_relative_pose():
    """Compare with the rotation vectors of SciPy, at rotations of up to half a revolution."""
    e, turn = relative_pose(S.q)
    p = turn.as_rotvec()
    assert np.linalg.norm(p, axis=-1).max() > 2.0
    expected = 0.5 * (e**2 @ np.array(K) + p**2 @ np.array(G))
    assert_close(relative(energy(TREE, SPRINGS, S.q), expected), 0.0, 1e-13, "energy")


@pytest.mark.parametrize("springs", [SPRINGS, GROUNDED], ids=["between bodies", "to the ground"])
def test_force_is_minus_the_slope_of_the_energy(springs):
    """Differentiate the energy along every degree of freedom, far from small rotations."""
    expected = -slope(TREE, lambda q: energy(TREE, springs, q), S.q)
    assert np.abs(expected).max() > 1.0
    assert_close(relative(torques(TREE, S.q, REST, forces=[springs]), expected), 0.0, 2e-9)


def test_dampers_take_the_power_of_their_rates():
    """Find the power -de/dt . C de/dt - w . D w, with the rates from differences of the relative pose."""
    h = 1e-5
    (e1, turn1), (e0, turn0) = (relative_pose(compute(TREE, "integrate", S.q, x * S.qd)) for x in (h, -h))
    rate, spin = (e1 - e0) / (2 * h), (turn1 * turn0.inv()).as_rotvec() / (2 * h)
    expected = -(rate**2 @ np.array(C)) - spin**2 @ np.array(D)
    tau = torques(TREE, S.q, S.qd, forces=[DAMPERS]) - torques(TREE, S.q, S.qd)
    assert_close(relative(np.einsum("si,si->s", tau, S.qd), expected), 0.0, 1e-8)


def test_action_is_reaction():
    """Find no change of the momentum of two free bodies, linear and angular."""
    mechanism = replace(random_mechanism(["free", "free"], [-1, -1], 9), gravity=(0.0, 0.0, 0.0))
    both = kt.Bushing("b0", "b1", stiffness=K, damping=C, torsional_stiffness=G, torsional_damping=D)
    s = State(mechanism, 3, 6)
    dq, dqd = rates_of(mechanism, s.q, s.qd, forces=[both])
    assert np.abs(dqd).max() > 1.0
    change = derivative(program(mechanism, "momentum"), [s.q, s.qd], [dq, dqd])
    assert_close(change, np.zeros((6, 6)), 1e-11)


def test_equal_coefficients_do_not_know_the_first_frame():
    """Exchange the frames of a bushing that is equally stiff along all axes, and find the same forces."""
    one, other = (kt.Bushing(a, b, stiffness=37.0, torsional_stiffness=11.0)
                  for a, b in (("mount", "seat"), ("seat", "mount")))  # fmt: skip
    found = torques(TREE, S.q, REST, forces=[one])
    assert_close(relative(torques(TREE, S.q, REST, forces=[other]), found), 0.0, 1e-12)


def test_small_displacements_follow_the_diagonal_law():
    """Displace a free body by little from the pose without force, and find -K x and -G p."""
    block = kt.System(kt.build_mechanism(
        "block", [kt.Body("block", 2.0, inertia=(0.2, 0.3, 0.4, 0, 0, 0))],
        [kt.Joint("root", "free", "ground", "block")], gravity=(0, 0, 0)))  # fmt: skip
    held = kt.Bushing("ground", "block", stiffness=K, torsional_stiffness=G)
    x = 1e-7 * np.array([0.7, -0.4, 1.1, 0.9, -1.3, 0.6])  # a rotation, then a translation
    q = block.integrate(block.neutral(), x)
    tau = torques(block.mechanism, q, np.zeros(6), forces=[held])
    assert_close(tau, -np.array([*G, *K]) * x, 1e-12)
    assert np.array_equal(torques(block.mechanism, block.neutral(), np.zeros(6), forces=[held]), np.zeros(6))
    moved = kt.simulation_derivatives(block, block.neutral(), times=[0.0, 1e-3], forces=[held], method="rk4", dt=1e-3)
    assert_close(np.diag(moved.dqd[-1, :, :6]), -1e-3 * np.array([*G, *K]) / (0.2, 0.3, 0.4, 2.0, 2.0, 2.0), 1e-4)


@everyday.long
def test_native_code_agrees():
    """Compile the rates under a bushing with all coefficients, and compare with the interpreter."""
    compiled = rates(ForcedMechanism(TREE, [replace(SPRINGS, damping=C, torsional_damping=D)]))
    arguments = (np.zeros((6, 1)), S.q, S.qd)
    for native, plain in zip(gufunc(compiled)(*arguments), compiled.interpret(*arguments), strict=True):
        assert_close(relative(native, plain), 0.0, 1e-12)


def test_files_have_bushings():
    """Read a bushing from the table of an experiment."""
    table = {"kind": "bushing", "frame_a": "mount", "frame_b": "seat", "stiffness": [70, 45, 20], "damping": 3.5}
    assert force(table, "force[0]", TREE) == kt.Bushing("mount", "seat", stiffness=K, damping=3.5)


def test_faults_are_named():
    """Refuse two coefficients, a negative one, and a frame that does not exist."""
    with pytest.raises(
        InputError, match="torsional_damping of Bushing between 'a' and 'b' has 2 numbers; give one, or 3"
    ):
        kt.Bushing("a", "b", torsional_damping=(1.0, 2.0))
    with pytest.raises(InputError, match="stiffness of Bushing between 'a' and 'b'"):
        kt.Bushing("a", "b", stiffness=-1.0)
    with pytest.raises(UnknownNameError, match="no frame 'saet'; did you mean 'seat'"):
        rates(ForcedMechanism(TREE, [kt.Bushing("mount", "saet", stiffness=1.0)]))
