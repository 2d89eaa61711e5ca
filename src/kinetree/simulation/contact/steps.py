"""Time steps with contacts: Moreau's midpoint scheme, with impulses on Coulomb's cone; see contact_rates.py."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

from ...compiler.ir.program import Program
from ...compiler.lanes.expressions import Block, Value
from ...compiler.lanes.form import Kernel, Kind
from ...contact_geometry.cone import DOUBTFUL
from ..methods.fixed_steps import REPORT, SETTINGS, steps_between
from ..methods.lane_states import RunsOfLanes
from .cone_programs import IMPULSE
from .cone_solves import ConeSolver, larger
from .cone_sweeps import Entries
from .slots import ManyContacts, Slots

FEW = 5
"""The most contacts whose equations are straight-line code: the matrix of five has some thousand operations."""

MOST = 1000
"""The most contacts of a run that may be near their surfaces at the same time, where memory is taken as it is used."""

MOST_OF_A_THREAD = 24
"""The same on a graphics card, where all threads have their memory at once: some 80 KB per thread for this number."""


@dataclass(frozen=True)
class Moreau:
    """Time steps with few contacts: the Programs of a step after its rates, which are its motion without impulses."""

    meeting: Program
    pushing: Program
    ending: Program

    adaptive, evaluations = False, 1

    @property
    def rows(self) -> int:
        """The number of impulses: three per contact."""
        return next(a.size for a in self.meeting.outputs if a.name == IMPULSE)

    def kernel(
        self, program: Program, quaternions: Sequence[int], closing: Program | None, *, dtype: str, in_registers: bool
    ) -> Kernel:
        """Return (q0, qd0[, parameters], times, dt, skip, budget) -> (q, qd, q_end, qd_end, report): ContactRuns."""
        runs = FewContacts(program, self, quaternions, closing, dtype)
        return steps_between(runs, runs.step)


@dataclass(frozen=True)
class ManyMoreau:
    """Time steps with many contacts, of which the near ones are computed."""

    contacts: ManyContacts

    adaptive, evaluations = False, 1

    @property
    def rows(self) -> int:
        """The number of impulses: three per contact."""
        return self.contacts.rows

    def kernel(
        self, program: Program, quaternions: Sequence[int], closing: Program | None, *, dtype: str, in_registers: bool
    ) -> Kernel:
        """Return the same kernel, for so many near contacts as the memory of a processor allows."""
        most = MOST_OF_A_THREAD if in_registers else MOST
        runs = ManyContactRuns(program, self.contacts, quaternions, closing, dtype, most)
        return steps_between(runs, runs.step)


LOWEST = 0
"""The index of the smallest velocity along a normal, less that which is allowed, among the results of the rates."""

MEASURES = ("normal", "tangent", "doubtful", "worst", "when")
"""The entries after the impulses in the state of a run: the largest residuals along normals and tangents since the last
output. Since the start, the number of steps with a residual above DOUBTFUL, the largest residual of these, and the time
at the end of its step; see contact_geometry/cone.py."""

PASSING = 2
"""The number of measures that start again at each output."""


class ContactRuns(RunsOfLanes):
    """An unfinished kernel of runs with contacts.

    The velocities of its state are followed by the impulses of the last step, where the solution of the next one
    begins, and by its MEASURES. `found` has the results of the Programs, the changes of velocities from `pushed` on.
    """

    found: Block
    pushed: int

    def __init__(
        self, program: Program, method: Moreau | ManyContacts, quaternions: Sequence[int], closing: Program | None,
        dtype: str,
    ) -> None:  # fmt: skip
        """Declare the memory of the state."""
        super().__init__("moreau", program, 1, quaternions, closing, dtype=dtype, shared=SETTINGS, report=REPORT)
        self.rows, self.given = method.rows, sum(a.size for a in program.inputs)
        self.first = self.n - self.rows - len(MEASURES)
        self.impulses, self.measures = Entries(self.y, self.first), Entries(self.y, self.first + self.rows)

    def push(self, h: Value, end: Value) -> None:
        """Write the impulses of a step, its measures, and the changes of velocities."""
        raise NotImplementedError

    def keep(self, index) -> None:
        """Write the state of all lanes to the outputs at an index, and start new measures.

        The first state of a call may lie between two outputs: its measures go on.
        """
        super().keep(index)
        k, zero = self.k, self.k.constant(0.0, Kind.LANE)
        between = k.constant(False, Kind.FLAG) if isinstance(index, Value) else self.shared["skip"][()] > 0.5
        for i in range(PASSING):
            self.measures[i] = between.where(self.measures[i], zero)

    def step(self, begin: Value, h: Value, m: Value) -> None:
        """Write a step."""
        k, number = self.k, self.k.number(m)
        self.copy(self.y, self.inputs, shift=1)
        self.inputs[0] = begin + (number + 0.5) * h
        self.inputs[self.given - 2], self.inputs[self.given - 1] = h, self.shared["dt"][()]
        k.call("rates", self.inputs, self.found)
        self.push(h, begin + (number + 1.0) * h)
        k.call("ending", self.found, self.y)
        self.normalize(self.y)
        self.close_or_lose(self.y, begin + (number + 1.0) * h)

    def measure(self, found: Sequence[Value], end: Value) -> None:
        """Write the larger of the residuals of this step and of those before, and the steps in doubt."""
        felt = self.measures
        for i, now in enumerate(found):
            felt[i] = larger(now, felt[i])
        _, _, count, worst, when = (felt[i] for i in range(len(MEASURES)))
        now = larger(*found)
        doubtful, more = ~(now <= DOUBTFUL[self.dtype]), ~(now <= worst)
        felt[2] = doubtful.where(count + 1.0, count)
        felt[3] = (doubtful & more).where(now, worst)
        felt[4] = (doubtful & more).where(end, when)


class FewContacts(ContactRuns):
    """Runs with few contacts, whose Programs have operations for each; they are those of contact_rates.py."""

    def __init__(
        self, program: Program, method: Moreau, quaternions: Sequence[int], closing: Program | None, dtype: str
    ) -> None:
        """Declare the memory of the cone problem."""
        super().__init__(program, method, quaternions, closing, dtype)
        k, arrays = self.k, method.ending.inputs
        k.programs |= {"meeting": method.meeting, "pushing": method.pushing, "ending": method.ending}
        self.met, self.pushed = (sum(a.size for a in x.inputs) for x in (method.meeting, method.pushing))
        self.found = k.block("found", sum(a.size for a in arrays))
        self.solver = ConeSolver(k, self.found, arrays, dtype)

    def push(self, h: Value, end: Value) -> None:
        """Write the impulses of the lanes with contacts that would close, and the changes of velocities by them."""
        k, zero, pressed = self.k, self.k.constant(0.0, Kind.LANE), self.found[LOWEST] < 0.0
        speeds = self.first - self.nq
        with k.loop(speeds) as j:
            self.found[j + self.pushed] = zero
        with k.loop(self.rows) as i:
            self.impulses[i] = zero
        with k.when(k.any(pressed)):
            k.call("meeting", self.found, self.found, self.met)
            self.solver.solve(pressed)
            self.measure(self.solver.residuals(), end)
            k.call("pushing", self.found, self.found, self.pushed)
            with k.loop(speeds) as j:
                self.found[j + self.pushed] = pressed.where(self.found[j + self.pushed], zero)
            with k.loop(self.rows) as i:
                self.impulses[i] = self.solver.p[i]


class ManyContactRuns(ContactRuns):
    """Runs with many contacts, in loops over those that are near their surfaces."""

    def __init__(
        self, program: Program, method: ManyContacts, quaternions: Sequence[int], closing: Program | None, dtype: str,
        most: int,
    ) -> None:  # fmt: skip
        """Declare the memory of at most so many contacts of a run that are near at the same time."""
        super().__init__(program, method, quaternions, closing, dtype)
        self.slots = Slots(self.k, method, dtype, most)
        self.found, self.pushed = self.slots.found, self.slots.pushed

    def push(self, h: Value, end: Value) -> None:
        """Write the impulses of the lanes with contacts that would close, and the changes of velocities by them."""
        self.slots.push(h, self.shared["dt"][()], self.impulses)
        with self.k.when(self.k.any(self.slots.pressed.value)):
            self.measure(self.slots.residuals(), end)
