"""The table of numbers that rolled code reads; of free parameters, with a step that makes numbers from these."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import numpy as np

from ...model.mechanism import Mechanism
from ..ir.trace import Trace, Value
from ..lower.sweeps import Tree
from .extraction import extract
from .program import RolledProgram, Step
from .records import numbers
from .tables import Bodies, class_numbers, frame_numbers, shared_numbers


@dataclass(frozen=True)
class Table:
    """The numbers of the bodies, behind those that all share.

    `codes` has for each which number made from parameters it is, or -1; `make` is the step that makes them.
    """

    numbers: np.ndarray
    codes: np.ndarray
    make: Step | None


class Numbers:
    """The numbers of the bodies of each class, by name; of free parameters, traced ones."""

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
            each = [numbers(tree.records[b.index[k]], what) for k in b.members(c)]
            self.classes.append({name: [x[name] for x in each] for name in each[0]})

    def table(self, p: RolledProgram, rows: np.ndarray) -> Table:
        """Return the table of what a program reads; `rows` says where each body's numbers begin."""
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
