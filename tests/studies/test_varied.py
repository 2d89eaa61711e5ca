"""The varied quantities of a study along its dimensions."""

import numpy as np

import kinetree as kt
from kinetree.studies.space import Space, Varied, space_of

OVER = {"a": kt.grid(1.0, 2.0, 3), "u": kt.uniform(0.0, 1.0), "b": kt.grid([5.0, 7.0]), "s": kt.sobol(0.0, 9.0)}


def test_quantities_have_the_values_of_the_runs():
    """Return dimensions and values whose combinations are the values of all runs, bit for bit."""
    space = space_of(OVER, 7, 3)
    found = Varied(space)
    assert list(found) == list(OVER) and len(found) == 4
    assert repr(found) == repr(dict(found)) and "('b', array([5., 7.]))" in repr(found)
    assert [dim for dim, _ in found.values()] == ["a", "sample", "b", "sample"]
    runs = np.indices(space.shape).reshape(3, -1)
    for name, values in space.values(0, space.runs).items():
        dim, along = found[name]
        assert np.array_equal(along[runs[list(space.dims).index(dim)]], values), name


def test_a_stored_study_samples_no_more_than_its_shards(tmp_path, monkeypatch):
    """Draw the samples of all runs when they are first read, and only once."""
    drawn, plain = [], Space.sampled

    def sampled(space, start, stop):
        drawn.append(stop - start)
        return plain(space, start, stop)

    monkeypatch.setattr(Space, "sampled", sampled)
    study = kt.study(
        kt.load("press"), {"m_c": kt.uniform(0.1, 9.0)}, samples=9, measures={"x": "rms control.main_bearing"},
        cycle={"drive": "main_bearing", "speed": 3.0}, steps=8, store=tmp_path / "s.zarr", shard=4,
    )  # fmt: skip
    assert max(drawn) == 4
    assert 0.1 < study["m_c"].min() < study["m_c"].max() < 9.0
    assert drawn.count(9) == 1
