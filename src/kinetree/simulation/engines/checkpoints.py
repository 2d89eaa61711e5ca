"""Checkpoints: the states of an unfinished run in a file, replaced as a whole so that it is never incomplete."""

from __future__ import annotations

import json
import os
import tempfile
import time
from pathlib import Path
from typing import Any

import numpy as np

from ...errors import InputError, writing

EVERY = 2.0
"""The least time between two checkpoints [s]."""

ARRAYS = ("q", "qd", "evaluations", "steps", "step")


def save_checkpoint(path: str | Path, key: str, run: Any) -> None:
    """Write the states of a run, unless it is unfinished and the last checkpoint is recent."""
    path = Path(path)
    now = time.monotonic()
    finished = run.reached == len(run.t)
    if not finished and now - run.saved < EVERY:
        return
    run.saved = now
    arrays = {name: getattr(run, name) for name in ARRAYS}
    with writing(path):
        handle, temporary = tempfile.mkstemp(dir=path.parent, suffix=".tmp")
        try:
            with os.fdopen(handle, "wb") as file:
                failures = json.dumps(run.failures)
                np.savez(file, key=key, t=run.t, reached=run.reached, failures=failures, **arrays)
            os.replace(temporary, path)
        except BaseException:
            Path(temporary).unlink(missing_ok=True)
            raise


def load_checkpoint(path: str | Path, key: str, run: Any) -> None:
    """Read the states that an earlier call of the same run computed; refuse the file of another run."""
    path = Path(path)
    if not path.exists():
        return
    try:
        with open(path, "rb") as stream, np.load(stream, allow_pickle=False) as file:
            data = {name: file[name] for name in (*ARRAYS, "key", "t", "reached", "failures")}
    except Exception as error:  # NumPy and zipfile have errors of their own for altered files
        raise InputError(
            f"{path} is not a checkpoint ({type(error).__name__}: {error}); delete it or give another file"
        ) from None
    same = str(data["key"]) == key and np.array_equal(data["t"], run.t)
    if not same or any(data[name].shape != np.shape(getattr(run, name)) for name in ARRAYS):
        raise InputError(f"{path} is a checkpoint of another run; delete it or give another file")
    for name in ARRAYS:
        setattr(run, name, data[name].copy())
    run.reached = int(data["reached"])
    run.failures = {int(k): why for k, why in json.loads(str(data["failures"])).items()}
