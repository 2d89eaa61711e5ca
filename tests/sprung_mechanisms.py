"""A closed mechanism with springs, dampers and friction, whose lengths, masses and rates are free parameters."""

from __future__ import annotations

from dataclasses import replace

import kinetree as kt

SPRUNG = """\
[mechanism]
name = "sprung"
gravity = [0.3, -9.81, 0.2]

[parameters]
arm = { value = 0.041, free = true }
heavy = { value = 4.7, free = true }
rate = { value = 130, free = true }
rest = { value = 0.09, free = true }
high = { value = 0.31, free = true }

[dh]
convention = "modified"
row = [
    { name = "crank", joint = "revolute", mass = 1.5, com = [0.019, 0.003, 0.01], \
inertia = [1.25e-05, 1.8e-04, 1.9e-04, 0, 0, 0] },
    { name = "output", parent = "ground", joint = "revolute", a = -0.0895, mass = 3, com = [0.0576, 0, -0.02], \
inertia = [2.5e-05, 0.0033, 0.0033, 0, 0, 0] },
    { name = "coupler", parent = "output", joint = "revolute", a = 0.1152, mass = "heavy", com = [0.05, 0.01, 0.03], \
inertia = [4.2e-05, 0.0055, 0.0055, 0, 0, 0] },
]

[[loop]]
name = "pin"
kind = "LOOP"
body_a = "crank"
body_b = "coupler"
placement_a = { translation = ["arm", 0, 0] }
placement_b = { translation = [0.1152, 0, 0] }

[[force]]
name = "coil"
kind = "spring_damper"
body_a = "ground"
body_b = "coupler"
point_a = [0.02, "high", 0.01]
point_b = [0.06, 0.02, 0.005]
coefficients = { stiffness = "rate", damping = 3.1, free_length = "rest", preload = -2.3 }

[[force]]
name = "cylinder"
kind = "linear_actuator"
body_a = "crank"
body_b = "output"
point_a = [0.02, 0.01, 0]
point_b = [0.03, -0.02, 0.01]
coefficients = { force = 7.7 }

[[force]]
name = "clock"
kind = "joint_spring"
body_a = "ground"
body_b = "crank"
coefficients = { stiffness_1 = 1.9, rest_1 = 0.4 }

[guess]
crank = 0.1
output = 0.98437306083976
coupler = 4.314439185500067
"""


def sprung(tmp_path, loop: str = "revolute") -> kt.System:
    """Return the mechanism: a four-bar with a spring, a cylinder, a joint spring, damping and friction."""
    path = tmp_path / "sprung.toml"
    path.write_text(SPRUNG.replace("LOOP", loop))
    m = kt.load(path).mechanism
    joints = [replace(j, damping=(0.03 + 0.01 * k,), friction=(0.07 - 0.02 * k,)) for k, j in enumerate(m.joints)]
    return kt.System(replace(m, joints=tuple(joints)))
