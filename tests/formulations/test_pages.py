"""The theory pages of this folder: their examples print the output shown."""

from __future__ import annotations

import contextlib
import io
import re
from pathlib import Path

import pytest

import everyday

THEORY = Path(__file__).resolve().parents[2] / "docs" / "theory"
BLOCK = re.compile(r"^```(python|text)\n(.*?)^```$", re.DOTALL | re.MULTILINE)


@everyday.long
@pytest.mark.parametrize("page", ["denoc", "modules", "euler-joints"])
def test_examples_print_what_the_page_says(page):
    """Run the blocks of a page in order and find the output of each in the text below it."""
    scope: dict[str, object] = {"__name__": "__example__"}
    printed, compared = "", 0
    for language, block in BLOCK.findall((THEORY / f"{page}.md").read_text()):
        if language == "python":
            out = io.StringIO()
            with contextlib.redirect_stdout(out):
                exec(compile(block, page, "exec"), scope)
            printed = out.getvalue()
        else:
            assert [line.rstrip() for line in printed.splitlines()] == block.splitlines()
            compared += 1
    assert compared >= 4
