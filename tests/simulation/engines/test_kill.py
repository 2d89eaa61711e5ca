"""Kill -9 during a run: its checkpoint is complete, and the resumed run has the same bits."""

from __future__ import annotations

import subprocess
import sys
import time
from pathlib import Path

import numpy as np
import pytest

import everyday
import kinetree as kt
from closed_form_runs import PENDULUM
from kinetree.errors import InputError
from kinetree.formats.toml import read_toml_text

CHILD = """
import sys, time
import numpy as np
import kinetree as kt
from kinetree.simulation.engines import engine, pieces

engine.EVERY = 0.0
save = engine.save_checkpoint

def slow(*arguments):
    save(*arguments)
    time.sleep(0.03)

engine.save_checkpoint = slow
pieces.Pace.learn = lambda self, steps, seconds: None  # many short calls, as in a run of large mechanisms
method, file = sys.argv[1:]
kt.simulate(kt.load("stanford"), {q0}, times=np.linspace(0.0, 4.0, 4001), method=method, checkpoint=file, {options})
"""

Q0 = [0.0, 1.5, 0.1, 0.2, 0.3, 0.4]
OPTIONS = {"rk4": {"dt": 1e-3}, "dop853": {"rtol": 1e-9}}


def reached(file: Path) -> int:
    """Return the number of output times in a checkpoint."""
    with np.load(file) as data:
        return int(data["reached"])


@everyday.long
@pytest.mark.parametrize("method", everyday.without(OPTIONS, ["dop853"]))
def test_a_killed_run_goes_on_to_the_same_bits(method, tmp_path):
    """Kill a run three times at random times, resume it, and find the bits of a run that was never killed."""
    file = tmp_path / "run.npz"
    options = ", ".join(f"{name}={value!r}" for name, value in OPTIONS[method].items())
    code = CHILD.format(q0=Q0, options=options)
    rng = np.random.default_rng()
    done = [0]
    for _ in range(3):
        before = file.stat().st_mtime_ns if file.exists() else 0
        child = subprocess.Popen([sys.executable, "-c", code, method, str(file)], stderr=subprocess.PIPE)
        try:
            deadline = time.monotonic() + 120
            while not (file.exists() and file.stat().st_mtime_ns != before):
                assert child.poll() is None, child.stderr and child.stderr.read().decode()
                assert time.monotonic() < deadline, "no checkpoint came"
                time.sleep(0.005)
            time.sleep(rng.uniform(0.0, 0.3))
        finally:
            child.kill()
            child.communicate()
        done.append(reached(file))
    assert done == sorted(set(done)), f"no progress: {done}"
    assert done[-1] < 4001, "the run was over before it was killed"
    times = np.linspace(0.0, 4.0, 4001)
    again = kt.simulate(kt.load("stanford"), Q0, times=times, method=method, checkpoint=file, **OPTIONS[method])
    whole = kt.simulate(kt.load("stanford"), Q0, times=times, method=method, **OPTIONS[method])
    assert again.finished
    assert np.array_equal(again.q, whole.q)
    assert np.array_equal(again.qd, whole.qd)
    assert again.evaluations == whole.evaluations


def test_a_checkpoint_of_other_parameters_is_refused(tmp_path):
    """Refuse to resume the run of a pendulum with another length."""
    system = kt.System(read_toml_text(PENDULUM)[0])
    file = tmp_path / "run.npz"
    kt.simulate(system, [1.0], duration=1.0, parameters=[0.5], checkpoint=file)
    with pytest.raises(InputError, match="is a checkpoint of another run"):
        kt.simulate(system, [1.0], duration=1.0, parameters=[0.6], checkpoint=file)
