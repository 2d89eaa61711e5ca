"""A WebAssembly module under construction: functions with their types, exports, data and custom sections."""

from __future__ import annotations

import json
import math
import struct
from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field
from typing import Any

import numpy as np

# --- The binary format of WebAssembly: numbers, sections, and instructions by their names in the text format ---

TYPES = {"i32": b"\x7f", "i64": b"\x7e", "f32": b"\x7d", "f64": b"\x7c", "v128": b"\x7b"}
"""The value types."""

_PLAIN = {
    0x00: "unreachable",
    0x05: "else end@0b return@0f drop@1a select@1b",
    0x45: "i32.eqz i32.eq i32.ne i32.lt_s i32.lt_u i32.gt_s i32.gt_u i32.le_s i32.le_u i32.ge_s i32.ge_u",
    0x50: "i64.eqz i64.eq i64.ne i64.lt_s i64.lt_u i64.gt_s i64.gt_u i64.le_s i64.le_u i64.ge_s i64.ge_u",
    0x5B: "f32.eq f32.ne f32.lt f32.gt f32.le f32.ge f64.eq f64.ne f64.lt f64.gt f64.le f64.ge",
    0x6A: "i32.add i32.sub i32.mul i32.div_s i32.div_u i32.rem_s i32.rem_u i32.and i32.or i32.xor i32.shl i32.shr_s "
    "i32.shr_u",
    0x7C: "i64.add i64.sub i64.mul i64.div_s i64.div_u i64.rem_s i64.rem_u i64.and i64.or i64.xor i64.shl i64.shr_s "
    "i64.shr_u",
    0x8B: "f32.abs f32.neg f32.ceil f32.floor f32.trunc f32.nearest f32.sqrt f32.add f32.sub f32.mul f32.div f32.min "
    "f32.max f32.copysign f64.abs f64.neg f64.ceil f64.floor f64.trunc f64.nearest f64.sqrt f64.add f64.sub f64.mul "
    "f64.div f64.min f64.max f64.copysign i32.wrap_i64",
    0xAC: "i64.extend_i32_s i64.extend_i32_u",
    0xB2: "f32.convert_i32_s f32.convert_i32_u f32.convert_i64_s f32.convert_i64_u f32.demote_f64 f64.convert_i32_s "
    "f64.convert_i32_u f64.convert_i64_s f64.convert_i64_u f64.promote_f32 i32.reinterpret_f32 i64.reinterpret_f64 "
    "f32.reinterpret_i32 f64.reinterpret_i64",
}
"""The instructions without immediates, in the order of their codes from the first; `name@code` restarts the count."""

_VECTORS = {
    0x14: "f64x2.splat f64x2.le@4b v128.and@4e v128.xor@51 v128.bitselect",
    0xC3: "i64x2.all_true i64x2.shl@cb i64x2.add@ce i64x2.sub@d1",
    0xEC: "f64x2.abs f64x2.add@f0 f64x2.sub f64x2.mul",
}
"""The instructions on vectors of 128 bits, likewise; their codes follow a byte 0xfd."""


def _codes(table: dict[int, str]) -> dict[str, int]:
    """Return the codes of instructions by name."""
    out = {}
    for first, names in table.items():
        code = first
        for name in names.split():
            name, _, own = name.partition("@")
            code = int(own, 16) if own else code
            out[name] = code
            code += 1
    return out


def _plain() -> dict[str, bytes]:
    out = {name: bytes([code]) for name, code in _codes(_PLAIN).items()}
    out |= {name: b"\xfd" + unsigned_leb128(code) for name, code in _codes(_VECTORS).items()}
    saturating = ("i32.trunc_sat_f32_s", "i32.trunc_sat_f64_s", "i64.trunc_sat_f32_s", "i64.trunc_sat_f64_s")
    return out | {name: bytes([0xFC, k]) for name, k in zip(saturating, (0, 2, 4, 6), strict=True)}


INDEXED = {
    "br": b"\x0c",
    "br_if": b"\x0d",
    "call": b"\x10",
    "local.get": b"\x20",
    "local.set": b"\x21",
    "local.tee": b"\x22",
}
"""The instructions with an index: of a label, a function or a local variable."""

BLOCKS = {"block": b"\x02\x40", "loop": b"\x03\x40", "if": b"\x04\x40"}
"""The instructions that open a block without a result."""

MEMORY = {"i32.load": (0x28, 2), "i64.load": (0x29, 3), "f32.load": (0x2A, 2), "f64.load": (0x2B, 3),
          "i32.store": (0x36, 2), "i64.store": (0x37, 3), "f32.store": (0x38, 2), "f64.store": (0x39, 3)}  # fmt: skip
