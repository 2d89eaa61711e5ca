"""Closed mechanisms for tests: random trees with loops that are closed at a random position, and their motions."""

from __future__ import annotations

from dataclasses import replace

import hypothesis
import numpy as np
from hypothesis import strategies as st
from scipy.spatial.transform import Rotation

import kinetree as kt
import strategies
from kinetree import joints, loops
from kinetree.formulations.closed_system import closed_equations
from kinetree.formulations.kinematics import body_states
from kinetree.model import GROUND, Body, Coupling, Curve, Joint, Loop, Mechanism, Placement, build_mechanism
from strategies import nested

KINDS = tuple(name for name, kind in loops.KINDS.items() if "curve" not in kind.data)
EGG = Curve(points=tuple((0.3 * np.cos(s) + 0.05 * np.cos(2 * s), 0.22 * np.sin(s)) for s in np.arange(14) * np.pi / 7))
OVALS = Curve.ellipse(0.31, 0.24, (0.05, -0.03)), Curve.ellipse(0.17, 0.21, (-0.02, 0.04))
"""Curves of cams: a spline, and two ellipses."""
DRIVES = {
    "four_bar": ["crank"],
    "slider_crank": ["crank"],
    "spatial_slider_crank": ["crank"],
    "five_bar": ["left_crank", "right_crank"],
    "three_rrr": ["joint1", "joint4", "joint6"],
    "stewart": [f"leg{k}" for k in range(1, 7)],
    "parallelogram": ["rocker"],
    "gear_train": ["input"],
}
"""The actuated joints of the library's closed mechanisms, one per degree of freedom."""


def displaced(loop: Loop, rng: np.random.Generator) -> tuple[np.ndarray, np.ndarray]:
    """Return a position and a rotation of frame b in frame a, in the loop's axes, at which the loop is closed."""
    R = np.array(strategies.rotation(rng))
    if loop.kind == "rod":
        return R @ [loop.length, 0.0, 0.0], np.array(strategies.rotation(rng))
    if loop.kind == "point_on_line":
        return np.array([0.0, 0.0, rng.normal()]), R
    if loop.kind == "point_on_plane":
        return np.array([*rng.normal(size=2), 0.0]), R
    if loop.kind == "knife_edge":
        return rng.normal(size=3), R
    if loop.kind == "rolling_ball":
        return np.array([*rng.normal(size=2), loop.radius]), R
    if loop.kind in ("rolling_disc", "rolling_rollers"):
        axle = R @ np.array(loops.frame(loop)).T @ np.array(loop.axis2) / np.linalg.norm(loop.axis2)
        return np.array([*rng.normal(size=2), loop.radius * np.hypot(*axle[:2])]), R
    if loop.curve is not None:
        return _touching(loop, rng)
    joint = Joint("cut", loop.kind, "a", "b", axis=loop.axis, axis2=loop.axis2, pitch=loop.pitch)
    kind = joints.kind(loop.kind)
    before, turn, after = kind.displacement(joint, [float(x) for x in kind.random(joint, rng)])
    turn = np.array(turn.matrix(), dtype=float)
    return np.array(before) + turn @ np.array(after), turn


def _touching(loop: Loop, rng: np.random.Generator) -> tuple[np.ndarray, np.ndarray]:
    """Return a position and a rotation at which a point, roller, face or curve of b touches the curve of a."""
    R = np.array(strategies.rotation(rng))
    piece = loops.starts(loop.curve)[int(rng.integers(8))]
    p = piece.place(float(0.4 * piece.above * rng.uniform()))
    c, normal = np.array([*p.c, rng.normal()]), np.array([p.d[1], -p.d[0], 0.0]) / np.hypot(*p.d)
    if loop.curve_b is not None:
        turn = Rotation.from_euler("z", rng.uniform(-3, 3)).as_matrix()
        inward = -turn.T @ normal
        (x, y), (a, _), (_, b) = *loop.curve_b.cosines, *loop.curve_b.sines
        s = np.arctan2(b * inward[1], a * inward[0])
        return c - turn @ [x + a * np.cos(s), y + b * np.sin(s), 0.0], turn
    if loop.axis2 is not None:
        axis = np.array(loops.frame(loop)).T @ np.array(loop.axis2) / np.linalg.norm(loop.axis2)
        onto = Rotation.align_vectors([normal], [axis])[0].as_matrix()
        return c + 0.3 * np.cross(normal, [0.0, 0.0, 1.0]), onto
    return c + (loop.radius or 0.0) * normal, R


def looped(mechanism: Mechanism, q, loop: Loop, rng: np.random.Generator) -> Loop:
    """Return the loop with a placement b that closes it at q."""
    stand = {GROUND: (np.eye(3), np.zeros(3))} | {s.name: (s.R, s.o) for s in body_states(mechanism, q)}
    (Ra, oa), (Rb, ob) = stand[loop.body_a], stand[loop.body_b]
    axes = np.array(loops.frame(loop))
    r, R = displaced(loop, rng)
    Aa = Ra @ np.array(loop.placement_a.rotation) @ axes
    x = oa + Ra @ np.array(loop.placement_a.translation) + Aa @ r
    return replace(loop, placement_b=Placement(nested(Rb.T @ (x - ob)), nested(Rb.T @ Aa @ R @ axes.T)))


