"""The modules of benchmarks/, which import each other by name."""

from __future__ import annotations

from pathlib import Path

import pytest


@pytest.fixture(autouse=True)
def importable(monkeypatch):
    """Put the folder of benchmarks on the path, as it is when they run."""
    monkeypatch.syspath_prepend(str(Path(__file__).resolve().parents[2] / "benchmarks"))
