"""Batches that are divided among threads however short they are."""

from __future__ import annotations

from kinetree.compiler.runtime import divided, shared


def divide_all(monkeypatch, *functions) -> None:
    """Divide batches of functions from two samples on, as if their threads had nothing to wait for."""
    monkeypatch.setattr(divided, "LEAST", 1e-9)
    monkeypatch.setattr(shared, "LEAST", 1e-9)
    monkeypatch.setattr(shared, "PORTION", 1e-9)
    for f in functions:
        monkeypatch.setattr(f, "shares", {})
