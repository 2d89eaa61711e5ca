"""Stores of studies: Zarr v3 folders, written shard by shard, which survive the death of any process.

A shard is a range of runs, one chunk of every array. Its chunks are written under another name and renamed, that of
the statuses last, so that a store is always valid. A shard is finished if all its chunks exist: one that lost any is
computed again. Files are not forced to the disk: after a power failure, checksums find chunks that did not get there.
"""

from __future__ import annotations

import json
import os
import shutil
import warnings
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from dataclasses import dataclass
from functools import cached_property
from pathlib import Path
from types import ModuleType
from typing import Any

import numpy as np
from numpy.typing import DTypeLike

from .._support import VERSION
from .._support.atomic import replacing
from .._support.optional import optional
from ..errors import InputError, WriteError, writing
from ..simulation.outcomes import Outcome
from .measures import Kept
from .plan import Plan

FORMAT = "kinetree-study-store-1"
"""The attribute that marks a store."""

STATUS = "status"
"""The array whose chunk is written last."""

DIFFERENCES = {
    "mechanism": "the mechanism differs",
    "over": "the samplings, samples or seed differ",
    "measures": "the measures differ, or a function or number that they read",
    "evaluation": "the motion or the options of the simulation differ, or a function or number that they read",
    "keep": "the stored columns differ",
}
"""Messages for each part in which a plan may differ from an existing store."""

METADATA = "zarr.json"
"""The file with the metadata of a store and, consolidated, of all its arrays."""

LEVEL = 3
"""The level of Zstandard: its default, fast and close to the best."""

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
        return (self.path / METADATA).exists()

    def span(self, k: int) -> tuple[int, int]:
        """Return the first run of a shard, and the first one after it."""
        return k * self.shard, min((k + 1) * self.shard, self.runs)

    def missing(self) -> list[int]:
        """Return the shards that are not finished, or that lost a chunk since."""
        done = set(range(self.shards))
        for name, axes in self.arrays.items():
            done &= self._present(name, axes)
        return sorted(set(range(self.shards)) - done)

    def _present(self, name: str, axes: int) -> set[int]:
        """Return the shards of which an array has a chunk."""
        folder = self.path / name / "c"
        try:
            found = {int(entry) for entry in os.listdir(folder) if entry.isdigit()}
        except FileNotFoundError:
            return set()
        return found if axes == 1 else {k for k in found if (self.path / self._chunk(name, k, axes)).exists()}

    @cached_property
    def arrays(self) -> dict[str, int]:
        """The arrays over runs by name, with their numbers of axes."""
        listed = json.loads((self.path / METADATA).read_bytes())["consolidated_metadata"]["metadata"]
        return {name: len(x["shape"]) for name, x in listed.items() if x["dimension_names"][0] == "run"}

    @cached_property
    def group(self) -> Any:
        """The Zarr group."""
        return package("zarr").open_group(str(self.path), mode="r")

    def write(self, k: int, arrays: dict[str, np.ndarray]) -> None:
        """Write the chunks of a shard: first under other names, then renamed, the statuses last."""
        with writing(self.path):
            folder = self._workplace(str(k))
            try:
                shutil.copyfile(self.path / METADATA, folder / METADATA)
                write_rows(folder, slice(*self.span(k)), arrays)
                for name in sorted(arrays, key=lambda name: name == STATUS):
                    chunk = self._chunk(name, k, arrays[name].ndim)
                    (self.path / chunk).parent.mkdir(parents=True, exist_ok=True)
                    os.replace(folder / chunk, self.path / chunk)
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
        """Return the place of a chunk in the folder of a store."""
        return Path(name, "c", str(k), *["0"] * (axes - 1))

    def clean(self) -> None:
        """Remove chunks that killed processes left behind; call it if no process writes."""
        shutil.rmtree(self.path / PARTIAL, ignore_errors=True)

    def read(self, names: list[str]) -> dict[str, np.ndarray]:
        """Return arrays over all runs; a damaged shard is an error that names its file.

        The statuses are read first, since workers that still run write them last: runs that count as finished then have
        all their numbers. Runs of a shard that lost a chunk since are not evaluated.
        """
        found = {name: self._whole(name) for name in sorted(names, key=lambda name: name != STATUS)}
        for k in self.missing() if STATUS in found else ():
            found[STATUS][slice(*self.span(k))] = fill(np.uint8)
        return found

    def _whole(self, name: str) -> np.ndarray:
        try:
            return self.group[name][...]
        except Exception:  # any error of a codec
            for k in sorted(self._present(name, self.group[name].ndim)):
                self.part(name, k)
            raise

    def part(self, name: str, k: int) -> np.ndarray:
        """Return a shard of an array; a damaged one is an error that names its file."""
        begin, end = self.span(k)
        array = self.group[name]
        if not (file := self.path / self._chunk(name, k, array.ndim)).exists():  # it would be read as NaN
            raise InputError(f"{file}: is missing; call the study again, which computes this shard anew")
        try:
            return array[begin:end]
        except Exception as error:  # any error of a codec
            raise InputError(
                f"{file}: shard {k} of the study is damaged ({error}); remove this file and call the study again, "
                "which computes this shard anew"
            ) from None


def open_store(plan: Plan, path: Path, shard: int | None) -> Store:
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
        _refuse_damaged(path / METADATA)
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


# --- Arrays in the format Zarr v3: their metadata, and their chunks ---


