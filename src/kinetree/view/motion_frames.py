"""The frames of an animation: poses at equidistant times, up to the last finite sample of the run."""

from __future__ import annotations

from typing import TYPE_CHECKING

import numpy as np

from ..algebra.arrays import Numbers
from ..errors import InputError

if TYPE_CHECKING:
    from ..results.trajectory import Trajectory


MOST = 20_000
"""The most frames of one animation, to bound its memory and the size of its file."""


def finite(run: Trajectory) -> Trajectory:
    """Return a single run up to its last finite sample."""
    good = np.isfinite(run.q).all(axis=-1) & np.isfinite(run.qd).all(axis=-1)
    count = len(run) if good.all() else int(np.argmin(good))
    if not count:
        raise InputError("the run has no sample with finite numbers to draw")
    return run if count == len(run) else run[:count]


def even_frames(run: Trajectory, fps: float, speed: float = 1.0) -> tuple[Numbers, Numbers]:
    """Return times [n] and poses [n, nb, 4, 4] of a single run, for frames per second and the speed of the replay."""
    if run.shape:
        raise InputError(f"the batch has shape {run.shape}; choose one of its runs with run(i) to draw it")
    if not (0 < fps <= 1000 and 0 < speed < np.inf):
        raise InputError(f"fps is {fps} and speed {speed}; expected up to 1000 frames per second, and a speed above 0")
    run = finite(run)
    span = float(run.t[-1] - run.t[0])
    frames = int(np.floor(span * fps / speed + 1e-9)) + 1
    if frames > MOST:
        raise InputError(f"{frames} frames are too many for one animation; lower fps, raise speed or draw a slice")
    times = np.minimum(run.t[0] + np.arange(frames) * (speed / fps), run.t[-1])
    return times, np.asarray(run.at(times)["poses"])
