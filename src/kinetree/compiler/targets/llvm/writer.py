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
        name = f"%x{self._tag()}"
        self.lines.append(f"  {name} = {text}")
        return name

    def loop(self, stop: int | str, step: int, body: Callable[[str], object]) -> None:
        """Write a loop over 0, step, ... below stop that runs at least once; `body` takes the name of the counter."""

        def alone(counter: str, _: list[str]) -> list[str]:
            body(counter)
            return []

        self.fold(stop, "", [], alone, step=step)

    def fold(
        self,
        stop: int | str,
        kind: str,
        values: list[str],
        body: Callable[[str, list[str]], list[str]],
        *,
        step: int = 1,
    ) -> list[str]:
        """Write a loop over 0, step, ... below stop that runs at least once and passes values on; return the last ones.

        `body` takes the names of the counter and of the values of one type, and returns those of the next values.
        """
        tag, before = self._tag(), self.current_block()
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
            f"  %kn{tag} = add i64 %k{tag}, {step}",
            f"  %km{tag} = icmp slt i64 %kn{tag}, {stop}",
            f"  br i1 %km{tag}, label %loop{tag}, label %end{tag}",
            f"end{tag}:",
        )
        return after

    def repeat(self, body: Callable[[], str]) -> None:
        """Write a loop that runs at least once, and again while the condition that `body` returns holds."""
        tag = self._tag()
        self.put(f"  br label %again{tag}", f"again{tag}:")
        condition = body()
        self.put(f"  br i1 {condition}, label %again{tag}, label %enough{tag}", f"enough{tag}:")

    def while_(self, condition: Callable[[], str], body: Callable[[], object]) -> None:
        """Write a loop that runs while a condition holds."""
        tag = self._tag()
        self.put(f"  br label %test{tag}", f"test{tag}:")
        holds = condition()
        self.put(f"  br i1 {holds}, label %do{tag}, label %end{tag}", f"do{tag}:")
        body()
        self.put(f"  br label %test{tag}", f"end{tag}:")

    def if_(self, condition: str, body: Callable[[], object]) -> None:
        """Write code that runs if a condition holds."""
        tag = self._tag()
        self.put(f"  br i1 {condition}, label %then{tag}, label %end{tag}", f"then{tag}:")
        body()
        self.put(f"  br label %end{tag}", f"end{tag}:")

    def either(self, condition: str, yes: Callable[[], object], no: Callable[[], object]) -> None:
        """Write code that runs if a condition holds, and code that runs otherwise."""
        tag = self._tag()
        self.put(f"  br i1 {condition}, label %then{tag}, label %else{tag}", f"then{tag}:")
        yes()
        self.put(f"  br label %end{tag}", f"else{tag}:")
        no()
        self.put(f"  br label %end{tag}", f"end{tag}:")

    def require(self, condition: str, otherwise: str) -> None:
        """Write a branch to the block `otherwise` unless a condition holds."""
        tag = self._tag()
        self.put(f"  br i1 {condition}, label %go{tag}, label %{otherwise}", f"go{tag}:")

    def _tag(self) -> str:
        """Return a number for the next names."""
        self._next += 1
        return str(self._next)

    def current_block(self) -> str:
        """Return the label of the current basic block."""
        for line in reversed(self.lines):
            if line.endswith(":"):
                return line[:-1]
        return "entry"

    def text(self) -> str:
        """Return all lines as text."""
        return "\n".join(self.lines)
