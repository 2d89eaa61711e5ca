"""Mechanisms as Pinocchio models, joint by joint, and the maps between the two orders of numbers."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
import pinocchio as pin

from kinetree.joints import kind
from kinetree.model import GROUND, Joint, Mechanism
from rigid_body import tensor

SWAP = [3, 4, 5, 0, 1, 2]
"""The permutation from [omega; v] to Pinocchio's [v; omega], and back."""


def se3(placement) -> pin.SE3:
    """Return a placement as Pinocchio's."""
    return pin.SE3(np.array(placement.rotation, dtype=float), np.array(placement.translation, dtype=float))


def composite(*parts) -> pin.JointModelComposite:
    """Return the composite of several joints at one point."""
    out = pin.JointModelComposite()
    for part in parts:
        out.addJoint(part, pin.SE3.Identity())
    return out


def joint_model(joint: Joint):
    """Return Pinocchio's joint with the same coordinates."""
    axis = np.array(joint.axis) / np.linalg.norm(joint.axis)
    axes = np.array(kind(joint.kind).frame(joint), dtype=float)
    turn, slide, unit = pin.JointModelRevoluteUnaligned, pin.JointModelPrismaticUnaligned, np.eye(3)
    turns = [turn(unit["xyz".index(letter)]) for letter in joint.sequence]
    return {
        "revolute": lambda: turn(axis),
        "prismatic": lambda: slide(axis),
        "helical": lambda: pin.JointModelHelicalUnaligned(axis, float(joint.pitch)),
        "cylindrical": lambda: composite(turn(axis), slide(axis)),
        "universal": lambda: composite(turn(axes[:, 0]), turn(axes[:, 1])),
        "planar": lambda: composite(slide(axes[:, 0]), slide(axes[:, 1]), turn(axes[:, 2])),
        "spherical": lambda: pin.JointModelSpherical(),
        "euler": lambda: composite(*turns),
        "free": lambda: pin.JointModelFreeFlyer(),
        "free_euler": lambda: composite(*map(slide, unit), *turns),
    }[joint.kind]()


@dataclass
class Peer:
    """A Pinocchio model of a mechanism; `bodies` holds the joint of each body and its pose there."""

    mechanism: Mechanism
    model: pin.Model
    data: pin.Data
    bodies: dict[str, tuple[int, pin.SE3]]
    order: list[int]

    def speeds(self, x: np.ndarray) -> np.ndarray:
        """Return velocities, accelerations or torques in the other library's order; the map is its own inverse."""
        return np.asarray(x)[..., self.order]

    def matrix(self, x: np.ndarray) -> np.ndarray:
        """Return an nv x nv matrix in the other order."""
        return x[..., self.order, :][..., self.order]

    def wrenches(self, w: np.ndarray) -> list[pin.Force]:
        """Return external wrenches [nb, 6] on the joints' frames."""
        out = [pin.Force.Zero() for _ in range(self.model.njoints)]
        for body, own in zip(self.mechanism.bodies, w, strict=True):
            index, placement = self.bodies[body.name]
            out[index] = out[index] + placement.act(pin.Force(own[3:], own[:3]))
        return out


def peer(mechanism: Mechanism) -> Peer:
    """Build the model of a mechanism; bodies on fixed joints are attached to the joint of their parent."""
    model = pin.Model()
    model.gravity = pin.Motion(np.array(mechanism.gravity), np.zeros(3))
    bodies = {GROUND: (0, pin.SE3.Identity())}
    order: list[int] = []
    armature: list[float] = []
    for body, joint in zip(mechanism.bodies, mechanism.joints, strict=True):
        parent, stands = bodies[joint.parent]
        stands = stands * se3(joint.placement)
        if joint.kind == "fixed":
            bodies[body.name] = parent, stands
        else:
            index = model.addJoint(parent, joint_model(joint), stands, joint.name)
            bodies[body.name] = index, pin.SE3.Identity()
            n = kind(joint.kind).NV
            start = len(order)
            order += [start + k for k in (SWAP if joint.kind == "free" else range(n))]
            armature += list(joint.armature or (0.0,) * n)
        index, placement = bodies[body.name]
        inertia = pin.Inertia(float(body.mass), np.array(body.com, dtype=float), tensor(body))
        model.appendBodyToJoint(index, inertia, placement)
    model.armature = np.array(armature)[order] if order else np.zeros(0)
    return Peer(mechanism, model, model.createData(), bodies, order)
