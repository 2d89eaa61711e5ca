"""Base parameters: counts of known arms, groupings, and closed mechanisms."""

from __future__ import annotations

import re
from dataclasses import replace

import numpy as np
import pytest
from hypothesis import given

import everyday
import kinetree as kt
from closed_mechanisms import library_state
from kinetree import InputError, ModelError, System
from kinetree.analysis.loops.driven_motion import nearest_motion
from kinetree.model import Body, Joint, Limits, build_mechanism
from public_robots import public_robots
from rounding_scales import torque_scale
from strategies import SINGLE, State, examples, moving_mechanisms
from tolerance import assert_close

EPS = np.finfo(float).eps


def rank(W: np.ndarray) -> int:
    """Return the numeric rank of a matrix with columns of unit length, with a clear gap between singular values."""
    sizes = np.linalg.norm(W, axis=0)
    W = W[:, sizes > 1e-9 * sizes.max()]
    values = np.linalg.svd(W / np.linalg.norm(W, axis=0), compute_uv=False)
    values = np.append(values / values[0], 1e-17)
    found = int((values > 1e-9).sum())
    assert values[found - 1] > 1e5 * values[found]
    return found


@pytest.mark.parametrize(("name", "count"), [("puma560", 36), ("stanford", 33), ("kuka_lwr4", 43)])
def test_counts_of_arms_of_the_library(name, count):
    """Count the base parameters of arms as the literature does, and as Pinocchio's columns have them."""
    pytest.importorskip("pinocchio")
    from pinocchio_peer import peer

    arm = kt.load(name)
    assert len(arm.base_parameters()) == count
    assert rank(peer_columns(peer(arm.mechanism).model)) == count


@pytest.mark.parametrize(("name", "count"), [("ur5_robot", 36), ("panda", 43)])
def test_counts_of_public_arms(name, count):
    """Count the base parameters of arms of the collection, the Panda's without fingers, and by Pinocchio's columns."""
    pin = pytest.importorskip("pinocchio")
    path = next(p for p in public_robots() if p.stem == name)
    arm = kt.load(path)
    keep = [k for k, j in enumerate(arm.joints) if j.kind == "revolute"]
    mechanism = arm.mechanism
    names = {mechanism.bodies[k].name for k in keep}
    bare = replace(
        mechanism, bodies=tuple(mechanism.bodies[k] for k in keep), joints=tuple(mechanism.joints[k] for k in keep),
        frames=tuple(f for f in mechanism.frames if f.body in names), couplings=(),
    )  # fmt: skip
    assert len(System(bare).base_parameters()) == count
    model = pin.buildModelFromUrdf(str(path))
    locked = [k for k, n in enumerate(model.names) if "finger" in n]
    model = pin.buildReducedModel(model, locked, pin.neutral(model))
    assert rank(peer_columns(model)) == count


def peer_columns(model) -> np.ndarray:
    """Return Pinocchio's regressors of random states [rows, 10 nb]."""
    import pinocchio as pin

    data, states = model.createData(), np.random.default_rng(7).normal(size=(80, 3, model.nv)) * 1.7
    return np.concatenate([pin.computeJointTorqueRegressor(model, data, *x).copy() for x in states])


@everyday.long
def test_a_four_bar_with_driven_crank():
    """Count the base parameters of a four-bar by the torque of its crank, as differences of that torque do."""
    bar = kt.load("four_bar")
    base = bar.base_parameters(actuated="crank")
    assert len(base) == 8
    assert base.actuated == ("crank",)
    rng = np.random.default_rng(4)
    q, qd = bar.random_state(rng, 90)
    q, qd, qdd = nearest_motion(bar, q, qd, rng.normal(size=qd.shape))
    assert rank(columns_by_differences(bar, q, qd, qdd, actuated="crank")) == 8
    system, q, qd, qdd = library_state("four_bar", 5)
    Y = system.regressor(q, qd, qdd, actuated="crank")
    tau = system.inverse_dynamics(q, qd, qdd, actuated="crank", forces=False)
    assert_close(Y[:, base.kept] @ base.values, tau, 1e-11 * np.abs(tau).max(), "torque of the crank")


def columns_by_differences(arm: System, q, qd, qdd, **options) -> np.ndarray:
    """Return the torques that welding a small part to a body adds, for ten parts of each body [rows, 10 nb].

    The parts are ten points of different masses per body: their parameters are independent, without any regressor.
    """
    rng, out = np.random.default_rng(2), []
    tau = arm.inverse_dynamics(q, qd, qdd, forces=False, **options)
    for k, body in enumerate(arm.bodies):
        for place in rng.normal(size=(10, 3)):
            mass = body.mass + 1.0
            com = (body.mass * np.array(body.com) + place) / mass
            total = np.zeros((3, 3))
            xx, yy, zz, xy, yz, zx = body.inertia
            total += [[xx, xy, zx], [xy, yy, yz], [zx, yz, zz]]
            for part, center in ((body.mass, body.com), (1.0, place)):
                r = np.array(center) - com
                total += part * (r @ r * np.eye(3) - np.outer(r, r))
            inertia = tuple(float(total[i, j]) for i, j in ((0, 0), (1, 1), (2, 2), (0, 1), (1, 2), (2, 0)))
            heavier = Body(body.name, mass, tuple(map(float, com)), inertia)
            bodies = tuple(heavier if n == k else b for n, b in enumerate(arm.bodies))
            with_part = System(replace(arm.mechanism, bodies=bodies))
            out.append((with_part.inverse_dynamics(q, qd, qdd, forces=False, **options) - tau).ravel())
    return np.stack(out, axis=-1)


