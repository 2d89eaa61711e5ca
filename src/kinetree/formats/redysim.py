"""Reader of ReDySim's model files, inputs.m: assignments of numbers in MATLAB's notation, calculated but never run.

A file is a function whose outputs are the model: the number of links n, modified Denavit-Hartenberg parameters alp, a,
b (and th), parents bt (from 1, 0 for the ground), centers of mass dx, dy, dz from the origins of the links, masses m,
gravity g, and inertias Icxx, ... about the centers of mass in the axes of the links. Files for fixed bases have r as
well, 1 for revolute and 0 for prismatic joints. In files for floating bases, link 1 floats and all joints are revolute.
"""

from __future__ import annotations

import math
import re
from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path

from ..algebra.vectors import to_vector
from ..errors import ModelError, unknown_name
from ..model import GROUND, Body, Joint, Mechanism, build_mechanism
from .dh import parts_from_dh
from .fields import file_text
from .report import Group, Report, report_tolerated, size_text

Value = float | list[float]
"""A number or a vector; rows and columns are the same."""
MOST = 20_000
"""The largest number of entries of a vector, for files that are read in seconds."""
DEEPEST = 40
"""The deepest nesting of parentheses and brackets."""
CENTER, INERTIA = ("dx", "dy", "dz"), ("Icxx", "Icyy", "Iczz", "Icxy", "Icyz", "Iczx")
VECTORS = ("alp", "a", "b", "bt", *CENTER, "m", *INERTIA)
"""What a model requires, with one entry per link, besides n and g."""
KNOWN = {
    "aj": "the actuated joints",
    "al": "lengths of the links, for drawings",
    "alt": "distances of the tips, for drawings",
    "dof": "the number of degrees of freedom",
    "nq": "the view of the animation, planar or spatial",
    "Tp": "the duration",
    "steps": "the sampling time",
    "g_prop": "properties of the ground",
}
"""What else models have, which is no part of a mechanism."""
HELPERS = "variables only served to calculate others"
FUNCTIONS: dict[str, Callable[[float], float]] = {
    "sin": math.sin, "cos": math.cos, "tan": math.tan, "sqrt": math.sqrt, "abs": abs, "deg2rad": math.radians,
    "asin": math.asin, "acos": math.acos, "atan": math.atan, "exp": math.exp,
}  # fmt: skip
TOKEN = re.compile(
    r"(?P<space>[ \t\r]+)|(?P<comment>%[^\n]*|\.\.\.[^\n]*\n)|(?P<line>\n)"
    r"|(?P<number>(?:[0-9]+\.?[0-9]*|\.[0-9]+)(?:[eE][+-]?[0-9]+)?)|(?P<name>[A-Za-z][A-Za-z0-9_]*)"
    r"|(?P<mark>\.\*|\./|\.\^|[-+*/^()\[\],;=])"
)


@dataclass(frozen=True)
class Token:
    """A number, name, mark or end of a line, with its line and whether there is space before it."""

    sort: str
    text: str
    line: int
    spaced: bool


def read_redysim(path: str | Path, *, lenient: bool | None = None) -> tuple[Mechanism, Report]:
    """Read the model of a ReDySim file."""
    return read_redysim_text(file_text(path), file=str(path), lenient=lenient)


def read_redysim_text(source: str, *, file: str = "<text>", lenient: bool | None = None) -> tuple[Mechanism, Report]:
    """Read the model of a text; `file` is its name in messages."""
    report = Report(file)
    try:
        values, lines = _Assignments(_tokens(source)).calculated()
        mechanism = _mechanism(values, lines, report, Path(file).parent.name or Path(file).stem, bool(lenient))
    except ModelError as error:
        raise error.located(file) from None
    report.read(size_text(mechanism))
    report_tolerated(mechanism, report)
    return mechanism, report


# --- The mechanism of the numbers ---


