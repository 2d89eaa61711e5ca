"""The controller of examples/ros2_controller, compiled and run with a stand-in for ROS 2: no ROS is needed."""

from __future__ import annotations

import subprocess
from pathlib import Path

import numpy as np
import pytest

import kinetree as kt
from c_compiler import COMPILER, STRICT, ZIG, needs_compiler
from tolerance import assert_close

NODE = Path(__file__).resolve().parents[2] / "examples" / "ros2_controller" / "src" / "controller.cpp"
STAND_IN = Path(__file__).parent / "ros2_stand_in"
TARGET = [0.4, -0.7, 0.3, 0.2, -0.5, 0.6]


@pytest.fixture(scope="module")
def controller(tmp_path_factory) -> Path:
    """Return the program of the node, whose C and C++ compile without warnings."""
    folder = tmp_path_factory.mktemp("ros2")
    kt.export(kt.load("stanford"), "inverse_dynamics", "c", folder)
    objects = folder / "inverse_dynamics.o"
    subprocess.run(
        [*COMPILER, *STRICT, "-O1", "-c", str(folder / "inverse_dynamics.c"), "-o", str(objects)], check=True
    )
    cpp = [*ZIG[:-1], "c++"] if COMPILER == ZIG else [COMPILER[0].replace("gcc", "g++").replace("clang", "clang++")]
    call = ["-std=c++17", "-Wall", "-Wextra", "-Werror", "-O1", f"-I{folder}", f"-I{STAND_IN}", str(NODE), str(objects)]
    subprocess.run([*cpp, *call, "-o", str(folder / "controller"), "-lstdc++", "-lm"], check=True)
    return folder / "controller"


def told(program: Path, lines: list[str], target: list[float] = TARGET) -> subprocess.CompletedProcess[str]:
    """Run the node on joint states, one per line."""
    given = f"target:={' '.join(map(repr, target))}"
    return subprocess.run([program, given], input="\n".join(lines), capture_output=True, text=True, check=False)


@needs_compiler
def test_efforts_are_computed_torques(controller):
    """Send joint states in another order of joints, with a joint that the arm lacks, and read the library's torques."""
    arm = kt.load("stanford")
    rng = np.random.default_rng(3)
    q, qd = rng.normal(size=(2, 5, arm.nv))
    order = [4, 0, 5, 2, 1, 3]
    lines = []
    for state, speed in zip(q, qd, strict=True):
        joints = [f"{arm.joints[k].name} {float(state[k])!r} {float(speed[k])!r}" for k in order]
        lines.append(" ".join(["gripper 0.01 0.0", *joints]))
    done = told(controller, lines)
    efforts = np.array([[float(x) for x in line.split()] for line in done.stdout.splitlines()])
    expected = arm.inverse_dynamics(q, qd, 100.0 * (np.array(TARGET) - q) - 20.0 * qd, forces=False)
    assert done.returncode == 0 and not done.stderr
    assert_close(efforts, expected, 1e-14 * np.abs(expected).max(), "efforts of the node")  # 1.5e-16


@needs_compiler
def test_incomplete_states_are_left_out(controller):
    """Send a state without a joint, then a complete one, and read one warning and one command."""
    complete = " ".join(f"joint{k} 0.1 0.0" for k in range(1, 7))
    done = told(controller, [complete.replace("joint4", "wrist"), complete])
    assert done.stderr == "joint states without position and velocity of joint4\n"
    assert len(done.stdout.splitlines()) == 1


@needs_compiler
def test_a_target_of_another_arm_is_refused(controller):
    """Give five numbers for six joints, and read both counts."""
    done = told(controller, [], TARGET[:5])
    assert done.returncode != 0 and "the parameter target has 5 numbers; the arm has 6 joints" in done.stderr
