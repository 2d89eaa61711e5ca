"""Stores of studies: Zarr v3 folders, written shard by shard, which survive the death of any process.

A shard is a range of runs, one chunk of every array. Its chunks are written under another name and renamed, that of
the statuses last. Thus a shard is finished if its statuses exist, and a store is always valid. Files are not forced to
the disk: after a power failure, checksums find chunks that did not get there.
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
from typing import Any

import numpy as np

from ..errors import InputError, writing
from ..results.files.atomic import optional, temporary
from ..version import VERSION
from .evaluating import Block
from .kept_columns import Kept
from .labelled import flags
from .plan import Plan
from .statuses import Status

FORMAT = "kinetree-study-store-1"
"""The attribute that marks a store."""

STATUS = "status"
"""The array whose chunk is written last."""

PARTIAL = ".partial"
"""The folder for chunks under way, inside of the store; it is removed when the study is complete."""

BLOCKS = 16
"""Blocks of runs in a shard by default: some seconds of work, which makes the overhead of a shard negligible."""

LEVEL = 3
"""The level of Zstandard: its default, fast and close to the best."""

SHARDS = 32
"""The least number of shards of a large study by default, so that several workers finish together."""

MEMORY = 128e6
"""The largest size of the stored columns of a shard by default [bytes]."""


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
        return optional("zarr", "Stores of studies", "studies").open_group(str(self.path), mode="r")

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


def shard_arrays(plan: Plan, block: Block, start: int, stop: int) -> dict[str, np.ndarray]:
    """Return all arrays of a shard by name: quantities, measures, stored columns, and statuses."""
    arrays: dict[str, np.ndarray] = {**plan.space.values(start, stop), **block.measures, **block.kept}
    return arrays | {"failed_at": block.failed_at, STATUS: block.status}


def encoded(values: np.ndarray, count: int) -> bytes:
    """Return the bytes of a chunk of `count` rows as Zarr writes them: little-endian, by Zstandard, with a CRC-32C."""
    checksum = optional("google_crc32c", "Stores of studies", "studies").value
    zstd = optional("numcodecs.zstd", "Stores of studies", "studies")
    if len(values) < count:
        rest = np.full((count - len(values), *values.shape[1:]), _fill(values.dtype), dtype=values.dtype)
        values = np.concatenate([values, rest])
    plain = np.ascontiguousarray(values, dtype=values.dtype.newbyteorder("<")).tobytes()
    packed = bytes(zstd.Zstd(level=LEVEL, checksum=False).encode(plain))
    return packed + checksum(packed).to_bytes(4, "little")


def _fill(dtype: Any) -> Any:
    """Return the value of runs that were not evaluated."""
    return np.nan if np.dtype(dtype).kind == "f" else int(Status.NOT_EVALUATED)


def prepared(plan: Plan, path: str | Path, shard: int | None) -> Store:
    """Return the store of a plan, created unless it exists; that of another study is refused."""
    path = Path(path)
    if path.exists():
        return opened(plan, path, shard)
    runs = plan.space.runs
    store = Store(path, runs, shard or default_shard(plan))
    with writing(path):
        path.parent.mkdir(parents=True, exist_ok=True)
        made = temporary(path)
        try:
            _create(plan, made, store)
            os.replace(made, path)
        except BaseException:
            shutil.rmtree(made, ignore_errors=True)
            if path.exists():  # another process was first
                return opened(plan, path, shard)
            raise
    return store


def opened(plan: Plan, path: Path, shard: int | None) -> Store:
    """Return the existing store of a plan, or raise an error that names the difference."""
    about = attributes(path)
    for part, value in plan.parts.items():
        if about["parts"].get(part) != value:
            raise InputError(
                f"{path}: is the store of another study: {WORDS[part]} differ{'s' * (part in ONE)}; give another path, "
                "or the arguments with which it was made"
            )
    if shard is not None and shard != about["shard"]:
        raise InputError(f"{path}: has shards of {about['shard']} runs, and shard is {shard}; leave shard out")
    return Store(path, about["runs"], about["shard"])


WORDS = {"mechanism": "the mechanism", "over": "the samplings, samples or seed", "measures": "the measures",
         "evaluation": "the motion or the options of the simulation", "keep": "the stored columns"}  # fmt: skip
"""The parts of a study in messages."""
ONE = ("mechanism",)


def attributes(path: Path, remedy: str = "give another path, or remove it") -> dict[str, Any]:
    """Return the attributes of a store; other folders are refused."""
    zarr = optional("zarr", "Stores of studies", "studies")
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


def default_shard(plan: Plan) -> int:
    """Return the number of runs in a shard: some blocks, fewer if there are few runs or much to store."""
    found = min(BLOCKS * plan.block, max(1, -(-plan.space.runs // SHARDS)))
    stored = 8 * sum(int(np.prod(kept.shape)) for kept in plan.kept)
    return max(1, min(found, int(MEMORY / stored) if stored else found))


def _create(plan: Plan, path: Path, store: Store) -> None:
    """Write the metadata of all arrays, and the times."""
    zarr = optional("zarr", "Stores of studies", "studies")
    group, runs, shard = zarr.open_group(str(path), mode="w-", zarr_format=3), store.runs, store.shard
    for name, dtype, kept, attrs in _arrays(plan):
        dims, more = (("run",), ()) if kept is None else (("run", *kept.dims), kept.shape)
        made = _created(group, name, (runs, *more), (shard, *more), dtype, dims)
        made.attrs.update(attrs)
    if plan.kept:
        times = plan.evaluation.times
        made = _created(group, "time", times.shape, times.shape, times.dtype, ("time",))
        made[...] = times
        made.attrs.update({"units": "s"})
    group.attrs.update(_about(plan, store))
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")  # an extension of Zarr v3, which xarray reads
        zarr.consolidate_metadata(str(path))
    _sort_members(path / "zarr.json")


def _sort_members(file: Path) -> None:
    """Sort the arrays in the metadata of a group, whose order is otherwise that of the folder."""
    data = json.loads(file.read_text())
    listed = data["consolidated_metadata"]["metadata"]
    data["consolidated_metadata"]["metadata"] = dict(sorted(listed.items()))
    file.write_text(json.dumps(data, indent=2))


def _arrays(plan: Plan) -> Iterator[tuple[str, Any, Kept | None, dict[str, Any]]]:
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


def _about(plan: Plan, store: Store) -> dict[str, Any]:
    # xarray reads quantities as coordinates by this attribute of the CF conventions
    return {
        "format": FORMAT, "coordinates": " ".join(plan.space.names), **plan.about, "numpy": np.__version__,
        "kinetree": VERSION, "parts": plan.parts, "runs": store.runs, "shard": store.shard,
        "dims": dict(plan.space.dims), "units": dict(plan.units),
    }  # fmt: skip


def _created(group: Any, name: str, shape, chunks, dtype, dims: tuple[str, ...]) -> Any:
    """Return a new array; its checksums find damaged files."""
    codecs = optional("zarr.codecs", "Stores of studies", "studies")
    return group.create_array(
        name, shape=shape, chunks=chunks, dtype=dtype, fill_value=_fill(dtype), dimension_names=dims,
        compressors=[codecs.ZstdCodec(level=LEVEL), codecs.Crc32cCodec()],
    )  # fmt: skip
