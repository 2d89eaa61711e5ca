"""ES modules as one script: their order, their exports, and modules that do not fit together."""

from __future__ import annotations

import subprocess

import pytest

from kinetree.page import file
from kinetree.page.file import bundle
from wasm_hosts import NODE, needs_node


@pytest.fixture
def modules(tmp_path, monkeypatch):
    """Return a function that writes modules by name, and make the bundle read them."""
    monkeypatch.setattr(file, "files", lambda package: tmp_path)
    monkeypatch.setattr(file, "bundle", bundle.__wrapped__)

    def write(**sources: str) -> None:
        for name, text in sources.items():
            path = tmp_path / "deep" / f"{name}.js" if name == "inner" else tmp_path / f"{name}.js"
            path.parent.mkdir(exist_ok=True)
            path.write_text(text)

    return write


@needs_node
def test_modules_become_one_script(modules):
    """Run a bundle of modules that import each other by names, under other names, and as a whole."""
    modules(
        main='import { twice as double } from "./deep/inner.js";\nimport * as all from "./base.js";\n'
        "// a comment\nconsole.log(double(all.TEN) + new all.Box().size);\n",
        inner='import { TEN } from "../base.js";\nexport function twice(x) { return 2 * x + TEN; }\n',
        base="/* of two\n * lines */\nexport const TEN =\n  /** @type {number} */ (10);\n"
        "class Box { get size() { return 3; } }\nexport { Box };\n",
    )
    script = file.bundle("main.js")
    assert "a comment" not in script
    done = subprocess.run([str(NODE), "-e", script], capture_output=True, text=True, timeout=60, check=True)
    assert done.stdout == "33\n"


@needs_node
def test_scripts_of_pages_are_scripts(tmp_path):
    """Let Node parse the scripts of the studio and of a file with and without loops and a table."""
    scripts = (file.served_script(), file.script_of((), table=False), file.script_of([1], table=True, lesson=True))
    for script in scripts:
        (tmp_path / "page.js").write_text(script)
        subprocess.run([str(NODE), "--check", str(tmp_path / "page.js")], timeout=60, check=True)


@needs_node
def test_modules_are_left_out(modules):
    """Leave out a module and the one that only it imports: its names are undefined."""
    modules(
        main='import { twice as double } from "./deep/inner.js";\nimport { TEN } from "./base.js";\n'
        "console.log([double, TEN]);\n",
        inner='import { LOST } from "../lost.js";\nexport function twice(x) { return LOST * x; }\n',
        base="export const TEN = 10;\n",
        lost="export const LOST = 2;\n",
    )
    script = file.bundle("main.js", ("deep/inner.js",))
    assert "LOST" not in script
    done = subprocess.run([str(NODE), "-e", script], capture_output=True, text=True, timeout=60, check=True)
    assert done.stdout == "[ undefined, 10 ]\n"


def test_names_that_do_not_exist_are_refused(modules):
    """Import a name that no module exports, and modules in a circle."""
    modules(main='import { thrice } from "./base.js";\n', base="export const TEN = 10;\n")
    with pytest.raises(ValueError, match=r"main\.js imports thrice from base\.js, which does not export it"):
        file.bundle("main.js")
    modules(main='import { a } from "./base.js";\n', base='import { b } from "./main.js";\nexport const a = 1;\n')
    with pytest.raises(ValueError, match=r"in a circle: main\.js -> base\.js -> main\.js"):
        file.bundle("main.js")
