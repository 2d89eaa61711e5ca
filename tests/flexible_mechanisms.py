"""Random trees of rigid and flexible bodies."""

from __future__ import annotations

import numpy as np

import kinetree as kt

LIBRARY = ("flexible_arm", "flexible_four_bar", "flexible_slider_crank", "space_arm", "spinning_beam")
"""The flexible mechanisms of the library, which only the functions that know flexible bodies take."""


def beam(rng: np.random.Generator, modes: tuple[int, int, int, int], **options) -> kt.Beam:
    """Return a soft beam with awkward numbers, a node on the way, and given numbers of modes."""
    length = rng.uniform(0.6, 1.9)
    section = [("rectangle", 0.021, 0.034), ("circle", 0.027), ("tube", 0.041, 0.033)][rng.integers(3)]
    given = {"E": 3.1e9, "G": 1.2e9, "rho": 1870.0, "section": section, "modes": modes, "nodes": {"mid": 0.43 * length}}
    return kt.Beam(length, **(given | options))


def placement(rng: np.random.Generator) -> kt.Placement:
    """Return a place and a rotation with awkward numbers."""
    return kt.Placement.from_euler("xyz", tuple(rng.uniform(-1.0, 1.0, 3)), tuple(rng.uniform(-0.4, 0.4, 3)))


def body(rng: np.random.Generator, name: str) -> kt.Body:
    """Return a rigid body."""
    xx, yy, zz = np.sort(rng.uniform(0.05, 0.09, 3))
    return kt.Body(name, rng.uniform(0.3, 1.4), tuple(rng.uniform(-0.2, 0.2, 3)), (xx, yy, zz, 0.004, -0.003, 0.002))


KINDS = ("revolute", "spherical", "universal", "prismatic", "cylindrical", "euler")


def random_tree(seed: int, *, base: str = "revolute", count: int = 5, **options) -> kt.Mechanism:
    """Return a tree with at least two flexible bodies; later bodies hang on roots, nodes and rigid bodies."""
    rng = np.random.default_rng(seed)
    bodies, joints = [], []
    places = ["ground"]
    for k in range(count):
        name = f"b{k}"
        flexible = k in (0, 2) or rng.random() < 0.3
        parent = places[rng.integers(len(places))] if k else "ground"
        kind = base if k == 0 else KINDS[rng.integers(len(KINDS))]
        if flexible:
            modes = tuple(int(x) for x in rng.integers(0, 3, 4))
            modes = modes if any(modes) else (1, 2, 1, 0)
            made = body(rng, name) if rng.random() < 0.5 else kt.Body(name)
            shape = beam(rng, modes, **options)  # type: ignore[arg-type]
            bodies.append(kt.Body(name, made.mass, made.com, made.inertia, flexible=shape))
            places = [f"{name}.tip", f"{name}.mid", name] if k == 0 else [*places, f"{name}.tip", f"{name}.mid"]
        else:
            bodies.append(body(rng, name))
            places.append(name)
        axis = tuple(rng.normal(size=3))
        joints.append(kt.Joint(f"j{k}", kind, parent, name, placement(rng), axis))
    return kt.build_mechanism("tree", bodies, joints, gravity=(0.7, -1.9, -9.3))


def two_link_arm() -> kt.System:
    """Return an arm of two flexible links with a load, whose frame is "tool"."""
    boom = kt.Beam(
        1.9, E=70e9, G=26e9, rho=2700, section=("tube", 0.05, 0.046), modes=(1, 2, 1, 0), damping=0.02,
        nodes={"middle": 1.0},
    )  # fmt: skip
    fore = kt.Beam(1.4, E=70e9, rho=2700, section=("rectangle", 0.03, 0.04), modes=(1, 1), damping=0.02)
    load = kt.Body("load", 1.5, (0.1, 0.0, 0.0), (0.01, 0.02, 0.02, 0.0, 0.0, 0.0))
    joints = [
        kt.Joint("shoulder", "revolute", "ground", "boom", axis="y"),
        kt.Joint("elbow", "revolute", "boom.tip", "fore", axis="y"),
        kt.Joint("wrist", "revolute", "fore.tip", "load", axis="z"),
    ]
    bodies = [kt.Body("boom", flexible=boom), kt.Body("fore", 0.2, flexible=fore), load]
    frames = [kt.Frame("tool", "load", kt.Placement((0.2, 0.0, 0.0)))]
    return kt.System(kt.build_mechanism("arm", bodies, joints, frames=frames))


def state(system: kt.System, seed: int) -> tuple[np.ndarray, ...]:
    """Return q, qd and qdd with modal coordinates of a few centimeters."""
    rng = np.random.default_rng(seed)
    q, _ = system.random_state(rng)
    return q, rng.normal(size=system.nv), rng.normal(size=system.nv)
