"""A digest of descriptions: equal for equal values, in every process."""

from __future__ import annotations

import hashlib
from collections.abc import Mapping
from dataclasses import fields, is_dataclass
from types import CodeType, FunctionType, ModuleType
from typing import Any

import numpy as np

from ..compiled import CompiledMechanism


def digest(*parts: Any) -> str:
    """Return a digest of numbers, texts, arrays, lists, mappings, dataclasses and functions."""
    return hashlib.sha256(text(parts).encode()).hexdigest()


def text(x: Any) -> str:
    """Return a text that differs for different values; numbers keep every bit."""
    if x is None or isinstance(x, bool | int | str | bytes):
        return repr(x)
    if isinstance(x, float):
        return float(x).hex()
    if isinstance(x, np.ndarray | np.generic):
        found = np.asarray(x)
        return f"array({found.dtype.str}, {found.shape}, {hashlib.sha256(found.tobytes()).hexdigest()})"
    if isinstance(x, list | tuple):
        return f"[{', '.join(map(text, x))}]"
    if isinstance(x, set | frozenset):
        return f"{{{', '.join(sorted(map(text, x)))}}}"
    if isinstance(x, Mapping):
        return f"{{{', '.join(f'{text(k)}: {text(v)}' for k, v in x.items())}}}"
    if isinstance(x, CompiledMechanism):
        return f"system({x.mechanism.hash})"
    if isinstance(x, ModuleType):
        return f"module({x.__name__})"
    if isinstance(x, CodeType):
        return text((x.co_code, x.co_names, x.co_varnames, x.co_freevars, x.co_consts))
    if isinstance(x, FunctionType):
        inner = [cell.cell_contents for cell in x.__closure__ or ()]
        # not its module, which is another one for a script that is imported
        return f"{x.__qualname__}({text((x.__code__, x.__defaults__, x.__kwdefaults__, inner))})"
    kind = f"{type(x).__module__}.{type(x).__qualname__}"
    if is_dataclass(x):
        return f"{kind}({', '.join(text(getattr(x, f.name)) for f in fields(x))})"
    if callable(x) and hasattr(x, "__qualname__"):
        return f"{x.__module__}.{x.__qualname__}"
    return f"{kind}({text(vars(x))})" if hasattr(x, "__dict__") else f"{kind}({x!r})"
