"""Pauses of the garbage collector."""

from __future__ import annotations

import gc

import pytest

from kinetree.compiler.runtime.garbage import uncollected


def test_the_collector_continues():
    """Continue after a pause, after an error in one, and after nested ones; stay off where it was off."""
    assert gc.isenabled()
    with uncollected():
        assert not gc.isenabled()
        with uncollected():
            pass
        assert not gc.isenabled()
    assert gc.isenabled()
    with pytest.raises(ZeroDivisionError), uncollected():
        _ = 1 / 0
    assert gc.isenabled()
