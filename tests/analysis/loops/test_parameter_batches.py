"""Tests of analyses of loops with leading shapes of states and of parameters."""

from __future__ import annotations

import numpy as np
import pytest

import everyday
import kinetree as kt
from kinetree.runtime import cache
from sprung_mechanisms import sprung
from tolerance import assert_close

NAMES = ("tau", "multipliers", "residual", "freedoms", "driven", "unique_tau", "unique_multipliers", "achieved")
SOME = ((0, 1), (1, 2))
"""The designs that are also compiled with fixed parameters, which takes long."""


@pytest.fixture(scope="module", params=["revolute", pytest.param("spherical", marks=pytest.mark.slow)])
def designs(request, tmp_path_factory):
    """Return a mechanism, sets of parameters [2, 3, np], and a motion of each."""
    system = sprung(tmp_path_factory.mktemp("sprung"), request.param)
    rng = np.random.default_rng(5)
    nominal = np.array([p.value for p in system.mechanism.free_parameters])
    sets = nominal * rng.uniform(0.9, 1.1, (2, 3, len(nominal)))
    q = np.empty((2, 3, system.nq))
    qd, qdd = np.empty((2, 2, 3, system.nv))
    for n in np.ndindex(2, 3):
        q[n] = system.assemble(hold={"crank": 0.2 + 0.1 * n[1]}, parameters=sets[n])
        qd[n] = system.consistent_speeds(q[n], {"crank": 2.0}, parameters=sets[n])
        qdd[n] = system.consistent_accelerations(q[n], qd[n], {"crank": -3.0}, parameters=sets[n])
    return system, sets, q, qd, qdd


@pytest.mark.parametrize("forces", everyday.some([False, True]))
@pytest.mark.parametrize("actuated", [["crank"], ["crank", "output"]])
def test_actuation_of_many_designs_is_that_of_each(designs, actuated, forces):
    """Compare a batch of parameters with mechanisms whose parameters are fixed."""
    system, sets, q, qd, qdd = designs
    found = system.actuation(q, qd, qdd, actuated, parameters=sets, forces=forces)
    for n in SOME:
        one = system.fixed(sets[n]).actuation(q[n], qd[n], qdd[n], actuated, forces=forces)
        for name in NAMES:
            a, e = getattr(found, name)[n], getattr(one, name)
            assert_close(a, e, 1e-9 * max(1.0, np.abs(e).max(initial=0.0)), f"{name} of a batch")
    tau = system.inverse_dynamics(q, qd, qdd, actuated=actuated, parameters=sets, forces=forces)
    assert_close(tau, found.tau, 1e-12 * np.abs(tau).max(), "inverse dynamics of a batch")


@pytest.mark.parametrize("forces", everyday.some([False, True]))
@pytest.mark.parametrize("how", ["motion", "fall"])
def test_loads_of_many_designs_are_those_of_each(designs, how, forces):
    """Compare wrenches, also in other axes, of a batch of parameters with those of fixed mechanisms."""
    system, sets, q, qd, qdd = designs

    def options(n):
        return {"qdd": qdd[n], "actuated": "crank"} if how == "motion" else {"tau": [0.7, -0.2, 0.4]}

    found = system.loads(q, qd, parameters=sets, forces=forces, **options(...))
    scale = np.abs(found.joints).max()
    for n in SOME:
        one = system.fixed(sets[n]).loads(q[n], qd[n], forces=forces, **options(n))
        for name in ("joints", "cuts", "unique_joints", "unique_cuts", "multipliers", "tau"):
            assert_close(getattr(found, name)[n], getattr(one, name), 1e-9 * scale, f"{name} of a batch")
        for axes in ("body", "parent", "world"):
            assert_close(found.at("pin", axes=axes)[n], one.at("pin", axes=axes), 1e-9 * scale, f"in {axes} axes")


def test_other_parameters_compile_nothing(designs, monkeypatch):
    """Check that calls with other values of the parameters fetch no code."""
    system, sets, q, qd, qdd = designs
    system.loads(q, qd, qdd=qdd, actuated="crank", parameters=sets)
    monkeypatch.setattr(cache, "fetch", lambda *_: pytest.fail("code was compiled"))
    other = {"rate": [[150.0], [10.0]], "rest": [0.1, 0.2, 0.3]}
    found = system.loads(q[0, 0], qd[0, 0], qdd=qdd[0, 0], actuated="crank", parameters={"arm": sets[0, 0, 0], **other})
    assert found.joints.shape == (2, 3, 3, 6)


def test_unsuitable_parameters_are_refused(designs):
    """Check the messages of parameters of a wrong shape, of unknown names, and of values that are not finite."""
    system, sets, q, qd, qdd = designs
    with pytest.raises(kt.InputError, match=r"parameters have shape \(2, 3, 4\); expected \[..., 5\], for arm, heavy"):
        system.loads(q, qd, parameters=sets[..., :4])
    with pytest.raises(kt.UnknownNameError, match="no free parameter 'rte'; did you mean 'rate'"):
        system.actuation(q, qd, qdd, "crank", parameters={"rte": 1.0})
    bad = sets.copy()
    bad[1, 2, 3] = np.nan
    with pytest.raises(kt.InputError, match=r"parameter 'rest' of set \[1, 2\] is nan; give finite numbers"):
        system.actuation(q, qd, qdd, "crank", parameters=bad)
    with pytest.raises(kt.InputError, match="'four_bar' has no free parameters; declare them with free = true"):
        kt.load("four_bar").loads([0.0, 0.9, 4.3], np.zeros(3), parameters=[1.0])
