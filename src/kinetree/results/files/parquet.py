"""Parquet: the table by columns, for data frames and databases. Requires pyarrow."""

from __future__ import annotations

import json
from pathlib import Path

import numpy as np

from ...packages import optional
from .atomic import replacing
from .content import Content
from .sizes import refuse_large
from .table import from_table, headings, to_table

KEY = b"kinetree"
"""The entry of the schema with the describing table, as JSON."""


def write(content: Content, path: Path) -> None:
    """Write a Parquet file."""
    pyarrow = optional("pyarrow", "Parquet files")
    files = optional("pyarrow.parquet", "Parquet files")
    columns = [pyarrow.array(column) for column in to_table(content).T]
    schema = pyarrow.schema([(name, pyarrow.float64()) for name in headings(content)])
    schema = schema.with_metadata({KEY: json.dumps(content.about).encode()})
    table = pyarrow.Table.from_arrays(columns, schema=schema)
    with replacing(path) as written:
        files.write_table(table, written, compression="zstd", write_page_checksum=True)


def read(path: Path) -> Content:
    """Read a Parquet file that `write` wrote."""
    files = optional("pyarrow.parquet", "Parquet files")
    with open(path, "rb") as stream:
        shape = files.read_metadata(stream)
        refuse_large(8 * shape.num_rows * shape.num_columns, path)
        table = files.read_table(stream, page_checksum_verification=True)
    metadata = table.schema.metadata or {}
    if KEY not in metadata:
        return Content({}, {})
    columns = [column.to_numpy() for column in table.columns]
    return from_table(json.loads(metadata[KEY]), np.stack(columns, axis=1))
