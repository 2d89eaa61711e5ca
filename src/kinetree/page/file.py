"""A page as one file: its script, style and data inside, and a policy that lets the browser run nothing else."""

from __future__ import annotations

import base64
import gzip
import hashlib
import json
import posixpath
import re
from collections.abc import Sequence
from functools import lru_cache
from importlib.resources import files
from typing import Any

import numpy as np

KINDS = {"f": ("f4", np.float32), "d": ("f8", np.float64), "I": ("u4", np.uint32), "B": ("u1", np.uint8)}
"""The arrays of a page, by NumPy's letter of their type: the name in the page, and the type."""


def fill_template(template: str, script: str, style: str, data: object, *, compiles: bool = False, **more: str) -> str:
    """Return a page with its script, style and data, and other parts, which are HTML already.

    Style and script are compressed, and a short loader applies them. The policy lets the browser use these alone, by
    their hashes; a page with a kernel, or one that `compiles` others, may compile WebAssembly from bytes.
    """
    loader = texts(["js/loader.js"]) if script else ""
    allowed = [fingerprint(x) for x in (loader, script) if x] or ["none"]
    if compiles or (isinstance(data, dict) and data.get("kernel")):
        allowed.append("wasm-unsafe-eval")
    scripts = " ".join(f"'{x}'" for x in allowed)
    parts = {
        "POLICY": f"default-src 'none'; script-src {scripts}; style-src '{fingerprint(style)}'",
        "STYLE": style,
        "LOOK": compress(style),
        "CODE": compress(script) if script else "",
        "SCRIPT": loader,
        "DATA": json.dumps(pack(data)),
        **more,
    }
    text = (files("kinetree.page") / template).read_text(encoding="utf-8")
    pieces = text.split("@@")  # text, key, text, key, ..., text
    return "".join(parts[piece] if k % 2 else piece for k, piece in enumerate(pieces))  # inserted text has no keys


def texts(names: Sequence[str]) -> str:
    """Return files below `kinetree/page/`, one after the other, style sheets without optional spaces."""
    found = [(name, (files("kinetree.page") / name).read_text(encoding="utf-8")) for name in names]
    return "\n".join(re.sub(r"\s*([{};,])\s*", r"\1", text) if name.endswith(".css") else text for name, text in found)


def compress(text: str) -> str:
    """Return a text compressed, in base64."""
    return base64.b64encode(gzip.compress(text.encode(), mtime=0)).decode()


def pack(data: object) -> str:
    """Return data as text in base64: compressed JSON, followed by the arrays, to which it refers by their places."""
    blocks: list[bytes] = []
    plain = json.dumps(_without_arrays(data, blocks), allow_nan=False, separators=(",", ":")).encode()
    plain += b" " * (-(len(plain) + 8) % 8)
    whole = len(plain).to_bytes(8, "little") + plain + b"".join(blocks)
    return base64.b64encode(gzip.compress(whole, mtime=0)).decode()


def unpack(text: str) -> Any:
    """Return the data of `pack`."""
    whole = gzip.decompress(base64.b64decode(text))
    size = int.from_bytes(whole[:8], "little")
    types = dict(KINDS.values())

    def revived(table: dict[str, Any]) -> Any:
        if table.keys() != {"$"}:
            return table
        kind, at, count = table["$"]
        return np.frombuffer(whole, dtype=types[kind], count=count, offset=8 + size + at)

    return json.loads(whole[8 : 8 + size], object_hook=revived)


def _without_arrays(x: object, blocks: list[bytes]) -> Any:
    """Return data whose arrays are replaced by their places in the blocks, which are multiples of eight bytes long."""
    if isinstance(x, bytes):
        x = np.frombuffer(x, dtype=np.uint8)
    if isinstance(x, np.ndarray):
        name = KINDS[x.dtype.char][0]
        at, content = sum(map(len, blocks)), np.ascontiguousarray(x).astype(x.dtype.newbyteorder("<")).tobytes()
        blocks.append(content + b"\0" * (-len(content) % 8))
        return {"$": [name, at, int(x.size)]}
    if isinstance(x, dict):
        return {str(key): _without_arrays(value, blocks) for key, value in x.items()}
    if isinstance(x, list | tuple):
        return [_without_arrays(value, blocks) for value in x]
    return x


def fingerprint(text: str) -> str:
    """Return the hash of a text for the page's Content-Security-Policy, by which a browser runs no other text."""
    return "sha256-" + base64.b64encode(hashlib.sha256(text.encode()).digest()).decode()


# --- ES modules as one script, for a page in a single file: each module follows those that it imports ---
#
# The modules use a part of the language: `import { a, b as c } from "./file.js";`, `import * as all from "./file.js";`,
# exports at the declaration (`export const`, `let`, `function`, `async function`, `class`), and `export { a, b };`.
# They run as they are in browsers and in Node. In the script, each is a function that returns its exports.

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
    return "".join(f"{line}\n" for line in lines if line and not _is_comment(line))


def _is_comment(line: str) -> bool:
    """Return whether a line is a comment, or part of one over several lines; code may follow a type in a comment."""
    if line.startswith("/*"):
        return "*/" not in line[:-2]
    return line.startswith(("//", "* ", "*/")) or line == "*"


# --- Scripts and styles of pages: the modules that a page needs, and those that it leaves out ---

ENTRY, STYLES = "page/js/main.js", ("js/stage.css", "js/page.css", "js/model.css")
"""The first module of a page, and its styles: those of stage and player, of the page around them, of the mode Build."""
LESSON_ENTRY, LESSON_STYLE = "page/js/lesson_page.js", "js/lesson.css"
"""The first module of a page that may have a lesson, and the style of its column."""
STUDIO = (
    "page/js/chooser.js",
    "page/js/python_runs.js",
    "page/js/folder.js",
    "page/js/structure.js",
    "page/js/structure_history.js",
    "page/js/replacing.js",
)
"""The modules that need Python, which files leave out."""
TABLE = ("page/js/panels/model.js", "page/js/editing.js", "page/js/model_files.js")
"""The modules of the mode Build, which files without a table leave out."""
BEAMS = ("page/js/beams.js",)
"""The modules of flexible bodies, which files of rigid ones leave out."""


def script_of(loops: Sequence[object], *, table: bool, lesson: bool = False, beams: bool = False) -> str:
    """Return the script of the file of a mechanism with these loops, with or without a table, a lesson and beams."""
    parts = ((loops, ("page/js/panels/loops.js",)), (table, TABLE), (beams, BEAMS))
    unused = (*STUDIO, *(name for used, names in parts if not used for name in names))
    return bundle(LESSON_ENTRY if lesson else ENTRY, unused)


def served_script() -> str:
    """Return the script of the studio, whose page opens any mechanism and any lesson."""
    return bundle(LESSON_ENTRY)


def style_of(*, lesson: bool = False) -> str:
    """Return the style of a page, with or without the column of a lesson."""
    return texts((*STYLES, LESSON_STYLE) if lesson else STYLES)
