"""Euler-angle joints: each of the twelve sequences as three intersecting revolute joints by Denavit and Hartenberg.

R_a(q1) R_b(q2) R_c(q3) is a chain of three revolute joints with intersecting axes and massless bodies between them
([Saha2013] 2.1, 3). In the standard convention of [Saha1999] appendix A, with a = b = 0, row k rotates by
Rz(theta_k) Rx(alpha_k), theta_k = q_k + offset_k. A constant rotation before the first row aligns z with the first
axis. A rotation after the last row is needed only where the last axis is x, since no Rz Rx maps z back to it.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
from numpy.typing import ArrayLike

from .. import joints as joint_kinds
from ..algebra.rotations import Rotation, about, snap_to_axes
from ..algebra.vectors import IDENTITY, ZERO, Vector, matmul, times, transpose
from ..algebra.vectors import Matrix as Turn
from ..errors import unknown_name
from ..model import Body, Joint, Limits, Mechanism, Placement, build_mechanism
from .kinematics import Matrix


@dataclass(frozen=True)
class EulerTable:
    """The table of a sequence [deg]: `before` is (theta, alpha) of a fixed first row, `after` is theta of a last."""

    sequence: str
    offset: tuple[int, int, int]
    alpha: tuple[int, int, int]
    after: int = 0

    @property
    def before(self) -> tuple[int, int]:
        """The rotation Rz(theta) Rx(alpha) that aligns z with the first axis of the sequence [deg]."""
        return {"x": (90, 90), "y": (0, -90), "z": (0, 0)}[self.sequence[0]]

    def rows(self) -> list[dict[str, float | str]]:
        """Return the three rows in the form of `from_dh`, in degrees, without mass."""
        return [
            {"joint": "revolute", "a": 0.0, "b": 0.0, "alpha": float(alpha), "theta": float(theta)}
            for alpha, theta in zip(self.alpha, self.offset, strict=True)
        ]

    def rotation(self, angles: ArrayLike) -> Matrix:
        """Return the rotation of the three joints as the product of the rows, for angles q [3] in radians."""
        q = np.asarray(angles, dtype=float)
        turn = _turn(*self.before)
        for angle, offset, alpha in zip(q, self.offset, self.alpha, strict=True):
            turn = turn @ about(2, angle + np.radians(offset)) @ about(0, np.radians(alpha))
        return np.array((turn @ about(2, np.radians(self.after))).matrix(), dtype=float)

    def __str__(self) -> str:
        """Return the table as one line of text."""
        rows = enumerate(zip(self.offset, self.alpha, strict=True), 1)
        pairs = "  ".join(f"q{k} {o:+4d}, {a:+4d}" for k, (o, a) in rows)
        return f"{self.sequence}  before {self.before[0]:+4d}, {self.before[1]:+4d}  {pairs}  after {self.after:+4d}"


TABLES = {
    table.sequence: table
    for table in (
        EulerTable("xyx", (90, 0, 90), (90, -90, 90), 90),
        EulerTable("xyz", (90, 90, 0), (90, 90, 0)),
        EulerTable("xzx", (0, 0, 0), (-90, 90, -90), -90),
        EulerTable("xzy", (0, -90, 0), (-90, -90, 90)),
        EulerTable("yxy", (-90, 0, 90), (-90, 90, 90)),
        EulerTable("yxz", (90, -90, 90), (90, 90, 0)),
        EulerTable("yzx", (0, -90, 0), (90, -90, 90), 90),
        EulerTable("yzy", (0, 0, 0), (90, -90, 90)),
        EulerTable("zxy", (90, 90, 90), (90, 90, 90)),
        EulerTable("zxz", (-90, 0, 90), (-90, 90, 0)),
        EulerTable("zyx", (0, 90, -90), (-90, 90, 90), 90),
        EulerTable("zyz", (0, 0, 0), (-90, 90, 0)),
    )
}
"""The twelve sequences."""


def euler_table(sequence: str) -> EulerTable:
    """Return the Denavit-Hartenberg table of a sequence, such as "zyx"."""
    if sequence not in TABLES:
        raise unknown_name("Euler sequence", str(sequence), TABLES)
    return TABLES[sequence]


def intersecting_revolutes(mechanism: Mechanism) -> Mechanism:
    """Return the same mechanism with each Euler joint as revolute joints on massless bodies, by its table.

    A `free_euler` joint becomes three prismatic and three revolute joints. Coordinates, joint velocities and torques
    keep their order; the massless bodies are named after the child: "hand_1", "hand_2".
    """
    bodies: list[Body] = []
    joints: list[Joint] = []
    for body, joint in zip(mechanism.bodies, mechanism.joints, strict=True):
        chain = _chain(joint)
        bodies += [Body(j.child) for j in chain[:-1]] + [body]
        joints += chain
    return build_mechanism(
        f"{mechanism.name} with intersecting revolute joints",
        bodies,
        joints,
        frames=mechanism.frames,
        loops=mechanism.loops,
        couplings=mechanism.couplings,
        forces=mechanism.forces,
        gravity=mechanism.gravity,
        parameters=mechanism.parameters,
        scenery=mechanism.scenery,
        lenient=True,  # the bodies were checked when their mechanism was made
    )


def _chain(joint: Joint) -> list[Joint]:
    """Return the joints of one degree of freedom that replace a joint: itself, for most kinds."""
    if "sequence" not in joint_kinds.kind(joint.kind).DATA:
        return [joint]
    slides = joint_kinds.kind(joint.kind).NV - 3
    places, axes = _turns(euler_table(joint.sequence))
    parts = [("prismatic", Placement(), IDENTITY[k]) for k in range(slides)]
    parts += [("revolute", Placement(ZERO, R), axis) for R, axis in zip(places, axes, strict=True)]
    out: list[Joint] = []
    for k, (kind, place, axis) in enumerate(parts):
        if k == 0:
            place = Placement(joint.placement.translation, matmul(joint.placement.rotation, place.rotation))
        limits = (joint.limits.lower, joint.limits.upper, joint.limits.velocity, joint.limits.effort)
        out.append(
            Joint(
                f"{joint.name}_{k + 1}",
                kind,
                joint.parent if k == 0 else out[-1].child,
                joint.child if k == len(parts) - 1 else f"{joint.child}_{k + 1}",
                place,
                axis=axis,
                limits=Limits(*(_one(x, k) for x in limits)),
                damping=_one(joint.damping, k),
                friction=_one(joint.friction, k),
                armature=_one(joint.armature, k),
            )
        )
    return out


def _turns(table: EulerTable) -> tuple[list[Turn], list[Vector]]:
    """Return the placements' rotations and the axes of the three joints.

    Frames 1 and 2 are those of the table, with z along the axis. The third joint carries the body itself, in the last
    frame. Its axis is therefore that of the sequence's third letter, in the body's frame.
    """
    first = _turn(*table.before) @ _turn(table.offset[0], 0)
    second = _turn(0, table.alpha[0]) @ _turn(table.offset[1], 0)
    rest = _turn(0, table.alpha[2]) @ _turn(table.after, 0)
    third = _turn(0, table.alpha[1]) @ _turn(table.offset[2], 0) @ rest
    axis = times(transpose(snap_to_axes(rest.matrix())), (0.0, 0.0, 1.0))
    z = (0.0, 0.0, 1.0)
    return [snap_to_axes(r.matrix()) for r in (first, second, third)], [z, z, axis]


def _turn(theta: float, alpha: float) -> Rotation:
    """Return Rz(theta) Rx(alpha) for angles in degrees."""
    return about(2, np.radians(theta)) @ about(0, np.radians(alpha))


def _one(numbers: tuple, k: int) -> tuple:
    return (numbers[k],) if numbers else ()
