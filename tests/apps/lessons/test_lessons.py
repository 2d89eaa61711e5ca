"""Lessons: their files are complete, and their answers are those of closed formulas and of the library."""

from __future__ import annotations

import re
from pathlib import Path

import numpy as np
import pytest
from scipy.special import ellipk

import kinetree as kt
from kinetree.apps.lessons import find, names, read_lesson
from kinetree.apps.lessons.answers import answers
from kinetree.apps.lessons.reading import evaluate_formula
from kinetree.errors import ModelError, UnknownNameError
from tolerance import assert_close

G = 9.81
DEG = np.pi / 180
FOLDER = Path(kt.__file__).parent / "apps" / "lessons"


@pytest.mark.parametrize("name", names())
def test_lessons_are_complete(name):
    """Find five to nine steps, each with a button, a question, a hint and a reason, and an equation of a paper."""
    lesson = find(name)
    assert 5 <= len(lesson.steps) <= 9
    assert all(step.title and step.text and step.do and step.question for step in lesson.steps)
    assert all(step.question.hint and step.question.why for step in lesson.steps if step.question)
    text = (FOLDER / f"{name}.toml").read_text(encoding="utf-8")
    assert re.search(r"\[Saha(1999|2013)\] \(\d+", text) or re.search(r"\[Saha1999\], appendix A", text)
    assert text.isascii() and text.count("$") % 2 == 0


def test_every_file_is_a_lesson():
    """Find the same names in the folder as in the list."""
    assert sorted(file.stem for file in FOLDER.glob("*.toml")) == sorted(names())
    with pytest.raises(UnknownNameError, match=r"no lesson 'pendulums'; did you mean 'pendulum'\?"):
        find("pendulums")


def test_a_pendulum_has_the_answers_of_the_textbook():
    """Compare with closed formulas: the period by an elliptic integral, the force on the pin by circular motion."""
    small = 2 * np.pi * np.sqrt(2 / (3 * G))
    period = [small * 2 / np.pi * ellipk(np.sin(angle * DEG / 2) ** 2) for angle in (5, 150)]
    expected = [
        0.5, 0.5 * G * np.sin(45 * DEG), 1 / 3, *period, np.sqrt(3 * G), 2.5 * G, 3 * G / (2 * np.pi**2),
    ]  # fmt: skip
    found = answers(find("pendulum"), kt.load("pendulum"))
    assert_close(np.array(found, dtype=float), expected, 1e-7, "answers of the pendulum")


def closed_forms() -> dict[str, dict[int, float]]:
    """Return answers that have short formulas, by lesson and step."""
    wrist = np.array([0.3 * np.cos(20 * DEG), 0.3 * np.sin(20 * DEG) + 0.25])
    rope_pivot = (2 + np.sqrt(3)) / 6 * 0.05 * 0.03**2
    return {
        "planar_arms": {
            0: 0.3 * np.cos(50 * DEG) + 0.25 * np.cos(15 * DEG),
            1: 2 * np.arctan2(wrist[1], wrist[0]) - 20 * DEG,
            2: 0.3 * 0.25 * np.sin(45 * DEG),
            4: G * (0.5 * 0.15 + 0.4 * 0.425 + 0.3 * 0.66),
        },
        "dh_frames": {0: 0.4318 * np.cos(30 * DEG), 1: np.hypot(0.0203, 0.4331), 2: -np.sin(25 * DEG), 3: 2.0, 5: 8.0},
        "dh_conventions": {
            0: 90 * DEG,
            1: 5.0,
            2: np.hypot(0.9 * np.sin(60 * DEG), 0.1),
            3: 0.5,
        },
        "stanford_arm": {0: np.hypot(0.9, 0.1), 1: 11.3796 + 6.1 * G * 0.2, 3: 2 * G * 0.7 * np.sin(60 * DEG)},
        "double_pendulum": {0: 0.4 * G * 0.125, 1: 0.4 * 0.25**2 / 3, 3: G * (0.5 * 0.15 + 0.4 * 0.425)},
        "biped_on_one_foot": {0: 0.5 * (np.cos(12 * DEG) + np.cos(30 * DEG))},
        "branching_tree": {
            0: 3.0,
            1: 0.05,
            2: G * (0.4 * 0.05 + 0.2 * (0.125 + 0.175 + 0.075)),
            3: 0.2 * (0.05**2 / 12 + 0.025 * 0.075),
        },
        "two_links_by_hand": {
            0: 0.3 * np.cos(30 * DEG),
            1: 0.4 * 0.25**2 / 3,
            2: 0.5 * 0.09 / 3 + 0.4 * 0.09 / 4,
            3: 0.06,
            4: -G * (0.245 - 2.8 * 0.05) / 0.024,
        },
        "equimomental_points": {
            0: 2.512 / 7,
            1: np.sqrt(7 / 24),
            2: 2.512 * (2 / 3 + 0.02**2 / 8),
            3: 2.512 * G / 2,
        },
        "spatial_operators": {0: 5.0},
        "seven_steps_of_charmie": {0: 7.8, 1: 0.1},
        "hanging_rope": {0: 0.75 * G, 2: np.sqrt(G * 0.3), 3: 1e6 * rope_pivot},
    }


@pytest.mark.slow
@pytest.mark.parametrize("name", names())
def test_answers_are_those_of_formulas(name):
    """Run every answer through the library: all are finite, and those with short formulas agree with them."""
    lesson = find(name)
    found = answers(lesson, kt.load(lesson.mechanism))
    assert len(found) == len(lesson.steps) and np.isfinite(np.array(found, dtype=float)).all()
    for step, expected in closed_forms().get(name, {}).items():
        assert_close(found[step], expected, 2e-6 * abs(expected), f"{name}, step {step + 1}")


