"""Creation of stores: the size of shards."""

from __future__ import annotations

import kinetree as kt
from kinetree.studies.plan import Plan, StudyOptions, plan_of
from kinetree.studies.store import default_shard


def test_shards_bound_memory(tmp_path, monkeypatch):
    """Choose shards by blocks, by the number of runs, and by the size of stored columns."""
    options = {"cycle": {"drive": "main_bearing", "speed": 3.0}, "steps": 1000, "samples": 1_000_000}
    given = ({"m_c": kt.uniform(0.0, 1.0)}, {"x": "rms control.main_bearing"})
    plan = plan_of(kt.load("press"), *given, StudyOptions(**options))
    assert default_shard(plan) == 16 * plan.block
    kept = plan_of(kt.load("press"), *given, StudyOptions(**options, keep=("q",)))
    assert default_shard(kept) * 8 * 3 * 1001 <= 128e6
    monkeypatch.setattr(Plan, "block", 1000)
    assert default_shard(plan_of(kt.load("press"), *given, StudyOptions(**options | {"samples": 64}))) == 2
