"""Lines of LLVM assembly with unique names, loops and branches."""

from __future__ import annotations

from collections.abc import Callable


class Text:
    """The lines of one function."""

    def __init__(self) -> None:
        """Start without lines."""
        self.lines: list[str] = []
        self.used: set[str] = set()
        self._next = 0

    def put(self, *lines: str) -> None:
        """Append lines without changes."""
        self.lines.extend(lines)

    def new(self, text: str) -> str:
        """Append `name = text` and return the name."""
        self._next += 1
        self.lines.append(f"  %x{self._next} = {text}")
        return f"%x{self._next}"

    def loop(self, stop: int | str, step: int, body: Callable[[str], object]) -> None:
        """Write a loop over 0, step, ... below stop that runs at least once; `body` takes the name of the counter."""
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

    def fold(
        self, stop: int | str, kind: str, values: list[str], body: Callable[[str, list[str]], list[str]]
    ) -> list[str]:
        """Write a loop over 0, 1, ... below stop that runs at least once and passes values on; return the last ones.

        `body` takes the names of the counter and of the values of one type, and returns those of the next values.
        """
        self._next += 1
        tag, before = str(self._next), self.current_block()
        self.put(f"  br label %loop{tag}", f"loop{tag}:")
        place = len(self.lines)
        passed = [f"%p{tag}_{j}" for j in range(len(values))]
        after = body(f"%k{tag}", passed)
        end = self.current_block()
        self.lines[place:place] = [
            f"  %k{tag} = phi i64 [ 0, %{before} ], [ %kn{tag}, %{end} ]",
            *(
                f"  {p} = phi {kind} [ {x}, %{before} ], [ {y}, %{end} ]"
                for p, x, y in zip(passed, values, after, strict=True)
            ),
        ]
        self.put(
            f"  %kn{tag} = add i64 %k{tag}, 1",
            f"  %km{tag} = icmp slt i64 %kn{tag}, {stop}",
            f"  br i1 %km{tag}, label %loop{tag}, label %end{tag}",
            f"end{tag}:",
        )
        return after

    def repeat(self, body: Callable[[], str]) -> None:
        """Write a loop that runs at least once, and again while the condition that `body` returns holds."""
        self._next += 1
        tag = str(self._next)
        self.put(f"  br label %again{tag}", f"again{tag}:")
        condition = body()
        self.put(f"  br i1 {condition}, label %again{tag}, label %enough{tag}", f"enough{tag}:")

    def while_(self, condition: Callable[[], str], body: Callable[[], object]) -> None:
        """Write a loop that runs while a condition holds."""
        self._next += 1
        tag = str(self._next)
        self.put(f"  br label %test{tag}", f"test{tag}:")
        holds = condition()
        self.put(f"  br i1 {holds}, label %do{tag}, label %end{tag}", f"do{tag}:")
        body()
        self.put(f"  br label %test{tag}", f"end{tag}:")

    def if_(self, condition: str, body: Callable[[], object]) -> None:
        """Write code that runs if a condition holds."""
        self._next += 1
        tag = str(self._next)
        self.put(f"  br i1 {condition}, label %then{tag}, label %end{tag}", f"then{tag}:")
        body()
        self.put(f"  br label %end{tag}", f"end{tag}:")

    def either(self, condition: str, yes: Callable[[], object], no: Callable[[], object]) -> None:
        """Write code that runs if a condition holds, and code that runs otherwise."""
        self._next += 1
        tag = str(self._next)
        self.put(f"  br i1 {condition}, label %then{tag}, label %else{tag}", f"then{tag}:")
        yes()
        self.put(f"  br label %end{tag}", f"else{tag}:")
        no()
        self.put(f"  br label %end{tag}", f"end{tag}:")

    def require(self, condition: str, otherwise: str) -> None:
        """Write a branch to the block `otherwise` unless a condition holds."""
        self._next += 1
        self.put(f"  br i1 {condition}, label %go{self._next}, label %{otherwise}", f"go{self._next}:")

    def current_block(self) -> str:
        """Return the label of the current basic block."""
        for line in reversed(self.lines):
            if line.endswith(":"):
                return line[:-1]
        return "entry"

    def text(self) -> str:
        """Return all lines as text."""
        return "\n".join(self.lines)
