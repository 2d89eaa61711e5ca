"""Springs, actuators and keyframes of a compiled MuJoCo model."""

from __future__ import annotations

from collections.abc import Iterable
from typing import Any

import numpy as np

from ..model.drives import Actuator, Keyframe
from ..model.part_fields import free_name
from ..model.parts import ForceElement, Joint
from .mjcf_parts import BALL, FREE, SIZES, Import, last_w, rotation_of_quaternion


def read_springs(given: Import, joints: Iterable[Joint]) -> list[ForceElement]:
    """Return the springs of hinges and slides; those of ball and free joints are reported as dropped."""
    m, bits, own = given.model, given.mujoco.mjtDisableBit, {joint.name: joint for joint in joints}
    stiff = [j for j in range(m.njnt) if m.jnt_stiffness[j] or _has(m, "jnt_stiffnesspoly", j)]
    off = m.opt.disableflags & (bits.mjDSBL_SPRING if hasattr(bits, "mjDSBL_SPRING") else bits.mjDSBL_PASSIVE)
    if stiff and off:
        given.report.changed("joints have no springs: the file disables them")
        return []
    out, taken = [], set[str]()
    for j in stiff:
        name, stiffness = given.joints[j], float(m.jnt_stiffness[j])
        line = given.prepared.line("joint", name)
        if _has(m, "jnt_stiffnesspoly", j):
            given.report.dropped(f"the nonlinear stiffness of joint {name!r}", line)
        if m.jnt_type[j] in (FREE, BALL):
            sort = "free" if m.jnt_type[j] == FREE else "ball"
            given.report.dropped(f"stiffness = {stiffness:g} of the {sort} joint {name!r}", line)
        elif stiffness:
            rest = float(m.qpos_spring[m.jnt_qposadr[j]])
            numbers = (("stiffness_1", stiffness), ("rest_1", rest))
            ends = own[name].parent, own[name].child
            spring = ForceElement(free_name(f"{name}_spring", taken), "joint_spring", *ends, coefficients=numbers)
            out.append(spring)
    return out


def read_actuators(given: Import) -> dict[int, Actuator]:
    """Return the actuators of joints whose force is affine in control and motion, by MuJoCo's number."""
    m, mujoco = given.model, given.mujoco
    out, taken = dict[int, Actuator](), set[str]()
    for k in range(m.nu):
        joint = int(m.actuator_trnid[k][0])
        label = m.actuator(k).name
        name = free_name(label or f"{given.joints[joint]}_actuator", taken)
        if reason := _misfit(m, mujoco, k, joint):
            given.report.dropped(f"the actuator {name!r}: {reason}")
            continue
        if _has(m, "actuator_armature", k) or _has(m, "actuator_damping", k):
            given.report.dropped(f"armature and damping of the actuator {name!r}")
        bias = m.actuator_biasprm[k][:3] if m.actuator_biastype[k] else (0.0, 0.0, 0.0)
        out[k] = Actuator(
            name,
            given.joints[joint],
            tuple(map(float, m.actuator_gear[k][: SIZES[int(m.jnt_type[joint])][1]])),
            float(m.actuator_gainprm[k][0]),
            tuple(map(float, bias)),  # type: ignore[arg-type]
            tuple(map(float, m.actuator_ctrlrange[k])) if m.actuator_ctrllimited[k] else (),
            tuple(map(float, m.actuator_forcerange[k])) if m.actuator_forcelimited[k] else (),
        )
    if out:
        given.report.read(f"{len(out)} actuators, which act in a run with control=kt.ActuatorControl(...)")
    return out


def _misfit(m: Any, mujoco: Any, k: int, joint: int) -> str:
    """Return why an actuator is not read, or ""."""
    type_, dyn, gain, bias = (int(getattr(m, f"actuator_{x}type")[k]) for x in ("trn", "dyn", "gain", "bias"))
    if dyn != mujoco.mjtDyn.mjDYN_NONE:
        return "it has a state of its own"
    if gain != mujoco.mjtGain.mjGAIN_FIXED or bias not in (mujoco.mjtBias.mjBIAS_NONE, mujoco.mjtBias.mjBIAS_AFFINE):
        return "its force is not affine"
    if m.jnt_type[joint] == FREE:
        return "it drives a free joint"
    if m.jnt_type[joint] == BALL and (type_ != mujoco.mjtTrn.mjTRN_JOINT or (bias and m.actuator_biasprm[k][1])):
        return "it drives a ball joint by its angle, or in the axes of the parent"
    return ""


def read_keyframes(given: Import, actuators: dict[int, Actuator]) -> list[Keyframe]:
    """Return the keyframes, with coordinates and velocities by joint."""
    m, out, taken = given.model, [], set[str]()
    for k in range(m.nkey):
        q, qd = {}, {}
        for j in range(m.njnt):
            type_, at, start = int(m.jnt_type[j]), int(m.jnt_qposadr[j]), int(m.jnt_dofadr[j])
            nq, nv = SIZES[type_]
            q[given.joints[j]] = _coordinates(type_, m.key_qpos[k][at : at + nq])
            qd[given.joints[j]] = _velocities(type_, m.key_qpos[k][at : at + nq], m.key_qvel[k][start : start + nv])
        control = {a.name: (float(m.key_ctrl[k][i]),) for i, a in actuators.items() if m.key_ctrl[k].any()}
        moving = {name: x for name, x in qd.items() if any(x)}
        name = free_name(m.key(k).name or f"key{k}", taken)
        out.append(
            Keyframe(
                name, tuple(q.items()), tuple(moving.items()), tuple(control.items()) if m.key_ctrl[k].any() else ()
            )
        )
    return out


def _coordinates(type_: int, qpos: Any) -> tuple[float, ...]:
    """Return the coordinates of a joint, with a unit quaternion whose w is last."""
    x = tuple(map(float, qpos))
    if type_ not in (FREE, BALL):
        return x
    place, turn = x[:-4], np.array(last_w(x[-4:]))
    return (*place, *map(float, turn / np.linalg.norm(turn)))


def _velocities(type_: int, qpos: Any, qvel: Any) -> tuple[float, ...]:
    """Return the velocities of a joint; a free body's [v in the world; omega] become [omega; v] in its own axes."""
    x = np.asarray(qvel, dtype=float)
    if type_ == FREE:
        R = np.array(rotation_of_quaternion(np.asarray(qpos[3:]) / np.linalg.norm(qpos[3:])), dtype=float)
        x = np.concatenate([x[3:], R.T @ x[:3]])
    return tuple(map(float, x))


def _has(m: Any, array: str, at: int) -> bool:
    """Return whether an array, which only newer versions of MuJoCo have, has nonzero entries there."""
    return hasattr(m, array) and bool(np.any(getattr(m, array)[at]))
