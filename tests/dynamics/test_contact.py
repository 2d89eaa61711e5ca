"""Motion of contacts and the Delassus matrix, against complex steps and dense linear algebra."""

from __future__ import annotations

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

import kinetree as kt
from closed_mechanisms import library_state
from contacted import HILLS, STAIRS, outputs, random_contact, rates, touching
from interpreted import compute
from kinetree.compiler.lower.contacts import answer_program, candidate_names, motion_program, response_program
from kinetree.contact_geometry.surfaces import FAR
from kinetree.model import GROUND, Body, Contact, Joint, Placement, Surface, build_mechanism
from strategies import MOVING, examples, mechanisms, random_mechanism
from tolerance import assert_close

EPS = 2.3e-16


@given(mechanisms(MOVING, least=2, most=4), st.integers(0, 2**32 - 1))
@examples(6)
def test_velocities_and_biases_are_rates(mechanism, seed) -> None:
    """Compare velocities with the rates of gaps, and biases with the rates of velocities, by a complex step."""
    rng = np.random.default_rng(seed)
    mechanism = touching(mechanism, random_contact("c", mechanism, rng))
    q, qd = kt.System(mechanism).random_state(rng)
    program = motion_program(mechanism)
    found, rate = outputs(program, q, qd), rates(program, mechanism, q, qd)
    scale = 1 + np.abs(rate["velocity"]).max() + np.abs(found["velocity"]).max()
    near = found["gap"] < FAR  # a rim that does not lie flat touches with its lowest point alone
    both = found["velocity"][near, 0], rate["gap"][near]
    assert_close(*both, 1e-12 * scale, "normal velocity against the rate of the gap")
    assert_close(found["bias"], rate["velocity"], 1e-10 * scale, "bias against the rate of the velocity")
    assert_close(found["J"] @ qd, found["velocity"], 1e-12 * scale, "J qd against the velocity")


@pytest.mark.slow
@pytest.mark.parametrize("shape, size, surface", [
    ("point", (), STAIRS), ("sphere", (0.13,), STAIRS), ("capsule", (0.1, 0.2), STAIRS),
    ("point", (), Surface("heights", placement=Placement((-0.4, -0.5, -0.3)), heights=HILLS, spacing=(0.4, 0.31))),
])  # fmt: skip
def test_rates_on_steps_and_height_fields(shape, size, surface) -> None:
    """Compare velocities and biases on steps and height fields with complex steps, around edges too."""
    rng = np.random.default_rng(7)
    mechanism = random_mechanism(["free", "revolute"], [-1, 0], rng)
    mechanism = touching(mechanism, Contact("c", mechanism.bodies[1].name, shape, size, (0.1, 0.07, 0.2), surface))
    program, seen = motion_program(mechanism), 0
    for _ in range(12):
        q, qd = kt.System(mechanism).random_state(rng)
        q[:3] = rng.normal(size=3) * 0.3
        found, rate = outputs(program, q, qd), rates(program, mechanism, q, qd)
        near = (found["gap"] < 1e3) & (np.abs(found["gap"]) < (2.0 if surface.kind == "steps" else 1e3))
        seen += near.sum()
        scale = 1 + np.abs(found["velocity"]).max() ** 2
        if surface.kind == "steps":
            both = found["velocity"][near, 0], rate["gap"][near]
            assert_close(*both, 1e-11 * scale, "normal velocity")
        assert_close(found["bias"][near], rate["velocity"][near], 1e-9 * scale, "bias")
    assert seen > 4


def test_normal_velocity_on_a_height_field_at_the_surface() -> None:
    """Put a point on a height field: there, the rate of the gap is the velocity along the normal."""
    surface = Surface("heights", heights=HILLS, spacing=(0.4, 0.31))
    rng = np.random.default_rng(3)
    block = Body("block", 1.3, (0.1, 0.2, 0.3), (0.2, 0.3, 0.4, 0.01, 0.02, 0.03))
    free = build_mechanism("block", [block], [Joint("root", "free", GROUND, "block")])
    mechanism = touching(free, Contact("c", "block", surface=surface))
    program = motion_program(mechanism)
    q, qd = kt.System(mechanism).random_state(rng)
    q[:3] = 0.4, 0.62, HILLS[1][2]
    found, rate = outputs(program, q, qd), rates(program, mechanism, q, qd)
    assert_close(found["gap"], [0.0], 1e-15, "gap at a given height")
    assert_close(found["velocity"][:, 0], rate["gap"], 1e-14, "normal velocity")
    assert abs(found["axes"][0, 0, :2]).min() > 0.05


