"""Pages of derivatives: motions of large robots are computed twice."""

from __future__ import annotations

from collections import Counter

import numpy as np
import pytest

import everyday
from kinetree.compiler.derive import build
from kinetree.compiler.derive.build import values_in_use
from kinetree.compiler.ir.operations import Op
from kinetree.compiler.lower.build import Request
from strategies import random_mechanism
from tolerance import assert_close

WRT = ("q", "qd", "tau")


@everyday.long
def test_motions_are_computed_twice_where_many_values_are_in_use(monkeypatch: pytest.MonkeyPatch):
    """Allow no value in use, and find more operations but the same functions, fewer values in use, the same results."""
    mechanism = random_mechanism(["free", *["revolute"] * 6], [-1, 0, 1, 2, 0, 4, 5], 4)
    request = Request("forward_dynamics").checked(mechanism)
    once = build.page(mechanism, request, WRT)
    monkeypatch.setattr(build, "CACHED", 0)
    twice = build.page(mechanism, request, WRT)
    assert once is not None and twice is not None
    assert len(twice.ops) > len(once.ops)
    assert values_in_use(twice) / len(twice.ops) < 0.9 * values_in_use(once) / len(once.ops)
    kinds = [Counter(op[0] for op in p.ops) for p in (once, twice)]
    assert all(kinds[0][op] == kinds[1][op] for op in (Op.SIN, Op.COS, Op.SQRT, Op.DIV, Op.INPUT))
    rng = np.random.default_rng(5)
    state = [rng.normal(size=(3, a.size)) for a in once.inputs]
    for a, b in zip(once.interpret(*state), twice.interpret(*state), strict=True):
        assert_close(b, a, 1e-12 * np.abs(a).max())
