"""Outcomes of runs: every one is reached, keeps its text, and comes back from every file."""

from __future__ import annotations

import json
import pickle
import re
from collections.abc import Callable
from dataclasses import replace
from pathlib import Path

import numpy as np
import pytest

import kinetree as kt
from kinetree.results.files import content
from kinetree.simulation.outcomes import Ending, Endings, Outcome, RunStopped
from touching_bodies import leg_start, planar_rod, sticking_leg

SOURCE = Path(kt.__file__).parent


def spun(method: str, **options) -> kt.Trajectory:
    """Drive a pendulum by the cube of its velocity, which becomes infinite after some milliseconds."""
    control = kt.TorqueFunction(lambda t, q, qd: [40.0 * qd[0] * qd[0] * qd[0]])
    return kt.simulate(kt.load("pendulum"), [0.3], [1.7], duration=0.7, method=method, control=control, **options)


def bars(**options) -> kt.Trajectory:
    """Simulate a four-bar linkage that turns fast."""
    arm = kt.load("four_bar")
    q = arm.assemble(hold={"crank": 0.7})
    qd = arm.consistent_speeds(q, {"crank": 31.3})
    return kt.simulate(arm, q, qd, times=np.linspace(0.0, 6.0, 13), **options)


def interrupted_run() -> kt.Trajectory:
    """Interrupt a run halfway."""

    def press(part: float) -> None:
        if part > 0.4:
            raise KeyboardInterrupt

    with pytest.raises(KeyboardInterrupt) as caught:
        kt.simulate(kt.load("pendulum"), [0.3], times=np.linspace(0, 3.0, 1001), rtol=1e-12, progress=press)
    return caught.value.run  # type: ignore[attr-defined]


def breaking(t: float, q: np.ndarray, qd: np.ndarray) -> np.ndarray:
    """Return torques, and fail after a while."""
    return np.array([1.0 / (t < 0.13) if t < 0.13 else 1 / 0])


def painleve() -> kt.Trajectory:
    """Let a rod slide into a Painleve state in one of two runs."""
    system, tip = planar_rod(1.6)
    q = [0.0, np.cos(0.5), 0.5]
    return kt.simulate(system, [q, q], [[2.0, 0, 0], [-2.0, 0, 0]], times=[0.0, 0.1, 0.2], contacts=tip)


RUNS: dict[Outcome, tuple[Callable[[], kt.Trajectory], str]] = {
    Outcome.FINISHED: (lambda: kt.simulate(kt.load("pendulum"), [0.3], duration=0.3), "finished"),
    Outcome.OPEN: (
        lambda: bars(method="rk4", dt=0.5),
        "stopped: the loops did not close, or the state left the finite numbers; try a smaller dt; the last good",
    ),
    Outcome.LOST: (
        lambda: spun("rk4", dt=0.01), "stopped: the state left the finite numbers; the last good state is at t = "
    ),
    Outcome.TOO_SHORT: (
        lambda: spun("dopri5"), "stopped: the step became shorter than rounding; the last good state is at t = 0.001"
    ),
    Outcome.TOO_MANY: (
        lambda: kt.simulate(kt.load("pendulum"), [1.9], duration=97.0, method="dopri5", max_steps=31),
        "stopped: the steps were used up; try a larger max_steps (--max-steps), or method=\"rodas5p\" "
        "(--method rodas5p) where it is stiff; the last good state is at t = ",
    ),
    Outcome.DOUBTFUL: (
        lambda: kt.simulate(sticking_leg(1e-12), *leg_start(), times=[0.0, 0.1, 0.4], method="moreau", dt=1e-3),
        "doubtful: in ",
    ),
    Outcome.INTERRUPTED: (interrupted_run, "stopped: interrupted at t = "),
    Outcome.EVENT: (
        lambda: kt.simulate(
            kt.load("pendulum"), [0.31], duration=2.7,
            events=kt.Event(lambda now: now.q[0] - 0.1, name="low", stop=True),
        ),
        "stopped: event low at t = ",
    ),
    Outcome.CONTROL: (
        lambda: kt.simulate(kt.load("pendulum"), [0.3], duration=0.4, control=kt.PythonControl(breaking, rate=97.0)),
        "stopped: the controller 'breaking' failed at t = 0.134",
    ),
    Outcome.CONTACT: (painleve, "stopped: Painleve state of contact 'tip': "),
    Outcome.METHOD: (lambda: spun("bdf"), "stopped: CVODES gave up ("),
}  # fmt: skip
"""A run for each outcome of a simulation, and the beginning of its status."""


