"""A page of a mechanism as a rolled program with its numbers: traced for the classes of bodies, bound to the bodies."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import numpy as np

from ... import joints as joint_kinds
from ...dynamics import Algorithm
from ...model.mechanism import Mechanism
from ..ir.program import Array
from .bound import BoundProgram
from .extraction import rolled_program
from .numbers import Numbers
from .program import COUNT, FIRST_Q, ROW, SLOT, RolledProgram
from .tables import Bodies, bodies_of, known
from .tree import RolledTree


@dataclass(frozen=True)
class Job:
    """What is to be compiled: a page of a mechanism, with its arrays and options."""

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
    """Return the rolled program of a page with the numbers of the bodies."""
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
    """Run the page on the classes of bodies."""
    names = tuple(a.name for a in job.inputs)
    tree = RolledTree(job.mechanism, b.classes, frozenset(names), [known(x) for x in numbers])
    options = {"frame": job.frame} if job.algorithm.frame else {}
    if job.algorithm.axes:
        options["axes"] = job.axes
    result = job.algorithm.page(tree, **options)
    return rolled_program(job.name, tree, names, result, coordinates="nq" in job.algorithm.shape)


def _sizes(b: Bodies, of_classes: Any) -> np.ndarray:
    """Return a size for each body from those of the classes."""
    return np.array([*of_classes], dtype=int)[b.of_class]


def _shifts(mechanism: Mechanism, b: Bodies, numbers: list[dict[str, Any]]) -> np.ndarray:
    """Return what is added to each coordinate before its sine is taken: theta of lean revolute joints."""
    shifts, segments = np.zeros(mechanism.nq), b.segments
    of_body = np.repeat(np.arange(len(segments)), segments[:, COUNT])
    for c, what in enumerate(b.classes):
        if what.lean and joint_kinds.kind(what.kind).AXIAL == joint_kinds.ROTATION:
            members = b.members(c)
            theta = np.arctan2(numbers[c]["st"], numbers[c]["ct"])
            first = np.flatnonzero(b.starts)[of_body[members]]
            shifts[segments[of_body[members], FIRST_Q] + members - first] = theta
    return shifts
