"""The ground of a page: contacts of a mechanism, or a floor under the frames of one that floats, and time steps."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass, replace
from typing import Any

import numpy as np

from ..algebra.scalars import Numbers
from ..compiler.ir.program import Program
from ..compiler.ir.staging import some_outputs
from ..compiler.lanes.form import Kernel
from ..compiler.lower.contacts import candidate_names, motion_program
from ..contact_geometry import labels
from ..exporting.acting import LiveInputs, coordinates
from ..model.contacts import Contact, Surface
from ..model.mechanism import Mechanism, resolve_parts
from ..model.parameters import Expression, Parameter
from ..model.parts import GROUND, Placement
from ..simulation.acting.point_forces import forces_of
from ..simulation.engines.held_torques import HELD
from ..simulation.methods.table import METHODS
from ..simulation.stepping import step_kernel, stepping_of
from ..system import System

FRICTION = 0.7
"""Coulomb's coefficient of a floor under frames: that of rubber on stone, as ReDySim's walkers have it."""
MOST = 24
"""The most contacts of a page: the code of more does not fit beside the other functions."""
FRICTION_INPUT, ARMATURE_INPUT = "floor_friction", "drive_armature_"
"""The starts of the names of further inputs of a time step with contacts."""


@dataclass(frozen=True)
class Ground:
    """What a mechanism may touch: its own contacts, or a level floor under its named frames, at a height [m]."""

    floor: Surface | None = None
    height: float | None = None

    def contacts(self, mechanism: Mechanism, friction: Any = FRICTION) -> tuple[Contact, ...]:
        """Return the contacts of a mechanism on this ground."""
        if self.floor is None:
            return mechanism.contacts
        return tuple(
            Contact(f.name, f.body, placement=f.placement, surface=self.floor, friction=friction)
            for f in feet(mechanism)
        )


def feet(mechanism: Mechanism) -> list[Any]:
    """Return the frames that may touch a floor: all that are named on bodies."""
    return [frame for frame in mechanism.frames if frame.body != GROUND]


def ground_of(system: System, q: Numbers, parameters: Numbers | None = None) -> Ground | None:
    """Return the ground of a mechanism: None without contacts, and where none are evident or too many.

    A mechanism that floats under gravity, without contacts and loops, gets a floor through the lowest of its named
    frames at the coordinates q.
    """
    m = system.mechanism
    if m.contacts:
        return Ground() if len(candidate_names(m)) <= MOST else None
    floats = any(joint.kind == "free" and parent < 0 for joint, parent in zip(m.joints, m.parents, strict=True))
    more = {} if parameters is None else {"parameters": parameters}
    weighs = np.any(gravity_of(m, more))
    if not floats or not weighs or m.loops or not 0 < len(feet(m)) <= MOST:
        return None
    return floor_under(system, q, more)


def floor_under(system: System, q: Numbers, more: dict[str, Any]) -> Ground:
    """Return a floor perpendicular to gravity through the lowest of the named frames at the coordinates q.

    `more` has the free parameters, as an option of functions.
    """
    m = system.mechanism
    gravity = gravity_of(m, more)
    up = -gravity / np.linalg.norm(gravity)
    height = min(float(up @ np.asarray(system.pose(q, f.name, **more))[:3, 3]) for f in feet(m))
    return Ground(Surface("plane", placement=Placement(tuple((height * up).tolist()), _axes(up))), height)


def gravity_of(mechanism: Mechanism, more: dict[str, Any]) -> Numbers:
    """Return the acceleration of gravity at free parameters, which are an option of functions."""
    values = mechanism.values(more.get("parameters"))
    return np.array(resolve_parts(tuple(mechanism.gravity), values), dtype=float)


def _axes(up: Numbers) -> Any:
    """Return a rotation whose third axis is a unit vector."""
    x = np.cross(np.eye(3)[(int(np.argmax(np.abs(up))) + 1) % 3], up)
    x /= np.linalg.norm(x)
    return tuple(tuple(row) for row in np.column_stack([x, np.cross(up, x), up]).tolist())


def page_ground(mechanism: Mechanism, ground: Ground) -> dict[str, Any]:
    """Return what a page must know: names and bodies of contacts, a floor, and the inputs of its steps."""
    index = {body.name: i for i, body in enumerate(mechanism.bodies)}
    found = [(x, name) for x in ground.contacts(mechanism) for name in labels(x)]
    return {
        "names": [name for _, name in found],
        "bodies": [index[x.body] for x, _ in found],
        "others": [index.get(x.surface.body, -1) for x, _ in found],
        "friction": None if ground.floor is None else FRICTION,
        "floor": None if ground.floor is None else [_plain(x) for x in _placed(ground.floor)],
        "armatures": sorted(coordinates(mechanism)),
    }


def _placed(floor: Surface) -> tuple[Any, Any]:
    return floor.placement.translation, floor.placement.rotation


def _plain(x: Any) -> list[Any]:
    return np.array(x, dtype=float).tolist()


def contact_step(mechanism: Mechanism, ground: Ground) -> Kernel:
    """Return time steps with contacts whose loads and drives are live inputs, as those of `live_step`.

    The parameters are followed by the friction of the floor, if there is one, and by an inertia [kg m^2, kg] that is
    added at each driven joint: with h c + h^2 k, springs and dampers act implicitly, so that stiff drives of light
    feet stay stable.
    """
    m = _with_inputs(mechanism, ground)
    live = LiveInputs(m, HELD)
    stepping = stepping_of(m, METHODS["moreau"], forces_of(m), live)
    return replace(step_kernel(stepping), name="contact_step")


def contact_places(mechanism: Mechanism, ground: Ground) -> Program:
    """Return (q, qd[, parameters]) -> (gap, J, points, axes) of the contacts, as `motion_program` has them."""
    m = replace(mechanism, contacts=ground.contacts(mechanism))
    return replace(some_outputs(motion_program(m), (0, 3, 4, 5)), name="contact_places")


def _with_inputs(mechanism: Mechanism, ground: Ground) -> Mechanism:
    """Return a mechanism on its ground whose friction and added inertias of joints are its last free parameters."""
    taken = {p.name for p in mechanism.parameters}
    made: list[Parameter] = []

    def free(name: str) -> Expression:
        made.append(Parameter(next(x for x in _names(name) if x not in taken), 0.0, free=True))
        return Expression("name", (made[-1].name,))

    contacts = ground.contacts(mechanism, None if ground.floor is None else free(FRICTION_INPUT))
    driven, joints = coordinates(mechanism), []
    for joint, v in zip(mechanism.joints, mechanism.v_slices, strict=True):
        if v.start in driven:
            own = joint.armature or (0.0,) * (v.stop - v.start)
            joint = replace(
                joint, armature=tuple(x + free(f"{ARMATURE_INPUT}{v.start + k}") for k, x in enumerate(own))
            )
        joints.append(joint)
    parameters = (*mechanism.parameters, *made)
    return replace(mechanism, joints=tuple(joints), contacts=contacts, parameters=parameters)


def _names(name: str) -> Iterator[str]:
    while True:
        yield name
        name += "_"
