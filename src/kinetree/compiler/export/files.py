"""Files of exported functions by suffix: code, and beside it what the receiver needs."""

from __future__ import annotations

import json
import re
from collections.abc import Iterable
from pathlib import Path

import numpy as np

from ..._support import VERSION
from ...errors import InputError, writing
from ...targets import OBJECT, emitter, object_code
from ...targets.abi import arrays_of
from ...targets.c import definitions, extents, prototype
from ...targets.c.programs import REALS, identifier, number
from ...targets.wasm import LOADER, loader, wasm_module
from ..lanes.form import Kernel
from .casadi_abi import interface
from .exportable import Exportable, plain

# --- C source and header of a function: documentation, code, self-test, and the interface of CasADi ---

WIDTH = 116
"""The length of lines of comments."""

MOST = 64
"""The number of labels above which the order of entries is abbreviated."""


def header(made: Exportable) -> str:
    """Return the header, for C and C++."""
    name = identifier(made.unit.name)
    guard = f"KINETREE_{name.upper()}_H"
    return "\n".join(
        [
            documentation(made),
            f"#ifndef {guard}",
            f"#define {guard}",
            "#ifdef __cplusplus",
            'extern "C" {',
            "#endif",
            "",
            f"{prototype(made.unit, made.dtype)};",
            "",
            "/* Returns 0, or the number of the first sample whose outputs differ too much; in the C source only. */",
            f"int {name}_selftest(void);",
            "",
            "#ifdef __cplusplus",
            "}",
            "#endif",
            "#endif",
            "",
        ]
    )


def source(made: Exportable, stem: str) -> str:
    """Return the source, which includes the header with a given stem."""
    name, unit = identifier(made.unit.name), made.unit
    abi = interface(unit, REALS[made.dtype][0], made.nominal)
    rename = [f"#ifdef KINETREE_CASADI\n#define {name} {name}_kinetree\n#endif"] if abi else []
    return "\n".join(
        [
            f"/* {name}: {made.origin}.",
            f"   {stem}.h describes the arguments. Macros: KINETREE_NO_SELFTEST leaves the self-test out,",
            "   KINETREE_SELFTEST_ONLY leaves all else out, to test object code"
            + (",\n   KINETREE_CASADI adds the interface of CasADi's external(). */" if abi else ". */"),
            "#include <math.h>",
            *rename,
            f'#include "{stem}.h"',
            "",
            "#ifndef KINETREE_SELFTEST_ONLY",
            definitions(unit, made.dtype),
            "#endif\n",
            selftest_source(made),
            abi,
        ]
    )


def documentation(made: Exportable) -> str:
    """Return the comment that documents a function: its origin, its arguments with units and order, and its rules."""
    unit = made.unit
    lines = [f"{identifier(unit.name)}: {plain(made.summary)}", f"Written by Kinetree: {made.origin}.", ""]
    if isinstance(unit, Kernel) and extents(unit):
        lines.append("nt: the number of output times, at least 2")
    for name, shape, output in arrays_of(unit):
        meaning = made.meaning(name)
        size = "".join(f"[{'nt' if n == 't' else n}]" for n in shape or (1,))
        lines += _wrapped(f"{identifier(name)}{size} ({'out' if output else 'in'}): {plain(meaning.text)}", "")
        if meaning.order:
            shown = [plain(x) for x in meaning.order[:MOST]]
            more = f", ... ({len(meaning.order)} in all)" if len(meaning.order) > MOST else ""
            lines += _wrapped("order: " + ", ".join(shown) + more, "    ")
    lines += [
        "",
        "Arrays are dense and row-major. " + _overlap(made),
        "No memory is allocated and nothing is checked: numbers that are not finite pass through.",
    ]
    return "/* " + "\n   ".join(lines).replace("\n   \n", "\n\n") + " */"


def _overlap(made: Exportable) -> str:
    if isinstance(made.unit, Kernel) and not extents(made.unit):
        return "Outputs may be the same arrays as inputs."
    return "Outputs must not overlap with inputs."


def _wrapped(text: str, indent: str) -> list[str]:
    lines, now = [], indent
    for word in text.split(" "):
        if now.strip() and len(now) + len(word) + 1 > WIDTH:
            lines.append(now)
            now = f"{indent}    "
        now += word if not now.strip() else f" {word}"
    return [*lines, now]


