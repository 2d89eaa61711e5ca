"""Leading axes: states, torques and parameters broadcast in every function, against one call per sample."""

from __future__ import annotations

from dataclasses import replace

import numpy as np
import pytest

import everyday
import kinetree as kt
from kinetree.errors import InputError
from kinetree.model.parameters import Expression
from tolerance import assert_close

TIMES = [0.0, 0.03, 0.1]


def arm() -> kt.System:
    """Return an arm of two links; the mass of the first, and the stiffness of a spring in the second, are free."""
    mechanism = kt.load("planar_2r").mechanism
    first, second = mechanism.bodies
    spring = kt.ForceElement(
        "spring", "joint_spring", first.name, second.name, coefficients=(("stiffness_1", Expression("name", ("k",))),)
    )
    return kt.System(
        replace(
            mechanism,
            bodies=(replace(first, mass=Expression("name", ("m",))), second),
            parameters=(kt.Parameter("m", 1.3, free=True), kt.Parameter("k", 21.0, free=True)),
            forces=(spring,),
        )
    )


SYSTEM = arm()
RNG = np.random.default_rng(26)
NOMINAL = np.array([1.3, 21.0])
Q, QD, TAU = RNG.normal(size=(3, 2))
SHAPES = {
    "many parameters": (NOMINAL * RNG.uniform(0.8, 1.2, (3, 2)), Q, QD, TAU),
    "one set as a batch": (1.1 * NOMINAL[None], Q + 0.1 * RNG.normal(size=(3, 2)), QD, TAU),
    "a grid": (NOMINAL * RNG.uniform(0.8, 1.2, (2, 1, 2)), Q + 0.1 * RNG.normal(size=(3, 2)), QD, TAU),
}
FIXED = {"times": TIMES, "method": "rk4", "dt": 0.01}


def gradient(q, qd, tau, p) -> np.ndarray | None:
    """Return the gradient of an objective of a run with respect to the parameters."""
    return kt.simulation_gradient(
        SYSTEM, q, qd, terminal=lambda now: now.q[0] * now.qd[1], parameters=p, **FIXED
    ).parameters


FUNCTIONS = {
    "simulate rk4": lambda q, qd, tau, p: kt.simulate(SYSTEM, q, qd, parameters=p, **FIXED).q,
    "simulate dop853": lambda q, qd, tau, p: kt.simulate(SYSTEM, q, qd, parameters=p, times=TIMES, method="dop853").q,
    "simulate rodas5p": lambda q, qd, tau, p: kt.simulate(SYSTEM, q, qd, parameters=p, times=TIMES, method="rodas5p").q,
    "simulate bdf": lambda q, qd, tau, p: kt.simulate(SYSTEM, q, qd, parameters=p, times=TIMES, method="bdf").q,
    "energy_balance": lambda q, qd, tau, p: kt.energy_balance(kt.simulate(SYSTEM, q, qd, parameters=p, **FIXED)).energy,
    "simulation_derivatives": lambda q, qd, tau, p: kt.simulation_derivatives(SYSTEM, q, qd, parameters=p, **FIXED).dq,
    "simulation_gradient": gradient,
    "run_function": lambda q, qd, tau, p: kt.run_function(SYSTEM, **FIXED)(q, qd, parameters=p)[0],
    "equilibrium": lambda q, qd, tau, p: kt.equilibrium(SYSTEM, q, tau=tau, parameters=p),
    "linearize": lambda q, qd, tau, p: SYSTEM.linearize(q, qd, tau, parameters=p).A,
    "linearize, a step": lambda q, qd, tau, p: SYSTEM.linearize(q, qd, tau, parameters=p, dt=0.01).B,
    "forward_dynamics": lambda q, qd, tau, p: SYSTEM.forward_dynamics(q, qd, tau, parameters=p, forces=True),
    "derivatives": lambda q, qd, tau, p: SYSTEM.forward_dynamics_derivatives(q, qd, tau, parameters=p)[0],
    "inverse_kinematics": lambda q, qd, tau, p: (
        SYSTEM.inverse_kinematics(SYSTEM.pose(q, "tool")[..., :3, 3], "tool", q0=q, parameters=p).q
    ),
    "loads": lambda q, qd, tau, p: SYSTEM.loads(q, qd, parameters=p).joints,
    "doctor": lambda q, qd, tau, p: np.vectorize(lambda d: float(d.mobility))(SYSTEM.doctor(q, qd, parameters=p)),
}