def _mechanism(values: dict[str, Value], lines: dict[str, int], report: Report, name: str, lenient: bool) -> Mechanism:
    columns, gravity = _columns(values, lines, report)
    floating, guess = "r" not in values, {}
    names = [f"link{k + 1}" for k in range(len(columns["m"]))]
    rows: list[dict[str, object]] = []
    for k, link in enumerate(names):
        revolute = columns["r"][k] == 1.0
        rows.append(
            {
                "joint": "revolute" if revolute else "prismatic",
                "name": link,
                "parent": _parent(columns["bt"][k], k, names, lines["bt"]),
                "alpha": columns["alp"][k],
                "a": columns["a"][k],
                "b": columns["b"][k] if revolute else 0.0,
                "theta": 0.0 if revolute else columns["th"][k],
                "mass": columns["m"][k],
                "com": to_vector(columns[x][k] for x in CENTER),
                "inertia": tuple(columns[x][k] for x in INERTIA),
            }
        )
        if start := columns["th" if revolute else "b"][k]:
            guess[link] = start
    bodies, joints = [], []
    if floating:
        base = rows.pop(0)
        if base["parent"] != GROUND or any(row["parent"] == GROUND for row in rows):
            raise ModelError(
                "a floating base is link 1, and no other link is on the ground",
                line=lines["bt"],
                remedy="give bt(1) = 0 and numbers of links for all others, or kinds of joints r for a fixed base",
            )
        guess.pop(names[0], None)
        center, moments = to_vector(columns[x][0] for x in CENTER), tuple(columns[x][0] for x in INERTIA)
        bodies.append(Body(names[0], columns["m"][0], center, moments))
        joints.append(Joint("base", "free", GROUND, names[0]))
    if rows:
        more = parts_from_dh(rows, convention="modified", bodies=names[:1] if floating else ())
        bodies += more[0]
        joints += more[1]
    _report_rest(values, lines, report, floating=floating, guessed=bool(guess))
    return build_mechanism(name, bodies, joints, gravity=gravity, guess=guess, lenient=lenient)


def _columns(
    values: dict[str, Value], lines: dict[str, int], report: Report
) -> tuple[dict[str, list[float]], tuple[float, float, float]]:
    """Return the entries of all links by name, and gravity."""
    for key in ("n", "g", *VECTORS):
        if key not in values:
            raise ModelError(
                f"there is no {key}", remedy=f"assign n, g, and one entry per link of {', '.join(VECTORS)}"
            )
    n, (*g,) = values["n"], _vector(values["g"])
    if isinstance(n, list) or n != int(n) or not 1 <= n <= MOST:
        raise ModelError(f"n is {n}", line=lines["n"], remedy=f"give the number of links, from 1 to {MOST:,}")
    if len(g) != 3:
        raise ModelError(f"g has {len(g)} entries", line=lines["g"], remedy="give three [m/s^2]")
    columns = {"r": [1.0] * int(n), "th": [0.0] * int(n)}
    for key in (*VECTORS, *(x for x in columns if x in values)):
        entries = _vector(values[key])
        if len(entries) < n:
            raise ModelError(
                f"{key} has {len(entries)} entries", line=lines[key], remedy=f"give {int(n)}, one per link"
            )
        if len(entries) > n:
            report.suspect(f"{key} has {len(entries)} entries for {int(n)} links; the others were ignored", lines[key])
        columns[key] = entries[: int(n)]
    if wrong := [x for x in columns["r"] if x not in (0.0, 1.0)]:
        raise ModelError(
            f"an entry of r is {wrong[0]:g}", line=lines["r"], remedy="give 1 for revolute, 0 for prismatic"
        )
    return columns, (g[0], g[1], g[2])


def _parent(number: float, k: int, names: list[str], line: int) -> str:
    """Return the name of the parent of link k, whose number is from 1, or 0 for the ground."""
    if number != int(number) or not 0 <= number <= len(names) or number == k + 1:
        raise ModelError(
            f"the parent of link {k + 1} is {number:g}",
            line=line,
            remedy=f"give 0 for the ground, or the number of another link up to {len(names)}",
        )
    return names[int(number) - 1] if number else GROUND


