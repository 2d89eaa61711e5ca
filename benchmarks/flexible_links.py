"""Forward dynamics of arms with flexible links, its growth with their number, and a steel rod of 100 segments."""

from __future__ import annotations

import time
from dataclasses import dataclass, replace
from importlib.util import find_spec
from itertools import pairwise
from typing import Any

import numpy as np
import scipy.sparse

import kinetree as kt
from book import Section
from kinetree.model.beams import points_of
from measure import Contender, Figure, agree, interleaved, ratio
from report import Table

BATCH = 4096
AGREE = 1e-7
"""The largest relative difference of accelerations after forward and inverse dynamics: modes are light and stiff."""
LINKS = (1, 2, 4, 8, 16)
ROD = {"length": 1.0, "E": 2.1e11, "G": 8.1e10, "rho": 7800.0, "section": ("circle", 0.005)}
SEGMENTS, STEP, SPAN = 100, 1e-3, 0.5


def section(quick: bool) -> Section:
    """Return times per sample of flexible arms, and the time of a run of a rod relative to the span of time."""
    rounds = 5 if quick else 25
    arms, growth = _arms(rounds), _growth(rounds)
    rod, factor = _rod()
    headline = (
        f"A six-joint arm with two flexible booms of four modes each takes {arms.rows[1][2].split()[0]} ns per sample; "
        f"a steel rod of {SEGMENTS} segments runs at {factor:.2g} times real time."
    )
    return Section("Flexible links", headline, (arms, growth, rod))


def chain(count: int, modes: tuple[int, ...]) -> kt.System:
    """Return a chain of beams on revolute joints whose axes alternate."""
    beam = kt.Beam(0.8, E=7e10, rho=2700, section=("rectangle", 0.02, 0.02), modes=modes)
    names = [f"b{k}" for k in range(count)]
    above = ["ground", *(f"{name}.tip" for name in names)]
    joints = [kt.Joint(f"j{k}", "revolute", above[k], name, axis="y" if k % 2 else "z") for k, name in enumerate(names)]
    return kt.System(kt.build_mechanism("chain", [kt.Body(name, flexible=beam) for name in names], joints))


def _contender(system: kt.System, count: int = BATCH) -> Contender:
    """Return forward dynamics of random states, after a comparison with inverse dynamics."""
    rng = np.random.default_rng(0)
    q, qd = system.random_state(rng, count)
    tau = system.inverse_dynamics(q, qd, rng.normal(size=qd.shape))
    qdd = system.forward_dynamics(q, qd, tau)
    agree("forward and inverse dynamics", system.inverse_dynamics(q, qd, qdd), tau, AGREE)
    return Contender(lambda: system.forward_dynamics(q, qd, tau), count)


def _arms(rounds: int) -> Table:
    booms = kt.load("space_arm")
    whole = [b for b in booms.mechanism.bodies if b.flexible is not None]
    rigid = _rigid(booms)
    peer = _exudyn(booms) if find_spec("exudyn") else None
    contenders = {"rigid": _contender(rigid), "flexible": _contender(booms)}
    times = interleaved(contenders | ({"exudyn": peer.contender} if peer else {}), rounds)
    beside = ratio(times["flexible"], times["rigid"]).text()
    rows = [
        ("rigid booms", str(rigid.nv), Figure.of(times["rigid"]).text(), "1"),
        (f"{len(whole)} booms of four modes", str(booms.nv), Figure.of(times["flexible"]).text(), beside),
    ]
    note = (
        f"`space_arm` of the library, ns per sample on one core, batch of {BATCH:,}. Inverse dynamics of the "
        f"accelerations gives the torques back to {AGREE:g}."
    )
    if peer:
        beside = ratio(times["exudyn"], times["rigid"]).text()
        figure = Figure.of(times["exudyn"]).text()
        rows.append(("Exudyn: mass matrix and right-hand side", str(peer.size), figure, beside))
        note += (
            " Exudyn has the same masses and modes, by floating frames with reduced coordinates, one state at a time. "
            "Its joints are constraints, and neither they nor the solution for accelerations are part of its time. "
            f"Accelerations of the hand under a force, with the arm at rest, agree to {peer.apart:.0e}."
        )
    return Table(
        "A long arm of six joints",
        ("arm", "degrees of freedom", "forward dynamics [ns]", "beside the rigid arm"),
        tuple(rows),
        note,
    )


FORCE = np.array([300.0, -200.0, 500.0])
"""The force on the hand [N] under which accelerations are compared with Exudyn's."""
CALLS = 100
SAME = 1e-6
"""Their largest relative difference."""
ARM = 0.1
"""The distance from the axis of the points by which Exudyn finds the rotation of a tip [m]."""


@dataclass(frozen=True)
class Peer:
    """Exudyn's model of an arm: its coordinates, its equations, and how far its accelerations are from ours."""

    size: int
    contender: Contender
    apart: float


