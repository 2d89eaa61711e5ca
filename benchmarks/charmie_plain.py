"""CHARMIE's inverse dynamics in plain NumPy, one instant after the other, as [Goncalves2023] describes its program.

Written as a competent user would: constants are prepared once, small arrays are made directly, cross products are
written out (np.cross takes ten times as long for one pair), sines are those of the math module.
"""

from __future__ import annotations

from dataclasses import dataclass
from math import atan2, cos, hypot, pi, sin, sqrt

import numpy as np

from kinetree.formulations.charmie import MAIN, Torso, torso
from kinetree.formulations.newton_euler import links
from kinetree.model.mechanism import Mechanism

EYE, ZERO = np.eye(3), np.zeros(3)
MATRIX_38 = np.array([[1.0, 0, 1, 0], [0, 1, 0, 1], [1, 0, -1, 0], [0, 1, 0, -1]])
MATRIX_43 = np.array([[1.0, 0, 0, 0], [0, 1, 0, 0], [0, 0, 1, 1], [0, 0, 1, -1]])


def cross(a: np.ndarray, b: np.ndarray) -> np.ndarray:
    """Return the cross product of two vectors."""
    (a0, a1, a2), (b0, b1, b2) = a.tolist(), b.tolist()
    return np.array((a1 * b2 - a2 * b1, a2 * b0 - a0 * b2, a0 * b1 - a1 * b0))


def rotation(axis: int, angle: float) -> np.ndarray:
    """Return the rotation about x, y or z."""
    c, s = cos(angle), sin(angle)
    if axis == 0:
        return np.array(((1.0, 0.0, 0.0), (0.0, c, -s), (0.0, s, c)))
    if axis == 1:
        return np.array(((c, 0.0, s), (0.0, 1.0, 0.0), (-s, 0.0, c)))
    return np.array(((c, -s, 0.0), (s, c, 0.0), (0.0, 0.0, 1.0)))


@dataclass
class Body:
    """Constants of a body, and its state at the present instant."""

    joint: str
    parent: int
    type: str
    axis: int
    sign: float
    z: np.ndarray
    turn: np.ndarray | None
    B: np.ndarray
    mass: float
    C: np.ndarray
    I: np.ndarray  # noqa: E741 - the paper's letter


