"""Expansion of xacro, the macros of URDF: properties, arguments, formulas, macros, conditions, includes.

Formulas are walked node by node, without eval: numbers, texts, names, arithmetic, comparisons and functions of the
mathematical library. Files are included from the model's own folder, its package and the given roots alone. The size
of the result, the depth of macros and the number of includes are bounded. What is not supported is refused.
"""

from __future__ import annotations

import ast
import math
import operator
import re
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import Any

from ..errors import ModelError, quote, unknown_name
from .xml import (
    MAX_ELEMENTS,
    MAX_TEXT,
    Element,
    Source,
    declared_folders,
    find_file,
    is_package,
    packages_above,
    parse_xml,
    read_bytes,
)

PREFIX = "xacro:"
MAX_CALLS = 50
"""The largest depth of macros and properties within each other."""
MAX_INCLUDES = 100
MAX_FORMULA = 2_000
"""The longest formula [characters]."""
MAX_STEPS = 200_000
"""The largest number of parts of all texts and formulas, and of thousands of characters of their results."""
LARGEST = 2**63
"""The largest integer; above it, numbers are of double precision."""

FUNCTIONS: dict[str, Callable[..., Any]] = {
    name: getattr(math, name)
    for name in (
        "sin cos tan asin acos atan atan2 sinh cosh tanh sqrt exp log log10 fabs floor ceil fmod hypot radians degrees "
        "copysign"
    ).split()
} | {
    "abs": abs,
    "min": min,
    "max": max,
    "round": lambda x, digits=0: _rounded(x, digits),
    "int": int,
    "float": float,
    "str": str,
    "bool": bool,
    "len": len,
}
NAMES = {"pi": math.pi, "tau": math.tau, "e": math.e, "inf": math.inf, "True": True, "False": False, "None": None}
BINARY = {
    ast.Add: operator.add,
    ast.Sub: operator.sub,
    ast.Mult: operator.mul,
    ast.Div: operator.truediv,
    ast.FloorDiv: operator.floordiv,
    ast.Mod: operator.mod,
    ast.Pow: operator.pow,
}
COMPARED = {
    ast.Eq: operator.eq,
    ast.NotEq: operator.ne,
    ast.Lt: operator.lt,
    ast.LtE: operator.le,
    ast.Gt: operator.gt,
    ast.GtE: operator.ge,
    ast.In: lambda a, b: a in b,
    ast.NotIn: lambda a, b: a not in b,
}
UNARY = {ast.UAdd: operator.pos, ast.USub: operator.neg, ast.Not: operator.not_}
SUBSTITUTION = re.compile(r"\$\$(?=[{(])|\$\{([^}]*)\}|\$\(([^)]*)\)")
PARAMETER = re.compile(r"""([^\s:=]+)(?:(:?=)(\^\|?)?("[^"]*"|'[^']*'|\$\{[^}]*\}|\S*))?""")
"""A parameter of a macro: its name, the sign of a default, that of inheritance, and the default."""


@dataclass
class Macro:
    """A macro: its parameters with their defaults, the names of its blocks, and its content."""

    parameters: dict[str, str | None]
    inherited: set[str]
    blocks: list[str]
    element: Element
    source: Source
    file: Path | None


@dataclass
class Scope:
    """Properties by name: texts, values, or blocks of elements; those of the surrounding scope are seen as well."""

    outer: Scope | None = None
    values: dict[str, Any] = field(default_factory=dict)

    def find(self, name: str) -> tuple[Scope, Any] | None:
        """Return the scope that has a property, and the property."""
        scope: Scope | None = self
        while scope is not None:
            if name in scope.values:
                return scope, scope.values[name]
            scope = scope.outer
        return None

    def names(self) -> list[str]:
        """Return the names of all properties that are seen from here."""
        return [*self.values, *(self.outer.names() if self.outer else ())]

    def top(self) -> Scope:
        """Return the outermost scope."""
        return self.outer.top() if self.outer else self


@dataclass(frozen=True)
class Text:
    """A text that is substituted when it is used."""

    text: str


