"""`assemble`: loose parts in, a checked Mechanism in depth order out."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import replace

from .checks import check, unique_names
from .mechanism import Mechanism
from .parameters import Number, Parameter
from .parts import Body, Coupling, ForceElement, Frame, Joint, Loop, Shape
from .topology import depth_order


def assemble(
    name: str,
    bodies: Iterable[Body],
    joints: Iterable[Joint],
    *,
    frames: Iterable[Frame] = (),
    loops: Iterable[Loop] = (),
    couplings: Iterable[Coupling] = (),
    forces: Iterable[ForceElement] = (),
    gravity: tuple[Number, Number, Number] = (0.0, 0.0, -9.81),
    parameters: Iterable[Parameter] = (),
    scenery: Iterable[Shape] = (),
    source: str = "",
    description: str = "",
    lenient: bool = False,
) -> Mechanism:
    """Return the mechanism made of these parts, parents first, or raise a ModelError that names the culprit.

    `lenient` lets impossible inertias pass, for files of others; `checks.impossible_inertias` lists them.
    """
    loose = Mechanism(
        name=name,
        bodies=tuple(bodies),
        joints=tuple(joints),
        frames=tuple(frames),
        loops=tuple(loops),
        couplings=tuple(couplings),
        forces=tuple(forces),
        gravity=tuple(gravity),
        parameters=tuple(parameters),
        scenery=tuple(scenery),
        source=source,
        description=description,
    )
    unique_names(loose)
    ordered_bodies, ordered_joints = depth_order(loose.bodies, loose.joints)
    mechanism = replace(loose, bodies=tuple(ordered_bodies), joints=tuple(ordered_joints))
    check(mechanism, lenient=lenient)
    return mechanism