@given(moving_mechanisms(SINGLE, most=4))
@examples(20)
def test_base_parameters_give_all_torques(mechanism):
    """Multiply the kept columns of new states by the base parameters and find the torques of all parameters."""
    arm = System(mechanism)
    base, s = arm.base_parameters(["viscous", "armature"]), State(mechanism, 3)
    Y = arm.regressor(s.q, s.qd, s.qdd, columns=["viscous", "armature"])
    pi = arm.dynamic_parameters(["viscous", "armature"])
    assert_close(base.of(pi), base.values, 0.0, "K pi")
    size = np.array([torque_scale(mechanism, s.q[k], s.qd[k], s.qdd[k]) for k in range(3)])[:, None]
    assert_close((Y[..., base.kept] @ base.values - Y @ pi) / size, 0.0 * s.qd, 1e-11, "Y beta")  # 4e-14
    assert np.linalg.matrix_rank(Y[..., base.kept].reshape(-1, len(base))) <= len(base)
    assert base.matrix[:, base.kept] == pytest.approx(np.eye(len(base)))


def test_groupings_are_named():
    """Read the groupings of a planar arm of two links, those of every textbook, and what has no effect."""
    arm = kt.load("planar_2r")
    base = arm.base_parameters()
    assert base.groupings == (
        "link1.mx + 0.3000 link2.m", "link1.my", "link1.Izz + 0.09000 link2.m", "link2.mx", "link2.my", "link2.Izz",
    )  # fmt: skip
    assert len(base.without_effect) == 13
    assert "link1.m" in base.without_effect
    assert "link2.m" not in base.without_effect
    assert str(base).splitlines()[0] == "planar_2r: 6 base parameters of 20; 13 have no effect on the torques"
    sums = {x.split(" ")[0]: x for x in kt.load("stanford").base_parameters().groupings}
    assert sums["link3.m"] == "link3.m + link4.m + link5.m + link6.m"
    assert sums["link2.Ixz"] == "link2.Ixz - link3.Ixy"


def test_groupings_as_formulas():
    """Read groupings with lengths as symbols, those of textbooks, and compare all of an arm with its numbers."""
    assert kt.load("planar_3r").base_parameters(symbolic=True).formulas[:4] == (
        "link1.mx + x2 link2.m + x2 link3.m", "link1.my", "link1.Izz + x2^2 link2.m + x2^2 link3.m",
        "link2.mx + x3 link3.m",
    )  # fmt: skip
    arm = kt.load("puma560")
    base = arm.base_parameters(symbolic=True)
    values = {f"{letter}{k}": x for k, j in enumerate(arm.joints, 1) for letter, x in zip(
        "xyz", j.placement.translation, strict=True)}  # fmt: skip
    pi = dict(zip(base.names, arm.dynamic_parameters(), strict=True))
    for text, value in zip(base.formulas, base.values, strict=True):
        known = {n.replace(".", "_"): x for n, x in pi.items()} | values
        code = re.sub(r"(?<=[a-z0-9])\.(?=[A-Za-z])", "_", text)  # link1.mx, but not 0.5
        code = re.sub(r"(?<=[\w)]) (?=[\w(])", " * ", code).replace("^", "**")
        assert_close(eval(code, {}, known), value, 1e-9 * max(1.0, abs(value)), text)
    with pytest.raises(InputError, match="has loops or free parameters; formulas are those of trees with numbers"):
        kt.load("four_bar").base_parameters(actuated="crank", symbolic=True)


def test_sizes_do_not_matter():
    """Count the same for a copy of an arm in micrometers."""
    arm = kt.load("stanford").mechanism
    small = lambda p: replace(p, translation=tuple(1e-6 * x for x in p.translation))  # noqa: E731
    joints = tuple(replace(j, placement=small(j.placement)) for j in arm.joints)
    assert len(System(replace(arm, joints=joints)).base_parameters()) == 33


def test_armature_joins_the_inertia_of_the_first_link():
    """Find that the drive of the first joint cannot be told from its link, and that of the second can."""
    base = kt.load("planar_2r").base_parameters("armature")
    assert len(base) == 7
    assert "link1.Izz + 0.09000 link2.m + joint1.armature" in base.groupings


def test_mistakes():
    """Read what is wrong with mechanisms that have no base parameters, or whose joints are to be named."""
    with pytest.raises(InputError, match=r"'four_bar' has loops: .* name them, such as actuated=\['crank'\]"):
        kt.load("four_bar").base_parameters()
    still = System(build_mechanism("still", [Body("a", 2.0)], [Joint("j", "fixed", "ground", "a")]))
    with pytest.raises(ModelError, match="'still' has no joints that move"):
        still.base_parameters()
    arm = kt.load("planar_2r").mechanism
    tilted = replace(arm.joints[1], axis=(2e-7, 0.0, 1.0), limits=Limits())
    nearly = System(replace(arm, joints=(arm.joints[0], tilted)))
    with pytest.raises(InputError, match=r"cannot be counted: columns are independent by \de-\d\d of their size alone"):
        nearly.base_parameters()
