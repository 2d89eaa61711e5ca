"""A WebAssembly module under construction: functions with their types, exports, data and custom sections."""

from __future__ import annotations

import json
from dataclasses import dataclass, field
from typing import Any

from .binary import PLAIN, TYPES, integer, section, text, unsigned, vector

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
        exports = [text(name) + b"\x00" + unsigned(k) for name, k in self.exports]
        exports += [text("memory") + b"\x02\x00", text("heap") + b"\x03\x00"]
        heap = TYPES["i32"] + b"\x00" + integer(self.reserved) + PLAIN["end"]
        numbers = list(self.numbers.items())
        blocks = [numbers[k : k + NUMBERS] for k in range(0, len(numbers), NUMBERS)]
        contents = [*self.data, *((block[0][1], b"".join(x for x, _ in block)) for block in blocks)]
        data = [b"\x00" + integer(at) + PLAIN["end"] + unsigned(len(x)) + x for at, x in contents]
        described = json.dumps(metadata, separators=(",", ":"), sort_keys=True)
        parts = [
            section(1, vector(self.types)),
            section(3, vector(unsigned(t) for t, _ in self.functions)),
            section(5, vector([b"\x00" + unsigned(max(pages, 1))])),
            section(6, vector([heap])),
            section(7, vector(exports)),
            section(10, vector(body for _, body in self.functions)),
            section(11, vector(data)) if data else b"",
            section(0, text("kinetree") + described.encode()),
        ]
        return HEADER + b"".join(parts)


def metadata_of(module: bytes) -> dict[str, Any]:
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
