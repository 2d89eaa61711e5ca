"""CSV: lines of `# key: value` in JSON, a heading with units, then numbers with all their bits."""

from __future__ import annotations

import csv
import json
from itertools import islice
from pathlib import Path
from typing import Any

import numpy as np

from .atomic import replacing
from .content import Content
from .table import described_rows, from_table, headings, require_rows, to_table

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
    about: dict[str, Any] = {}
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
