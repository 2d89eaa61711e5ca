"""Pauses of the garbage collector."""

from __future__ import annotations

import gc

import pytest

from kinetree.backends.cuda.code import pause_collector


def test_the_collector_continues():
    """Continue after a pause, after an error in one, and after nested ones; stay off where it was off."""
    assert gc.isenabled()
    with pause_collector():
        assert not gc.isenabled()
        with pause_collector():
            pass
        assert not gc.isenabled()
    assert gc.isenabled()
    with pytest.raises(ZeroDivisionError), pause_collector():
        _ = 1 / 0
    assert gc.isenabled()
