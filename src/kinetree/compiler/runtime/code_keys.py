"""The key of a function's code in the cache."""

from __future__ import annotations

from collections.abc import Callable

from ...dynamics import ALGORITHMS
from ...joints import shipped
from ...loops import shipped as shipped_loop
from ...model.mechanism import Mechanism
from ..ir.program import Program
from ..lower.build import Request
from . import cache


def code_key(mechanism: Mechanism, request: Request, program: Callable[[], Program], fingerprint: str) -> str:
    """Return the key of the code of a request for a target.

    The key of a mechanism covers only the sources of this package. With algorithms or kinds from elsewhere, the key is
    the hash of the arithmetic.
    """
    if ALGORITHMS[request.name].page.__module__.startswith("kinetree.") and _of_shipped_kinds(mechanism):
        return cache.key(mechanism, request, fingerprint)
    return cache.digest(program().hash, request.dtype, fingerprint)


def _of_shipped_kinds(mechanism: Mechanism) -> bool:
    return all(shipped(x.kind) for x in mechanism.joints) and all(shipped_loop(x.kind) for x in mechanism.loops)
