"""Arguments of simulate: accepted forms, and messages with a remedy for others."""

from __future__ import annotations

import inspect

import numpy as np
import pytest

import kinetree as kt
from closed_form_runs import PENDULUM
from kinetree.apps.cli import simulating
from kinetree.errors import InputError
from kinetree.experiments import reading
from kinetree.formats.toml import read_toml_text
from kinetree.simulation.methods.table import METHODS
from kinetree.simulation.options import RunOptions
from touching_bodies import planar_rod

WRONG = {
    "a name": ({"system": "stanford"}, "simulate takes a System, not ['\"]*stanford['\"]*; load one with kt.load"),
    "a function as control": ({"control": lambda t, q, qd: [0.1, 0.2]}, "a function goes into kt.TorqueFunction"),
    "a number as force": ({"forces": 3.1}, "forces is ['\"]*3.1['\"]*; give a list of objects with apply"),
    "a function as event": ({"events": lambda now: now.t}, "give a list of kt.Event"),
    "a text as dt": ({"dt": "a"}, "dt is ['\"]*a['\"]*; give a number"),
    "no rtol": ({"rtol": None}, "rtol is ['\"]*None['\"]*; give a number"),
    "no method": ({"method": None}, "method is ['\"]*None['\"]*; give one of auto, rk4"),
    "no threads": ({"threads": None}, "threads is ['\"]*None['\"]*; give a number"),
    "negative threads": ({"threads": -1}, "threads is -1; give 0 or more"),
    "max_steps that is none": ({"max_steps": float("nan")}, "max_steps is nan; give a finite number"),
    "half a step": ({"max_steps": 2.5}, "max_steps is 2.5; give a whole number"),
    "a text as passive": ({"passive": "no"}, "passive is 'no'; give True or False"),
    "a number as checkpoint": ({"checkpoint": 3}, "checkpoint is 3; give the path of a file, or None"),
    "complex": ({"q0": [1.0 + 2.0j, 0.3]}, "q0 is not an array of real numbers"),
    "texts": ({"q0": ["0.1", "0.3"]}, "q0 is not an array of real numbers"),
    "dates": ({"qd0": np.array(["2020-01-01", "2020-01-02"], "M8[D]")}, "qd0 is not an array of real numbers"),
    "masked": ({"q0": np.ma.masked_array([0.1, 0.3], mask=[True, False])}, "q0 has masked entries; fill them"),
    "times of texts": ({"duration": None, "times": ["0", "1"]}, "times is not an array of real numbers"),
}


@pytest.mark.parametrize("case", WRONG)
def test_wrong_arguments_are_named(case):
    """Give one wrong argument, and read its name and the remedy."""
    given, message = WRONG[case]
    with pytest.raises(InputError, match=message):
        kt.simulate(**({"system": kt.load("planar_2r"), "duration": 0.1, "progress": False} | given))


def test_a_quaternion_of_zeros_is_refused():
    """Start a spherical joint from a quaternion of zeros."""
    body, joint = kt.Body("b", 1.0, (0.0, 0.3, 0.0), (0.1, 0.1, 0.1, 0.0, 0.0, 0.0)), "spherical"
    ball = kt.System(kt.build_mechanism("ball", [body], [kt.Joint("j", joint, "ground", "b")]))
    with pytest.raises(
        InputError, match="q0 has a quaternion of zeros in its entries 0 to 3; no rotation is 0, 0, 0, 1"
    ):
        kt.simulate(ball, np.zeros(4), duration=0.1)


def test_single_objects_count_as_lists():
    """Give a Mechanism, a force and an event by themselves, and find the run with lists."""
    arm, damper = kt.load("planar_2r"), kt.JointDamper("joint1", 0.31)
    event = kt.Event(lambda now: now.q[0] - 0.1, name="passed")
    one = kt.simulate(arm.mechanism, [0.4, 0.2], duration=0.3, forces=damper, events=event, progress=False)
    many = kt.simulate(arm, [0.4, 0.2], duration=0.3, forces=[damper], events=[event], progress=False)
    assert np.array_equal(one.q, many.q)
    assert kt.event_hits(one)[0].t == kt.event_hits(many)[0].t


