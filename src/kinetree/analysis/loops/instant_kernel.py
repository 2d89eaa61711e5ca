"""One instant of a driven motion in native code: loops closed near a guess, velocities, accelerations and torques."""

from __future__ import annotations

from collections.abc import Mapping
from itertools import accumulate

from ...compiler.ir.program import Program
from ...compiler.lanes.expressions import Builder, Value
from ...compiler.lanes.form import Kernel, Kind
from ...compiler.lower.closing_steps import ClosingLoop, load
from .samples import STRIDE
from .tolerances import ROUNDED

AGAIN = 8
"""The most evaluations of an instant: each corrects the position once, and one or two suffice, except near singular
positions."""
NEAR = 1e-8
"""The gap from which the correction by the Program `motion` closes the loops to rounding: each one squares the gap."""
OPEN = 1e300
"""The gap of an instant whose loops the kernel has not closed."""


def instant_kernel(step: Program, motion: Program, held: Mapping[int, float]) -> Kernel:
    """Return the kernel (q, wanted, qd, qdd[, parameters]) -> (q, qd, qdd[, tau], gap, rank) of one instant.

    The loops are closed at the guess q. From there the held coordinates, whose units are given, move to those of
    `wanted`, by one stride at most. The loops are closed again, and the Program `motion` corrects the position until
    its gap is rounding. The gap is OPEN if the distance is longer than a stride, or if the loops do not close.
    """
    return _Instant(step, motion, held).kernel()


class _Instant:
    """The writer of the kernel."""

    def __init__(self, step: Program, motion: Program, held: Mapping[int, float]) -> None:
        """Declare the arguments and the memory."""
        self.nq, self.held, self.motion = step.inputs[0].size, held, motion
        k = self.k = Builder("instant", {"step": step, "motion": motion})
        self.q, self.wanted = k.array("q", self.nq), k.array("wanted", self.nq)
        self.given = {"q": self.q} | {a.name: k.array(a.name, a.size) for a in motion.inputs[1:]}
        self.results = [k.array(f"{a.name}_found", a.size, output=True) for a in motion.outputs]
        self.newton, self.goal = ClosingLoop(k, step), k.block("goal", self.nq)
        self.lost, self.moves = k.block("lost", kind=Kind.MASK), k.block("moves", kind=Kind.MASK)
        self.inputs = k.block("inputs", sum(a.size for a in motion.inputs))
        self.outputs = k.block("outputs", sum(a.size for a in motion.outputs))
        self.rounds = k.block("evaluations", kind=Kind.COUNT)

    def kernel(self) -> Kernel:
        """Write the whole instant and return the finished kernel."""
        self._load()
        self._move()
        self._evaluate()
        self._store()
        return self.k.kernel()

    def _load(self) -> None:
        k, newton = self.k, self.newton
        with k.each_lane():
            load(k, newton.state, self.q, 0)
            load(k, self.goal, self.wanted, 0)
            for a, first in self._firsts(self.motion.inputs):
                load(k, self.inputs, self.given[a.name], first)
            if "parameters" in self.given:
                load(k, newton.state, self.given["parameters"], newton.firsts["parameters"])

    def _move(self) -> None:
        """Write closed positions with the held coordinates as wanted.

        Where the loops do not close at the guess, Newton's method starts from the guess with the wanted coordinates.
        """
        k, q, goal = self.k, self.newton.state, self.goal
        distance = k.cast(0.0, Kind.LANE)
        for j, unit in self.held.items():
            own = abs(goal[j] - q[j]) * (1.0 / unit)
            distance = (own > distance).where(own, distance)
        self.moves.value, self.lost.value = distance > 0.0, ~(distance <= STRIDE)
        self.newton.close(enough=NEAR)
        blocked = self.moves.value & ~(self.newton.left.value <= NEAR)
        with k.loop(self.nq) as j:
            q[j] = blocked.where(goal[j], q[j])
        for j in self.held:
            q[j] = goal[j]
        self.newton.close(~self.moves.value, NEAR)
        self.lost.value = self.lost.value | ~(self.newton.left.value <= NEAR)

    def _evaluate(self) -> None:
        """Write the motion, with further corrections of the positions that are not closed to rounding."""
        k = self.k
        with k.loop(self.nq) as j:
            self.inputs[j] = self.newton.state[j]
        self.rounds.value = 0
        with k.repeat() as turn:
            k.call("motion", self.inputs, self.outputs)
            self.rounds.value = self.rounds.value + 1
            again = self._gap() > ROUNDED
            with k.loop(self.nq) as j:
                self.inputs[j] = again.where(self.outputs[j], self.inputs[j])
            turn.again = k.any(again) & (self.rounds.value < AGAIN)

    def _store(self) -> None:
        k = self.k
        with k.each_lane():
            for array, (a, first) in zip(self.results, self._firsts(self.motion.outputs), strict=True):
                with k.loop(a.size) as j:
                    array[j] = self.outputs[j + first]
                if a.name == "q":
                    for j in self.held:
                        array[j] = self.goal[j]
                if a.name == "gap":
                    array[0] = self.lost.value.where(OPEN, self._gap())

    def _gap(self) -> Value:
        return self.outputs[next(first for a, first in self._firsts(self.motion.outputs) if a.name == "gap")]

    @staticmethod
    def _firsts(arrays: tuple) -> list[tuple]:
        """Return arrays, each with the number of entries before it."""
        return list(zip(arrays, accumulate((a.size for a in arrays), initial=0), strict=False))
