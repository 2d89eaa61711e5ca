"""[Saha2013] 3.5: the spatial biped on one foot, as a chain of links and as a tree of modules."""

from __future__ import annotations

from dataclasses import dataclass, replace
from functools import lru_cache
from pathlib import Path

import numpy as np

from ...algebra.scalars import Numbers
from ...algebra.vectors import from_moments, to_matrix, to_moments, to_vector
from ...formulations import module_recursion
from ...formulations.links import links
from ...formulations.modules import chains
from ...loading import load
from ...model import GROUND, Body, Joint, Mechanism, Placement, build_mechanism
from ...model.mechanism import resolve_parts
from ...simulation.acting.references import sampled
from ...system import System
from ..walking.gaits import (
    ChebyshevMotion,
    FramePath,
    Motion,
    joint_motion,
    lift_path,
    pendulum_path,
    stride_path,
)
from .entry import Check, Entry, Outcome, Source, write_csv

STEP = 0.5
"""Duration of a step [s]; like all numbers below from the example that comes with the paper's program, ReDySim."""
HIP, GRAVITY = 0.92, 9.81
"""Height of the hips and of the pendulum [m], and gravity [m/s^2]."""
FORWARD, SIDE = 0.15, 0.06
"""Positions of the pendulum at the ends of a step [m]: behind and in front of the ankle, and beside it."""
STRIDE, LIFT = 0.3, 0.1
"""The ankle swings from -0.3 m to 0.3 m, 0.1 m above the ground at the middle."""
WIDTH, ABOVE = 0.1, 0.05
"""Distance of the hips, and of the trunk's center of mass above them [m]."""
STANDING = (-0.2089, 0.0, 0.741, -0.5321, -np.pi / 2, np.pi, 0.0, -np.pi / 2, -0.2089, 0.741, 0.0, -0.5321)
"""Joint angles [rad] near the first instant."""
TRUNK, FOOT = "link6", "link12"
UPRIGHT = ((0.0, 0.0, -1.0), (0.0, 1.0, 0.0), (1.0, 0.0, 0.0))
"""The rotation of the trunk: its z axis points down."""
LEVEL = ((-1.0, 0.0, 0.0), (0.0, 1.0, 0.0), (0.0, 0.0, -1.0))
"""The rotation of the swinging foot."""
SAMPLES = 201
DEGREE = 32
"""Of the polynomials that represent the joint angles, to 1e-11 rad."""
STAND_INS = (
    "the parameters of the biped and numbers of its motion: parameters and paths of the spatial biped that comes with "
    "ReDySim (library: spatial_biped). Hips: an inverted pendulum of 0.92 m, from 0.15 m behind its foot to 0.15 m in "
    "front of it in 0.5 s, 0.06 m beside it at both ends; ankle: half a cosine of 0.6 m with a lift of 0.1 m; trunk "
    "upright and foot level",
    "numbers of the curves",
)


def paths(t: Numbers) -> tuple[Motion, Motion]:
    """Return the motions of the supporting hip and of the swinging ankle [nt, 3]: up, backward, to the right."""
    ahead = pendulum_path(t, -FORWARD, FORWARD, STEP, height=HIP, gravity=GRAVITY)
    beside = pendulum_path(t, -SIDE, -SIDE, STEP, height=HIP, gravity=GRAVITY)
    swing, lift = stride_path(t, -STRIDE, STRIDE, STEP), lift_path(t, LIFT, STEP)
    still = np.zeros_like(t)
    aside = (beside[0] + SIDE, *beside[1:])
    mirrored = (2.0 * aside[0] - WIDTH, 2.0 * aside[1], 2.0 * aside[2])
    hip = tuple(np.stack([HIP + still if k == 0 else still, -ahead[k], aside[k]], axis=-1) for k in range(3))
    ankle = tuple(np.stack([lift[k], -swing[k], mirrored[k]], axis=-1) for k in range(3))
    return hip, ankle  # type: ignore[return-value]


def trunk_center(hip: Numbers) -> Numbers:
    """Return positions of the trunk's center of mass [nt, 3]: above the middle of the hips."""
    return hip + np.array([ABOVE, 0.0, -0.5 * WIDTH])


