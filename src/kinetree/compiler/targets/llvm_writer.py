"""Plain lines of LLVM assembly with fresh names, for code that is not straight-line."""

from __future__ import annotations


class Text:
    """Lines of one function."""

    def __init__(self) -> None:
        """Start empty."""
        self.lines: list[str] = []
        self.used: set[str] = set()
        self._next = 0

    def put(self, *lines: str) -> None:
        """Append lines as they are."""
        self.lines.extend(lines)

    def new(self, text: str) -> str:
        """Append `name = text` and return the name."""
        self._next += 1
        self.lines.append(f"  %x{self._next} = {text}")
        return f"%x{self._next}"

    def tag(self) -> str:
        """Return a fresh suffix for labels."""
        self._next += 1
        return str(self._next)

    def current_block(self) -> str:
        """Return the label of the block that is being written."""
        for line in reversed(self.lines):
            if line.endswith(":"):
                return line[:-1]
        return "entry"

    def text(self) -> str:
        """Return everything written."""
        return "\n".join(self.lines)
