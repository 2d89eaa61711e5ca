"""Forward mode: the derivatives of all values with respect to a few labels, from the inputs to the outputs."""

from __future__ import annotations

from collections.abc import Mapping

from ...algebra.scalars import Scalar, is_number, where
from ..ir.operations import Op
from .recorded import Recorded, Row, add_to, times


def forward(recorded: Recorded, seeds: Mapping[int, Row], targets: set[int]) -> dict[int, Row]:
    """Return the derivatives of the target operations, by label; `seeds` are those of input operations."""
    active = recorded.active(set(seeds), targets)
    rows: dict[int, Row] = {}
    for k, op in enumerate(recorded.program.ops):
        if not active[k]:
            continue
        if k in seeds:
            rows[k] = dict(seeds[k])
        elif op[0] is Op.SELECT:
            rows[k] = _chosen(recorded.values[op[1]], rows.get(op[2], {}), rows.get(op[3], {}))
        else:
            row: Row = {}
            for i, factor in recorded.partials(k):
                if active[i]:
                    for label, x in rows[i].items():
                        add_to(row, label, times(factor, x))
            rows[k] = {label: x for label, x in row.items() if not (is_number(x) and x == 0.0)}
    return {k: rows.get(k, {}) for k in targets}


def _chosen(condition: Scalar, yes: Row, no: Row) -> Row:
    labels = dict.fromkeys((*yes, *no))
    return {label: where(condition, yes.get(label, 0.0), no.get(label, 0.0)) for label in labels}
