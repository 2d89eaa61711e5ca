"""Inverse kinematics of arms within their limits: native batches, compared with a loop on Pinocchio's kinematics."""

from __future__ import annotations

from dataclasses import dataclass
from functools import partial
from typing import Any

import numpy as np
import pinocchio as pin

import kinetree as kt
from book import Section
from measure import Contender, Disagreement, Figure, interleaved, ratio
from report import Table
from robot_files import ROBOTS, Robot

TARGETS, FEWER = 4096, 40
"""The poses of our batch and of the peer's loop."""
RESTARTS, STEPS, REACHED = 100, 100, 1e-10
"""The most starts of a pose and steps of a start, and the largest error [rad, m] of the peer; ours is 1e-12."""
FRAMES = {"UR5": "tool0", "Panda": "panda_link8"}


@dataclass(frozen=True)
class Peer:
    """The same search in Python: Levenberg-Marquardt steps on Pinocchio's errors, Jacobians and limits."""

    model: Any
    data: Any
    frame: int

    def error(self, q: np.ndarray, goal: pin.SE3) -> np.ndarray:
        """Return the error of the pose in the frame's axes."""
        pin.framesForwardKinematics(self.model, self.data, q)
        return pin.log6(self.data.oMf[self.frame].actInv(goal)).vector

    def step(self, q: np.ndarray, e: np.ndarray, goal: pin.SE3, damping: float) -> np.ndarray:
        """Return the position after one damped step; joints at a limit do not leave their range."""
        low, high = self.model.lowerPositionLimit, self.model.upperPositionLimit
        J = pin.computeFrameJacobian(self.model, self.data, q, self.frame)
        J = pin.Jlog6(self.data.oMf[self.frame].actInv(goal).inverse()) @ J
        slope = J.T @ e
        J = J * ~(((q >= high) & (slope > 0)) | ((q <= low) & (slope < 0)))
        dq = J.T @ np.linalg.solve(J @ J.T + damping * np.eye(6), e)
        return np.clip(q + dq / max(1.0, np.abs(dq).max()), low, high)

    def search(self, q: np.ndarray, goal: pin.SE3) -> tuple[np.ndarray, bool]:
        """Return the position that one start leads to, and whether it reaches the pose."""
        e, factor, slow = self.error(q, goal), 1e-2, 0
        for _ in range(STEPS):
            size = 0.5 * float(e @ e)
            if np.abs(e).max() <= REACHED:
                return q, True
            tried = self.step(q, e, goal, factor * size + 1e-13)
            new = self.error(tried, goal)
            after = 0.5 * float(new @ new)
            slow = 0 if after < 0.9 * size else slow + 1
            if slow > 8:
                break
            if after < size:
                q, e, factor = tried, new, factor / 8 if after < 0.25 * size else factor
            else:
                factor *= 8
                self.error(q, goal)
        return q, False

    def solve(self, targets: np.ndarray, q0: np.ndarray) -> int:
        """Return the number of poses reached, each from the start and then from random ones."""
        rng, count = np.random.default_rng(0), 0
        low, high = self.model.lowerPositionLimit, self.model.upperPositionLimit
        for T in targets:
            q, goal = q0.copy(), pin.SE3(T)
            for _ in range(RESTARTS + 1):
                _, good = self.search(q, goal)
                if good:
                    count += 1
                    break
                q = rng.uniform(np.maximum(low, -np.pi), np.minimum(high, np.pi))
        return count


def compare(robot: Robot, rounds: int) -> tuple[Figure, Figure, Figure, float]:
    """Return the time per pose of both [us], their ratio, and the mean number of restarts of ours."""
    system, model = kt.load(robot.path), pin.buildModelFromUrdf(str(robot.path))
    frame = FRAMES[robot.name]
    peer = Peer(model, model.createData(), model.getFrameId(frame))
    q, _ = system.random_state(1, TARGETS)
    T, q0 = system.pose(q, frame), 0.5 * (model.lowerPositionLimit + model.upperPositionLimit) + 0.1
    found = system.inverse_kinematics(T, frame, q0=q0)
    count = peer.solve(T[:FEWER], q0)
    if count < FEWER:
        raise Disagreement(f"{robot.name}: the loop reaches {count} of {FEWER} poses, and the batch reaches all")
    contenders = {
        "ours": Contender(partial(system.inverse_kinematics, T, frame, q0=q0), TARGETS),
        "peer": Contender(partial(peer.solve, T[:FEWER], q0), FEWER),
    }
    times = interleaved(contenders, rounds)
    ours, theirs = (Figure.of(times[name]).times(1e-3) for name in contenders)
    return ours, theirs, ratio(times["peer"], times["ours"]), float(found.restarts.mean())


def section(quick: bool) -> Section:
    """Return the times per pose of two arms, and the ratios."""
    rows, lines = [], []
    for robot in ROBOTS[:2]:
        ours, peer, times, restarts = compare(robot, 3 if quick else 9)
        rows.append((robot.name, f"{restarts:.2f}", ours.text(), peer.text(), times.text()))
        lines.append(f"{times.median:.0f} for a {robot.name}")
    note = (
        f"Random poses within the limits from one start, {TARGETS} in a batch of ours, {FEWER} in the loop; each is "
        f"reached, ours to 1e-12, the loop to {REACHED:g}. Searches that fail start again from random positions. The "
        "loop takes the same steps in Python, with Pinocchio's kinematics and NumPy's solver."
    )
    return Section(
        "Inverse kinematics",
        f"Ratios to a loop on Pinocchio's kinematics: {', '.join(lines)}.",
        (Table("Times per pose", ("robot", "restarts", "ours [us]", "loop [us]", "ratio"), tuple(rows), note),),
    )
