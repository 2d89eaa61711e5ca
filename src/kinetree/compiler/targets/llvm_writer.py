"""Plain lines of LLVM assembly with fresh names, for code that is not straight-line."""

from __future__ import annotations

from collections.abc import Callable


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

    def loop(self, stop: int | str, step: int, body: Callable[[str], object]) -> None:
        """Write a loop over 0, step, ... below stop, run once at least; `body` gets the counter's name."""
        self._next += 1
        tag, before = str(self._next), self.current_block()
        self.put(f"  br label %loop{tag}", f"loop{tag}:")
        place = len(self.lines)
        body(f"%k{tag}")
        end = self.current_block()
        self.lines.insert(place, f"  %k{tag} = phi i64 [ 0, %{before} ], [ %kn{tag}, %{end} ]")
        self.put(
            f"  %kn{tag} = add i64 %k{tag}, {step}",
            f"  %km{tag} = icmp slt i64 %kn{tag}, {stop}",
            f"  br i1 %km{tag}, label %loop{tag}, label %end{tag}",
            f"end{tag}:",
        )

    def current_block(self) -> str:
        """Return the label of the block that is being written."""
        for line in reversed(self.lines):
            if line.endswith(":"):
                return line[:-1]
        return "entry"

    def text(self) -> str:
        """Return everything written."""
        return "\n".join(self.lines)
