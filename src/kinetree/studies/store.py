"""Stores of studies: Zarr v3 folders, written shard by shard, which survive the death of any process.

A shard is a range of runs, one chunk of every array. Its chunks are written under another name and renamed, that of
the statuses last. Thus a shard is finished if its statuses exist, and a store is always valid. Files are not forced to
the disk: after a power failure, checksums find chunks that did not get there.
"""

from __future__ import annotations

import json
import os
import shutil
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from dataclasses import dataclass
from functools import cached_property
from pathlib import Path
from typing import Any

import numpy as np

from ..errors import InputError, writing
from .plan import Plan
from .zarr_arrays import encoded, package

FORMAT = "kinetree-study-store-1"
"""The attribute that marks a store."""

STATUS = "status"
"""The array whose chunk is written last."""

DIFFERENCES = {
    "mechanism": "the mechanism differs",
    "over": "the samplings, samples or seed differ",
    "measures": "the measures differ",
    "evaluation": "the motion or the options of the simulation differ",
    "keep": "the stored columns differ",
}
"""Messages for each part of a plan that is not that of an existing store."""

PARTIAL = ".partial"
"""The folder for chunks under way, inside of the store; it is removed when the study is complete."""


@dataclass(frozen=True)
class Store:
    """A folder with the results of a study: `runs` in shards of `shard` runs each."""

    path: Path
    runs: int
    shard: int

    @property
    def shards(self) -> int:
        """The number of shards."""
        return -(-self.runs // self.shard)

    @property
    def exists(self) -> bool:
        """Whether the folder is there, with its metadata."""
        return (self.path / "zarr.json").exists()

    def span(self, k: int) -> tuple[int, int]:
        """Return the first run of a shard, and the first one after it."""
        return k * self.shard, min((k + 1) * self.shard, self.runs)

    def finished(self, k: int) -> bool:
        """Return whether a shard is finished."""
        return self._chunk(STATUS, k, 1).exists()

    def missing(self) -> list[int]:
        """Return the shards that are not finished."""
        try:
            done = {int(name) for name in os.listdir(self.path / STATUS / "c") if name.isdigit()}
        except FileNotFoundError:
            done = set()
        return [k for k in range(self.shards) if k not in done]

    @cached_property
    def group(self) -> Any:
        """The Zarr group."""
        return package("zarr").open_group(str(self.path), mode="r")

    def write(self, k: int, arrays: dict[str, np.ndarray]) -> None:
        """Write the chunks of a shard: first under other names, then renamed, the statuses last."""
        with writing(self.path):
            folder = self._workplace(str(k))
            try:
                for name, values in arrays.items():
                    (folder / name).write_bytes(encoded(values, self.shard))
                for name in sorted(arrays, key=lambda name: name == STATUS):
                    place = self._chunk(name, k, arrays[name].ndim)
                    place.parent.mkdir(parents=True, exist_ok=True)
                    os.replace(folder / name, place)
            finally:
                self._remove(folder)

    @contextmanager
    def attempt(self, k: int, token: str) -> Iterator[int]:
        """Yield the number of processes that died on a shard in the call of a study with this token.

        Each has left a mark, which is removed at any other end.
        """
        before = self.marked(token).count(k)
        with writing(self.path):
            mark = self._workplace(f"{k}.{token}")
        try:
            yield before
        finally:
            self._remove(mark)

    def marked(self, token: str) -> list[int]:
        """Return the shard of each mark in the call of a study with this token, in order."""
        try:
            names = [name.split(".") for name in os.listdir(self.path / PARTIAL)]
        except FileNotFoundError:
            return []
        return sorted(int(name[0]) for name in names if name[1] == token)

    def _workplace(self, name: str) -> Path:
        """Return a new folder, for the chunks of a shard or as a mark."""
        folder = self.path / PARTIAL / f"{name}.{os.getpid()}.{os.urandom(4).hex()}"
        for _ in range(100):
            with suppress(FileNotFoundError):  # another process removed the empty folder above
                folder.mkdir(parents=True)
                return folder
        raise FileNotFoundError(f"{folder.parent} cannot be created")

    def _remove(self, folder: Path) -> None:
        shutil.rmtree(folder, ignore_errors=True)
        with suppress(OSError):  # others still write
            (self.path / PARTIAL).rmdir()

    def _chunk(self, name: str, k: int, axes: int) -> Path:
        return self.path / name / "c" / "/".join([str(k), *["0"] * (axes - 1)])

    def clean(self) -> None:
        """Remove chunks that killed processes left behind; call it if no process writes."""
        shutil.rmtree(self.path / PARTIAL, ignore_errors=True)

    def read(self, names: list[str]) -> dict[str, np.ndarray]:
        """Return arrays over all runs; a damaged shard is an error that names its file.

        The statuses are read first, since workers that still run write them last: runs that count as finished then have
        all their numbers.
        """
        return {name: self._whole(name) for name in sorted(names, key=lambda name: name != STATUS)}

    def _whole(self, name: str) -> np.ndarray:
        try:
            return self.group[name][...]
        except Exception:  # any error of a codec
            for k in range(self.shards):
                self.part(name, k)
            raise

    def part(self, name: str, k: int) -> np.ndarray:
        """Return a shard of an array; a damaged one is an error that names its file."""
        begin, end = self.span(k)
        array = self.group[name]
        try:
            return array[begin:end]
        except Exception as error:  # any error of a codec
            raise InputError(
                f"{self._chunk(name, k, array.ndim)}: shard {k} of the study is damaged ({error}); remove "
                f"{self._chunk(STATUS, k, 1)} and call the study again, which computes this shard anew"
            ) from None


def opened(plan: Plan, path: Path, shard: int | None) -> Store:
    """Return the existing store of a plan, or raise an error that names the difference."""
    about = attributes(path)
    for part, value in plan.parts.items():
        if about["parts"].get(part) != value:
            raise InputError(
                f"{path}: is the store of another study: {DIFFERENCES[part]}; give another path, or the arguments with "
                "which it was made"
            )
    if shard is not None and shard != about["shard"]:
        raise InputError(f"{path}: has shards of {about['shard']} runs, and shard is {shard}; leave shard out")
    return Store(path, about["runs"], about["shard"])


def attributes(path: Path, remedy: str = "give another path, or remove it") -> dict[str, Any]:
    """Return the attributes of a store; other folders are refused."""
    zarr = package("zarr")
    try:
        about = dict(zarr.open_group(str(path), mode="r").attrs)
    except Exception:  # anything that zarr cannot read was not written here
        _refuse_damaged(path / "zarr.json")
        about = {}
    if about.get("format") != FORMAT:
        raise InputError(f"{path}: exists and is not the store of a study; {remedy}")
    return about


def _refuse_damaged(file: Path) -> None:
    """Raise InputError for metadata beside which the results of a study are probably whole."""
    try:
        json.loads(file.read_bytes())
    except (ValueError, RecursionError) as error:
        raise InputError(
            f"{file}: is damaged ({error}); the arrays beside it may be whole. Start the same study in another folder, "
            "and copy its zarr.json to here"
        ) from None
    except OSError:  # there is none
        return
