"""Requirements on the project as a whole: sources, citations, imports, documentation and the dev script."""

from __future__ import annotations

import ast
import importlib.machinery
import importlib.util
import os
import re
import subprocess
import sys
from pathlib import Path

import pytest

import everyday
import evidence
import kinetree
import tolerance

ROOT = Path(__file__).resolve().parents[1]
SOURCES = sorted((ROOT / "src").rglob("*.py"))
PAGES = [*sorted((ROOT / "docs").rglob("*.md")), *sorted(ROOT.glob("*.md"))]
HEAVY = ("casadi", "matplotlib", "llvmlite", "typer", "rich", "scipy")
KEY = re.compile(r"\[([A-Z][a-z]+\d{4})\]")


def load_dev():
    """Return the dev script as a module."""
    loader = importlib.machinery.SourceFileLoader("dev", str(ROOT / "dev"))
    spec = importlib.util.spec_from_loader("dev", loader)
    assert spec is not None
    module = importlib.util.module_from_spec(spec)
    loader.exec_module(module)
    return module


def run_dev(*arguments: str) -> subprocess.CompletedProcess[str]:
    """Run the dev script as a user does."""
    return subprocess.run([sys.executable, str(ROOT / "dev"), *arguments], capture_output=True, text=True, check=False)


def test_citations_are_known():
    """Find every cited key in the bibliography."""
    known = set(re.findall(r"@\w+\{(\w+),", (ROOT / "docs" / "references.bib").read_text()))
    cited = {(key, f.relative_to(ROOT)) for f in [*SOURCES, *PAGES] for key in KEY.findall(f.read_text())}
    assert {key for key, _ in cited} >= {"Saha1999", "Saha2013"}
    assert [f"{file}: [{key}]" for key, file in sorted(cited) if key not in known] == []


def test_texts_have_no_faults():
    """Find no text that is not ASCII, has stray white space, or names the host of a package registry."""
    assert load_dev().text_faults(ROOT) == []


def test_text_faults_are_found(tmp_path):
    """Find each sort of fault in a file that has them all."""
    host = ".".join(("pypi", "org"))
    text = f"caf\u00e9\na\tb\r\nend \n<<<<<<< mine\nsee {host}\n"
    (tmp_path / "src").mkdir()
    (tmp_path / "src" / "bad.py").write_bytes(text.encode())
    (tmp_path / "src" / "long.js").write_text("f();\n" + "x" * 121 + "\n" + "y" * 120 + "\n")
    (tmp_path / "good.md").write_text("fine\n")
    assert load_dev().text_faults(tmp_path) == [
        "src/bad.py:1: not ASCII",
        "src/bad.py:2: a tab",
        "src/bad.py:2: a carriage return",
        "src/bad.py:3: spaces at the end",
        "src/bad.py:4: a merge conflict",
        "src/bad.py:5: the host of a package registry",
        "src/long.js:2: more than 120 characters",
    ]


def test_public_names_are_where_the_stub_says():
    """Import every name of the stub, find the same names in `__all__` and in `dir`, and refuse another name."""
    stub = ast.parse((ROOT / "src" / "kinetree" / "__init__.pyi").read_text())
    names = [name for line in stub.body if isinstance(line, ast.ImportFrom) for name in line.names]
    assert all(name.name == name.asname for name in names), "type checkers take `name as name` alone for public"
    listed = [name.name for name in names]
    assert sorted(listed) == kinetree.__all__ == dir(kinetree)
    for name in listed:
        assert getattr(kinetree, name) is not None
    with pytest.raises(AttributeError, match="module 'kinetree' has no attribute 'simulat'"):
        kinetree.simulat  # noqa: B018


def test_public_modules_are_there_at_once():
    """Use a public name that is a module as the first thing in a process: nothing else has imported it yet."""
    code = "import kinetree as kt; print(kt.smooth.where(1 < 2, 3.0, 4.0))"
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=False)
    assert (done.stdout.strip(), done.stderr) == ("3.0", "")


def test_import_pulls_in_nothing_heavy():
    """Import kinetree in a fresh process and find no heavy package loaded."""
    code = f"import sys, kinetree; print([m for m in {HEAVY!r} if m in sys.modules])"
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True)
    assert done.stdout.strip() == "[]"


@pytest.mark.parametrize("file", everyday.some(SOURCES), ids=lambda f: str(f.relative_to(ROOT / "src")))
def test_modules_have_docstrings(file):
    """Find a docstring at the head of every module."""
    assert ast.get_docstring(ast.parse(file.read_text())), f"{file} does not say what it is about"


@everyday.long
def test_tests_have_docstrings():
    """Find one sentence that describes the test in every test function."""
    bare = []
    for file in sorted((ROOT / "tests").rglob("test_*.py")):
        for node in ast.walk(ast.parse(file.read_text())):
            if isinstance(node, ast.FunctionDef) and node.name.startswith("test_") and not ast.get_docstring(node):
                bare.append(f"{file.relative_to(ROOT)}::{node.name}")
    assert bare == []