"""The code and the alignment, as a power of two, of the instructions that access memory."""

LANES = {"f64x2.extract_lane": b"\xfd\x21", "f64x2.replace_lane": b"\xfd\x22"}
"""The instructions with the number of a lane."""

VECTOR = "v128.load"
"""The instruction that loads a vector."""


def unsigned_leb128(n: int) -> bytes:
    """Return a natural number as LEB128."""
    out = bytearray()
    while n > 0x7F:
        out.append(n & 0x7F | 0x80)
        n >>= 7
    out.append(n)
    return bytes(out)


PLAIN = _plain()
"""The codes of the instructions without immediates."""


def signed_leb128(n: int) -> bytes:
    """Return an integer as signed LEB128."""
    out = bytearray()
    while not -64 <= n < 64:
        out.append(n & 0x7F | 0x80)
        n >>= 7
    out.append(n & 0x7F)
    return bytes(out)


def vector(items: Iterable[bytes]) -> bytes:
    """Return a list of items with its length."""
    items = list(items)
    return unsigned_leb128(len(items)) + b"".join(items)


def text(x: str) -> bytes:
    """Return a text with its length in bytes."""
    content = x.encode()
    return unsigned_leb128(len(content)) + content


def section(number: int, content: bytes) -> bytes:
    """Return a section of a module."""
    return bytes([number]) + unsigned_leb128(len(content)) + content


def indexed_instruction(name: str, index: int) -> bytes:
    """Return an instruction with an index."""
    return INDEXED[name] + unsigned_leb128(index)


def access(name: str, offset: int) -> bytes:
    """Return a load or store at an offset from the address on the stack."""
    code, align = MEMORY[name]
    return bytes([code]) + unsigned_leb128(align) + unsigned_leb128(offset)


def integer(n: int, kind: str = "i32") -> bytes:
    """Return the instruction for an integer constant."""
    return (b"\x41" if kind == "i32" else b"\x42") + signed_leb128(n)


def real(x: float, kind: str) -> bytes:
    """Return the shortest instructions for a constant: whole numbers and float32 numbers take fewer bytes."""
    if abs(x) < 1024 and x == int(x) and math.copysign(1.0, x) == (-1.0 if x < 0 else 1.0):
        return integer(int(x)) + PLAIN[f"{kind}.convert_i32_s"]
    with np.errstate(over="ignore"):
        near = np.float32(x)
    if kind == "f32":
        return b"\x43" + struct.pack("<f", near)
    if float(near) == x:
        return b"\x43" + struct.pack("<f", near) + PLAIN["f64.promote_f32"]
    return b"\x44" + struct.pack("<d", x)


def code(source: str, names: Mapping[str, int] | None = None) -> bytes:
    """Assemble instructions of the text format; `names` has the indices of variables and functions."""
    words, out = iter(source.split()), bytearray()
    for word in words:
        if word in PLAIN:
            out += PLAIN[word]
        elif word in BLOCKS:
            out += BLOCKS[word]
        elif word in INDEXED:
            name = next(words)
            out += indexed_instruction(word, int(name) if name.isdigit() else (names or {})[name])
        elif word in MEMORY:
            out += access(word, int(next(words)))
        elif word == VECTOR:
            out += b"\xfd\x00" + unsigned_leb128(4) + unsigned_leb128(int(next(words)))
        elif word in LANES:
            out += LANES[word] + unsigned_leb128(int(next(words)))
        elif word in ("i32.const", "i64.const"):
            out += integer(int(next(words), 0), word[:3])
        else:
            assert word in ("f32.const", "f64.const"), word
            out += real(float(next(words)), word[:3])
    return bytes(out)


def body(locals_: Iterable[tuple[int, str]], instructions: bytes) -> bytes:
    """Return a function's entry of the code section: its local variables as counts with types, and its code."""
    content = vector(unsigned_leb128(n) + TYPES[kind] for n, kind in locals_ if n) + instructions + PLAIN["end"]
    return unsigned_leb128(len(content)) + content


def routine(
    parameters: Mapping[str, str], variables: Mapping[str, str], source: str, functions: Mapping[str, int] | None = None
) -> bytes:
    """Return a function's entry of the code section from its text, with the types of its variables by name."""
    names = {name: k for k, name in enumerate((*parameters, *variables))}
    return body([(1, kind) for kind in variables.values()], code(source, names | dict(functions or {})))


