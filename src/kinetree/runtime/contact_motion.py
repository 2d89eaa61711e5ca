"""The motion of contacts as a compiled function of states."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from functools import cached_property
from math import prod
from typing import Any

import numpy as np

from ..algebra.scalars import Numbers
from ..compiler.lower.contacts import FIELDS, MOTION, RATES, Batch, candidate_names, motion_program, sorted_motion
from ..model.mechanism import Mechanism
from .native import native

FEW = 30
"""The most contacts whose motion is one Program, which takes about a second to compile; a call of it is quicker."""
BLOCK = 1 << 16
"""The most features of shapes whose contacts are computed at once: intermediate results of some 20 MB."""


class ContactMotion:
    """The compiled function (q, qd[, parameters]) -> (gap, velocity, bias, J, points, axes) of all candidates.

    See `motion_program` for the shapes. The code of many contacts grows with the bodies alone. Pickles contain only the
    mechanism.
    """

    def __init__(self, mechanism: Mechanism) -> None:
        """Store the mechanism; what is called first is compiled."""
        self.mechanism = mechanism

    def __reduce__(self):
        return (ContactMotion, (self.mechanism,))

    def __call__(self, q: Numbers, qd: Numbers, *parameters: Numbers) -> tuple[Numbers, ...]:
        """Return all results."""
        if self._whole is not None:
            return self._whole(q, qd, *parameters)
        return self._sorted(("gap", "velocity", "bias", "J", "points", "axes"), q, qd, *parameters)

    def gaps(self, q: Numbers, qd: Numbers, *parameters: Numbers) -> tuple[Numbers, Numbers]:
        """Return gaps and velocities."""
        if self._whole is not None:
            return self._whole(q, qd, *parameters)[:2]
        gap, velocity = self._sorted(("gap", "velocity"), q, qd, *parameters)
        return gap, velocity

    def places(self, q: Numbers, qd: Numbers, *parameters: Numbers) -> tuple[Numbers, Numbers]:
        """Return points and axes."""
        if self._whole is not None:
            return self._whole(q, qd, *parameters)[4:]
        points, axes = self._sorted(("points", "axes"), q, qd, *parameters)
        return points, axes

    @cached_property
    def _whole(self) -> Callable[..., Any] | None:
        few = len(candidate_names(self.mechanism)) <= FEW
        return native(motion_program(self.mechanism)) if few else None

    @cached_property
    def _parts(self) -> tuple[Callable[..., Any], list[_Sorted]]:
        made = sorted_motion(self.mechanism)
        sorts = [
            _Sorted(native(x), kind.count, [b for b in made.batches if b.sort == k])
            for k, (x, kind) in enumerate(zip(made.sorts, made.kinds, strict=True))
        ]
        return native(made.pairs), sorts

    def _sorted(self, names: tuple[str, ...], q: Numbers, qd: Numbers, *parameters: Numbers) -> tuple[Numbers, ...]:
        """Return some results, block by block of states."""
        given = [np.asarray(x) for x in (q, qd, *parameters)]
        lead = np.broadcast_shapes(*(x.shape[:-1] for x in given))
        flat = [np.broadcast_to(x, (*lead, x.shape[-1])).reshape(prod(lead), x.shape[-1]) for x in given]
        count, nv = len(candidate_names(self.mechanism)), self.mechanism.nv
        shapes = {"gap": (), "velocity": (3,), "bias": (3,), "J": (3, nv), "points": (3,), "axes": (3, 3)}
        out = {name: np.empty((prod(lead), count, *shapes[name])) for name in names}
        pairs, sorts = self._parts
        step = max(1, BLOCK // count)
        for first in range(0, prod(lead), step):
            rows = slice(first, first + step)
            numbers = pairs(*(x[rows] for x in flat))
            for sort in sorts:
                sort.write({name: x[rows] for name, x in out.items()}, *numbers)
        return tuple(x.reshape(*lead, *x.shape[1:]) for x in out.values())


class _Sorted:
    """The features of one sort: their function, their pairs, the candidates of each, and their fields."""

    def __init__(self, function: Callable[..., Any], count: int, batches: Sequence[Batch]) -> None:
        self.function = function
        self.pairs = np.concatenate([np.full(len(b.candidates), b.pair) for b in batches])
        self.candidates = np.concatenate([b.candidates for b in batches])[:, None] + np.arange(count)
        self.columns = [[(b.columns[k], len(b.candidates)) for b in batches] for k in range(len(batches[0].columns))]
        data = [column for columns in self.columns for column, _ in columns if not column.numbers]
        self.constant = None if data else self.fields(np.zeros((1, 1)))

    def fields(self, data: Numbers) -> list[Numbers]:
        """Return the fields of the features, [states or 1, features, size]."""
        values = []
        for columns in self.columns:
            parts = [
                np.array(x.numbers)[None] if x.numbers else data[:, x.first : x.first + count] for x, count in columns
            ]
            lead = max(len(x) for x in parts)
            values.append(np.concatenate([np.broadcast_to(x, (lead, x.shape[1])) for x in parts], axis=1))
        out, at = [], 0
        for _, size in FIELDS:
            known = values[at : at + size] or [np.zeros((1, 1))] * size
            out.append(np.stack(np.broadcast_arrays(*known), axis=-1))
            at += size
        return out

    def write(self, out: dict[str, Numbers], motions: Numbers, units: Numbers, data: Numbers) -> None:
        """Write results of the candidates for the motions of all pairs."""
        pair = motions[:, self.pairs]
        fields = self.fields(data) if self.constant is None else self.constant
        results = self.function(pair[..., : MOTION + RATES], *fields, pair[..., MOTION + RATES :])
        found: dict[str, Numbers] = dict(
            zip(("gap", "velocity", "bias", "wrenches", "points", "axes"), results, strict=True)
        )
        if "J" in out:
            found["J"] = found["wrenches"] @ units[:, self.pairs, None]
        for name, x in out.items():
            x[:, self.candidates] = found[name]