def random_loop(name: str, kind: str, a: str, b: str, rng: np.random.Generator) -> Loop:
    """Return a loop of a kind with awkward numbers; `looped` sets its placement b."""
    axis = rng.normal(size=3)
    other = np.cross(axis, rng.normal(size=3)) if kind == "universal" else axis[[2, 0, 1]]
    data = loops.kind(kind).data
    return Loop(
        name,
        kind,
        a,
        b,
        strategies.placement(rng),
        axis=nested(axis),
        axis2=nested(other) if "axis2" in data else None,
        pitch=0.3 if kind == "helical" else 0.0,
        length=0.7 if kind == "rod" else 0.0,
        radius=0.45 if "radius" in data else None,
        angle=0.7 if "angle" in data else None,
        curve=OVALS[0] if "curve_b" in data else EGG if "curve" in data else None,
        curve_b=OVALS[1] if "curve_b" in data else None,
    )


def closed(tree: Mechanism, ends: list[tuple[str, str, str]], seed: int, *, coupled: bool = False):
    """Return a tree with loops (kind, body a, body b), optionally a coupling, and the closed position q."""
    rng = np.random.default_rng(seed)
    q = kt.System(tree).random_state(rng)[0]
    made = [looped(tree, q, random_loop(f"loop{k}", *end, rng), rng) for k, end in enumerate(ends)]
    at, guess = 0, {}
    for joint in tree.joints:
        guess[joint.name] = q[at : at + joints.kind(joint.kind).NQ].tolist()
        at += joints.kind(joint.kind).NQ
    single = [j.name for j in tree.joints if joints.kind(j.kind).NQ == 1]
    couplings = []
    if coupled and len(single) > 1:
        offset = guess[single[0]][0] - 1.7 * guess[single[1]][0]
        couplings = [Coupling("gear", single[0], ((single[1], 1.7),), offset)]
    whole = build_mechanism(
        "closed", tree.bodies, tree.joints, loops=made, couplings=couplings, gravity=tree.gravity, guess=guess
    )
    return whole, q


@st.composite
def closed_mechanisms(draw, kinds=KINDS, *, most: int = 6, loops: int = 2) -> tuple[Mechanism, np.ndarray]:
    """Draw a random tree with loops between its bodies or to the ground, and a closed position of it."""
    tree = draw(strategies.mechanisms(strategies.MOVING, least=2, most=most))
    bodies = [b.name for b in tree.bodies] + [GROUND]
    ends = []
    for kind in draw(st.lists(st.sampled_from(list(kinds)), min_size=1, max_size=loops)):
        a, b = draw(st.permutations(bodies))[:2]
        ends.append((kind, a, b))
    whole, q = closed(tree, ends, draw(st.integers(0, 2**32 - 1)), coupled=draw(st.booleans()))
    hypothesis.assume(whole.nv > 0)
    return whole, q


def motion(mechanism: Mechanism, q, seed: int = 0):
    """Return qd and qdd that keep the loops closed at q, random in the free directions."""
    rng = np.random.default_rng(seed)
    J = closed_equations(mechanism, q).J
    _, sizes, rows = np.linalg.svd(J)
    free = rows[int((sizes > 1e-7 * sizes.max(initial=0.0)).sum()) :]
    qd = rng.normal(size=len(free)) @ free
    bias = closed_equations(mechanism, q, qd).bias
    qdd = np.linalg.lstsq(J, -bias, rcond=1e-7)[0] + rng.normal(size=len(free)) @ free
    return qd, qdd


def library_state(name: str, seed: int = 0):
    """Return a closed mechanism of the library away from its assembled position, with a motion: system, q, qd, qdd."""
    system = kt.load(name)
    rng = np.random.default_rng(seed)
    start = system.assemble()
    speed = system.closing_speed(start, rng.normal(size=system.nv))
    q = system.assemble(system.integrate(start, 0.2 * speed / max(1.0, np.abs(speed).max())))
    return system, q, *motion(system.mechanism, q, seed)


def held_body(kind: str, seed: int = 11) -> tuple[kt.System, kt.System]:
    """Return one body on a joint of a tree, and the same body on a free joint with that joint as a cut."""
    rng = np.random.default_rng(seed)
    body = Body("bob", 1.7, nested(rng.normal(size=3) * 0.3), (0.5, 0.6, 0.7, 0.05, -0.04, 0.03))
    cut = replace(random_loop("joint", kind, GROUND, "bob", rng), placement_b=Placement())
    joint = Joint("joint", kind, GROUND, "bob", cut.placement_a, cut.axis, cut.axis2, cut.pitch, "xyz")
    loose = Joint("free", "free", GROUND, "bob")
    gravity = (0.3, -0.4, -9.81)
    on_tree = kt.System(build_mechanism("tree", [body], [joint], gravity=gravity))
    return on_tree, kt.System(build_mechanism("cut", [body], [loose], loops=[cut], gravity=gravity))


def free_coordinates(pose: np.ndarray) -> np.ndarray:
    """Return the coordinates of a free joint at a pose."""
    return np.concatenate([pose[:3, 3], Rotation.from_matrix(pose[:3, :3]).as_quat()])


def start_of(system: kt.System):
    """Return an awkward start, closed if there are loops."""
    q, qd = system.random_state(6)
    if system.closures:
        q = system.assemble()
        qd = np.asarray(system.closing_speed(q, qd))
    return q, 0.4 * qd
