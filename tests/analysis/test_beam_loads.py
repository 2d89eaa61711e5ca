"""Loads along beams and deflections as measures, against textbooks; pictures of deformed beams."""

from __future__ import annotations

import numpy as np
import pytest

import kinetree as kt
from flexible_mechanisms import two_link_arm
from kinetree.plots.skeleton import scene
from tolerance import assert_close

L, E, WIDTH, HEIGHT, RHO = 1.3, 7e10, 0.03, 0.02, 2700.0
BEAM = kt.Beam(L, E=E, rho=RHO, section=("rectangle", WIDTH, HEIGHT), modes=(0, 3), nodes={"a": 0.4, "b": 0.9})


def cantilever(load: float) -> kt.System:
    """Return a clamped beam with a point mass at its tip."""
    joints = [kt.Joint("root", "fixed", "ground", "boom"), kt.Joint("end", "fixed", "boom.tip", "load")]
    bodies = [kt.Body("boom", flexible=BEAM), kt.Body("load", load)]
    return kt.System(kt.build_mechanism("cantilever", bodies, joints))


def test_bending_moment_and_shear_of_a_cantilever():
    """Find moment, shear and strain under own weight and a load at the tip as in textbooks."""
    load, g = 0.3, 9.81
    system = cantilever(load)
    found = system.beam_loads(kt.equilibrium(system), "boom", count=9)
    weight = RHO * WIDTH * HEIGHT * g
    left = L - found.x
    moment = -(load * g * left + weight * left**2 / 2)  # bends along -z
    assert_close(found.moment[:, 1], moment, 1e-3 * np.abs(moment).max(), "moment")
    assert_close(found.shear[:, 1], -(load * g + weight * left), 1e-3 * np.abs(moment).max() / L * 3, "shear")
    strain = np.abs(moment) / (E * WIDTH * HEIGHT**3 / 12) * HEIGHT / 2
    assert_close(found.strain, strain, 1e-3 * strain.max(), "strain")
    assert not found.moment[:, 0].any()
    assert_close(found.deflection[-1, 1], system.pose(kt.equilibrium(system), "boom.tip")[2, 3], 1e-12, "deflection")


def test_beam_loads_of_free_beams_and_bad_input():
    """Find the loads of a beam with formulas at other numbers, and name the bodies that have beams."""
    system = cantilever(0.3)
    free = kt.with_free(system, "beam.boom.size_z")
    q = np.array([-0.01, 0.001, 0.0002])
    assert_close(
        free.beam_loads(q, "boom", parameters=[2 * HEIGHT]).moment, 8 * system.beam_loads(q, "boom").moment, 1e-9, "EI"
    )
    with pytest.raises(kt.InputError, match="body 'load' has no beam; those with one: boom"):
        system.beam_loads(q, "load")


def test_deflections_are_measures():
    """Measure the largest deflection of the tool of an arm, relative to where rigid links would have it."""
    arm = two_link_arm()
    q = np.zeros(arm.nv)
    run = kt.simulate(arm, q, times=np.linspace(0.0, 0.1, 21))
    straight = run.q.copy()
    straight[:, [1, 2, 3, 4, 6, 7]] = 0.0
    apart = arm.pose(run.q, "tool")[:, :3, 3] - arm.pose(straight, "tool")[:, :3, 3]
    assert_close(kt.peak("deflection.tool")(run), np.linalg.norm(apart, axis=1).max(), 1e-15, "deflection")
    over = {"mass.load": np.array([1.0, 2.0])}
    options = {"simulate": {"duration": 0.1, "q0": q}, "measures": {"sag": "peak deflection.tool"}}
    study = kt.study(kt.with_free(arm, "mass.load"), over=over, **options)
    assert study["sag"].min() > 1e-4
    assert study.units["sag"] == "m"
    with pytest.raises(kt.InputError, match="has no flexible bodies, so that 'deflection.bob' is zero"):
        kt.study(
            kt.load("tube_arm"),
            over={"payload": [1.0]},
            simulate={"duration": 0.1},
            measures={"d": "peak deflection.bob"},
        )


def test_pictures_follow_the_nodes(tmp_path):
    """Draw a beam from node to node, an exaggerated run, and the loads along the beam."""
    system = cantilever(0.3)
    run = kt.simulate(system, [-0.02, 0.0, 0.0], duration=0.02)
    names = [b.name for b in system.mechanism.bodies]
    ends = {(names[rod.a], names[rod.b]) for rod in scene(run).rods if rod.a >= 0}
    assert ends >= {("boom.elastic", "boom.a"), ("boom.a", "boom.b"), ("boom.b", "boom.tip")}
    assert ("boom.elastic", "boom.tip") not in ends
    assert_close(run.exaggerated(5.0).q, 5.0 * run.q, 0.0, "exaggerated")
    file = tmp_path / "loads.png"
    system.beam_loads(run.q[-1], "boom").plot(file)
    assert file.stat().st_size > 5000