@pytest.fixture(params=RUNS, ids=lambda outcome: outcome.name)
def ended(request) -> tuple[Outcome, kt.Trajectory, str]:
    """Return an outcome, and a run that has it, with the beginning of its status."""
    if request.param is Outcome.METHOD:
        pytest.importorskip("casadi")
    make, text = RUNS[request.param]
    return request.param, make(), text


def of_old_version(packed: content.Content) -> content.Content:
    """Return the content of a file as it was written before outcomes were data."""
    about = {name: x for name, x in packed.about.items() if name != "endings"}
    return content.Content(about | {"digest": content._digest(about, packed.arrays)}, packed.arrays)


def test_every_outcome_is_reached_and_comes_back(ended, tmp_path):
    """Reach an outcome, and read it from every format with the same text; from old files by their text."""
    outcome, run, text = ended
    assert run.outcome is outcome and run.finished == (outcome is Outcome.FINISHED)
    assert run.status.startswith(text)
    assert outcome in np.atleast_1d(run.outcomes)
    for ending in (".npz", ".csv", ".parquet", ".zarr"):
        if ending == ".parquet":
            pytest.importorskip("pyarrow")
        if ending == ".zarr":
            pytest.importorskip("zarr")
        again = kt.read_trajectory(run.save(tmp_path / f"run{ending}"))
        assert again.endings == run.endings and again.outcome is outcome
        assert (again.status, again.failures) == (run.status, run.failures)
    fields = content.unpack(of_old_version(content.pack(run)), tmp_path / "old.npz", run.system)
    old = kt.Trajectory(**fields)
    assert (old.outcome, old.status) == (outcome, run.status)


def test_a_run_of_a_batch_has_its_own_outcome():
    """Take single runs of a batch in which one of them stopped."""
    runs = painleve()
    assert runs.outcome is Outcome.CONTACT and runs.outcomes.tolist() == [Outcome.FINISHED, Outcome.CONTACT]
    good, bad = runs.runs()
    assert good.status == "finished" and good.finished and not good.failures
    assert bad.outcome is Outcome.CONTACT and bad.status == f"stopped: {runs.failures[1]}"
    assert runs.status == f"{bad.status} (run 1; 1 runs in all)" and runs.run(-1).endings == bad.endings


def test_events_and_controllers_need_no_cause_in_loops():
    """Stop a driven linkage at an event, and read the event alone."""
    arm = kt.load("four_bar")
    crank = kt.Driven({"crank": kt.Hold(0.3, speed=1.3)})
    event = kt.Event(lambda now: now.q[0] - 0.9, name="there", stop=True)
    run = kt.simulate(arm, duration=1.0, control=crank, events=event)
    assert run.outcome is Outcome.EVENT and run.status == f"stopped: event there at t = {run.t[-1]:.12g} s"


def test_codes_of_stores_stay():
    """Find the codes that stores of studies have."""
    names = (
        "FINISHED OPEN LOST TOO_SHORT TOO_MANY STOPPED NOT_A_NUMBER DOUBTFUL INTERRUPTED EVENT CONTROL CONTACT METHOD"
    )
    assert [Outcome[name] for name in names.split()] == list(range(13))
    assert Outcome.NOT_EVALUATED == 255 and len(Outcome) == 14 and kt.Outcome is Outcome
    sentences = [outcome.sentence for outcome in Outcome]
    assert len(set(sentences)) == 14
    assert sentences[:3] == ["finished", "the loops do not close", "the state left the finite numbers"]


