"""Time steps with contacts: Moreau's midpoint scheme, with impulses on Coulomb's cone.

From q and v, with the position in the middle of the step, q_m = q + h/2 v:

    v+ = v + h qdd(q_m, v) + X p,    q+ = q_m + h/2 v+,    u = J(q_m) v+

The impulses p satisfy Signorini's conditions and Coulomb's law with the velocities u. Along a normal, u_n is at least
what brings a gap g(q_m) to zero at the end of the step, -2 g / h. A gap below zero is opened slowly. An
impact may leave one of half a step, h/2 |u_n|, which then fades. A body that arrives with u_n < 0 and restitution e
leaves with -e u_n.                                                                                 [Moreau1988]
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

from ...compiler.ir.program import Program
from ...compiler.lanes.expressions import Value
from ...compiler.lanes.form import Kernel, Kind
from .cone_solves import ConeSolver, Data, raise_to
from .fixed_steps import REPORT, SETTINGS, steps_between
from .runs_of_lanes import RunsOfLanes

SMALL = {"float64": 1e-6, "float32": 1e-3}
"""A velocity [m/s] that is added to those that residuals are compared with, for contacts almost at rest."""

OPENING = 0.2
"""The part of a gap below zero that is opened within a step of length dt.

Bodies are opened no faster than the forces on them change their velocity in a step: a part of the velocity of an impact
would remain as a bounce, however short the steps are."""


@dataclass(frozen=True)
class Moreau:
    """The Programs of a step beside its rates: velocities changed by impulses, and coordinates moved by velocities."""

    pushing: Program
    moving: Program
    name: str = "moreau"
    b: tuple[float, ...] = (1.0,)

    @property
    def rows(self) -> int:
        """The number of impulses: three per contact."""
        return self.pushing.inputs[1].size


MEASURES = 2
"""The entries after the impulses in the state of a run: the largest residuals along normals and tangents since the last
output, in parts of the velocities of the contacts."""


class ContactRuns(RunsOfLanes):
    """An unfinished kernel of runs with contacts.

    The velocities of its state are followed by the impulses of the last step, where the solution of the next one
    begins, and by its MEASURES.
    """

    def __init__(
        self, program: Program, method: Moreau, quaternions: Sequence[int], closing: Program | None, dtype: str
    ) -> None:
        """Declare the memory; `program` is that of contact_rates.py, with velocities widened for the impulses."""
        super().__init__(method.name, program, 1, quaternions, closing, dtype=dtype, shared=SETTINGS, report=REPORT)
        k = self.k
        k.programs |= {"moving": method.moving, "pushing": method.pushing}
        sizes = [a.size for a in program.outputs]
        self.place = {a.name: sum(sizes[:i]) for i, a in enumerate(program.outputs)}
        self.speeds, self.count, self.rows = method.moving.inputs[1].size, program.outputs[1].size, method.rows
        self.kept = method.pushing.inputs[0].size
        self.found, self.shift = k.block("found", sum(sizes)), k.block("shift", self.nq + self.speeds)
        self.pushed, self.change = k.block("pushed", self.kept + self.rows), k.block("change", self.speeds)
        self.solver = ConeSolver(k, self.count, Data(self.found, self.place["W"], self.place["friction"]), dtype)
        self.first, self.size = self.nq + self.speeds, k.block("velocity_size")

    def at(self, name: str, index: Value) -> Value:
        """Return an entry of an output of the Program of contacts."""
        return self.found[index + self.place[name]]

    def keep(self, index: Any) -> None:
        """Write the state of all lanes to the outputs at an index, and start new measures."""
        super().keep(index)
        for i in range(MEASURES):
            self.y[self.first + self.rows + i] = 0.0

    def move(self, h: Value) -> None:
        """Write q moved by the velocities for a time h."""
        k = self.k
        with k.loop(self.nq) as j:
            self.shift[j] = self.y[j]
        with k.loop(self.speeds) as j:
            self.shift[j + self.nq] = self.y[j + self.nq] * h
        k.call("moving", self.shift, self.y)

    def step(self, begin: Value, h: Value, m: Value) -> None:
        """Write a step."""
        k, number, span = self.k, self.k.number(m), self.k.cast(h, Kind.LANE)
        self.move(span * 0.5)
        self.copy(self.y, self.inputs, shift=1)
        self.inputs[0] = begin + (number + 0.5) * h
        k.call("rates", self.inputs, self.found)
        self._velocities(span)
        with k.loop(self.rows) as i:
            self.solver.p[i] = self.y[i + self.first]
        self.solver.solve()
        self._measure()
        with k.loop(self.kept) as i:
            self.pushed[i] = self.at("kept", i)
        with k.loop(self.rows) as i:
            self.y[i + self.first] = self.pushed[i + self.kept] = self.solver.p[i]
        k.call("pushing", self.pushed, self.change)
        with k.loop(self.speeds) as j:
            at = j + self.nq
            self.y[at] = self.y[at] + span * self.at("qdd", j) + self.change[j]
        self.move(span * 0.5)
        self.normalize(self.y)
        self.close_or_lose(self.y, begin + (number + 1.0) * h)

    def _measure(self) -> None:
        """Write the larger of the residuals of this step and of those before, in parts of the velocities."""
        whole = self.size.value + SMALL[self.dtype]
        for i, part in enumerate((self.solver.residual, self.solver.slipped)):
            at = self.first + self.rows + i
            now, before = part.value / whole, self.y[at]
            self.y[at] = (~(now <= before)).where(now, before)

    def _velocities(self, h: Value) -> None:
        """Write the velocities of the contacts without impulses, less those that are allowed along the normals."""
        k, b = self.k, self.solver.b
        longest = k.cast(self.shared["dt"][()], Kind.LANE)
        self.size.value = 0.0
        with k.loop(self.rows) as i:
            b[i] = self.at("velocity", i) + h * self.at("change", i)
            raise_to(self.size, abs(self.at("velocity", i)) + abs(h * self.at("change", i)))
        with k.loop(self.count) as c:
            gap, e, arriving = self.at("gap", c), self.at("restitution", c), self.at("velocity", c * 3)
            needed = -2.0 * gap / h
            opening, pressing = -2.0 * OPENING * gap / longest, -1.0 * h * self.at("change", c * 3)
            pressing = (pressing > 0.0).where(pressing, 0.0)
            opening = (opening < pressing).where(opening, pressing)
            allowed = (needed > 0.0).where(opening, needed)
            bounce = -1.0 * e * arriving
            bounces = (b[c * 3] < needed) & (bounce > allowed) & (e > 0.0)
            b[c * 3] = b[c * 3] - bounces.where(bounce, allowed)
        self.solver.accept(self.size.value)


def contact_kernel(
    program: Program, method: Moreau, quaternions: Sequence[int], closing: Program | None = None, *, dtype: str
) -> Kernel:
    """Return (q0, qd0[, parameters], times, dt, skip, budget) -> (q, qd, q_end, qd_end, report); see ContactRuns."""
    runs = ContactRuns(program, method, quaternions, closing, dtype)
    return steps_between(runs, runs.step)
