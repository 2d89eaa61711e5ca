"""A page as one file: its script, style and data inside, and a policy that lets the browser run nothing else."""

from __future__ import annotations

import base64
import gzip
import hashlib
import json
import re
from collections.abc import Sequence
from importlib.resources import files
from typing import Any

import numpy as np

KINDS = {"f": ("f4", np.float32), "d": ("f8", np.float64), "I": ("u4", np.uint32), "B": ("u1", np.uint8)}
"""The arrays of a page, by NumPy's letter of their type: the name in the page, and the type."""


def filled(template: str, script: str, style: str, data: Any, *, compiles: bool = False, **more: str) -> str:
    """Return a page with its script, style and data, and other parts, which are HTML already.

    The script is compressed, and a short loader runs it. The policy lets the browser run these two alone, by their
    hashes; a page with a kernel, or one that `compiles` others, may compile WebAssembly from bytes.
    """
    loader = texts(["page/loader.js"]) if script else ""
    allowed = [fingerprint(x) for x in (loader, script) if x] or ["none"]
    if compiles or (isinstance(data, dict) and data.get("kernel")):
        allowed.append("wasm-unsafe-eval")
    scripts = " ".join(f"'{x}'" for x in allowed)
    parts = {
        "POLICY": f"default-src 'none'; script-src {scripts}; style-src '{fingerprint(style)}'",
        "STYLE": style,
        "CODE": compressed(script) if script else "",
        "SCRIPT": loader,
        "DATA": json.dumps(packed(data)),
        **more,
    }
    text = (files("kinetree.view") / template).read_text(encoding="utf-8")
    pieces = text.split("@@")  # text, key, text, key, ..., text
    return "".join(parts[piece] if k % 2 else piece for k, piece in enumerate(pieces))  # inserted text has no keys


def texts(names: Sequence[str]) -> str:
    """Return files below `kinetree/view/`, one after the other, style sheets without optional spaces."""
    found = [(name, (files("kinetree.view") / name).read_text(encoding="utf-8")) for name in names]
    return "\n".join(re.sub(r"\s*([{};,])\s*", r"\1", text) if name.endswith(".css") else text for name, text in found)


def compressed(text: str) -> str:
    """Return a text compressed, in base64."""
    return base64.b64encode(gzip.compress(text.encode(), mtime=0)).decode()


def packed(data: Any) -> str:
    """Return data as text in base64: compressed JSON, followed by the arrays, to which it refers by their places."""
    blocks: list[bytes] = []
    plain = json.dumps(_without_arrays(data, blocks), allow_nan=False, separators=(",", ":")).encode()
    plain += b" " * (-(len(plain) + 8) % 8)
    whole = len(plain).to_bytes(8, "little") + plain + b"".join(blocks)
    return base64.b64encode(gzip.compress(whole, mtime=0)).decode()


def unpacked(text: str) -> Any:
    """Return the data of `packed`."""
    whole = gzip.decompress(base64.b64decode(text))
    size = int.from_bytes(whole[:8], "little")
    types = dict(KINDS.values())

    def revived(table: dict[str, Any]) -> Any:
        if table.keys() != {"$"}:
            return table
        kind, at, count = table["$"]
        return np.frombuffer(whole, dtype=types[kind], count=count, offset=8 + size + at)

    return json.loads(whole[8 : 8 + size], object_hook=revived)


def _without_arrays(x: Any, blocks: list[bytes]) -> Any:
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
