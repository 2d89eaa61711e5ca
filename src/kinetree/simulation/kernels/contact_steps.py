"""Time steps with contacts: Moreau's midpoint scheme, with impulses on Coulomb's cone; see contact_rates.py."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

from ...compiler.ir.program import Program
from ...compiler.lanes.expressions import Value
from ...compiler.lanes.form import Kernel, Kind
from .cone_programs import IMPULSE
from .cone_solves import ConeSolver
from .fixed_steps import REPORT, SETTINGS, steps_between
from .runs_of_lanes import RunsOfLanes

SMALL = {"float64": 1e-6, "float32": 1e-3}
"""A velocity [m/s] that is added to those that residuals are compared with, for contacts almost at rest."""


@dataclass(frozen=True)
class Moreau:
    """The Programs of a step after its rates, which are its motion without impulses."""

    meeting: Program
    pushing: Program
    ending: Program
    name: str = "moreau"
    b: tuple[float, ...] = (1.0,)

    @property
    def rows(self) -> int:
        """The number of impulses: three per contact."""
        return next(a.size for a in self.meeting.outputs if a.name == IMPULSE)


LOWEST = 0
"""The index of the smallest velocity along a normal, less that which is allowed, among the results of the rates."""

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
        """Declare the memory; the Programs are those of contact_rates.py."""
        super().__init__(method.name, program, 1, quaternions, closing, dtype=dtype, shared=SETTINGS, report=REPORT)
        k, arrays = self.k, method.ending.inputs
        k.programs |= {"meeting": method.meeting, "pushing": method.pushing, "ending": method.ending}
        self.rows, self.given = method.rows, sum(a.size for a in program.inputs)
        self.met, self.pushed = (sum(a.size for a in x.inputs) for x in (method.meeting, method.pushing))
        self.found = k.block("found", sum(a.size for a in arrays))
        self.solver = ConeSolver(k, self.found, arrays, dtype)
        self.first = self.n - self.rows - MEASURES

    def keep(self, index) -> None:
        """Write the state of all lanes to the outputs at an index, and start new measures.

        The first state of a call may lie between two outputs: its measures go on.
        """
        super().keep(index)
        k, zero = self.k, self.k.constant(0.0, Kind.LANE)
        between = k.constant(False, Kind.FLAG) if isinstance(index, Value) else self.shared["skip"][()] > 0.5
        for i in range(MEASURES):
            at = self.first + self.rows + i
            self.y[at] = between.where(self.y[at], zero)

    def step(self, begin: Value, h: Value, m: Value) -> None:
        """Write a step."""
        k, number = self.k, self.k.number(m)
        self.copy(self.y, self.inputs, shift=1)
        self.inputs[0] = begin + (number + 0.5) * h
        self.inputs[self.given - 2], self.inputs[self.given - 1] = h, self.shared["dt"][()]
        k.call("rates", self.inputs, self.found)
        self._push(self.found[LOWEST] < 0.0)
        k.call("ending", self.found, self.y)
        self.normalize(self.y)
        self.close_or_lose(self.y, begin + (number + 1.0) * h)

    def _push(self, pressed: Value) -> None:
        """Write the impulses of the lanes with contacts that would close, and the changes of velocities by them."""
        k, zero = self.k, self.k.constant(0.0, Kind.LANE)
        speeds = self.first - self.nq
        with k.loop(speeds) as j:
            self.found[j + self.pushed] = zero
        with k.loop(self.rows) as i:
            self.y[i + self.first] = zero
        with k.when(k.any(pressed)):
            k.call("meeting", self.found, self.found, self.met)
            self.solver.solve(pressed)
            self._measure()
            k.call("pushing", self.found, self.found, self.pushed)
            with k.loop(speeds) as j:
                self.found[j + self.pushed] = pressed.where(self.found[j + self.pushed], zero)
            with k.loop(self.rows) as i:
                self.y[i + self.first] = self.solver.p[i]

    def _measure(self) -> None:
        """Write the larger of the residuals of this step and of those before, in parts of the velocities."""
        whole = self.solver.size + SMALL[self.dtype]
        for i, part in enumerate(self.solver.residuals()):
            at = self.first + self.rows + i
            now, before = part / whole, self.y[at]
            self.y[at] = (~(now <= before)).where(now, before)


def contact_kernel(
    program: Program, method: Moreau, quaternions: Sequence[int], closing: Program | None = None, *, dtype: str
) -> Kernel:
    """Return (q0, qd0[, parameters], times, dt, skip, budget) -> (q, qd, q_end, qd_end, report); see ContactRuns."""
    runs = ContactRuns(program, method, quaternions, closing, dtype)
    return steps_between(runs, runs.step)
