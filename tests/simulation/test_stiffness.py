"""Stiff runs: detected by `auto`, but not for a method given by name."""

from __future__ import annotations

import everyday
import kinetree as kt
from tolerance import assert_close

START = ([0.3, 0.4], [1.0, -0.7])


def hard(*damping: float) -> list[kt.JointDamper]:
    """Return dampers of two joints."""
    return [kt.JointDamper(f"joint{k + 1}", c) for k, c in enumerate(damping)]


def test_auto_takes_a_native_method_for_a_stiff_run():
    """Damp an arm hard, and find the run of rodas5p, with its evaluations."""
    arm = kt.load("planar_2r")
    run = kt.simulate(arm, *START, duration=2.0, forces=hard(3e4, 1e4), progress=False)
    named = kt.simulate(arm, *START, duration=2.0, forces=hard(3e4, 1e4), method="rodas5p", progress=False)
    assert (run.method, run.status) == ("rodas5p", "finished")
    assert run.evaluations == named.evaluations < 5000
    assert_close(run.q, named.q, 1e-15, "q")


@everyday.long
def test_steps_that_are_used_up_in_the_first_piece_are_noticed():
    """Damp so hard that the steps are used up at once, and still reach the end."""
    arm = kt.load("planar_2r")
    run = kt.simulate(arm, *START, duration=10.0, forces=hard(3e5, 1e5), max_steps=50_000, progress=False)
    assert (run.method, run.status) == ("rodas5p", "finished")


def test_other_runs_keep_their_method():
    """Keep a method given by name, that of a batch, and that of a run that is not stiff."""
    arm = kt.load("planar_2r")
    named = kt.simulate(
        arm, *START, duration=0.5, forces=hard(3e4, 1e4), method="dopri5", max_steps=5000, progress=False
    )
    assert named.method == "dopri5"
    assert 'or method="rodas5p" where it is stiff' in named.status
    batch = kt.simulate(arm, [START[0]] * 2, duration=0.5, forces=hard(3e4, 1e4), max_steps=5000, progress=False)
    assert batch.method == "dop853"
    assert kt.simulate(arm, *START, duration=5.0, rtol=1e-12, progress=False).method == "dop853"
