"""The Python blocks of the documentation, run as a reader would: in order, with one namespace per page."""

from __future__ import annotations

import ast
import json
import re
import subprocess
import sys
from importlib.util import find_spec
from pathlib import Path
from pkgutil import resolve_name

import matplotlib.pyplot as plt
import numpy as np
import pytest

import everyday
import kinetree as kt
from gpus import missing_gpu
from kinetree import library, loops
from kinetree.compiler.lower.sweeps import Tree

DOCS = Path(__file__).resolve().parents[1] / "docs"
NAV = (DOCS.parent / "mkdocs.yml").read_text().split("\nnav:\n", 1)[1]
LISTED = re.findall(r"([\w./-]+\.md)\s*$", NAV, re.MULTILINE)
PAGES = sorted({*LISTED, *(str(file.relative_to(DOCS)) for file in DOCS.rglob("*.md"))})
OPTIONAL = ("cupy", "exudyn", "jax", "mujoco", "pinocchio", "pydrake", "rl_games", "torch")
RECORD = DOCS.parent / "tests" / "interface.txt"
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


LONG = (
    "cams.md", "charmie.md", "closed-loop-dynamics.md", "closed-loops.md", "contact.md", "derivatives.md",
    "drives.md", "events-and-monitors.md", "exporting.md", "forces-and-control.md", "gaits.md", "gpu.md",
    "ground-forces.md", "identification.md", "inverse-kinematics.md", "load-report.md", "many-machines.md",
    "optimal-control.md", "page.md", "planning.md", "regulators.md", "results.md", "rolling.md", "ropes.md",
    "run-derivatives.md", "seven-steps.md", "small-motions.md", "stiff-arm.md", "studies.md", "study-statistics.md",
    "verify.md",
)  # fmt: skip


@pytest.mark.parametrize("page", everyday.seldom([page for page in PAGES if blocks(page)], LONG))
def test_examples_run(page, tmp_path, monkeypatch):
    """Run the blocks of a page one after the other in a folder of their own; errors name the page's line."""
    if ".equations(" in (DOCS / page).read_text():
        pytest.importorskip("sympy")
    monkeypatch.chdir(tmp_path)
    scope: dict[str, object] = {"__name__": "__example__", "tree": numbers()}
    try:
        for line, block in blocks(page):
            if missing := unmet(block):
                print(f"{page}, line {line}: left out without {missing}")
                continue
            exec(compile("\n" * (line - 1) + block, str(DOCS / page), "exec"), scope)
    finally:
        plt.close("all")  # as at the end of the reader's session


def test_every_entry_of_the_reference_exists():
    """Resolve the names of the reference pages, which tools for pages read."""
    names = [name for page in PAGES for name in re.findall(r"^::: (\S+)", (DOCS / page).read_text(), re.MULTILINE)]
    missing = []
    for name in names:
        try:
            resolve_name(name)
        except (ImportError, AttributeError):
            missing.append(name)
    assert len(names) > 20 and not missing


def imported(program: str) -> set[str]:
    """Return what a program imports from Kinetree, as names for pkgutil."""
    parsed = [x for x in ast.walk(ast.parse(program)) if isinstance(x, ast.Import | ast.ImportFrom)]
    found = {f"{x.module}:{a.name}" for x in parsed if isinstance(x, ast.ImportFrom) and x.level == 0 for a in x.names}
    found |= {a.name for x in parsed if isinstance(x, ast.Import) for a in x.names}
    return {name for name in found if re.match(r"kinetree\b", name)}


def resolves(name: str) -> bool:
    """Return whether a name, or the module of this name, exists."""
    for way in (name, name.replace(":", ".")):
        try:
            resolve_name(way)
        except (ImportError, AttributeError):
            continue
        return True
    return False


