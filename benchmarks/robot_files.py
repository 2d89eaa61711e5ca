"""Robots of a public collection; no peer is imported, so that they serve where none is installed."""

from __future__ import annotations

import os
from dataclasses import dataclass, replace
from importlib.metadata import distribution
from pathlib import Path

import kinetree as kt


@dataclass(frozen=True)
class Robot:
    """A robot of example-robot-data, with its target ratio, if any."""

    name: str
    file: str
    target: float | None = None
    base: str = "fixed"

    @property
    def path(self) -> Path:
        """The URDF file, of the installed collection or of the folder KINETREE_ROBOTS."""
        if folder := os.environ.get("KINETREE_ROBOTS"):
            return Path(folder) / Path(self.file).name
        folder = distribution("example-robot-data").locate_file("cmeel.prefix/share/example-robot-data/robots")
        return Path(str(folder)) / self.file

    def rigid(self) -> kt.System:
        """Return the robot without damping and friction of its joints, which the functions of its peers leave out."""
        system = kt.load(self.path, base=self.base)
        joints = tuple(replace(j, damping=(), friction=()) for j in system.joints)
        return kt.System(replace(system.mechanism, joints=joints), system.report)


ROBOTS = (
    Robot("UR5", "ur_description/urdf/ur5_robot.urdf", 60),
    Robot("Panda", "panda_description/urdf/panda.urdf", 50),
    Robot("Talos", "talos_data/robots/talos_reduced.urdf", 35),
)
MORE = (
    Robot("ANYmal, free base", "anymal_c_simple_description/urdf/anymal.urdf", base="free"),
    Robot("iCub, free base", "icub_description/robots/icub.urdf", base="free"),
    Robot("Talos, free base", "talos_data/robots/talos_reduced.urdf", base="free"),
)
TITLE = {"inverse_dynamics": "inverse", "forward_dynamics": "forward"}