def expand_xacro(
    source: Source,
    root: Element,
    path: Path | None,
    roots: Sequence[Path],
    arguments: Mapping[str, object] | None = None,
) -> Element:
    """Return the expanded robot; `arguments` are values of <xacro:arg> by name, in place of their defaults."""
    given = dict(arguments or {})
    work = _Expansion(source, path, [Path(r) for r in roots], {key: str(x) for key, x in given.items()})
    work.arguments.update(work.given)  # also above their declaration, as in the name of the robot
    scope = Scope()
    if root.tag.startswith(PREFIX):
        raise source.error(root, "the root element is a directive of xacro", "put it into a <robot>")
    try:
        (out,) = work.element(root, scope, source, path, 0)
    except RecursionError:
        raise source.error(root, "its formulas are nested too deeply", "flatten them") from None
    if unused := [name for name in given if name not in work.declared]:
        raise unknown_name("argument", unused[0], sorted(work.declared), file=source.file)
    if work.included:
        source.report.read(f"{len(work.included)} files are included; lines of their parts are those of these files")
    return out


@dataclass
class _Expansion:
    """The state of an expansion: arguments, macros, and what was counted so far."""

    source: Source
    path: Path | None
    roots: list[Path]
    given: dict[str, str]
    arguments: dict[str, str] = field(default_factory=dict)
    declared: set[str] = field(default_factory=set)
    macros: dict[str, Macro] = field(default_factory=dict)
    included: list[Path] = field(default_factory=list)
    elements: int = 0
    steps: int = 0

    def element(self, x: Element, scope: Scope, source: Source, path: Path | None, depth: int) -> list[Element]:
        """Return what an element becomes: none, one or several elements."""
        self.count(x, source)
        if x.tag.startswith(PREFIX):
            return self.directive(x, x.tag.removeprefix(PREFIX), scope, source, path, depth)
        attributes = {key: self.text(value, scope, x, source, depth) for key, value in x.attributes.items()}
        text = self.text(x.text, scope, x, source, depth) if x.text else ""
        return [Element(x.tag, attributes, self.children(x, scope, source, path, depth), x.line, text)]

    def copy(self, x: Element, source: Source) -> Element:
        """Return a copy of an element of a block."""
        self.count(x, source)
        return replace(x, attributes=dict(x.attributes), children=[self.copy(y, source) for y in x.children])

    def count(self, x: Element, source: Source) -> None:
        """Count an element, and refuse too many."""
        self.elements += 1
        if self.elements > MAX_ELEMENTS // 5:
            raise source.error(x, f"makes more than {MAX_ELEMENTS // 5} elements", "expand less")

    def step(self, x: Element, source: Source, length: int = 0) -> None:
        """Count a part of a text or formula with so many characters, and refuse too many."""
        self.steps += 1 + length // 1000
        if self.steps > MAX_STEPS:
            raise source.error(x, f"texts and formulas have more than {MAX_STEPS} parts", "expand less")

    def children(self, x: Element, scope: Scope, source: Source, path: Path | None, depth: int) -> list[Element]:
        return [y for child in x.children for y in self.element(child, scope, source, path, depth)]

    def directive(
        self, x: Element, name: str, scope: Scope, source: Source, path: Path | None, depth: int
    ) -> list[Element]:
        """Return what an element of xacro becomes."""
        if depth > MAX_CALLS:
            raise source.error(x, f"macros are nested more than {MAX_CALLS} deep", "end the recursion")
        if name == "property":
            self.property(x, scope, source, path, depth)
        elif name == "arg":
            key, default = source.name(x), x.attributes.get("default")
            self.declared.add(key)
            if key in self.given:
                self.arguments[key] = self.given[key]
            elif default is not None:
                self.arguments.setdefault(key, self.text(default, scope, x, source, depth))
        elif name == "macro":
            self.macros[source.name(x).removeprefix(PREFIX)] = self.macro(x, source, path)
        elif name == "include":
            return self.include(x, scope, source, path, depth)
        elif name in ("if", "unless"):
            if self.truth(x, scope, source, depth) == (name == "if"):
                return self.children(x, scope, source, path, depth)
        elif name == "insert_block":
            key = self.text(source.name(x), scope, x, source, depth)
            found = scope.find(key)
            if found is None or not isinstance(found[1], list):
                raise unknown_name("block", key, scope.names(), file=source.file, line=x.line)
            return [self.copy(y, source) for y in found[1]]
        elif name in self.macros:
            return self.call(x, self.macros[name], scope, source, path, depth)
        else:
            known = ("property", "arg", "macro", "include", "if", "unless", "insert_block", *self.macros)
            raise unknown_name("macro", name, known, file=source.file, line=x.line)
        return []

    def property(self, x: Element, scope: Scope, source: Source, path: Path | None, depth: int) -> None:
        """Note a property, in this scope or in one around it."""
        name, where = source.name(x), x.attributes.get("scope", "")
        if where not in ("", "parent", "global"):
            raise source.error(x, f"its scope is {quote(where)}", "give parent or global")
        target = scope.top() if where == "global" else scope.outer or scope if where == "parent" else scope
        if x.attributes.get("default") is not None:
            if scope.find(name) is not None:
                return
            value: Any = Text(x.attributes["default"])
        elif "value" in x.attributes:
            value = Text(x.attributes["value"])
        else:
            value = self.children(x, scope, source, path, depth)
        if isinstance(value, Text) and (where or name in value.text):
            value = self.value(value.text, scope, x, source, depth)  # at once: the scope, or the old value, changes
        target.values[name] = value

    def macro(self, x: Element, source: Source, path: Path | None) -> Macro:
        """Return a macro, with its parameters taken apart."""
        parameters: dict[str, str | None] = {}
        inherited, blocks = set[str](), []
        for name, has_default, inherit, default in PARAMETER.findall(x.attributes.get("params", "")):
            if name.startswith("*"):
                blocks.append(name)
                continue
            quoted = len(default) > 1 and default[0] == default[-1] and default[0] in "\"'"
            given = has_default and (default or not inherit)
            parameters[name] = (default[1:-1] if quoted else default) if given else None
            if inherit:
                inherited.add(name)
        return Macro(parameters, inherited, blocks, x, source, path)

    def call(
        self, x: Element, macro: Macro, scope: Scope, source: Source, path: Path | None, depth: int
    ) -> list[Element]:
        """Return the content of a macro for the attributes and children of a call."""
        inner = Scope(scope)
        for key, value in x.attributes.items():
            if key not in macro.parameters:
                raise unknown_name("parameter", key, macro.parameters, file=source.file, line=x.line)
            inner.values[key] = self.value(value, scope, x, source, depth)
        for key, default in macro.parameters.items():
            if key in inner.values or (key in macro.inherited and scope.find(key) is not None):
                continue
            if default is None:
                raise source.error(x, f"the parameter {quote(key)} is missing", f"add {key}=...")
            inner.values[key] = self.value(default, inner, x, source, depth)
        given = self.children(x, scope, source, path, depth)
        if len(given) < len(macro.blocks):
            names = ", ".join(macro.blocks)
            raise source.error(x, f"has {len(given)} children for the blocks {names}", f"give {len(macro.blocks)}")
        for key, block in zip(macro.blocks, given, strict=False):
            inner.values[key.lstrip("*")] = block.children if key.startswith("**") else [block]
        return self.children(macro.element, inner, macro.source, macro.file, depth + 1)

    def include(self, x: Element, scope: Scope, source: Source, path: Path | None, depth: int) -> list[Element]:
        """Return the content of another file."""
        if "ns" in x.attributes:
            raise source.error(x, "includes with a namespace are not supported", "remove ns, and rename what clashes")
        text = self.text(source.text(x, "filename"), scope, x, source, depth)
        file = self.file(text, path)
        if file is None:
            if x.attributes.get("optional", "") in ("true", "True", "1"):
                return []
            remedy = "give the folder of its package as one of roots= (command line: --root)"
            raise source.error(x, f"the file {quote(text, 200)} is not in the model's folder or package", remedy)
        self.included.append(file)
        if len(self.included) > MAX_INCLUDES or depth > MAX_CALLS:
            raise source.error(x, f"more than {MAX_INCLUDES} files are included", "include fewer")
        other = Source(str(file), source.report)
        return self.children(parse_xml(read_bytes(file), file=str(file)), scope, other, file, depth + 1)

    def folders(self) -> list[Path]:
        """Return the folders that files may be in: the model's, its package's, the roots, and those of ROS."""
        out = list(self.roots)
        if self.path is not None:
            own = self.path.resolve().parent
            out += [own, *packages_above(own)]
        return [*out, *declared_folders()]

    def file(self, text: str, path: Path | None) -> Path | None:
        """Return an included file if it is inside of a folder that files may be in."""
        absolute = "://" not in text and Path(text).is_absolute()
        start = path.parent if path is not None else None
        return find_file(f"file://{text}" if absolute else text, self.folders(), start=start)

    def package(self, name: str, x: Element, source: Source) -> str:
        """Return the folder of a package: one of those that files may be in, or in one of them."""
        if name not in ("", ".", ".."):
            for folder in self.folders():
                for place in (folder, folder / name):
                    if place.is_dir() and is_package(place.resolve(), name):
                        return str(place.resolve())
        remedy = "give the folder that contains it as one of roots= (command line: --root), or in ROS_PACKAGE_PATH"
        raise source.error(x, f"the package {quote(name)} is not found", remedy)

    def truth(self, x: Element, scope: Scope, source: Source, depth: int) -> bool:
        """Return the value of a condition."""
        value = self.value(source.text(x, "value"), scope, x, source, depth)
        if isinstance(value, str):
            if value.strip().lower() in ("true", "1", "1.0", "yes"):
                return True
            if value.strip().lower() in ("false", "0", "0.0", "no", ""):
                return False
            raise source.error(x, f"the condition is {quote(value)}", "give true or false")
        return bool(value)

    def text(self, text: str, scope: Scope, x: Element, source: Source, depth: int) -> str:
        """Return a text with its substitutions."""
        return _shown(self.value(text, scope, x, source, depth)) if "$" in text else text

    def value(self, text: str, scope: Scope, x: Element, source: Source, depth: int) -> Any:
        """Return the value of a text: that of its formula if it is nothing else, otherwise a text."""
        if depth > 2 * MAX_CALLS:
            raise source.error(x, f"{quote(text)} refers to itself", "remove the circle of properties")
        pieces, at = [], 0
        for match in SUBSTITUTION.finditer(text):
            if match.group() == text:
                return self.piece(match, scope, x, source, depth)
            pieces += [text[at : match.start()], _shown(self.piece(match, scope, x, source, depth))]
            at = match.end()
        out = "".join([*pieces, text[at:]])
        self.step(x, source, len(out))
        if len(out) > MAX_TEXT:
            raise source.error(x, f"a text has {len(out)} characters", f"use at most {MAX_TEXT}")
        return out

    def piece(self, match: re.Match[str], scope: Scope, x: Element, source: Source, depth: int) -> Any:
        """Return the value of one substitution."""
        self.step(x, source)
        formula, command = match.groups()
        if formula is not None:
            return self.formula(formula, scope, x, source, depth)
        if command is None:
            return "$"  # of $${ and $$(
        word, _, rest = command.strip().partition(" ")
        rest = self.text(rest.strip(), scope, x, source, depth + 1)
        if word == "arg":
            if rest not in self.arguments:
                raise unknown_name("argument", rest, self.arguments, file=source.file, line=x.line)
            return self.arguments[rest]
        if word == "find":
            return self.package(rest, x, source)
        remedy = "write $(arg NAME), $(find PACKAGE) or ${FORMULA}, or expand the file with xacro first"
        raise source.error(x, f"$({quote(command)[1:-1]}) is not supported", remedy)

    def formula(self, formula: str, scope: Scope, x: Element, source: Source, depth: int) -> Any:
        """Return the value of a formula."""
        shown = f"the formula {quote(formula)}"
        if len(formula) > MAX_FORMULA:
            raise source.error(x, f"a formula has {len(formula)} characters", f"use at most {MAX_FORMULA}")
        try:
            tree = ast.parse(formula.strip(), mode="eval").body
        except (SyntaxError, ValueError, MemoryError, RecursionError):
            raise source.error(x, f"{shown} cannot be read", "write one such as ${2*pi*r}") from None

        def named(name: str) -> Any:
            found = scope.find(name)
            if found is None and name in NAMES:
                return NAMES[name]
            if found is None:
                raise unknown_name("property", name, [*scope.names(), *NAMES], file=source.file, line=x.line)
            where, value = found
            if isinstance(value, list):
                raise source.error(x, f"{quote(name)} in {shown} is a block", "insert it with <xacro:insert_block>")
            return _number(self.value(value.text, where, x, source, depth + 1) if isinstance(value, Text) else value)

        def walk(node: ast.AST) -> Any:
            self.step(x, source)
            if isinstance(node, ast.Constant) and isinstance(node.value, int | float | str | bool):
                return node.value
            if isinstance(node, ast.Name):
                return named(node.id)
            if isinstance(node, ast.UnaryOp) and type(node.op) in UNARY:
                return UNARY[type(node.op)](walk(node.operand))
            if isinstance(node, ast.BinOp) and type(node.op) in BINARY:
                return _calculated(type(node.op), walk(node.left), walk(node.right))
            if isinstance(node, ast.BoolOp):
                values = [walk(y) for y in node.values]
                return all(values) if isinstance(node.op, ast.And) else any(values)
            if isinstance(node, ast.Compare) and all(type(op) in COMPARED for op in node.ops):
                items = [walk(node.left), *map(walk, node.comparators)]
                return all(COMPARED[type(op)](a, b) for op, a, b in zip(node.ops, items, items[1:], strict=False))
            if isinstance(node, ast.IfExp):
                return walk(node.body) if walk(node.test) else walk(node.orelse)
            if isinstance(node, ast.Call) and not node.keywords:
                name = node.func
                if (
                    isinstance(name, ast.Attribute)
                    and isinstance(name.value, ast.Name)
                    and name.value.id in ("math", "python")
                ):
                    name = ast.Name(name.attr)
                if isinstance(name, ast.Name) and name.id in FUNCTIONS:
                    return FUNCTIONS[name.id](*map(walk, node.args))
            raise source.error(
                x,
                f"{shown} has a part that is not supported",
                "write arithmetic, comparisons and functions such as sin",
            )

        try:
            return walk(tree)
        except ModelError:
            raise
        except (TypeError, ValueError, ZeroDivisionError, OverflowError, AttributeError):
            raise source.error(x, f"{shown} has no value", "check the numbers and texts in it") from None


