"""The rolled program of an algorithm for one mechanism: traced per class of bodies, with the numbers of each body."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass, replace
from typing import Any

import numpy as np

from ... import joints as joint_kinds
from ...dynamics import Algorithm
from ...model.mechanism import Mechanism
from ..ir.program import Array
from ..ir.trace import Op, Trace, Value
from ..lower.sweeps import Tree
from .bound import BoundProgram
from .program import COUNT, FIRST_Q, GLOBAL, ROW, SLOT, TABLE, Key, Loop, RolledProgram, Step
from .records import body_numbers, scalars
from .tables import Bodies, bodies_of, class_numbers, frame_numbers, known_numbers, shared_numbers
from .tree import RolledTree, Sweep

# --- Extraction of a RolledProgram from traced sweeps: only operations whose results are used are kept ---


def rolled_program(
    name: str, tree: RolledTree, inputs: tuple[str, ...], result: object, *, coordinates: bool
) -> RolledProgram:
    """Return the program of an algorithm that was traced on a rolled tree and returned `result`."""
    tree.flush()
    return _Extraction(tree, result).program(name, inputs, coordinates)


class _Extraction:
    """A backward pass over the sweeps, from the requested results to the values on which they depend."""

    def __init__(self, tree: RolledTree, result: Any) -> None:
        self.tree, self.trace = tree, tree.trace
        count = len(tree.sweeps)
        self.wanted: list[list[dict[tuple, int]]] = [[{} for _ in tree.classes] for _ in range(count)]
        self.live: list[dict[Key, None]] = [{} for _ in range(count)]
        self.read_last: list[dict[int, int]] = [{} for _ in tree.classes]  # the last sweep that reads a slot
        whole: list[tuple[tuple, int]] = []
        if isinstance(result, tuple) and len(result) == 2 and isinstance(result[0], str):
            self.output, field = result
            self._hand_out(field)
        else:
            self.output = "whole"
            whole = [(("out", k), self.trace.index(x)) for k, x in enumerate(result)]
        self.last = whole

    def _hand_out(self, field: str) -> None:
        for c, fields in enumerate(self.tree.fields):
            if field not in fields:
                continue
            sweep, value = fields[field]
            if self.output == "columns":
                targets = [(("column", row, k), x) for k, t in enumerate(value) for row, x in enumerate(t.entries())]
            else:
                entries = value.entries() if self.output == "bodies" else value
                targets = [(("out", k), x) for k, x in enumerate(entries)]
            for target, x in targets:
                self.wanted[sweep][c][target] = self.trace.index(x)

    def program(self, name: str, inputs: tuple[str, ...], coordinates: bool) -> RolledProgram:
        last = extract(self.trace, self.last)
        self._note_rows(last)
        loops: list[Loop] = []
        for sweep in reversed(self.tree.sweeps):
            loop = self._loop(sweep)
            if any(step.results for step in loop.steps):
                loops.insert(0, loop)
        places = [self._places(c) for c in range(len(self.tree.classes))]
        loops = [replace(loop, steps=tuple(map(_placed, loop.steps, places))) for loop in loops]
        steps = [*(s for loop in loops for s in loop.steps), *(loop.ground for loop in loops), last]
        columns = tuple(
            tuple(sorted(_indices((loop.steps[c] for loop in loops), TABLE))) for c in range(len(self.tree.classes))
        )
        shared = tuple(sorted(_indices(steps, GLOBAL)))
        return RolledProgram(
            name,
            inputs,
            self.output,
            self.tree.classes,
            tuple(loops),
            last,
            columns,
            tuple(max(p.values(), default=-1) + 1 for p in places),
            shared,
            coordinates,
        )

    def _loop(self, sweep: Sweep) -> Loop:
        live, count = self.live[sweep.index], len(self.tree.classes)
        group = ("in", sweep.index)
        while True:
            steps = [self._step(sweep, c, live) for c in range(count)]
            more = _indices(steps, group) - live.keys()
            if not more:
                break
            live.update(dict.fromkeys(sorted(more)))
        for c, step in enumerate(steps):
            for value in sorted(_indices([step], ("slot", c))):
                self.read_last[c].setdefault(value, sweep.index)
                self.wanted[self.tree.produced[c, value]][c]["slot", value] = value
        self._note_rows(*steps)
        keys = tuple(live)
        base = []
        if sweep.direction == "outward":
            for place, (field, key) in enumerate(keys):
                base.append((("carry", place), self.trace.index(scalars(sweep.base[field])[key])))
        return Loop(sweep.index, sweep.direction, keys, tuple(steps), extract(self.trace, base))

    def _step(self, sweep: Sweep, c: int, live: dict) -> Step:
        roots = list(self.wanted[sweep.index][c].items())
        for place, (field, key) in enumerate(live):
            roots.append((("carry", place), self.trace.index(scalars(sweep.out[c][field])[key])))
        return extract(self.trace, roots)

    def _places(self, c: int) -> dict[int, int]:
        """Return the index of each slot of a class in the workspace; a slot that is no longer read is reused."""
        places: dict[int, int] = {}
        free_from: list[int] = []  # the sweep from which an index can be used again
        made = self.tree.produced
        for value in sorted(self.read_last[c], key=lambda v: (made[c, v], v)):
            free = (k for k, sweep in enumerate(free_from) if sweep <= made[c, value])
            place = next(free, len(free_from))
            free_from[place : place + 1] = [self.read_last[c][value]]
            places[value] = place
        return places

    def _note_rows(self, *steps: Step) -> None:
        for step in steps:
            for op in step.ops:
                if op[0] is Op.INPUT and op[1][0] == "row":
                    self.live[op[1][1]].setdefault(op[2])


def extract(trace: Trace, roots: Iterable[tuple[tuple, int]]) -> Step:
    """Return the operations on which some results depend, in order."""
    roots = list(roots)
    needed, stack = set(), [i for _, i in roots]
    while stack:
        i = stack.pop()
        if i not in needed:
            needed.add(i)
            if trace.ops[i][0] > Op.CONST:
                stack.extend(trace.ops[i][1:])
    new: dict[int, int] = {}
    ops: list[tuple] = []
    for i in sorted(needed):
        op = trace.ops[i]
        new[i] = len(ops)
        ops.append(op if op[0] <= Op.CONST else (op[0], *(new[k] for k in op[1:])))
    return Step(tuple(ops), tuple((target, new[i]) for target, i in roots))


def _placed(step: Step, places: dict[int, int]) -> Step:
    """Return a step whose slots are given by their indices in the workspace."""
    ops = tuple(
        (op[0], ("slot",), places[op[2]]) if op[0] is Op.INPUT and op[1][0] == "slot" else op for op in step.ops
    )
    results = tuple((("slot", places[t[1]]) if t[0] == "slot" else t, k) for t, k in step.results)
    return Step(ops, results)


def _indices(steps: Iterable[Step], group: tuple) -> set:
    return {op[2] for step in steps for op in step.ops if op[0] is Op.INPUT and op[1] == group}


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
    tree = RolledTree(job.mechanism, b.classes, frozenset(names), [known_numbers(x) for x in numbers])
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
        entries = np.zeros(max(int(rows[-1]), 1), dtype=object if self.trace.ops else float)
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
