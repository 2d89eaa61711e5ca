"""The Python blocks of the documentation, run as a reader would: in order, with one namespace per page."""

from __future__ import annotations

import re
from importlib.util import find_spec
from pathlib import Path

import numpy as np
import pytest

import everyday
import kinetree as kt
from gpus import missing_gpu
from kinetree.compiler.lower.sweeps import Tree

DOCS = Path(__file__).resolve().parents[1] / "docs"
NAV = (DOCS.parent / "mkdocs.yml").read_text().split("\nnav:\n", 1)[1]
LISTED = re.findall(r"([\w./-]+\.md)\s*$", NAV, re.MULTILINE)
PAGES = sorted({*LISTED, *(str(file.relative_to(DOCS)) for file in DOCS.rglob("*.md"))})
OPTIONAL = ("cupy", "jax", "pinocchio", "torch")
BLOCK = re.compile(r"^```python\n(.*?)^```$", re.DOTALL | re.MULTILINE)


def blocks(page: str) -> list[tuple[int, str]]:
    """Return the Python blocks of a page with the lines they start on."""
    text = (DOCS / page).read_text()
    return [(text[: found.start()].count("\n") + 2, found.group(1)) for found in BLOCK.finditer(text)]


def unmet(block: str) -> str:
    """Return what a block needs and this machine does not have: an optional library, or a GPU."""
    for name in OPTIONAL:
        if f"import {name}" in block and find_spec(name) is None:
            return name
    return "a GPU" if '"cuda"' in block and missing_gpu() else ""


def numbers() -> Tree:
    """Return a tree on plain numbers, on which the sweeps of a page can run without changes."""
    arm = kt.load("stanford").mechanism
    state = np.random.default_rng(1).normal(size=(3, arm.nv)).tolist()
    tree = Tree(arm, dict(zip(("q", "qd", "qdd"), state, strict=True)))
    tree.ground.dt = tree.rho
    return tree


def test_every_page_is_listed():
    """Find every page of the navigation in the folder, and the reverse."""
    assert sorted(LISTED) == PAGES


SLOW = (
    "seven-steps.md", "results.md", "ropes.md", "closed-loops.md", "verify.md", "charmie.md", "run-derivatives.md",
    "regulators.md", "small-motions.md", "rolling.md", "cams.md", "contact.md", "ground-forces.md", "gaits.md",
)  # fmt: skip


LONG = (
    "closed-loop-dynamics.md", "derivatives.md", "events-and-monitors.md", "exporting.md", "gpu.md",
    "inverse-kinematics.md", "load-report.md", "many-machines.md", "optimal-control.md", "page.md", "studies.md",
    "study-statistics.md",
)  # fmt: skip


@pytest.mark.parametrize(
    "page", everyday.seldom(everyday.without([page for page in PAGES if blocks(page)], SLOW), LONG)
)
def test_examples_run(page, tmp_path, monkeypatch):
    """Run the blocks of a page one after the other in a folder of their own; errors name the page's line."""
    if ".equations(" in (DOCS / page).read_text():
        pytest.importorskip("sympy")
    monkeypatch.chdir(tmp_path)
    scope: dict[str, object] = {"__name__": "__example__", "tree": numbers()}
    for line, block in blocks(page):
        if missing := unmet(block):
            print(f"{page}, line {line}: left out without {missing}")
            continue
        exec(compile("\n" * (line - 1) + block, str(DOCS / page), "exec"), scope)