@pytest.mark.parametrize("name", ["README.md", "docs/getting-started.md"])
def test_examples_run(name, tmp_path, monkeypatch):
    """Run the Python blocks of a page one after the other, as a reader would."""
    blocks = re.findall(r"^```python\n(.*?)^```$", (ROOT / name).read_text(), re.DOTALL | re.MULTILINE)
    assert blocks
    monkeypatch.chdir(tmp_path)
    scope: dict[str, object] = {"__name__": "__example__"}
    for block in blocks:
        exec(compile(block, name, "exec"), scope)


def test_dev_help_lists_the_verbs():
    """Ask dev for help and read every verb with a line of its own."""
    done = run_dev("--help")
    assert done.returncode == 0
    for verb in ("demo", "kinetree", "test", "lint", "format", "bench", "wheel", "docs", "shell", "help"):
        assert f"./dev {verb}" in done.stdout


def test_dev_refuses_an_unknown_verb():
    """Mistype a verb and read which ones there are."""
    done = run_dev("tset")
    assert done.returncode == 2
    assert (
        "no verb 'tset'; did you mean 'test'? available: demo, studio, kinetree, test, complete, lint, format"
        in done.stderr
    )


def test_the_lint_before_a_commit_is_the_quick_one():
    """Find `lint --quick` before each commit and all of lint before a push, and refuse other arguments."""
    hooks = (ROOT / ".pre-commit-config.yaml").read_text()
    assert re.findall(r"entry: python3 dev (.*)\n.*\n.*\n +stages: \[(.*)\]", hooks)[:2] == [
        ("lint --quick", "pre-commit"),
        ("lint", "pre-push"),
    ]
    dev = load_dev()
    with pytest.raises(dev.Failure, match="lint takes no arguments but --quick"):
        dev.lint(["--fast"])


def test_the_packages_that_users_may_name_are_extras():
    """Find every extra that an error of an optional package names, and all that "all" unites."""
    import tomllib

    extras = tomllib.loads((ROOT / "pyproject.toml").read_text())["project"]["optional-dependencies"]
    named = {x for f in SOURCES for x in re.findall(r"kinetree\[([a-z]+)\]", f.read_text())}
    called = {x for f in SOURCES for x in re.findall(r'optional\("[^)]*", "([a-z]+)"\)', f.read_text())}
    united = set(re.fullmatch(r"kinetree\[(.*)\]", extras["all"][0])[1].split(","))
    assert named | called | united <= set(extras) and called - {"learning"} <= united


def test_the_evidence_names_tests_that_exist():
    """Find each test that the page of evidence names, and its residual on the page."""
    page = (ROOT / "docs" / "evidence.md").read_text()
    for claims in evidence.CLAIMS.values():
        for test in (name for claim in claims for name in claim.tests):
            file, _, name = test.partition("::")
            assert f"\ndef {name}(" in (ROOT / "tests" / file).read_text(), test
            assert re.search(rf"\| \d\.\de[-+]\d\d \(.*\) \| \d\.\de[-+]\d\d \| `{re.escape(test)}` \|", page), test


def test_the_measured_digits_are_those_closest_to_their_bound():
    """Read residuals of three cases of two tests, and find the largest part of a bound of each."""
    records = [
        {"test": "tests/a.py::test_one[x]", "residuals": {"tau": [2e-14, 1e-13], "q": [1e-15, 1e-12]}},
        {"test": "tests/a.py::test_one[y]", "residuals": {"q": [1e-13, 1e-12]}},
        {"test": "tests/b.py::test_two", "residuals": {"I": [0.0, 1e-12]}},
    ]
    assert evidence.measure(records) == {
        "a.py::test_one": evidence.Measured("tau", 2e-14, 1e-13, 2),
        "b.py::test_two": evidence.Measured("I", 0.0, 1e-12, 1),
    }


def test_a_soak_takes_minutes():
    """Refuse a soak without a number of minutes, and show one with it."""
    dev = load_dev()
    with pytest.raises(dev.Failure, match=r"--soak takes a number of minutes, not 'long': \./dev test --soak 60"):
        dev.soak("long")


def test_dev_installs_only_what_is_missing():
    """Install nothing when the stamp covers the extras, and all earlier extras when it does not."""
    dev = load_dev()
    stamp = {"digest": "a", "extras": ["dev", "test"]}
    assert dev.missing(stamp, "a", ["test"]) is None
    assert dev.missing(stamp, "a", ["docs"]) == ["dev", "docs", "test"]
    assert dev.missing(stamp, "b", ["test"]) == ["dev", "test"]
    assert dev.missing({}, "a", []) == []


