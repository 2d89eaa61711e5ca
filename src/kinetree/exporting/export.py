"""`export`: functions of a System, open or closed, as files in one folder."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from ..model.mechanism import Mechanism
    from ..simulation.instants import Force
    from ..simulation.stabilization import Loops
    from ..system import System


def export(
    system: System | Mechanism,
    functions: str | Sequence[str] = ("forward_dynamics", "inverse_dynamics"),
    to: str | Sequence[str] = "c",
    folder: str | Path = ".",
    *,
    frame: str | None = None,
    axes: str | None = None,
    wrenches: bool = False,
    control: Any = None,
    forces: Force | Sequence[Force] | None = None,
    passive: bool = True,
    method: str = "rk4",
    loops: Loops | None = None,
    dtype: str = "float64",
    prefix: str = "",
    jacobian: bool = False,
) -> list[Path]:
    """Write functions of a System as code for other machines, each with a self-test, and return the paths.

    `functions` are functions of a System by name, and besides: "step", one time step with torques that are held over
    it, named time_step in files; "run", a whole run; "rates", "loads" and "control", the torques of a controller. The
    latter five act under `control`, `forces` and, with `passive`, the forces of the mechanism itself, as in `simulate`.
    `method` is the integrator of step and run, `loops` the way in which loops stay closed.

    `to` are "c", "object" or "object:PROCESSOR", and other formats by their suffix, such as "wasm" or "ptx". Functions
    with a choice of `frame` and `axes`, or with external `wrenches`, get them. The files are named like the functions,
    with a `prefix`, which keeps the functions of several models apart. With `jacobian`, each function of the System has
    its Jacobian with respect to all inputs beside it, jac_NAME, which CasADi finds in the same library.
    """
    from .writing import Options, write_functions  # the modules of files take time to import, and few need them

    options = Options(frame, axes, wrenches, control, forces, passive, method, loops, dtype, prefix, jacobian)
    return write_functions(system, functions, to, folder, options)