def test_normals_point_away_from_planes_of_bodies() -> None:
    """Put the axes of a contact with a moving plane, and its point, where the poses of the two bodies are."""
    rng = np.random.default_rng(5)
    mechanism = random_mechanism(["free", "revolute", "spherical"], [-1, 0, 0], rng)
    plane = Placement.from_euler("xyz", (0.3, -0.7, 0.2), (0.1, -0.2, 0.3))
    names = [b.name for b in mechanism.bodies]
    mechanism = touching(
        mechanism, Contact("c", names[1], "sphere", 0.2, (0.3, 0.1, 0.4), Surface("plane", names[2], plane))
    )
    q, qd = kt.System(mechanism).random_state(rng)
    found = outputs(motion_program(mechanism), q, qd)
    T = compute(mechanism, "poses", q)
    n = T[2, :3, :3] @ np.array(plane.rotation)[:, 2]
    center = T[1, :3, :3] @ [0.3, 0.1, 0.4] + T[1, :3, 3]
    origin = T[2, :3, :3] @ plane.translation + T[2, :3, 3]
    assert_close(found["axes"][0, 0], n, 1e-14, "normal")
    assert_close(found["axes"][0] @ found["axes"][0].T, np.eye(3), 1e-14, "orthonormal axes")
    assert_close(found["gap"], [n @ (center - origin) - 0.2], 1e-14, "gap")
    assert_close(found["points"][0], center - 0.2 * n, 1e-14, "point")


@given(mechanisms(MOVING, least=2, most=4), st.integers(0, 2**32 - 1))
@examples(4)
def test_delassus_matrix_of_trees(mechanism, seed) -> None:
    """Compare W and X with J I^-1 J^T by dense solutions."""
    rng = np.random.default_rng(seed)
    mechanism = touching(mechanism, *(random_contact(f"c{k}", mechanism, rng, "sphere") for k in range(2)))
    q, qd = kt.System(mechanism).random_state(rng)
    J = outputs(motion_program(mechanism), q, qd)["J"].reshape(-1, mechanism.nv)
    found = outputs(response_program(mechanism), q)
    inertia = compute(mechanism, "inertia_matrix", q)
    X = np.linalg.solve(inertia, J.T)
    bound = 40 * EPS * np.linalg.cond(inertia) * max(1.0, np.abs(X).max()) * max(1.0, np.abs(J).max())
    assert_close(found["X"], X, bound, "X against a dense solution")
    assert_close(found["W"], J @ X, bound, "W against a dense solution")
    column = outputs(answer_program(mechanism), q, J[4])["qdd"]
    assert_close(column, X[:, 4], bound, "one column as torques")


@pytest.mark.slow
def test_delassus_matrix_of_a_closed_mechanism() -> None:
    """Compare W and X of a six-bar press with the bordered system of inertia and loops."""
    system, q, qd, _ = library_state("three_rrr", 3)
    tip = system.bodies[-1].name
    mechanism = touching(system.mechanism, Contact("tip", tip, "sphere", 0.05, (0.1, 0.2, 0.05)))
    J = outputs(motion_program(mechanism), q, qd)["J"].reshape(-1, mechanism.nv)
    found = outputs(response_program(mechanism), q)
    inertia, loops = system.inertia_matrix(q), system.closure_jacobian(q)
    count = len(loops)
    bordered = np.block([[inertia, -loops.T], [loops, np.zeros((count, count))]])
    right = np.vstack([J.T, np.zeros((count, 3))])
    X = np.linalg.lstsq(bordered, right, rcond=1e-10)[0][: system.nv]
    assert_close(found["X"], X, 1e-9 * np.abs(X).max(), "X of the constrained system")
    assert_close(found["W"], J @ X, 1e-9 * np.abs(J @ X).max(), "W of the constrained system")
    answered = outputs(answer_program(mechanism), q, J[1])["qdd"]
    assert_close(answered, X[:, 1], 1e-9 * np.abs(X).max(), "one column as torques")


def test_names_of_candidates() -> None:
    """Number the candidates of boxes and capsules, and name those of steps."""
    mechanism = random_mechanism(["free"], [-1], np.random.default_rng(1))
    name = mechanism.bodies[0].name
    found = candidate_names(touching(
        mechanism, Contact("p", name), Contact("k", name, "capsule", (0.1, 0.2)), Contact("s", name, surface=STAIRS)
    ))  # fmt: skip
    assert found == ("p", "k.1", "k.2", "s.floor", "s.wall")