def package(name: str) -> ModuleType:
    """Return a package that stores need."""
    return optional(name, "Stores of studies", "studies")


def create_array(group: Any, name: str, shape, chunks, dtype, dims: tuple[str, ...], attributes: dict[str, Any]) -> Any:
    """Return a new array; its checksums find damaged files."""
    codecs = package("zarr.codecs")
    return group.create_array(
        name,
        shape=shape,
        chunks=chunks,
        dtype=dtype,
        fill_value=fill(dtype),
        dimension_names=dims,
        attributes=attributes,
        compressors=[codecs.ZstdCodec(level=LEVEL), codecs.Crc32cCodec()],
    )


def write_rows(folder: Path, rows: slice, arrays: dict[str, np.ndarray]) -> None:
    """Write rows of arrays into a folder that has the consolidated metadata of a store, also chunks without numbers."""
    zarr = package("zarr")
    with zarr.config.set({"array.write_empty_chunks": True}):
        group = zarr.open_group(str(folder), mode="r+")
        for name, values in arrays.items():
            group[name][rows] = values


def fill(dtype: DTypeLike) -> float:
    """Return the value of runs that were not evaluated."""
    return np.nan if np.dtype(dtype).kind == "f" else int(Outcome.NOT_EVALUATED)


def flags() -> dict[str, Any]:
    """Return the meanings of statuses by the names of the CF conventions."""
    return {
        "long_name": "how the run ended",
        "flag_values": [int(outcome) for outcome in Outcome],
        "flag_meanings": " ".join(outcome.sentence.replace(" ", "_") for outcome in Outcome),
    }


# --- Creation of stores: the metadata of all arrays of a study, and the size of its shards ---

BLOCKS = 16
"""Blocks of runs in a shard by default: some seconds of work, which makes the overhead of a shard negligible."""

SHARDS = 32
"""The least number of shards of a large study by default, so that several workers finish together."""

MEMORY = 128e6
"""The largest size of the stored columns of a shard by default [bytes]."""


def prepare_store(plan: Plan, path: str | Path, shard: int | None) -> Store:
    """Return the store of a plan, created unless it exists; the store of another study is refused."""
    path = Path(path)
    if path.exists():
        return open_store(plan, path, shard)
    runs = plan.space.runs
    store = Store(path, runs, shard or default_shard(plan))
    with writing(path):
        path.parent.mkdir(parents=True, exist_ok=True)
    try:
        with replacing(path, keep=True) as made:
            _create(plan, made, store)
    except WriteError:
        if path.exists():  # another process was first
            return open_store(plan, path, shard)
        raise
    return store


def default_shard(plan: Plan) -> int:
    """Return the number of runs in a shard: some blocks, fewer if there are few runs or much to store."""
    found = min(BLOCKS * plan.block, max(1, -(-plan.space.runs // SHARDS)))
    stored = 8 * sum(int(np.prod(kept.shape)) for kept in plan.kept)
    return max(1, min(found, int(MEMORY / stored) if stored else found))


def _create(plan: Plan, path: Path, store: Store) -> None:
    """Write the metadata of all arrays, and the times."""
    zarr = package("zarr")
    runs, shard = store.runs, store.shard
    group = zarr.open_group(str(path), mode="w-", zarr_format=3, attributes=_about(plan, store))
    for name, dtype, kept, attrs in _arrays(plan):
        dims, more = (("run",), ()) if kept is None else (("run", *kept.dims), kept.shape)
        create_array(group, name, (runs, *more), (shard, *more), dtype, dims, attrs)
    if plan.kept:
        times = plan.evaluation.times
        made = create_array(group, "time", times.shape, times.shape, times.dtype, ("time",), {"units": "s"})
        made[...] = times
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")  # an extension of Zarr v3, which xarray reads
        zarr.consolidate_metadata(str(path))
    _sort_members(path / METADATA)


def _sort_members(file: Path) -> None:
    """Sort the arrays in the metadata of a group, which otherwise have the order of the folder."""
    data = json.loads(file.read_text())
    listed = data["consolidated_metadata"]["metadata"]
    data["consolidated_metadata"]["metadata"] = dict(sorted(listed.items()))
    file.write_text(json.dumps(data, indent=2))


def _arrays(plan: Plan) -> Iterator[tuple[str, DTypeLike, Kept | None, dict[str, Any]]]:
    """Yield name, type, column and attributes of all arrays over runs."""
    for name in (*plan.space.names, *plan.measures):
        attrs = {"units": plan.units.get(name, "")}
        if name in plan.measures:
            attrs["long_name"] = str(plan.about["measures"][name])
        yield name, np.float64, None, attrs
    for kept in plan.kept:
        labels = {"labels": list(kept.labels)} if kept.labels else {}
        yield kept.name, np.float64, kept, {"units": kept.units, **labels}
    yield "failed_at", np.float64, None, {"units": "s", "long_name": "time of the failure"}
    yield STATUS, np.uint8, None, flags()


def _about(plan: Plan, store: Store) -> dict[str, object]:
    # xarray reads quantities as coordinates by this attribute of the CF conventions
    return {
        "format": FORMAT,
        "coordinates": " ".join(plan.space.names),
        **plan.about,
        "numpy": np.__version__,
        "kinetree": VERSION,
        "parts": plan.parts,
        "runs": store.runs,
        "shard": store.shard,
        "dims": dict(plan.space.dims),
        "units": dict(plan.units),
    }
