"""Catalogues of motors and gearboxes: units, and faults of files."""

from __future__ import annotations

import math
from pathlib import Path

import numpy as np
import pytest

import kinetree as kt
from kinetree.reports.catalogue import read_catalogue, read_catalogue_text
from tolerance import assert_close

MOTOR = "kind,name,peak_torque [N m],continuous_torque [mN m],max_speed [rpm],inertia [g cm^2]\n"
GEAR = "kind,name,peak_torque [N m],continuous_torque [N m],max_speed [rpm],inertia [kg cm^2],ratio,efficiency [%]\n"
EXAMPLE = Path(__file__).resolve().parents[2] / "examples" / "motors.csv"


def test_numbers_become_si_units():
    """Read a motor in millinewton meters, revolutions per minute and gram centimeters squared."""
    (motor,) = read_catalogue_text("# source: us\n" + MOTOR + 'motor,"A, small",1.2,340,3000,25\n').parts
    assert (motor.name, motor.peak, motor.mass) == ("A, small", 1.2, None)
    assert_close([motor.continuous, motor.max_speed, motor.inertia], [0.34, 100.0 * math.pi, 2.5e-6], 1e-12, "SI units")
    assert motor.base_speed == motor.max_speed


def test_a_screw_has_the_ratio_of_its_lead():
    """Read a ball screw with a lead of 5 mm."""
    head = "kind,name,peak_torque [N m],continuous_torque [N m],peak_force [kN],continuous_force [N],max_speed [rad/s],"
    text = (
        head + "inertia [kg m^2],lead [mm],efficiency [1]\nmotor,A,1,0.5,,,300,0,,\nscrew,B,,,9,3000,200,1e-5,5,0.9\n"
    )
    screw = read_catalogue_text(text).of("screw")[0]
    assert_close([screw.ratio, screw.peak, screw.inertia], [2.0 * math.pi / 0.005, 9000.0, 1e-5], 1e-9, "screw")


def test_the_example_is_ours():
    """Read the catalogue of the examples, and find its provenance."""
    catalogue = read_catalogue(EXAMPLE)
    assert "invented" in catalogue.source
    assert {part.kind for part in catalogue.parts} == {"motor", "gearbox", "screw"}


FAULTS = {
    "": "there is no header; begin with a line such as kind,name,peak_torque [N m]",
    MOTOR: "there is no motor; add a line whose kind is motor",
    "kind,peak_torque [N m]\n": ":1: the column name is missing; every line needs a kind",
    "kind,name,peak_torque\n": ":1: column 'peak_torque' has no unit; write peak_torque [N m]",
    "kind,name,peak_torque [lb ft]\n": ":1: column 'peak_torque' has the unit 'lb ft'",
    "kind,name,torque [N m]\n": "no column 'torque'; did you mean 'peak_torque'?",
    "kind,name,mass [kg],mass [g]\n": "two columns have the name 'mass'",
    "kind,name,peak_torque [N m],max_speed [rpm],inertia [kg m^2]\nmotor,A,1,2,3\n": (
        ":2: motor 'A': the column continuous_torque [N m] is missing; a motor needs peak_torque [N m], continuous"
    ),
    MOTOR + "motor,A,1,,3000,25\n": ":2: motor 'A': the value continuous_torque is missing",
    MOTOR + "motor,A,1,500,3000,nan\n": ":2: motor 'A', inertia: 'nan' is not a number",
    MOTOR + "motor,A,1,500,3000,-25\n": ":2: motor 'A': inertia is -2.5e-06; give 0 or more",
    MOTOR + "motor,A,1,500,3000,inf\n": "'inf' is not a number",
    MOTOR + "motor,A,1,1500,3000,25\n": "the continuous value is larger than the peak (1.5 > 1 in SI units)",
    MOTOR + "motor,,1,500,3000,25\n": ":2: the motor has no name",
    MOTOR + "engine,A,1,500,3000,25\n": "no kind of part 'engine'; available: motor, gearbox, screw",
    MOTOR + "motor,A,1,500,3000,25,7\n": ":2: 7 cells under 6 columns; add a column or remove a cell",
    MOTOR + 'motor,"A,1,500,3000,25\n': "not a line of CSV",
    MOTOR + "motor,A,1,500,3000,25\nmotor,A,2,600,3000,25\n": ":3: motor: two parts have the name 'A'; rename one",
    GEAR + "gearbox,G,60,25,6000,0.1,-10,95\n": ":2: gearbox 'G': ratio is -10; give more than zero",
    GEAR + "gearbox,G,60,25,6000,0.1,10,195\n": "efficiency is 1.95; give at most 1",
}


@pytest.mark.parametrize("text", FAULTS, ids=range(len(FAULTS)))
def test_faults_are_named(text):
    """Read faulty catalogues and find file, line, part, column and remedy in the message."""
    with pytest.raises(kt.ModelError) as caught:
        read_catalogue_text(text, file="parts.csv")
    assert str(caught.value).startswith("parts.csv:")
    assert FAULTS[text] in str(caught.value)


def test_a_file_that_is_not_there(tmp_path):
    """Name the path of a catalogue that cannot be read."""
    with pytest.raises(kt.ModelError, match=r"none.csv: the file cannot be read"):
        read_catalogue(tmp_path / "none.csv")


def test_altered_files_are_read_or_refused():
    """Alter the example at random places: every file is a catalogue, or a ModelError with the file's name."""
    source = EXAMPLE.read_bytes()
    rng = np.random.default_rng(7)
    refused = 0
    for _ in range(300):
        data = bytearray(source)
        for _ in range(int(rng.integers(1, 4))):
            at = int(rng.integers(len(data)))
            data[at : at + int(rng.integers(0, 3))] = rng.integers(
                1, 127, size=int(rng.integers(0, 4)), dtype=np.uint8
            ).tobytes()
        try:
            read_catalogue_text(data.decode(), file="parts.csv")
        except kt.ModelError as error:
            assert str(error).startswith("parts.csv:")
            refused += 1
    assert 50 < refused < 290
