"""Runs with hard contact by time steps, in batches on the CPU or a GPU: Moreau's scheme, impulses on the exact cone."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass, replace
from typing import TYPE_CHECKING

import numpy as np

from ...compiler.ir.program import Program
from ...compiler.lanes.expressions import Block, Value
from ...compiler.lanes.form import Kernel, Kind
from ...compiler.lower.contacts import candidate_names
from ...contact_geometry.cone import DOUBTFUL
from ...errors import Advice, InputError
from ...model.scales import characteristic_length
from ..acting.rates import ForcedMechanism, uncentering
from ..contact.cone_programs import IMPULSE
from ..contact.cone_solves import ConeSolver, larger
from ..contact.cone_sweeps import Entries
from ..contact.pairs import many_contacts
from ..contact.rates import contact_programs, widen_rates
from ..contact.records import Doubt, contact_wrenches, doubtful
from ..contact.slots import ManyContacts, Slots
from ..contact.touching import motion_of_contacts, refuse_depth
from ..events import Watch
from ..methods.fixed_steps import REPORT, SETTINGS, end_step, steps_between
from ..methods.lane_states import LaneStates, RunsOfLanes
from ..methods.protocol import Centering
from ..methods.stepper import Stepper, stepper_of
from ..problem import Problem
from ..run_states import Run
from .engine import Fields, Motion, Progress, onward_by, refuse_with_contacts, run
from .gpu import in_blocks, refuse_on_gpu
from .native import acting_on

if TYPE_CHECKING:
    from ...targets.ptx.driver import Device

# --- Moreau's midpoint scheme in lanes, with impulses on Coulomb's cone; its Programs are those of contact/rates.py ---


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
    centering: Centering | None = None

    adaptive, evaluations = False, 1

    @property
    def rows(self) -> int:
        """The number of impulses: three per contact."""
        return next(a.size for a in self.meeting.outputs if a.name == IMPULSE)

    def kernel(
        self, program: Program, quaternions: Sequence[int], closing: Program | None, *, dtype: str, in_registers: bool
    ) -> Kernel:
        """Return (q0, qd0[, parameters], times, dt, skip, budget) -> (q, qd, q_end, qd_end, report): ContactRuns."""
        runs = ContactRuns(program, quaternions, closing, dtype)
        return steps_between(runs, self.steps(runs, program, lambda: runs.shared["dt"][()]).step)

    def steps(self, states: LaneStates, program: Program, longest: Callable[[], Value]) -> ContactSteps:
        """Return the writer of steps in an unfinished kernel."""
        return FewContacts(states, program, self, longest)


@dataclass(frozen=True)
class ManyMoreau:
    """Time steps with many contacts, of which the near ones are computed."""

    contacts: ManyContacts
    centering: Centering | None = None

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
        runs = ContactRuns(program, quaternions, closing, dtype)
        return steps_between(runs, self.steps(runs, program, lambda: runs.shared["dt"][()], most).step)

    def steps(
        self, states: LaneStates, program: Program, longest: Callable[[], Value], most: int = MOST
    ) -> ContactSteps:
        """Return the writer of steps, for at most so many near contacts."""
        return ManyContactSteps(states, program, self, longest, most)


LOWEST = 0
"""The index of the smallest velocity along a normal, less that which is allowed, among the results of the rates."""

MEASURES = ("normal", "tangent", "doubtful", "worst", "when")
"""The entries after the impulses in the state of a run: the largest residuals along normals and tangents since the last
output. Since the start, the number of steps with a residual above DOUBTFUL, the largest residual of these, and the time
at the end of its step; see contact_geometry/cone.py."""

PASSING = 2
"""The number of measures that start again at each output."""


class ContactSteps:
    """The writer of steps with contacts in an unfinished kernel.

    The velocities of a state are followed by the impulses of the last step, where the solution of the next one
    begins, and by its MEASURES. `found` has the results of the Programs, the changes of velocities from `pushed` on.
    `longest` returns the length of the longest step.
    """

    found: Block
    pushed: int

    def __init__(
        self, states: LaneStates, program: Program, method: Moreau | ManyMoreau, longest: Callable[[], Value]
    ) -> None:
        """Find the impulses and the measures in the state."""
        self.states, self.k, self.longest = states, states.k, longest
        self.rows, self.centering = method.rows, method.centering
        self.given = sum(a.size for a in program.inputs)
        self.first = states.n - self.rows - len(MEASURES)
        self.impulses, self.measures = Entries(states.y, self.first), Entries(states.y, self.first + self.rows)

    def push(self, h: Value, end: Value) -> None:
        """Write the impulses of a step, its measures, and the changes of velocities."""
        raise NotImplementedError

    def step(self, begin: Value, h: Value, m: Value) -> None:
        """Write a step."""
        k, states, number = self.k, self.states, self.k.number(m)
        states.copy(states.y, states.inputs, shift=1)
        states.inputs[0] = begin + (number + 0.5) * h
        states.inputs[self.given - 2], states.inputs[self.given - 1] = h, self.longest()
        k.call("rates", states.inputs, self.found)
        self.push(h, begin + (number + 1.0) * h)
        k.call("ending", self.found, states.y)
        end_step(states, self.centering, begin + (number + 1.0) * h)

    def measure(self, found: Sequence[Value], end: Value) -> None:
        """Write the larger of the residuals of this step and of those before, and the steps in doubt."""
        felt = self.measures
        for i, now in enumerate(found):
            felt[i] = larger(now, felt[i])
        _, _, count, worst, when = (felt[i] for i in range(len(MEASURES)))
        now = larger(*found)
        doubtful, more = ~(now <= DOUBTFUL[self.states.dtype]), ~(now <= worst)
        felt[2] = doubtful.where(count + 1.0, count)
        felt[3] = (doubtful & more).where(now, worst)
        felt[4] = (doubtful & more).where(end, when)


class FewContacts(ContactSteps):
    """Steps with few contacts, whose Programs have operations for each; they are those of contact/rates.py."""

    def __init__(self, states: LaneStates, program: Program, method: Moreau, longest: Callable[[], Value]) -> None:
        """Declare the memory of the cone problem."""
        super().__init__(states, program, method, longest)
        k, arrays = self.k, method.ending.inputs
        k.programs |= {"meeting": method.meeting, "pushing": method.pushing, "ending": method.ending}
        self.met, self.pushed = (sum(a.size for a in x.inputs) for x in (method.meeting, method.pushing))
        self.found = k.block("found", sum(a.size for a in arrays))
        self.solver, self.pressed = ConeSolver(k, self.found, arrays, states.dtype), k.block("pressed", kind=Kind.MASK)

    def push(self, h: Value, end: Value) -> None:
        """Write the impulses of the lanes with contacts that would close, and the changes of velocities by them."""
        k, zero, solver = self.k, self.k.constant(0.0, Kind.LANE), self.solver
        self.pressed.value = self.found[LOWEST] < 0.0
        speeds = self.first - self.states.nq
        with k.loop(speeds) as j:
            self.found[j + self.pushed] = zero
        with k.loop(self.rows) as i:
            self.impulses[i] = zero
        with k.when(k.any(self.pressed.value)):
            k.call("meeting", self.found, self.found, self.met)
        with k.gathered(self.pressed, solver.problem, solver.answer):
            solver.solve(self.pressed.value)
        with k.when(k.any(self.pressed.value)):
            pressed = self.pressed.value
            self.measure([pressed.where(x, 0.0) for x in solver.residuals()], end)
            with k.loop(self.rows) as i:
                solver.p[i] = pressed.where(solver.p[i], 0.0)
                self.impulses[i] = solver.p[i]
            k.call("pushing", self.found, self.found, self.pushed)
            with k.loop(speeds) as j:
                self.found[j + self.pushed] = pressed.where(self.found[j + self.pushed], zero)


class ManyContactSteps(ContactSteps):
    """Steps with many contacts, in loops over those that are near their surfaces."""

    def __init__(
        self, states: LaneStates, program: Program, method: ManyMoreau, longest: Callable[[], Value], most: int
    ) -> None:
        """Declare the memory of at most so many contacts of a run that are near at the same time."""
        super().__init__(states, program, method, longest)
        self.slots = Slots(self.k, method.contacts, states.dtype, most)
        self.found, self.pushed = self.slots.found, self.slots.pushed

    def push(self, h: Value, end: Value) -> None:
        """Write the impulses of the lanes with contacts that would close, and the changes of velocities by them."""
        self.slots.push(h, self.longest(), self.impulses)
        with self.k.when(self.k.any(self.slots.pressed.value)):
            self.measure(self.slots.residuals(), end)


class ContactRuns(RunsOfLanes):
    """An unfinished kernel of runs with contacts, whose states are those of ContactSteps."""

    def __init__(self, program: Program, quaternions: Sequence[int], closing: Program | None, dtype: str) -> None:
        """Declare the memory of the state."""
        super().__init__("moreau", program, 1, quaternions, closing, dtype=dtype, shared=SETTINGS, report=REPORT)
        self.measures = Entries(self.y, self.n - len(MEASURES))

    def keep(self, index) -> None:
        """Write the state of all lanes to the outputs at an index, and start new measures.

        The first state of a call may lie between two outputs: its measures go on.
        """
        super().keep(index)
        k, zero = self.k, self.k.constant(0.0, Kind.LANE)
        between = k.constant(False, Kind.FLAG) if isinstance(index, Value) else self.shared["skip"][()] > 0.5
        for i in range(PASSING):
            self.measures[i] = between.where(self.measures[i], zero)


FAST = 3.0
"""The velocity of impacts that a start may come from, relative to a fall over the size of the mechanism plus
its size per second. A time step leaves a body under a surface by a step at the velocity of its impact, so that a run
can start where another one ended."""

REMEDY = "try a smaller dt, or leave out method and dt, so that the run goes from event to event"
"""What to do about steps whose contact forces are in doubt."""


def run_time_steps(problem: Problem, watch: Watch | None, progress: Progress | None) -> Motion:
    """Carry out runs with contacts by the method "moreau", piece by piece.

    The impulses of the last step are a part of the state.
    """
    _refuse(problem)
    _refuse_depth(problem)
    p, nv, count = problem, problem.mechanism.nv, len(candidate_names(problem.mechanism))
    if p.device is not None:
        refuse_on_gpu(p, watch)
    place = None if p.device is None else p.device.index
    made = p.kept.part(("moreau", place, p.dtype, p.loops, p.acting_key), lambda: contact_stepper(p))
    extra = 3 * count + len(MEASURES)

    def started(qd: np.ndarray) -> np.ndarray:
        return np.concatenate([qd, np.zeros((*qd.shape[:-1], extra))], axis=-1)

    def again(q, qd, t, more) -> Run:
        return _plain(run(made, q, started(qd), t, p.settings, parameters=more), nv)

    q0, qd0 = p.start
    until = watch.stops if watch else None
    examined = None if until is None else lambda so_far: until(_plain(so_far, nv))
    if p.device is not None:
        whole = in_blocks(p, p.device, made, (q0, started(qd0)), progress).with_end()
    else:
        whole = run(
            made,
            q0,
            started(qd0),
            p.times,
            p.settings,
            parameters=p.parameters,
            threads=p.threads,
            progress=progress,
            until=examined,
        ).with_end()

    def complete(ended: Run) -> tuple[Run, Fields]:
        acted = acting_on(p)
        del acted["accelerations"]  # those without contacts; a run computes them from torques and wrenches
        acted["wrenches"] = contact_wrenches(p, acted["wrenches"])
        ended, doubts = doubtful(ended, doubts_of(p, whole.qd[..., : len(ended.t), nv + 3 * count :]), REMEDY)
        return ended, acted | contact_fields(p, ended, whole) | {"options": doubts}

    done = _plain(whole, nv)
    return Motion(done, onward_by(p, done, again), complete)


def contact_stepper(problem: Problem) -> Stepper:
    """Return the native time steps of a problem with contacts."""
    return time_steps(replace(problem.dynamics, dtype=problem.dtype), problem.device)


def time_steps(dynamics: ForcedMechanism, device: Device | None = None) -> Stepper:
    """Return the native time steps of a mechanism with contacts."""
    mechanism = dynamics.mechanism
    method: Moreau | ManyMoreau
    if len(candidate_names(mechanism)) <= FEW:
        parts = contact_programs(dynamics, measures=len(MEASURES))
        method = Moreau(parts.meeting, parts.pushing, parts.ending)
    else:
        parts = many_contacts(dynamics, measures=len(MEASURES))
        method = ManyMoreau(parts)
    more, centering = method.rows + len(MEASURES), uncentering(mechanism)
    method = replace(method, centering=centering)
    made = stepper_of(mechanism, parts.moving, method, dynamics.loops, dynamics.dtype, device)
    closing = None if made.closing is None else widen_rates(made.closing, more)
    if centering is not None:
        method = replace(method, centering=replace(centering, uncenter=widen_rates(centering.uncenter, more)))
    return replace(made, method=method, closing=closing)


def contact_fields(problem: Problem, ended: Run, whole: Run) -> Fields:
    """Return forces, gaps and residuals of the contacts at the samples of a run.

    Forces are the impulses of the last step before a sample, divided by its length; at the start they are zero. At an
    event that ends a run they are those of the step before the next output time.
    """
    p, count, nv = problem, len(candidate_names(problem.mechanism)), problem.mechanism.nv
    nt = len(ended.t)
    spans = np.diff(whole.t[:nt], prepend=whole.t[0])
    steps = np.maximum(np.ceil(spans / p.settings.dt - 1e-9), 1.0)
    lengths = np.where(spans > 0, spans / steps, 1.0)
    more = tuple(x[..., : len(p.mechanism.free_parameters)] for x in p.more)
    state = whole.qd[..., :nt, nv:]
    impulses, residuals = state[..., : 3 * count], state[..., 3 * count :]
    with np.errstate(invalid="ignore"):
        gaps = motion_of_contacts(p).gaps(ended.q, ended.qd, *more)[0]
    forces = impulses.reshape(*impulses.shape[:-1], count, 3) / lengths[:, None, None]
    normal, tangent = residuals[..., 0], residuals[..., 1]
    return {
        "contact_forces": forces,
        "contact_gaps": gaps,
        "contact_residuals": np.stack([normal, tangent, tangent], axis=-1),
    }


def doubts_of(problem: Problem, measures: np.ndarray) -> dict[int, Doubt]:
    """Return the steps of each run in doubt, from the MEASURES at its samples [..., nt, m]."""
    out, bound = {}, DOUBTFUL[problem.dtype]
    for k, rows in enumerate(measures.reshape(-1, *measures.shape[-2:])):
        good = np.flatnonzero(np.isfinite(rows[:, PASSING:]).all(axis=-1))
        steps, worst, when = rows[good[-1] if len(good) else 0, PASSING:]
        if steps > 0:
            out[k] = Doubt(int(steps), float(worst), float(when), bound)
    return out


def _plain(done: Run, nv: int) -> Run:
    """Return a run with velocities alone."""
    stop = None if done.stop is None else replace(done.stop, qd=done.stop.qd[..., :nv])
    return replace(done, qd=done.qd[..., :nv], stop=stop)


def _refuse_depth(problem: Problem) -> None:
    """Raise an InputError for a start that is deeper under a surface than time steps leave a body."""
    p = problem
    more = () if p.parameters is None else (p.parameters[..., : len(p.mechanism.free_parameters)],)
    with np.errstate(all="ignore"):
        gaps, velocities = motion_of_contacts(p).gaps(*p.start, *more)
    size, pull = characteristic_length(p.mechanism), float(np.linalg.norm(p.mechanism.gravity))
    fast = np.abs(velocities).max(axis=(-2, -1), initial=0.0) + FAST * (size + np.sqrt(pull * size))
    allowed = np.asarray(p.settings.dt * fast)
    for k in map(tuple, np.argwhere((gaps < -allowed[..., None]).any(axis=-1))[:1]):
        left = f"steps of {p.settings.dt:g} s leave a body at most {allowed[k]:.2g} m under it"
        start = f"q0[{', '.join(map(str, k))}]" if k else "q0"
        remedy = f"{left}, so start with gaps of zero or above"
        refuse_depth(candidate_names(p.mechanism), gaps[k], float(allowed[k]), remedy, start)


def _refuse(problem: Problem) -> None:
    """Raise an InputError for options that time steps with contacts do not support."""
    refuse_with_contacts(problem)
    if not problem.mechanism.contacts:
        fact = '"moreau" is the method of mechanisms with contacts'
        raise InputError(
            Advice(f"{fact}; give contacts=[kt.Contact(...)]", f"{fact}; give the model tables [[contact]]")
        )
