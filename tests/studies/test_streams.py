"""Random numbers by index."""

import numpy as np
import pytest

from kinetree.studies.samplings import permute, sobol_points, uniforms


@pytest.mark.parametrize(("start", "stop"), [(0, 7), (3, 4), (5, 18), (998, 1001)])
def test_parts_of_a_stream_are_those_of_the_whole(start, stop):
    """Draw a part of a stream with the same bits as the whole."""
    assert np.array_equal(uniforms(7, "k", start, stop), uniforms(7, "k", 0, 1001)[start:stop])
    assert np.array_equal(sobol_points(7, ["a", "b"], start, stop), sobol_points(7, ["a", "b"], 0, 1001)[start:stop])


def test_streams_differ_by_name_and_seed():
    """Draw other numbers for another name or seed, all inside of (0, 1)."""
    one = uniforms(1, "k", 0, 1000)
    assert not np.array_equal(one, uniforms(2, "k", 0, 1000))
    assert not np.array_equal(one, uniforms(1, "l", 0, 1000))
    assert 0.0 < one.min() < 0.01 < 0.99 < one.max() < 1.0
    assert abs(one.mean() - 0.5) < 0.03


@pytest.mark.parametrize("count", [1, 2, 3, 17, 64, 1000, 4097])
def test_permutations_are_permutations_by_index(count):
    """Permute each index on its own, and meet every number once."""
    whole = permute(3, "k", np.arange(count), count)
    assert sorted(whole.tolist()) == list(range(count))
    some = np.arange(count // 3, count // 2 + 1)
    assert np.array_equal(permute(3, "k", some, count), whole[some])
    if count > 16:
        assert np.abs(np.corrcoef(np.arange(count), whole)[0, 1]) < 0.5
