"""Nearly redundant loops: closed within the tolerance, or a stop that names the loop."""

from __future__ import annotations

from dataclasses import replace

import numpy as np
import pytest

import everyday
import kinetree as kt
from kinetree.errors import AssemblyError, InputError
from kinetree.model.mechanism import resolve_parts
from kinetree.model.scales import characteristic_length
from kinetree.simulation.closing import FAITHFUL, NEAR

CASES = [("third", misfit) for misfit in (0.0, 1e-13, 1e-11, 1e-9, 1e-7, 1e-5)]
METHODS = ({}, {"method": "rk4", "dt": 1e-3})


def parallelogram(rod: str, misfit: float) -> kt.System:
    """Return the library's parallelogram with a rod that is too long by a misfit [m]: its second, or its third.

    "massless" has a rod without mass in the place of the third.
    """
    m = kt.load("parallelogram").mechanism
    bodies, joints, loops = resolve_parts((m.bodies, m.joints, m.loops), m.values())
    if rod == "massless":
        bodies, joints = ([x for x in xs if x.name != "third_rocker"] for xs in (bodies, joints))
        place = kt.Placement((0.4, 0.0, 0.0))
        loops = [loops[0], kt.Loop("third_pin", "rod", kt.GROUND, "coupler", place, place, length=0.5 + misfit)]
    else:
        longer = kt.Placement((0.0, 0.5 + misfit, 0.0))
        loops = [replace(x, placement_a=longer) if x.name == f"{rod}_pin" else x for x in loops]
    return kt.System(kt.build_mechanism("parallelogram", bodies, joints, loops=loops, gravity=m.gravity))


def starts(system: kt.System, count: int) -> tuple[np.ndarray, np.ndarray]:
    """Return states before the change point, at which all bars are in line."""
    signs = np.array([1.0, -1.0, 1.0, 1.0])[: system.nv]
    return np.linspace(0.2, 1.2, count)[:, None] * signs, np.linspace(3.0, -7.0, count)[:, None] * signs


@pytest.mark.parametrize(
    ("rod", "misfit"), everyday.some([*CASES, ("second", 1e-12), ("second", 1e-11), ("massless", 1e-11)])
)
def test_no_run_finishes_with_a_wrong_motion(rod, misfit):
    """Keep energy and gaps through the change point, or stop and name the loop that is nearly redundant."""
    system = parallelogram(rod, misfit)
    q, qd = starts(system, 12)
    for how in METHODS:
        try:
            run = kt.simulate(system, q, qd, duration=1.0, progress=False, **how)
        except InputError as error:
            assert misfit >= 1e-7
            assert "_pin' (" in str(error) and ("is nearly redundant" in str(error) or "does not close" in str(error))
            continue
        done = np.isfinite(run.q).all(axis=(1, 2))
        if misfit <= 1e-12:
            assert run.status == "finished"
        if run.status != "finished":
            assert "loop 'third_pin' (" in run.status and "is nearly redundant and stays open by" in run.status
        whole = run.q[done], run.qd[done]
        energy = system.kinetic_energy(*whole) + system.potential_energy(whole[0])
        reach = np.ptp(system.potential_energy(np.linspace(0, 2 * np.pi, 99)[:, None] * np.sign(q[0])))
        assert (np.ptp(energy, axis=-1) <= FAITHFUL * reach).all()
        gaps = np.abs(system.closure_residual(whole[0]))
        assert (gaps <= NEAR * characteristic_length(system.mechanism)).all()


@everyday.long
def test_a_misfit_that_shows_only_on_the_way_is_named():
    """Stop when a third rocker opens its loop, since it fits at the start but is not parallel to the others."""
    m = kt.load("parallelogram").mechanism
    bodies, joints, loops = resolve_parts((m.bodies, m.joints, m.loops), m.values())
    shifted = [replace(j, placement=kt.Placement((0.4, -1e-5, 0.0))) if j.name == "third_rocker" else j for j in joints]
    longer = [
        replace(x, placement_a=kt.Placement((0.0, 0.5 + 1e-5, 0.0))) if x.name == "third_pin" else x for x in loops
    ]
    system = kt.System(kt.build_mechanism("shifted", bodies, shifted, loops=longer, gravity=m.gravity))
    signs = np.array([1.0, -1.0, 1.0, 1.0])
    qd = system.closing_speed(0.0 * signs, 2.0 * signs)
    run = kt.simulate(system, 0.0 * signs, qd, duration=0.5, progress=False)
    assert "loop 'third_pin' (" in run.status and "is nearly redundant" in run.status


@pytest.mark.parametrize("misfit", [1e-7, 1e-5])
def test_assembly_refuses_loops_that_contradict_each_other(misfit):
    """Read which loops contradict each other by more than the tolerance."""
    with pytest.raises(AssemblyError, match="'second_pin' and loop 'third_pin' contradict each other"):
        parallelogram("third", misfit).assemble()
