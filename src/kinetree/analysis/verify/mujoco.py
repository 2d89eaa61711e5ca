"""MuJoCo as a route: a Mechanism as MJCF text, with MuJoCo's velocities converted to Kinetree's."""

from __future__ import annotations

from contextlib import contextmanager
from importlib import import_module
from typing import TYPE_CHECKING, Any
from xml.sax.saxutils import quoteattr

import numpy as np

from ...algebra.scalars import Numbers
from ...algebra.vectors import from_moments
from ...joints import ROTATION, TRANSLATION, kind
from ...model.mechanism import Mechanism, resolve_parts
from ...model.parts import Placement
from .comparisons import Answers, NotRun, Solver, State

if TYPE_CHECKING:
    pass

mujoco: Any = import_module("mujoco")

TYPES = {ROTATION: "hinge", TRANSLATION: "slide"}


def prepare(mechanism: Mechanism) -> Solver:
    """Return the Solver of a mechanism, with its model compiled once; raise NotRun if MuJoCo refuses it."""
    try:
        with _quiet():
            model = mujoco.MjModel.from_xml_string(mjcf(mechanism))
    except ValueError as error:
        raise NotRun("MuJoCo refuses it: " + " ".join(str(error).split())) from None
    data = mujoco.MjData(model)
    bodies = [mujoco.mj_name2id(model, mujoco.mjtObj.mjOBJ_BODY, _name(body.name)) for body in mechanism.bodies]

    def solve(s: State) -> Answers:
        qpos, B, drift = _speeds(mechanism, s)
        data.qpos[:], data.qvel[:] = qpos, 0.0
        data.xfrc_applied[:] = data.qfrc_applied[:] = 0.0
        mujoco.mj_fwdPosition(model, data)
        mujoco.mj_fwdVelocity(model, data)
        gravity = B.T @ data.qfrc_bias
        M = _inertia(model, data)
        external = B.T @ _external(model, data, bodies, s.wrenches)
        data.qvel[:] = B @ s.qd
        mujoco.mj_fwdVelocity(model, data)
        bias = B.T @ (data.qfrc_bias + M @ drift) - external
        data.qacc[:] = B @ s.qdd + drift
        mujoco.mj_inverse(model, data)
        tau = B.T @ data.qfrc_inverse - external
        qdd = None
        if s.invertible:
            data.qfrc_applied[:] = np.linalg.solve(B.T, s.tau + external)
            with _quiet():
                mujoco.mj_forward(model, data)
            qdd = np.linalg.solve(B, data.qacc - drift)
        return Answers(tau, B.T @ M @ B, gravity, bias, qdd)

    return solve


@contextmanager
def _quiet():
    """Suppress warnings of singular states on stderr and in a file: those in unused coordinates are harmless."""
    before = mujoco.get_mju_user_warning()
    mujoco.set_mju_user_warning(lambda message: None)
    try:
        yield
    finally:
        mujoco.set_mju_user_warning(before)


def mjcf(mechanism: Mechanism) -> str:
    """Return the tree of a mechanism as MJCF text: bodies, joints, inertias; raise NotRun if MJCF cannot express it."""
    values = mechanism.values()
    children: dict[int, list[int]] = {}
    for i, parent in enumerate(mechanism.parents):
        children.setdefault(parent, []).append(i)
    out: list[str] = []
    stack: list[int | str] = list(reversed(children.get(-1, [])))
    while stack:
        i = stack.pop()
        if isinstance(i, str):
            out.append(i)
            continue
        body, joint = resolve_parts(mechanism.bodies[i], values), resolve_parts(mechanism.joints[i], values)
        out.append(f"<body name={quoteattr(_name(body.name))}{_place(joint.placement)}>")
        out += _joints(joint, mechanism.parents[i])
        principal, axes = np.linalg.eigh(np.array(from_moments(body.inertia), dtype=float))
        axes = axes * np.sign(np.linalg.det(axes))
        if body.mass or principal.any():
            out.append(
                f'<inertial pos="{_text(body.com)}" quat="{_text(_quaternion(axes))}" mass="{float(body.mass)!r}" '
                f'diaginertia="{_text(principal)}"/>'
            )
        stack.append("</body>")
        stack += reversed(children.get(i, []))
    gravity = _text(resolve_parts(mechanism.gravity, values))
    return (
        f"<mujoco model={quoteattr(mechanism.name)}>"
        '<compiler angle="radian" autolimits="false" inertiafromgeom="false"/>'
        f'<option gravity="{gravity}"><flag contact="disable" constraint="disable"/></option>'
        f"<worldbody>{''.join(out)}</worldbody></mujoco>"
    )


