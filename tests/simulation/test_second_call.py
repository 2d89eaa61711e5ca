"""The files of this package that a repeated call of `simulate` passes through."""

from __future__ import annotations

import sys
from collections.abc import Callable
from pathlib import Path

import numpy as np
import pytest

import kinetree as kt

MOST = 18
"""The most files of the second call of a plain run."""
ROOT = str(Path(kt.__file__).parent)


def files_entered(call: Callable[[], object]) -> set[str]:
    """Return the files of this package whose functions a call enters."""
    found: set[str] = set()

    def note(frame, event, argument):
        if event == "call" and frame.f_code.co_filename.startswith(ROOT):
            found.add(frame.f_code.co_filename)

    before = sys.getprofile()
    sys.setprofile(note)
    try:
        call()
    finally:
        sys.setprofile(before)
    return found


@pytest.mark.parametrize("name", ["stanford", "four_bar"])
def test_the_second_call_passes_through_few_files(name):
    """Run an open arm and a closed mechanism twice; what does not depend on the state is kept by the first call."""
    system = kt.load(name)
    start = (system.assemble(hold={"crank": 0.7}),) if system.closures else (np.full(6, 0.31), np.full(6, -0.17))
    first = kt.simulate(system, *start, duration=0.1)
    runs = []
    found = files_entered(lambda: runs.append(kt.simulate(system, *start, duration=0.1)))
    assert len(found) <= MOST, "\n".join(sorted(found))
    assert np.array_equal(runs[0].q, first.q) and np.array_equal(runs[0].qd, first.qd)
