"""Integration methods by name, the choice of `auto`, and their native integrators."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING

from ..compiler.ir.program import Program
from ..errors import unknown_name
from ..model.axes import quaternion_places
from ..model.mechanism import Mechanism
from . import tableaus
from .drives import Drives, drives_of
from .instants import Controller, Force
from .loop_closing import closing_program
from .rates import euler_step, rates
from .rosenbrock import rodas5p
from .stabilization import Baumgarte, Loops, locked_by
from .steppers import Stepper
from .tableaus import Pair, Tableau

if TYPE_CHECKING:
    from ..compiler.targets.ptx.driver import Device


@dataclass(frozen=True)
class Method:
    """An integration method: a description, its (largest) order, whether its steps are adaptive, and its tableau.

    `scheme` returns the tableau, or None for a method that is a step of its own. It is None for methods that are not
    native.
    """

    name: str
    what: str
    order: int
    adaptive: bool
    scheme: Callable[[], Tableau | Pair | None] | None


METHODS = {
    m.name: m
    for m in (
        Method("rk4", "explicit Runge-Kutta, fixed steps", 4, False, lambda: tableaus.RK4),
        Method("euler", "semi-implicit Euler, fixed steps", 1, False, lambda: None),
        Method("midpoint", "implicit midpoint, symmetric, fixed steps", 2, False, lambda: tableaus.MIDPOINT),
        Method("gauss", "Gauss with two stages, symmetric, fixed steps", 4, False, lambda: tableaus.GAUSS),
        Method("moreau", "time steps with hard contact, fixed steps", 1, False, None),
        Method("dopri5", "Dormand-Prince 5(4), dense output", 5, True, tableaus.dopri5),
        Method("dop853", "Dormand-Prince 8(5,3), dense output", 8, True, tableaus.dop853),
        Method("rodas5p", "Rosenbrock 5(4) for stiff systems, exact Jacobian, dense output", 5, True, rodas5p),
        Method("implicit_euler", "Euler, implicit in springs and dampers of joints; fixed steps", 1, False, None),
        Method("implicit_midpoint", "midpoint, implicit in springs and dampers of joints; fixed steps", 2, False, None),
        Method("bdf", "backward differentiation for stiff systems (CVODES)", 5, True, None),
        Method("scipy", "SciPy's DOP853 on the compiled rates: a referee, in Python", 8, True, None),
    )
}


def choose(name: str, dt: float | None, rtol: float, *, springy: bool = False) -> Method:
    """Return a method by name; `auto` is rk4 if a step is given, else an embedded pair chosen by the tolerance.

    If a step is given, a long mechanism with springs in its joints (`springy`) is treated as stiff.
    """
    if name == "auto" and dt is not None:
        name = "implicit_midpoint" if springy else "rk4"
    elif name == "auto":
        name = "dop853" if rtol <= 1e-7 else "dopri5"
    if name not in METHODS:
        raise unknown_name("method", name, ["auto", *METHODS])
    return METHODS[name]


def stepper(
    mechanism: Mechanism,
    method: Method,
    forces: Sequence[Force] = (),
    control: Controller | None = None,
    *,
    loops: Loops | None = None,
    dtype: str = "float64",
    device: Device | None = None,
) -> Stepper:
    """Return the native integrator of a mechanism under forces and control; `loops` are projected by default.

    With a `device`, it runs on that GPU.
    """
    assert method.scheme is not None, f"{method.name} is not native"
    scheme = method.scheme()
    make = euler_step if scheme is None else rates
    program = make(mechanism, forces, control, loops=loops, dtype=dtype)
    return stepper_of(mechanism, program, scheme, loops, dtype, device, drives=drives_of(control))


def stepper_of(
    mechanism: Mechanism,
    program: Program,
    scheme: Tableau | Pair | None,
    loops: Loops | None = None,
    dtype: str = "float64",
    device: Device | None = None,
    drives: Drives | None = None,
) -> Stepper:
    """Return the native integrator of a Program of rates, or of one that is a step."""
    alone = drives is None and (isinstance(loops, Baumgarte) or not mechanism.closures)
    closing = None if alone else closing_program(mechanism, locked_by(loops), drives=drives, dtype=dtype)
    return Stepper(program, scheme, tuple(quaternion_places(mechanism)), dtype, closing, device)