def _joints(joint: Any, parent: int) -> list[str]:
    armature = joint.armature or ()
    steps = kind(joint.kind).steps(joint)
    if steps is not None:
        return [
            f'<joint type="{TYPES[what]}" axis="{_text(axis)}" armature="{float(a)!r}"/>'
            for (what, axis), a in zip(steps, armature or (0.0,) * len(steps), strict=True)
        ]
    made = _type(joint)
    if made == "free":
        if parent >= 0:
            raise NotRun(f"MuJoCo has free joints only on the ground (joint {joint.name!r})")
        if any(armature):
            raise NotRun(f"MuJoCo's armature of a free joint is along the ground's axes (joint {joint.name!r})")
        return ['<joint type="free"/>']
    if made == "ball":
        if len(set(armature)) > 1:
            raise NotRun(f"MuJoCo has one armature for all axes of a ball joint (joint {joint.name!r})")
        return [f'<joint type="ball" armature="{float(armature[0]) if armature else 0.0!r}"/>']
    raise NotRun(f"MuJoCo has no {joint.kind} joint (joint {joint.name!r})")


def _type(joint: Any) -> str | None:
    """Return the type of MuJoCo's joint, None if no single one covers the kind."""
    return kind(joint.kind).PEERS.get("mujoco")


def _speeds(mechanism: Mechanism, s: State) -> tuple[Numbers, Numbers, Numbers]:
    """Return qpos, and B and drift of MuJoCo's velocities and accelerations: qvel = B qd, qacc = B qdd + drift.

    They differ only for free joints: qvel is (R v, omega) with the velocity in the ground's axes, and qacc contains
    R (omega x v). MuJoCo's pose of a free body is relative to the ground, regardless of the joint's placement.
    Quaternions are (w, x, y, z).
    """
    n, values = len(s.qd), mechanism.values()
    qpos, B, drift = np.zeros(len(s.q)), np.eye(n), np.zeros(n)
    for joint, own_q, own_v in zip(mechanism.joints, mechanism.q_slices, mechanism.v_slices, strict=True):
        made, at_v = _type(joint), own_v.start
        if made == "free":
            q, placement = s.q[own_q], resolve_parts(joint.placement, values)
            R0, place = np.array(placement.rotation, float), np.array(placement.translation, float)
            R = R0 @ _matrix(q[3:])
            qpos[own_q] = [*(place + R0 @ q[:3]), *_quaternion(R)]
            w, v = s.qd[at_v : at_v + 3], s.qd[at_v + 3 : at_v + 6]
            B[own_v, own_v] = 0.0
            B[at_v : at_v + 3, at_v + 3 : at_v + 6] = R
            B[at_v + 3 : at_v + 6, at_v : at_v + 3] = np.eye(3)
            drift[at_v : at_v + 3] = R @ np.cross(w, v)
        elif made == "ball":
            x, y, z, w = s.q[own_q]
            qpos[own_q] = [w, x, y, z]
        else:
            qpos[own_q] = s.q[own_q]
    return qpos, B, drift


def _inertia(model, data) -> Numbers:
    columns = np.zeros((model.nv, model.nv))
    for k, e in enumerate(np.eye(model.nv)):
        mujoco.mj_mulM(model, data, columns[k], e)
    return columns.T


def _external(model, data, bodies: list[int], wrenches: Numbers) -> Numbers:
    """Return the sum of J^T w over the bodies, with wrenches in their frames at their origins."""
    total = np.zeros(model.nv)
    turning, sliding = np.zeros((3, model.nv)), np.zeros((3, model.nv))
    for number, w in zip(bodies, wrenches, strict=True):
        R = data.xmat[number].reshape(3, 3)
        mujoco.mj_jacBody(model, data, sliding, turning, number)
        total += turning.T @ (R @ w[:3]) + sliding.T @ (R @ w[3:])
    return total


def _name(body: str) -> str:
    """Return the name of a body in MuJoCo, where the name "world" is reserved."""
    return f"body {body}"


def _place(placement: Placement) -> str:
    rotation = np.array(placement.rotation, dtype=float)
    return f' pos="{_text(placement.translation)}" quat="{_text(_quaternion(rotation))}"'


def _text(numbers) -> str:
    return " ".join(repr(float(x)) for x in numbers)


def _matrix(q: Numbers) -> Numbers:
    from scipy.spatial.transform import Rotation

    return Rotation.from_quat(q).as_matrix()


def _quaternion(R: Numbers) -> Numbers:
    from scipy.spatial.transform import Rotation

    x, y, z, w = Rotation.from_matrix(R).as_quat()
    return np.array([w, x, y, z])