@pytest.mark.parametrize("shapes", SHAPES)
@pytest.mark.parametrize("name", FUNCTIONS)
def test_leading_axes_broadcast(name, shapes):
    """Compare a call with parameters and states of different leading shapes with one call per sample."""
    call, (p, q, qd, tau) = FUNCTIONS[name], SHAPES[shapes]
    found = np.asarray(call(q, qd, tau, p))
    lead = np.broadcast_shapes(p.shape[:-1], q.shape[:-1])
    p, q, qd, tau = (np.broadcast_to(x, (*lead, 2)) for x in (p, q, qd, tau))
    assert found.shape[: len(lead)] == lead
    for at in np.ndindex(*lead):
        one = np.asarray(call(q[at], qd[at], tau[at], p[at]))
        assert_close(found[at], one, 1e-10 * max(1.0, np.abs(one).max()), f"{name} of sample {at}")


@everyday.long
def test_starts_of_many_designs_are_found_for_each():
    """Assemble a start for every set of parameters where none is given, with loops and with a driven joint."""
    mechanism = kt.load("parallelogram").mechanism
    bars = kt.System(replace(mechanism, parameters=tuple(replace(p, free=True) for p in mechanism.parameters)))
    sets = np.array([p.value for p in bars.mechanism.free_parameters]) * np.array([[1.0], [1.02]])
    crank = bars.independent().names[0]
    run = kt.simulate(bars, times=TIMES, control=kt.Driven(crank, kt.Hold(0.4, speed=2.1)), parameters=sets)
    for k in range(2):
        one = kt.simulate(bars, times=TIMES, control=kt.Driven(crank, kt.Hold(0.4, speed=2.1)), parameters=sets[k])
        assert_close(run.q[k], one.q, 1e-9, "a driven loop of one of several designs")
    free = kt.simulate(bars, times=TIMES, parameters=sets)
    assert free.q.shape == (2, 3, bars.nq) and np.isfinite(free.q).all()


def test_added_torques_have_leading_axes_of_their_own():
    """Differentiate runs from one start under several histories of added torques, against one call for each."""
    torques = RNG.normal(size=(4, 2, 2))

    def found(added):
        run = kt.simulation_gradient(SYSTEM, Q, QD, terminal=lambda now: now.q[0] ** 2, torques=added, **FIXED)
        return np.asarray(run.torques)

    whole = found(torques)
    assert whole.shape == (4, 2, 2)
    for k in range(4):
        assert_close(whole[k], found(torques[k]), 1e-12, "gradient of one history of torques")
        both = kt.simulation_derivatives(SYSTEM, Q, QD, torques=torques, **FIXED).run.q[k]
        assert_close(both, kt.simulation_derivatives(SYSTEM, Q, QD, torques=torques[k], **FIXED).run.q, 1e-13, "run")


def test_states_of_loops_are_linearized_together():
    """Linearize several closed states in one call, against one call for each."""
    bars = kt.load("four_bar")
    q = np.array([bars.assemble(hold={"crank": x}) for x in (0.61, 0.83, 1.27)])
    qd, tau = bars.consistent_speeds(q, {"crank": 3.1}), RNG.normal(size=bars.nv)
    found = bars.linearize(q, qd, tau)
    assert found.A.shape == (3, 2, 2) and found.G.shape == (3, bars.nv, 1)
    for k in range(3):
        one = bars.linearize(q[k], qd[k], tau)
        assert_close(found.A[k], one.A, 1e-12 * np.abs(one.A).max(), "A of a batch of closed states")
        assert_close(found.G[k], one.G, 1e-13, "G of a batch of closed states")


def test_shapes_that_do_not_fit_are_refused():
    """Name all arrays with their leading shapes, and functions of a single design."""
    p = NOMINAL * np.ones((3, 1))
    told = r"the leading shapes do not fit together: q0 \(2,\), qd0 \(\), parameters \(3,\)"
    with pytest.raises(InputError, match=told):
        kt.simulate(SYSTEM, np.stack([Q, Q]), QD, parameters=p, times=TIMES)
    told = r"equilibrium: the leading shapes do not fit together: q \(2,\), tau \(\), parameters \(3,\)"
    with pytest.raises(InputError, match=told):
        kt.equilibrium(SYSTEM, np.stack([Q, Q]), parameters=p)
    with pytest.raises(
        InputError, match=r"the leading shapes do not fit together: q0 \(2,\), qd0 \(\), torques \(4,\)"
    ):
        kt.simulation_derivatives(SYSTEM, np.stack([Q, Q]), QD, torques=np.zeros((4, 2, 2)), **FIXED)
    with pytest.raises(InputError, match=r"parameters have shape \(3,\); expected \[..., 2\], for m, k"):
        kt.simulate(SYSTEM, Q, parameters=p[:, 0], times=TIMES)
    with pytest.raises(InputError, match=r"modes: parameters have shape \(3, 2\); expected one set, \[2\]"):
        SYSTEM.modes(Q, parameters=p)
    with pytest.raises(InputError, match=r"parameter 'k' of set \[2\] is nan; give finite numbers"):
        kt.simulate(SYSTEM, Q, parameters=np.where([[0, 0], [0, 0], [0, 1]], np.nan, p), times=TIMES)
