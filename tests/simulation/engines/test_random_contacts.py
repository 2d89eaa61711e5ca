"""Random mechanisms with random contacts: no state breaks Signorini's conditions, the cone or the dissipation."""

from __future__ import annotations

from dataclasses import replace

import numpy as np
import pytest

import kinetree as kt
from contacted import outputs
from kinetree.compiler.lower.contacts import motion_program
from strategies import THOROUGH, random_mechanism
from tolerance import assert_close

SHAPES = (("point", ()), ("sphere", (0.2,)), ("capsule", (0.1, 0.3)), ("disc", (0.25,)), ("box", (0.3, 0.2, 0.4)))
JOINTS = ("revolute", "prismatic", "spherical", "universal")


def falling(seed: int) -> tuple[kt.System, np.ndarray, np.ndarray, list[kt.Contact]]:
    """Return a random mechanism that falls to a plane close below it, with random contacts."""
    rng = np.random.default_rng(seed)
    count = int(rng.integers(1, 4))
    kinds = ["free" if k == 0 and rng.random() < 0.7 else str(rng.choice(JOINTS)) for k in range(count)]
    tree = random_mechanism(kinds, [-1, *(int(rng.integers(0, k)) for k in range(1, count))], rng)
    tree = replace(tree, gravity=(0.0, 0.0, -9.81))
    system = kt.System(tree)
    q, qd = system.random_state(rng)
    bodies = [b.name for b in tree.bodies]
    contacts = []
    for k in range(int(rng.integers(1, 4))):
        shape, size = SHAPES[rng.integers(len(SHAPES))]
        contacts.append(kt.Contact(
            f"c{k}", str(rng.choice(bodies)), shape, size, tuple(rng.normal(size=3) * 0.3),
            friction=float(rng.uniform(0.0, 1.0)), restitution=float(rng.choice([0.0, 0.3, 0.7])),
            law=str(rng.choice(["newton", "poisson"])),
        ))  # fmt: skip
    gaps = outputs(motion_program(replace(tree, contacts=tuple(contacts))), q, qd)["gap"]
    plane = kt.Surface(placement=kt.Placement((0.0, 0.0, float(gaps.min() - rng.uniform(0.0, 0.1)))))
    return system, q, 0.3 * qd, [replace(c, surface=plane) for c in contacts]


@pytest.mark.slow
def test_random_mechanisms_keep_all_conditions() -> None:
    """Run 100 mechanisms (20 at a developer's desk) into the ground, and bound the residuals of samples and impacts."""
    ended = 0
    for seed in range(100 if THOROUGH else 20):
        system, q, qd, contacts = falling(seed)
        try:
            run = kt.simulate(system, q, qd, times=np.linspace(0, 0.4, 21), contacts=contacts, rtol=1e-6, atol=1e-8)
        except kt.InputError as error:
            assert "Painleve" in str(error), seed
            continue
        assert run.finished or "Painleve" in run.status or "accumulate" in run.status, (seed, run.status)
        ended += run.finished
        for residuals in (run.contact.residuals, run.contact.impact_residuals):
            for name, value in residuals.items():
                assert_close(value, 0.0, 1e-10, name)
        if not any(c.restitution for c in contacts):
            change = np.diff(run["energy"]) / (1.0 + np.abs(run["energy"][0]))
            assert_close(np.maximum(change, 0.0), 0 * change, 1e-5, "energy never grows")
    assert ended > (85 if THOROUGH else 16)
