"""Stores of studies: the order in which numbers are read."""

from __future__ import annotations

from kinetree.studies.store import Store


def test_statuses_are_read_before_all_other_numbers(tmp_path, monkeypatch):
    """Read a store while a worker writes: runs that count as finished have their numbers."""
    read: list[str] = []
    monkeypatch.setattr(Store, "_whole", lambda self, name: read.append(name))
    monkeypatch.setattr(Store, "missing", lambda self: [])
    Store(tmp_path / "study.zarr", 4, 2).read(["peak", "failed_at", "status"])
    assert read == ["status", "peak", "failed_at"]
