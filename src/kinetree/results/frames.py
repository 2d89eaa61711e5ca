"""A run as a data frame. Requires pandas."""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING, Any

import numpy as np

from ..errors import unknown_name
from ..packages import optional

if TYPE_CHECKING:
    from .trajectory import Trajectory


def to_dataframe(run: Trajectory, names: Sequence[str] | None = None) -> Any:
    """Return columns of a run as a pandas DataFrame, one row per sample, with the time t [s] as index.

    The default is q and qd, with tau, control and reference if the run has them. A batch has the number of the run as
    the first level of its index. The units of the columns are in `frame.attrs["units"]`.
    """
    pandas = optional("pandas", "Data frames")
    known = {column.name: column for column in run.columns}
    chosen = _default(run) if names is None else list(names)
    count = int(np.prod(run.shape))
    data, units = {}, {}
    for name in chosen:
        if name not in known:
            raise unknown_name("column", name, known)
        column, values = known[name], run[name]
        shared = name in ("t", "reference")
        values = np.broadcast_to(values, (*run.shape, *values.shape)) if shared and run.shape else values
        flat = values.reshape(count * len(run), -1)
        data |= {label: flat[:, k] for k, label in enumerate(column.labels)}
        units |= dict(zip(column.labels, column.units, strict=True))
    index = pandas.Index(run.t, name="t")
    if run.shape:
        index = pandas.MultiIndex.from_product([range(count), run.t], names=["run", "t"])
    frame = pandas.DataFrame(data, index=index)
    frame.attrs["units"] = units
    return frame


def _default(run: Trajectory) -> list[str]:
    fields = {"tau": run.torque, "control": run.control, "reference": run.reference}
    return ["q", "qd", *(name for name, values in fields.items() if values is not None)]
