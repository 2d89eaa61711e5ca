"""A run inside a page: states at the frames with the columns of its plots, or the poses alone."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import numpy as np

from ..algebra.arrays import Numbers
from .motion_frames import finite

if TYPE_CHECKING:
    from ..results.columns import Column
    from ..results.trajectory import Trajectory

PLOTTED = ("q", "qd", "tau", "kinetic_energy", "potential_energy", "energy")
"""The columns of a run that a page plots."""

MOST_CURVES = 64
"""The most entries of a column that a page plots; a picture with more is no help, and the file grows."""


def run_frames(run: Trajectory, times: Numbers, poses: Numbers | None) -> dict[str, Any]:
    """Return a run at the times of frames; with poses [n, nb, 4, 4] for a page without a kernel."""
    shown = finite(run).at(times)
    return {
        "t": np.asarray(times, dtype=np.float64),
        "q": np.asarray(shown.q, dtype=np.float64),
        "qd": np.asarray(shown.qd, dtype=np.float64),
        "columns": [_column(shown, c) for c in run.columns if c.name in PLOTTED and len(c.labels) <= MOST_CURVES],
        "method": run.method,
        "status": run.status,
        "samples": len(run),
        **({} if poses is None else {"poses": _positions_and_quaternions(poses).astype(np.float32)}),
    }


def _column(run: Trajectory, column: Column) -> dict[str, Any]:
    values = np.asarray(run[column.name], dtype=np.float64).reshape(len(run), -1)
    labels = [label.partition(".")[2] or label for label in column.labels]
    return {
        "name": column.name,
        "labels": labels,
        "units": list(column.units),
        "values": np.ascontiguousarray(values.T),
    }


def _positions_and_quaternions(poses: Numbers) -> Numbers:
    """Return poses [nt, nb, 4, 4] as [nt, nb, 7]: position and quaternion, of the sign nearest to the frame before."""
    from scipy.spatial.transform import Rotation

    if poses.shape[1] == 0:
        return np.zeros((*poses.shape[:2], 7))
    turns = Rotation.from_matrix(poses[..., :3, :3].reshape(-1, 3, 3)).as_quat().reshape(*poses.shape[:2], 4)
    steps = np.where((turns[1:] * turns[:-1]).sum(axis=-1) < 0, -1.0, 1.0)
    sides = np.cumprod(np.concatenate([np.ones((1, poses.shape[1])), steps]), axis=0)
    return np.concatenate([poses[..., :3, 3], turns * sides[..., None]], axis=-1)