def selftest_source(made: Exportable) -> str:
    """Return the function that compares the outputs of all samples with the expected ones."""
    unit, test, name = made.unit, made.selftest, identifier(made.unit.name)
    real, suffix = REALS[made.dtype]
    count = test.count
    sizes = {label: x[0].size for label, x in {**test.inputs, **test.outputs}.items()}
    given = [f"x{k}" for k in range(len(test.inputs))]
    lines = []
    for k, x in enumerate(test.inputs.values()):
        lines.append(_table(f"x{k}", real, suffix, x.reshape(count, -1)))
    for k, x in enumerate(test.outputs.values()):
        lines.append(_table(f"e{k}", real, suffix, x.reshape(count, -1)))
    lines.append(_table("tolerance", real, suffix, np.stack(list(test.tolerances.values()), axis=1)))
    lines += [f"    {real} y{k}[{sizes[label]}];" for k, label in enumerate(test.outputs)]
    extent = [str(_extent(made))] if isinstance(unit, Kernel) and extents(unit) else []
    call = ", ".join([*extent, *(f"{x}[s]" for x in given), *(f"y{k}" for k in range(len(test.outputs)))])
    lines += ["    int s, i;", f"    for (s = 0; s < {count}; ++s) {{", f"        {name}({call});"]
    for k, label in enumerate(test.outputs):
        lines.append(
            f"        for (i = 0; i < {sizes[label]}; ++i) "
            f"if (!(fabs{suffix}(y{k}[i] - e{k}[s][i]) <= tolerance[s][{k}])) return s + 1;"
        )
    body = "\n".join([*lines, "    }", "    return 0;"])
    return f"#ifndef KINETREE_NO_SELFTEST\nint {name}_selftest(void)\n{{\n{body}\n}}\n#endif\n"


def _extent(made: Exportable) -> int:
    return next(x.shape[1] for label, x in made.selftest.inputs.items() if label == "times")


def _table(name: str, real: str, suffix: str, rows: np.ndarray) -> str:
    texts = ["{" + _joined(number(float(x), suffix) for x in row) + "}" for row in rows]
    inner = ",\n        ".join(texts)
    return f"    static const {real} {name}[{len(rows)}][{rows.shape[1]}] = {{\n        {inner}}};"


def _joined(texts: Iterable[str]) -> str:
    """Return numbers separated by commas, some to a line; parentheses around negative ones are not needed here."""
    plain_texts = [re.sub(r"^\((-[^)]*)\)$", r"\1", x) for x in texts]
    rows = [", ".join(plain_texts[k : k + 4]) for k in range(0, len(plain_texts), 4)]
    return ",\n         ".join(rows)


def write(made: Exportable, path: str | Path, *, triple: str | None = None, beside: str | None = None) -> list[Path]:
    """Write a function to a file, in the language of its suffix, and what belongs beside it; return all paths.

    C comes with a header, object code with a header and a self-test in JSON, WebAssembly with a loader and a self-test,
    other code with the self-test alone.
    `triple` is the processor of object code: a name of PROCESSORS or a triple of LLVM, by default this computer.
    `beside` is the stem of the files beside the code, by default the stem of the path.
    """
    path = Path(path)
    suffix = path.suffix
    emitter(suffix)  # raises the error that lists the known suffixes
    if triple is not None and suffix not in OBJECT:
        raise InputError(
            f"triple is {triple!r}, but {suffix} has no choice of processors; only {' and '.join(OBJECT)} have"
        )
    stem = beside or path.stem
    contents: dict[Path, str | bytes] = {}
    if suffix == ".c":
        contents[path] = source(made, stem)
        contents[path.with_name(f"{stem}.h")] = header(made)
    elif suffix == ".wasm":
        contents[path] = wasm_module([made.unit], made.dtype, model=made.model)
        contents[path.with_name(LOADER)] = loader()
    else:
        chosen = object_code(triple or "native") if suffix in OBJECT else emitter(suffix)
        content = chosen.emit(made.unit, made.dtype)
        contents[path] = f"// {made.unit.name}: {made.origin}\n{content}" if isinstance(content, str) else content
        if suffix in OBJECT:
            contents[path.with_name(f"{stem}.h")] = header(made)
    if suffix != ".c":
        contents[path.with_name(f"{stem}.selftest.json")] = selftest_json(made)
    for place, content in contents.items():
        with writing(place):
            place.write_bytes(content.encode() if isinstance(content, str) else content)
    return list(contents)


def selftest_json(made: Exportable) -> str:
    """Return the self-test as JSON: the origin, the arrays in the order of arguments, and the samples."""
    test, unit = made.selftest, made.unit
    arrays = [
        {"name": name, "shape": list(shape), "output": output, "meaning": made.meaning(name).text}
        for name, shape, output in arrays_of(unit)
    ]
    samples = [
        {
            "inputs": {name: x[k].tolist() for name, x in test.inputs.items()},
            "outputs": {name: x[k].tolist() for name, x in test.outputs.items()},
            "tolerances": {name: float(x[k]) for name, x in test.tolerances.items()},
        }
        for k in range(test.count)
    ]
    data: dict[str, object] = {
        "kinetree": VERSION,
        "model": made.model,
        "function": identifier(unit.name),
        "hash": made.hash,
        "dtype": made.dtype,
        "summary": made.summary,
        "extents": extents(unit) if isinstance(unit, Kernel) else [],
        "arrays": arrays,
        "samples": samples,
    }
    return json.dumps(data, indent=1, allow_nan=False) + "\n"
