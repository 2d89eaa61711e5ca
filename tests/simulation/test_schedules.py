"""Runs with parameters that change at given times: against closed forms, and against runs that continue each other."""

from __future__ import annotations

import numpy as np
import pytest

import kinetree as kt
from tolerance import assert_close

STIFFNESS, EMPTY, LOAD, WEIGHT = 170.0, 0.8, 1.3, 9.81
PICKED, RELEASED = 0.37, 0.91


def lift(**options) -> kt.System:
    """Return a body on a vertical slide with a spring, and a load of variable mass."""
    spring = kt.ForceElement("spring", "joint_spring", "ground", "tray", coefficients=(("stiffness_1", STIFFNESS),))
    parts = [kt.Body("tray", EMPTY)], [kt.Joint("slide", "prismatic", "ground", "tray", axis="z")]
    arm = kt.System(kt.build_mechanism("lift", *parts, forces=[spring], gravity=(0.0, 0.0, -WEIGHT), **options))
    return kt.with_payload(arm, "tray", kt.Parameter("load", 0.0, free=True), com=(0.1, 0.0, 0.2))


def exact(t: np.ndarray, x: float, v: float) -> tuple[np.ndarray, np.ndarray]:
    """Return position and velocity of the oscillator whose mass changes, while both are continuous."""
    out = np.empty((2, len(t)))
    begin = 0.0
    for end, mass in ((PICKED, EMPTY), (RELEASED, EMPTY + LOAD), (np.inf, EMPTY)):
        w, rest = np.sqrt(STIFFNESS / mass), -mass * WEIGHT / STIFFNESS

        def at(s, x=x, v=v, w=w, rest=rest):
            c, d = np.cos(w * s), np.sin(w * s)
            return rest + (x - rest) * c + v / w * d, v * c - w * (x - rest) * d

        rows = (t >= begin) & (t < end)
        out[:, rows] = at(t[rows] - begin)
        x, v = at(end - begin) if np.isfinite(end) else (x, v)
        begin = end
    return out[0], out[1]


SCHEDULE = {"load": kt.Schedule(0.0, {RELEASED: 0.0, PICKED: LOAD})}


@pytest.mark.parametrize(("method", "tol"), [({}, 2e-7), ({"method": "rk4", "dt": 1e-3}, 2e-9),
                                             ({"method": "rodas5p"}, 2e-6)])  # fmt: skip
@pytest.mark.parametrize("times", [np.linspace(0.0, 1.5, 151), np.array([0.0, 0.2, 0.5, 1.4])])
def test_a_load_is_picked_up_and_released(method, tol, times):
    """Follow the closed form of an oscillator with a mass that changes, also where no output time is at the changes."""
    run = kt.simulate(lift(), [0.07], [-0.4], times=times, parameters=SCHEDULE, **method)
    assert run.finished and np.array_equal(run.t, times)
    x, v = exact(times, 0.07, -0.4)
    assert_close(run.q[:, 0], x, tol, "position")
    assert_close(run.qd[:, 0], v, 10 * tol, "velocity")
    load = np.where((times >= PICKED - 1e-9) & (times < RELEASED - 1e-9), LOAD, 0.0)
    assert_close(run.parameters[:, 0], load, 0.0, "mass of the load")
    mass = EMPTY + load
    energy = 0.5 * mass * v**2 + mass * WEIGHT * x + load * WEIGHT * 0.2
    assert_close(run["kinetic_energy"] + run["potential_energy"], energy, 40 * tol, "energy")
    assert_close(run["qdd"][:, 0], -STIFFNESS / mass * x - WEIGHT, 400 * tol, "acceleration")
    assert run.options["schedule"] == {"load": [0.0, [[PICKED, LOAD], [RELEASED, 0.0]]]}


def test_parts_and_files_of_a_run_keep_the_changes(tmp_path):
    """Save, slice and resample a run whose parameters change; refuse measures of one mechanism with the remedy."""
    run = kt.simulate(lift(), [0.07], [-0.4], times=np.linspace(0.0, 1.5, 151), parameters=SCHEDULE)
    for name in ("run.npz", "run.zarr", "run.csv", "run.parquet"):
        again = kt.read_trajectory(run.save(tmp_path / name))
        assert_close(again.parameters, run.parameters, 0.0, "parameters")
        assert_close(again["energy"], run["energy"], 0.0, "energy")
    assert run[:37].parameters.tolist() == [0.0] and run[37:91].parameters.tolist() == [LOAD]
    assert_close(kt.energy_balance(run[37:91]).residual, np.zeros(54), 2e-6, "energy of the part with the load")
    assert_close(run.at([0.365, 0.37, 0.905, 0.913]).parameters[:, 0], [0.0, LOAD, LOAD, 0.0], 0.0, "parameters")
    for measure in (kt.energy_balance, lambda run: run.energy_error):
        with pytest.raises(kt.InputError, match="parameters of the run change with time; give a part of it in which"):
            measure(run)
    assert run.replay(tmp_path / "run.html").stat().st_size > 1000
    assert "lift" in run._repr_html_()


