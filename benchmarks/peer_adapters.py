"""Adapters of other libraries that read the same arm, each imported only if it is installed.

An adapter takes a System and the path of its URDF file without shapes, and returns the functions of the library. It
calls the library as its documentation does, by the fastest route found.
"""

from __future__ import annotations

import functools
from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np

import kinetree as kt
from kinetree.algebra.vectors import from_moments

GRAVITY = (0.0, 0.0, -9.81)
ENTRIES = {"xx": (0, 0), "yy": (1, 1), "zz": (2, 2), "xy": (0, 1), "xz": (0, 2), "yz": (1, 2)}
Rows = Callable[[np.ndarray, np.ndarray, np.ndarray], Any]


@dataclass(frozen=True)
class Answers:
    """One function of a peer: a call on a row, which `row` makes from (q, qd, x); `many` takes a whole batch."""

    call: Callable[..., Any]
    row: Rows = lambda q, qd, x: (q, qd, x)
    many: Rows | None = None


def drake(system: kt.System, path: Path) -> dict[str, Answers]:
    """Return Drake's MultibodyPlant: inverse dynamics with gravity, and its continuous-time accelerations."""
    from pydrake.multibody.parsing import Parser
    from pydrake.multibody.plant import MultibodyPlant
    from pydrake.multibody.tree import MultibodyForces

    plant = MultibodyPlant(0.0)
    Parser(plant).AddModels(str(path))
    plant.Finalize()
    context, forces = plant.CreateDefaultContext(), MultibodyForces(plant)
    given, result = plant.get_applied_generalized_force_input_port(), plant.get_generalized_acceleration_output_port()

    def inverse(state: np.ndarray, qdd: np.ndarray) -> np.ndarray:
        plant.SetPositionsAndVelocities(context, state)
        plant.CalcForceElementsContribution(context, forces)
        return plant.CalcInverseDynamics(context, qdd, forces)

    def forward(state: np.ndarray, tau: np.ndarray) -> np.ndarray:
        plant.SetPositionsAndVelocities(context, state)
        given.FixValue(context, tau)
        return result.Eval(context)

    def row(q: np.ndarray, qd: np.ndarray, x: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
        return np.concatenate([q, qd]), x

    return {"inverse_dynamics": Answers(inverse, row), "forward_dynamics": Answers(forward, row)}


def adam_casadi(system: kt.System, path: Path) -> dict[str, Answers]:
    """Return adam's expressions as CasADi functions, called through buffers, and mapped over a batch."""
    import casadi
    from adam.casadi import KinDynComputations

    made = KinDynComputations(str(path), _moving(system), gravity=np.array([*GRAVITY, 0.0, 0.0, 0.0]))
    n, base = system.nv, casadi.SX.eye(4)
    q, qd, x = (casadi.SX.sym(name, n) for name in ("q", "qd", "x"))
    inertia = made.mass_matrix(base, q)[6:, 6:]
    bias = made.bias_force(base, q, casadi.SX.zeros(6), qd)[6:]
    results = {
        "inverse_dynamics": casadi.mtimes(inertia, x) + bias,
        "forward_dynamics": casadi.solve(inertia, x - bias),
    }
    out = {}
    for name, result in results.items():
        function = casadi.Function(name, [q, qd, x], [casadi.densify(result)], {"cse": True})
        buffer, evaluate = function.buffer()
        places, found = [np.zeros(n) for _ in range(3)], np.zeros(n)
        for k, place in enumerate(places):
            buffer.set_arg(k, memoryview(place))
        buffer.set_res(0, memoryview(found))

        def call(*row, places=places, found=found, evaluate=evaluate, buffer=buffer) -> np.ndarray:
            for place, given in zip(places, row, strict=True):
                place[:] = given
            evaluate()
            return found

        mapped = functools.cache(function.map)  # one function per batch size

        def many(*batch, mapped=mapped) -> np.ndarray:
            return np.array(mapped(len(batch[0]))(*(b.T for b in batch))).T

        out[name] = Answers(call, many=many)
    return out


def adam_numpy(system: kt.System, path: Path) -> dict[str, Answers]:
    """Return adam on NumPy: the mass matrix and the bias, and a solve for accelerations."""
    from adam.numpy import KinDynComputations

    made = KinDynComputations(str(path), _moving(system), gravity=np.array([*GRAVITY, 0.0, 0.0, 0.0]))
    base, rest = np.eye(4), np.zeros(6)

    def parts(q: np.ndarray, qd: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
        return made.mass_matrix(base, q)[6:, 6:], made.bias_force(base, q, rest, qd)[6:]

    def inverse(q: np.ndarray, qd: np.ndarray, qdd: np.ndarray) -> np.ndarray:
        inertia, bias = parts(q, qd)
        return inertia @ qdd + bias

    def forward(q: np.ndarray, qd: np.ndarray, tau: np.ndarray) -> np.ndarray:
        inertia, bias = parts(q, qd)
        return np.linalg.solve(inertia, tau - bias)

    return {"inverse_dynamics": Answers(inverse), "forward_dynamics": Answers(forward)}


def toolbox(system: kt.System, path: Path) -> dict[str, Answers]:
    """Return the Robotics Toolbox's rne and accel of the links of a URDF file."""
    import roboticstoolbox
    from roboticstoolbox.models.URDF.URDFRobot import URDF_file

    links, name, _ = URDF_file(str(path))
    robot: Any = roboticstoolbox.Robot(links, name=name)
    robot.gravity = list(GRAVITY)
    return {"inverse_dynamics": Answers(robot.rne), "forward_dynamics": Answers(robot.accel)}


def jaxsim(system: kt.System, path: Path) -> dict[str, Answers]:
    """Return JaxSim in double precision, compiled by XLA: single, and vectorized over a batch."""
    import jax

    jax.config.update("jax_enable_x64", True)
    from jaxsim import api

    model = api.model.JaxSimModel.build_from_model_description(sdf(system), gravity=-GRAVITY[2])

    def state(q, qd):
        return api.data.JaxSimModelData.build(model, joint_positions=q, joint_velocities=qd)

    def inverse(q, qd, qdd):
        return api.model.inverse_dynamics(model, state(q, qd), joint_accelerations=qdd)[1]

    def forward(q, qd, tau):
        return api.model.forward_dynamics_aba(model, state(q, qd), joint_forces=tau)[1]

    out = {}
    for name, function in (("inverse_dynamics", inverse), ("forward_dynamics", forward)):
        one, many = jax.jit(function), jax.jit(jax.vmap(function))
        out[name] = Answers(
            lambda *row, f=one: f(*row).block_until_ready(), many=lambda *batch, f=many: f(*batch).block_until_ready()
        )
    return out


def sdf(system: kt.System) -> str:
    """Return the mechanism as SDF text: JaxSim reads URDF only where Gazebo is installed."""
    from scipy.spatial.transform import Rotation

    mechanism = system.mechanism
    unit = "<inertia><ixx>1</ixx><iyy>1</iyy><izz>1</izz><ixy>0</ixy><ixz>0</ixz><iyz>0</iyz></inertia>"
    out = [
        '<sdf version="1.10"><model name="arm">',
        f'<link name="stand"><inertial><mass>1</mass>{unit}</inertial></link>',
        '<joint name="hold" type="fixed"><parent>world</parent><child>stand</child></joint>',
    ]
    for body, joint, p in zip(mechanism.bodies, mechanism.joints, mechanism.parents, strict=True):
        parent = mechanism.bodies[p].name if p >= 0 else "stand"
        x, y, z = joint.placement.translation
        angles = Rotation.from_matrix(np.array(joint.placement.rotation, dtype=float)).as_euler("xyz")
        moments = np.array(from_moments(body.inertia), dtype=float)  # type: ignore[arg-type]
        inertia = "".join(f"<i{name}>{float(moments[at])!r}</i{name}>" for name, at in ENTRIES.items())
        place = " ".join(repr(float(v)) for v in (x, y, z, *angles))
        axis = " ".join(repr(float(v)) for v in joint.axis)
        com = " ".join(repr(float(v)) for v in body.com)
        out.append(
            f'<joint name="{joint.name}" type="revolute"><pose relative_to="{parent}">{place}</pose>'
            f"<parent>{parent}</parent><child>{body.name}</child><axis><xyz>{axis}</xyz></axis></joint>"
            f'<link name="{body.name}"><pose relative_to="{joint.name}">0 0 0 0 0 0</pose><inertial>'
            f"<pose>{com} 0 0 0</pose><mass>{body.mass!r}</mass><inertia>{inertia}</inertia></inertial></link>"
        )
    return "".join([*out, "</model></sdf>"])


def _moving(system: kt.System) -> list[str]:
    return [joint.name for joint in system.joints if joint.kind != "fixed"]


ADAPTERS: dict[str, tuple[str, Callable[[kt.System, Path], dict[str, Answers]]]] = {
    "Drake": ("drake", drake),
    "adam, CasADi": ("adam-robotics", adam_casadi),
    "adam, NumPy": ("adam-robotics", adam_numpy),
    "Robotics Toolbox": ("roboticstoolbox-python", toolbox),
    "JaxSim": ("jaxsim", jaxsim),
}
"""The package to install and the adapter, by name in the table."""
