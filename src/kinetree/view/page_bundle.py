"""ES modules as one script, for a page in a single file: each module follows those that it imports.

The modules use a part of the language: `import { a, b as c } from "./file.js";`, `import * as all from "./file.js";`,
exports at the declaration (`export const`, `let`, `function`, `async function`, `class`), and `export { a, b };`. They
run as they are in browsers and in Node. In the script, each is a function that returns its exports.
"""

from __future__ import annotations

import posixpath
import re
from functools import lru_cache
from importlib.resources import files

IMPORT = re.compile(r'^import\s+(\{[^}]*\}|\*\s+as\s+\w+)\s+from\s+"([^"]+)";\n', re.MULTILINE)
DECLARED = re.compile(r"^export\s+((?:const|let|class|function\*?|async\s+function)\s+(\w+))", re.MULTILINE)
LISTED = re.compile(r"^export\s+\{([^}]*)\};\n?", re.MULTILINE)


@lru_cache
def bundle(entry: str, without: tuple[str, ...] = ()) -> str:
    """Return the script of a module, given by its path below `kinetree/`, and of all modules that it imports.

    The modules `without` are left out, with those that only they import; what others import from them is undefined.
    """
    order: list[str] = []
    sources: dict[str, str] = dict.fromkeys(without, "")
    _visit(entry, sources, order, ())
    number = {path: k for k, path in enumerate(order)}
    exports = {path: _exports(sources[path]) for path in order}
    return '"use strict";\n' + "".join(_function(path, sources[path], number, exports) for path in order)


def _visit(path: str, sources: dict[str, str], order: list[str], above: tuple[str, ...]) -> None:
    """Add a module after those that it imports."""
    if path in above:
        raise ValueError(f"modules import each other in a circle: {' -> '.join([*above, path])}")
    if path in sources:
        return
    sources[path] = (files("kinetree") / path).read_text(encoding="utf-8")
    for _, target in IMPORT.findall(sources[path]):
        _visit(_resolved(path, target), sources, order, (*above, path))
    order.append(path)


def _resolved(path: str, target: str) -> str:
    return posixpath.normpath(posixpath.join(posixpath.dirname(path), target))


def _exports(source: str) -> list[str]:
    listed = [name.strip() for group in LISTED.findall(source) for name in group.split(",") if name.strip()]
    return [name for _, name in DECLARED.findall(source)] + listed


def _function(path: str, source: str, number: dict[str, int], exports: dict[str, list[str]]) -> str:
    def imported(match: re.Match) -> str:
        names, target = match[1], _resolved(path, match[2])
        if target not in number:
            return f"const {{ {', '.join(_pairs(names))} }} = {{}};\n"
        if names.startswith("*"):
            return f"const {names.split()[-1]} = m{number[target]};\n"
        missing = [pair.split(":")[0] for pair in _pairs(names) if pair.split(":")[0] not in exports[target]]
        if missing:
            raise ValueError(f"{path} imports {', '.join(missing)} from {target}, which does not export it")
        return f"const {{ {', '.join(_pairs(names))} }} = m{number[target]};\n"

    text = _short(LISTED.sub("", DECLARED.sub(r"\1", IMPORT.sub(imported, source))))
    return f"const m{number[path]} = (() => {{\n{text}return {{ {', '.join(exports[path])} }};\n}})();\n"


def _pairs(names: str) -> list[str]:
    """Return the names of an import as those of a pattern: `a`, or `a: b` for `a as b`."""
    parts = [re.split(r"\s+as\s+", part.strip()) for part in names.strip("{}").split(",") if part.strip()]
    return [": ".join(part) for part in parts]


def _short(source: str) -> str:
    """Return a module without indentation and without lines that are comments."""
    lines = (line.strip() for line in source.splitlines())
    return "".join(f"{line}\n" for line in lines if line and not line.startswith(("//", "/*", "* ", "*/")))
