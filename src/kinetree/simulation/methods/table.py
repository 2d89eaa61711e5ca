"""The table of integration methods.

Schemes are imported when they are used, so that names and descriptions cost nothing to the command line.
"""

from __future__ import annotations

import math
from dataclasses import dataclass
from importlib import import_module
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from .protocol import Scheme


@dataclass(frozen=True)
class Method:
    """An integration method: a description, its (largest) order, and whether its steps are adaptive.

    `found` is the place of the scheme of a native method, as MODULE:NAME in this package; others have an `engine` of
    their own, named as in `ENGINES` of `engines/engine.py`. `stable` is the largest h |lambda| for a step h and an
    eigenvalue lambda of the rates: of explicit methods on the negative real axis (Hairer and Wanner, IV.2), of implicit
    stages for the iteration that finds them.
    """

    name: str
    what: str
    order: int
    adaptive: bool
    found: str = ""
    stable: float = math.inf
    engine: str = "native"

    @property
    def native(self) -> bool:
        """Whether runs are native code, which is also exported and has derivatives."""
        return bool(self.found)

    @property
    def scheme(self) -> Scheme:
        """The scheme of a native method."""
        assert self.native, f"{self.name} is not native"
        module, name = self.found.split(":")
        return getattr(import_module(f".{module}", __package__), name)


METHODS = {
    m.name: m
    for m in (
        Method("rk4", "classical Runge-Kutta", 4, False, "fixed_steps:RK4", 2.78),
        Method("euler", "semi-implicit Euler, velocities first", 1, False, "fixed_steps:EULER", 2.0),
        Method("midpoint", "implicit midpoint: symmetric, symplectic", 2, False, "implicit_steps:MIDPOINT", 2.0),
        Method("gauss", "Gauss with two stages: symmetric, symplectic", 4, False, "implicit_steps:GAUSS", 3.4),
        Method("dopri5", "Dormand-Prince 5(4) with dense output", 5, True, "embedded_pairs:DOPRI5", 3.25),
        Method("dop853", "Dormand-Prince 8(5,3) with dense output", 8, True, "embedded_pairs:DOP853", 6.1),
        Method("bs3", "Bogacki-Shampine 3(2) with dense output", 3, True, "embedded_pairs:BS3", 2.51),
        Method("tsit5", "Tsitouras 5(4) with dense output", 5, True, "embedded_pairs:TSIT5", 3.5),
        Method("rodas5p", "Rosenbrock 5(4) with exact Jacobian, for stiff systems", 5, True, "rosenbrock:RODAS5P"),
        Method(
            "moreau", "Moreau's time steps with hard contact and friction", 1, False, stable=2.0, engine="time_stepping"
        ),
        Method(
            "implicit_euler",
            "Euler, implicit in springs, dampers and friction of joints; O(n), for ropes",
            1,
            False,
            engine="marching",
        ),
        Method("implicit_midpoint", "midpoint, implicit in the same; O(n), for ropes", 2, False, engine="marching"),
        Method(
            "radau",
            "Radau IIA of SciPy, for stiff systems whose rates are too long for rodas5p",
            5,
            True,
            engine="scipy",
        ),
        Method(
            "bdf",
            "backward differentiation by SUNDIALS with exact Jacobian, an independent check",
            5,
            True,
            engine="sundials",
        ),
        Method(
            "scipy", "SciPy's DOP853 on the compiled rates: a slow reference for comparison", 8, True, engine="scipy"
        ),
    )
}


def names_of(*, adaptive: bool) -> str:
    """Return the names of native methods with adaptive or with fixed steps, such as "rk4, euler, midpoint or gauss"."""
    *first, last = (m.name for m in METHODS.values() if m.native and m.adaptive is adaptive)
    return f"{', '.join(first)} or {last}"