def walk(biped: System, t: Numbers) -> Motion:
    """Return q, qd and qdd, each [nt, 12], by which trunk and foot follow their paths."""
    hip, ankle = paths(t)
    return joint_motion(biped, [FramePath(TRUNK, hip, UPRIGHT), FramePath(FOOT, ankle, LEVEL)], STANDING)


@lru_cache(maxsize=1)
def reference() -> ChebyshevMotion:
    """Return the joint angles of the step as polynomials in time."""
    biped = load("spatial_biped")
    return ChebyshevMotion.fit(lambda t: walk(biped, t)[0], STEP, DEGREE)


def figure_12(folder: Path) -> Outcome:
    """Draw the paths of the trunk's center of mass and of the swinging ankle."""
    from ...plots import figures

    t = np.linspace(0.0, STEP, SAMPLES)
    hip, ankle = paths(t)
    center = trunk_center(hip[0])
    foot = np.array([0.0, 0.0, SIDE])  # of the pendulum, in the coordinates of the hip
    bent = sampled(ChebyshevMotion.fit(lambda t: paths(t)[0][0], STEP, 20), t)[2]
    law = float(np.abs(bent - GRAVITY / HIP * (hip[0] - foot) * [0.0, 1.0, 1.0]).max())
    ends = float(np.abs(ankle[1][[0, -1], :2]).max())
    symmetric = float(np.abs(hip[1][0] - hip[1][-1] * [1.0, 1.0, -1.0]).max())
    checks = (
        Check(
            "the trunk moves for stable walking: an inverted pendulum of constant height",
            f"x'' = (g/h) x to {law:.1e} m/s^2, and the velocity ahead is the same at both ends to {symmetric:.1e} m/s",
            law <= 1e-9 and symmetric <= 1e-12,
            Source.STATED,
        ),
        Check(
            "the ankle leaves the ground and returns to it",
            f"at both ends on the ground with {ends:.1e} m/s ahead and up, {ankle[0][:, 0].max():.3f} m high between",
            float(np.abs(ankle[0][[0, -1], 0]).max()) <= 1e-12 and ends <= 1e-12,
            Source.STATED,
        ),
    )
    shown = np.column_stack(
        [-center[:, 1], center[:, 2], center[:, 0], -ankle[0][:, 1], ankle[0][:, 2], ankle[0][:, 0]]
    )
    titles = [f"{what}, {way}" for what in ("trunk", "ankle") for way in ("ahead", "to the right", "up")]
    names = [f"{what}_{way}" for what in ("trunk", "ankle") for way in ("ahead", "right", "up")]
    files = (
        figures.panels(
            folder / "saha2013_figure_12.png",
            t,
            shown,
            titles=titles,
            symbols=["x", "y", "z"] * 2,
            units=["m"] * 6,
            heading="[Saha2013] figure 12: designed paths of trunk and ankle",
            columns=3,
        ),
        write_csv(folder / "saha2013_figure_12.csv", ("t", *names), np.column_stack([t, shown]).tolist()),
    )
    return Outcome(checks, (), files, stand_ins=STAND_INS)


def figure_13(folder: Path) -> Outcome:
    """Draw the joint angles that follow from the paths."""
    biped, t = load("spatial_biped"), np.linspace(0.0, STEP, SAMPLES)
    q, qd, qdd = walk(biped, t)
    hip, ankle = paths(t)
    reached = max(
        float(np.abs(biped.pose(q, frame)[:, :3, 3] - path[0]).max()) for frame, path in ((TRUNK, hip), (FOOT, ankle))
    )
    series = sampled(reference(), t)
    rates = [float(np.abs(a - b).max()) for a, b in zip((q, qd, qdd), series, strict=True)]
    first = float(np.abs(q[0] - STANDING).max())
    checks = (
        Check(
            "the joint angles give the trajectories of trunk and ankle",
            f"to {reached:.1e} m",
            reached <= 1e-11,
            Source.STATED,
        ),
        Check(
            "joint velocities and accelerations are the rates of the angles",
            f"those of polynomials of degree {DEGREE} to {rates[1]:.1e} rad/s, {rates[2]:.1e} rad/s^2",
            rates[0] <= 1e-10 and rates[1] <= 1e-7 and rates[2] <= 1e-4,
        ),
        Check(
            "the motion begins at the angles that come with the program",
            f"ankle -0.2089, knee 0.741, hip -0.5321 rad, to {first:.1e} rad",
            first <= 1e-4,
        ),
    )
    heading = "[Saha2013] figure 13: joint angles of the biped"
    note = (
        "Differs from the paper's program: its joint angles treat the ankle as if it rolled before it pitched, and its "
        "accelerations of the roll are not the rates of its velocities. Here both feet and the trunk are exactly on "
        "their paths."
    )
    files_note = "A page of the biped, in its mode Torques, reads the table of this figure as a motion."
    return Outcome(
        checks,
        (),
        _joint_files(folder, 13, heading, t, np.degrees(q), {"": q, "qd.": qd, "qdd.": qdd}, "deg"),
        (note, files_note),
        STAND_INS,
    )


