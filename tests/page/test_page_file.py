"""The data of a page: arrays and tables come back as they were."""

from __future__ import annotations

import numpy as np
import pytest

from kinetree.page.file import pack, unpack


def test_data_come_back():
    """Pack tables with arrays of all types, bytes and odd texts, and unpack them."""
    data = {
        "a": np.linspace(0.1, 0.7, 7), "b": [np.float32([1.5, -2.25]), {"c": np.uint32([3, 4, 5])}],
        "bytes": b"\0asm\x01", "text": "</script>@@DATA@@\u2028", "none": None, "numbers": [0.1, -3],
    }  # fmt: skip
    text = pack(data)
    assert text.isascii() and "<" not in text
    again = unpack(text)
    assert np.array_equal(again["a"], data["a"]) and again["a"].dtype == np.float64
    assert np.array_equal(again["b"][0], data["b"][0]) and again["b"][0].dtype == np.float32
    assert np.array_equal(again["b"][1]["c"], [3, 4, 5])
    assert again["bytes"].tobytes() == data["bytes"]
    assert (again["text"], again["none"], again["numbers"]) == (data["text"], None, [0.1, -3])


def test_numbers_that_are_not_finite_are_refused():
    """Pack a NaN outside of an array, which JSON does not have."""
    with pytest.raises(ValueError, match="not JSON compliant"):
        pack({"x": float("nan")})