def test_events_and_progress_go_on_across_changes():
    """Find the events of all parts once each, end where an event stops, and report one progress."""
    seen: list[float] = []
    level = kt.Event(lambda now: now.q[0], name="level")
    run = kt.simulate(lift(), [0.07], [-0.4], duration=1.5, parameters=SCHEDULE, events=[level], progress=seen.append)
    x = exact(run.t, 0.07, -0.4)[0]
    hits = kt.event_hits(run)
    assert len(hits) == np.count_nonzero(np.diff(np.sign(x))) >= 4
    assert_close([exact(np.array([h.t]), 0.07, -0.4)[0][0] for h in hits], np.zeros(len(hits)), 1e-7, "level")
    assert seen == sorted(seen) and seen[-1] == 1.0
    stop = kt.Event(lambda now: now.t - 0.6, stop=True, name="enough")
    short = kt.simulate(lift(), [0.07], [-0.4], duration=1.5, parameters=SCHEDULE, events=[stop])
    assert short.t[-1] <= 0.6 + 1e-9 and len(kt.event_hits(short)) == 1


def test_a_closed_mechanism_with_a_drive():
    """Continue a closed mechanism under an exact drive, as separate runs do, with the loads of each part."""
    bars = kt.with_free(kt.load("four_bar"), "mass.*")
    name = bars.mechanism.free_parameters[1].name
    drive, values = kt.Driven("crank", kt.Hold(0.3, speed=10.0)), (0.4, 2.9)
    times = np.array([0.0, 0.1, 0.2, 0.3, 0.4])
    schedule = {name: kt.Schedule(values[0], {0.2: values[1]})}
    run = kt.simulate(bars, times=times, control=drive, parameters=schedule)
    first = kt.simulate(bars, times=times[:3], control=drive, parameters={name: values[0]})
    second = kt.simulate(bars, first.q[-1], first.qd[-1], times=times[2:], control=drive, parameters={name: values[1]})
    for column in ("q", "qd", "control", "reactions", "loop_reactions", "multipliers", "kinetic_energy"):
        expected = np.concatenate([first[column][:2], second[column]])
        assert_close(run[column], expected, 1e-13 * (1.0 + abs(expected).max()), column)
    assert abs(run["reactions"][1]).max() < abs(run["reactions"][3]).max()


def test_ctrl_c_returns_all_parts():
    """Give the states of all parts so far with the KeyboardInterrupt."""
    calls: list[float] = []

    def torque(t, q, qd):
        if t > 0.6:
            raise KeyboardInterrupt
        calls.append(t)
        return np.zeros(1)

    with pytest.raises(KeyboardInterrupt) as stopped:
        kt.simulate(
            lift(), [0.07], [-0.4], times=np.linspace(0, 1.5, 151), parameters=SCHEDULE, method="rk4", dt=0.01,
            control=kt.PythonControl(torque, rate=100.0),
        )  # fmt: skip
    run = stopped.value.run
    assert 0.5 < run.t[-1] <= 0.61 and run.parameters[0, 0] == 0.0 and run.parameters[-1, 0] == LOAD


BARS = kt.with_free(kt.load("planar_2r"), "length.*", "mass.*")
LENGTH, MASS = (
    next(p.name for p in BARS.mechanism.free_parameters if p.name.startswith(x)) for x in ("length", "mass")
)


@pytest.mark.parametrize(("options", "message"), [
    ({"parameters": {LENGTH: kt.Schedule(0.5, {0.2: 0.6})}}, "a Schedule of 'length.joint2' changes lengths of 'plana"),
    ({"q0": np.zeros((3, 2))}, "a Schedule is for a single run; give one state and one value of each parameter"),
    ({"checkpoint": "run.zip"}, "checkpoint and a Schedule: leave out one of them"),
    ({"control": kt.Sampled(kt.PD(1.0, 1.0, kt.Hold([0.0, 0.0])), 30.0)},
     "a Schedule changes a value at 0.25 s, while the torques of a Sampled are held; choose a multiple of its period"),
    ({"parameters": {"mass": kt.Schedule(0.5, {0.2: 0.6})}}, "no free parameter 'mass'"),
])  # fmt: skip
def test_runs_that_cannot_change_are_refused(options, message):
    """Refuse lengths, batches, checkpoints and held torques across a change, with the remedy."""
    given = {"q0": np.zeros(2), "duration": 1.0, "parameters": {MASS: kt.Schedule(1.0, {0.25: 2.0})}} | options
    with pytest.raises(kt.KinetreeError, match=message):
        kt.simulate(BARS, **given)


@pytest.mark.parametrize(("arguments", "message"), [
    ((1.0, [0.4]), "the changes of a Schedule are .*; give {time: value, ...}"),
    (("a",), "the first value of a Schedule"),
    ((1.0, {0.4: "b"}), "a value of a Schedule"),
    ((1.0, {float("nan"): 2.0}), "a time of a Schedule"),
])  # fmt: skip
def test_wrong_schedules_are_refused(arguments, message):
    """Refuse values that are no numbers, and changes without times."""
    with pytest.raises(kt.InputError, match=message):
        kt.Schedule(*arguments)