def _exudyn(system: kt.System) -> Peer:
    """Return Exudyn's model of an arm, after a comparison of accelerations."""
    import exudyn
    from exudyn import itemInterface as items

    container = exudyn.SystemContainer()
    peer, mechanism, still = container.AddSystem(), system.mechanism, np.zeros(system.nv)
    poses = {b.name: system.pose(still, b.name) for b in mechanism.bodies}
    ground = peer.AddObject(items.ObjectGround())
    carriers, markers, hand = {"ground": ground}, {}, None
    for body in mechanism.bodies:
        if body.flexible is None and body.mass:
            xx, yy, zz, xy, yz, zx = body.inertia
            tensor = np.array([[xx, xy, zx], [xy, yy, yz], [zx, yz, zz]])
            inertia = exudyn.rigidBodyUtilities.RigidBodyInertia(mass=body.mass, inertiaTensor=tensor, com=np.zeros(3))
            made = peer.CreateRigidBody(
                inertia=inertia.Translated(np.array(body.com)), referencePosition=poses[body.name][:3, 3].tolist(),
                returnDict=True,
            )  # fmt: skip
            carriers[body.name], hand = made["bodyNumber"], made["nodeNumber"]
    for body in mechanism.bodies:
        if body.flexible is not None:
            name = body.name.removesuffix(".elastic")
            frame, markers[f"{name}.tip"] = _floating(peer, body.flexible, poses[name][:3, 3])
            root = peer.AddMarker(items.MarkerBodyRigid(bodyNumber=carriers[name]))
            peer.AddObject(items.GenericJoint(markerNumbers=[root, frame], constrainedAxes=[1] * 6))
    for joint in mechanism.joints:
        if joint.kind == "revolute":
            place = list(joint.placement.translation)
            before = markers.get(joint.parent)
            if before is None:
                before = peer.AddMarker(items.MarkerBodyRigid(bodyNumber=carriers[joint.parent], localPosition=place))
            after = peer.AddMarker(items.MarkerBodyRigid(bodyNumber=carriers[joint.child]))
            held = [1, 1, 1, *(int(x == 0.0) for x in joint.axis)]
            peer.AddObject(items.GenericJoint(markerNumbers=[before, after], constrainedAxes=held))
    loaded = peer.AddMarker(items.MarkerNodeRigid(nodeNumber=hand))
    peer.AddLoad(items.LoadForceVector(markerNumber=loaded, loadVector=FORCE.tolist()))
    peer.Assemble()
    settings, solver = exudyn.SimulationSettings(), exudyn.MainSolverImplicitSecondOrder()
    settings.solution.file.write = False
    settings.timeIntegration.generalizedAlpha.computeInitialAccelerations = True
    solver.InitializeSolver(peer, settings)
    found = peer.GetNodeOutput(hand, exudyn.OutputVariableType.Acceleration)
    w = np.zeros((len(mechanism.bodies), 6))
    w[[b.name for b in mechanism.bodies].index("hand"), 3:] = FORCE
    qdd = system.forward_dynamics(still, still, still, wrenches=w)
    expected = system.twist_rate(still, still, qdd, "hand", axes="world")[3:]
    apart = agree("accelerations of the hand by Exudyn", found, expected, SAME)

    def equations() -> None:
        for _ in range(CALLS):
            solver.ComputeMassMatrix(peer)
            solver.ComputeODE2RHS(peer)

    return Peer(peer.systemData.ODE2Size(), Contender(equations, CALLS), float(apart))


def _floating(peer: Any, beam: kt.Beam, place: np.ndarray) -> tuple[int, int]:
    """Add a beam as a floating frame whose mesh are the beam's points; return the markers of its frame and its tip."""
    from exudyn import FEM
    from exudyn import itemInterface as items

    points, tip = points_of(beam), beam.modal.node("tip")
    arms = ARM * np.array([[0.0, 1.0, 0.0], [0.0, -1.0, 0.0], [0.0, 0.0, 1.0], [0.0, 0.0, -1.0]])
    ends = np.array([tip.Phi + np.cross(tip.Psi, arm) for arm in arms])  # without mass: they rotate as the tip does
    shapes = np.concatenate([points.Phi, ends]).transpose(0, 2, 1).reshape(-1, len(tip.Phi))
    mass = np.repeat(np.concatenate([points.mass, np.zeros(4)]), 3)
    held = mass[:, None] * shapes @ np.linalg.inv(shapes.T @ (mass[:, None] * shapes))
    mesh = FEM.FEMinterface()
    mesh.nodes = {"Position": np.concatenate([points.x, tip.x + arms])}
    mesh.massMatrix = scipy.sparse.csr_matrix(scipy.sparse.diags(mass))
    mesh.stiffnessMatrix = scipy.sparse.csr_matrix((held * np.array(beam.modal.stiffness)) @ held.T)
    mesh.modeBasis = {"matrix": np.ascontiguousarray(shapes), "type": "NormalModes"}
    made = FEM.ObjectFFRFreducedOrderInterface(mesh).AddObjectFFRFreducedOrder(peer, positionRef=place.tolist())
    last = range(len(points.mass), len(points.mass) + 4)
    end = items.MarkerSuperElementRigid(
        bodyNumber=made["oFFRFreducedOrder"], meshNodeNumbers=list(last), weightingFactors=[0.25] * 4
    )
    return peer.AddMarker(items.MarkerNodeRigid(nodeNumber=made["nRigidBody"])), peer.AddMarker(end)