@pytest.mark.slow
def test_a_four_bar_s_answers_are_those_of_other_routes():
    """Compare with two circles that intersect, actuated inverse dynamics, and its torque over the inertia."""
    bars = kt.load("four_bar")
    output, rate, _, _, torque, _, fall = (float(x) for x in answers(find("four_bar_linkage"), bars) if x is not None)
    q = bars.assemble(hold={"crank": 60 * DEG})
    qd = bars.consistent_speeds(q, {"crank": 10.0})
    still = np.zeros(3)
    held = bars.inverse_dynamics(q, still, still, actuated=["crank"])[0]
    inertia = 2 * bars.kinetic_energy(q, qd) / 100
    end = np.array([0.0895, 0.038])  # of the crank at 90 degrees, seen from the output link's pivot
    reach = np.arccos(np.linalg.norm(end) / 2 / 0.1152)
    assert_close(output, np.arctan2(end[1], end[0]) + reach, 1e-9, "angle of the output link")
    assert_close(rate, qd[1], 1e-9, "rate of the output link")
    assert_close(torque, held, 1e-9, "torque of the crank")
    assert_close(fall, -held / inertia, 1e-6, "acceleration at release")


@pytest.mark.slow
def test_multipliers_by_hand_are_the_loads_of_the_pin():
    """Compare with the torque and the force in the pin by actuated inverse dynamics, and with the law of cosines."""
    bars, still = kt.load("four_bar"), np.zeros(3)
    ratio, along, torque, force, sine = (float(x) for x in answers(find("four_bar_multipliers"), bars) if x is not None)
    q = bars.assemble(hold={"crank": 60 * DEG})
    rates = bars.consistent_speeds(q, {"crank": 1.0})
    held = bars.actuation(q, still, still, actuated=["crank"])
    assert_close(ratio, rates[2] / rates[1], 1e-9, "ratio of rates")
    assert_close([along, force], [held.multipliers[0], np.hypot(*held.multipliers[:2])], 1e-9, "force in the pin")
    q = bars.assemble(hold={"crank": 120 * DEG})
    assert_close(torque, bars.inverse_dynamics(q, still, still, actuated=["crank"])[0], 1e-9, "torque at 120 degrees")
    cosine = 1 - (0.0895 + 0.038) ** 2 / (2 * 0.1152**2)
    assert_close(sine, np.sqrt(1 - cosine**2), 1e-9, "transmission angle")


@pytest.mark.slow
def test_modes_are_those_of_small_motions():
    """Compare measured periods of a double pendulum and of a rope with those of the linearized equations."""
    for name, step, q in (("double_pendulum", 2, [-90 * DEG, 0.0]), ("hanging_rope", 1, [-90 * DEG, *[0.0] * 19])):
        lesson = find(name)
        system = kt.load(lesson.mechanism)
        found = answers(lesson, system)[step]
        slow = min(mode for mode in np.abs(system.modes(q).frequencies) if mode > 0)
        assert_close(found, 1 / slow, 2e-3, f"slowest period of {name}")


def test_formulas_are_numbers_and_nothing_else():
    """Evaluate arithmetic, lists, entries and names with dots; refuse attributes, keywords and unknown names."""
    assert evaluate_formula("-2**2 + [1, 2*3, 90*deg][1] / 4", {}) == -2.5
    assert evaluate_formula("twice(x)[0, 1]", {"x": 3.0, "twice": lambda x: np.array([[0.0, 2 * x]])}) == 6.0
    assert evaluate_formula("2 * mass.link3", {"mass.link3": 1.25, "mass": 7.0}) == 2.5
    attributes = ("f(q).real", "q[0].real", "f.x(1)")
    for bad in (*attributes, "__import__('os')()", "f(x=1)", "lambda: 1", "1 if 2 else 3", "[x for x in q]", "("):
        with pytest.raises(ModelError, match="is not a formula of numbers, names, lists, entries and calls"):
            evaluate_formula(bad, {"q": 1.0})
    for name in ("gravity", "q.real"):  # a name with dots is one name, never an attribute of a value
        with pytest.raises(UnknownNameError, match=f"formula: no name '{name}'"):
            evaluate_formula(name, {"q": 1.0})


HEAD = """
[lesson]
title = "T"
mechanism = "pendulum"
summary = "S"
minutes = 5
"""


@pytest.mark.parametrize(
    ("text", "message"),
    [
        ("[lesson]\ntitle = 'T'\n", r"bad.toml:1: lesson: 'mechanism' is missing"),
        (HEAD.replace("pendulum", "pendulums"), r"no built-in mechanism 'pendulums'"),
        (HEAD, r"'step' is missing"),
        (HEAD + "[[step]]\ntitle = 'A'\ntext = 'B'\ndo = 'C'\n", r"a button and what it sets belong together"),
        (HEAD + "[[step]]\ntitle = 'A'\ntext = 'B'\ndo = 'C'\nset = { script = 'x' }\n", r"script"),
        (
            HEAD + "[[step]]\ntitle = 'A'\ntext = 'B'\n[step.question]\nask = 'x'\nanswer = 'q if q else 1'\n",
            r"not a formula",
        ),
        (HEAD + "[[step]]\ntitle = 'A'\ntext = 'B'\nreading = 5\n", r"step 1, reading: a number where a list belongs"),
        (HEAD + "a = " + "[" * 3000 + "]" * 3000, r"the nesting is too deep; write flat tables"),
    ],
)
def test_wrong_files_are_refused(tmp_path, text, message):
    """Read files with missing, unknown and contradicting keys: the message names the place."""
    (tmp_path / "bad.toml").write_text(text)
    with pytest.raises(kt.KinetreeError, match=message):
        read_lesson(tmp_path / "bad.toml")
