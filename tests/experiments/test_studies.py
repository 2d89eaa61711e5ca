"""Study files."""

from pathlib import Path

import numpy as np
import pytest

import kinetree as kt
from kinetree.experiments.studies import read_study_file
from kinetree.studies.samplings import Given, Grid
from kinetree.studies.study import evaluate_plan
from press import TURN

EXAMPLES = Path(__file__).resolve().parents[2] / "examples"
GOOD = (
    """
[study]
mechanism = "press"
samples = 4
seed = 3
[over]
m_c = { grid = [0, "2*3", 4] }
r = { latin = [0.04, 0.06] }
k = { values = [0, 100] }
[parameters]
k_0 = 0.29
"""
    + TURN
)


def test_a_file_gives_the_study_of_the_same_call(tmp_path):
    """Read a file, and find the numbers of the same study in Python."""
    (tmp_path / "press.toml").write_text(GOOD)
    found = evaluate_plan(read_study_file(tmp_path / "press.toml").plan)
    same = kt.study(
        kt.load("press"),
        over={"m_c": kt.grid(0, 6, 4), "r": kt.latin(0.04, 0.06), "k": kt.grid([0, 100])}, samples=4, seed=3, steps=12,
        parameters={"k_0": 0.29}, cycle={"drive": "main_bearing", "speed": 20.0},
        measures={"peak": kt.peak("control.main_bearing")},
    )  # fmt: skip
    assert found.shape == same.shape == (4, 2, 4)
    assert np.array_equal(found["peak"], same["peak"])
    assert found.plan.hash == same.plan.hash


@pytest.mark.parametrize("name", ["press_study.toml", "torso_study.toml", "press_sensitivity.toml"])
def test_examples_are_read(name):
    """Read every example."""
    file = read_study_file(EXAMPLES / name)
    assert file.description
    assert file.plan.space.runs > 200


def test_experiments_are_varied(tmp_path):
    """Vary the start of an experiment file."""
    (tmp_path / "fall.toml").write_text(
        '[experiment]\nmechanism = "planar_2r"\n[start]\nq = [0.3, 0.2]\n[run]\nduration = 0.2\nsamples = 11\n'
    )
    (tmp_path / "study.toml").write_text(
        '[simulate]\nexperiment = "fall.toml"\n[over]\n"q.joint2" = { column = [0.1, 0.5] }\n'
        '[measures]\nend = "at_end q.joint1"\n'
    )
    plan = read_study_file(tmp_path / "study.toml").plan
    assert isinstance(dict(plan.space.over)["q.joint2"], Given)
    found = evaluate_plan(plan)
    one = kt.simulate(kt.load("planar_2r"), [0.3, 0.5], times=np.linspace(0, 0.2, 11))
    assert found["end"][1] == pytest.approx(one.q[-1, 0], rel=1e-9)


PLANNED = (
    """
[study]
mechanism = "press"
samples = 8
seed = 3
keep = "q"
[over]
m_c = { uniform = [0, 6] }
k = { normal = [100, 20] }
[sensitivity]
method = "sobol"
second_order = true
"""
    + TURN
)


def test_schemes_are_those_of_the_same_call(tmp_path):
    """Read the scheme of Sobol indices and of Morris' effects, with the samples and the seed of the study."""
    pytest.importorskip("SALib")
    path = tmp_path / "press.toml"
    path.write_text(PLANNED)
    plan, over = read_study_file(path).plan, {"m_c": (0, 6), "k": kt.normal(100, 20)}
    assert plan.space.over == tuple(kt.sensitivity(over, samples=8, seed=3, second_order=True).items())
    assert plan.keep == ("q",)
    assert plan.about["sensitivity"]["method"] == "sobol"
    path.write_text(
        PLANNED.replace('"sobol"\nsecond_order = true', '"morris"\nlevels = 6').replace("normal", "uniform")
    )
    over = {"m_c": (0, 6), "k": kt.uniform(20, 100)}
    path.write_text(path.read_text().replace("[100, 20]", "[20, 100]"))
    found = dict(read_study_file(path).plan.space.over)
    assert found == kt.sensitivity(over, method="morris", samples=8, seed=3, levels=6)


@pytest.mark.parametrize(
    ("old", "new", "message"),
    [
        ("sobol", "sobl", "no method of sensitivity 'sobl'; did you mean 'sobol'?"),
        ("second_order", "second", "sensitivity: no key 'second'; did you mean 'second_order'?"),
        ("method =", "# ", "sensitivity: 'method' is missing; add method"),
        ("samples = 8", "samples = 9", "sensitivity: samples is 9; the Sobol sequence is balanced for powers of two"),
        (
            "uniform = [0, 6]",
            "grid = [0, 6, 3]",
            "sensitivity: 'm_c' varies over Grid(values=(0.0, 3.0, 6.0)); give an",
        ),
        ('"q"', '"qq"', "no column 'qq'"),
    ],
)
def test_faulty_schemes_are_refused(old, new, message, tmp_path):
    """Name file and place of a fault in the scheme of a sensitivity study."""
    pytest.importorskip("SALib")
    require_refused(PLANNED.replace(old, new, 1), message, tmp_path)


@pytest.mark.parametrize(
    ("old", "new", "message"),
    [
        ("m_c =", "m_d =", "no free parameter or initial state 'm_d'; did you mean 'm_c'?"),
        ("grid =", "gird =", "over, m_c: no key 'gird'"),
        ('[0, "2*3", 4]', "[0, 4]", "over, m_c, grid: 2 numbers; give 3"),
        ('[0, "2*3", 4]', "[0, 6, 0]", "over, m_c, grid: the n of grid is 0; give 1 or more values"),
        ("{ values = [0, 100] }", "{ }", "over, k: 0 samplings; give one of grid, latin"),
        ("peak control", "peek control", "measure 'peak': no reduction 'peek'; did you mean 'peak'?"),
        ("[cycle]", "[cycles]", "no table 'cycles'; did you mean 'cycle'?"),
        ("samples = 4", "samples = 4.5", "study, samples: 4.5 where a whole number belongs"),
        ('"press"', '"pres"', "no library mechanism 'pres'; did you mean 'press'?"),
    ],
)
def test_faulty_files_are_refused(old, new, message, tmp_path):
    """Name file and place of every fault."""
    require_refused(GOOD.replace(old, new, 1), message, tmp_path)


def require_refused(text, message, folder):
    """Require that a study file of this text is refused with its path and a message."""
    path = folder / "study.toml"
    path.write_text(text)
    with pytest.raises(kt.ModelError) as caught:
        read_study_file(path)
    assert str(path) in str(caught.value)
    assert message in str(caught.value)


def test_grids_of_values_keep_their_order(tmp_path):
    """Take listed values as they are."""
    (tmp_path / "press.toml").write_text(GOOD.replace("[0, 100]", "[100, 0, 50]"))
    plan = read_study_file(tmp_path / "press.toml").plan
    assert dict(plan.space.over)["k"] == Grid((100.0, 0.0, 50.0))
