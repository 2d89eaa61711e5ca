"""Files of exported functions by suffix: code, and beside it what the receiver needs."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

from ...errors import InputError, writing
from ...version import VERSION
from ..lanes.form import Kernel
from ..targets import OBJECT, emitter, object_code
from ..targets.arrays import arrays_of
from ..targets.c99.kernels import extents
from ..targets.c99.names import identifier
from ..targets.wasm.loader import LOADER, loader
from ..targets.wasm.target import wasm_module
from .c_files import header, source
from .exportable import Exportable


def write(made: Exportable, path: str | Path, *, triple: str | None = None, beside: str | None = None) -> list[Path]:
    """Write a function to a file, in the language of its suffix, and what belongs beside it; return all paths.

    C comes with a header, object code with a header and a self-test in JSON, WebAssembly with a loader and a self-test,
    other code with the self-test alone.
    `triple` is the processor of object code: a name of PROCESSORS or a triple of LLVM, by default this computer.
    `beside` is the stem of the files beside the code, by default that of the path.
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
    data: dict[str, Any] = {
        "kinetree": VERSION, "model": made.model, "function": identifier(unit.name), "hash": made.hash,
        "dtype": made.dtype, "summary": made.summary, "extents": extents(unit) if isinstance(unit, Kernel) else [],
        "arrays": arrays, "samples": samples,
    }  # fmt: skip
    return json.dumps(data, indent=1, allow_nan=False) + "\n"