def test_dev_says_what_to_do_without_venv(tmp_path, monkeypatch):
    """Fail to make a virtual environment and read which package is missing."""
    dev = load_dev()
    monkeypatch.setattr(dev, "ROOT", tmp_path)
    monkeypatch.setattr(dev, "VENV", tmp_path / ".venv")
    monkeypatch.setattr(dev, "PYTHON", tmp_path / ".venv" / "python")
    monkeypatch.setattr(dev.subprocess, "call", lambda *_, **__: 1)
    with pytest.raises(dev.Failure, match="cannot make a virtual environment; .* apt install python3-venv"):
        dev.make_venv()


def test_dev_says_what_to_do_when_pip_fails(monkeypatch, capsys):
    """Let pip fail and read its exit code, the remedy, and no stamp of success."""
    dev = load_dev()
    monkeypatch.setattr(dev, "call", lambda *_: 7)
    with pytest.raises(dev.Failure, match="pip ended with code 7; .* delete .*venv and run this again"):
        dev.install(["test"])
    assert "installing .[test]" in capsys.readouterr().out


def test_dev_says_what_to_do_without_a_browser(monkeypatch):
    """Find no browser and no package manager, then one that fails, and read the remedy each time."""
    dev = load_dev()
    monkeypatch.setattr(dev.shutil, "which", lambda _: None)
    with pytest.raises(dev.Failure, match=r"no browser on the PATH \(chromium, .*\); install Chromium, then run this"):
        dev.install_browser()
    monkeypatch.setattr(dev.shutil, "which", lambda name: name == "apt-get" or None)
    monkeypatch.setattr(dev, "call", lambda *_: 100)
    with pytest.raises(dev.Failure, match="apt-get could not install Chromium; install it as root, then run this"):
        dev.install_browser()


SKIPPING = f"""
import pytest, sys
sys.path.insert(0, {str(ROOT / "tests")!r})
import complete

def test_passes():
    assert True

@pytest.mark.skip(reason="no GPU")
def test_other():
    assert True

@pytest.mark.skip(reason=f"no Chromium on the PATH: {{complete.REMEDY}}")
def test_browser():
    assert True
"""


@everyday.long
@pytest.mark.parametrize(("required", "code"), [("", 0), ("1", 1)])
def test_skipped_browser_tests_are_counted(tmp_path, required, code):
    """Skip a test for want of a browser: one line says so, and the session fails where none may be skipped."""
    (tmp_path / "test_skipping.py").write_text(SKIPPING)
    here = str(ROOT / "tests")
    (tmp_path / "conftest.py").write_text((ROOT / "tests" / "conftest.py").read_text())
    done = subprocess.run(
        [sys.executable, "-m", "pytest", "-q", "-p", "no:cacheprovider", str(tmp_path)],
        capture_output=True, text=True, check=False, cwd=tmp_path,
        env={**os.environ, "KINETREE_COMPLETE": required, "PYTHONPATH": os.pathsep.join([here, *sys.path])},
    )  # fmt: skip
    assert done.returncode == code, done.stdout + done.stderr
    assert "1 tests were skipped (no Chromium on the PATH): run ./dev complete, then ./dev test" in done.stdout


def test_dev_turns_away_an_old_python(monkeypatch, capsys):
    """Pretend that a newer Python is needed and read which one to run."""
    dev = load_dev()
    monkeypatch.setattr(dev, "OLDEST", (99, 0))
    assert dev.main(["test"]) == 2
    assert "is too old; run this with Python 3.11 or newer" in capsys.readouterr().err


def test_dev_fingerprint_follows_dependencies_alone():
    """Change the digest with a dependency, not with an option of a linter."""
    fingerprint = load_dev().fingerprint
    base = fingerprint('[project]\ndependencies = ["numpy"]\n')
    assert fingerprint('[project]\ndependencies = ["numpy"]\n[tool.ruff]\nline-length = 99\n') == base
    assert fingerprint('[project]\ndependencies = ["numpy>=2"]\n') != base


def test_assert_close_prints_residual_and_bound(monkeypatch):
    """Fail by a known residual and read it with the bound."""
    monkeypatch.setattr(tolerance, "SCALE", 1.0)
    monkeypatch.setattr(tolerance, "residuals", {})
    tolerance.assert_close([1.0, 2.0], [1.0, 2.0 + 1e-3], 1e-2, "near")
    with pytest.raises(AssertionError, match=r"far: residual 0\.5, bound 0\.01, 50 of it; entry \[1\] is .*2\.0"):
        tolerance.assert_close([1.0, 2.0], [1.0, 2.5], 1e-2, "far")
    with pytest.raises(AssertionError, match="not finite"):
        tolerance.assert_close([float("nan")], [1.0], 1.0)
    with pytest.raises(AssertionError, match=r"shape \(1,\), expected \(2,\)"):
        tolerance.assert_close([1.0], [1.0, 1.0], 1.0)
