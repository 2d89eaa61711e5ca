"""Parquet: the table by columns, for data frames and databases. Requires pyarrow."""

from __future__ import annotations

import json
from pathlib import Path

import numpy as np

from ..._support.atomic import replacing
from ..._support.optional import optional
from .content import Content, refuse_large
from .csv import from_table, headings, require_rows, to_table

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
        schema = shape.schema.to_arrow_schema()
        about = json.loads((schema.metadata or {}).get(KEY, b"{}"))
        if not isinstance(about, dict) or "arrays" not in about:
            return Content({}, {})
        require_rows(about, shape.num_rows)
        if schema.names != headings(Content(about, {})) or any(str(kind) != "double" for kind in schema.types):
            raise ValueError("the columns are not the described ones, of numbers in double precision")
        refuse_large(8 * shape.num_rows * shape.num_columns, path, path.stat().st_size)
        table = files.read_table(stream, page_checksum_verification=True)
    return from_table(about, np.stack([column.to_numpy() for column in table.columns], axis=1))
