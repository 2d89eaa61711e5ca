"""Options of a function, declared once as the fields of a frozen dataclass; other places read the declaration."""

from __future__ import annotations

from dataclasses import MISSING, dataclass, fields
from typing import Any


@dataclass(frozen=True)
class Option:
    """An option whose value text can state: its name, its default, its unit ("" for none), and a sentence of help.

    `tables` are the tables of an input file that have it as a key.
    """

    name: str
    default: Any
    unit: str
    help: str
    tables: tuple[str, ...] = ()


def explain(text: str, *, unit: str = "", tables: tuple[str, ...] = ()) -> dict[str, Any]:
    """Return the metadata of a field whose value files, command lines and forms can state, with its help."""
    return {"help": text, "unit": unit, "tables": tables}


def option_names(declaration: type, *without: str) -> tuple[str, ...]:
    """Return the names of all options besides some of them."""
    return tuple(x.name for x in fields(declaration) if x.name not in without)


def written_options(declaration: type) -> dict[str, Option]:
    """Return the options that text can state by name, in the order of their declaration."""
    return {
        x.name: Option(
            x.name,
            None if x.default is MISSING else x.default,
            x.metadata.get("unit", ""),
            x.metadata["help"],
            x.metadata.get("tables", ()),
        )
        for x in fields(declaration)
        if x.metadata
    }


def table_keys(declaration: type, table: str) -> tuple[str, ...]:
    """Return the options that are keys of a table of an input file."""
    return tuple(x.name for x in written_options(declaration).values() if table in x.tables)