class PlainCharmie:
    """The robot: constants of all bodies, and a function of one instant."""

    def __init__(self, mechanism: Mechanism) -> None:
        """Prepare the constants."""
        self.bodies = [
            Body(
                i.joint, i.parent, i.type, int(np.argmax(np.abs(i.z))), float(i.z.sum()), i.z,
                None if (i.turn == EYE).all() else i.turn, i.B, i.mass, i.C, i.I,
            )
            for i in links(mechanism, MAIN)
        ]  # fmt: skip
        self.at = {b.joint: k for k, b in enumerate(self.bodies)}
        self.T: Torso = torso(mechanism)
        self.lift = -np.array(mechanism.gravity, dtype=float)

    def step(self, motion: dict[str, tuple[float, float, float]]) -> tuple[dict[str, float], dict[str, tuple]]:
        """Return the torques of the 21 actuators, and force and torque at all joints."""
        joints = dict(motion)
        joints["joint_4"], joints["joint_5"] = self._sliding(motion["actuator_4"]), self._rotating(motion["actuator_5"])
        for side in "ab":
            x, xd, xdd = motion[f"joint_13{side}1"]
            joints[f"joint_13{side}2"] = (-x, -xd, -xdd)
        states = self._forward(joints)
        loads: list[list[tuple]] = [[] for _ in self.bodies]
        found: dict[str, tuple] = {}
        torques: dict[str, float] = {}
        for k in reversed(range(len(self.bodies))):
            b, (R, _, _, A, w, dw, _, pC) = self.bodies[k], states[k]
            force = b.mass * pC
            torque = b.I @ dw + cross(w, b.I @ w)
            if b.joint == "joint_5":
                self._spring_5(R, loads[k], loads[self.at["joint_4"]], found)
            elif b.joint == "joint_4":
                self._linkage(joints["joint_4"][0], loads[k], loads[self.at["joint_3"]], found)
            for f, mu, point in loads[k]:  # (33), (34)
                force = force + f
                torque = torque + mu + cross(f, b.C - point)
            if b.joint == "joint_5":
                f, mu = self._share_5(b, R, force, torque, loads[self.at["joint_4"]], found, torques)
            elif b.joint == "joint_4":
                f, mu = self._share_4(
                    b, A, joints["joint_4"][0], force, torque, loads[self.at["joint_3"]], found, torques
                )
            else:
                f, mu = force, torque - cross(force, b.C - A)
            found[b.joint] = (f, mu)
            if b.type != "F":
                torques[b.joint] = float((f if b.type == "P" else mu) @ b.z)
            if b.parent >= 0:
                loads[b.parent].append((R @ f, R @ mu, b.B))
        for side in "ab":
            torques[f"joint_13{side}1"] -= torques.pop(f"joint_13{side}2")
        del torques["joint_4"], torques["joint_5"]
        return torques, found

    def _forward(self, joints: dict[str, tuple[float, float, float]]) -> list[tuple]:
        """Return R, R0, O, A, w, dw, pA and pC of every body: (15)-(19), (29)-(32)."""
        out: list[tuple] = []
        for b in self.bodies:
            if b.parent >= 0:
                _, R0, at, Ap, w, dw, pA, _ = out[b.parent]
                r = b.B - Ap
                pB = pA + cross(dw, r) + cross(w, cross(w, r))
                base = at + R0 @ b.B
            else:
                R0, w, dw, pB, base = EYE, ZERO, ZERO, self.lift, b.B
            x, xd, xdd = joints.get(b.joint, (0.0, 0.0, 0.0))
            R = rotation(b.axis, b.sign * x) if b.type == "R" else EYE
            own = b.z
            if b.turn is not None:
                R, own = b.turn @ R, b.turn @ b.z
            back, A = R.T, ZERO
            if b.type == "R":
                dw = back @ (dw + xdd * own + xd * cross(w, own))
                w = back @ (w + xd * own)
                pA = back @ pB
            else:
                w, dw = back @ w, back @ dw
                if b.type == "P":
                    A = -x * b.z
                    pA = back @ (pB + xdd * own) + 2 * xd * cross(w, back @ own)
                else:
                    pA = back @ pB
            R0 = R0 @ R
            r = b.C - A
            out.append((R, R0, base - R0 @ A, A, w, dw, pA, pA + cross(dw, r) + cross(w, cross(w, r))))
        return out

    def _sliding(self, act: tuple[float, float, float]) -> tuple[float, float, float]:
        T, (x, xd, xdd) = self.T, act
        rise = sqrt(x * x - (T.E4[1] - T.D3[1]) ** 2)
        up = x * xd / rise
        return T.B3[2] - (T.D3[2] + rise - T.E4[2]), -up, -(xd * xd + x * xdd - up * up) / rise

    def _rotating(self, act: tuple[float, float, float]) -> tuple[float, float, float]:
        T, (x, xd, xdd) = self.T, act
        (Fy, Fz), (By, Bz), (Gy5, Gz5) = T.F4[1:].tolist(), T.B4[1:].tolist(), T.G5[1:].tolist()
        e, r = hypot(Fy - By, Fz - Bz), hypot(Gy5, Gz5)
        along = (x * x - r * r + e * e) / (2 * e)
        h = sqrt(x * x - along * along)
        Gy = along / e * (By - Fy) + h / e * (Bz - Fz) + Fy
        Gz = along / e * (Bz - Fz) - h / e * (By - Fy) + Fz
        angle = atan2(Gz - Bz, Gy - By) + atan2(Gy5, Gz5) - pi / 2
        lever = -(Gy - Fy) * (Gz - Bz) + (Gz - Fz) * (Gy - By)
        rate = x * xd / lever
        bend = r * r - (Gy - Fy) * (Gy - By) - (Gz - Fz) * (Gz - Bz)
        return angle, rate, (xd * xd + x * xdd - rate * rate * bend) / lever

    def _spring_5(self, R: np.ndarray, own: list, below: list, found: dict[str, tuple]) -> None:
        T = self.T
        d = T.E5 - R.T @ (T.S4 - T.B4)
        length = sqrt(d @ d)
        k, L0, F0 = T.spring_5
        f = (k * (L0 - length) + F0) / length * d  # (35)
        own.append((-f, ZERO, T.E5))
        below.append((R @ f, ZERO, T.S4))
        found["spring_5"] = (f, ZERO)

    def _share_5(self, b: Body, R: np.ndarray, force, torque, below: list, found, torques) -> tuple:
        T = self.T
        along = T.G5 - R.T @ (T.F4 - T.B4)
        rd, ra = b.C - T.G5, b.C
        M = np.zeros((6, 6))  # (36)
        M[0, 0] = M[0, 3] = M[1, 1] = M[1, 4] = M[2, 2] = M[2, 5] = M[5, 3] = 1.0
        M[3, 1], M[3, 2], M[3, 4], M[3, 5] = rd[2], -rd[1], ra[2], -ra[1]
        M[4, 1], M[4, 2], M[5, 0] = along[2], -along[1], -1.0
        x = np.linalg.solve(M, np.array((force[0], force[1], force[2], torque[0], 0.0, 0.0)))
        fd, fa = x[:3], x[3:]
        left = torque - cross(fd, rd) - cross(fa, ra)
        half = np.linalg.solve(MATRIX_38, np.array((left[1], left[2], 0.0, 0.0)))  # (38)
        mud, mua = np.array((0.0, half[0], half[1])), np.array((0.0, half[2], half[3]))
        foot = mud + cross(along, fd)
        below.append((R @ fd, R @ foot, T.F4))
        torques["actuator_5"] = float(fd @ along) / sqrt(along @ along)
        found["head_5d"], found["foot_5d"] = (fd, mud), (fd, foot)
        return fa, mua

    def _linkage(self, d4: float, own: list, below: list, found: dict[str, tuple]) -> None:
        T = self.T
        k, L0, F0 = T.spring_4
        rise = T.B3[2] - d4 + T.H4z - T.c - T.F3[2]  # (22), (23)
        reach = sqrt(T.b * T.b - rise * rise)
        for name, side in (("l", -1.0), ("r", 1.0)):
            tip = side * reach  # (24), (25), from the pivot
            sx, sz = T.a / T.b * tip, T.a / T.b * rise  # (26), (27)
            F3, G3 = np.array((-side * T.F3[0], T.F3[1], T.F3[2])), np.array((-side * T.G3[0], T.G3[1], T.G3[2]))
            dx, dz = F3[0] + sx - G3[0], F3[2] + sz - G3[2]
            length = hypot(dx, dz)
            push = (k * (L0 - length) + F0) / length
            fx, fz = push * dx, push * dz  # (39)
            a5 = fz * sx - fx * sz  # (41)
            M = np.array(((0.0, 1.0, 0.0), (-1.0, 0.0, 1.0), (-tip, 0.0, 0.0)))
            up, bx, bz = np.linalg.solve(M, np.array((fx, fz, a5)))  # (40)
            upright = np.array((0.0, 0.0, up))
            own.append((upright, ZERO, np.array((F3[0] + tip, F3[1], T.H4z))))
            below.append((np.array((-bx, 0.0, -bz)), ZERO, F3))
            below.append((np.array((fx, 0.0, fz)), ZERO, G3))
            found[f"rail_4{name}"], found[f"bar_4{name}"] = (upright, ZERO), (np.array((-bx, 0.0, -bz)), ZERO)

    def _share_4(self, b: Body, A, d4: float, force, torque, below: list, found, torques) -> tuple:
        T = self.T
        along = T.E4 - T.D3
        along[2] += T.B3[2] - d4
        M = np.zeros((4, 4))  # (42)
        M[0, 2] = M[1, 0] = M[1, 3] = M[2, 1] = 1.0
        M[3, 0], M[3, 1] = along[2], -along[1]
        y, z, x3, y3 = np.linalg.solve(M, np.array((force[0], force[1], force[2], 0.0)))
        fd, fa = np.array((0.0, y, z)), np.array((x3, y3, 0.0))
        left = torque - cross(fd, b.C - T.E4) - cross(fa, b.C - A)
        x, y, right, other = np.linalg.solve(MATRIX_43, np.array((left[0], left[1], left[2], 0.0)))  # (43)
        foot = cross(along, fd)
        below.append((fd, foot, T.D3))
        torques["actuator_4"] = float(fd @ along) / sqrt(along @ along)
        found["head_4d"], found["foot_4d"] = (fd, ZERO), (fd, foot)
        for name, share in (("l", right), ("r", other)):
            mu = np.array((0.0, 0.0, share))
            below.append((ZERO, mu, ZERO))
            found[f"rail_4{name}"] = (found[f"rail_4{name}"][0], -mu)
            found[f"bar_4{name}"] = (found[f"bar_4{name}"][0], mu)
        return fa, np.array((x, y, 0.0))
