"""ES modules as one script: their order, their exports, and modules that do not fit together."""

from __future__ import annotations

import subprocess
import sys
from pathlib import Path

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


PRETTIER = Path(sys.prefix) / "node" / "node_modules" / "prettier"


@needs_node
@pytest.mark.skipif(not PRETTIER.exists(), reason="no Prettier, which ./dev lint installs")
@pytest.mark.parametrize("entry", [file.LESSON_ENTRY, "page/js/loader.js", "page/report/report.js"])
def test_short_scripts_are_the_same_programs(tmp_path, monkeypatch, entry):
    """Compare the syntax trees and the declarations of all names of scripts with those before they were shortened."""
    (tmp_path / "short.js").write_text(file.bundle(entry))
    monkeypatch.setattr(file, "shorten", lambda text: text)
    (tmp_path / "long.js").write_text(file.bundle.__wrapped__(entry))
    comparison = [str(NODE), str(Path(__file__).parent / "same_program.mjs"), str(PRETTIER)]
    done = subprocess.run(
        [*comparison, *(str(tmp_path / f"{x}.js") for x in ("long", "short"))],
        capture_output=True, text=True, timeout=120,
    )  # fmt: skip
    assert done.returncode == 0, done.stderr
    assert (tmp_path / "short.js").stat().st_size < 0.75 * (tmp_path / "long.js").stat().st_size


@needs_node
def test_scripts_of_a_page_share_no_names(modules):
    """Run two bundles in one place, as a page does with its loader and its script."""
    modules(main='import { TEN } from "./base.js";\nconsole.log(TEN);\n', base="export const TEN = 10;\n")
    script = file.bundle("main.js")
    done = subprocess.run([str(NODE), "-e", 2 * script], capture_output=True, text=True, timeout=60, check=True)
    assert done.stdout == "10\n10\n"


AWKWARD = """
const text = "a // b", stroke = /[/"`]\\/x/g.test(text), half = text.length / 2 / 1_0.5e0; // a comment with `
export class Box {
  #size = 3;
  static made = 0;
  get size() { return this.#size + +half - -stroke; }
  of({ size: first, words = `${text} and ${{ text }.text + `${[first].length}`}` } = {}) {
    return { words, first, half };
  }
}
export function spread(...values) {
  const [head, ...rest] = values, get = 1, { length } = rest;
  switch (length) {
    case 1: { const half = head; return { half, get, length }; }
    default: return length ? { half } : { text };
  }
}
const box = new Box();
for (const [name, document] of Object.entries({ head: [1, 2,], box }))
  console.log(name, JSON.stringify(document), typeof name);
console.log(JSON.stringify([box.size, box.of({ size: "s" }), box?.size, box ? .5 : 1]));
console.log(JSON.stringify([spread(1, 2), spread(1), spread(1, 2, 3)]));
"""
"""JavaScript in which strokes, braces and names mean several things."""


@needs_node
def test_awkward_modules_mean_the_same(modules):
    """Run a module with nested templates, regular expressions and shorthands, as it is and shortened."""
    modules(main=AWKWARD)
    plain = AWKWARD.replace("export ", "")
    found = [
        subprocess.run([str(NODE), "-e", text], capture_output=True, text=True, timeout=60, check=True).stdout
        for text in (plain, file.bundle("main.js"))
    ]
    assert found[0] == found[1] and found[0].count("\n") == 4
    assert "comment" not in file.bundle("main.js") and "rest" not in file.bundle("main.js")


@pytest.mark.parametrize("text", ["const a = `one ${2}", "const a = 'one", "const a = @b;"])
def test_texts_that_are_no_modules_are_refused(text):
    """Shorten texts whose quotation does not end, and a sign that JavaScript does not have."""
    with pytest.raises(ValueError, match="no token of a module begins with"):
        file.shorten(text)


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
