"""Settings of Dask that the benchmark of studies shares with the tutorial."""

from __future__ import annotations

import re
from pathlib import Path

import pytest

dask = pytest.importorskip("dask")
distributed = pytest.importorskip("distributed")

PAGE = Path(__file__).resolve().parents[2] / "docs" / "many-machines.md"


def test_the_settings_of_the_tutorial():
    """Read the settings of the tutorial as Dask does: they are those of the benchmark, and Dask has such settings."""
    from study_workers import CALM

    lines = re.findall(r"^export (DASK_\w+)=(\w+)$", PAGE.read_text(), re.MULTILINE)
    told = dask.config.collect_env(dict(lines))
    known = dask.config.merge(*dask.config.collect_yaml([str(Path(distributed.__file__).parent)]))
    for key, value in CALM.items():
        assert dask.config.get(key, config=told) == value
        assert dask.config.get(key, config=known) != value
    assert len(lines) == len(CALM)
