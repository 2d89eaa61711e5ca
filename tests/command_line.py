"""Commands of the command line, run in the process of the tests."""

from __future__ import annotations

import pytest

from kinetree.apps import cli


def run(*arguments: str) -> int:
    """Run the command line in this process and return its exit status."""
    with pytest.raises(SystemExit) as stop:
        cli.main(arguments)
    return int(stop.value.code or 0)


def words(text: str) -> str:
    """Return a text in one line, however wide the terminal."""
    return " ".join(text.split())