def _report_rest(
    values: dict[str, Value], lines: dict[str, int], report: Report, *, floating: bool, guessed: bool
) -> None:
    """Report what is no part of the mechanism, and what has another place in it."""
    if floating:
        report.changed("there are no joint types r: link 1 floats, on the joint 'base'", lines["bt"])
    if guessed:
        report.changed("th of revolute joints, or b of prismatic ones, is their coordinate: it is the guess")
    if values.get("type") == 1.0:
        report.dropped(
            "type is 1, a closed mechanism, but its loops stand in another file (jacobian.m): this is the open tree; "
            "add them by [[loop]] or kt.Loop",
            lines["type"],
        )
    on_ground = [k + 1 for k, x in enumerate(_vector(values["bt"])) if x == 0.0]
    if (
        len(on_ground) > 1
        and len({tuple(_vector(values[x])[k - 1] for x in ("alp", "a", "b")) for k in on_ground}) == 1
    ):
        report.suspect(
            f"links {', '.join(map(str, on_ground))} are at the same place on the ground; ReDySim's examples may have "
            "other places in for_kine.m",
            lines["bt"],
        )
    used = {"n", "g", "r", "th", "type", *VECTORS}
    for key in (x for x in values if x not in used):
        if key in KNOWN:
            report.dropped(f"{key}: {KNOWN[key]}", lines[key])
        else:
            report.dropped(f"{key} only served to calculate others", lines[key], Group(HELPERS, key))


# --- Assignments, calculated one after the other ---


def _tokens(source: str) -> list[Token]:
    """Return the tokens of a text, without comments; a continued line is one line."""
    out: list[Token] = []
    line, at, spaced = 1, 0, False
    while at < len(source):
        found = TOKEN.match(source, at)
        if found is None:
            raise ModelError(
                f"{source[at]!r} has no place here",
                line=line,
                remedy="only assignments of numbers are read, no texts; put numbers of .mat files here",
            )
        sort, text = found.lastgroup or "", found.group()
        if sort == "space" or text.startswith("..."):
            spaced = True
        elif sort != "comment":
            out.append(Token(sort, text, line, spaced))
            spaced = False
        line += text.count("\n")
        at = found.end()
    return [*out, Token("line", "\n", line, False), Token("end", "the end of the file", line, False)]


