"""CSV: lines of `# key: value` in JSON, a heading with units, then numbers with all their bits."""

from __future__ import annotations

import csv
import json
from itertools import islice
from math import prod
from pathlib import Path

import numpy as np

from ..._support.atomic import replacing
from ...algebra.arrays import Numbers
from .content import Content

# --- Conversion of arrays to one table of named columns, with a row per sample of each run, and back ---

SHARED = ("t", "reference")
"""Arrays with one row per sample that all runs of a batch share."""


def headings(content: Content) -> list[str]:
    """Return the names of the columns with their units; a batch has the number of the run as its first column."""
    named = [
        f"{label} [{unit}]"
        for entry in content.about["arrays"]
        for label, unit in zip(entry["labels"], entry["units"], strict=True)
    ]
    return (["run [1]"] if content.about["batch"] else []) + named


def to_table(content: Content) -> Numbers:
    """Return all numbers as [rows, columns]; values that are constant in a run are repeated in each of its rows."""
    batch = tuple(content.about["batch"])
    nt = len(content.arrays["t"])
    rows = (prod(batch), nt)
    blocks = [np.repeat(np.arange(rows[0], dtype=float), nt)[:, None]] if batch else []
    for name, array in content.arrays.items():
        if name == "parameters" and (batch or array.ndim == 1):  # a single run has [nt, np] where they change
            array = np.broadcast_to(np.expand_dims(array, -2), (*batch, nt, array.shape[-1]))
        elif name in SHARED:
            array = np.broadcast_to(array, (*batch, *array.shape))
        width = prod(array.shape[len(batch) + 1 :])
        blocks.append(array.reshape(rows[0] * nt, width))
    return np.concatenate(blocks, axis=1)


def described_rows(about: dict) -> int:
    """Return the number of rows of the table that `about` describes."""
    return prod(about["batch"]) * about["arrays"][0]["shape"][0]


def require_rows(about: dict, count: int) -> None:
    """Refuse a table with another number of rows than the described one."""
    rows = described_rows(about)
    if count != rows:
        raise ValueError(f"{count} rows, but {rows} are described")


def from_table(about: dict, table: Numbers) -> Content:
    """Return the content of a table; its columns follow from the shapes in `about`."""
    batch = tuple(about["batch"])
    arrays, at = {}, 1 if batch else 0
    nt = about["arrays"][0]["shape"][0]
    for entry in about["arrays"]:
        shape, width = tuple(entry["shape"]), len(entry["labels"])
        block = table[:, at : at + width]
        at += width
        if entry["name"] in SHARED:
            arrays[entry["name"]] = block[:nt].reshape(shape)
        elif entry["name"] == "parameters" and (batch or len(shape) == 1):
            arrays["parameters"] = block.reshape(*batch, nt, width)[..., 0, :][(0,) * (len(batch) + 1 - len(shape))]
        else:
            arrays[entry["name"]] = block.reshape(shape)
    if at != table.shape[1]:
        raise ValueError(f"{table.shape[1]} columns, but {at} are described")
    return Content(about, arrays)


HEADER = 1000
"""Largest number of describing lines, of which `write` writes some dozen."""


def write(content: Content, path: Path) -> None:
    """Write a CSV file."""
    with replacing(path) as written, open(written, "x", encoding="utf-8", newline="") as file:
        for key, value in content.about.items():
            file.write(f"# {key}: {json.dumps(value)}\n")
        writer = csv.writer(file, lineterminator="\n")
        writer.writerow(headings(content))
        writer.writerows(to_table(content).tolist())


def read(path: Path) -> Content:
    """Read a CSV file that `write` wrote."""
    about: dict[str, object] = {}
    at = 0
    with open(path, encoding="utf-8", newline="") as file:
        line = file.readline()
        while line.startswith("#"):
            if len(about) == HEADER:
                raise ValueError(f"more than {HEADER} lines before the columns")
            key, _, value = line[1:].partition(":")
            about[key.strip()] = json.loads(value)
            at = file.tell()
            line = file.readline()
        if "arrays" not in about:
            return Content(about, {})
        file.seek(at)
        rows = csv.reader(file)
        expected = headings(Content(about, {}))
        if next(rows) != expected:
            raise ValueError("the heading does not match the described columns")
        most = described_rows(about)
        found = list(islice(filter(None, rows), most + 1))
        require_rows(about, len(found))
        table = np.array(found, dtype=float).reshape(-1, len(expected))
    return from_table(about, table)
