"""Compiled programs of a closed mechanism for one choice of held joints, kept with its System."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from functools import cached_property
from typing import Any

import numpy as np

from ...algebra.arrays import Numbers
from ...compiled import CompiledMechanism
from ...compiler.ir.program import Program
from ...compiler.lower.build import is_long
from ...compiler.lower.loop_pattern import closing
from ...compiler.runtime.native import native
from ...compiler.runtime.singular_inertia import weightless_joints
from ...dynamics.loop_loads import Ranks
from ...errors import AssemblyError
from . import driven_programs as programs
from .assembly import assemble
from .kinematics import LoopKinematics, Mask


@dataclass(frozen=True)
class NativeLoops:
    """The programs of a mechanism on batches [n, .], with some degrees of freedom held or driven."""

    system: CompiledMechanism
    held: frozenset[int]

    @classmethod
    def of(cls, system: CompiledMechanism, held: Mask) -> NativeLoops:
        """Return the programs that the system keeps for the degrees of freedom of a mask."""
        places = frozenset(np.flatnonzero(held).tolist())
        return system._part(("native loops", places), lambda: cls(system, places))

    @property
    def passive(self) -> int:
        """The number of degrees of freedom that are not held."""
        return self.system.nv - len(self.held)

    @property
    def possible(self) -> bool:
        """Whether the mechanism has programs: it has loops, is not long, and no joint is without inertia."""
        m = self.system.mechanism
        return bool(m.closures) and not is_long(m) and self.passive > 0 and not weightless_joints(m)

    @cached_property
    def determined(self) -> bool:
        """Whether the held degrees of freedom are as many as the mechanism has where its loops close."""
        return self.possible and mobility(self.system) == len(self.held)

    def newton(self, *arrays: Any) -> tuple[Numbers, ...]:
        """Return q after one step, and its gaps before."""
        return self._call("newton", lambda m: programs.newton_program(m, self.held), arrays)

    def speeds(self, *arrays: Any) -> tuple[Numbers, ...]:
        """Return consistent velocities, the rate at which they open the loops, and the rank."""
        return self._call("speeds", lambda m: programs.speeds_program(m, self.held), arrays)

    def accelerations(self, *arrays: Any) -> tuple[Numbers, ...]:
        """Return consistent accelerations, the rate at which they open the loops, and the rank."""
        return self._call("accelerations", lambda m: programs.accelerations_program(m, self.held), arrays)

    def torques(self, *arrays: Any, forces: bool, wrenches: bool, out: tuple[Numbers, ...] = ()) -> tuple[Numbers, ...]:
        """Return tau, multipliers, missing torques, the largest torque, the openings of the loops, and the rank."""

        def make(m: Any) -> Program:
            return programs.torques_program(m, self.held, forces=forces, wrenches=wrenches)

        return self._call(("torques", forces, wrenches), make, arrays, (*out, None, None, None) if out else None)

    def motion(
        self, *arrays: Any, driven: frozenset[int] | None, forces: bool, out: tuple | None = None
    ) -> tuple[Numbers, ...]:
        """Return q, qd, qdd, tau (unless driven is None), gaps and rank of a motion of the held degrees of freedom."""

        def make(m: Any) -> Program:
            return programs.motion_program(m, self.held, driven, forces=forces)

        return self._call(("motion", driven, forces), make, arrays, out)

    def _call(
        self, key: Any, make: Callable[[Any], Program], arrays: tuple, out: tuple | None = None
    ) -> tuple[Numbers, ...]:
        compiled = self.system._part(("native loops", self.held, key), lambda: native(make(self.system.mechanism)))
        with np.errstate(all="ignore"):
            return compiled(*arrays) if out is None else compiled(*arrays, out=out)


def loads_of(
    system: CompiledMechanism, *arrays: Any, forces: bool, wrenches: bool, ranks: Ranks, out: tuple[Numbers, Numbers]
) -> tuple[list[int], Numbers | None]:
    """Write the wrenches at joints and loops and all multipliers; return what loads that the motion leaves open change.

    These are entries of the wrenches, and the squares of their changes, None if there are no such entries.
    """
    idle = idle_equations(system)

    def make() -> Any:
        program, places = programs.loads_program(system.mechanism, idle, ranks, forces=forces, wrenches=wrenches)
        return native(program), places

    compiled, places = system._part(("native loads", forces, wrenches, ranks), make)
    with np.errstate(all="ignore"):
        found = compiled(*arrays, out=(*out, None) if places else out)
    return places, found[2] if places else None


def idle_equations(system: CompiledMechanism) -> tuple[int, ...]:
    """Return the equations of loops that hold at every position."""
    kept = closing(system.mechanism).kept
    return tuple(k for k in range(len(system.closures)) if k not in kept)


def mobility(system: CompiledMechanism) -> int | None:
    """Return the degrees of freedom of a mechanism where its loops close; None if they close nowhere near the guess."""
    return system._part("mobility", lambda: _mobility(system))


def _mobility(system: CompiledMechanism) -> int | None:
    try:
        return LoopKinematics(system).motions(assemble(system)).mobility
    except AssemblyError:
        return None


def with_parameters(arrays: tuple, parameters: Numbers | None) -> tuple:
    """Return the arguments of a program: arrays, and the parameters if there are any."""
    return arrays if parameters is None else (*arrays, parameters)
