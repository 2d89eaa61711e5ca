"""The input of every writer of files: a function with the meaning of its arrays and a self-test."""

from __future__ import annotations

from dataclasses import dataclass

from ...version import VERSION
from ..ir.program import Program
from ..lanes.form import Kernel
from ..targets.protocol import digest
from .selftest import Selftest


@dataclass(frozen=True)
class Meaning:
    """The meaning of an array: a text with its unit, and one label for each entry of its axes where they have names."""

    text: str
    order: tuple[str, ...] = ()


@dataclass(frozen=True)
class Exportable:
    """A function of one mechanism; `unit.name` is its name in the files.

    `meanings` are by the names of arrays. A Jacobian that CasADi loads with its function has the names and shapes of
    that function's outputs as `nominal`, which CasADi passes to it after the inputs.
    """

    unit: Program | Kernel
    dtype: str
    model: str
    summary: str
    meanings: dict[str, Meaning]
    selftest: Selftest
    nominal: tuple[tuple[str, tuple[int, ...]], ...] = ()

    def meaning(self, name: str) -> Meaning:
        """Return the meaning of an array, by default its name alone."""
        return self.meanings.get(name, Meaning(name))

    @property
    def hash(self) -> str:
        """A digest of the arithmetic, its numbers and their precision."""
        return digest(self.unit, self.dtype)

    @property
    def origin(self) -> str:
        """The model, the version of Kinetree, the precision and the hash, on one line."""
        return f"model {plain(self.model)}, Kinetree {VERSION}, {self.dtype}, hash {self.hash}"


def plain(text: str) -> str:
    """Return a text as one line of ASCII that ends no comment, since names may come from untrusted files."""
    shown = "".join(c if c.isprintable() else " " for c in text).encode("ascii", "backslashreplace").decode()
    return shown.replace("*/", "* /").replace("/*", "/ *").replace("\\", "/").replace("??", "? ?")
