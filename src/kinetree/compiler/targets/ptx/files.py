"""PTX as a file, for hosts that load it with the CUDA driver themselves."""

from __future__ import annotations

from ..protocol import Unit
from .target import PTX


class PTXFile:
    """The text of PTX; its entries have the name of the unit, and that name with the ending _rows."""

    def emit(self, unit: Unit, dtype: str) -> str:
        """Return the PTX of a unit."""
        target, name = PTX(), unit.name  # type: ignore[union-attr]
        source = target.emit(unit, dtype).replace("@kernel(", f"@{name}(").replace("@rows(", f"@{name}_rows(")
        return target.build(source).decode()
