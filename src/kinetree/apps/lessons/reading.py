"""Reader of lesson files (.toml): `[lesson]`, and `[[step]]` with `[step.set]`, `[[step.reading]]`, `[step.question]`.

Texts are Markdown of a small kind: paragraphs, *emphasis*, `code`, formulas between dollar signs. Nothing in them runs.
"""

from __future__ import annotations

import ast
import operator
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import numpy as np

from ... import library
from ...errors import ModelError, Where, at, below, unknown_name
from ...formats.fields import constant, file_text, known_keys, require, sequence, text
from ...formats.toml import parsed_toml
from ...formats.toml_lines import Places

# --- Formulas of lessons: numbers, names, lists, arithmetic, entries of arrays and calls of known functions ---
#
# Names may have dots, such as mass.link3. The page gets the trees of formulas and evaluates them
# (`page/js/formulas.js`).

OPERATIONS: dict[type, tuple[str, Callable[..., Any]]] = {
    ast.Add: ("+", operator.add),
    ast.Sub: ("-", operator.sub),
    ast.Mult: ("*", operator.mul),
    ast.Div: ("/", operator.truediv),
    ast.Pow: ("**", operator.pow),
    ast.USub: ("neg", operator.neg),
}
"""Operations by their nodes: the name in the trees of pages, and the function."""
CONSTANTS: dict[str, Any] = {
    "pi": np.pi,
    "deg": np.pi / 180,
    "sqrt": np.sqrt,
    "sin": np.sin,
    "cos": np.cos,
    "tan": np.tan,
    "acos": np.arccos,
    "atan2": np.arctan2,
    "abs": np.abs,
    "log": np.log,
    "norm": lambda x: float(np.linalg.norm(x)),
}
"""Names that every formula may use."""


def parse_formula(formula: str, where: str = "") -> ast.expr:
    """Return the tree of a formula, or refuse what formulas cannot contain."""
    try:
        tree = ast.parse(formula.strip(), mode="eval").body
    except (SyntaxError, ValueError, RecursionError, MemoryError):
        raise _refusal(formula, where) from None
    for node in ast.walk(tree):
        if isinstance(node, ast.Constant) and type(node.value) in (int, float, str):
            continue
        if isinstance(node, ast.Call) and isinstance(node.func, ast.Name) and not node.keywords:
            continue
        if isinstance(node, ast.BinOp | ast.UnaryOp) and type(node.op) in OPERATIONS:
            continue
        if isinstance(node, ast.Attribute) and isinstance(node.value, ast.Name | ast.Attribute):
            continue
        if isinstance(node, ast.Name | ast.List | ast.Tuple | ast.Subscript | ast.Load | ast.operator | ast.unaryop):
            continue
        raise _refusal(formula, where)
    return tree


def page_tree(formula: str) -> Any:
    """Return a formula for the page: a number, or a list of the kind of a node and its parts."""
    return _page_tree(parse_formula(formula))


def _page_tree(node: ast.expr) -> Any:
    if isinstance(node, ast.Constant):
        return ["text", node.value] if isinstance(node.value, str) else node.value
    if isinstance(node, ast.Name | ast.Attribute):
        return ["name", ast.unparse(node)]
    if isinstance(node, ast.List):
        return ["list", *map(_page_tree, node.elts)]
    if isinstance(node, ast.BinOp):
        return [OPERATIONS[type(node.op)][0], _page_tree(node.left), _page_tree(node.right)]
    if isinstance(node, ast.UnaryOp):
        return [OPERATIONS[type(node.op)][0], _page_tree(node.operand)]
    if isinstance(node, ast.Subscript):
        return ["entry", _page_tree(node.value), *map(_page_tree, _places(node))]
    if isinstance(node, ast.Call):
        return ["call", ast.unparse(node.func), *map(_page_tree, node.args)]
    raise _refusal(ast.unparse(node), "")


def evaluate_formula(formula: str, known: Mapping[str, object]) -> Any:
    """Return the value of a formula: a number, or an array of a list."""
    return _value(parse_formula(formula), {**CONSTANTS, **known})


def _value(node: ast.expr, known: Mapping[str, object]) -> Any:
    if isinstance(node, ast.Constant):
        return node.value
    if isinstance(node, ast.Name | ast.Attribute):
        name = ast.unparse(node)
        if name not in known:
            raise unknown_name("name", name, known, where="formula")
        return known[name]
    if isinstance(node, ast.List):
        return np.array([_value(x, known) for x in node.elts], dtype=float)
    if isinstance(node, ast.BinOp):
        return OPERATIONS[type(node.op)][1](_value(node.left, known), _value(node.right, known))
    if isinstance(node, ast.UnaryOp):
        return OPERATIONS[type(node.op)][1](_value(node.operand, known))
    if isinstance(node, ast.Subscript):
        return _value(node.value, known)[tuple(int(_value(x, known)) for x in _places(node))]
    if isinstance(node, ast.Call):
        return _value(node.func, known)(*(_value(x, known) for x in node.args))
    raise _refusal(ast.unparse(node), "")


def _places(node: ast.Subscript) -> list[ast.expr]:
    return node.slice.elts if isinstance(node.slice, ast.Tuple) else [node.slice]


