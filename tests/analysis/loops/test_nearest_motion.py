"""Nearest closed motions."""

import numpy as np

from kinetree import load
from kinetree.analysis.loops.driven_motion import nearest_motion
from tolerance import assert_close


def test_slightly_open_motions_are_closed():
    """Close positions, velocities and accelerations that are off by 1e-5, and move them by no more than that."""
    bars, rng = load("four_bar"), np.random.default_rng(4)
    q = bars.assemble(hold={"crank": np.linspace(0.4, 1.9, 7)})
    qd = bars.consistent_speeds(q, {"crank": np.linspace(0.7, -0.3, 7)})
    qdd = bars.consistent_accelerations(q, qd, {"crank": np.linspace(-1.1, 2.3, 7)})
    given = [x + 1e-5 * rng.uniform(-1, 1, size=x.shape) for x in (q, qd, qdd)]
    found = nearest_motion(bars, *given)
    J = bars.closure_jacobian(found[0])
    assert_close(bars.closure_residual(found[0]), 0 * J[..., 0], 1e-13, "gap")
    assert_close((J @ found[1][..., None])[..., 0], 0 * J[..., 0], 1e-13, "speed of the gap")
    parting = (J @ found[2][..., None])[..., 0] + bars.closure_bias(found[0], found[1])
    assert_close(parting, 0 * J[..., 0], 1e-12, "acceleration of the gap")
    for x, exact in zip(found, (q, qd, qdd), strict=True):
        assert 1e-8 < np.abs(x - exact).max() < 3e-4  # the errors of positions enter into dJ/dt qd
