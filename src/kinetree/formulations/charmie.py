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
from ..model.mechanism import Mechanism, resolve_parts
from .kinematics import Matrix
from .linear_actuators import BalancingHalf, Motion, balancing_half, inclination, length, rotating_joint, sliding_joint
from .newton_euler import Link, LinkMotion, Load, at_origin, balance, forward, links, onto_parent, single

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
    """Return the motions of the joints of the main tree from the motions of the 21 actuators.

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
    """Share the loads of body 5, load body 4 with its actuator and spring, and return the loads of joint 5."""
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
    """Share the loads of body 4, load body 3 with actuator and linkage, and return the loads of joint 4."""
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


# --- Springs, balancing linkage, and force sharing between bodies 3, 4 and 5 of CHARMIE: [Goncalves2023] 5.2.
#
# Forces and torques have shape [..., 3], matrices are those of the paper, row by row.
#
# Differs from the paper: the sum in (37) has four succeeding bodies; body 5 has three, arms and head, and its spring is
# a term of its own. (40) holds if f_3sra is the force of the bar on body 3, the opposite of its name. (43) prints 3slr
# and 3slc for the uprights 4src and 4slc. The moments that an actuator carries from its head to its foot, which its
# forces along x cause, are not printed.

Z = np.array([0.0, 0.0, 1.0])


@dataclass(frozen=True)
class Torso:
    """Points of bodies 3, 4 and 5 in their own axes [3], lengths of the linkage [m], springs (rate, length, preload).

    F3 and G3 are on the left; on the right x has the other sign.
    """

    B3: Matrix
    D3: Matrix
    F3: Matrix
    G3: Matrix
    B4: Matrix
    E4: Matrix
    F4: Matrix
    S4: Matrix
    E5: Matrix
    G5: Matrix
    H4z: float
    a: float
    b: float
    c: float
    spring_4: tuple[float, float, float]
    spring_5: tuple[float, float, float]


@dataclass(frozen=True)
class Half:
    """Forces of half the linkage in the axes of body 3: of spring and upright on the bar, of the bar on body 3."""

    spring: Matrix
    upright: Matrix
    base: Matrix


@dataclass(frozen=True)
class Shares:
    """Loads on a body of two preceding ones: actuator d and joint a, forces and torques in the axes of the body.

    `uprights` are the torques about z of the left and the right upright on body 4, [..., 2]; body 5 has none.
    """

    fd: Matrix
    mud: Matrix
    fa: Matrix
    mua: Matrix
    uprights: Matrix


def torso(mechanism: Mechanism) -> Torso:
    """Return the geometry of `charmie_complete` with the values of its parameters."""
    v = {name: float(x) for name, x in mechanism.values().items()}
    heads = {p.name: np.array(p.placement_a.translation, dtype=float) for p in _parts(mechanism.loops, mechanism)}
    feet = {j.name: np.array(j.placement.translation, dtype=float) for j in _parts(mechanism.joints, mechanism)}
    return Torso(
        B3=feet["joint_4"], D3=feet["foot_4d"], F3=feet["bar_4l"], G3=feet["foot_4sl"],
        B4=feet["joint_5"], E4=heads["head_4d"], F4=feet["foot_5d"], S4=feet["foot_5s"],
        E5=heads["head_5s"], G5=heads["head_5d"],
        H4z=v["H4z"], a=v["a4"], b=v["b4"], c=v["c4"],
        spring_4=(v["k4"], v["L4"], v["P4"]), spring_5=(v["k5"], v["L5"], v["P5"]),
    )  # fmt: skip


def spring_force(Ls: Matrix, data: tuple[float, float, float]) -> Matrix:
    """Return the force with which a spring pushes its ends apart [N]; an extension spring has negative preload."""
    ks, L0, F0 = data
    return ks * (L0 - Ls) + F0  # (35)


def tilt(Si: Matrix, Sj: Matrix, axis: int) -> Matrix:
    """Return the angle from z to the direction from S_i to S_j, toward the axis 0 (x) or 1 (y)."""
    return np.copysign(inclination(Si + Z, Si, Sj), (Sj - Si)[..., axis])  # (21)


def half_forces(T: Torso, half: BalancingHalf, side: float) -> Half:
    """Return the forces of a half of the linkage, in balance without mass."""
    F3, G3 = mirrored(T.F3, side), mirrored(T.G3, side)
    FT = spring_force(length(G3, half.spring), T.spring_4)
    alpha4 = tilt(np.broadcast_to(G3, half.spring.shape), half.spring, 0)
    zero = np.zeros_like(FT)
    f = np.stack([FT * np.sin(alpha4), zero, FT * np.cos(alpha4)], axis=-1)  # (39)
    r, arm = half.tip - F3, half.spring - F3
    a5 = f[..., 2] * arm[..., 0] - f[..., 0] * arm[..., 2]  # (41)
    one = np.ones_like(FT)
    rows = [[zero, one, zero], [-one, zero, one], [-r[..., 0], zero, zero]]
    known = np.stack([f[..., 0], f[..., 2], a5], axis=-1)
    up, x, z = np.moveaxis(_solved(rows, known), -1, 0)  # (40)
    return Half(f, np.stack([zero, zero, up], axis=-1), np.stack([x, zero, z], axis=-1))


def body_5(i: Link, at: LinkMotion, loads: list[Load], T: Torso, F4: Matrix) -> Shares:
    """Return the loads of actuator 5d and of body 4 on body 5; F4 is in the axes of body 5."""
    G5 = np.broadcast_to(T.G5, F4.shape)
    total, torque = balance(i, at, loads)  # (33), (34)
    a1, a2, a3, a4 = *np.moveaxis(total, -1, 0), torque[..., 0]  # (37)
    rd, ra = i.C - G5, np.broadcast_to(i.C - at.A, F4.shape)
    alpha5d = tilt(G5, F4, 1)
    o, e = np.zeros_like(a1), np.ones_like(a1)
    rows = [
        [e, o, o, e, o, o],
        [o, e, o, o, e, o],
        [o, o, e, o, o, e],
        [o, rd[..., 2], -rd[..., 1], o, ra[..., 2], -ra[..., 1]],
        [o, np.cos(alpha5d), -np.sin(alpha5d), o, o, o],
        [-e, o, o, e, o, o],
    ]
    found = _solved(rows, np.stack([a1, a2, a3, a4, o, o], axis=-1))  # (36)
    fd, fa = found[..., :3], found[..., 3:]
    left = torque - np.cross(fd, rd) - np.cross(fa, ra)  # (34)
    rows = [[e, o, e, o], [o, e, o, e], [e, o, -e, o], [o, e, o, -e]]
    half = _solved(rows, np.stack([left[..., 1], left[..., 2], o, o], axis=-1))  # (38)
    mud, mua = (np.stack([o, half[..., k], half[..., k + 1]], axis=-1) for k in (0, 2))
    return Shares(fd, mud, fa, mua, np.zeros((*a1.shape, 2)))


def body_4(i: Link, at: LinkMotion, loads: list[Load], T: Torso, D3: Matrix) -> Shares:
    """Return the loads of actuator 4d, of body 3 and of both uprights on body 4; D3 is in the axes of body 4."""
    E4 = np.broadcast_to(T.E4, D3.shape)
    total, torque = balance(i, at, loads)  # (33), (34)
    alpha4d = tilt(E4, D3, 1)
    o, e = np.zeros(total.shape[:-1]), np.ones(total.shape[:-1])
    rows = [[o, o, e, o], [e, o, o, e], [o, e, o, o], [np.cos(alpha4d), -np.sin(alpha4d), o, o]]
    y, z, x3, y3 = np.moveaxis(_solved(rows, np.concatenate([total, o[..., None]], axis=-1)), -1, 0)  # (42)
    fd, fa = np.stack([o, y, z], axis=-1), np.stack([x3, y3, o], axis=-1)
    left = torque - np.cross(fd, i.C - E4) - np.cross(fa, i.C - at.A)  # (34)
    rows = [[e, o, o, o], [o, e, o, o], [o, o, e, e], [o, o, e, -e]]
    found = _solved(rows, np.concatenate([left, o[..., None]], axis=-1))  # (43)
    mua = np.stack([found[..., 0], found[..., 1], o], axis=-1)
    return Shares(fd, np.zeros_like(fd), fa, mua, found[..., 2:])


def mirrored(point: Matrix, side: float) -> Matrix:
    """Return a point of the left half, or its mirror image on the right."""
    return point * np.array([-side, 1.0, 1.0])


def _solved(rows: list[list[Matrix]], known: Matrix) -> Matrix:
    matrix = np.stack([np.stack(row, axis=-1) for row in rows], axis=-2)
    return np.asarray(np.linalg.solve(matrix, known[..., None])[..., 0], dtype=float)


def _parts(parts, mechanism: Mechanism):
    return resolve_parts(parts, mechanism.values())
