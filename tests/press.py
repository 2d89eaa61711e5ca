"""A press for tests of studies: slider-crank with a counterweight and a stroke as free parameters; a turn in files."""

from __future__ import annotations

from functools import cache

import kinetree as kt
from kinetree.formats.toml import read_toml_text

TURN = """
[cycle]
drive = "main_bearing"
speed = 20
steps = 12
[measures]
peak = "peak control.main_bearing"
"""
"""The last tables of a study file: one turn of the press of the library, and the peak of its torque."""
TEXT = """
[mechanism]
name = "press"
gravity = [0, -9.81, 0]

[parameters]
m = { value = 2.3, unit = "kg", free = true }
r = { value = 0.061, unit = "m", free = true }
k = { value = 370.0, unit = "N/m", free = true }
h = { value = 0.02, unit = "m" }

[[body]]
name = "crank"
mass = "4.1 + m"
com = ["(4.1*0.03 - m*0.08)/(4.1 + m)", 0, 0]
inertia = [0.011, 0.023, 0.021, 0, 0, 0]

[[joint]]
name = "main"
kind = "revolute"
parent = "ground"
child = "crank"

[[body]]
name = "rod"
mass = 3.2
com = [0.12, 0.004, 0]
inertia = [0.0013, 0.019, 0.018, 0, 0, 0]

[[joint]]
name = "crank_pin"
kind = "revolute"
parent = "crank"
child = "rod"
translation = ["r", 0, 0]

[[body]]
name = "ram"
mass = 6.4
inertia = [0.02, 0.021, 0.022, 0, 0, 0]

[[joint]]
name = "guide"
kind = "prismatic"
parent = "ground"
child = "ram"
axis = [1, 0, 0]

[[loop]]
name = "wrist_pin"
kind = "revolute"
body_a = "rod"
body_b = "ram"
placement_a = { translation = [0.25, 0, 0] }

[[force]]
name = "spring"
kind = "spring_damper"
body_a = "ground"
body_b = "ram"
point_a = [0.6, 0, 0]
coefficients = { stiffness = "k", free_length = 0.3 }

[guess]
guide = 0.311
"""


@cache
def press() -> kt.System:
    """Return the press; r is in the equations of its loop, m and k are not."""
    return kt.System(read_toml_text(TEXT)[0])