def test_imports_of_examples_exist():
    """Resolve the imports of all pages, notebooks, examples, benchmarks and pictures, also of those that run seldom."""
    programs = {page: "\n".join(block for _, block in blocks(page)) for page in PAGES}
    for file in DOCS.glob("notebooks/*.ipynb"):
        cells = [x for x in json.loads(file.read_text())["cells"] if x["cell_type"] == "code"]
        programs[file.name] = "\n".join("".join(x["source"]) for x in cells)
    for folder in ("docs", "examples", "benchmarks"):
        programs |= {str(file): file.read_text() for file in (DOCS.parent / folder).glob("*.py")}
    found = {(place, name) for place, program in programs.items() for name in imported(program)}
    assert len(found) > 200 and not [(place, name) for place, name in found if not resolves(name)]


def test_files_that_the_documents_name_exist():
    """Find every Python file that a page names: by its path in the repository, the package or the tests, or alone."""
    root = DOCS.parent
    known = {f.name for folder in ("src", "tests") for f in (root / folder).rglob("*.py")}
    places = [root, root / "src" / "kinetree", root / "tests", DOCS]
    named = {(page, x) for page in PAGES for x in re.findall(r"`([\w./-]+\.py)`", (DOCS / page).read_text())}
    gone = [(p, x) for p, x in named if not any((y / x).exists() for y in places) and ("/" in x or x not in known)]
    assert len(named) > 100 and not gone


def test_names_in_the_documents_exist():
    """Find every public name, module and command that a document mentions, and the numbers of the library."""
    documents = [DOCS / page for page in PAGES] + [DOCS.parent / name for name in ("README.md", "CHANGELOG.md")]
    verbs = {line.split()[1] for line in RECORD.read_text().splitlines() if line.startswith("kinetree ")}
    missing, found = [], 0
    for file in documents:
        text = file.read_text()
        named = {f"kinetree:{x}" for x in re.findall(r"\bkt\.(?!NAME\b)([A-Za-z]\w*)", text)}
        named |= {x for x in re.findall(r"`(kinetree(?:\.[a-z_]+)+)`", text) if not x.endswith((".mjs", ".js"))}
        found += len(named)
        missing += [f"{file.name}: {name}" for name in named if not resolves(name)]
        called = re.findall(r"^(?:\./dev )?kinetree ([a-z]+)|`kinetree ([a-z]+)", text, re.MULTILINE)
        missing += [f"{file.name}: kinetree {a or b}" for a, b in called if (a or b) not in verbs]
    assert found > 500 and not missing
    systems = [kt.load(name).mechanism for name in library.names()]
    closed = sum(bool(mechanism.closures) for mechanism in systems)
    assert (
        f"| library | {len(systems)} mechanisms as TOML files, each with its source; {closed} closed ones"
        in (DOCS / "index.md").read_text()
    )
    assert f"| closed loops | {len(loops.KINDS)} kinds: " in (DOCS / "index.md").read_text()


@pytest.mark.slow
@pytest.mark.parametrize("name", ["cams", "gaits", "passive_walkers", "rolling", "ropes"])
def test_examples_print_what_they_write(name, tmp_path):
    """Run an example in an empty folder: the last lines that it prints are the files that are there."""
    program = [sys.executable, str(DOCS.parent / "examples" / f"{name}.py")]
    done = subprocess.run(program, capture_output=True, text=True, cwd=tmp_path, check=True)
    files = {str(file.relative_to(tmp_path)) for file in tmp_path.rglob("*") if file.is_file()}
    assert files and set(done.stdout.splitlines()[-len(files) :]) == files


def test_a_million_arms_without_a_gpu_is_one_sentence():
    """Run the example on a machine without a GPU: the reason and a command that works there, and no traceback."""
    if not missing_gpu():
        pytest.skip("this machine has a GPU")
    example = [sys.executable, str(DOCS.parent / "examples" / "million_arms.py"), "--runs", "10"]
    done = subprocess.run(example, capture_output=True, text=True, timeout=100)
    assert done.returncode == 1 and "Traceback" not in done.stderr
    assert len(done.stderr.splitlines()) == 1
    assert "run `python examples/million_arms.py PICTURE --runs 20000 --device cpu`" in done.stderr
