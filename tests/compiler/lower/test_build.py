"""Requests, shapes, and the Programs of a mechanism."""

from __future__ import annotations

from dataclasses import replace

import numpy as np
import pytest
from hypothesis import given

import everyday
from interpreted import compute, program, relative
from kinetree import InputError, UnknownNameError
from kinetree.compiler.lower import sweeps
from kinetree.compiler.lower.build import Request, build, signature
from kinetree.dynamics import ALGORITHMS
from kinetree.model import Placement
from kinetree.model.parts import Shape
from strategies import State, examples, moving_mechanisms, one_of_each, random_mechanism
from tolerance import assert_close

ARM = random_mechanism(["revolute", "spherical"], [-1, 0], 1)


@pytest.mark.parametrize(("request_", "error", "message"), [
    (Request("inverse_dynamic"), UnknownNameError,
     "no function 'inverse_dynamic'; did you mean 'inverse_dynamics'? available: "),
    (Request("pose"), InputError, "pose needs a frame: one of tool, b0, b1, ground"),
    (Request("pose", "tol"), UnknownNameError, "no frame 'tol'; did you mean 'tool'? available: tool, b0, b1, ground"),
    (Request("inertia_matrix", "tool"), InputError, "inertia_matrix takes no frame"),
    (Request("pose", "tool", "world"), InputError, "pose has no choice of axes"),
    (Request("jacobian", "tool", "local"), InputError, "axes is 'local'; expected 'body' or 'world'"),
    (Request("pose", "tool", wrenches=True), InputError, "pose does not depend on external wrenches"),
    (Request("inertia_matrix", dtype="float16"), InputError, "dtype is 'float16'; expected 'float64' or 'float32'"),
])  # fmt: skip
def test_impossible_requests_say_what_is_possible(request_, error, message):
    """Refuse impossible requests, with the possible values in the message."""
    with pytest.raises(error) as caught:
        request_.checked(ARM)
    assert str(caught.value).startswith(message)


def test_defaults_are_filled_in():
    """Find the default axes in a checked request."""
    assert Request("jacobian", "tool").checked(ARM).axes == "world"
    assert Request("twist", "tool").checked(ARM).axes == "body"
    assert Request("pose", "tool").checked(ARM).axes is None


def test_signatures():
    """Give every input and output its shape."""
    inputs, (output,) = signature(ARM, Request("reactions", wrenches=True))
    assert [(a.name, a.shape) for a in inputs] == [("q", (5,)), ("qd", (4,)), ("qdd", (4,)), ("wrenches", (2, 6))]
    assert (output.name, output.shape) == ("w", (2, 6))


@pytest.mark.parametrize("name", everyday.some(ALGORITHMS))
def test_every_algorithm_is_built_again_the_same(name):
    """Trace an algorithm twice and find the same Program, with the shapes of its signature."""
    mechanism = one_of_each()
    request = Request(name, "tool" if ALGORITHMS[name].frame else None).checked(mechanism)
    p = build(mechanism, request)
    assert p == build(mechanism, request)
    inputs, outputs = signature(mechanism, request)
    assert (p.inputs, p.outputs) == (inputs, outputs)
    assert [len(r) for r in p.results] == [a.size for a in outputs]


@given(moving_mechanisms())
@examples(20)
def test_lumping_masses_changes_no_torque(mechanism):
    """Lump masses toward the ground or not, and find the same torques."""
    s = State(mechanism)
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(sweeps.Tree, "lump", lambda tree: None)
        request = Request("inverse_dynamics", wrenches=True).checked(mechanism)
        expected = build(mechanism, request).interpret(s.q, s.qd, s.qdd, s.wrenches)[0]
    tau = compute(mechanism, "inverse_dynamics", s.q, s.qd, s.qdd, wrenches=s.wrenches)
    assert_close(relative(tau, expected), 0.0, 1e-13, "tau")  # 1e-15


def test_right_angles_cost_less():
    """Find fewer operations for an arm whose axes are at right angles than for a general one."""
    general = random_mechanism(["revolute"] * 4, range(-1, 3), 1)
    joints = []
    for k, joint in enumerate(general.joints):
        axis = ((0.0, 0.0, 1.0), (0.0, 1.0, 0.0))[k % 2]
        joints.append(replace(joint, axis=axis, placement=Placement((0.0, 0.0, 0.5))))
    straight = replace(general, joints=tuple(joints))
    costs = [sum(program(m, "inverse_dynamics").cost().values()) for m in (straight, general)]
    assert costs[0] < 0.7 * costs[1]


def test_shapes_to_draw_change_nothing():
    """Add shapes for drawing and find the same Program."""
    body = replace(ARM.bodies[0], shapes=(Shape("sphere", (1.0,)),))
    drawn = replace(ARM, bodies=(body, *ARM.bodies[1:]))
    assert program(drawn, "inverse_dynamics") == program(ARM, "inverse_dynamics")


def test_programs_do_not_depend_on_unused_inputs():
    """Find that the gravity torque depends on q alone."""
    p = program(ARM, "gravity_torque")
    assert [a.name for a in p.inputs] == ["q"]
    assert np.isfinite(p.interpret(State(ARM).q)[0]).all()
