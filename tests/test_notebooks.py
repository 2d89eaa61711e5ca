"""The notebooks of docs/notebooks: each cell runs, without outputs that are kept in the file."""

from __future__ import annotations

import re
import sys
from pathlib import Path
from typing import Any

import pytest

import everyday

DOCS = Path(__file__).resolve().parents[1] / "docs"
BOOKS = sorted((DOCS / "notebooks").glob("*.ipynb"))
OTHERS = [file for file in BOOKS if file.stem != "student-pendulum"]
"""Those that run before every change that lands, but not every day."""


def read(file: Path) -> Any:
    """Return a notebook, or skip the test without nbformat."""
    return pytest.importorskip("nbformat").read(file, as_version=4)


@pytest.mark.parametrize("file", everyday.seldom(BOOKS, OTHERS), ids=lambda file: file.stem)
def test_every_cell_runs(file, tmp_path):
    """Execute a notebook in a kernel of its own, in an empty folder."""
    nbclient = pytest.importorskip("nbclient")
    pytest.importorskip("ipykernel", reason=f"{sys.executable} has no kernel for notebooks")
    book = read(file)
    nbclient.NotebookClient(
        book, timeout=300, kernel_name="python3", resources={"metadata": {"path": str(tmp_path)}}
    ).execute()
    assert all(cell.execution_count for cell in book.cells if cell.cell_type == "code")


@pytest.mark.parametrize("file", BOOKS, ids=lambda file: file.stem)
def test_notebooks_check_something_and_keep_no_outputs(file):
    """Find a title, an assertion and something to try in each notebook, and no outputs."""
    book = read(file)
    text = [cell.source for cell in book.cells if cell.cell_type == "markdown"]
    code = [cell for cell in book.cells if cell.cell_type == "code"]
    assert text[0].startswith("# ") and text[-1].startswith("**Try:**")
    assert any("assert " in cell.source for cell in code)
    assert not any(cell.outputs or cell.execution_count for cell in code)


def test_the_page_lists_every_notebook():
    """Find ten notebooks, each in the list of the page."""
    listed = re.findall(r"\(notebooks/([\w-]+\.ipynb)\)", (DOCS / "notebooks.md").read_text())
    assert sorted(listed) == [file.name for file in BOOKS] and len(BOOKS) == 10
