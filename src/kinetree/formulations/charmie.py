"""Inverse dynamics of the robot CHARMIE by the paper's own formulas, for all instants of a motion at once.

[Goncalves2023]: (5)-(14) move joints 4 and 5 by their actuators, (28)-(34) balance the bodies of the main tree, and
(35)-(43) distribute the forces of the closed, overconstrained loops between bodies 3, 4 and 5. Auxiliary bodies have no
mass. The mechanism is `charmie_complete` of the library, with any values of its parameters.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass

import numpy as np
from numpy.typing import ArrayLike

from ..errors import InputError
from ..model.mechanism import Mechanism
from .auxiliary_bodies import BalancingHalf, balancing_half, length
from .charmie_sharing import Torso, body_4, body_5, half_forces, mirrored, spring_force, tilt, torso
from .kinematics import Matrix
from .linear_actuators import Motion, rotating_joint, sliding_joint
from .newton_euler import Link, Load, at_origin, forward, links, onto_parent, single

ARMS = tuple(f"joint_{k}{side}" for side in "ab" for k in (7, 8, 9, 10, 11, 12))
ACTUATORS = (
    *("joint_1", "joint_2", "joint_3", "actuator_4", "actuator_5"),
    *(*ARMS, "joint_13a1", "joint_13b1", "joint_7c", "joint_8c"),
)
"""The 21 actuated coordinates, by the names of `charmie_complete`: joint_13a1 and joint_13b1 are the claws."""
FIXED = ("joint_6a", "joint_6b", "joint_6c")
MAIN = (*("joint_4", "joint_5"), *ACTUATORS[:3], *ACTUATORS[5:], "joint_13a2", "joint_13b2", *FIXED)
SIDES = {"l": -1.0, "r": 1.0}
IN_LOOPS = (
    *("joint_4", "joint_5", "foot_4d", "actuator_4", "head_4d", "foot_5d", "actuator_5", "head_5d"),
    *("foot_5s", "spring_5", "head_5s"),
    *(f"{part}{side}" for side in "lr" for part in ("bar_4", "pin_4", "rail_4", "foot_4s", "spring_4", "head_4s")),
)
"""The joints whose loads are not determined by the motion alone."""
SHARE = (
    {  # the spring is tangential, (42) and (43): the joint of body 4 carries all but the torque about z
        **dict.fromkeys(("head_5s", "head_4sl", "head_4sr", "head_4d"), 1.0),
        **dict.fromkeys(("rail_4l", "rail_4r"), (1.0, 0.0, 0.0, 0.0, 1.0, 0.0)),
        "joint_4": (0.0, 0.0, 1.0, 0.0, 0.0, 0.0),
    },
    {  # (36) and (43): half of the force along x, half of the torque about z
        **dict.fromkeys(("joint_5", "head_5d"), (0.0, 0.0, 0.0, 1.0, 0.0, 0.0)),
        **dict.fromkeys(("rail_4l", "rail_4r"), (0.0, 0.0, 1.0, 0.0, 0.0, 0.0)),
    },
    {  # (38): half of the torques about y and z
        **dict.fromkeys(IN_LOOPS, 0.0),
        **dict.fromkeys(("joint_5", "head_5d"), (0.0, 1.0, 1.0, 0.0, 0.0, 0.0)),
    },
)
"""The assumptions of (36)-(43) as compliances, `share` of System.loads and System.actuation."""


@dataclass(frozen=True)
class CharmieDynamics:
    """Results by the names of `charmie_complete`, [...] each, and wrenches [..., 6].

    `coordinates` are those of all joints, `joints` the motions of the main ones, `torques` those of the 21 actuators
    [N m, N]. `wrenches` [n; f] are of the parent on the child (of body a on body b) at every joint and loop, at the
    origin of the child (of frame b), in the ground's axes. `poses` are (R, O) of the main bodies.
    """

    coordinates: dict[str, Matrix]
    joints: dict[str, Motion]
    torques: dict[str, Matrix]
    wrenches: dict[str, Matrix]
    poses: dict[str, tuple[Matrix, Matrix]]


def main_motion(
    mechanism: Mechanism, motion: Mapping[str, Motion], *, times: ArrayLike | None = None
) -> dict[str, Motion]:
    """Return the motions of the joints of the main tree from those of the 21 actuators.

    `times` are for messages: an actuator that is too short is reported with its time.
    """
    if missing := [name for name in ACTUATORS if name not in motion]:
        raise InputError(f"the motion has no {', '.join(missing)}; give the motions of all 21 actuators")
    T = torso(mechanism)
    out = {name: motion[name] for name in ACTUATORS if name.startswith("joint_")}
    out["joint_4"] = sliding_joint(motion["actuator_4"], T.D3, T.E4, float(T.B3[2]), times=times)
    out["joint_5"] = rotating_joint(motion["actuator_5"], T.F4, T.B4, T.G5, times=times)
    for side in "ab":  # the fingers of a claw move as mirror images
        x, xd, xdd = motion[f"joint_13{side}1"]
        out[f"joint_13{side}2"] = (-x, -xd, -xdd)
    return out


def inverse_dynamics(
    mechanism: Mechanism, motion: Mapping[str, Motion], *, times: ArrayLike | None = None
) -> CharmieDynamics:
    """Return torques and loads of a motion of the 21 actuators, each a position with its rates, [...]."""
    T, joints = torso(mechanism), main_motion(mechanism, motion, times=times)
    tree = links(mechanism, MAIN)
    at = forward(tree, joints, mechanism.gravity)
    k = {link.joint: i for i, link in enumerate(tree)}
    d4 = joints["joint_4"][0]
    halves = {
        name: balancing_half(T.B3[2] - d4 + T.H4z, mirrored(T.F3, side), T.a, T.b, T.c, side=side, times=times)
        for name, side in SIDES.items()
    }
    loads: list[list[Load]] = [[] for _ in tree]
    found: dict[str, tuple[Matrix, Matrix]] = {}
    out: dict[str, Matrix] = {}
    for i in reversed(range(len(tree))):
        link = tree[i]
        if i == k["joint_5"]:
            f, mu = _fifth(tree, at, loads, k, T, out)
        elif i == k["joint_4"]:
            f, mu = _fourth(tree, at, loads, k, T, halves, out)
        else:
            f, mu = single(link, at[i], loads[i])  # (33), (34)
        found[link.joint] = f, mu
        out[link.joint] = _world(at[i].R0, at_origin(at[i], f, mu))
        if link.parent >= 0:
            loads[link.parent].append(onto_parent(link, at[i], f, mu))
    torques = {link.joint: _along(link, *found[link.joint]) for link in tree if link.type != "F"}
    for side in "ab":
        torques[f"joint_13{side}1"] = torques[f"joint_13{side}1"] - torques[f"joint_13{side}2"]
    torques |= {"actuator_4": out.pop("act_4"), "actuator_5": out.pop("act_5")}
    return CharmieDynamics(
        {name: x for name, (x, _, _) in joints.items()} | _auxiliary(T, joints, halves, motion),
        joints,
        {name: torques[name] for name in ACTUATORS},
        out,
        {link.name: (here.R0, here.O) for link, here in zip(tree, at, strict=True)},
    )


def _fifth(tree, at, loads, k, T: Torso, out: dict[str, Matrix]) -> tuple[Matrix, Matrix]:
    """Share the loads of body 5, add those of its actuator and spring to body 4, and return those of joint 5."""
    i, here = tree[k["joint_5"]], at[k["joint_5"]]
    F4, S4 = (_times(np.swapaxes(here.R, -1, -2), point - T.B4) for point in (T.F4, T.S4))
    E5 = np.broadcast_to(T.E5, S4.shape)
    alpha, none = tilt(S4, E5, 1), np.zeros_like(S4)
    F = spring_force(length(S4, E5), T.spring_5)  # (20), (35)
    f5s = np.stack([0 * F, F * np.sin(alpha), F * np.cos(alpha)], axis=-1)
    found = body_5(i, here, [*loads[k["joint_5"]], Load(-f5s, none, E5)], T, F4)  # (36)-(38)
    foot = found.mud + np.cross(T.G5 - F4, found.fd)
    for force, torque, point in ((found.fd, foot, T.F4), (f5s, none, T.S4)):
        below = Load(_times(here.R, force), _times(here.R, torque), np.broadcast_to(point, force.shape))
        loads[k["joint_4"]].append(below)
    out["act_5"] = _pushed(found.fd, T.G5 - F4)
    out |= _pair(here.R0, "5d", found.fd, found.mud, foot) | {
        "actuator_5": _world(here.R0, _joined(found.mud, found.fd))
    }
    out |= _pair(here.R0, "5s", f5s, none, none) | {"spring_5": np.zeros((*F.shape, 6))}
    return found.fa, found.mua


def _fourth(tree, at, loads, k, T: Torso, halves: Mapping[str, BalancingHalf], out) -> tuple[Matrix, Matrix]:
    """Share the loads of body 4, add those of actuator and linkage to body 3, and return those of joint 4."""
    i, here = tree[k["joint_4"]], at[k["joint_4"]]
    up = here.O - at[k["joint_3"]].O  # bodies 3 and 4 have the same axes
    rise = _times(np.swapaxes(here.R0, -1, -2), up)
    forces = {name: half_forces(T, halves[name], side) for name, side in SIDES.items()}  # (39)-(41)
    none = np.zeros_like(rise)
    for name, half in halves.items():
        loads[k["joint_4"]].append(Load(forces[name].upright, none, half.rail - rise))
    found = body_4(i, here, loads[k["joint_4"]], T, T.D3 - rise)  # (42), (43)
    foot = np.cross(T.E4 + rise - T.D3, found.fd)
    base = loads[k["joint_3"]]
    base.append(Load(found.fd, foot, np.broadcast_to(T.D3, none.shape)))
    out["act_4"] = _pushed(found.fd, T.E4 + rise - T.D3)
    out |= _pair(here.R0, "4d", found.fd, none, foot) | {"actuator_4": _world(here.R0, _joined(none, found.fd))}
    for n, (name, side) in enumerate(SIDES.items()):
        f, mu = forces[name], found.uprights[..., n, None] * np.array([0.0, 0.0, 1.0])
        base.append(Load(-f.base, mu, np.broadcast_to(mirrored(T.F3, side), none.shape)))
        base.append(Load(f.spring, none, np.broadcast_to(mirrored(T.G3, side), none.shape)))
        mine = {f"bar_4{name}": (mu, -f.base), f"pin_4{name}": (mu, -f.upright), f"rail_4{name}": (-mu, f.upright)}
        mine |= {
            f"foot_4s{name}": (none, f.spring),
            f"head_4s{name}": (none, -f.spring),
            f"spring_4{name}": (none, none),
        }
        out |= {part: _world(here.R0, _joined(*wrench)) for part, wrench in mine.items()}
    return found.fa, found.mua


def _auxiliary(T: Torso, joints: Mapping[str, Motion], halves, motion: Mapping[str, Motion]) -> dict[str, Matrix]:
    """Return the coordinates of the joints of auxiliary bodies."""
    d4, angle = joints["joint_4"][0], joints["joint_5"][0]
    c, s, zero = np.cos(angle), np.sin(angle), np.zeros_like(angle)

    def on_4(point: Matrix) -> Matrix:
        x, y, z = point
        return T.B4 + np.stack([zero + x, c * y - s * z, s * y + c * z], axis=-1)

    E4 = T.E4 + (T.B3[2] - d4)[..., None] * np.array([0.0, 0.0, 1.0])
    ends = {"4d": (T.D3, E4), "5d": (T.F4, on_4(T.G5)), "5s": (T.S4, on_4(T.E5))}
    out = {f"foot_{name}": -tilt(np.broadcast_to(a, b.shape), b, 1) for name, (a, b) in ends.items()}  # (21)
    out |= {"actuator_4": motion["actuator_4"][0], "actuator_5": motion["actuator_5"][0]}
    out["spring_5"] = length(*ends["5s"])  # (20)
    for name, side in SIDES.items():
        half, F3, G3 = halves[name], mirrored(T.F3, side), mirrored(T.G3, side)
        rise = np.arcsin((half.tip - F3)[..., 2] / T.b)
        hang = np.arctan2(side * (half.spring - G3)[..., 0], -(half.spring - G3)[..., 2])
        out |= {f"bar_4{name}": rise, f"pin_4{name}": -rise, f"foot_4s{name}": hang}
        out[f"spring_4{name}"] = length(G3, half.spring)  # (20)
    return out


def _pair(R0: Matrix, name: str, f: Matrix, mu: Matrix, foot: Matrix) -> dict[str, Matrix]:
    """Return the wrenches at foot and head of an actuator or spring that pushes a body by f and mu."""
    return {f"foot_{name}": _world(R0, _joined(foot, f)), f"head_{name}": _world(R0, _joined(-mu, -f))}


def _along(link: Link, f: Matrix, mu: Matrix) -> Matrix:
    return (f if link.type == "P" else mu) @ link.z


def _pushed(f: Matrix, along: Matrix) -> Matrix:
    return np.sum(f * along, axis=-1) / np.linalg.norm(along, axis=-1)


def _joined(mu: Matrix, f: Matrix) -> Matrix:
    return np.concatenate([mu, f], axis=-1)


def _world(R0: Matrix, wrench: Matrix) -> Matrix:
    return np.concatenate([_times(R0, wrench[..., :3]), _times(R0, wrench[..., 3:])], axis=-1)


def _times(R: Matrix, v: Matrix) -> Matrix:
    return (R @ v[..., None])[..., 0]
