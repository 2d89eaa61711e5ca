"""The options of one call of a compiled function, the same for NumPy arrays and for those of other libraries."""

from __future__ import annotations

from collections.abc import Collection, Iterable
from typing import Any, NamedTuple

from ...model.parameter_values import Named

LISTED = ("parameters", "wrenches", "forces", "driven", "axes", "dtype", "check", "out", "threads")
"""The options in the order of the message about others; `frame` is an argument, and `wrt` belongs to methods."""


class CallOptions(NamedTuple):
    """Options by keyword, with their defaults; CompiledMechanism describes them. With `wrt`, Jacobians are computed."""

    frame: str | None = None
    axes: str | None = None
    wrenches: Any = None
    forces: bool = False
    driven: str | Iterable[str] = ()
    wrt: tuple[str, ...] | None = None
    parameters: Named | Any = None
    dtype: str | type = "float64"
    check: bool = True
    out: Any = None
    threads: int | None = None

    @classmethod
    def of(cls, name: str, given: dict[str, Any], without: Collection[str] = ()) -> CallOptions:
        """Return the options of a call of a function from its keywords; TypeError for others, and those `without`."""
        for key in given:
            if key not in cls._field_defaults or key in without:
                *first, last = [x for x in LISTED if x not in without]
                raise TypeError(
                    f"{name}() got an unexpected keyword argument {key!r}; options are {', '.join(first)} and {last}, "
                    "as far as the function has them"
                )
        return cls(**given)

    @property
    def plain(self) -> bool:
        """Whether code and free parameters are those of a call without options."""
        return not (
            self.frame or self.axes or self.driven or self.forces
            or self.wrenches is not None or self.parameters is not None
        )  # fmt: skip

    def code(self) -> dict[str, Any]:
        """Return the options on which compiled code depends in every library, for the method `function`."""
        return {"frame": self.frame, "axes": self.axes, "wrenches": self.wrenches is not None, "driven": self.driven}

    def arrays(self, arrays: tuple) -> tuple:
        """Return the arrays of a call, with external wrenches if they are given."""
        return arrays if self.wrenches is None else (*arrays, self.wrenches)

    def given(self) -> dict[str, Any]:
        """Return the options that are not the defaults, by keyword."""
        defaults = self._field_defaults
        return {key: x for key, x in self._asdict().items() if x is not defaults[key]}