def figure_14(folder: Path) -> Outcome:
    """Draw the joint torques of the walk."""
    biped, t = load("spatial_biped"), np.linspace(0.0, STEP, SAMPLES)
    q, qd, qdd = walk(biped, t)
    tau = biped.inverse_dynamics(q, qd, qdd)
    some = slice(0, SAMPLES, 10)
    parts = [biped.denoc(q[k], qd[k]) for k in range(SAMPLES)[some]]
    dense = np.array([d.I @ a + d.C @ v + d.g for d, v, a in zip(parts, qd[some], qdd[some], strict=True)])
    apart = float(np.abs(tau[some] - dense).max())
    ground = _ground_force(biped, q, qd, qdd)
    newton = float(np.abs(ground[:, 3:] - _by_momentum(biped, q, qd, qdd)).max())
    tree = branching_biped()
    made = standing_motion(tree, biped, q[some], qd[some], qdd[some])
    modules = chains(links(tree.mechanism, made.q[0], made.qd[0]), tree.mechanism)
    branched = float(np.abs(made.tau[:, joint_order(tree)] - tau[some]).max())
    held = float(np.abs(made.tau[:, :6]).max())
    back = np.array(
        [
            module_recursion.forward_dynamics(tree.mechanism, *x)
            for x in zip(made.q, made.qd, made.tau, made.wrench, strict=True)
        ]
    )
    returned = float(np.abs(back - made.qdd).max() / np.abs(made.qdd).max())
    center = 1e3 * _foot_point(ground[:, :3] / ground[:, 3:4])
    low, high = center.min(axis=0), center.max(axis=0)
    checks = (
        Check(
            "inter- and intra-modular recursions of a tree: trunk M_0, legs M_1 and M_2",
            f"{', '.join(f'{m.label} of {len(m.links)} links' for m in modules)}: torques as of the chain between the "
            f"feet to {branched:.1e} N m, with {held:.1e} N or N m left at the free trunk",
            branched <= 1e-11 and held <= 1e-11 and [m.parent for m in modules] == [-1, 0, 0],
            Source.STATED,
        ),
        Check(
            "forward dynamics by the same modules returns the accelerations",
            f"to {returned:.1e} of the largest",
            returned <= 1e-11,
        ),
        Check(
            "the recursion gives I qdd + C qd + g of the explicit DeNOC matrices",
            f"largest difference {apart:.1e} N m at {len(parts)} times",
            apart <= 1e-11,
        ),
        Check(
            "the force on the standing foot is that of the whole biped",
            f"m (a - g) of the center of mass to {newton:.1e} N; it pushes the ground with at least "
            f"{ground[:, 3].min():.1f} N",
            newton <= 1e-9 and bool(ground[:, 3].min() > 0),
        ),
    )
    notes = (
        f"The zero-moment point is {low[0]:.0f} to {high[0]:.0f} mm ahead of the ankle, {low[1]:.0f} to {high[1]:.0f} "
        "mm to its right. The pendulum leaves out the legs, nearly half of the mass; a foot of 0.15 m does not hold "
        "this step everywhere, and here it is fixed.",
    )
    heading = "[Saha2013] figure 14: joint torques of the biped"
    return Outcome(checks, (), _joint_files(folder, 14, heading, t, tau, {"tau.": tau}, "N m"), notes, STAND_INS)


def _ground_force(biped: System, q: Numbers, qd: Numbers, qdd: Numbers) -> Numbers:
    """Return moment and force of the ground on the standing foot [nt, 6], about the ankle, in axes of the ground."""
    w = biped.reactions(q, qd, qdd)[:, 0]
    R = biped.pose(q, "link1")[:, :3, :3]
    return np.concatenate([(R @ w[:, half, None])[..., 0] for half in (slice(0, 3), slice(3, 6))], axis=-1)


