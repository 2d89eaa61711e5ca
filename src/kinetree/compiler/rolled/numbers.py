"""The table that rolled code reads, where the mechanism has free parameters a function that makes it."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import numpy as np

from ...model.mechanism import Mechanism
from ..ir.trace import Trace, Value
from ..lower.sweeps import Tree
from ..runtime.loaded import loaded_text
from .program import RolledProgram, extract
from .records import numbers
from .tables import Bodies, class_numbers, frame_numbers, shared_numbers


@dataclass(frozen=True)
class Make:
    """The function that makes numbers of the table from parameters: its addresses, and how many."""

    single: int
    wide: int
    count: int
    loaded: Any


@dataclass(frozen=True)
class Table:
    """The numbers of the bodies, after those that all share; which of them are made from parameters, and by what."""

    numbers: np.ndarray
    codes: np.ndarray
    make: Make | None


class Numbers:
    """The numbers of the bodies of each class, by name; of free parameters, traced ones."""

    def __init__(self, mechanism: Mechanism, frame: str | None, dtype: str, b: Bodies) -> None:
        """Compute, or trace, the numbers."""
        self.bodies, self.dtype = b, dtype
        self.trace = Trace()
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
        entries: Any = np.zeros(max(int(rows[-1]), 1), dtype=object if self.trace.ops else self.dtype)
        entries[: len(p.shared)] = [self.shared[name] for name in p.shared]
        for c, names in enumerate(p.columns):
            members = rows[:-1][self.bodies.members(c)]
            for k, name in enumerate(names):
                entries[members + k] = self.classes[c][name]
        if not self.trace.ops:
            return Table(entries, np.zeros(1, dtype=np.int64), None)
        made = list(dict.fromkeys(x.id for x in entries if type(x) is Value))
        place = {i: k for k, i in enumerate(made)}
        plain = np.array([0.0 if type(x) is Value else x for x in entries], dtype=self.dtype)
        codes = np.array([place[x.id] if type(x) is Value else -1 for x in entries], dtype=np.int64)
        return Table(plain, codes, _maker(self.trace, made, self.dtype) if made else None)


def _maker(trace: Trace, made: list[int], dtype: str) -> Make:
    step = extract(trace, ((("made", k), i) for k, i in enumerate(made)))
    loaded = loaded_text(step, dtype)
    return Make(loaded.find("make1"), loaded.find("make"), len(made), loaded)
