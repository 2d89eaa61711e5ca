"""Random states and torques of a mechanism, the same in every test."""

import numpy as np

import kinetree as kt


def motion(system: kt.System, *lead: int) -> list[np.ndarray]:
    """Return random q, qd and torques of a leading shape."""
    rng = np.random.default_rng(5)
    q, qd = system.random_state(rng, lead)
    return [q, qd, rng.normal(size=(*lead, system.nv))]
