"""A page as one file: its script, style and data inside, and a policy that lets the browser run nothing else."""

from __future__ import annotations

import base64
import gzip
import hashlib
import json
import posixpath
import re
import string
from collections import Counter
from collections.abc import Iterator, Sequence
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
    loader = bundle("page/js/loader.js") if script else ""
    allowed = [fingerprint(x) for x in (loader, script) if x] or ["none"]
    if compiles or (isinstance(data, dict) and data.get("kernel")):
        allowed.append("wasm-unsafe-eval")
    scripts = " ".join(f"'{x}'" for x in allowed)
    parts = {
        "POLICY": f"default-src 'none'; script-src {scripts}; style-src '{fingerprint(style)}'",
        "STYLE": style,
        "LOOK": compress(style.encode()),
        "CODE": compress(script.encode()) if script else "",
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


INSIDE = (b"<>&@`", b",.:[]")
"""Digits of base 85 that mean something in HTML or templates, and those that stand for them in pages."""
DENSITY = 5.0 / 4.0
"""Characters of a page per compressed byte: four bytes are five digits of base 85."""


def compress(content: bytes) -> str:
    """Return bytes compressed, in base 85."""
    return base64.b85encode(gzip.compress(content, mtime=0)).translate(bytes.maketrans(*INSIDE)).decode()


def decompress(text: str) -> bytes:
    """Return the bytes that were compressed."""
    return gzip.decompress(base64.b85decode(text.encode().translate(bytes.maketrans(*reversed(INSIDE)))))


def pack(data: object) -> str:
    """Return data as text in base 85: compressed JSON, followed by the arrays, to which it refers by their places."""
    blocks: list[bytes] = []
    plain = json.dumps(_without_arrays(data, blocks), allow_nan=False, separators=(",", ":")).encode()
    plain += b" " * (-(len(plain) + 8) % 8)
    return compress(len(plain).to_bytes(8, "little") + plain + b"".join(blocks))


def unpack(text: str) -> Any:
    """Return the data of `pack`."""
    whole = decompress(text)
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
    functions = "".join(_function(path, sources[path], number, exports) for path in order)
    return f'"use strict";{{\n{functions}}}\n'  # in braces, so that two scripts of a page share no names


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

    text = LISTED.sub("", DECLARED.sub(r"\1", IMPORT.sub(imported, source)))
    text += f"return {{ {', '.join(exports[path])} }};"
    return f"const m{number[path]}=(()=>{{{shorten(text)}}})();\n"


def _pairs(names: str) -> list[str]:
    """Return the names of an import as those of a pattern: `a`, or `a: b` for `a as b`."""
    parts = [re.split(r"\s+as\s+", part.strip()) for part in names.strip("{}").split(",") if part.strip()]
    return [": ".join(part) for part in parts]


# --- Short modules: without comments and optional spaces, and with short names of variables ---
#
# A name is replaced wherever it is a variable of its module, by one that the module does not have. No scopes are needed
# for that: what is one variable, or two of the same name, stays so. Names of properties stay, and `{ a }` becomes
# `{ a: b }`. Names that the module does not declare are those of the browser.

TOKEN = re.compile(
    r"""(?P<space>\s+|//[^\n]*|/\*[\s\S]*?\*/)
    |(?P<text>"(?:[^"\\\n]|\\.)*"|'(?:[^'\\\n]|\\.)*')
    |(?P<number>0[xX][\da-fA-F_]+|(?:\d[\d_]*\.?\d*|\.\d+)(?:[eE][-+]?\d+)?)
    |(?P<name>[A-Za-z_$][\w$]*)
    |(?P<sign>\#[\w$]+|\.\.\.|\?\.(?!\d)|\+\+|--|=>|[-+*/%&|^!=<>?~]=*|[{}()\[\];,:.])""",
    re.VERBOSE,
)
CHUNK = re.compile(r"[`}](?:[^`\\$]|\\[\s\S]|\$(?!\{))*(?:`|\$\{)")
"""A part of a template: from its beginning, or the end of an expression, to its end or the next expression."""
REGULAR = re.compile(r"/(?:[^/\\\[\n]|\\.|\[(?:[^\]\\\n]|\\.)*\])+/[a-z]*")
OPERATORS = frozenset("await case delete do else in instanceof of return throw typeof void yield".split())
"""The keywords that an operand may follow, such as a regular expression or an object."""
KEYWORDS = OPERATORS | frozenset(
    "arguments async break catch class const continue debugger default enum export extends false finally for function "
    "get if import let new null set static super switch this true try undefined var while with".split()
)
BROWSER = frozenset(
    "addEventListener atob btoa cancelAnimationFrame clearInterval clearTimeout console crypto decodeURIComponent "
    "devicePixelRatio document encodeURIComponent fetch getComputedStyle globalThis history indexedDB innerHeight "
    "innerWidth isFinite isNaN localStorage location matchMedia navigator parseFloat parseInt performance "
    "queueMicrotask removeEventListener requestAnimationFrame sessionStorage setInterval setTimeout structuredClone "
    "window".split()
)
"""Variables of the browser in lower case, which stay: modules may use them besides their own of the same name."""

Token = tuple[str, str]
"""The kind and the text of a token."""


def shorten(source: str) -> str:
    """Return a module without comments and optional spaces, in which its own variables have short names."""
    tokens = _tokens(source)
    uses = _uses_of_names(tokens)
    given = Counter(text for (_, text), use in zip(tokens, uses, strict=True) if use)
    own = {text for k, (_, text) in enumerate(tokens) if uses[k] and _is_declared(tokens, k)} - BROWSER
    names = (name for name in _short_names() if name not in given and name not in KEYWORDS | BROWSER)
    short = {name: next(names) for name, _ in given.most_common() if name in own and len(name) > 1}
    out = [""]
    for (_, text), use in zip(tokens, uses, strict=True):
        new = short.get(text, text) if use else text
        if use == "shorthand" and new != text:
            new = f"{text}:{new}"
        if text in ("}", ")", "]") and out[-1] == "," and out[-2] not in (",", "["):
            out.pop()  # a comma before the end of a list
        out.append(f" {new}" if re.fullmatch(r"[\w$]{2}|\+\+|--|//", out[-1][-1:] + new[0]) else new)
    return "".join(out)


def _short_names() -> Iterator[str]:
    """Yield a, b, ..., Z, aa, ab, ..., Z9."""
    yield from string.ascii_letters
    yield from (a + b for a in string.ascii_letters for b in string.ascii_letters + string.digits)


def _tokens(source: str) -> list[Token]:
    """Return the tokens of a module, without spaces and comments."""
    out: list[Token] = [("sign", ";")]
    braces: list[str] = []
    at = 0
    while at < len(source):
        if source[at] == "`" or (source[at] == "}" and braces[-1:] == ["${"]):
            kind, match = "template", CHUNK.match(source, at)
        elif source[at] == "/" and source[at + 1] not in "/*" and _awaits_operand(*out[-1]):
            kind, match = "regular", REGULAR.match(source, at)
        else:
            kind, match = "", TOKEN.match(source, at)
        if match is None:
            raise ValueError(f"no token of a module begins with {source[at : at + 30]!r}")
        kind, text, at = kind or str(match.lastgroup), match[0], match.end()
        if kind == "space":
            continue
        out.append((kind, text))
        if kind in ("sign", "template"):
            if text[0] == "}":
                braces.pop()
            if text[-1] == "{":
                braces.append(text[-2:])
    return out[1:]


def _awaits_operand(kind: str, text: str) -> bool:
    """Return whether a stroke after a token begins a regular expression: otherwise it divides."""
    if kind == "sign":
        return text not in (")", "]", "}", "++", "--")
    return text in OPERATORS if kind == "name" else text.endswith("${")


def _uses_of_names(tokens: Sequence[Token]) -> list[str]:
    """Return the use of each token: "variable" and "shorthand" for names of variables, "" for all others."""
    uses: list[str] = []
    around = ["block"]  # the brackets around a token: "block", "object", "class", or what opens them
    for k, (kind, text) in enumerate(tokens):
        before, after = _text(tokens, k - 1), _text(tokens, k + 1)
        if kind == "name":
            uses.append("" if text in KEYWORDS else _use(around[-1], before, _text(tokens, k - 2), after))
            continue
        uses.append("")
        if text[0] in "})]" and kind in ("sign", "template"):
            around.pop()
        if kind == "template" and text.endswith("{"):
            around.append("template")
        elif kind == "sign" and text in ("(", "[", "{"):
            around.append(_braces(tokens, k) if text == "{" else text)
    return uses


def _use(around: str, before: str, earlier: str, after: str) -> str:
    """Return the use of a name between others, inside of brackets."""
    if before in (".", "?."):
        return ""
    starts = {"object": ("{", ","), "class": ("{", "}", ";")}.get(around, ())
    if before in starts or (before in ("get", "set", "static", "async", "*") and earlier in (*starts, "static")):
        if around == "object" and after in (",", "}", "="):
            return "shorthand"
        return ""  # a key, a method or a field
    return "variable"


def _braces(tokens: Sequence[Token], k: int) -> str:
    """Return the kind of the braces that a token opens: "block", "object" or "class"."""
    kind, before = tokens[k - 1] if k else ("sign", ";")
    if before in (")", "=>", ";", "{", "}", "else", "try", "finally", "do", "static"):
        return "block"
    if (kind == "name" and before not in KEYWORDS) or before == "class":
        return "class"
    if before == ":":  # of a key or of a case
        start = next(
            j for j in range(k, -1, -1) if j == 0 or _text(tokens, j - 1) in ("case", "default", ",", "=", "(", "{")
        )
        return "block" if _text(tokens, start - 1) in ("case", "default") else "object"
    return "object"


def _is_declared(tokens: Sequence[Token], k: int) -> bool:
    """Return whether a variable may be declared at its place; other variables are those of the browser."""
    before, after = _text(tokens, k - 1), _text(tokens, k + 1)
    if before in ("const", "let", "function", "class") or (before == "*" and _text(tokens, k - 2) == "function"):
        return True
    inside = before in ("(", "[", "{", ",", ":", "...") and after in (")", "]", "}", ",", "=", "=>")
    return after == "=>" or (inside and tokens[k][1][0].islower())


def _text(tokens: Sequence[Token], k: int) -> str:
    return tokens[k][1] if 0 <= k < len(tokens) else ";"


# --- Scripts and styles of pages: the modules that a page needs, and those that it leaves out ---

ENTRY, STYLES = "page/js/main.js", ("js/stage.css", "js/page.css", "js/model.css")
"""The first module of a page, and its styles: those of stage and player, of the page around them, of the mode Build."""
LESSON_ENTRY, LESSON_STYLE = "page/js/lesson_page.js", "js/lesson.css"
"""The first module of a page that may have a lesson, and the style of its column."""
STUDIO = (
    "page/js/chooser.js",
    "page/js/python_runs.js",
    "page/js/first_scene.js",
    "page/js/folder.js",
    "page/js/structure.js",
    "page/js/structure_history.js",
    "page/js/structure_parts.js",
    "page/js/replacing.js",
)
"""The modules that need Python, which files leave out."""
TABLE = ("page/js/panels/model.js", "page/js/editing.js", "page/js/model_files.js")
"""The modules of the mode Build, which files without a table leave out."""
BEAMS = ("page/js/beams.js",)
"""The modules of flexible bodies, which files of rigid ones leave out."""
ON_GROUND = ("page/js/ground.js",)
"""The modules of contact, which files of mechanisms that touch nothing leave out."""


def script_of(
    loops: Sequence[object], *, table: bool, lesson: bool = False, beams: bool = False, ground: bool = False
) -> str:
    """Return the script of the file of a mechanism with these loops, and with what else it has."""
    parts = ((loops, ("page/js/panels/loops.js",)), (table, TABLE), (beams, BEAMS), (ground, ON_GROUND))
    unused = (*STUDIO, *(name for used, names in parts if not used for name in names))
    return bundle(LESSON_ENTRY if lesson else ENTRY, unused)


def served_script() -> str:
    """Return the script of the studio, whose page opens any mechanism and any lesson."""
    return bundle(LESSON_ENTRY)


def style_of(*, lesson: bool = False) -> str:
    """Return the style of a page, with or without the column of a lesson."""
    return texts((*STYLES, LESSON_STYLE) if lesson else STYLES)
