"""The cells of a line of CSV."""

from __future__ import annotations

import csv

from ..errors import ModelError


def csv_cells(content: str, file: str, line: int) -> list[str]:
    """Return the cells of one line without surrounding spaces; cells in double quotes may contain commas."""
    try:
        (cells,) = csv.reader([content], strict=True, skipinitialspace=True)
    except (csv.Error, ValueError) as error:
        raise ModelError(
            f"not a line of CSV ({error})", remedy="separate cells by commas", file=file, line=line
        ) from None
    return [cell.strip() for cell in cells]