class _Assignments:
    """The variables of a text, and the line of the first assignment of each."""

    def __init__(self, tokens: list[Token]) -> None:
        """Store the tokens."""
        self.tokens, self.at, self.depth = tokens, 0, 0
        self.values: dict[str, Value] = {"pi": math.pi}
        self.lines: dict[str, int] = {}

    def calculated(self) -> tuple[dict[str, Value], dict[str, int]]:
        """Return all variables with their lines."""
        ended = False
        while self.next.sort != "end":
            token = self.take()
            if token.sort == "line" or token.text in (";", ","):
                continue
            if ended:
                raise self.fault(f"{token.text!r} after the end of the function", token, "keep one function alone")
            if token.text == "function" and not self.lines:
                while self.next.sort != "line":
                    self.take()
            elif token.text in ("end", "return"):
                ended = True
            else:
                self.assign(token)
        self.values.pop("pi")
        return self.values, self.lines

    def assign(self, token: Token) -> None:
        """Calculate `name = ...` or `name(number) = ...`."""
        if token.sort != "name" or self.next.text not in ("=", "("):
            what = f"{token.text!r} where an assignment belongs"
            raise self.fault(what, token, "only assignments are read, such as m=[1.5; 5]; write results as numbers")
        place = None
        if self.next.text == "(":
            self.take()
            place = self.index(self.expression(), token)
            self.expect(")")
        self.expect("=")
        value = self.expression()
        if self.next.sort not in ("line", "end") and self.next.text not in (";", ","):
            raise self.fault(f"{self.next.text!r} after the value of {token.text}", self.next, "end it by ;")
        if token.text in FUNCTIONS or token.text in ("pi", "zeros", "ones"):
            raise self.fault(f"{token.text} is a function or a constant", token, "choose another name")
        self.lines.setdefault(token.text, token.line)
        if place is None:
            self.values[token.text] = value
            return
        entries = list(_vector(self.values.get(token.text, [])))
        entries += [0.0] * (place - len(entries))
        entries[place - 1] = self.number(value, token)
        self.values[token.text] = entries

    def expression(self, *, inside: bool = False) -> Value:
        """Return a sum; inside brackets, "a -b" are two entries."""
        self.depth += 1
        if self.depth > DEEPEST:
            raise self.fault("parentheses are nested too deeply", self.next, f"use at most {DEEPEST} levels")
        value = self.product(inside)
        while self.next.text in ("+", "-") and not (
            inside and self.next.spaced and not self.tokens[self.at + 1].spaced
        ):
            mark = self.take()
            other = self.product(inside)
            value = self.combined(mark, value, other)
        self.depth -= 1
        return value

    def product(self, inside: bool) -> Value:
        """Return a product or quotient."""
        value = self.signed(inside)
        while self.next.text in ("*", "/", ".*", "./"):
            mark = self.take()
            value = self.combined(mark, value, self.signed(inside))
        return value

    def signed(self, inside: bool) -> Value:
        """Return a power with its signs, which bind less."""
        sign = 1.0
        while self.next.text in ("+", "-"):
            sign = -sign if self.take().text == "-" else sign
        value = self.primary()
        while self.next.text in ("^", ".^"):
            mark, minus = self.take(), 1.0
            while self.next.text in ("+", "-"):
                minus = -minus if self.take().text == "-" else minus
            power = self.primary()
            value = self.combined(mark, value, power if minus > 0 else self.combined(_TIMES, -1.0, power))
        return value if sign > 0 else self.combined(_TIMES, -1.0, value)

    def primary(self) -> Value:
        """Return a number, a variable or one of its entries, a function's value, a parenthesis or a vector."""
        token = self.take()
        if token.sort == "number":
            value = float(token.text)
            return self.finite(value, token)
        if token.text == "(":
            value = self.expression()
            self.expect(")")
            return value
        if token.text == "[":
            return self.vector()
        if token.sort != "name":
            raise self.fault(f"{token.text!r} where a number belongs".replace("'\\n'", "the end of the line"), token)
        if self.next.text == "(" and not (self.depth and self.next.spaced and token.text in self.values):
            return self.called(token)
        if token.text not in self.values:
            raise unknown_name("variable", token.text[:80], self.values, line=token.line)
        return self.values[token.text]

    def called(self, token: Token) -> Value:
        """Return an entry of a variable, or the value of a function."""
        self.take()
        arguments = [self.expression()]
        while self.next.text == ",":
            self.take()
            arguments.append(self.expression())
        self.expect(")")
        if token.text in self.values and len(arguments) == 1:
            entries, place = _vector(self.values[token.text]), self.index(arguments[0], token)
            if place > len(entries):
                raise self.fault(f"{token.text} has {len(entries)} entries, not {place}", token, "assign it before")
            return entries[place - 1]
        if token.text in ("zeros", "ones"):
            sizes = [self.index(x, token) for x in arguments]
            if len(sizes) > 2 or min(sizes) > 1 or max(sizes) > MOST or len(sizes) == 1 != max(sizes):
                raise self.fault(f"{token.text} of a matrix", token, "give (n,1) or (1,n)")
            return [float(token.text == "ones")] * max(sizes)
        if token.text == "sum" and len(arguments) == 1:
            return self.finite(math.fsum(_vector(arguments[0])), token)
        if token.text not in FUNCTIONS or len(arguments) != 1:
            known = [*FUNCTIONS, "sum", "zeros", "ones", *self.values]
            raise unknown_name("function of one number", token.text[:80], known, line=token.line)
        function, (x,) = FUNCTIONS[token.text], arguments
        try:
            made = [self.finite(function(entry), token) for entry in _vector(x)]
        except (ValueError, OverflowError):
            raise self.fault(f"{token.text} has no finite value there", token) from None
        return made if isinstance(x, list) else made[0]

    def vector(self) -> list[float]:
        """Return the entries of a vector in brackets: a row, or a column whose rows are vectors."""
        out: list[float] = []
        rows, widest = 0, 0
        begin, width = self.next, 0
        while self.next.text != "]":
            if self.next.text in (";", "\n"):
                rows, widest, width = rows + bool(width), max(widest, width), 0
                self.take()
            elif self.next.text == ",":
                self.take()
            else:
                value = self.expression(inside=True)
                width += 1
                out += _vector(value)
                if len(out) > MOST:
                    raise self.fault(f"there are more than {MOST:,} entries", begin)
        self.take()
        if rows + bool(width) > 1 and max(widest, width) > 1:
            raise self.fault("this is a matrix", begin, "give a row or a column")
        return out

    def combined(self, mark: Token, a: Value, b: Value) -> Value:
        """Return the result of an operation, entry by entry."""
        if isinstance(a, list) and isinstance(b, list):
            if len(a) != len(b) or mark.text in ("*", "/", "^"):
                what = f"{mark.text!r} between vectors of {len(a)} and {len(b)} entries"
                raise self.fault(what, mark, "entry by entry, vectors of one length take .* and ./")
            return [self.operated(mark, x, y) for x, y in zip(a, b, strict=True)]
        if isinstance(a, list):
            return [self.operated(mark, x, b) for x in a]  # type: ignore[arg-type] - b is a number
        if isinstance(b, list):
            return [self.operated(mark, a, y) for y in b]
        return self.operated(mark, a, b)

    def operated(self, mark: Token, x: float, y: float) -> float:
        try:
            match mark.text[-1]:
                case "+":
                    out = x + y
                case "-":
                    out = x - y
                case "*":
                    out = x * y
                case "/":
                    out = x / y
                case _:
                    out = x**y
        except (ZeroDivisionError, OverflowError):
            out = math.inf
        return self.finite(out, mark)

    def finite(self, x: float, token: Token) -> float:
        if isinstance(x, complex) or not math.isfinite(x):
            raise self.fault(f"the result at {token.text!r} is not a finite number", token)
        return float(x)

    def number(self, x: Value, token: Token) -> float:
        entries = _vector(x)
        if len(entries) != 1:
            raise self.fault(f"a vector of {len(entries)} entries where one number belongs", token)
        return entries[0]

    def index(self, x: Value, token: Token) -> int:
        place = self.number(x, token)
        if place != int(place) or not 1 <= place <= MOST:
            raise self.fault(f"{token.text}({place:g})", token, f"entries are counted from 1 to {MOST:,}")
        return int(place)

    @property
    def next(self) -> Token:
        return self.tokens[self.at]

    def take(self) -> Token:
        token = self.tokens[self.at]
        self.at += token.sort != "end"
        return token

    def expect(self, text: str) -> None:
        token = self.take()
        if token.text != text:
            shown = "the end of the line" if token.sort == "line" else repr(token.text)
            raise self.fault(f"{shown} where {text!r} belongs", token)

    @staticmethod
    def fault(what: str, token: Token, remedy: str = "") -> ModelError:
        return ModelError(what, line=token.line, remedy=remedy or "write the number itself")


_TIMES = Token("mark", "*", 0, False)


def _vector(x: Value) -> list[float]:
    return x if isinstance(x, list) else [x]
