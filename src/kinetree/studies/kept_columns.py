"""Columns of runs that a study stores over time, beside its measures."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass
from typing import Any

import numpy as np

from ..algebra.arrays import Numbers
from ..errors import InputError
from ..model.mechanism import Mechanism
from ..results.columns import columns, find
from ..results.trajectory import Trajectory
from .measured_columns import find_column

DIMENSIONS = {"q": "coordinate", "qd": "joint", "qdd": "joint", "tau": "joint", "control": "joint"}
"""The dimension of the entries of a whole column; other columns are stored by parts."""


@dataclass(frozen=True)
class Kept:
    """A column to store: its dimensions after that of the runs, its sizes, labels and units of its entries."""

    name: str
    dims: tuple[str, ...]
    shape: tuple[int, ...]
    labels: tuple[str, ...]
    units: str

    def values(self, run: Trajectory) -> Numbers:
        """Return the column of a batch of runs, [n, nt] or [n, nt, entries]."""
        return run[self.name]


def kept_columns(mechanism: Mechanism, names: Any, count: int) -> tuple[Kept, ...]:
    """Return the columns to store, checked; `count` is the number of times."""
    known = columns(mechanism, given=("control",))
    out = []
    for name in [names] if isinstance(names, str) else list(names if isinstance(names, Iterable) else (names,)):
        if not isinstance(name, str):
            raise InputError(f"keep has {name!r}; give names of columns, such as 'q' or 'control.elbow'")
        base = name.partition(".")[0]
        if base in known:
            find_column(known, name, "keep")
        column, where = find(known, name)
        labels = np.array(known[column].labels).reshape(known[column].shape)[where]
        units = np.array(known[column].units).reshape(known[column].shape)[where]
        together = ", ".join(dict.fromkeys(np.atleast_1d(units).ravel().tolist()))
        if not np.ndim(labels):
            out.append(Kept(name, ("time",), (count,), (), together))
        elif name in DIMENSIONS:
            found = tuple(str(x).partition(".")[2] for x in np.ravel(labels))
            out.append(Kept(name, ("time", DIMENSIONS[name]), (count, len(found)), found, together))
        else:
            raise InputError(
                f"keep has {name!r}, which has {np.size(labels)} entries per time; name single ones, such as "
                f"{np.ravel(labels)[0]!r}"
            )
    return tuple(out)
