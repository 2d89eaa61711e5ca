"""Batches that are divided among threads however short they are."""

from __future__ import annotations

from kinetree.runtime import threads


def divide_all(monkeypatch, *functions) -> None:
    """Divide batches of functions from two samples on, as if their threads had nothing to wait for."""
    monkeypatch.setattr(threads, "LEAST", 1e-9)
    monkeypatch.setattr(threads, "LEAST_SHARE", 1e-9)
    monkeypatch.setattr(threads, "PORTION", 1e-9)
    for f in functions:
        monkeypatch.setattr(f, "shares", {})
