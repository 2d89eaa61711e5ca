"""The kernel of a page: functions of the mechanism as one WebAssembly module, in the order of their use to a reader."""

from __future__ import annotations

import gzip
from collections import Counter
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field, replace
from typing import Any

from ..analysis.kinematics.pose_kernel import pose_kernel
from ..analysis.kinematics.pose_programs import PoseEquations
from ..analysis.loops.driven_programs import loads_program
from ..analysis.loops.native_loops import idle_equations
from ..compiler.ir.program import Program
from ..compiler.lanes.form import Kernel
from ..compiler.lower.build import is_long
from ..compiler.runtime.singular_inertia import weightless_joints
from ..compiler.targets.wasm.target import wasm_module
from ..dynamics import ALGORITHMS
from ..exporting.live import coordinates, live_step
from ..model.mechanism import Mechanism
from ..model.parts import GROUND
from ..model.topology import path
from ..simulation.forces.point_forces import forces_of
from ..system import System
from .page_lengths import placements_program

TEXT = 4.0 / 3.0
"""Characters of a page per byte of compressed code, which is written in base64."""


@dataclass(frozen=True)
class PageFunction:
    """A function of the kernel: its name, options of `System.function`, and whether only closed mechanisms have it."""

    name: str
    options: Mapping[str, Any] = field(default_factory=dict)
    closed: bool = False


FUNCTIONS = (
    PageFunction("poses"),
    PageFunction("integrate"),
    PageFunction("difference"),
    PageFunction("closure_residual", closed=True),
    PageFunction("closure_jacobian", closed=True),
    PageFunction("placements"),
    PageFunction("time_step"),
    PageFunction("kinetic_energy"),
    PageFunction("potential_energy"),
    PageFunction("twists"),
    PageFunction("inverse_dynamics", {"wrenches": True}),
    PageFunction("gravity_torque"),
    PageFunction("closure_bias", closed=True),
    PageFunction("driven_torques", closed=True),
    PageFunction("loop_loads", closed=True),
    PageFunction("inverse_kinematics"),
    PageFunction("reactions", {"wrenches": True}),
    PageFunction("twist_rates"),
    PageFunction("forward_dynamics", {"wrenches": True}),
    PageFunction("center_of_mass"),
    PageFunction("momentum"),
    PageFunction("inertia_matrix"),
    PageFunction("inverse_recursion"),
    PageFunction("forward_recursion"),
)
"""The functions of a page. Those that do not fit are left out, and with them the panels that need them."""


def page_kernel(system: System, room: float, functions: Sequence[str] | None = None) -> dict[str, Any] | None:
    """Return the module of a System and what the page must know of it; None for mechanisms that are too long.

    `room` is the number of characters of the page that the module may take. `functions` are names of FUNCTIONS, by
    default all of them that fit.
    """
    mechanism = system.mechanism
    if is_long(mechanism) or not system.nq:
        return None
    frame = last_frame(mechanism)
    pose = pose_kernel(PoseEquations(mechanism, frame, (True,) * 6))
    made: dict[str, Any] = {"inverse_kinematics": pose, "placements": placements_program(mechanism)}
    made |= _loop_functions(system)
    live: dict[str, tuple[int, int]] = {}
    falls = not weightless_joints(mechanism)  # otherwise accelerations are not defined
    if falls:
        made["time_step"], inputs = live_step(mechanism, forces_of(mechanism))
        live = inputs.places
    units: list[Program | Kernel] = []
    left = room
    for f in FUNCTIONS:
        if (f.closed and not system.closures) or (functions is not None and f.name not in functions):
            continue
        if not falls and (f.name == "time_step" or (f.name in ALGORITHMS and ALGORITHMS[f.name].inverts)):
            continue
        unit: Any = (
            made[f.name] if f.name in made else system.function(f.name, lowering="unrolled", **f.options).program
        )
        if unit is None:
            continue
        size = TEXT * len(gzip.compress(wasm_module([unit])))
        if size <= left:
            units.append(unit)
            left -= size
    return {
        "wasm": wasm_module(units, model=mechanism.name),
        "live": {name: list(place) for name, place in live.items()},
        "coordinates": [coordinates(mechanism).get(v, -1) for v in range(system.nv)],
        "frame": frame,
    }


def _loop_functions(system: System) -> dict[str, Any]:
    """Return the functions for reactions of loops; None without loops, or with equations of velocities alone.

    `driven_torques` (q, qd, qdd) are those of a motion with every joint driven, with the forces of the mechanism.
    `loop_loads` (q, qd, qdd, multipliers) are the reactions at all joints and loops.
    """
    m = system.mechanism
    if not m.loops or m.rolls:
        return {"driven_torques": None, "loop_loads": None}
    torques = system.function("inverse_dynamics", lowering="unrolled", forces=True).program
    loads, _ = loads_program(m, idle_equations(system), (), forces=True, wrenches=False)
    return {"driven_torques": replace(torques, name="driven_torques"), "loop_loads": replace(loads, name="loop_loads")}


def last_frame(mechanism: Mechanism) -> str:
    """Return the frame that a reader moves first: the named one on the longest chain of bodies.

    Without named frames it is the body that closes the most loops, or else the last body of the longest chain.
    """
    depth = {body.name: len(path(mechanism, i)) for i, body in enumerate(mechanism.bodies)}
    named = [f for f in mechanism.frames if f.body != GROUND]
    if named:
        return max(enumerate(named), key=lambda entry: (depth[entry[1].body], entry[0]))[1].name
    ends = Counter(body for x in mechanism.loops for body in (x.body_a, x.body_b))
    return max(mechanism.bodies, key=lambda body: (ends[body.name], depth[body.name])).name
