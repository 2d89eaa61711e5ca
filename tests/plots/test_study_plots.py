"""Pictures of studies."""

import numpy as np
import pytest

import everyday
import kinetree as kt
from kinetree._support.tables import figure
from kinetree.studies.study import Study


def made(over: dict, dims: dict, measures: dict, failed=()) -> Study:
    count = int(np.prod(list(dims.values())))
    status = np.zeros(count, dtype=np.uint8)
    status[list(failed)] = 1
    values = {name: np.where(status, np.nan, x) for name, x in measures.items()}
    units = dict.fromkeys([*over, *measures], "N")
    return Study(dims, over, values, status, np.full(count, np.nan), units, {"mechanism": "made"})


RNG = np.random.default_rng(3)
ONE = made({"k": ("k", np.linspace(0, 3, 20))}, {"k": 20}, {"a": RNG.random(20), "b": RNG.random(20)}, failed=[3])
TWO = made(
    {"k": ("k", np.linspace(0, 3, 6)), "l": ("l", np.linspace(1, 2, 5))}, {"k": 6, "l": 5}, {"a": RNG.random(30)}
)
SAMPLED = made({n: ("run", RNG.random(50)) for n in "kl"}, {"run": 50}, {"a": RNG.random(50), "b": RNG.random(50)})
MANY = made(
    {n: ("run", RNG.random(5000)) for n in "klm"}, {"run": 5000}, {"a": RNG.random(5000), "b": RNG.random(5000)}
)


@pytest.mark.parametrize(
    ("study", "kind", "words"),
    everyday.some(
        [
            (ONE, None, "made: 20 runs (1 without result)"),
            (TWO, None, "made: 30 runs"),
            (SAMPLED, None, "made: 50 runs"),
            (MANY, None, "made: 5,000 runs"),
            (MANY, "pareto", "made: 5,000 runs"),
            (MANY, "curves", "made: 5,000 runs"),
        ]
    ),
)
def test_every_kind_is_drawn(study, kind, words, tmp_path):
    """Draw studies of one, two and more quantities, and write the picture."""
    figure = study.plot(kind=kind)
    assert figure.get_suptitle() == words
    path = study.plot(kind=kind, path=tmp_path / "study.png")
    assert path.stat().st_size > 5000


def test_maps_show_values_where_they_belong():
    """Color the cell of each pair of values by its measure."""
    (axes, _) = TWO.plot("a").axes
    drawn = axes.collections[0].get_array()
    assert np.array_equal(np.asarray(drawn).reshape(5, 6), TWO["a"].T)
    assert axes.get_xlabel() == "k  [N]"


def test_pictures_that_make_no_sense_are_refused():
    """Refuse unknown measures and kinds, a front of one measure, a map of one quantity, a study without results."""
    with pytest.raises(kt.KinetreeError, match="no measure 'c'; available: a, b"):
        ONE.plot("c")
    with pytest.raises(kt.KinetreeError, match="no kind of picture 'pie'"):
        ONE.plot(kind="pie")
    with pytest.raises(kt.InputError, match="a Pareto front has two measures"):
        ONE.plot("a", kind="pareto")
    with pytest.raises(kt.InputError, match="a map has two quantities, and the study has one"):
        ONE.plot(kind="map")
    with pytest.raises(kt.InputError, match="no run of the study finished"):
        made({"k": ("k", np.ones(1))}, {"k": 1}, {"a": np.ones(1)}, failed=[0]).plot()


def test_notebooks_show_ranges():
    """Show the range of every measure as a table."""
    html = ONE._repr_html_()
    assert ">a</td>" in html and ">N</td>" in html
    assert f"<td>{figure(np.nanmin(ONE['a']))}</td>" in html
