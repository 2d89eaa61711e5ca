"""Ctrl-C in the command line before its first line runs, and in other programs that import Kinetree."""

from __future__ import annotations

import os
import subprocess
import sys
from pathlib import Path

import pytest

from kinetree._support.interruption import is_command_line

PRESSED = """\
import os, signal, sys

class Press:
    def find_spec(self, name, *_):
        if name == "numpy":
            os.kill(os.getpid(), signal.SIGINT)

sys.meta_path.insert(0, Press())
from kinetree.apps.cli import main
main(["list"])
"""
"""A program that is interrupted while it imports NumPy."""


def ended(program: Path) -> tuple[int, str]:
    """Run the program; return its exit status and what it wrote to stderr."""
    program.write_text(PRESSED)
    done = subprocess.run([sys.executable, program], capture_output=True, text=True, check=False)
    return done.returncode, done.stderr


@pytest.mark.skipif(os.name == "nt", reason="Windows has other signals")
def test_the_imports_of_the_command_line_are_interrupted(tmp_path):
    """Press Ctrl-C while the command line is imported: one line, and the status 130."""
    assert ended(tmp_path / "kinetree") == (130, "kinetree: interrupted\n")


@pytest.mark.skipif(os.name == "nt", reason="Windows has other signals")
def test_other_programs_keep_their_interruptions(tmp_path):
    """Press Ctrl-C while another program imports Kinetree: Python's own end, by the signal, with its traceback."""
    status, text = ended(tmp_path / "laboratory.py")
    assert status == -2
    assert text.startswith("Traceback") and text.endswith("KeyboardInterrupt\n")


@pytest.mark.parametrize(
    ("program", "given", "expected"),
    [
        (["/usr/bin/kinetree", "list"], ["python", "/usr/bin/kinetree", "list"], True),
        (["kinetree.exe"], ["kinetree.exe"], True),
        (["-m", "list"], ["python", "-X", "dev", "-m", "kinetree", "list"], True),
        (["-m", "list"], ["python", "-mkinetree", "list"], True),
        (["-m"], ["python", "-m", "pytest", "kinetree"], False),
        (["study.py", "kinetree"], ["python", "study.py", "kinetree"], False),
        ([""], ["python"], False),
        ([], ["python"], False),
    ],
)
def test_the_command_line_is_told_apart(program, given, expected):
    """Recognize the script and `python -m kinetree`, and no program that has the name among its arguments."""
    assert is_command_line(program, given) == expected
