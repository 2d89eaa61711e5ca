"""Checkpoints: what a run has done so far, in a file that is whole or not there."""

from __future__ import annotations

import json
import os
import tempfile
import time
from pathlib import Path
from typing import Any

import numpy as np

from ...errors import InputError

EVERY = 2.0
"""Seconds between two checkpoints."""

ARRAYS = ("q", "qd", "evaluations", "steps", "step")


def save_checkpoint(path: str | Path, key: str, run: Any) -> None:
    """Keep what a run has done, unless that was done a moment ago and there is more to come."""
    path = Path(path)
    now = time.monotonic()
    finished = run.reached == len(run.t)
    if not finished and now - run.saved < EVERY:
        return
    run.saved = now
    arrays = {name: getattr(run, name) for name in ARRAYS}
    handle, temporary = tempfile.mkstemp(dir=path.parent, suffix=".tmp")
    try:
        with os.fdopen(handle, "wb") as file:
            said = json.dumps(run.failures)
            np.savez(file, key=key, t=run.t, reached=run.reached, failures=said, **arrays)
        os.replace(temporary, path)
    except BaseException:
        Path(temporary).unlink(missing_ok=True)
        raise


def load_checkpoint(path: str | Path, key: str, run: Any) -> None:
    """Take up what an earlier call has done of the same run; a file of another run is refused."""
    path = Path(path)
    if not path.exists():
        return
    try:
        with np.load(path, allow_pickle=False) as file:
            data = {name: file[name] for name in (*ARRAYS, "key", "t", "reached", "failures")}
    except (OSError, ValueError, KeyError) as error:
        raise InputError(f"{path} is no checkpoint ({error}); delete it or give another file") from None
    same = str(data["key"]) == key and np.array_equal(data["t"], run.t)
    if not same or any(data[name].shape != np.shape(getattr(run, name)) for name in ARRAYS):
        raise InputError(f"{path} is a checkpoint of another run; delete it or give another file")
    for name in ARRAYS:
        setattr(run, name, data[name].copy())
    run.reached = int(data["reached"])
    run.failures = {int(k): why for k, why in json.loads(str(data["failures"])).items()}
