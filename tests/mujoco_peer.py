"""Mechanisms of hinges, slides, balls and free bodies as MuJoCo models, and the maps between both coordinates."""

from __future__ import annotations

from dataclasses import dataclass

import mujoco
import numpy as np

from kinetree.joints import kind
from kinetree.model import GROUND, Body, Joint, Mechanism
from rigid_body import transform

KINDS = {"revolute": "hinge", "prismatic": "slide", "spherical": "ball", "free": "free"}
"""The moving kinds that both libraries have; MuJoCo has free joints only on the ground."""


def text(numbers) -> str:
    """Return numbers as text with all their digits."""
    return " ".join(repr(float(x)) for x in np.ravel(numbers))


def quaternion(R: np.ndarray) -> np.ndarray:
    """Return the unit quaternion (w, x, y, z) of a rotation."""
    out = np.zeros(4)
    mujoco.mju_mat2Quat(out, np.ascontiguousarray(R, dtype=float).ravel())
    return out


def element(mechanism: Mechanism, joint: Joint) -> str:
    """Return a body with its joint, its inertia and all its descendants."""
    body: Body = mechanism.body(joint.child)
    T = transform(joint.placement)
    xx, yy, zz, xy, yz, zx = body.inertia
    lines = [f'<body name="{body.name}" pos="{text(T[:3, 3])}" quat="{text(quaternion(T[:3, :3]))}">']
    if joint.kind != "fixed":
        axis = f' axis="{text(joint.axis)}"' if joint.kind in ("revolute", "prismatic") else ""
        armature = f' armature="{joint.armature[0]!r}"' if joint.armature else ""
        lines.append(f'<joint name="{joint.name}" type="{KINDS[joint.kind]}"{axis}{armature}/>')
    moments = text((xx, yy, zz, xy, zx, yz))
    lines.append(f'<inertial mass="{body.mass!r}" pos="{text(body.com)}" fullinertia="{moments}"/>')
    lines += [element(mechanism, j) for j in mechanism.joints if j.parent == body.name]
    return "\n".join([*lines, "</body>"])


def mjcf(mechanism: Mechanism) -> str:
    """Return a mechanism as MJCF, without contacts, limits or damping."""
    inside = "\n".join(element(mechanism, j) for j in mechanism.joints if j.parent == GROUND)
    return (
        f'<mujoco><compiler angle="radian" autolimits="false"/><option gravity="{text(mechanism.gravity)}">'
        f'<flag contact="disable"/></option><worldbody>{inside}</worldbody></mujoco>'
    )


@dataclass
class Peer:
    """A MuJoCo model, with the order of its joints."""

    mechanism: Mechanism
    model: mujoco.MjModel
    data: mujoco.MjData

    def joints(self):
        """Return (joint, our coordinates, our velocities, its coordinates, its velocities) with slices."""
        at_q = at_v = 0
        for joint in self.mechanism.joints:
            nq, nv = kind(joint.kind).NQ, kind(joint.kind).NV
            if nv:
                there = self.model.joint(joint.name)
                q, v = int(there.qposadr[0]), int(there.dofadr[0])
                yield joint, slice(at_q, at_q + nq), slice(at_v, at_v + nv), slice(q, q + nq), slice(v, v + nv)
            at_q, at_v = at_q + nq, at_v + nv

    def set(self, q: np.ndarray, qd: np.ndarray) -> None:
        """Set the state of the model: quaternions with w first, position and velocity of free bodies in the ground."""
        for joint, ours_q, ours_v, q_there, v_there in self.joints():
            x, v = q[ours_q], qd[ours_v]
            if joint.kind == "spherical":
                x = np.roll(x, 1)
            if joint.kind == "free":
                T = transform(joint.placement)
                turned = np.zeros(4)
                mujoco.mju_mulQuat(turned, quaternion(T[:3, :3]), np.roll(x[3:], 1))
                x = np.concatenate([T[:3, 3] + T[:3, :3] @ x[:3], turned])
                v = np.concatenate([rotation(turned) @ v[3:], v[:3]])
            self.data.qpos[q_there], self.data.qvel[v_there] = x, v
        mujoco.mj_kinematics(self.model, self.data)

    def map(self) -> np.ndarray:
        """Return the matrix from our velocities to the model's, at the current state."""
        B = np.zeros((self.mechanism.nv, self.mechanism.nv))
        for joint, _, ours, _, theirs in self.joints():
            n = ours.stop - ours.start
            B[theirs, ours] = np.eye(n)
            if joint.kind == "free":
                R = self.data.body(joint.child).xmat.reshape(3, 3)
                B[theirs, ours] = np.block([[np.zeros((3, 3)), R], [np.eye(3), np.zeros((3, 3))]])
        return B

    def drift(self, qd: np.ndarray) -> np.ndarray:
        """Return the rate of the map times the velocities: w x v of free bodies, in the ground's axes."""
        out = np.zeros(self.mechanism.nv)
        for joint, _, ours, _, theirs in self.joints():
            if joint.kind == "free":
                R, (w, v) = self.data.body(joint.child).xmat.reshape(3, 3), qd[ours].reshape(2, 3)
                out[theirs][:3] = R @ np.cross(w, v)
        return out


def rotation(q: np.ndarray) -> np.ndarray:
    """Return the matrix of a quaternion (w, x, y, z)."""
    out = np.zeros(9)
    mujoco.mju_quat2Mat(out, q)
    return out.reshape(3, 3)


def peer(mechanism: Mechanism) -> Peer:
    """Build the model of a mechanism."""
    model = mujoco.MjModel.from_xml_string(mjcf(mechanism))
    return Peer(mechanism, model, mujoco.MjData(model))
