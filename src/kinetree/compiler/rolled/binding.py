"""The rolled program of an algorithm for one mechanism: traced per class of bodies, with the numbers of each body."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import numpy as np

from ... import joints as joint_kinds
from ...dynamics import Algorithm
from ...model.mechanism import Mechanism
from ..ir.program import Array
from ..ir.trace import Trace, Value
from ..lower.sweeps import Tree
from .bound import BoundProgram
from .extraction import extract, rolled_program
from .program import COUNT, FIRST_Q, ROW, SLOT, RolledProgram, Step
from .records import body_numbers
from .tables import Bodies, bodies_of, class_numbers, frame_numbers, known, shared_numbers
from .tree import RolledTree


@dataclass(frozen=True)
class Job:
    """An algorithm to compile for a mechanism, with its arrays and options."""

    mechanism: Mechanism
    name: str
    algorithm: Algorithm
    inputs: tuple[Array, ...]
    output: Array
    frame: str | None = None
    axes: str | None = None
    wrenches: bool = False
    dtype: str = "float64"


def bind(job: Job) -> BoundProgram:
    """Return the rolled program of a job with the numbers of the bodies."""
    b = bodies_of(job.mechanism, frame=job.frame, wrenches=job.wrenches)
    numbers = Numbers(job.mechanism, job.frame, b)
    program = _traced(job, b, numbers.classes)
    rows = np.cumsum([len(program.shared), *_sizes(b, map(len, program.columns))])
    slots = np.cumsum([0, *_sizes(b, program.slots)])
    segments, first = b.segments.copy(), np.flatnonzero(b.starts)
    segments[:, ROW], segments[:, SLOT] = rows[first], slots[first]
    table = numbers.table(program, rows)
    shifts = _shifts(job.mechanism, b, numbers.classes) if program.angles else np.zeros(0)
    return BoundProgram(program, job.inputs, (job.output,), segments, table.numbers, shifts, table.codes, table.make)


def _traced(job: Job, b: Bodies, numbers: list[dict[str, Any]]) -> RolledProgram:
    """Trace the algorithm on the classes of bodies."""
    names = tuple(a.name for a in job.inputs)
    tree = RolledTree(job.mechanism, b.classes, frozenset(names), [known(x) for x in numbers])
    options = {"frame": job.frame} if job.algorithm.frame else {}
    if job.algorithm.axes:
        options["axes"] = job.axes
    result = job.algorithm.page(tree, **options)
    return rolled_program(job.name, tree, names, result, coordinates="nq" in job.algorithm.shape)


def _sizes(b: Bodies, of_classes: Any) -> np.ndarray:
    """Return one size per body from the sizes of the classes."""
    return np.array([*of_classes], dtype=int)[b.of_class]


def _shifts(mechanism: Mechanism, b: Bodies, numbers: list[dict[str, Any]]) -> np.ndarray:
    """Return the shift of each coordinate before its sine is taken: theta of lean revolute joints, 0 elsewhere."""
    shifts, segments = np.zeros(mechanism.nq), b.segments
    of_body = np.repeat(np.arange(len(segments)), segments[:, COUNT])
    for c, what in enumerate(b.classes):
        if what.lean and joint_kinds.kind(what.kind).AXIAL == joint_kinds.ROTATION:
            members = b.members(c)
            theta = np.arctan2(numbers[c]["st"], numbers[c]["ct"])
            first = np.flatnonzero(b.starts)[of_body[members]]
            shifts[segments[of_body[members], FIRST_Q] + members - first] = theta
    return shifts


@dataclass(frozen=True)
class Table:
    """The numbers that all bodies share, followed by the numbers of each body.

    With free parameters, `make` is the step that computes numbers from them. `codes` has the index of the computed
    number for each entry, or -1 for a plain number.
    """

    numbers: np.ndarray
    codes: np.ndarray
    make: Step | None


class Numbers:
    """The numbers of the bodies of each class, by name; traced where the mechanism has free parameters."""

    def __init__(self, mechanism: Mechanism, frame: str | None, b: Bodies) -> None:
        """Compute, or trace, the numbers."""
        self.bodies, self.trace = b, Trace()
        free = mechanism.free_parameters
        if not free:
            self.shared = shared_numbers(b, frame)
            self.classes: list[dict[str, Any]] = [class_numbers(b, c) for c in range(len(b.classes))]
            return
        given = [self.trace.input(0, k) for k in range(len(free))]
        tree = Tree(mechanism, {"q": [0.0] * mechanism.nq, "parameters": given})
        self.shared = {f"g{k}": g for k, g in enumerate(tree.gravity)}
        if frame is not None:
            self.shared |= frame_numbers(tree.frame(frame))
        self.classes = []
        for c, what in enumerate(b.classes):
            each = [body_numbers(tree.records[b.index[k]], what) for k in b.members(c)]
            self.classes.append({name: [x[name] for x in each] for name in each[0]})

    def table(self, p: RolledProgram, rows: np.ndarray) -> Table:
        """Return the table that a program reads; `rows` are the entries at which the numbers of each body begin."""
        entries: Any = np.zeros(max(int(rows[-1]), 1), dtype=object if self.trace.ops else float)
        entries[: len(p.shared)] = [self.shared[name] for name in p.shared]
        for c, names in enumerate(p.columns):
            members = rows[:-1][self.bodies.members(c)]
            for k, name in enumerate(names):
                entries[members + k] = self.classes[c][name]
        if not self.trace.ops:
            return Table(entries, np.zeros(1, dtype=np.int64), None)
        made = list(dict.fromkeys(x.id for x in entries if type(x) is Value))
        place = {i: k for k, i in enumerate(made)}
        plain = np.array([0.0 if type(x) is Value else x for x in entries])
        codes = np.array([place[x.id] if type(x) is Value else -1 for x in entries], dtype=np.int64)
        step = extract(self.trace, ((("made", k), i) for k, i in enumerate(made)))
        return Table(plain, codes, step if made else None)