def _rigid(system: kt.System) -> kt.System:
    """Return an arm with beams without modes."""
    bodies: dict[str, Any] = {b.name: b for b in system.mechanism.bodies}
    parts = {n for n in bodies if "." in n}
    made = [
        replace(b, flexible=replace(bodies[f"{name}.elastic"].flexible, modes=(0,)))
        if f"{name}.elastic" in bodies
        else b
        for name, b in bodies.items()
        if name not in parts
    ]
    joints = [j for j in system.mechanism.joints if j.child not in parts]
    gravity = system.mechanism.gravity
    return kt.System(kt.build_mechanism("rigid", made, joints, gravity=gravity))


def _growth(rounds: int) -> Table:
    systems = {n: chain(n, (2, 2)) for n in LINKS}
    times = interleaved({str(n): _contender(s, 512) for n, s in systems.items()}, rounds)
    counts = {n: sum(s.function("forward_dynamics").cost().values()) for n, s in systems.items()}
    rows = [
        (str(n), str(systems[n].nv), f"{counts[n]:,}", Figure.of(times[str(n)]).text(),
         Figure.of(times[str(n)]).times(1 / n).text(), Figure.of(times[str(n)]).times(1 / counts[n]).text())
        for n in LINKS
    ]  # fmt: skip
    more = {(counts[b] - counts[a]) / (b - a) for a, b in pairwise(LINKS[1:])}
    each = f"{min(more):,.0f}" if len(more) == 1 else f"{min(more):,.0f} to {max(more):,.0f}"
    return Table(
        "Growth with the number of flexible links",
        ("links", "degrees of freedom", "operations", "forward dynamics [ns]", "per link [ns]", "per operation [ns]"),
        tuple(rows),
        "Chains of links with four modes each, ns per sample on one core, batches of 512. Each link after the second "
        f"adds {each} operations. The first one turns about a fixed axis, and takes few.",
    )


def _rod() -> tuple[Table, float]:
    rod = kt.rod(n=SEGMENTS, joint="universal", damping=1e-5, **ROD)
    times = np.linspace(0.0, SPAN, 11)
    own: dict[str, Any] = {"times": times, "method": "implicit_midpoint", "dt": STEP}
    kt.simulate(rod, rod.neutral(), **(own | {"times": times[:2]}))
    start = time.perf_counter()
    run = kt.simulate(rod, rod.neutral(), **own)
    took = time.perf_counter() - start
    assert run.finished
    rows = [("Kinetree, implicit midpoint", f"{STEP:g}", f"{1e6 * took * STEP / SPAN:.0f}", f"{SPAN / took:.2g}")]
    if find_spec("elastica"):
        step, each = _elastica()
        rows.append(("PyElastica, position Verlet", f"{step:g}", f"{1e6 * each:.0f}", f"{step / each:.2g}"))
    note = (
        f"A clamped rod of steel, 1 m long and 5 mm thick, with {SEGMENTS} segments that falls under its own weight, "
        "on one core. Real time is 1: more is faster than the rod. Waves along the rod bound the steps of explicit "
        "methods."
    )
    heads = ("method", "step [s]", "per step [us]", "times real time")
    return Table("A steel rod", heads, tuple(rows), note), SPAN / took


def _elastica() -> tuple[float, float]:
    """Return the step [s] that PyElastica's rod of the same size needs, and the time of a step [s]."""
    import elastica as ea

    class Simulator(ea.BaseSystemCollection, ea.Constraints, ea.Forcing):
        pass

    rod = ea.CosseratRod.straight_rod(
        SEGMENTS, np.zeros(3), np.array([1.0, 0.0, 0.0]), np.array([0.0, 0.0, 1.0]), ROD["length"],
        ROD["section"][1] / 2, ROD["rho"], youngs_modulus=ROD["E"], shear_modulus=ROD["G"],
    )  # fmt: skip
    simulator = Simulator()
    simulator.append(rod)
    simulator.constrain(rod).using(ea.OneEndFixedBC, constrained_position_idx=(0,), constrained_director_idx=(0,))
    simulator.add_forcing_to(rod).using(ea.GravityForces, acc_gravity=np.array([0.0, 0.0, -9.81]))
    simulator.finalize()
    step = 0.2 * ROD["length"] / SEGMENTS / np.sqrt(ROD["E"] / ROD["rho"])
    stepper = ea.PositionVerlet()
    now = np.float64(0.0)
    for _ in range(50):  # compiles
        now = stepper.step(simulator, now, step)
    count, start = 2000, time.perf_counter()
    for _ in range(count):
        now = stepper.step(simulator, now, step)
    took = (time.perf_counter() - start) / count
    if not np.isfinite(rod.position_collection).all():
        raise ArithmeticError(f"PyElastica's rod diverged with steps of {step:g} s")
    return step, took