def _by_momentum(biped: System, q: Numbers, qd: Numbers, qdd: Numbers) -> Numbers:
    """Return the rate of the whole momentum less the weight [nt, 3], body by body."""
    total = np.zeros((len(q), 3))
    for k, body in enumerate(biped.bodies):
        if not body.mass:
            continue
        T = biped.poses(q)[:, k]
        twist, rate = (x[:, k] for x in (biped.twists(q, qd), biped.twist_rates(q, qd, qdd)))
        spin, com = twist[:, :3], np.array(body.com, dtype=float)
        own = rate[:, 3:] + np.cross(rate[:, :3], com) + np.cross(spin, np.cross(spin, com))
        total += np.asarray(body.mass, dtype=float) * (
            (T[:, :3, :3] @ own[..., None])[..., 0] - np.array(biped.mechanism.gravity)
        )
    return total


def _foot_point(ratio: Numbers) -> Numbers:
    """Return the zero-moment point [nt, 2], ahead and to the right, from moments over the force upward."""
    return np.stack([ratio[:, 2], ratio[:, 1]], axis=-1)


def _joint_files(
    folder: Path, number: int, heading: str, t: Numbers, shown: Numbers, tables: dict[str, Numbers], unit: str
) -> tuple[Path, ...]:
    """Draw a quantity of all joints, and write tables [nt, 12] in SI units, with columns such as qd.joint1."""
    from ...plots import figures

    joints = range(1, 13)
    titles = [f"joint {k}, {'standing' if k <= 6 else 'swinging'} leg" for k in joints]
    symbols = [rf"$\{'theta' if unit == 'deg' else 'tau'}_{{{k}}}$" for k in joints]
    heads = [f"{prefix}joint{k}" for prefix in tables for k in joints]
    stem = f"saha2013_figure_{number}"
    return (
        figures.panels(
            folder / f"{stem}.png",
            t,
            shown,
            titles=titles,
            symbols=symbols,
            units=[unit] * 12,
            heading=heading,
            columns=3,
        ),
        write_csv(folder / f"{stem}.csv", ("t", *heads), np.column_stack([t, *tables.values()]).tolist()),
    )


ENTRIES = (
    Entry("saha2013-figure-12", "Saha2013", "designed paths of a biped's trunk and ankle", figure_12),
    Entry("saha2013-figure-13", "Saha2013", "joint angles of a biped on one foot", figure_13),
    Entry("saha2013-figure-14", "Saha2013", "joint torques of a biped on one foot", figure_14),
)


# --- The spatial biped as a tree: a free trunk M_0 that carries two legs M_1 and M_2, for recursion between modules ---
#
# The serial chain from the standing to the swinging foot (library: spatial_biped) is one module. The same robot with
# its trunk as the root has the same joints, and its legs are modules of their own. The chain's ground becomes the foot
# of the standing leg, on which the ground acts with a wrench.


TREE_FOOT = "foot"
FOOT_MASS, FOOT_INERTIA = 0.2, (0.000375, 1.6666666666666667e-06, 0.000375, 0.0, 0.0, 0.0)
"""Of the swinging foot, also of the standing one, which the chain does not have."""


def branching_biped() -> System:
    """Return the biped with a free trunk; joints and coordinates keep their names."""
    return System(rooted_at(load("spatial_biped").mechanism, TRUNK, Body(TREE_FOOT, FOOT_MASS, inertia=FOOT_INERTIA)))


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
        out_bodies.append(_move_body(body, R.T, back))
        out_joints.append(replace(joint, parent=carrier, child=body.name, placement=place, axis=(0.0, 0.0, -1.0)))
        carrier, place = body.name, Placement(to_vector(map(float, back)), to_matrix(R.T.tolist()))
    out_bodies += [bodies[name] for name in names[at + 1 :]]
    out_joints += joints[at + 1 :]
    return build_mechanism("branching_biped", out_bodies, out_joints, gravity=chain.gravity)


def _move_body(body: Body, R: Numbers, p: Numbers) -> Body:
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


def standing_motion(tree: System, chain: System, q: Numbers, qd: Numbers, qdd: Numbers) -> Standing:
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
    foot = [b.name for b in tree.bodies].index(TREE_FOOT)
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