OLD_REASONS = {
    "interrupted at t = 0.25 s; runs 0 to 2 are finished": Outcome.INTERRUPTED,
    "event ground at t = 1.5 s (run 0; 2 runs in all)": Outcome.EVENT,
    "the loops do not close with the driven joints 'slider' at t = 0.067 s (loop 'pin' by 1 mm): the step became "
    "shorter than rounding; the last good state is at t = 0.0667 s": Outcome.OPEN,
    "the loops cannot follow the driven joints 'a' after t = 0.1 s: the state left the finite numbers": Outcome.OPEN,
    "loop 'third_pin' (x) is nearly redundant and stays open by 0.1 m, more than the run can follow; correct its "
    "lengths, or leave it out: the step became shorter than rounding": Outcome.OPEN,
    "the loops did not close; the last good state is at t = 0.3 s": Outcome.OPEN,
    "the state left the finite numbers; the last good state is at t = 3 s": Outcome.LOST,
    "the step became shorter than rounding; the last good state is at t = 3 s": Outcome.TOO_SHORT,
    "the steps were used up; try a larger max_steps": Outcome.TOO_MANY,
    "the controller 'f' returned torques that are not finite at t = 0.5 s": Outcome.CONTROL,
    "events of contacts accumulate at t = 0.7 s: touch; the run ends there": Outcome.CONTACT,
    "contacts 'a': no forces; rigid bodies with Coulomb friction allow no motion here": Outcome.CONTACT,
    "CVODES gave up (error); try smaller tolerances or a shorter run": Outcome.METHOD,
    "joint2 left its limits at t = 0.95 s": Outcome.STOPPED,
}
"""Texts of versions before outcomes were data."""


@pytest.mark.parametrize("text", OLD_REASONS)
def test_old_texts_keep_their_meaning(text, tmp_path):
    """Read the texts of files and checkpoints of earlier versions."""
    endings = Endings.read(None, f"stopped: {text}")
    assert endings.outcome is OLD_REASONS[text] and endings.status(batch=True) == f"stopped: {text}"
    ending = Ending.read(text)
    assert ending.outcome is OLD_REASONS[text] and ending.reason == text


def test_checkpoints_keep_outcomes_and_read_old_texts(tmp_path):
    """Resume a batch whose second run had failed, from a new checkpoint and from one with texts alone."""
    arm, file = kt.load("pendulum"), tmp_path / "checkpoint"
    control = kt.TorqueFunction(lambda t, q, qd: [40.0 * qd[0] * qd[0] * qd[0]])

    def resumed() -> kt.Trajectory:
        return kt.simulate(
            arm, [[0.0], [0.3]], [[0.0], [1.7]], duration=0.7, method="dopri5", control=control, checkpoint=file
        )

    first, again = resumed(), resumed()
    assert first.outcomes.tolist() == [Outcome.FINISHED, Outcome.TOO_SHORT] and again.endings == first.endings
    with np.load(file) as stored:
        data = dict(stored)
    data["failures"] = np.array(json.dumps({1: first.failures[1]}))
    with open(file, "wb") as stream:
        np.savez(stream, **data)
    old = resumed()
    assert (old.outcomes.tolist(), old.status) == (first.outcomes.tolist(), first.status)


def give_up(t: float, q: np.ndarray, qd: np.ndarray) -> np.ndarray:
    """Return torques, not finite after a while where the pendulum moves fast."""
    return np.where((t > 0.07) & (np.abs(qd) > 1.1), np.nan, 0.1)


def spin(t, q, qd) -> list:
    """Return a torque that makes the velocity infinite, unless the pendulum is at rest."""
    return [40.0 * qd[0] * qd[0] * qd[0]]