def horner(coefficients: tuple[float, ...], variable: str) -> str:
    """Return the text of a polynomial in a variable, with the highest power first."""
    more = " ".join(f"local.get {variable} f64.mul f64.const {c!r} f64.add" for c in coefficients[1:])
    return f"f64.const {coefficients[0]!r} {more}"


PAGE = 65536
"""The bytes of a page of memory."""

NUMBERS = 64
"""The numbers of a block of constants in memory."""

HEADER = b"\0asm\x01\0\0\0"
"""The first bytes of every module: the magic number and version 1 of the format."""


@dataclass
class Module:
    """Functions in the order of their indices. Memory is laid out from address 0 upwards."""

    types: list[bytes] = field(default_factory=list)
    functions: list[tuple[int, bytes]] = field(default_factory=list)
    exports: list[tuple[str, int]] = field(default_factory=list)
    data: list[tuple[int, bytes]] = field(default_factory=list)
    numbers: dict[bytes, int] = field(default_factory=dict)
    reserved: int = 0

    def type(self, parameters: tuple[str, ...], results: tuple[str, ...]) -> int:
        """Return the index of a function type."""
        made = b"\x60" + vector(TYPES[t] for t in parameters) + vector(TYPES[t] for t in results)
        if made not in self.types:
            self.types.append(made)
        return self.types.index(made)

    def add(self, parameters: tuple[str, ...], results: tuple[str, ...], body: bytes, name: str = "") -> int:
        """Add a function, exported if it has a name, and return its index."""
        self.functions.append((self.type(parameters, results), body))
        index = len(self.functions) - 1
        if name:
            self.exports.append((name, index))
        return index

    def reserve(self, size: int, content: bytes = b"") -> int:
        """Return the address of a block of memory, a multiple of 16, with given or zero content."""
        place = self.reserved
        self.reserved += -(-size // 16) * 16
        if content:
            self.data.append((place, content))
        return place

    def constants(self, content: bytes) -> int:
        """Return the address of constant data; equal data are stored once."""
        at = next((at for at, known in self.data if known == content), None)
        return self.reserve(len(content), content) if at is None else at

    def number(self, content: bytes) -> int:
        """Return the address of a constant of eight bytes; equal ones are stored once."""
        if content not in self.numbers:
            place = len(self.numbers) % NUMBERS
            last = next(reversed(self.numbers.values()), 0)
            self.numbers[content] = last + 8 if place else self.reserve(8 * NUMBERS)
        return self.numbers[content]

    def bytes(self, metadata: dict[str, Any], room: int) -> bytes:
        """Return the module; `room` is the number of bytes that its memory has beyond the reserved ones."""
        pages = -(-(self.reserved + room) // PAGE)
        exports = [text(name) + b"\x00" + unsigned_leb128(k) for name, k in self.exports]
        exports += [text("memory") + b"\x02\x00", text("heap") + b"\x03\x00"]
        heap = TYPES["i32"] + b"\x00" + integer(self.reserved) + PLAIN["end"]
        numbers = list(self.numbers.items())
        blocks = [numbers[k : k + NUMBERS] for k in range(0, len(numbers), NUMBERS)]
        contents = [*self.data, *((block[0][1], b"".join(x for x, _ in block)) for block in blocks)]
        data = [b"\x00" + integer(at) + PLAIN["end"] + unsigned_leb128(len(x)) + x for at, x in contents]
        described = json.dumps(metadata, separators=(",", ":"), sort_keys=True)
        parts = [
            section(1, vector(self.types)),
            section(3, vector(unsigned_leb128(t) for t, _ in self.functions)),
            section(5, vector([b"\x00" + unsigned_leb128(max(pages, 1))])),
            section(6, vector([heap])),
            section(7, vector(exports)),
            section(10, vector(body for _, body in self.functions)),
            section(11, vector(data)) if data else b"",
            section(0, text("kinetree") + described.encode()),
        ]
        return HEADER + b"".join(parts)


def metadata_of(module: bytes) -> dict[str, object]:
    """Return the content of the custom section "kinetree" of a module."""
    at = len(HEADER)
    while at < len(module):
        number = module[at]
        size, at = _read(module, at + 1)
        if number == 0:
            length, start = _read(module, at)
            if module[start : start + length] == b"kinetree":
                return json.loads(module[start + length : at + size])
        at += size
    raise ValueError("the module has no section 'kinetree'; it was not written by Kinetree")


def _read(data: bytes, at: int) -> tuple[int, int]:
    """Return a natural number in LEB128, and the place after it."""
    value = shift = 0
    while True:
        byte = data[at]
        at += 1
        value |= (byte & 0x7F) << shift
        shift += 7
        if byte < 0x80:
            return value, at
