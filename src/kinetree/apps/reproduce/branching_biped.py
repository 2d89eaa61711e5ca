"""The spatial biped as a tree: a free trunk M_0 that carries two legs M_1 and M_2, for recursion between modules.

The serial chain from the standing to the swinging foot (library: spatial_biped) is one module. The same robot with its
trunk as the root has the same joints, and its legs are modules of their own. The chain's ground becomes the foot of the
standing leg, on which the ground acts with a wrench.
"""

from __future__ import annotations

from dataclasses import dataclass, replace

import numpy as np

from ...algebra.arrays import Numbers
from ...algebra.vectors import from_moments, to_moments
from ...formulations import module_recursion
from ...loading import load
from ...model import GROUND, Body, Joint, Mechanism, Placement, build_mechanism
from ...model.mechanism import resolve_parts
from ...system import System

TRUNK, FOOT = "link6", "foot"
FOOT_MASS, FOOT_INERTIA = 0.2, (0.000375, 1.6666666666666667e-06, 0.000375, 0.0, 0.0, 0.0)
"""Of the swinging foot, also of the standing one, which the chain does not have."""


def branching_biped() -> System:
    """Return the biped with a free trunk; joints and coordinates keep their names."""
    return System(rooted_at(load("spatial_biped").mechanism, TRUNK, Body(FOOT, FOOT_MASS, inertia=FOOT_INERTIA)))


def rooted_at(chain: Mechanism, root: str, end: Body) -> Mechanism:
    """Return a serial chain of revolute joints about z with a free body as its root, and `end` for the ground.

    A joint of the chain is the pose B Rz(q) of the child in its parent. Seen from the child it is Rz(-q) B^-1: a
    rotation by q about -z at the child's origin, after which the parent's frame is at B^-1. The parent's data are moved
    to the frame behind the rotation, so that B^-1 needs no joint.
    """
    values = chain.values()
    bodies = {b.name: resolve_parts(b, values) for b in chain.bodies} | {GROUND: end}
    joints = [resolve_parts(j, values) for j in chain.joints]
    names = [j.child for j in joints]
    at = names.index(root)
    out_bodies, out_joints = [bodies[root]], [Joint("trunk", "free", GROUND, root)]
    place = Placement()  # of the joint toward the old ground in the frame of the body that carries it
    carrier = root
    for joint in reversed(joints[: at + 1]):
        R, p = np.array(joint.placement.rotation, dtype=float), np.array(joint.placement.translation, dtype=float)
        body, back = bodies[joint.parent], -R.T @ p
        out_bodies.append(_moved(body, R.T, back))
        out_joints.append(replace(joint, parent=carrier, child=body.name, placement=place, axis=(0.0, 0.0, -1.0)))
        x, y, z = (tuple(map(float, row)) for row in R.T)
        carrier, place = body.name, Placement(tuple(map(float, back)), (x, y, z))  # type: ignore[arg-type]
    out_bodies += [bodies[name] for name in names[at + 1 :]]
    out_joints += joints[at + 1 :]
    return build_mechanism("branching_biped", out_bodies, out_joints, gravity=chain.gravity)


def _moved(body: Body, R: Numbers, p: Numbers) -> Body:
    """Return a body whose frame becomes one in which the old one is at R, p."""
    inertia = R @ np.array(from_moments(body.inertia), dtype=float) @ R.T
    com = tuple(float(x) for x in p + R @ np.array(body.com, dtype=float))
    return replace(body, com=com, inertia=tuple(float(x) for x in to_moments(inertia.tolist())))


@dataclass(frozen=True)
class Standing:
    """The walk of the chain as one of the tree: coordinates, velocities, accelerations, and wrenches [nt, nb, 6].

    The only wrench is the one of the ground on the standing foot. `tau` [nt, 18] are the torques of the tree by the
    recursion within and between modules; those of the trunk vanish.
    """

    q: Numbers
    qd: Numbers
    qdd: Numbers
    wrench: Numbers
    tau: Numbers


def standing(tree: System, chain: System, q: Numbers, qd: Numbers, qdd: Numbers) -> Standing:
    """Return the motion of the tree, and the wrench on its standing foot that leaves the trunk without a force.

    The wrench acts in the foot's frame. Its six entries are those for which the six forces at the free joint vanish,
    which are linear in it.
    """
    index = [b.name for b in chain.bodies].index(TRUNK)
    pose = np.asarray(chain.poses(q))[:, index]
    twist, rate = (np.asarray(x)[:, index] for x in (chain.twists(q, qd), chain.twist_rates(q, qd, qdd)))
    rate = np.concatenate([rate[:, :3], rate[:, 3:] - np.cross(twist[:, :3], twist[:, 3:])], axis=-1)
    order = [int(j.name.removeprefix("joint")) - 1 for j in tree.joints[1:]]
    free = np.concatenate([pose[:, :3, 3], _quaternions(pose[:, :3, :3])], axis=-1)
    x, v, dv = (np.concatenate([base, part[:, order]], axis=-1) for base, part in ((free, q), (twist, qd), (rate, qdd)))
    foot = [b.name for b in tree.bodies].index(FOOT)
    wrenches, tau = np.zeros((len(q), len(tree.bodies), 6)), np.zeros((len(q), tree.nv))
    units = np.zeros((6, len(tree.bodies), 6))
    units[:, foot] = np.eye(6)

    def torques(k: int, wrench: Numbers) -> Numbers:
        return module_recursion.inverse_dynamics(tree.mechanism, x[k], v[k], dv[k], wrench)

    for k in range(len(q)):
        needed = torques(k, wrenches[k])[:6]
        effects = np.array([torques(k, unit)[:6] - needed for unit in units])
        wrenches[k, foot] = np.linalg.solve(effects.T, -needed)
        tau[k] = torques(k, wrenches[k])
    return Standing(x, v, dv, wrenches, tau)


def joint_order(tree: System) -> list[int]:
    """Return the entries of the tree's velocities that belong to the joints 1 to 12 of the chain."""
    return [6 + [j.name for j in tree.joints[1:]].index(f"joint{k}") for k in range(1, 13)]


def _quaternions(R: Numbers) -> Numbers:
    from scipy.spatial.transform import Rotation

    return Rotation.from_matrix(R).as_quat()
