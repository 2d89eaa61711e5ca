"""Robots of the public collection, evaluated by Kinetree and by Pinocchio in the same run."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from importlib.metadata import distribution
from pathlib import Path
from typing import Any

import numpy as np
import pinocchio as pin

import kinetree as kt
from measure import Contender, Figure, interleaved

AGREE = 1e-10
BATCHES = (4096, 100_000)
ROWS = 1000


@dataclass(frozen=True)
class Robot:
    """A robot of example-robot-data, with the ratio that we aim at."""

    name: str
    file: str
    target: float

    @property
    def path(self) -> Path:
        """The URDF file."""
        folder = distribution("example-robot-data").locate_file("cmeel.prefix/share/example-robot-data/robots")
        return Path(str(folder)) / self.file


ROBOTS = (
    Robot("UR5", "ur_description/urdf/ur5_robot.urdf", 60),
    Robot("Panda", "panda_description/urdf/panda.urdf", 50),
    Robot("Talos", "talos_data/robots/talos_reduced.urdf", 35),
)
FUNCTIONS: dict[str, Callable[..., Any]] = {"inverse_dynamics": pin.rnea, "forward_dynamics": pin.aba}


@dataclass(frozen=True)
class Comparison:
    """What one function of one robot took, in nanoseconds, and how far the answers are apart."""

    robot: Robot
    function: str
    nv: int
    difference: float
    ours: dict[int, Figure]
    peer: Figure
    ratios: dict[int, Figure]
    bare_ratios: dict[int, Figure]
    empty_call: Figure
    one_joint_call: Figure
    single: dict[str, Figure]


def compare(robot: Robot, name: str, rounds: int) -> Comparison:
    """Check that both give the same answers, then time them in turn."""
    system, model = kt.load(robot.path), pin.buildModelFromUrdf(str(robot.path))
    data = model.createData()
    peer, function = FUNCTIONS[name], system.function(name)
    order = _order(system, model)
    rng = np.random.default_rng(0)
    batches = {n: [rng.normal(size=(n, system.nv)) for _ in range(3)] for n in BATCHES}
    state = batches[BATCHES[0]]
    # Rows for the peer are made beforehand: its loop holds nothing but the calls.
    rows = list(zip(*(np.ascontiguousarray(x[:ROWS, order]) for x in state), strict=True))
    expected = np.array([peer(model, data, *row) for row in rows[:200]])
    found = function(*(x[:200] for x in state))[:, order]
    difference = float(np.abs(found - expected).max() / np.abs(expected).max())
    if not difference <= AGREE:
        raise SystemExit(f"{robot.name} {name}: answers differ by {difference:.1e} relative; nothing to time")

    def loop(model, data, rows):
        def call() -> None:
            for a, b, c in rows:
                peer(model, data, a, b, c)

        return Contender(call, len(rows))

    def same(call, arguments):
        def repeat() -> None:
            for _ in range(ROWS):
                call(*arguments)

        return Contender(repeat, ROWS)

    one, empty, gufunc = _model(1), _model(0), function.gufunc
    outs = {n: np.empty((n, system.nv)) for n in BATCHES}
    contenders: dict[str, Contender] = {}
    for n in BATCHES:
        contenders[f"ours {n}"] = Contender(lambda n=n: gufunc(*batches[n], out=outs[n]), n)
    contenders |= {
        "peer": loop(model, data, rows),
        "one joint": loop(*one, [(np.full(1, 0.1),) * 3] * ROWS),
        "empty": loop(*empty, [(np.zeros(0),) * 3] * ROWS),
        "gufunc": same(gufunc, [x[0] for x in state]),
        "method": same(getattr(system, name), [x[0] for x in state]),
        "peer, single": same(lambda *row: peer(model, data, *row), rows[0]),
    }
    times = interleaved(contenders, rounds)
    ratios, bare = {}, {}
    for n in BATCHES:
        ours = times[f"ours {n}"]
        ratios[n] = Figure.of([p / o for p, o in zip(times["peer"], ours, strict=True)])
        bare[n] = Figure.of([(p - c) / o for p, c, o in zip(times["peer"], times["one joint"], ours, strict=True)])
    return Comparison(
        robot,
        name,
        system.nv,
        difference,
        {n: Figure.of(times[f"ours {n}"]) for n in BATCHES},
        Figure.of(times["peer"]),
        ratios,
        bare,
        Figure.of(times["empty"]),
        Figure.of(times["one joint"]),
        {key: Figure.of(times[key]) for key in ("gufunc", "method", "peer, single")},
    )


def _order(system: kt.System, model: pin.Model) -> list[int]:
    """Return where our coordinates stand in the peer's order; every joint here has one."""
    names = [joint.name for joint in system.joints]
    if model.nq != model.nv or sorted(names) != sorted(model.names[1:]):
        raise SystemExit(f"{model.name}: both must have the same joints, with one coordinate each")
    return [names.index(name) for name in model.names[1:]]


def _model(joints: int) -> tuple[pin.Model, pin.Data]:
    """Return a model of no joint or of one, whose calls cost hardly more than the crossing from Python."""
    model = pin.Model()
    if joints:
        joint = model.addJoint(0, pin.JointModelRZ(), pin.SE3.Identity(), "joint")
        model.appendBodyToJoint(joint, pin.Inertia(1.0, np.array([0.1, 0.0, 0.0]), np.eye(3)), pin.SE3.Identity())
    return model, model.createData()
