"""The robots of a public collection, if it is installed."""

from __future__ import annotations

import importlib.metadata
from collections import Counter
from collections.abc import Iterator
from pathlib import Path

import pytest

import kinetree as kt
from kinetree.errors import ModelError
from kinetree.runtime.singularity import weightless_joints


def public_robots(suffix: str = ".urdf") -> list[Path]:
    """Return the files of public robots with a suffix, the first of every folder before others."""
    try:
        files = importlib.metadata.files("example-robot-data") or []
    except importlib.metadata.PackageNotFoundError:
        pytest.skip("example-robot-data is not installed")
    paths = sorted(Path(str(f.locate())).resolve() for f in files if f.suffix == suffix)
    seen: Counter[Path] = Counter()
    ranks = {}
    for path in paths:
        ranks[path] = seen[path.parents[1]]
        seen[path.parents[1]] += 1
    return sorted(paths, key=lambda path: (ranks[path], path))


def calculable(paths: list[Path], base: str) -> Iterator[kt.System]:
    """Yield the robots that can be read and whose bodies at the ends of chains have mass."""
    for path in paths:
        try:
            system = kt.load(path, base=base)
        except ModelError:
            continue
        if system.nv and not weightless_joints(system.mechanism):
            yield system