def _calculated(op: type[ast.operator], a: Any, b: Any) -> Any:
    """Return the result of an operation on numbers, of bounded size, or of an addition of texts."""
    if isinstance(a, str) and isinstance(b, str) and op is ast.Add and len(a) + len(b) <= MAX_TEXT:
        return a + b
    if not (isinstance(a, int | float) and isinstance(b, int | float)):
        raise TypeError
    whole = isinstance(a, int) and isinstance(b, int)
    if op is not ast.Pow and max(abs(a), abs(b)) <= LARGEST:
        return BINARY[op](a, b)
    result = BINARY[op](float(a), float(b))
    if isinstance(result, complex):
        raise TypeError
    return int(result) if whole and result.is_integer() and abs(result) <= LARGEST else result


def _rounded(x: Any, digits: Any) -> Any:
    """Return a number rounded to so many digits, a whole one for zero digits."""
    if abs(digits) > 400:  # beyond all numbers of double precision, where Python would form powers of ten
        raise ValueError
    return round(x, digits) if digits else round(x)


def _number(value: Any) -> Any:
    """Return the number that a text is, or the text."""
    if isinstance(value, str):
        for kind in (int, float):
            try:
                return kind(value) if len(value) < 100 and "_" not in value else value
            except ValueError:
                continue
        return NAMES.get(value, value) if value in ("True", "False") else value
    return value


def _shown(value: Any) -> str:
    return value if isinstance(value, str) else str(value)