def test_parameters_may_be_named():
    """Give a free parameter by name, for all runs and per run, and read the known names for another."""
    system = kt.System(read_toml_text(PENDULUM)[0])
    listed = kt.simulate(system, [0.7], duration=0.2, parameters=[0.4], progress=False)
    assert np.array_equal(kt.simulate(system, [0.7], duration=0.2, parameters={"l": 0.4}, progress=False).q, listed.q)
    each = kt.simulate(system, [[0.7], [0.7]], duration=0.2, parameters={"l": [0.9, 0.4]}, progress=False)
    assert np.array_equal(each.q[1], listed.q)
    with pytest.raises(kt.KinetreeError, match="no free parameter 'm'; available: l"):
        kt.simulate(system, [0.7], duration=0.2, parameters={"m": 0.4})


def test_given_forces_are_added_to_those_of_the_mechanism():
    """Damp a joint by the mechanism and by a force, and exclude the passive one."""
    body = kt.Body("bob", 1.3, (0.0, -0.7, 0.0))
    hinge = kt.Joint("pivot", "revolute", "ground", "bob", damping=(0.21,))
    damped = kt.System(kt.build_mechanism("pendulum", [body], [hinge]))
    force = kt.JointDamper("pivot", 0.34)
    options = {"duration": 0.01, "progress": False}
    torque = {
        name: kt.simulate(damped, [0.9], [1.7], **options, **given)["tau"][0, 0] / 1.7
        for name, given in {
            "own": {},
            "both": {"forces": [force]},
            "given": {"forces": [force], "passive": False},
            "none": {"passive": False},
        }.items()
    }
    assert torque == pytest.approx({"own": -0.21, "both": -0.55, "given": -0.34, "none": 0.0})


def test_options_are_declared_once():
    """Compare the options of simulate with their declaration: names, types and defaults, in the same order."""
    declared = list(inspect.signature(RunOptions).parameters.values())
    own = {"system", "q0", "qd0", "events", "progress", "keep"}
    given = [p for p in inspect.signature(kt.simulate).parameters.values() if p.name not in own]
    assert given == declared
    assert {p.name for p in declared} == set(RunOptions.names())


def test_options_of_the_command_line_and_of_files_are_all_that_can_be_written():
    """Find every option that text can state, with its default, on the command line and in experiments."""
    written, command = RunOptions.written(), inspect.signature(simulating.simulate).parameters
    assert set(written) - {"times"} <= set(command)  # the command line has --samples instead
    for name in set(written) - {"times", "duration"}:
        assert command[name].default == getattr(RunOptions, name), name
        assert command[name].annotation.endswith("]") and f'_HELP["{name}"]' in command[name].annotation.replace(
            "'", '"'
        )
    assert set(reading.KEYS["run"]) == {"samples", *written} - {"passive"}
    assert "passive" in reading.KEYS["experiment"]
    for text in written.values():
        assert text.endswith(".") and len(text) < 200
    assert all(name == "moreau" or name in written["method"] for name in METHODS)


def test_a_study_takes_every_option_that_is_not_its_own():
    """Give contacts to the simulation of a study, and find the runs of simulate."""
    system, tip = planar_rod(0.3)
    options = {"duration": 0.4, "contacts": tip, "method": "moreau", "dt": 1e-3}
    found = kt.study(
        system, over={"qd.x": kt.grid([0.3, 1.1])}, simulate=options | {"q0": [0.0, 1.02, 0.2]},
        measures={"x": "at_end q.x"},
    )  # fmt: skip
    run = kt.simulate(system, [0.0, 1.02, 0.2], [[0.3, 0.0, 0.0], [1.1, 0.0, 0.0]], **options)
    assert found.finished.all() and np.array_equal(found.measures["x"], run.q[:, -1, 0])
    assert run["contact_forces"].max() > 0.0
    with pytest.raises(kt.UnknownNameError, match="no option of simulate in a study 'threads'"):
        kt.study(system, over={"qd.x": kt.grid([0.3])}, simulate=options | {"threads": 2}, measures={"x": "at_end q.x"})