def _refusal(formula: str, where: str) -> ModelError:
    return ModelError(
        f"{formula!r} is not a formula of numbers, names, lists, entries and calls",
        where=where,
        remedy="write for example gravity_torque([30*deg, 0])[0]",
    )


# --- The data of a lesson: a mechanism, and steps with text, a setting of the page, readings and a question ---

TOLERANCE = 0.01
"""The relative error of an answer that counts as right, unless a question states its own."""


@dataclass(frozen=True)
class Reading:
    """A number that the page shows while the mechanism moves: a name, a unit, and a formula of q, qd and t."""

    name: str
    unit: str
    value: str


@dataclass(frozen=True)
class Question:
    """A number to find: the answer is a formula of the mechanism's functions at given values.

    `given` has formulas by name, which may use those before them. An answer counts as right if its error is at most
    `within` times the right number. `hint` follows a wrong answer, `why` the right one.
    """

    ask: str
    unit: str
    answer: str
    given: Mapping[str, str] = field(default_factory=dict)
    within: float = TOLERANCE
    hint: str = ""
    why: str = ""


@dataclass(frozen=True)
class Step:
    """A step: its text, a button that sets the page, what to look at, readings, and perhaps a question.

    `setting` has the fields of the page by name: a mode, a state, curves. Texts in it that are formulas are evaluated.
    """

    title: str
    text: str
    do: str = ""
    setting: Mapping[str, Any] = field(default_factory=dict)
    look: str = ""
    readings: tuple[Reading, ...] = ()
    question: Question | None = None


@dataclass(frozen=True)
class Lesson:
    """A lesson: a title, a mechanism of the library, one sentence on what it teaches, and its steps."""

    name: str
    title: str
    mechanism: str
    summary: str
    minutes: int
    steps: tuple[Step, ...]
    start: str = ""


__all__ = ["TOLERANCE", "Lesson", "Question", "Reading", "Step"]

SETTINGS = (
    "mode", "q", "qd", "start", "forward", "inverse", "kinematics", "recursion", "parameters", "show", "pick", "view",
    "plot", "ahead", "hold", "keep", "play", "time", "speed", "model", "loops",
)  # fmt: skip
"""The keys of `[step.set]`, which `page/js/lesson_setting.js` applies to the page."""


def read_lesson(path: Path) -> Lesson:
    """Read a lesson file; errors name its line and a remedy."""
    source = file_text(path)
    with Places(source).errors_in(str(path)):
        return _lesson(parsed_toml(source), path.stem)


def _lesson(tables: Mapping[str, object], name: str) -> Lesson:
    known_keys(tables, ("lesson", "step"), "")
    place = at("lesson")
    head = known_keys(require(tables, "lesson", ""), ("title", "mechanism", "summary", "minutes", "start"), place)
    mechanism = text(require(head, "mechanism", place), below(place, "mechanism"))
    if mechanism not in library.names():
        raise unknown_name("built-in mechanism", mechanism, library.names(), where=below(place, "mechanism"))
    return Lesson(
        name,
        text(require(head, "title", place), below(place, "title")),
        mechanism,
        text(require(head, "summary", place), below(place, "summary")),
        int(constant(require(head, "minutes", place), below(place, "minutes"))),
        tuple(
            _step(step, Where(f"step {k + 1}", ("step", k)))
            for k, step in enumerate(sequence(require(tables, "step", ""), at("step")))
        ),
        _formula(head["start"], below(place, "start")) if "start" in head else "",
    )


def _step(table: Any, where: str) -> Step:
    known_keys(table, ("title", "text", "do", "set", "look", "reading", "question"), where)
    if ("do" in table) != ("set" in table):
        raise ModelError(
            "a button and what it sets belong together",
            where=where,
            remedy="give both do = ... and [step.set], or neither",
        )
    question = table.get("question")
    return Step(
        text(require(table, "title", where), below(where, "title")),
        text(require(table, "text", where), below(where, "text")).strip(),
        text(table.get("do", ""), below(where, "do")),
        known_keys(table.get("set", {}), SETTINGS, below(where, "set")),
        text(table.get("look", ""), below(where, "look")).strip(),
        tuple(_reading(x, below(where, "reading", k)) for k, x in enumerate(_readings(table, where))),
        None if question is None else _question(question, below(where, "question")),
    )


def _readings(table: Mapping[str, object], where: str) -> Sequence[Any]:
    return sequence(table.get("reading", []), below(where, "reading"))


def _reading(table: Any, where: str) -> Reading:
    known_keys(table, ("name", "unit", "value"), where)
    return Reading(
        text(require(table, "name", where), where),
        text(table.get("unit", ""), where),
        _formula(require(table, "value", where), below(where, "value")),
    )


def _question(table: Any, where: str) -> Question:
    known_keys(table, ("ask", "unit", "answer", "given", "within", "hint", "why"), where)
    given = table.get("given", {})
    return Question(
        text(require(table, "ask", where), where).strip(),
        text(table.get("unit", ""), where),
        _formula(require(table, "answer", where), below(where, "answer")),
        {name: _formula(x, below(where, "given")) for name, x in known_keys(given, given, where).items()},
        float(constant(table.get("within", TOLERANCE), below(where, "within"))),
        text(table.get("hint", ""), where).strip(),
        text(table.get("why", ""), where).strip(),
    )


def _formula(x: Any, where: str) -> str:
    parse_formula(text(x, where), where)
    return x