ROD, TIP = planar_rod(1.6)
STUDIES = {
    Outcome.LOST: (None, {"control": kt.TorqueFunction(spin), "method": "rk4", "dt": 0.01}),
    Outcome.TOO_SHORT: (None, {"control": kt.TorqueFunction(spin), "method": "dopri5"}),
    Outcome.TOO_MANY: (None, {"method": "dopri5", "max_steps": 9}),
    Outcome.CONTROL: (None, {"control": kt.PythonControl(give_up, rate=97.0)}),
    Outcome.CONTACT: (ROD, {"contacts": TIP, "q0": [0.0, np.cos(0.5), 0.5]}),
}
"""A mechanism, by default a pendulum, and options of a study whose second run has an outcome."""


@pytest.mark.parametrize("outcome", STUDIES, ids=lambda outcome: outcome.name)
def test_studies_store_outcomes(outcome, tmp_path):
    """Keep the outcome of each run of a study in its store and its files."""
    arm, options = STUDIES[outcome]
    speeds = [2.0, -2.0] if arm is not None else [0.0, 1.7]
    if outcome is Outcome.TOO_MANY:
        speeds = [0.0, 57.3]
    arm = arm or kt.load("pendulum")
    found = kt.study(
        arm, over={f"qd.{arm.joints[0].name}": kt.grid(speeds)}, measures={"end": "at_end energy"},
        simulate={"duration": 0.2, **options}, store=tmp_path / "store.zarr",
    )  # fmt: skip
    assert found.status.tolist() == [Outcome.FINISHED, outcome]
    if outcome in (Outcome.LOST, Outcome.TOO_SHORT, Outcome.TOO_MANY):
        assert found.failed[0].reason.startswith(outcome.sentence)
    for path in (tmp_path / "store.zarr", found.save(tmp_path / "study.npz")):
        assert kt.read_study(path).status.tolist() == found.status.tolist()
    assert found.save(tmp_path / "study.csv").read_text().splitlines()[2].endswith(f",{outcome.sentence}")


def test_errors_of_runs_keep_their_ending_between_processes():
    """Pickle an error that ends a run."""
    error = RunStopped(Ending(Outcome.TOO_MANY, last=0.37))
    again = pickle.loads(pickle.dumps(error))
    assert again.ending == error.ending and str(again) == str(error) == error.ending.text


def test_text_has_cause_hint_and_doubt():
    """Compose a text of all its parts."""
    ending = Ending(Outcome.OPEN, "it broke", last=0.123456789123, cause="the pin", hint="be careful", doubt="slipping")
    assert ending.reason == (
        "the pin: it broke; the last good state is at t = 0.123456789 s; be careful; doubtful before: slipping"
    )
    both = Endings({3: ending, 5: replace(ending, doubt=""), 7: Ending(Outcome.DOUBTFUL, doubt="late")})
    assert both.outcome is Outcome.OPEN
    assert both.status(batch=True) == (
        f"stopped: {ending.text} (run 3; 2 runs in all); doubtful before: slipping (run 3; 2 runs in all)"
    )


PARSED = re.compile(
    r"(status|reasons?|failures\[\w+\])\.(startswith|removeprefix|partition)|\" in \w*\.?(status|reason)\b"
    r"|status [!=]= \""
)


def test_no_text_is_parsed():
    """Search the source for decisions by the text of a status; files of earlier versions alone have nothing else."""
    lines = [
        f"{path.relative_to(SOURCE)}: {line.strip()}"
        for path in sorted(SOURCE.rglob("*"))
        if path.suffix in (".py", ".js")
        for line in path.read_text(encoding="utf-8").splitlines()
        if PARSED.search(line) and "solver.status" not in line
    ]
    assert lines == ['simulation/outcomes.py: sort, _, reason = status.partition(": ")']
